//! The route bound: what a phase must cost whatever the schedule (exchange-bounds.md).

use ipu21::route::{latency, route};
use ipu21::tile;

use crate::job::Jobs;
use crate::problem::{Problem, Transfer};

/// Events a receiver waits after its last word (machine.md c.5).
pub(crate) const RECEIVER_GUARD: i32 = 5;
/// Events a sender's row lasts at least, counted from the natural start (machine.md c.9, I18).
pub(crate) const SENDER_END: i32 = 6;

/// Words through an endpoint, and the smallest head and tail around them.
#[derive(Clone, Copy)]
struct Load {
    words: i32,
    head: i32,
    tail: i32,
}

impl Load {
    const NONE: Self = Self { words: 0, head: i32::MAX, tail: i32::MAX };

    fn add(&mut self, words: i32, head: i32, tail: i32) {
        *self = Self { words: self.words + words, head: self.head.min(head), tail: self.tail.min(tail) };
    }

    fn bound(self) -> i32 {
        self.words + self.head + self.tail + RECEIVER_GUARD
    }
}

/// The lower bound of a phase as it is scheduled with or without pair mode, in events; 0 without transfers.
#[must_use]
pub fn bound(problem: &Problem, pairs: bool) -> u32 {
    let words = estimate(problem);
    // The scheduler may leave pairs alone.
    if pairs { words.min(route_bound(&Jobs::new(problem, true))) } else { words }
}

/// The largest of all lower bounds on the horizon of a phase in 32-bit mode, in events; 0 without transfers.
#[must_use]
pub fn estimate(problem: &Problem) -> u32 {
    let (mut senders, mut receivers) = ([None; tile::COUNT], [None; tile::COUNT]);
    let mut bound = 0;
    for transfer in &problem.transfers {
        let (start, longest) = timing(transfer);
        let words = transfer.words as i32;
        senders[transfer.source.tile.index()].get_or_insert(Load::NONE).add(words, start, longest);
        for place in &transfer.destinations {
            let head = start + latency(transfer.source.tile.physical(), place.tile.physical());
            receivers[place.tile.index()].get_or_insert(Load::NONE).add(words, head, 0);
        }
        bound = bound.max(start + words + longest + RECEIVER_GUARD);
    }
    let loads = senders.into_iter().chain(receivers).flatten().map(Load::bound);
    loads.fold(bound, i32::max).max(0) as u32
}

/// The route bound of messages of both widths, in events; 0 without messages. What a message takes of an endpoint are its items.
pub(crate) fn route_bound(jobs: &Jobs) -> u32 {
    let mut senders = vec![Load::NONE; jobs.tiles.len()];
    let mut receivers = senders.clone();
    let mut bound = 0;
    for job in &jobs.jobs {
        let mut longest = 0;
        for arrival in jobs.arrivals(job) {
            longest = longest.max(arrival.pointer);
            receivers[arrival.tile as usize].add(job.words, job.natural + arrival.pointer, 0);
        }
        senders[job.sender as usize].add(job.words, job.natural, longest);
        bound = bound.max(job.natural + job.words + longest + RECEIVER_GUARD);
    }
    let loads = senders.into_iter().chain(receivers).filter(|load| load.words > 0).map(Load::bound);
    loads.fold(bound, i32::max).max(0) as u32
}

/// Natural start and longest latency of a transfer.
fn timing(transfer: &Transfer) -> (i32, i32) {
    let source = transfer.source.tile.physical();
    transfer.destinations.iter().fold((0, i32::MIN), |(start, longest), place| {
        let destination = place.tile.physical();
        (start.max(-route(source, destination).offset), longest.max(latency(source, destination)))
    })
}
