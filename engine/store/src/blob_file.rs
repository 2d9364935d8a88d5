//! Files named by a digest: written beside their place and renamed into it, read-only, never half there.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};

use crate::{Digest, StoreFault, disk};

/// Where the file named `digest` lies below `directory`: `ab/cdef…`.
pub(crate) fn place_of(directory: &Utf8Path, digest: &Digest) -> Utf8PathBuf {
    let name = digest.to_string();
    directory.join(&name[..2]).join(&name[2..])
}

/// Writes `chunks` end to end as the read-only file `place`, replacing what was there at once or not at all.
pub(crate) fn write_whole(place: &Utf8Path, chunks: &[&[u8]]) -> Result<(), StoreFault> {
    let folder = place.parent().unwrap_or(Utf8Path::new("."));
    disk::create_dir_all(folder).map_err(|error| StoreFault::file("create directory", folder, &error))?;
    let mut file = disk::call(|| tempfile::Builder::new().prefix(".writing-").tempfile_in(folder))
        .map_err(|error| StoreFault::file("create a file in", folder, &error))?;
    for chunk in chunks {
        disk::write_all(file.as_file_mut(), chunk).map_err(|error| StoreFault::file("write", place, &error))?;
    }
    disk::call(|| file.as_file().set_permissions(fs::Permissions::from_mode(0o444)))
        .map_err(|error| StoreFault::file("set the mode of", place, &error))?;
    if place.is_dir() {
        discard(place);
    }
    disk::call(|| file.persist(place).map_err(|error| error.error)).map_err(|error| StoreFault::file("rename into", place, &error))?;
    Ok(())
}

/// Whether `place` is a file of `bytes` bytes.
pub(crate) fn has_size(place: &Utf8Path, bytes: usize) -> bool {
    disk::call(|| fs::metadata(place)).is_ok_and(|metadata| metadata.is_file() && metadata.len() == bytes as u64)
}

/// The whole file, or `None` when there is none.
pub(crate) fn read_whole(place: &Utf8Path) -> Result<Option<Vec<u8>>, StoreFault> {
    match disk::call(|| fs::read(place)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreFault::file("read", place, &error)),
    }
}

/// `length` bytes from `offset`; fewer when the file ends before, none when there is no file.
pub(crate) fn read_range(place: &Utf8Path, offset: u64, length: usize) -> Result<Vec<u8>, StoreFault> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = match disk::open(place) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreFault::file("open", place, &error)),
    };
    let mut bytes = Vec::new();
    disk::call(|| file.seek(SeekFrom::Start(offset)).and_then(|_| file.take(length as u64).read_to_end(&mut bytes)))
        .map_err(|error| StoreFault::file("read", place, &error))?;
    Ok(bytes)
}

/// Removes what cannot be used, so that the next writer replaces it. Already gone is as good.
pub(crate) fn discard(place: &Utf8Path) {
    let removed = match disk::remove_file(place) {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => fs::remove_dir_all(place),
        other => other,
    };
    if let Err(error) = removed
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%place, %error, "cannot remove an unusable blob");
    }
}
