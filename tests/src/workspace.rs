//! A workspace of its own in a temporary directory, loaded and built in this process.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use graph::{
    Db, Digest, Engine, EngineOptions, Failure, Label, LoadRequest, PackageName, Pattern, Shared, Silent, SourceReader, StageId,
    TargetReport, Workspace,
};
use store::Store;
use tempfile::TempDir;

/// A workspace and a store, gone when dropped.
pub struct TemporaryWorkspace {
    directory: TempDir,
    root: Utf8PathBuf,
    store: Utf8PathBuf,
}

impl TemporaryWorkspace {
    /// A workspace whose root package has this BUILD.toml, with an empty store.
    #[must_use]
    pub fn new(build: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let base = Utf8Path::from_path(directory.path()).expect("its path is UTF-8").canonicalize_utf8().expect("it exists");
        let workspace = Self { directory, root: base.join("workspace"), store: base.join("store") };
        workspace.write("WORKSPACE.toml", "");
        workspace.write("BUILD.toml", build);
        workspace
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// Writes a file below the root.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("folders can be made");
        fs::write(path, content).expect("files can be written");
    }

    /// Bytes of a file below the root.
    #[must_use]
    pub fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Makes all files what they are in `other`.
    pub fn restore(&self, other: &TemporaryWorkspace) {
        copy_files(&other.root, &self.root);
    }

    /// Moves the workspace to another directory; the store stays where it is.
    pub fn move_to(&mut self, name: &str) {
        let root = Utf8Path::from_path(self.directory.path()).expect("its path is UTF-8").join(name);
        fs::create_dir_all(root.parent().expect("it is below the temporary directory")).expect("folders can be made");
        fs::rename(&self.root, &root).expect("a directory can be moved");
        self.root = root.canonicalize_utf8().expect("it exists");
    }

    /// Another workspace with the same files, and a store with the same contents. No session of this one may be at work.
    #[must_use]
    pub fn copy(&self) -> Self {
        let copied = Self::new("");
        copy_files(&self.root, &copied.root);
        copy_files(&self.store, &copied.store);
        copied
    }

    /// An engine as a new process has it: nothing but the store is known to it.
    #[must_use]
    pub fn session(&self, options: EngineOptions) -> Session {
        let repositories = [pipeline::repository()];
        let store = Store::open(&self.store).expect("the store opens");
        let shared = Shared::new(store, Arc::new(Silent), SourceReader::new(&self.root, &repositories));
        Session { root: self.root.clone(), engine: Engine::new(shared, options).expect("an engine starts") }
    }
}

fn copy_files(from: &Utf8Path, to: &Utf8Path) {
    fs::create_dir_all(to).expect("folders can be made");
    for entry in from.read_dir_utf8().expect("a folder") {
        let entry = entry.expect("its entries can be read");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().expect("entries have a type").is_dir() {
            copy_files(from, &to);
        } else {
            fs::copy(from, &to).unwrap_or_else(|error| panic!("{from}: {error}"));
        }
    }
}

/// An engine on a [`TemporaryWorkspace`].
pub struct Session {
    root: Utf8PathBuf,
    engine: Engine,
}

impl Session {
    /// Reads the workspace again and builds `label`, as `//:run`, and what it needs. Declarations that cannot be loaded end the test.
    ///
    /// # Errors
    /// What the engine says.
    pub fn build(&mut self, label: &str) -> Result<Vec<TargetReport>, Failure> {
        let workspace = self.load();
        let label = Label::parse(label, &PackageName::in_workspace("")).expect("a label");
        self.engine.build_targets(&workspace, &[label])
    }

    fn load(&self) -> Workspace {
        let registry = pipeline::rule::registry();
        let repositories = [pipeline::repository()];
        let patterns = [Pattern::Below(PackageName::in_workspace(""))];
        let request =
            LoadRequest { root: &self.root, registry: &registry, repositories: &repositories, patterns: &patterns, overrides: &[] };
        Workspace::load(&request).unwrap_or_else(|faults| panic!("{faults}"))
    }

    /// The stages whose function ran since the last call.
    pub fn executed(&self) -> Vec<StageId> {
        self.engine.shared().take_executed().into_iter().collect()
    }

    /// The digest of every stage's artifact seen so far.
    #[must_use]
    pub fn digests(&self) -> BTreeMap<StageId, Digest> {
        self.engine.shared().stage_digests()
    }

    /// The engine, for queries.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}
