//! Builds small tile images word by word.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::Arc;

use ipu21::isa::{self, FormId};
use ipu21::parameters::Parameters;
use ipu21::tile::PhysTile;
use simulator::{Chip, ChipOptions, Segment};

/// First instruction of a tile.
pub(crate) const ENTRY: u32 = 0x4c010;
/// Where rows lie unless a case says otherwise.
pub(crate) const ROW: u32 = 0x50000;

/// One instruction word by the id of its form.
pub(crate) fn word(id: &str, operands: &[u32]) -> u32 {
    isa::encode(FormId::named(id).expect(id), operands, false).expect(id).word()
}

/// A segment of words.
pub(crate) fn segment(address: u32, words: &[u32]) -> Segment {
    let data: Arc<[u8]> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Segment { address, memory_bytes: data.len() as u32, data }
}

/// `call $m10, address`.
pub(crate) fn call(address: u32) -> u32 {
    word("call.m_zi20", &[10, address / 4])
}

/// `bri` to itself at `address`.
pub(crate) fn stop(address: u32) -> u32 {
    word("bri.zi19", &[address / 4])
}

/// Code that ends in a stop.
pub(crate) fn program(mut words: Vec<u32>) -> Segment {
    words.push(stop(ENTRY + 4 * words.len() as u32));
    segment(ENTRY, &words)
}

/// A chip with this many threads.
pub(crate) fn chip(threads: usize) -> Chip {
    Chip::new(Arc::new(Parameters::shipped()), ChipOptions { seed: 11, threads, clock_limit: 100_000_000 })
}

/// Code of a tile that sits out one internal barrier.
pub(crate) fn bystander() -> Segment {
    program(vec![word("sans.zi19", &[0]), word("sync.zi4", &[1])])
}

/// Loads `idle` into every tile that `busy` does not name, and the segments of those it names.
pub(crate) fn load_all(chip: &mut Chip, busy: &[(PhysTile, Vec<Segment>)], idle: &Segment) {
    for tile in PhysTile::all() {
        match busy.iter().find(|(id, _)| *id == tile) {
            Some((_, segments)) => chip.load(tile, segments).unwrap(),
            None => chip.load(tile, std::slice::from_ref(idle)).unwrap(),
        }
    }
}
