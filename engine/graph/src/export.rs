//! Files under `artifacts/`: written whole or not at all, and rewritten when they are missing or altered.

use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

use camino::{Utf8Path, Utf8PathBuf};
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::unistd::linkat;
use store::SourceRead;

use crate::shared::Shared;
use crate::{Cause, Export, Failure};

/// Makes `folder` hold the files of `exports`; paths in their order.
pub(crate) fn restore(shared: &Shared, folder: &Utf8Path, exports: &[Export]) -> Result<Vec<Utf8PathBuf>, Failure> {
    exports.iter().map(|export| restore_one(shared, folder, export)).collect()
}

fn restore_one(shared: &Shared, folder: &Utf8Path, export: &Export) -> Result<Utf8PathBuf, Failure> {
    let file = folder.join(&export.path);
    if shared.store().source_digest(&file).ok() != Some(SourceRead::Found(export.content)) {
        let blob = shared.blob(&export.blob).map_err(|miss| shared.lost(miss))?;
        let bytes = blob.get(export.skip as usize..).unwrap_or_default();
        write(&file, bytes).map_err(|error| Failure::new(Cause::Disk, format!("cannot write {file}: {error}")))?;
        // Known to the stat cache from now on, so that a null build does not read it again.
        let _ = shared.store().source_digest(&file);
    }
    Ok(file)
}

fn write(file: &Utf8Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Utf8Path::new("."));
    fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".writing-");
    // Not every file system has files without names.
    write_unnamed(&builder, folder, file, bytes).or_else(|_| {
        let named = builder.tempfile_in(folder)?;
        fill(named.as_file(), bytes)?;
        named.persist(file)?;
        Ok(())
    })
}

/// The file gets its first name when it is whole, so that a killed process leaves nothing half-written behind.
fn write_unnamed(builder: &tempfile::Builder<'_, '_>, folder: &Utf8Path, file: &Utf8Path, bytes: &[u8]) -> std::io::Result<()> {
    let unnamed = fs::File::options().write(true).custom_flags(OFlag::O_TMPFILE.bits()).open(folder)?;
    fill(&unnamed, bytes)?;
    let opened = format!("/proc/self/fd/{}", unnamed.as_raw_fd());
    let link = |name: &std::path::Path| Ok(linkat(AT_FDCWD, opened.as_str(), AT_FDCWD, name, AtFlags::AT_SYMLINK_FOLLOW)?);
    builder.make_in(folder, link)?.persist(file)?;
    Ok(())
}

fn fill(mut file: &fs::File, bytes: &[u8]) -> std::io::Result<()> {
    file.write_all(bytes)?;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}
