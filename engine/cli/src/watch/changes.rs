//! Paths that were touched, gathered until an editor has finished saving.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;

/// Nothing more came for so long: the save is over. Editors write, rename and touch at distances of up to 10 ms.
const QUIET: Duration = Duration::from_millis(12);
/// So long after the first touch nothing is waited for any more.
const LONGEST: Duration = Duration::from_millis(30);
/// So long a file may be gone that an editor is about to put back.
const ABSENCE: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    span: Option<Span>,
    paths: BTreeSet<Utf8PathBuf>,
    everything: bool,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    first: Instant,
    last: Instant,
    longest: Duration,
}

impl Changes {
    /// A path was touched.
    pub(crate) fn add(&mut self, path: Utf8PathBuf, now: Instant) {
        self.paths.insert(path);
        self.touch(now);
    }

    /// Anything may have been touched.
    pub(crate) fn add_everything(&mut self, now: Instant) {
        self.everything = true;
        self.touch(now);
    }

    fn touch(&mut self, now: Instant) {
        let span = self.span.get_or_insert(Span { first: now, last: now, longest: LONGEST });
        span.last = now;
    }

    /// When to look at them; never while nothing was touched.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.span.map(|span| (span.last + QUIET).min(span.first + span.longest))
    }

    /// Waits once more for a file that is gone; false when it was waited for long enough.
    pub(crate) fn wait_for_return(&mut self, now: Instant) -> bool {
        let Some(span) = &mut self.span else { return false };
        span.longest = ABSENCE;
        span.last = now;
        now < span.first + ABSENCE
    }

    /// The touched paths.
    pub(crate) fn paths(&self) -> &BTreeSet<Utf8PathBuf> {
        &self.paths
    }

    /// Whether anything may have been touched.
    pub(crate) fn is_everything(&self) -> bool {
        self.everything
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn saves_at_distances_of_ten_milliseconds_are_one_and_a_stream_of_them_is_cut() {
        let start = Instant::now();
        let mut changes = Changes::default();
        assert_eq!(changes.due(), None);
        changes.add("a".into(), start);
        assert_eq!(changes.due(), Some(start + QUIET));
        changes.add("b".into(), start + milliseconds(10));
        assert_eq!(changes.due(), Some(start + milliseconds(22)));
        changes.add("a".into(), start + milliseconds(20));
        assert_eq!(changes.due(), Some(start + LONGEST));
        assert_eq!(changes.paths().iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn absent_file_is_waited_for_up_to_a_bound() {
        let start = Instant::now();
        let mut changes = Changes::default();
        assert!(!changes.wait_for_return(start));
        changes.add("a".into(), start);
        assert!(changes.wait_for_return(start + milliseconds(12)));
        assert_eq!(changes.due(), Some(start + milliseconds(24)));
        assert!(!changes.wait_for_return(start + ABSENCE));
    }
}
