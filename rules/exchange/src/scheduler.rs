//! From a problem to a schedule.

use std::collections::{BTreeMap, BTreeSet};

use ipu21::tile::{self, TileId};

use crate::bound::{RECEIVER_GUARD, SENDER_END, estimate, route_bound};
use crate::clique::bound_of;
use crate::events::lower;
use crate::job::{Job, Jobs};
use crate::message::{TimedMessage, Width, control};
use crate::problem::{BufferId, Fault, Place, Problem};
use crate::row::row;
use crate::schedule::{Figures, Kind, Message, Schedule, TilePlan};
use crate::search::{Effort, Options, search};

/// Gives every message of a phase its start event, with the usual work in 32-bit mode.
///
/// # Errors
/// What is wrong with the problem; every sound problem has a schedule.
pub fn schedule(problem: &Problem) -> Result<Schedule, Vec<Fault>> {
    schedule_with(problem, Options::default())
}

/// As [`schedule`], with other work and widths.
///
/// # Errors
/// Those of [`schedule`].
pub fn schedule_with(problem: &Problem, options: Options) -> Result<Schedule, Vec<Fault>> {
    problem.check()?;
    let jobs = Jobs::new(problem, false);
    let bound = estimate(problem).max(bound_of(&jobs));
    let words = || scheduled(problem, &jobs, bound, options.effort);
    let paired = Some(Jobs::new(problem, options.pairs)).filter(|paired| paired.has_pairs);
    let Some(paired) = paired else { return Ok(words()) };
    // Of both ways none is shorter than the smaller bound.
    let least = bound.min(route_bound(&paired));
    let mut shorter = scheduled(problem, &paired, least, options.effort);
    if shorter.figures.horizon > bound {
        let words = words();
        if words.figures.horizon < shorter.figures.horizon {
            shorter = words;
            shorter.figures.lower_bound = least;
        }
    }
    Ok(shorter)
}

fn scheduled(problem: &Problem, jobs: &Jobs, bound: u32, effort: Effort) -> Schedule {
    let found = search(jobs, bound as i32, effort);
    let figures = |kind: Kind| Figures {
        transfers: problem.transfers.len() as u32,
        identical_destinations: identical_destinations(problem),
        initial_horizon: found.initial_horizon as u32,
        horizon: found.horizon as u32,
        lower_bound: bound,
        kind,
        improvements: found.improvements,
        pairs: jobs.jobs.iter().filter(|job| job.width == Width::Pair).count() as u32,
        largest_row_words: 0,
        largest_row_tile: None,
    };
    let mut shortest = laid_out(problem, jobs, &found.starts, figures(found.kind));
    for (kind, starts) in &found.rivals {
        let rival = laid_out(problem, jobs, starts, figures(*kind));
        if row_words(&rival) < row_words(&shortest) {
            shortest = rival;
        }
    }
    shortest
}

/// A schedule with the given start events.
fn laid_out(problem: &Problem, jobs: &Jobs, starts: &[i32], figures: Figures) -> Schedule {
    let messages: Vec<Message> = jobs.jobs.iter().zip(starts).map(|(job, start)| message(problem, jobs, job, *start)).collect();
    let mut schedule = Schedule { messages, tiles: Vec::new(), apart: Vec::new(), figures };
    let timed = schedule.timed(|_, _| 0);
    schedule.apart = apart(&timed);
    schedule.tiles = tile_plans(&timed);
    for plan in schedule.tiles.iter().rev() {
        if plan.row_words >= schedule.figures.largest_row_words {
            schedule.figures.largest_row_words = plan.row_words;
            schedule.figures.largest_row_tile = Some(plan.tile);
        }
    }
    schedule
}

/// What decides among schedules that end at the same event: words of the largest row, then of all. A word costs 4 bytes of a tile and no
/// clock, so it is worth no event.
fn row_words(schedule: &Schedule) -> (u32, u32) {
    (schedule.figures.largest_row_words, schedule.tiles.iter().map(|plan| plan.row_words).sum())
}

fn message(problem: &Problem, jobs: &Jobs, job: &Job, start: i32) -> Message {
    let transfer = &problem.transfers[job.transfer as usize];
    let inside = |place: &Place| Place { offset: place.offset + 4 * job.first_word, ..*place };
    let places = jobs.destinations(job).iter().map(|destination| &transfer.destinations[*destination as usize]);
    let destinations: Vec<Place> = places.map(inside).collect();
    Message {
        transfer: job.transfer,
        first_word: job.first_word,
        words: job.words as u32 * job.width.bytes() / 4,
        width: job.width,
        start: start as u32,
        control: control(transfer.source.tile, job.width, destinations.iter().map(|place| place.tile)),
        source: inside(&transfer.source),
        destinations,
    }
}

fn identical_destinations(problem: &Problem) -> u32 {
    let mut counts = BTreeMap::<Vec<TileId>, u32>::new();
    for transfer in &problem.transfers {
        let mut tiles: Vec<TileId> = transfer.destinations.iter().map(|place| place.tile).collect();
        tiles.sort_unstable();
        *counts.entry(tiles).or_default() += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

/// Row sizes do not depend on addresses: contiguity counts only inside a buffer, and bases are 8-byte aligned.
fn tile_plans(messages: &[TimedMessage]) -> Vec<TilePlan> {
    let plan = |events: &_| match row(events) {
        Ok(row) => TilePlan { tile: row.tile, horizon: row.horizon, row_words: row.words.len() as u32 },
        Err(fault) => panic!("the scheduler placed controls that no row can hold: {fault}"),
    };
    lower(messages).iter().map(plan).collect()
}

/// Events during which a tile reads or writes a buffer.
#[derive(Clone)]
struct Window {
    from: i32,
    to: i32,
    buffer: BufferId,
}

fn apart(messages: &[TimedMessage]) -> Vec<(TileId, BufferId, BufferId)> {
    let mut windows = vec![[Vec::new(), Vec::new()]; tile::COUNT];
    for message in messages {
        let source = message.source;
        let read = Window { from: message.start as i32, to: message.sender_horizon(), buffer: source.buffer };
        windows[source.tile.index()][0].push(read);
        for spot in &message.destinations {
            let from = message.first_store(spot.tile);
            let to = from + message.items as i32 + RECEIVER_GUARD;
            windows[spot.tile.index()][1].push(Window { from, to, buffer: spot.buffer });
        }
    }
    let mut pairs = BTreeSet::new();
    for (tile, [mut reads, writes]) in TileId::all().zip(windows) {
        reads.sort_unstable_by_key(|read| read.from);
        meeting(&reads, &writes, |read, write| {
            pairs.insert((tile, read.min(write), read.max(write)));
        });
    }
    pairs.into_iter().collect()
}

/// Reads and writes that meet; reads by their beginning.
fn meeting(reads: &[Window], writes: &[Window], mut found: impl FnMut(BufferId, BufferId)) {
    for write in writes {
        // Words are sent one after the other, so that only the last read that begins before, or very short ones, reach a write.
        let before = reads.partition_point(|read| read.from + SENDER_END <= write.from).saturating_sub(1);
        let meets = |read: &&Window| write.from < read.to;
        for read in reads[before..].iter().take_while(|read| read.from < write.to).filter(meets) {
            found(read.buffer, write.buffer);
        }
    }
}
