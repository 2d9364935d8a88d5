//! The one way from the store to the operating system's calls on files, so that tests can make each of them fail; with the feature
//! `faults` off there is nothing in between.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use camino::Utf8Path;

/// Makes a call, unless a test wants it to fail.
pub(crate) fn call<T>(call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    #[cfg(feature = "faults")]
    crate::faults::next()?;
    call()
}

/// Writes all of `bytes`; where a test wants a failure, half of them before it, as on a disk that is full.
pub(crate) fn write_all(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    #[cfg(feature = "faults")]
    if let Err(fault) = crate::faults::next() {
        file.write_all(&bytes[..bytes.len() / 2])?;
        return Err(fault);
    }
    file.write_all(bytes)
}

pub(crate) fn create_dir_all(path: &Utf8Path) -> io::Result<()> {
    call(|| fs::create_dir_all(path))
}

pub(crate) fn open(path: &Utf8Path) -> io::Result<File> {
    call(|| File::open(path))
}

pub(crate) fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    call(|| fs::remove_file(path))
}
