//! Folders inside the store's directory that are gone when their command ends, in whatever way it ends.

use std::fs::File;
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

use crate::exit::Fault;

/// A folder, removed when dropped and by [`remove_all`].
pub(crate) struct Scratch {
    path: Utf8PathBuf,
    /// Held as long as the folder is used: what nobody holds was left behind by a process that was killed.
    _lock: File,
}

/// The folders of this process.
static OPEN: Mutex<Vec<Utf8PathBuf>> = Mutex::new(Vec::new());

impl Scratch {
    /// A new folder `NAME-…` in `store`; those left behind there are removed.
    pub(crate) fn beside(store: &Utf8Path, name: &str) -> Result<Scratch, Fault> {
        let fault = |error: std::io::Error| Fault::failed(format!("cannot make a folder in {store}: {error}"));
        std::fs::create_dir_all(store).map_err(fault)?;
        remove_left_behind(store, name);
        let folder = tempfile::Builder::new().prefix(&format!("{name}-")).tempdir_in(store).map_err(fault)?.keep();
        let path = Utf8PathBuf::from_path_buf(folder)
            .map_err(|path| Fault::failed(format!("the path of the store is not UTF-8: {}", path.display())))?;
        open().push(path.clone());
        let lock = File::create(path.join("in-use")).map_err(fault)?;
        lock.lock().map_err(fault)?;
        Ok(Scratch { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next command that makes such a folder.
        let _ = std::fs::remove_dir_all(&self.path);
        open().retain(|path| *path != self.path);
    }
}

/// Removes the folders of this process, before it ends without dropping anything.
pub(crate) fn remove_all() {
    open().iter().for_each(|path| {
        let _ = std::fs::remove_dir_all(path);
    });
}

/// Folders `NAME-…` in `store` that no process uses.
pub(crate) fn left_behind(store: &Utf8Path, name: &str) -> Vec<Utf8PathBuf> {
    let prefix = format!("{name}-");
    let entries = store.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let folders = entries.filter(|entry| entry.file_name().starts_with(&prefix)).map(|entry| entry.path().to_owned());
    folders.filter(|folder| File::open(folder.join("in-use")).is_ok_and(|file| file.try_lock().is_ok())).collect()
}

/// Removes the folders `NAME-…` in `store` that no process uses.
pub(crate) fn remove_left_behind(store: &Utf8Path, name: &str) {
    for folder in left_behind(store, name) {
        let _ = std::fs::remove_dir_all(folder);
    }
}

fn open() -> std::sync::MutexGuard<'static, Vec<Utf8PathBuf>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}
