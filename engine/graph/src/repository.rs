//! Repositories that come with the program instead of lying in the workspace.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A named set of files in memory, with BUILD.toml files of its own; its targets are `@name//package:target`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedRepository {
    /// The name after `@`.
    pub name: String,
    /// Path below the repository's root → bytes.
    pub files: BTreeMap<String, Arc<[u8]>>,
}

impl EmbeddedRepository {
    /// A repository of `files`: pairs of path and bytes.
    pub fn new<'a>(name: &str, files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> EmbeddedRepository {
        let files = files.into_iter().map(|(path, bytes)| (path.to_owned(), Arc::from(bytes))).collect();
        EmbeddedRepository { name: name.to_owned(), files }
    }
}
