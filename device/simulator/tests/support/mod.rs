//! Builds small tile images word by word.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::Arc;

use ipu21::isa::{self, FormId};
use ipu21::parameters::Parameters;
use ipu21::tile::PhysTile;
use simulator::{CallMeasurement, Chip, ChipOptions, Fault, Segment, SingleTile};

/// First instruction of a tile.
pub(crate) const ENTRY: u32 = 0x4c010;
/// Where rows lie unless a case says otherwise.
pub(crate) const ROW: u32 = 0x50000;
/// Entry of a kernel on a tile of its own.
pub(crate) const KERNEL: u32 = 0x4c100;
/// What that kernel's workers execute.
pub(crate) const WORKER: u32 = KERNEL + 0x100;
/// Input of a kernel.
pub(crate) const DATA: u32 = 0x60000;
/// Output of a kernel.
pub(crate) const OUT: u32 = 0x64000;

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

/// A kernel that runs the same worker code six times.
pub(crate) fn on_workers(code: &[u32]) -> Vec<Segment> {
    let mut code = code.to_vec();
    code.push(word("exitz.m", &[15]));
    vec![segment(KERNEL, &launcher()), segment(WORKER, &code)]
}

/// Starts six workers, joins them and returns.
pub(crate) fn launcher() -> Vec<u32> {
    vec![word("setzi.m_zi20", &[1, WORKER]), word("runall.mm_zi16", &[1, 15, 0]), word("sync.zi4", &[2]), word("br.m", &[10])]
}

/// A tile of its own that holds segments.
pub(crate) fn tile_with(segments: &[Segment]) -> SingleTile {
    let mut tile = SingleTile::new(&Parameters::shipped(), 3);
    tile.load(segments).unwrap();
    tile
}

/// Calls the kernel in segments.
pub(crate) fn run(segments: &[Segment]) -> (SingleTile, Result<CallMeasurement, Fault>) {
    let mut tile = tile_with(segments);
    let result = tile.run_call(KERNEL, 0);
    (tile, result)
}

/// Words of a tile's memory that somebody wrote.
pub(crate) fn words_at(tile: &SingleTile, address: u32, count: usize) -> Vec<u32> {
    let bytes = tile.read(address, 4 * count as u32).unwrap();
    bytes.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect()
}
