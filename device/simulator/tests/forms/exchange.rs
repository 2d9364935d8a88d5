//! Rows: tile 0 sends to tile 53, with every exchange form in a place where its counts, controls and addresses matter.
//!
//! The route takes -23 events (machine.md c.3), so what tile 0 sends at event 23 is seen by tile 53 at event 1 and stored at 53.

use ipu21::exchange_word::NEUTRAL;
use ipu21::tile::PhysTile;
use simulator::Stop;

use crate::support::{ENTRY, ROW, bystander, call, chip, load_all, program, segment, word};
use crate::table::{self, code};
use crate::{Entry, Scene};

const SOURCE: u32 = 0x60000;
const TARGET: u32 = 0x64000;

fn content(index: u32) -> u32 {
    0xabc0_0000 | index
}

/// Runs two rows; gives the clocks that each took and the words at the target.
fn run(sender: &str, receiver: &str, words: u32) -> ([u64; 2], Vec<u32>) {
    let tiles = [0, 53].map(|id| PhysTile::new(id).unwrap());
    let data: Vec<u32> = (0..8192).map(content).collect();
    let busy: Vec<_> = tiles
        .iter()
        .zip([sender, receiver])
        .map(|(tile, row)| {
            let row = code(&format!(".supervisor\n{row}\nbr $m10"), ROW);
            (*tile, vec![program(vec![word("sync.zi4", &[3]), call(ROW)]), segment(ROW, &row), segment(SOURCE, &data)])
        })
        .collect();
    let mut chip = chip(1);
    load_all(&mut chip, &busy, &bystander());
    for tile in tiles {
        chip.watch(tile, ENTRY + 4);
        chip.watch(tile, ENTRY + 8);
    }
    chip.start();
    assert_eq!(chip.run(), Stop::Finished, "{sender} / {receiver}");
    let hits = chip.watched();
    // 6 clocks of call and 6 of return lie around the events of a row.
    let took = tiles.map(|tile| {
        let of: Vec<u64> = hits.iter().filter(|hit| hit.tile == tile).map(|hit| hit.clock).collect();
        of[1] - of[0] - 12
    });
    let bytes = if words == 0 { Vec::new() } else { chip.read_memory(tiles[1], TARGET, 4 * words).unwrap() };
    (took, bytes.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect())
}

/// A form of isa.toml with the values of its fields.
fn form(id: &str, values: &[u32]) -> String {
    table::named(id).text(values) + "\n"
}

fn delay(events: u32) -> String {
    form("delay.zi19", &[events - 1])
}

fn select(events: u32, source: u32) -> String {
    form("delayxpic.zi12_zi1_zi13", &[events - 1, 0, source])
}

fn point(events: u32, address: u32) -> String {
    form("delaypic.zi7_zi1_zi18", &[events - 1, 0, address / 4])
}

fn send(items: u32, index: u32) -> String {
    form("send.zi6_zi18_zi3", &[items - 1, SOURCE / 4 + index, 3])
}

/// A receiver of so many words, fewer than 52, sent from event 23 on.
fn receiver(words: u32) -> String {
    select(1, 0) + &select(words, NEUTRAL) + &point(52 - words, TARGET) + &delay(words + 5)
}

fn expect(sender: &str, receiver: &str, clocks: [u64; 2], indices: &[u32]) {
    let (took, words) = run(sender, receiver, indices.len() as u32);
    assert_eq!(took, clocks, "{sender} / {receiver}");
    assert_eq!(words, indices.iter().map(|&index| content(index)).collect::<Vec<u32>>(), "{sender} / {receiver}");
}

fn delays(_: &Entry) {
    for events in [1, 2, 1000, 1 << 19] {
        assert_eq!(run(&delay(events), "nop", 0).0[0], u64::from(events));
    }
    expect(&(delay(23) + &send(3, 5)), &receiver(3), [26, 61], &[5, 6, 7]);
}

/// The controls act at the last of their events: one event more and the words are others or lie elsewhere.
fn controls(_: &Entry) {
    expect(&(delay(23) + &send(40, 0)), &receiver(40), [63, 98], &(0..40).collect::<Vec<u32>>());
    // Selected at event 3 instead of 1: the first two words are not seen.
    let late = select(3, 0) + &select(8, NEUTRAL) + &point(44, TARGET) + &delay(30);
    expect(&(delay(23) + &send(10, 0)), &late, [33, 85], &(2..10).collect::<Vec<u32>>());
    // A second pointer while words arrive: from event 56 on they are stored behind a gap that is then filled.
    let moved = select(1, 0) + &select(6, NEUTRAL) + &point(46, TARGET + 12) + &point(3, TARGET) + &delay(20);
    expect(&(delay(23) + &send(6, 0)), &moved, [29, 76], &[3, 4, 5, 0, 1, 2]);
    for events in [1, 128] {
        assert_eq!(run(&point(events, TARGET), "nop", 0).0[0], u64::from(events));
    }
    for events in [1, 4096] {
        assert_eq!(run(&select(events, NEUTRAL), "nop", 0).0[0], u64::from(events));
    }
}

fn sends(_: &Entry) {
    expect(&(delay(23) + &send(1, 9)), &receiver(1), [24, 59], &[9]);
    let long = select(1, 0) + &point(52, TARGET) + &select(12, NEUTRAL) + &delay(80);
    expect(&(delay(23) + &send(64, 3)), &long, [87, 145], &(3..67).collect::<Vec<u32>>());
    // Towards the other side only: tile 53 lies eastward of tile 0 and sees nothing, which it must not store.
    let west = delay(23) + &form("send.zi6_zi18_zi3", &[2, SOURCE / 4, 2]);
    assert_eq!(run(&west, "nop", 0).0[0], 26);
}

/// The stream goes on where it stopped, plus the offset.
fn continued(_: &Entry) {
    let more = |items: u32, offset: u32| form("sendoff.zi12_zi11_zi3", &[items - 1, offset, 3]);
    expect(&(delay(23) + &send(2, 0) + &more(3, 0)), &receiver(5), [28, 63], &[0, 1, 2, 3, 4]);
    expect(&(delay(23) + &send(2, 0) + &more(3, 10)), &receiver(5), [28, 63], &[0, 1, 12, 13, 14]);
    // The longest message that a selection can end (machine.md c.5).
    let (words, long) = (4148, select(1, 0) + &point(52, TARGET) + &select(4096, NEUTRAL) + &delay(80));
    let (_, found) = run(&(delay(23) + &send(52, 0) + &more(4096, 0)), &long, words);
    assert_eq!(found, (0..words).map(content).collect::<Vec<u32>>());
}

/// One control, one event behind the start of the items that it comes with.
fn with_control(_: &Entry) {
    let piece = |items: u32, which: u32, value: u32| form("sendpic.zi6_zi2_zi18", &[items - 1, which, value]);
    // The sender sends on while it sets controls of its own; each kind of control.
    for (which, value) in [(0, NEUTRAL), (1, NEUTRAL), (2, TARGET / 4), (3, 0)] {
        expect(&(delay(23) + &send(2, 0) + &piece(3, which, value)), &receiver(5), [28, 63], &[0, 1, 2, 3, 4]);
    }
    // A receiver that sends nothing: the controls of its row at events 4 and 53.
    let row = select(1, 0) + &delay(2) + &piece(1, 0, NEUTRAL) + &delay(48) + &piece(1, 2, TARGET / 4) + &delay(8);
    expect(&(delay(23) + &send(3, 0)), &row, [26, 61], &[0, 1, 2]);
}

/// Two controls at one event; the stream starts again at an address.
fn with_two_controls(_: &Entry) {
    let pair = |items: u32, index: u32, direction: u32, address: u32, source: u32| {
        form("sendpicp.zi6_zi18_zi3_zi1_zi18_zi14", &[items - 1, SOURCE / 4 + index, direction, 0, address / 4, source])
    };
    // 52 words: the selection ends where the pointer is set.
    let row = select(1, 0) + &delay(51) + &pair(1, 0, 0, TARGET, NEUTRAL) + &delay(57);
    // The word lies at a multiple of 8, behind a select and a delay.
    let all: Vec<u32> = (0..52).collect();
    expect(&(delay(23) + &send(52, 0)), &row, [75, 110], &all);
    let sender = delay(22) + &delay(1) + &pair(4, 100, 3, TARGET, NEUTRAL);
    expect(&sender, &receiver(4), [27, 62], &[100, 101, 102, 103]);
}

pub(crate) fn scene(entry: &Entry) -> Option<Scene> {
    Some(match entry.mnemonic {
        "delay" => delays,
        "delaypic" | "delayxpic" => controls,
        "send" => sends,
        "sendoff" => continued,
        "sendpic" => with_control,
        "sendpicp" => with_two_controls,
        _ => return None,
    })
}
