//! From a problem to a schedule.

use std::collections::{BTreeMap, BTreeSet};

use ipu21::tile::TileId;

use crate::bound::{RECEIVER_GUARD, estimate};
use crate::clique::bound_of;
use crate::events::lower;
use crate::job::Jobs;
use crate::message::{Width, control};
use crate::problem::{BufferId, Fault, Place, Problem};
use crate::row::row;
use crate::schedule::{Figures, Message, Schedule, TilePlan};
use crate::search::{Effort, Found, search};

/// Gives every message of a phase its start event, in 32-bit mode.
///
/// # Errors
/// What is wrong with the problem; every sound problem has a schedule.
pub fn schedule(problem: &Problem) -> Result<Schedule, Vec<Fault>> {
    schedule_with(problem, Effort::DEFAULT)
}

/// As [`schedule`], with more work.
///
/// # Errors
/// Those of [`schedule`].
pub fn schedule_with(problem: &Problem, effort: Effort) -> Result<Schedule, Vec<Fault>> {
    problem.check()?;
    let jobs = Jobs::new(problem);
    let bound = estimate(problem).max(bound_of(&jobs));
    let found = search(&jobs, bound as i32, effort);
    let messages: Vec<Message> = (0..jobs.jobs.len()).map(|index| message(problem, &jobs, &found, index)).collect();
    let figures = Figures {
        transfers: problem.transfers.len() as u32,
        identical_destinations: identical_destinations(problem),
        initial_horizon: found.initial_horizon as u32,
        horizon: found.horizon as u32,
        lower_bound: bound,
        kind: found.kind,
        improvements: found.improvements,
        largest_row_words: 0,
        largest_row_tile: None,
    };
    let mut schedule = Schedule { messages, tiles: Vec::new(), apart: Vec::new(), figures };
    schedule.apart = apart(&schedule);
    schedule.tiles = tile_plans(&schedule);
    for plan in schedule.tiles.iter().rev() {
        if plan.row_words >= schedule.figures.largest_row_words {
            schedule.figures.largest_row_words = plan.row_words;
            schedule.figures.largest_row_tile = Some(plan.tile);
        }
    }
    Ok(schedule)
}

fn message(problem: &Problem, jobs: &Jobs, found: &Found, index: usize) -> Message {
    let job = &jobs.jobs[index];
    let transfer = &problem.transfers[job.transfer as usize];
    let inside = |place: &Place| Place { offset: place.offset + 4 * job.first_word, ..*place };
    Message {
        transfer: job.transfer,
        first_word: job.first_word,
        words: job.words as u32,
        start: found.starts[index] as u32,
        control: control(transfer.source.tile, Width::Word, transfer.destinations.iter().map(|place| place.tile)),
        source: inside(&transfer.source),
        destinations: transfer.destinations.iter().map(inside).collect(),
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
fn tile_plans(schedule: &Schedule) -> Vec<TilePlan> {
    let plan = |events: &_| match row(events) {
        Ok(row) => TilePlan { tile: row.tile, horizon: row.horizon, row_words: row.words.len() as u32 },
        Err(fault) => panic!("the scheduler placed controls that no row can hold: {fault}"),
    };
    lower(&schedule.timed(|_, _| 0)).iter().map(plan).collect()
}

/// Events during which a tile reads or writes a buffer.
struct Window {
    from: i32,
    to: i32,
    buffer: BufferId,
}

fn apart(schedule: &Schedule) -> Vec<(TileId, BufferId, BufferId)> {
    let mut windows = BTreeMap::<TileId, [Vec<Window>; 2]>::new();
    for message in schedule.timed(|_, _| 0) {
        let source = message.source;
        let read = Window { from: message.start as i32, to: message.sender_horizon(), buffer: source.buffer };
        windows.entry(source.tile).or_default()[0].push(read);
        for spot in &message.destinations {
            let from = message.select(spot.tile) + 52 + 2 * i32::from(spot.tile.physical().row());
            let to = from + message.items as i32 + RECEIVER_GUARD;
            windows.entry(spot.tile).or_default()[1].push(Window { from, to, buffer: spot.buffer });
        }
    }
    let mut pairs = BTreeSet::new();
    for (tile, [reads, writes]) in windows {
        meeting(&reads, &writes, |read, write| {
            pairs.insert((tile, read.min(write), read.max(write)));
        });
    }
    pairs.into_iter().collect()
}

fn meeting(reads: &[Window], writes: &[Window], mut found: impl FnMut(BufferId, BufferId)) {
    for read in reads {
        for write in writes.iter().filter(|write| write.from < read.to && read.from < write.to) {
            found(read.buffer, write.buffer);
        }
    }
}
