//! What a stage's function read: sources, so that they can be looked at again when it has ended, and artifacts, so that it is
//! known which stages had to end before it; and the help it had from threads of its own.

use std::cell::RefCell;
use std::time::Duration;

use store::Digest;

use crate::{Artifact, SourcePath};

/// What was read so far.
#[derive(Default)]
pub(crate) struct Reads {
    /// With the digests of the bytes that were read.
    pub(crate) sources: Vec<(SourcePath, Digest)>,
    pub(crate) artifacts: Vec<Digest>,
    /// How long other threads worked for it, summed.
    pub(crate) help: Duration,
}

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
    let _outer = Outer(READS.replace(Some(Reads::default())));
    let result = compute();
    (result, READS.take().unwrap_or_default())
}

/// Notes that a source was read for the function that runs, if one does.
pub(crate) fn source(path: &SourcePath, digest: Digest) {
    note(|reads| reads.sources.push((path.clone(), digest)));
}

/// Notes that an artifact was read for the function that runs, if one does.
pub(crate) fn artifact(digest: Digest) {
    note(|reads| reads.artifacts.push(digest));
}

/// Notes that the stage's function that runs, if one does, stands on an artifact's facts: bodies that are loaded are noted anyhow.
pub fn note_facts<T, F>(artifact: &Artifact<T, F>) {
    self::artifact(artifact.digest());
}

/// Notes that other threads worked so long, summed, for the stage's function that runs, if one does: it is work of the stage
/// that its wall time does not show.
pub fn note_help(elapsed: Duration) {
    note(|reads| reads.help += elapsed);
}

fn note(note: impl FnOnce(&mut Reads)) {
    READS.with_borrow_mut(|reads| reads.as_mut().map(note));
}
