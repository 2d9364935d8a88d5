//! Which events of a tile are taken: intervals for words on the wire, bits for single controls.

/// Disjoint busy intervals in order. Gaps shorter than the shortest message are closed, since nothing fits into them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy {
    intervals: Vec<(i32, i32)>,
}

impl Busy {
    /// The earliest start, not before `from`, of `length` free events.
    pub(crate) fn next_fit(&self, from: i32, length: i32) -> i32 {
        let first = self.intervals.partition_point(|(_, end)| *end <= from);
        let mut start = from;
        for (busy, end) in &self.intervals[first..] {
            if *busy >= start + length {
                break;
            }
            start = *end;
        }
        start
    }

    /// Takes `[start, end)`, which must be free.
    pub(crate) fn insert(&mut self, start: i32, end: i32, shortest: i32) {
        let at = self.intervals.partition_point(|(busy, _)| *busy < start);
        let joins = |left: i32, right: i32| right - left < shortest;
        let joins_before = at > 0 && joins(self.intervals[at - 1].1, start);
        let joins_after = self.intervals.get(at).is_some_and(|next| joins(end, next.0));
        match (joins_before, joins_after) {
            (true, true) => {
                self.intervals[at - 1].1 = self.intervals[at].1;
                self.intervals.remove(at);
            }
            (true, false) => self.intervals[at - 1].1 = end,
            (false, true) => self.intervals[at].0 = start,
            (false, false) => self.intervals.insert(at, (start, end)),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.intervals.clear();
    }
}

/// A growing set of events.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventSet {
    words: Vec<u64>,
}

impl EventSet {
    pub(crate) fn contains(&self, event: i32) -> bool {
        self.words.get(event as usize / 64).is_some_and(|word| word >> (event as usize % 64) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, event: i32) {
        let word = event as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (event as usize % 64);
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }
}
