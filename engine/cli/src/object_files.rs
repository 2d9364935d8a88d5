//! Files of the toolchain commands: sources, objects and executables.

use camino::Utf8Path;
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

/// An object or executable file.
pub(crate) fn read_object(directory: &Utf8Path, file: &Utf8Path) -> Result<ObjectFile, Fault> {
    let bytes = std::fs::read(directory.join(file)).map_err(|error| Fault::input(format!("{file}: {error}")))?;
    ObjectFile::parse(&bytes).map_err(|error| Fault::input(format!("{file}: {error}")))
}

pub(crate) fn write(directory: &Utf8Path, file: &Utf8Path, bytes: &[u8]) -> Result<(), Fault> {
    std::fs::write(directory.join(file), bytes).map_err(|error| Fault::failed(format!("cannot write {file}: {error}")))
}
