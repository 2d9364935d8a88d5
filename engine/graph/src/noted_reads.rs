//! Which sources a stage's function read, so that they can be looked at again when it has ended.

use std::cell::RefCell;

use store::Digest;

use crate::SourcePath;

/// Sources with the digests of the bytes that were read.
pub(crate) type Reads = Vec<(SourcePath, Digest)>;

thread_local! {
    /// Of the function that runs in this thread; a stage's function does not wait for other threads.
    static READS: RefCell<Option<Reads>> = const { RefCell::new(None) };
}

/// Puts the list of an outer function back, also when the inner one is left by a panic.
struct Outer(Option<Reads>);

impl Drop for Outer {
    fn drop(&mut self) {
        READS.set(self.0.take());
    }
}

/// What `compute` gives, and what it read.
pub(crate) fn during<R>(compute: impl FnOnce() -> R) -> (R, Reads) {
    let _outer = Outer(READS.replace(Some(Reads::new())));
    let result = compute();
    (result, READS.take().unwrap_or_default())
}

/// Notes a read for the function that runs, if one does.
pub(crate) fn note(path: &SourcePath, digest: Digest) {
    READS.with_borrow_mut(|reads| {
        if let Some(reads) = reads {
            reads.push((path.clone(), digest));
        }
    });
}
