//! Archives of object files, as `ar` makes them, and which members a program needs.

use std::collections::{BTreeMap, BTreeSet};

use object::read::archive::ArchiveFile;

use crate::object::ObjectError;
use crate::object_file::{Binding, Location, ObjectFile, Target};

/// What archives begin with.
const MAGIC: &[u8] = b"!<arch>\n";

/// An object of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name in the archive.
    pub name: String,
    /// The object.
    pub object: ObjectFile,
}

/// Whether bytes are those of an archive.
#[must_use]
pub fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads the members of an archive in their order; its bytes are not trusted.
///
/// # Errors
/// [`ObjectError`] when the bytes are no archive, or a member is no object of this machine.
pub fn read(bytes: &[u8]) -> Result<Vec<Member>, ObjectError> {
    let fault = |cause: object::Error| ObjectError { message: format!("expected an archive: {cause}") };
    let archive = ArchiveFile::parse(bytes).map_err(fault)?;
    let mut members = Vec::new();
    for member in archive.members() {
        let member = member.map_err(fault)?;
        let name = String::from_utf8_lossy(member.name()).into_owned();
        let object = ObjectFile::parse(member.data(bytes).map_err(fault)?);
        let object = object.map_err(|cause| ObjectError { message: format!("member {name}: {cause}") })?;
        members.push(Member { name, object });
    }
    Ok(members)
}

/// Puts the members behind the objects that define what the objects, those members and `wanted` name and nobody defines yet. Of two
/// members with a name the first counts; what only weak symbols ask for brings no member.
pub fn add_needed(objects: &mut Vec<ObjectFile>, members: Vec<ObjectFile>, wanted: &[String]) {
    let mut owners: BTreeMap<String, usize> = BTreeMap::new();
    for (index, member) in members.iter().enumerate() {
        for name in defined(member) {
            owners.entry(name.to_owned()).or_insert(index);
        }
    }
    let mut known: BTreeSet<String> = objects.iter().flat_map(defined).map(str::to_owned).collect();
    let mut missing: Vec<String> = wanted.iter().cloned().chain(objects.iter().flat_map(asked).map(str::to_owned)).collect();
    let mut members: Vec<Option<ObjectFile>> = members.into_iter().map(Some).collect();
    let mut next = 0;
    while let Some(name) = missing.get(next).cloned() {
        next += 1;
        if known.contains(&name) {
            continue;
        }
        let Some(member) = owners.get(&name).and_then(|owner| members[*owner].take()) else { continue };
        known.extend(defined(&member).map(str::to_owned));
        missing.extend(asked(&member).map(str::to_owned));
        objects.push(member);
    }
}

/// Names an object defines for others.
fn defined(object: &ObjectFile) -> impl Iterator<Item = &str> {
    let shared = object.symbols.iter().filter(|symbol| symbol.binding != Binding::Local && symbol.location != Location::Elsewhere);
    shared.map(|symbol| symbol.name.as_str())
}

/// Names an object asks for and not as weak symbols.
fn asked(object: &ObjectFile) -> impl Iterator<Item = &str> {
    let weak: BTreeSet<&str> =
        object.symbols.iter().filter(|symbol| symbol.binding == Binding::Weak).map(|symbol| symbol.name.as_str()).collect();
    let targets = object.sections.iter().flat_map(|section| &section.relocations).filter_map(|relocation| match &relocation.target {
        Target::Symbol(name) => Some(name.as_str()),
        Target::Section(_) => None,
    });
    targets.filter(move |name| !weak.contains(name))
}
