//! The end of stopped work: what unwinds out of a query is caught at the top of a piece of work, and nowhere else.

use std::panic::{AssertUnwindSafe, resume_unwind};

use salsa::Cancelled;

/// The work was stopped; what it had finished is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

/// Runs `work`. A panic goes on.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Stopped> {
    // Salsa's state is whole after an unwinding, and `Shared` ignores poisoned locks for the same reason.
    Cancelled::catch(AssertUnwindSafe(work)).map_err(|cancelled| match cancelled {
        Cancelled::Local | Cancelled::PendingWrite => Stopped,
        // Another thread panicked in a query that this one waited for.
        other => resume_unwind(Box::new(other)),
    })
}
