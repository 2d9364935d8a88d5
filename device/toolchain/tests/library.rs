//! The kernels of the library assemble to the words they had when these figures were taken, whatever the language learns.

use std::collections::BTreeMap;

use ipu21::parameters::Parameters;
use toolchain::manifest::{self, Range};
use toolchain::object::Object;
use toolchain::{Source, assemble};

/// FNV-1a of 64 bits.
fn hashed(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// The text of a kernel with every parameter at the same end of its range.
fn text(kernel: &manifest::Kernel, end: fn(&Range) -> i64) -> Vec<u8> {
    let file = kernels::files().iter().find(|file| file.name == kernel.source).unwrap();
    let source = Source { name: file.name.to_owned(), text: file.text.to_owned() };
    let defines: BTreeMap<String, i64> = kernel.parameters.iter().map(|(name, range)| (name.clone(), end(range))).collect();
    match assemble(&source, &defines, &Parameters::shipped()) {
        Ok(bytes) => Object::parse(&bytes).unwrap().text().to_vec(),
        Err(faults) => faults[0].message.clone().into_bytes(),
    }
}

#[test]
fn library_kernels_keep_their_words() {
    let kernels = manifest::parse(kernels::manifest()).unwrap();
    let figures = kernels.iter().map(|kernel| {
        let (low, high) = (text(kernel, |range| range.min), text(kernel, |range| range.max));
        format!("{} {} {:016x} {} {:016x}\n", kernel.name, low.len(), hashed(&low), high.len(), hashed(&high))
    });
    assert_eq!(figures.collect::<String>(), include_str!("data/library_words.txt"));
}
