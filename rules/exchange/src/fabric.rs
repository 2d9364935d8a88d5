//! A partial schedule: what every tile's ports and issue stream already do, and the exact earliest start of one more message.
//!
//! A message at start S takes the sender for `[S, S + n)` and each receiver's selection for `[X, X + n)`; its controls are on
//! the receivers' events X, X + n and P. Controls are never on the first two events of a send of the same tile (I13), and never
//! is a select or neutral on the event of a pointer, so that no row needs a two-word control. A pointer event is reserved even
//! where contiguity will make it superfluous: a later message may still come between.

use crate::bound::{RECEIVER_GUARD, SENDER_END};
use crate::job::{Arrival, Job, Jobs};
use crate::occupancy::{Busy, EventSet};

/// Not yet placed.
pub(crate) const UNPLACED: i32 = i32::MIN;

#[derive(Clone, Debug, Default)]
struct Tile {
    sends: Busy,
    selects: Busy,
    send_heads: EventSet,
    source_events: EventSet,
    pointer_events: EventSet,
    /// Windows of sends and receives, kept only where pairs of buffers must not meet.
    reads: Vec<Window>,
    writes: Vec<Window>,
    /// In phases with pair mode: receives from select to the end, and when the partner sends pairs.
    received: Vec<Window>,
    rests: Vec<Window>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    from: i32,
    to: i32,
    buffer: u32,
}

/// Start events given so far.
#[derive(Clone, Debug)]
pub(crate) struct Fabric<'a> {
    jobs: &'a Jobs,
    tiles: Vec<Tile>,
    /// Start event of each job, or [`UNPLACED`].
    pub(crate) starts: Vec<i32>,
    /// Constraint tests so far: the unit in which searches are bounded.
    pub(crate) work: u64,
}

impl<'a> Fabric<'a> {
    pub(crate) fn new(jobs: &'a Jobs) -> Self {
        Self { jobs, tiles: vec![Tile::default(); jobs.tiles.len()], starts: vec![UNPLACED; jobs.jobs.len()], work: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.starts.fill(UNPLACED);
        for tile in &mut self.tiles {
            tile.sends.clear();
            tile.selects.clear();
            tile.send_heads.clear();
            tile.source_events.clear();
            tile.pointer_events.clear();
            tile.reads.clear();
            tile.writes.clear();
            tile.received.clear();
            tile.rests.clear();
        }
    }

    /// The earliest legal start of a job whose dependencies are placed.
    pub(crate) fn earliest(&mut self, index: u32) -> i32 {
        let jobs = self.jobs;
        let job = &jobs.jobs[index as usize];
        let after = jobs.dependencies(job).iter().map(|dependency| self.starts[dependency.job as usize] + dependency.delay);
        let mut start = after.fold(job.natural, i32::max);
        loop {
            let before = start;
            start = self.sender_fit(job, start);
            for arrival in jobs.arrivals(job) {
                start = self.receiver_fit(job, arrival, start);
            }
            self.work += 1 + jobs.arrivals(job).len() as u64;
            if start == before {
                return start;
            }
        }
    }

    fn sender_fit(&self, job: &Job, from: i32) -> i32 {
        let tile = &self.tiles[job.sender as usize];
        let mut start = from;
        loop {
            start = tile.sends.next_fit(start, job.words);
            let controlled = |event| tile.source_events.contains(event) || tile.pointer_events.contains(event);
            let serial = &self.jobs.serial[job.sender as usize];
            let length = job.words.max(SENDER_END - job.natural);
            if controlled(start + 1) {
                start += 2;
            } else if controlled(start) {
                start += 1;
            } else if let Some(end) = self.rest_of(job, start) {
                start = end;
            } else if let Some(end) = blocked(&tile.writes, start, length, |write| serial.binary_search(&(job.send_buffer, write)).is_ok())
            {
                start = end;
            } else {
                return start;
            }
        }
    }

    /// Where pairs are sent: the end of what the sender or its partner does meanwhile that must not be.
    fn rest_of(&self, job: &Job, start: i32) -> Option<i32> {
        let tile = &self.tiles[job.sender as usize];
        let rest = blocked(&tile.rests, start, job.words, |_| true);
        let partner = job.partner.map(|partner| &self.tiles[partner as usize]);
        rest.or_else(|| partner.map(|tile| tile.sends.next_fit(start, job.words)).filter(|free| *free > start))
            .or_else(|| partner.and_then(|tile| blocked(&tile.received, start, job.words, |_| true)))
    }

    fn receiver_fit(&self, job: &Job, arrival: &Arrival, from: i32) -> i32 {
        if self.jobs.has_pairs {
            return self.receiver_fit_among_pairs(job, arrival, from);
        }
        let tile = &self.tiles[arrival.tile as usize];
        let mut select = from + arrival.select;
        loop {
            select = tile.selects.next_fit(select, job.words);
            let (neutral, pointer) = (select + job.words, select - arrival.select + arrival.pointer);
            let heads = &tile.send_heads;
            let taken = heads.contains(select)
                || heads.contains(neutral)
                || heads.contains(pointer)
                || tile.pointer_events.contains(select)
                || tile.pointer_events.contains(neutral)
                || tile.source_events.contains(pointer);
            if taken {
                select += 1;
                continue;
            }
            let serial = &self.jobs.serial[arrival.tile as usize];
            let conflicts = |read| serial.binary_search(&(read, arrival.buffer)).is_ok();
            match blocked(&tile.reads, pointer, job.words + RECEIVER_GUARD, conflicts) {
                Some(end) => select += end - pointer,
                None => return select - arrival.select,
            }
        }
    }

    /// As [`Self::receiver_fit`] where some messages are pairs: formats are set, too, and pointers of both widths may meet.
    fn receiver_fit_among_pairs(&self, job: &Job, arrival: &Arrival, from: i32) -> i32 {
        let tile = &self.tiles[arrival.tile as usize];
        let (sources, pointers) = arrival.controls(job.words);
        let (port, until) = arrival.port(job.words);
        let serial = &self.jobs.serial[arrival.tile as usize];
        let mut start = from;
        loop {
            start = tile.selects.next_fit(start + port, until - port) - port;
            let has = |set: &EventSet, event: i32| event + start >= 0 && set.contains(event + start);
            let taken = |events: &[Option<i32>]| {
                let sets = [&tile.send_heads, &tile.pointer_events, &tile.source_events];
                events.iter().flatten().any(|event| sets.iter().any(|set| has(set, *event)))
            };
            // A source may be selected where the one before ends.
            let [select, neutral] =
                sources.map(|event| event.filter(|event| has(&tile.send_heads, *event) || has(&tile.pointer_events, *event)));
            if select.is_some() || neutral.is_some() || taken(&pointers) {
                start += 1;
                continue;
            }
            let (first, items) = (start + arrival.pointer, job.words + RECEIVER_GUARD);
            let rest = blocked(&tile.rests, start + arrival.select, arrival.pointer - arrival.select + items, |_| true);
            let meets = || blocked(&tile.reads, first, items, |read| serial.binary_search(&(read, arrival.buffer)).is_ok());
            if let Some(end) = rest {
                start = end - arrival.select;
            } else if let Some(end) = meets() {
                start += end - first;
            } else {
                return start;
            }
        }
    }

    /// Gives a job its start, which must be legal.
    pub(crate) fn place(&mut self, index: u32, start: i32) {
        let jobs = self.jobs;
        let job = &jobs.jobs[index as usize];
        self.starts[index as usize] = start;
        let sender = &mut self.tiles[job.sender as usize];
        sender.sends.insert(start, start + job.words, jobs.shortest);
        sender.send_heads.insert(start);
        sender.send_heads.insert(start + 1);
        if !jobs.serial[job.sender as usize].is_empty() {
            let to = start + job.words.max(SENDER_END - job.natural);
            sender.reads.push(Window { from: start, to, buffer: job.send_buffer });
        }
        if let Some(partner) = job.partner {
            let window = Window { from: start, to: start + job.words, buffer: job.send_buffer };
            self.tiles[partner as usize].rests.push(window);
        }
        for arrival in jobs.arrivals(job) {
            let pointer = start + arrival.pointer;
            let receiver = &mut self.tiles[arrival.tile as usize];
            if jobs.has_pairs {
                let (port, until) = arrival.port(job.words);
                receiver.selects.insert(start + port, start + until, jobs.shortest);
                let (sources, pointers) = arrival.controls(job.words);
                sources.into_iter().flatten().for_each(|event| receiver.source_events.insert(start + event));
                pointers.into_iter().flatten().for_each(|event| receiver.pointer_events.insert(start + event));
                let to = pointer + job.words + RECEIVER_GUARD;
                receiver.received.push(Window { from: start + arrival.select, to, buffer: arrival.buffer });
            } else {
                let select = start + arrival.select;
                receiver.selects.insert(select, select + job.words, jobs.shortest);
                receiver.source_events.insert(select);
                receiver.source_events.insert(select + job.words);
                receiver.pointer_events.insert(pointer);
            }
            if !jobs.serial[arrival.tile as usize].is_empty() {
                let to = pointer + job.words + RECEIVER_GUARD;
                receiver.writes.push(Window { from: pointer, to, buffer: arrival.buffer });
            }
        }
    }
}

/// The end of a window that `[from, from + length)` meets and that conflicts.
fn blocked(windows: &[Window], from: i32, length: i32, conflicts: impl Fn(u32) -> bool) -> Option<i32> {
    let meets = |window: &&Window| window.from < from + length && from < window.to;
    windows.iter().filter(meets).find(|window| conflicts(window.buffer)).map(|window| window.to)
}

/// End of a job: the last event any of its tiles must wait for.
pub(crate) fn end(jobs: &Jobs, job: &Job, start: i32) -> i32 {
    let sent = start - job.natural + (job.natural + job.words).max(SENDER_END);
    jobs.arrivals(job).iter().map(|arrival| start + arrival.pointer + job.words + RECEIVER_GUARD).fold(sent, i32::max)
}
