//! The rules and repositories this program is made of.

use graph::{EmbeddedRepository, Registry};

/// Every rule a BUILD.toml may name.
pub(crate) fn registry() -> Registry {
    pipeline::rule::registry()
}

/// The repositories that need no files of the user: `@ipu`.
pub(crate) fn repositories() -> Vec<EmbeddedRepository> {
    vec![pipeline::repository()]
}
