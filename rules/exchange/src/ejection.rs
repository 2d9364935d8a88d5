//! Repair of a schedule under a horizon it does not meet yet: late jobs push others out, which find new places in turn.
//!
//! In: start events of all jobs, a horizon to come under. Out: start events under it, or nothing when the work is used up. A job takes
//! the start at which the jobs in its way are the least dear; a job gets dearer whenever it is pushed out, so that no two of them
//! push each other out for ever. The rules are those of [`crate::fabric`], without program order and without pairs of buffers
//! that must not meet.

use std::collections::VecDeque;

use crate::fabric::{UNPLACED, end};
use crate::job::{Arrival, Job, Jobs};

/// Nobody's event.
const FREE: u32 = u32::MAX;
/// The most events of all tiles that are kept: 48 MB.
const MOST_CELLS: u64 = 4_000_000;
/// The most for each job: 6 KB, which take 2 us to clear.
const CELLS_PER_JOB: u64 = 500;

/// Who has which event of which tile.
pub(crate) struct Ejection<'a> {
    jobs: &'a Jobs,
    /// Events kept of a tile.
    span: usize,
    /// Jobs whose words a tile sends.
    sends: Vec<u32>,
    /// Jobs a tile's selection is on.
    selects: Vec<u32>,
    /// Jobs whose pointer is set.
    pointers: Vec<u32>,
    /// Start event of each job, or [`UNPLACED`].
    pub(crate) starts: Vec<i32>,
    /// What it costs to push a job out.
    prices: Vec<u32>,
    /// Events looked at so far.
    pub(crate) work: u64,
    state: u64,
}

impl<'a> Ejection<'a> {
    /// A schedule that is to be repaired; `None` where the rules go beyond those kept here, or the phase is too long for so many times
    /// the usual memory.
    pub(crate) fn new(jobs: &'a Jobs, starts: &[i32], horizon: i32, times: u64) -> Option<Self> {
        let span = horizon as usize + 2;
        let cells = jobs.tiles.len() * span;
        let most = MOST_CELLS.min(times * CELLS_PER_JOB * jobs.jobs.len() as u64);
        if jobs.has_pairs || jobs.has_dependencies() || jobs.serial.iter().any(|pairs| !pairs.is_empty()) || cells as u64 > most {
            return None;
        }
        let free = vec![FREE; cells];
        let mut ejection = Self {
            jobs,
            span,
            sends: free.clone(),
            selects: free.clone(),
            pointers: free,
            starts: starts.to_vec(),
            prices: vec![1; starts.len()],
            work: 0,
            state: 0x9e37_79b9_7f4a_7c15,
        };
        for (index, start) in (0..).zip(starts) {
            ejection.mark(index, *start, index);
        }
        Some(ejection)
    }

    /// Moves jobs until all end by `horizon`, or until `limit` is reached: then some have no place.
    pub(crate) fn repair(&mut self, horizon: i32, limit: u64) -> bool {
        let jobs = self.jobs;
        let late = |index: &u32| end(jobs, &jobs.jobs[*index as usize], self.starts[*index as usize]) > horizon;
        let mut homeless: VecDeque<u32> = (0..jobs.jobs.len() as u32).filter(late).collect();
        for index in &homeless {
            self.remove(*index);
        }
        while let Some(index) = homeless.pop_front() {
            let Some(start) = self.cheapest(index, horizon, limit) else { return false };
            let mut pushed = Vec::new();
            self.in_the_way(index, start, |other| pushed.push(other));
            pushed.sort_unstable();
            pushed.dedup();
            for other in pushed {
                self.remove(other);
                self.prices[other as usize] += 1;
                homeless.push_back(other);
            }
            self.starts[index as usize] = start;
            self.mark(index, start, index);
        }
        true
    }

    /// The start under the horizon at which those in the way are cheapest, any of several; none beyond the limit of work.
    fn cheapest(&mut self, index: u32, horizon: i32, limit: u64) -> Option<i32> {
        let job = &self.jobs.jobs[index as usize];
        let last = job.natural + horizon - end(self.jobs, job, job.natural);
        let (mut best, mut least, mut equals) = (None, u32::MAX, 0);
        for start in job.natural..=last {
            let price = self.price(index, start);
            if self.work > limit {
                return None;
            }
            if price < least {
                (best, least, equals) = (Some(start), price, 1);
            } else if price == least {
                equals += 1;
                if self.draw(equals) == 0 {
                    best = Some(start);
                }
            }
        }
        best
    }

    fn price(&mut self, index: u32, start: i32) -> u32 {
        let (mut price, mut last) = (0, FREE);
        let prices = &self.prices;
        let looked = self.in_the_way(index, start, |other| {
            if other != last {
                price += prices[other as usize];
            }
            last = other;
        });
        self.work += looked;
        price
    }

    /// Calls with every job that a start excludes, some of them several times; the events looked at.
    fn in_the_way(&self, index: u32, start: i32, mut found: impl FnMut(u32)) -> u64 {
        let job = &self.jobs.jobs[index as usize];
        let mut looked = self.span_of(&self.sends, job.sender, (start, start + job.words), &mut found);
        for event in [start, start + 1] {
            self.controls_at(job.sender, event, &mut found);
        }
        for arrival in self.jobs.arrivals(job) {
            looked += self.at_receiver(job, arrival, start, &mut found);
        }
        looked + 8
    }

    fn at_receiver(&self, job: &Job, arrival: &Arrival, start: i32, found: &mut impl FnMut(u32)) -> u64 {
        let (select, pointer) = (start + arrival.select, start + arrival.pointer);
        let neutral = select + job.words;
        let looked = self.span_of(&self.selects, arrival.tile, (select, neutral), found);
        for event in [select, neutral, pointer] {
            self.head_at(arrival.tile, event, found);
        }
        for event in [select, neutral] {
            self.pointer_at(arrival.tile, event, found);
        }
        self.source_at(arrival.tile, pointer, found);
        looked + 10
    }

    /// The jobs on a stretch of events.
    fn span_of(&self, cells: &[u32], tile: u32, (from, to): (i32, i32), found: &mut impl FnMut(u32)) -> u64 {
        let row = &cells[self.cell(tile, from)..self.cell(tile, to)];
        let mut last = FREE;
        for other in row {
            if *other != last && *other != FREE {
                found(*other);
            }
            last = *other;
        }
        row.len() as u64 / 4
    }

    /// The job whose first or second word a tile sends at an event.
    fn head_at(&self, tile: u32, event: i32, found: &mut impl FnMut(u32)) {
        let other = self.sends[self.cell(tile, event)];
        if other != FREE && event - self.starts[other as usize] < 2 {
            found(other);
        }
    }

    fn pointer_at(&self, tile: u32, event: i32, found: &mut impl FnMut(u32)) {
        let other = self.pointers[self.cell(tile, event)];
        if other != FREE {
            found(other);
        }
    }

    /// The jobs that begin or end their selection at an event.
    fn source_at(&self, tile: u32, event: i32, found: &mut impl FnMut(u32)) {
        let (before, at) = (self.selects[self.cell(tile, event - 1)], self.selects[self.cell(tile, event)]);
        if before != at {
            [before, at].into_iter().filter(|other| *other != FREE).for_each(found);
        }
    }

    fn controls_at(&self, tile: u32, event: i32, found: &mut impl FnMut(u32)) {
        if event > 0 {
            self.source_at(tile, event, found);
        }
        self.pointer_at(tile, event, found);
    }

    fn cell(&self, tile: u32, event: i32) -> usize {
        tile as usize * self.span + event as usize
    }

    fn remove(&mut self, index: u32) {
        let start = std::mem::replace(&mut self.starts[index as usize], UNPLACED);
        self.mark(index, start, FREE);
    }

    fn mark(&mut self, index: u32, start: i32, owner: u32) {
        let jobs = self.jobs;
        let job = &jobs.jobs[index as usize];
        let words = job.words as usize;
        let first = self.cell(job.sender, start);
        self.sends[first..first + words].fill(owner);
        for arrival in jobs.arrivals(job) {
            let first = self.cell(arrival.tile, start + arrival.select);
            self.selects[first..first + words].fill(owner);
            let pointer = self.cell(arrival.tile, start + arrival.pointer);
            self.pointers[pointer] = owner;
        }
    }

    /// The next number of a fixed sequence, below `count`.
    fn draw(&mut self, count: u32) -> u32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % u64::from(count)) as u32
    }
}
