//! The file of a package: the same bytes every time, all of it back, and nothing else accepted.

mod sample;

use std::sync::OnceLock;

use package::{Package, ReadFault};
use proptest::prelude::*;

fn file() -> &'static [u8] {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    FILE.get_or_init(|| sample::package().write())
}

/// The file with its checksum made right again.
fn signed(mut file: Vec<u8>) -> Vec<u8> {
    let contents = file.len() - 32;
    let checksum = blake3::hash(&file[..contents]);
    file[contents..].copy_from_slice(checksum.as_bytes());
    file
}

#[test]
fn a_package_comes_back_as_it_was_and_gives_the_same_bytes_again() {
    let read = Package::read(file()).unwrap();
    assert_eq!(read, sample::package());
    assert_eq!(read.write(), file());
}

#[test]
fn equal_segments_are_stored_once_and_zeros_behind_them_not_at_all() {
    let package = sample::package();
    let sizes: Vec<usize> = package.blobs.contents().iter().map(|blob| blob.len()).collect();
    // Three kinds of code end with three zero words and a nop's top byte; the data segment is all zeros.
    assert_eq!(sizes, [20, 0, 20, 20]);
    assert_eq!(package.tiles.len(), 1472);
}

#[test]
fn another_version_is_refused_with_both_numbers() {
    let mut bytes = file().to_vec();
    bytes[8] = 9;
    assert_eq!(Package::read(&signed(bytes)), Err(ReadFault::Version { expected: 1, found: 9 }));
}

#[test]
fn another_kind_of_file_is_refused_with_its_first_bytes() {
    assert_eq!(
        Package::read(b"\x7fELF").unwrap_err().to_string(),
        "not an .ipuexe package: it starts with [7f, 45, 4c, 46], expected [49, 50, 55, 45, 58, 45, 0d, 0a]"
    );
}

#[test]
fn bytes_behind_the_metadata_are_refused_even_with_a_right_checksum() {
    let mut bytes = file().to_vec();
    let at = bytes.len() - 32;
    bytes.splice(at..at, [0; 5]);
    assert_eq!(Package::read(&signed(bytes)), Err(ReadFault::Length { part: "checksum", expected_bytes: 32, found_bytes: 37 }));
}

#[test]
fn a_changed_byte_is_refused_by_the_checksum() {
    let mut bytes = file().to_vec();
    bytes[5000] ^= 1;
    assert!(matches!(Package::read(&bytes), Err(ReadFault::Checksum { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_flipped_bit_is_refused(place in 0..file().len(), bit in 0..8_u32) {
        let mut bytes = file().to_vec();
        bytes[place] ^= 1_u8 << bit;
        prop_assert!(Package::read(&bytes).is_err());
    }

    #[test]
    fn any_truncation_is_refused(length in 0..file().len()) {
        prop_assert!(Package::read(&file()[..length]).is_err());
    }

    #[test]
    fn foreign_bytes_with_a_right_checksum_never_panic(place in 12..file().len() - 32, value: u8, length in 44..file().len()) {
        let mut bytes = file().to_vec();
        bytes[place] = value;
        if let Ok(package) = Package::read(&signed(bytes.clone())) {
            let _ = package.check();
            let _ = package.summary();
        }
        bytes.truncate(length);
        let _ = Package::read(&signed(bytes));
    }

    #[test]
    fn random_bytes_behind_the_head_never_panic(tail in proptest::collection::vec(any::<u8>(), 32..200)) {
        let head = [&package::MAGIC[..], &package::VERSION.to_le_bytes()].concat();
        let bytes = signed([head, tail].concat());
        prop_assert!(Package::read(&bytes).is_err());
    }
}
