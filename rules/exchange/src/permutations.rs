//! Splits a count of messages between senders and receivers into few permutations, each used several times.
//!
//! In: messages as edges of senders and receivers. Out: the step of every edge. A step is a permutation with a multiplicity, so that
//! a sender stays with a receiver for as many messages as possible: every change costs events, since the clocks of a receiver's
//! senders differ. The counts are filled up to equal sums with edges of nobody; then permutations are taken whose smallest count is
//! as large as possible, until nothing is left (Birkhoff).

use std::collections::BTreeMap;

/// Counts by sender and receiver, all sums equal.
type Counts = Vec<BTreeMap<u32, u32>>;

/// The step of each edge, from 0; edges of a pair are taken in their order. `None` when more than `limit` counts were looked at.
pub(crate) fn steps(edges: &[(u32, u32)], vertices: usize, limit: u64) -> Option<Vec<u32>> {
    let mut real: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    for (index, edge) in edges.iter().enumerate().rev() {
        real.entry(*edge).or_default().push(index);
    }
    let mut counts = filled(edges, vertices);
    let mut search = Search { left: limit, seen: Vec::new(), sender_of: Vec::new() };
    let mut steps = vec![0; edges.len()];
    let mut step = 0;
    while let Some((receivers, times)) = search.widest(&counts) {
        for (sender, receiver) in (0..).zip(&receivers) {
            let count = counts[sender as usize].get_mut(receiver);
            if count.as_deref() == Some(&times) {
                counts[sender as usize].remove(receiver);
            } else if let Some(count) = count {
                *count -= times;
            }
            let waiting = real.entry((sender, *receiver)).or_default();
            for index in waiting.split_off(waiting.len().saturating_sub(times as usize)) {
                steps[index] = step;
            }
        }
        step += 1;
    }
    (search.left > 0).then_some(steps)
}

/// The counts, with more where a sum is below the largest.
fn filled(edges: &[(u32, u32)], vertices: usize) -> Counts {
    let mut counts: Counts = vec![BTreeMap::new(); vertices];
    let mut sums = [vec![0_u32; vertices], vec![0_u32; vertices]];
    for (sender, receiver) in edges {
        *counts[*sender as usize].entry(*receiver).or_default() += 1;
        sums[0][*sender as usize] += 1;
        sums[1][*receiver as usize] += 1;
    }
    let most = sums.iter().flatten().copied().max().unwrap_or(0);
    let (mut sender, mut receiver) = (0, 0);
    while sender < vertices && receiver < vertices {
        let missing = (most - sums[0][sender]).min(most - sums[1][receiver]);
        if missing > 0 {
            *counts[sender].entry(receiver as u32).or_default() += missing;
            sums[0][sender] += missing;
            sums[1][receiver] += missing;
        }
        if sums[0][sender] == most { sender += 1 } else { receiver += 1 }
    }
    counts
}

/// A search for permutations, bounded by the counts it may look at.
struct Search {
    /// Counts that may still be looked at.
    left: u64,
    /// Sender whose path last came by, by receiver.
    seen: Vec<usize>,
    sender_of: Vec<Option<usize>>,
}

impl Search {
    /// A permutation whose smallest count is largest, by sender, and that count; `None` when nothing is left to take or to look at.
    fn widest(&mut self, counts: &Counts) -> Option<(Vec<u32>, u32)> {
        let mut sizes: Vec<u32> = counts.iter().flat_map(BTreeMap::values).copied().collect();
        sizes.sort_unstable();
        sizes.dedup();
        let (mut low, mut high) = (0, sizes.len());
        let mut best = None;
        while low < high {
            let middle = low.midpoint(high);
            match self.matching(counts, sizes[middle]) {
                Some(found) => {
                    best = Some((found, sizes[middle]));
                    low = middle + 1;
                }
                None => high = middle,
            }
        }
        best
    }

    /// A receiver for every sender among counts of at least `least` (augmenting paths).
    fn matching(&mut self, counts: &Counts, least: u32) -> Option<Vec<u32>> {
        self.sender_of = vec![None; counts.len()];
        self.seen = vec![usize::MAX; counts.len()];
        if !(0..counts.len()).all(|sender| self.augment(counts, least, (sender, sender))) {
            return None;
        }
        let mut receivers = vec![0; counts.len()];
        for (receiver, sender) in (0..).zip(&self.sender_of) {
            receivers[(*sender)?] = receiver;
        }
        Some(receivers)
    }

    /// Gives `sender` a receiver on the path that began with `first`.
    fn augment(&mut self, counts: &Counts, least: u32, (first, sender): (usize, usize)) -> bool {
        for (receiver, count) in &counts[sender] {
            let receiver = *receiver as usize;
            if self.left == 0 {
                return false;
            }
            self.left -= 1;
            if *count < least || std::mem::replace(&mut self.seen[receiver], first) == first {
                continue;
            }
            if self.sender_of[receiver].is_none_or(|other| self.augment(counts, least, (first, other))) {
                self.sender_of[receiver] = Some(sender);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::steps;

    /// What must hold: every step has a sender and a receiver with one partner only.
    fn check(edges: &[(u32, u32)], found: &[u32]) {
        for (one, (sender, receiver)) in edges.iter().enumerate() {
            for (other, edge) in edges.iter().enumerate() {
                let is_apart = found[one] != found[other];
                assert!(
                    is_apart || (*sender == edge.0) == (*receiver == edge.1),
                    "{sender} {receiver} and {edge:?} in step {}",
                    found[one]
                );
            }
        }
    }

    #[test]
    fn pairs_stay_together_in_as_few_steps_as_there_are_permutations() {
        // Two rings over five tiles, seven and four times.
        let edges: Vec<(u32, u32)> =
            [(1, 7), (2, 4)].iter().flat_map(|(by, times)| (0..5).flat_map(move |at| vec![(at, (at + by) % 5); *times])).collect();
        let found = steps(&edges, 5, 10_000).expect("enough work");
        check(&edges, &found);
        assert_eq!(found.iter().max(), Some(&1));
    }

    #[test]
    fn sums_that_differ_are_filled_up() {
        let edges = [(0, 1), (0, 1), (0, 2), (1, 2), (3, 0)];
        check(&edges, &steps(&edges, 4, 10_000).expect("enough work"));
    }

    #[test]
    fn a_search_without_work_finds_nothing() {
        assert_eq!(steps(&[(0, 1), (1, 0)], 2, 1), None);
    }
}
