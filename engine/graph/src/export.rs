//! Files under `artifacts/`: written whole or not at all, rewritten when they are missing or altered, and removed when the
//! target as it is declared now does not give them.
//!
//! The folder of a target may hold the folders of other packages, so what the target put there is told by the hidden file
//! [`MANIFEST`]. It names every file before that is written and until it is removed: a killed process leaves none unnamed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::sync::Arc;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::unistd::linkat;
use store::{Digest, SourceRead};

use crate::shared::Shared;
use crate::{Cause, Export, Failure};

/// The file in a target's folder that names its exports, one a line in their order.
const MANIFEST: &str = ".exports";

/// Makes `folder` hold the files of `exports` and none that it gave before; paths in their order.
pub(crate) fn restore(shared: &Shared, folder: &Utf8Path, exports: &[Export]) -> Result<Vec<Utf8PathBuf>, Failure> {
    let paths: BTreeSet<&str> = exports.iter().map(|export| export.path.as_str()).collect();
    let text = manifest_text(paths.iter().copied());
    let before = if holds(shared, &folder.join(MANIFEST), &Digest::of(text.as_bytes())) { None } else { Some(named(folder)) };
    let stale: Vec<&str> = before.iter().flatten().map(String::as_str).filter(|path| !paths.contains(path)).collect();
    if before.is_some() && !paths.is_empty() {
        restore_manifest(shared, folder, &manifest_text(stale.iter().copied().chain(paths.iter().copied())))?;
    }
    let files = exports.iter().map(|export| restore_one(shared, folder, export)).collect::<Result<_, _>>()?;
    if !stale.is_empty() {
        let removed = stale.iter().try_for_each(|path| remove(folder, &folder.join(path)));
        removed.map_err(|error| Failure::new(Cause::Disk, format!("cannot remove old artifacts from {folder}: {error}")))?;
        restore_manifest(shared, folder, &text)?;
    }
    Ok(files)
}

/// The file that names `exports` in the folder that `artifacts` is, and its content; none of a target without exports.
pub(crate) fn manifest(artifacts: &Utf8Path, exports: &[Utf8PathBuf]) -> Option<(Utf8PathBuf, Digest)> {
    let paths: BTreeSet<&str> = exports.iter().map(|path| path.strip_prefix(artifacts).unwrap_or(path).as_str()).collect();
    (!paths.is_empty()).then(|| (artifacts.join(MANIFEST), Digest::of(manifest_text(paths.into_iter()).as_bytes())))
}

fn manifest_text<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    paths.flat_map(|path| [path, "\n"]).collect()
}

/// What the manifest of `folder` names; a line that is no path below the folder is left out.
fn named(folder: &Utf8Path) -> BTreeSet<String> {
    let text = fs::read_to_string(folder.join(MANIFEST)).unwrap_or_default();
    let is_below = |path: &&str| {
        !path.is_empty() && *path != MANIFEST && Utf8Path::new(path).components().all(|part| matches!(part, Utf8Component::Normal(_)))
    };
    text.lines().filter(is_below).map(str::to_owned).collect()
}

/// Removes `file` and the folders below `folder` that are empty then.
fn remove(folder: &Utf8Path, file: &Utf8Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Err(error),
        _ => {}
    }
    let parents = file.ancestors().skip(1).take_while(|parent| *parent != folder);
    let _ = parents.map(fs::remove_dir).try_for_each(|removed| removed);
    Ok(())
}

fn restore_manifest(shared: &Shared, folder: &Utf8Path, text: &str) -> Result<(), Failure> {
    restore_file(shared, &folder.join(MANIFEST), &Digest::of(text.as_bytes()), 0, || Ok(Arc::from(text.as_bytes())))
}

fn restore_one(shared: &Shared, folder: &Utf8Path, export: &Export) -> Result<Utf8PathBuf, Failure> {
    let file = folder.join(&export.path);
    let blob = || shared.blob(&export.blob).map_err(|miss| shared.lost(miss));
    restore_file(shared, &file, &export.content, export.skip as usize, blob)?;
    Ok(file)
}

fn holds(shared: &Shared, file: &Utf8Path, content: &Digest) -> bool {
    shared.store().source_digest(file).ok() == Some(SourceRead::Found(*content))
}

/// Makes `file` the bytes of `blob` from `skip` on, which have the digest `content`.
fn restore_file(
    shared: &Shared,
    file: &Utf8Path,
    content: &Digest,
    skip: usize,
    blob: impl FnOnce() -> Result<Arc<[u8]>, Failure>,
) -> Result<(), Failure> {
    if !holds(shared, file, content) {
        let blob = blob()?;
        let bytes = blob.get(skip..).unwrap_or_default();
        write(file, bytes).map_err(|error| Failure::new(Cause::Disk, format!("cannot write {file}: {error}")))?;
        // Known to the stat cache from now on, so that a null build does not read it again.
        let _ = shared.store().source_digest(file);
    }
    Ok(())
}

fn write(file: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Utf8Path::new("."));
    fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    // Less the umask, as of a file that the user makes.
    builder.prefix(".writing-").permissions(fs::Permissions::from_mode(0o666));
    // Not every file system has files without names.
    write_unnamed(&builder, folder, file, bytes).or_else(|_| {
        let mut named = builder.tempfile_in(folder)?;
        named.write_all(bytes)?;
        named.persist(file)?;
        Ok(())
    })
}

/// The file gets its first name when it is whole, so that a killed process leaves nothing half-written behind.
fn write_unnamed(builder: &tempfile::Builder<'_, '_>, folder: &Utf8Path, file: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    let mut unnamed = fs::File::options().write(true).custom_flags(OFlag::O_TMPFILE.bits()).open(folder)?;
    unnamed.write_all(bytes)?;
    let opened = format!("/proc/self/fd/{}", unnamed.as_raw_fd());
    let link = |name: &std::path::Path| Ok(linkat(AT_FDCWD, opened.as_str(), AT_FDCWD, name, AtFlags::AT_SYMLINK_FOLLOW)?);
    builder.make_in(folder, link)?.persist(file)?;
    Ok(())
}
