//! Application packages: damaged files are refused, and so are wrong contents under a right checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use package::Package;

/// A file without blobs whose metadata are `bytes`, with the right checksum: otherwise nothing behind the checksum is reached.
fn with_metadata(bytes: &[u8]) -> Vec<u8> {
    let mut file = package::MAGIC.to_vec();
    file.extend(package::VERSION.to_le_bytes());
    file.extend((bytes.len() as u64).to_le_bytes());
    file.extend(0u32.to_le_bytes());
    file.extend(bytes);
    let checksum = blake3::hash(&file);
    file.extend(checksum.as_bytes());
    file
}

fn read(file: &[u8]) {
    if let Ok(package) = Package::read(file) {
        let _ = package.check();
        assert!(Package::read(&package.write()).is_ok(), "the package's own file is not readable");
    }
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    read(&with_metadata(bytes));
});
