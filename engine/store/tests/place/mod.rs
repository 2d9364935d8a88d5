//! A store in a temporary directory.

use camino::{Utf8Path, Utf8PathBuf};
use store::Store;

/// Where a store may be; gone when dropped.
pub(crate) struct Place {
    _directory: tempfile::TempDir,
    pub(crate) root: Utf8PathBuf,
}

impl Place {
    pub(crate) fn new() -> Place {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = Utf8Path::from_path(directory.path()).expect("a UTF-8 path").join("store");
        Place { _directory: directory, root }
    }

    /// The store, as another process opens it.
    pub(crate) fn open(&self) -> Store {
        Store::open(&self.root).expect("the store opens")
    }
}
