//! The search for a short schedule: several list orders, then a bounded local search on the best.
//!
//! All limits are counted work ([`Fabric::work`]), never time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ejection::Ejection;
use crate::fabric::{Fabric, end};
use crate::job::Jobs;
use crate::order::{Loads, order};
use crate::schedule::Kind;

/// Work of the clock order for each job, which tests a job again whenever an earlier one took its place; up to 4 us.
const CLOCK_WORK: u64 = 120;
/// The jobs of which this much is allowed at least: 10 ms.
const LEAST_CLOCKED: u64 = 3_000;
/// Work of the local search for each job; up to 5 us.
const LOCAL_WORK: u64 = 200;
/// Events looked at for each job while late jobs push others out; 3 to 4 us.
const EJECTION_WORK: u64 = 1_400;
/// The most jobs of which these shares are taken, so that large phases take time in proportion to a list order.
const MOST_SHARES: u64 = 6_000;
/// Work after which no list order is tried any more, for each job; 2 to 6 us.
const ORDER_WORK: u64 = 100;
/// The jobs of which this much is allowed at least: 20 to 40 ms.
const LEAST_ORDERED: u64 = 10_000;
/// A schedule within this part of the bound is good enough.
const GOOD_ENOUGH: i32 = 200;

/// How much work the search may do: so many times the usual one. With more than once it goes on until the bound itself is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort(u32);

impl Effort {
    /// The usual work.
    pub const DEFAULT: Self = Self(1);
    /// The most times.
    pub const MAX: u32 = 1000;

    /// So many times the usual work; `None` outside 1..=1000.
    #[must_use]
    pub const fn new(times: u32) -> Option<Self> {
        if times >= 1 && times <= Self::MAX { Some(Self(times)) } else { None }
    }
}

/// What a schedule may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How much work.
    pub effort: Effort,
    /// 64-bit items to pairs of tiles where that is legal. Not confirmed on hardware (machine.md c.7).
    pub pairs: bool,
}

impl Default for Options {
    /// The usual work in 32-bit mode.
    fn default() -> Self {
        Self { effort: Effort::DEFAULT, pairs: false }
    }
}

/// Start events and where they came from.
pub(crate) struct Found {
    pub(crate) starts: Vec<i32>,
    pub(crate) horizon: i32,
    pub(crate) kind: Kind,
    pub(crate) initial_horizon: i32,
    pub(crate) improvements: u32,
    /// Other orders that end at the same event.
    pub(crate) rivals: Vec<(Kind, Vec<i32>)>,
}

/// The shortest schedule found; one close to `bound` ends the search early.
pub(crate) fn search(jobs: &Jobs, bound: i32, effort: Effort) -> Found {
    let mut fabric = Fabric::new(jobs);
    let good = if effort == Effort::DEFAULT { bound + bound / GOOD_ENOUGH } else { bound };
    let times = u64::from(effort.0);
    let share = times * MOST_SHARES.min(jobs.jobs.len() as u64);
    let mut order_work = times * ORDER_WORK * LEAST_ORDERED.max(jobs.jobs.len() as u64);
    let mut found = Found { starts: Vec::new(), horizon: 0, kind: Kind::Loaded, initial_horizon: 0, improvements: 0, rivals: Vec::new() };
    for kind in [Kind::Loaded, Kind::Ring, Kind::Colour, Kind::Permutation, Kind::Clock, Kind::Multicast, Kind::Program] {
        let first = found.starts.is_empty();
        if !first && found.horizon <= good {
            break;
        }
        let limit = match kind {
            _ if first => u64::MAX,
            Kind::Clock => CLOCK_WORK * share.max(times * LEAST_CLOCKED),
            _ => order_work,
        };
        let before = fabric.work;
        let tried = by_kind(&mut fabric, jobs, kind, before.saturating_add(limit));
        if kind != Kind::Clock {
            order_work = order_work.saturating_sub(fabric.work - before);
        }
        let Some(horizon) = tried else { continue };
        if first || horizon < found.horizon {
            let initial_horizon = if first { horizon } else { found.initial_horizon };
            found = Found { starts: fabric.starts.clone(), horizon, kind, initial_horizon, improvements: 0, rivals: Vec::new() };
        } else if horizon == found.horizon && fabric.starts != found.starts {
            found.rivals.push((kind, fabric.starts.clone()));
        }
    }
    if found.horizon > good {
        let horizon = found.horizon;
        shorten(&mut fabric, jobs, (good, times, share), &mut found);
        if found.horizon < horizon {
            found.rivals.clear();
        }
    }
    found
}

/// Pushes late jobs under one horizon after the other; where the rules of the phase go beyond that, moves jobs in the list.
fn shorten(fabric: &mut Fabric<'_>, jobs: &Jobs, (good, times, share): (i32, u64, u64), found: &mut Found) {
    if let Some(mut ejection) = Ejection::new(jobs, &found.starts, found.horizon, times) {
        while found.horizon > good && ejection.repair(found.horizon - 1, share * EJECTION_WORK) {
            found.starts.clone_from(&ejection.starts);
            found.horizon = jobs.jobs.iter().zip(&found.starts).map(|(job, start)| end(jobs, job, *start)).fold(0, i32::max);
            found.improvements += 1;
        }
    } else if !jobs.has_dependencies() {
        let limit = fabric.work + share * LOCAL_WORK;
        improve(fabric, jobs, (good, limit), found);
    }
}

fn by_kind(fabric: &mut Fabric<'_>, jobs: &Jobs, kind: Kind, limit: u64) -> Option<i32> {
    match kind {
        Kind::Clock if jobs.has_dependencies() => None,
        Kind::Clock => by_clock(fabric, jobs, limit),
        _ => by_list(fabric, jobs, &order(jobs, kind)?, limit),
    }
}

/// Each job of the list at its earliest start; `None` when the fabric's work comes to `limit`.
fn by_list(fabric: &mut Fabric<'_>, jobs: &Jobs, list: &[u32], limit: u64) -> Option<i32> {
    fabric.clear();
    let mut horizon = 0;
    for index in list {
        if fabric.work >= limit {
            return None;
        }
        let start = fabric.earliest(*index);
        fabric.place(*index, start);
        horizon = horizon.max(end(jobs, &jobs.jobs[*index as usize], start));
    }
    Some(horizon)
}

/// Always the job that can start first on the clock that senders and receivers share, the heaviest among equals; `None` when
/// the fabric's work comes to `limit`.
fn by_clock(fabric: &mut Fabric<'_>, jobs: &Jobs, limit: u64) -> Option<i32> {
    fabric.clear();
    let loads = Loads::new(jobs);
    let shift = |index: u32| jobs.jobs[index as usize].shift;
    let entry = |index: u32, start: i32| (Reverse(start + shift(index)), loads.weight(jobs, &jobs.jobs[index as usize]), Reverse(index));
    let mut heap: BinaryHeap<_> = (0..).zip(&jobs.jobs).map(|(index, job)| entry(index, job.natural)).collect();
    let mut horizon = 0;
    while let Some((Reverse(clock), _, Reverse(index))) = heap.pop() {
        let start = fabric.earliest(index);
        if fabric.work > limit {
            return None;
        }
        if start + shift(index) > clock {
            heap.push(entry(index, start));
            continue;
        }
        fabric.place(index, start);
        horizon = horizon.max(end(jobs, &jobs.jobs[index as usize], start));
    }
    Some(horizon)
}

/// Moves one of the last jobs to an earlier place in the list, again and again; keeps what is not longer.
fn improve(fabric: &mut Fabric<'_>, jobs: &Jobs, (good, limit): (i32, u64), found: &mut Found) {
    let mut list = order(jobs, found.kind).unwrap_or_default();
    if found.kind == Kind::Clock {
        // Nearly the order in which the clock took them; the list need not lead to the very same schedule.
        list.sort_by_key(|index| found.starts[*index as usize] + jobs.jobs[*index as usize].shift);
    }
    let Some(mut current) = by_list(fabric, jobs, &list, limit) else { return };
    let mut last = critical(fabric, jobs, &list, current);
    keep_best(fabric, current, found);
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    while fabric.work < limit && found.horizon > good {
        let from = last[draw.below(last.len())];
        let to = draw.below(from + 1);
        list[to..=from].rotate_right(1);
        let Some(tried) = by_list(fabric, jobs, &list, limit) else { return };
        if tried <= current {
            current = tried;
            last = critical(fabric, jobs, &list, current);
            keep_best(fabric, current, found);
        } else {
            list[to..=from].rotate_left(1);
        }
    }
}

fn keep_best(fabric: &Fabric<'_>, current: i32, found: &mut Found) {
    if current < found.horizon {
        found.starts.clone_from(&fabric.starts);
        found.horizon = current;
        found.improvements += 1;
    }
}

/// Places in the list of the jobs that end last.
fn critical(fabric: &Fabric<'_>, jobs: &Jobs, list: &[u32], horizon: i32) -> Vec<usize> {
    let ends_last = |index: u32| end(jobs, &jobs.jobs[index as usize], fabric.starts[index as usize]) == horizon;
    (0..list.len()).filter(|at| ends_last(list[*at])).collect()
}

/// A fixed sequence of numbers.
struct Draw(u64);

impl Draw {
    /// The next number, below `count`.
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % count as u64) as usize
    }
}
