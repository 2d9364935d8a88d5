//! Judges a schedule before addresses are known.
//!
//! Rules: every word of every transfer is in exactly one message, with its source and destinations at the right offsets
//! (coverage); the rules of [`crate::check_messages`] with buffers for memory; every tile's horizon, every row's size and the
//! reported figures are what the messages give (report).

use std::collections::{BTreeMap, BTreeSet};

use ipu21::tile::TileId;

use crate::check_messages::{Memory, check, depth, other, sent_by, skew};
use crate::message::{TimedMessage, Width};
use crate::problem::{BufferId, Place, Problem};
use crate::row::timed_rows;
use crate::schedule::{Message, Schedule};
use crate::violation::{Findings, Invariant, Violation};

/// Judges a schedule against its problem.
///
/// # Errors
/// Every violation found: coverage, report, I1, I2, I4, I5, I9 to I14, I16.
pub fn validate(problem: &Problem, schedule: &Schedule) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    check_coverage(problem, &schedule.messages, &mut findings);
    let timed = schedule.timed(|_, _| 0);
    let both = |pairs: &mut dyn Iterator<Item = (TileId, BufferId, BufferId)>| -> BTreeSet<_> {
        pairs.flat_map(|(tile, one, two)| [(tile, one, two), (tile, two, one)]).collect()
    };
    let serial = both(&mut problem.serial.iter().map(|(one, two, tile)| (*tile, *one, *two)));
    let apart = both(&mut schedule.apart.iter().copied());
    check(&timed, &Memory::Buffers { serial: &serial, apart: &apart }, None, &mut findings);
    check_report(schedule, &timed, &mut findings);
    findings.result()
}

fn check_coverage(problem: &Problem, messages: &[Message], findings: &mut Findings) {
    let mut next = 0;
    for (number, transfer) in (0..).zip(&problem.transfers) {
        let mut expect = |holds: bool, word: u32| {
            findings.expect(holds, Invariant::Coverage, Some(transfer.source.tile), Some(number), Some(i64::from(word)));
        };
        // Words that have come, by destination in the transfer's order.
        let mut covered = vec![0; transfer.destinations.len()];
        while let Some(message) = messages.get(next).filter(|message| message.transfer == number) {
            let first = message.first_word;
            let moved = |place: &Place| Place { offset: place.offset + 4 * first, ..*place };
            expect(message.source == moved(&transfer.source), first);
            let mut places = (0..).zip(&transfer.destinations);
            for destination in &message.destinations {
                match places.find(|(_, place)| moved(place) == *destination) {
                    Some((at, _)) => {
                        let words: &mut u32 = &mut covered[at as usize];
                        expect(*words == first, first);
                        *words = words.saturating_add(message.words);
                    }
                    None => expect(false, first),
                }
            }
            next += 1;
        }
        covered.iter().for_each(|words| expect(*words == transfer.words, *words));
    }
    findings.expect(next == messages.len(), Invariant::Coverage, None, None, Some(next as i64));
}

fn check_report(schedule: &Schedule, timed: &[TimedMessage], findings: &mut Findings) {
    let horizons = horizons(timed);
    let reported: BTreeMap<TileId, i64> = schedule.tiles.iter().map(|plan| (plan.tile, i64::from(plan.horizon))).collect();
    findings.expect(reported.len() == schedule.tiles.len(), Invariant::Report, None, None, None);
    for tile in horizons.keys().chain(reported.keys()) {
        let equal = horizons.get(tile) == reported.get(tile);
        findings.expect(equal, Invariant::Report, Some(*tile), None, reported.get(tile).copied());
    }
    let longest = horizons.values().copied().max().unwrap_or(0);
    let told = i64::from(schedule.figures.horizon);
    let possible = schedule.figures.lower_bound <= schedule.figures.horizon;
    findings.expect(told == longest && possible, Invariant::Report, None, None, Some(told));
    check_row_sizes(schedule, timed, findings);
}

/// Last event a tile must wait for: as a sender, or as its partner in pair mode, its last item; as a receiver five events after its last
/// store.
fn horizons(timed: &[TimedMessage]) -> BTreeMap<TileId, i64> {
    let mut horizons = BTreeMap::<TileId, i64>::new();
    let mut wait = |tile: TileId, event: i64| {
        let horizon = horizons.entry(tile).or_default();
        *horizon = (*horizon).max(event);
    };
    for message in timed {
        wait(message.source.tile, i64::from(sent_by(message)));
        if message.width == Width::Pair {
            wait(other(message.source.tile), i64::from(sent_by(message)));
        }
        for spot in &message.destinations {
            let own = skew(message.source.tile, spot.tile);
            let first = match message.width {
                Width::Word => own + 1 + depth(spot.tile),
                // The format is set, and the pointer two events later.
                Width::Pair => own.max(skew(message.source.tile, other(spot.tile))) + depth(spot.tile) - 1 + 2,
            };
            wait(spot.tile, i64::from(message.start) + i64::from(first) + i64::from(message.items) + 5);
        }
    }
    horizons
}

/// Sizes must hold for any addresses, so they are counted again at other ones.
fn check_row_sizes(schedule: &Schedule, timed: &[TimedMessage], findings: &mut Findings) {
    let mut shifted = timed.to_vec();
    for message in &mut shifted {
        for spot in std::iter::once(&mut message.source).chain(&mut message.destinations) {
            spot.address = spot.address.wrapping_add(0x4_c000 + 8 * (spot.buffer.0 % 64)) & 0xf_fffc;
        }
    }
    let Ok(rows) = timed_rows(&shifted) else {
        return findings.expect(false, Invariant::I17, None, None, None);
    };
    for (row, plan) in rows.iter().zip(&schedule.tiles) {
        let equal = row.tile == plan.tile && row.words.len() as u32 == plan.row_words;
        findings.expect(equal, Invariant::Report, Some(plan.tile), None, Some(i64::from(plan.row_words)));
    }
    let largest = schedule.tiles.iter().map(|plan| plan.row_words).max().unwrap_or(0);
    findings.expect(largest == schedule.figures.largest_row_words, Invariant::Report, None, None, Some(i64::from(largest)));
}
