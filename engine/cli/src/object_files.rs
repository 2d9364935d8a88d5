//! Files of the toolchain commands: sources, objects and executables.

use std::io::Write as _;

use camino::Utf8Path;
use toolchain::archive::{self, Member};
use toolchain::object_file::ObjectFile;

use crate::exit::Fault;

/// The parameters these commands assemble with: the shipped ones.
pub(crate) fn machine() -> toolchain::Parameters {
    toolchain::Parameters::shipped()
}

/// A text file; its path is relative to the directory.
pub(crate) fn read_text(directory: &Utf8Path, file: &Utf8Path) -> Result<String, Fault> {
    std::fs::read_to_string(directory.join(file)).map_err(|error| Fault::input(format!("{file}: {error}")))
}

/// What a file holds.
pub(crate) enum Read {
    /// An object or an executable.
    Object(ObjectFile),
    /// An archive of objects.
    Archive(Vec<Member>),
}

/// An object, an executable or an archive.
pub(crate) fn read(directory: &Utf8Path, file: &Utf8Path) -> Result<Read, Fault> {
    let bytes = std::fs::read(directory.join(file)).map_err(|error| Fault::input(format!("{file}: {error}")))?;
    let read =
        if archive::is_archive(&bytes) { archive::read(&bytes).map(Read::Archive) } else { ObjectFile::parse(&bytes).map(Read::Object) };
    read.map_err(|error| Fault::input(format!("{file}: {error}")))
}

/// The objects of a file: `file` itself, or `file(member)` of an archive.
pub(crate) fn read_objects(directory: &Utf8Path, file: &Utf8Path) -> Result<Vec<(String, ObjectFile)>, Fault> {
    Ok(match read(directory, file)? {
        Read::Object(object) => vec![(file.to_string(), object)],
        Read::Archive(members) => members.into_iter().map(|member| (format!("{file}({})", member.name), member.object)).collect(),
    })
}

/// Writes a file: all of it, or nothing.
pub(crate) fn write(directory: &Utf8Path, file: &Utf8Path, bytes: &[u8]) -> Result<(), Fault> {
    let path = directory.join(file);
    let folder = path.parent().filter(|folder| !folder.as_str().is_empty()).unwrap_or(directory);
    // A folder that is not there is said without the name of a temporary file.
    let written = std::fs::metadata(folder).and_then(|_| {
        let mut part = tempfile::Builder::new().permissions(permissions()).tempfile_in(folder)?;
        part.write_all(bytes)?;
        part.persist(&path).map_err(|fault| fault.error)
    });
    written.map(|_| ()).map_err(|error| Fault::failed(format!("cannot write {file}: {error}")))
}

/// Those of any new file, less what the user's mask takes away.
fn permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}
