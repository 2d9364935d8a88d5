//! The rules and repositories this program is made of.

use graph::{EmbeddedRepository, Engine, Failure, Label, Registry};
use pipeline::Debuggee;
use pipeline::rule::Run;

/// Every rule a BUILD.toml may name.
pub(crate) fn registry() -> Registry {
    pipeline::rule::registry()
}

/// The repositories that need no files of the user: `@ipu`.
pub(crate) fn repositories() -> Vec<EmbeddedRepository> {
    vec![pipeline::repository()]
}

/// Whether targets of a rule are programs or their runs.
pub(crate) fn is_debugged(rule: &str) -> bool {
    matches!(rule, "run" | "program")
}

/// The program of a target of such a rule, with what its run gives it.
pub(crate) fn debuggee(engine: &Engine, label: &Label) -> Result<Debuggee, Failure> {
    match graph::data_of::<Run>(engine, label) {
        Ok(_) => Debuggee::of_run(engine, label),
        Err(_) => Debuggee::of_program(engine, label),
    }
}
