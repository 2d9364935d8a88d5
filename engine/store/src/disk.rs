//! The one way from the store to the operating system's calls on files, so that tests can make each of them fail; with the feature
//! `faults` off there is nothing in between.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
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

/// Makes a folder of the store, for whom [`inherit_mode`] says.
pub(crate) fn create_dir_all(path: &Utf8Path) -> io::Result<()> {
    call(|| make_folder(path))
}

fn make_folder(path: &Utf8Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    path.parent().map_or(Ok(()), make_folder)?;
    match fs::create_dir(path) {
        Ok(()) => inherit_mode(path),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Lets those use a new file or folder who may use the folder around it, whatever the umask: whoever makes the store's directory
/// says by its mode who shares it.
pub(crate) fn inherit_mode(path: &Utf8Path) -> io::Result<()> {
    let around = fs::metadata(path.parent().unwrap_or(Utf8Path::new(".")))?.permissions().mode();
    let metadata = fs::metadata(path)?;
    let mode = if metadata.is_dir() { around & 0o7777 } else { around & 0o666 };
    if metadata.permissions().mode() & 0o7777 == mode { Ok(()) } else { fs::set_permissions(path, fs::Permissions::from_mode(mode)) }
}

/// Opens a file for writing, making it when it is not there.
pub(crate) fn open_or_create(path: &Utf8Path) -> io::Result<File> {
    match call(|| File::options().write(true).open(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => call(|| match File::options().write(true).create_new(true).open(path) {
            Ok(file) => inherit_mode(path).map(|()| file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => File::options().write(true).open(path),
            Err(error) => Err(error),
        }),
        opened => opened,
    }
}

pub(crate) fn open(path: &Utf8Path) -> io::Result<File> {
    call(|| File::open(path))
}

pub(crate) fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    call(|| fs::remove_file(path))
}
