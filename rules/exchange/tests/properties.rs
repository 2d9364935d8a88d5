//! Random problems, scheduled, built into rows and replayed event by event as machine.md c.11 describes it.

mod replay;

use std::collections::BTreeMap;

use exchange::{BufferId, Options, Place, PlacedRow, Problem, Transfer, rows, schedule, schedule_with, validate, validate_rows};
use ipu21::tile::TileId;
use proptest::prelude::*;

/// Four sent and four received buffers, each in units of its own; the row in another.
fn address_of(_: TileId, buffer: BufferId) -> u32 {
    0x8_0000 + 0x8000 * buffer.0
}

const ROW: u32 = 0x5_c000;

/// A transfer before it gets room of its own at its receivers: source, words, receivers, send buffer, receive buffer.
type Wish = (u16, u32, Vec<u16>, u32, u32);

fn wish() -> impl Strategy<Value = Wish> {
    let tile = prop_oneof![0..24_u16, 0..1472_u16];
    let words = prop_oneof![1..16_u32, 40..130_u32, 1..600_u32];
    (tile.clone(), words, prop::collection::vec(tile, 1..6), 0..4_u32, 4..8_u32)
}

/// Receivers get disjoint ranges, contiguous ones in the order of the wishes.
fn problem(wishes: &[Wish]) -> Problem {
    let mut used = BTreeMap::<(u16, u32), u32>::new();
    let mut transfers = Vec::new();
    for (source, words, receivers, from, into) in wishes {
        let mut receivers: Vec<u16> = receivers.iter().copied().filter(|tile| tile != source).collect();
        receivers.sort_unstable();
        receivers.dedup();
        let mut place = |tile: u16, buffer: u32| {
            let offset = used.entry((tile, buffer)).or_default();
            let at = Place { tile: TileId::new(tile).expect("below 1472"), buffer: BufferId(buffer), offset: *offset };
            *offset += 4 * words;
            at
        };
        if !receivers.is_empty() {
            let destinations = receivers.iter().map(|tile| place(*tile, *into)).collect();
            transfers.push(Transfer { source: place(*source, *from), words: *words, destinations });
        }
    }
    Problem { transfers, serial: Vec::new() }
}

/// Wide broadcasts to whole pairs among other transfers, in pair mode.
fn check_pairs(problem: &Problem) -> Result<(), TestCaseError> {
    let schedule = schedule_with(problem, Options { pairs: true, ..Options::default() })
        .map_err(|faults| TestCaseError::fail(faults[0].to_string()))?;
    let violation = |violations: Vec<exchange::Violation>| TestCaseError::fail(violations[0].to_string());
    validate(problem, &schedule).map_err(violation)?;
    let rows = rows(&schedule, address_of).map_err(|faults| TestCaseError::fail(faults[0].to_string()))?;
    let placed: Vec<PlacedRow> = rows.iter().map(|row| PlacedRow { tile: row.tile, address: ROW, words: row.words.clone() }).collect();
    validate_rows(&schedule.timed(address_of), &placed).map_err(violation)?;
    Ok(())
}

fn check(problem: &Problem) -> Result<(), TestCaseError> {
    let schedule = schedule(problem).map_err(|faults| TestCaseError::fail(faults[0].to_string()))?;
    let violation = |violations: Vec<exchange::Violation>| TestCaseError::fail(violations[0].to_string());
    validate(problem, &schedule).map_err(violation)?;
    let rows = rows(&schedule, address_of).map_err(|faults| TestCaseError::fail(faults[0].to_string()))?;
    let sizes: Vec<usize> = schedule.tiles.iter().map(|plan| plan.row_words as usize).collect();
    prop_assert_eq!(rows.iter().map(|row| row.words.len()).collect::<Vec<_>>(), sizes);
    let placed: Vec<PlacedRow> = rows.iter().map(|row| PlacedRow { tile: row.tile, address: ROW, words: row.words.clone() }).collect();
    validate_rows(&schedule.timed(address_of), &placed).map_err(violation)?;
    let stored = replay::run(&rows);
    prop_assert_eq!(stored, asked(problem));
    Ok(())
}

/// What each address of each tile must hold in the end: the tile and address it came from.
fn asked(problem: &Problem) -> BTreeMap<(TileId, u32), (TileId, u32)> {
    let mut memory = BTreeMap::new();
    let at = |place: &Place, word: u32| address_of(place.tile, place.buffer) + place.offset + 4 * word;
    for transfer in &problem.transfers {
        for word in 0..transfer.words {
            for place in &transfer.destinations {
                memory.insert((place.tile, at(place, word)), (transfer.source.tile, at(&transfer.source, word)));
            }
        }
    }
    memory
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_deliver_exactly_the_words_asked(wishes in prop::collection::vec(wish(), 1..40)) {
        check(&problem(&wishes))?;
    }

    #[test]
    fn pairs_of_tiles_are_sent_64_bits_among_other_messages(wishes in prop::collection::vec(wish(), 1..16), wide in prop::collection::vec((0..40_u16, 64..300_u32, prop::collection::vec(0..20_u16, 1..5), 0..4_u32, 4..8_u32), 1..8)) {
        let pairs = |pairs: &[u16]| pairs.iter().flat_map(|pair| [2 * pair, 2 * pair + 1]).collect();
        let wide = wide.iter().map(|(source, items, receivers, from, into)| (*source, 2 * items, pairs(receivers), *from, *into));
        let mut all: Vec<Wish> = wide.collect();
        all.extend(wishes);
        // Equal places on both members: everything else comes behind.
        check_pairs(&problem(&all))?;
    }

    #[test]
    fn serial_pairs_are_kept_apart_in_time(wishes in prop::collection::vec(wish(), 1..20)) {
        let mut problem = problem(&wishes);
        let tiles: Vec<TileId> = problem.transfers.iter().map(|transfer| transfer.source.tile).collect();
        problem.serial = tiles.iter().flat_map(|tile| [(BufferId(0), BufferId(4), *tile), (BufferId(5), BufferId(1), *tile)]).collect();
        check(&problem)?;
    }

    #[test]
    fn program_order_is_kept(wishes in prop::collection::vec(wish(), 1..16), offsets in prop::collection::vec(0..64_u32, 96)) {
        // Overlapping ranges in few buffers: the schedule must be sound, whatever the order costs.
        let mut problem = problem(&wishes);
        let places = problem.transfers.iter_mut().flat_map(|transfer| {
            std::iter::once(&mut transfer.source).chain(&mut transfer.destinations)
        });
        for (place, offset) in places.zip(offsets) {
            *place = Place { buffer: BufferId(0), offset: 4 * offset, ..*place };
        }
        let schedule = schedule(&problem).map_err(|faults| TestCaseError::fail(faults[0].to_string()))?;
        validate(&problem, &schedule).map_err(|violations| TestCaseError::fail(violations[0].to_string()))?;
        prop_assert!(rows(&schedule, address_of).is_ok());
    }
}

#[test]
fn equal_problems_have_equal_schedules() {
    let wishes: Vec<Wish> =
        (0..60).map(|index| (index % 12, 7 + u32::from(index), vec![(index * 7 + 1) % 12, (index * 5 + 3) % 12], 0, 4)).collect();
    assert_eq!(schedule(&problem(&wishes)), schedule(&problem(&wishes)));
}

#[test]
fn a_phase_without_transfers_is_empty() {
    let schedule = schedule(&Problem::default()).expect("nothing is wrong with nothing");
    assert_eq!(validate(&Problem::default(), &schedule), Ok(()));
    assert_eq!((schedule.figures.horizon, schedule.tiles.len()), (0, 0));
}

#[test]
fn a_receiver_whose_neutral_would_meet_its_pointer_gets_two_pieces() {
    for words in [52, 64, 96] {
        for receiver in 0..46 {
            check(&problem(&[(100, words, vec![receiver], 0, 4), (receiver, 70, vec![100, 200], 1, 5)])).expect("a sound schedule");
        }
    }
}
