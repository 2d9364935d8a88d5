//! Rules of tiles, segments, names and program points (package.md 2, 6, 7, 8).

use std::collections::BTreeMap;

use ipu21::tile::{self, PhysTile};
use ipu21::{isa, memory};

use crate::checkpoint::Checkpoint;
use crate::debug::SymbolKind;
use crate::fault::Fault;
use crate::image::{Segment, Tile};
use crate::package::Package;
use crate::profile::{Point, StepKind};

pub(crate) fn check(package: &Package, faults: &mut Vec<Fault>) {
    if package.tiles.len() != tile::COUNT {
        faults.push(Fault::TileCount { expected: tile::COUNT as u32, found: package.tiles.len() as u64 });
    }
    for pair in package.tiles.windows(2) {
        if pair[0].tile >= pair[1].tile {
            faults.push(Fault::TileOrder { previous: pair[0].tile, tile: pair[1].tile });
        }
    }
    package.tiles.iter().for_each(|tile| check_tile(package, tile, faults));
    blobs(package, faults);
}

fn blobs(package: &Package, faults: &mut Vec<Fault>) {
    let mut known: BTreeMap<&[u8], u32> = BTreeMap::new();
    for (number, contents) in (0..).zip(package.blobs.contents()) {
        if contents.last() == Some(&0) {
            faults.push(Fault::ZeroTail { blob: number, bytes: contents.len() as u64 });
        }
        if let Some(first) = known.insert(contents, number) {
            faults.push(Fault::RepeatedBlob { first, second: number });
        }
    }
}

fn check_tile(package: &Package, record: &Tile, faults: &mut Vec<Fault>) {
    let tile = record.tile;
    if record.entry != memory::ENTRY {
        faults.push(Fault::Entry { tile, expected: memory::ENTRY, found: record.entry });
    }
    let lowest = record.segments.iter().map(|segment| segment.address).min();
    if lowest != Some(memory::ENTRY) {
        faults.push(Fault::LowestSegment { tile, expected: memory::ENTRY, found: lowest });
    }
    record.segments.iter().for_each(|segment| check_segment(package, tile, segment, faults));
    for pair in record.segments.windows(2) {
        if pair[0].end() > pair[1].address {
            let (first, first_end, second) = (pair[0].address, pair[0].end(), pair[1].address);
            faults.push(Fault::SegmentOverlap { tile, first, first_end, second });
        }
    }
    not_executable(record, "entry", record.entry, 4, faults);
    if let Some(address) = record.completion
        && !(address.is_multiple_of(4) && memory::contains(address, 4))
    {
        faults.push(Fault::Completion { tile, address });
    }
}

fn check_segment(package: &Package, tile: PhysTile, segment: &Segment, faults: &mut Vec<Fault>) {
    let (address, memory_bytes) = (segment.address, segment.memory_bytes);
    match package.blobs.get(segment.data) {
        None => faults.push(Fault::NoBlob { tile, address, blob: segment.data.0 }),
        Some(data) if data.len() as u64 > u64::from(memory_bytes) => {
            faults.push(Fault::DataSize { tile, address, data_bytes: data.len() as u64, memory_bytes });
        }
        Some(_) => {}
    }
    if !address.is_multiple_of(4) {
        faults.push(Fault::Alignment { tile, address });
    }
    let end = u64::from(address) + u64::from(memory_bytes);
    if end > u64::from(memory::LOADABLE_END) {
        faults.push(Fault::BeyondLoadable { tile, address, end, limit: memory::LOADABLE_END });
    }
    if segment.access.execute && end > u64::from(memory::REGION1) {
        faults.push(Fault::Execute { tile, address, end: segment.end(), limit: memory::REGION1 });
    }
    let window = package.target.host_window;
    if !segment.in_host_window && address < window.1 && segment.end() > window.0 {
        faults.push(Fault::HostWindow { tile, address, bytes: memory_bytes, window });
    }
}

/// `[address, address + bytes)` lies in one executable segment.
fn not_executable(record: &Tile, owner: &str, address: u32, bytes: u32, faults: &mut Vec<Fault>) {
    let holds = |segment: &Segment| segment.access.execute && segment.holds(address, bytes);
    if !record.segments.iter().any(holds) {
        faults.push(Fault::NotExecutable { owner: owner.to_owned(), tile: record.tile, address, bytes });
    }
}

/// Sets, listings, symbols and steps.
pub(crate) fn names(package: &Package, faults: &mut Vec<Fault>) {
    for (number, set) in (0..).zip(&package.tile_sets) {
        if set.0.is_empty() || set.0.windows(2).any(|pair| pair[0] >= pair[1]) {
            faults.push(Fault::TileSet { set: number });
        }
    }
    symbols(package, faults);
    steps(package, faults);
}

fn symbols(package: &Package, faults: &mut Vec<Fault>) {
    for (index, symbol) in (0..).zip(&package.symbols) {
        if symbol.name.is_empty() {
            faults.push(Fault::EmptyName { what: "symbol", index });
        }
        if !memory::contains(symbol.address, symbol.bytes) {
            let (address, bytes) = (symbol.address, symbol.bytes);
            faults.push(Fault::SymbolMemory { symbol: symbol.name.clone(), address, bytes });
        }
        let owner = || format!("symbol {}", symbol.name);
        match symbol.kind {
            SymbolKind::Code { listing } if listing as usize >= package.listings.len() => {
                faults.push(Fault::NoSuch { what: "listing", owner: owner(), index: listing });
            }
            _ => {}
        }
        if matches!(symbol.kind, SymbolKind::Code { .. } | SymbolKind::Program | SymbolKind::Row { .. }) {
            let point = Point { tiles: symbol.tiles, address: symbol.address };
            executable_points(package, &owner(), &[point], symbol.bytes, faults);
        } else if package.tile_sets.get(symbol.tiles.0 as usize).is_none() {
            faults.push(Fault::NoSuch { what: "tile set", owner: owner(), index: symbol.tiles.0 });
        }
    }
}

fn steps(package: &Package, faults: &mut Vec<Fault>) {
    let profile = &package.profile;
    for (number, step) in profile.steps.iter().enumerate() {
        let owner = format!("step {number} ({})", step.name);
        if let Some(index) = step.operation.filter(|index| *index as usize >= profile.operations.len()) {
            faults.push(Fault::NoSuch { what: "operation", owner: owner.clone(), index });
        }
        match step.kind {
            StepKind::Checkpoint { checkpoint } if checkpoint as usize >= package.checkpoints.len() => {
                faults.push(Fault::NoSuch { what: "checkpoint", owner: owner.clone(), index: checkpoint });
            }
            _ => {}
        }
        executable_points(package, &owner, &step.starts, 4, faults);
        once(package, &owner, &step.starts, 0, faults);
    }
    executable_points(package, "end of the last step", &profile.end, 4, faults);
    once(package, "end of the last step", &profile.end, 0, faults);
}

/// Every tile of the points has `bytes` of executable memory there.
fn executable_points(package: &Package, owner: &str, points: &[Point], bytes: u32, faults: &mut Vec<Fault>) {
    for point in points {
        let Some(set) = package.tile_sets.get(point.tiles.0 as usize) else {
            faults.push(Fault::NoSuch { what: "tile set", owner: owner.to_owned(), index: point.tiles.0 });
            continue;
        };
        for record in set.0.iter().filter_map(|tile| package.tile(*tile)) {
            not_executable(record, owner, point.address, bytes, faults);
        }
    }
}

/// Every tile is in at least `least` points and in at most one.
fn once(package: &Package, owner: &str, points: &[Point], least: u32, faults: &mut Vec<Fault>) {
    let mut counts = vec![0_u32; tile::COUNT];
    for set in points.iter().filter_map(|point| package.tile_sets.get(point.tiles.0 as usize)) {
        set.0.iter().for_each(|tile| counts[tile.index()] += 1);
    }
    for (tile, found) in PhysTile::all().zip(counts) {
        if found < least || found > 1 {
            faults.push(Fault::Points { owner: owner.to_owned(), tile, found });
        }
    }
}

/// Traps, their words and their places.
pub(crate) fn checkpoints(package: &Package, faults: &mut Vec<Fault>) {
    for (number, checkpoint) in (0..).zip(&package.checkpoints) {
        let name = &checkpoint.name;
        if name.is_empty() {
            faults.push(Fault::EmptyName { what: "checkpoint", index: number });
        }
        if checkpoint.operation as usize >= package.profile.operations.len() {
            faults.push(Fault::NoSuch { what: "operation", owner: format!("checkpoint {name}"), index: checkpoint.operation });
        }
        let expected = (number % 2) as u32;
        if checkpoint.trap != expected {
            faults.push(Fault::TrapNumber { checkpoint: name.clone(), expected, found: checkpoint.trap });
        }
        if checkpoint.resume_word != isa::NOP {
            let found = checkpoint.resume_word;
            faults.push(Fault::ResumeWord { checkpoint: name.clone(), expected: isa::NOP, found });
        }
        trap_words(package, checkpoint, Checkpoint::trap_word(expected), faults);
    }
}

fn trap_words(package: &Package, checkpoint: &Checkpoint, expected: u32, faults: &mut Vec<Fault>) {
    let name = &checkpoint.name;
    let owner = format!("checkpoint {name}");
    let mut wrong = |tile, found| faults.push(Fault::TrapWord { checkpoint: name.clone(), tile, expected, found });
    if checkpoint.trap_word != expected {
        wrong(None, Some(checkpoint.trap_word));
    }
    for record in &package.tiles {
        if let Some(address) = package.address_on(&checkpoint.points, record.tile) {
            let found = package.word_at(record, address);
            if found != Some(expected) {
                wrong(Some(record.tile), found);
            }
        }
    }
    executable_points(package, &owner, &checkpoint.points, 4, faults);
    once(package, &owner, &checkpoint.points, 1, faults);
}
