//! Replays rows event by event after machine.md c.11: what is selected, when it is stored, and where.

use std::collections::BTreeMap;

use exchange::Row;
use ipu21::exchange_word::RETURN;
use ipu21::route::route;
use ipu21::tile::{PhysTile, TileId};

/// What one tile does at its events, read from the words by their bits (machine.md c.4).
#[derive(Default)]
struct Tape {
    /// Address and direction bits of the word on the wire at an event.
    sent: BTreeMap<i32, (u32, u32)>,
    select: BTreeMap<i32, u32>,
    pointer: BTreeMap<i32, u32>,
    events: i32,
}

fn read(words: &[u32]) -> Tape {
    let mut tape = Tape::default();
    let (mut at, mut out, mut bits) = (0, 0, 0);
    while words[at] != RETURN {
        let word = words[at];
        let now = tape.events;
        let (count, sends) = match word >> 24 {
            0x40 => ((word & 0x7_ffff) + 1, false),
            0x60..=0x63 => {
                let count = (word >> 19 & 0x7f) + 1;
                tape.pointer.insert(now + count as i32, (word & 0x3_ffff) * 4);
                (count, false)
            }
            0x64..=0x67 => {
                let count = (word >> 14 & 0xfff) + 1;
                tape.select.insert(now + count as i32, word & 0x1fff);
                (count, false)
            }
            0x78..=0x7f => {
                (out, bits) = ((word >> 3 & 0x3_ffff) * 4, word & 3);
                ((word >> 21 & 0x3f) + 1, true)
            }
            0x70..=0x77 if word >> 20 & 1 == 1 => {
                let selector = word >> 18 & 3;
                match selector {
                    0 => tape.select.insert(now + 1, word & 0x1fff),
                    2 => tape.pointer.insert(now + 1, (word & 0x3_ffff) * 4),
                    _ => panic!("selector {selector} in 32-bit mode"),
                };
                ((word >> 21 & 0x3f) + 1, true)
            }
            0x70..=0x77 => {
                bits = word & 3;
                ((word >> 21 & 0x3f | (word >> 14 & 0x3f) << 6) + 1, true)
            }
            _ => panic!("word {at} is {word:#010x}: the scheduler makes no two-word controls"),
        };
        for event in now..now + count as i32 {
            if sends {
                tape.sent.insert(event, (out, bits));
                out += 4;
            }
        }
        tape.events += count as i32;
        at += 1;
    }
    tape
}

/// The final memory: (tile, address) to the (tile, address) its word came from.
pub(crate) fn run(rows: &[Row]) -> BTreeMap<(TileId, u32), (TileId, u32)> {
    let tapes: BTreeMap<TileId, Tape> = rows.iter().map(|row| (row.tile, read(&row.words))).collect();
    let mut memory = BTreeMap::new();
    for (tile, tape) in &tapes {
        let receiver = tile.physical();
        let delay = 52 + 2 * i32::from(receiver.row());
        let mut selected = 0x640;
        let mut seen = BTreeMap::new();
        for event in 0..tape.events {
            selected = tape.select.get(&event).copied().unwrap_or(selected);
            if selected == 0x640 {
                continue;
            }
            let source = PhysTile::new(selected as u16).expect("a physical tile");
            let path = route(source, receiver);
            let sent = tapes[&source.logical()].sent.get(&(event - path.offset - 1));
            let (address, bits) = sent.unwrap_or_else(|| panic!("tile {tile} hears nothing at event {event}"));
            assert!(bits & path.direction.control() != 0, "tile {tile} is not in the direction of the send");
            seen.insert(event + delay, (source.logical(), *address));
        }
        assert_eq!(selected, 0x640, "the mux of tile {tile} is left on a source");
        let mut pointer = None;
        for event in 0..tape.events {
            pointer = tape.pointer.get(&event).copied().or(pointer);
            if let Some(word) = seen.remove(&event) {
                let address = pointer.expect("a pointer before the first store");
                assert!(memory.insert((*tile, address), word).is_none(), "tile {tile} stores twice at {address:#x}");
                pointer = Some(address + 4);
            }
        }
        assert!(seen.is_empty(), "the row of tile {tile} ends before its last store");
    }
    memory
}
