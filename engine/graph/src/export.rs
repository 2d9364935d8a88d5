//! Files under `artifacts/`: written whole or not at all, and rewritten when they are missing or altered.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};
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
    let mut temporary = tempfile::Builder::new().prefix(".writing-").tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    temporary.persist(file)?;
    Ok(())
}
