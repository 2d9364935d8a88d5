//! How much memory a program needs on its fullest tile, before placement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::program::{Expanded, Region};

/// Bytes that buffers may not use: entry stub, host staging, completion word, worker scratch, code and rows
/// (machine.md b.3). The least a program needs; placement knows exactly.
pub const RESERVED: u64 = 0xc000;
/// Bytes of a tile.
pub const MEMORY: u64 = 0x9_c000;
/// Bytes of a tile that a program may use and still be placed easily.
pub const ROOMY: u64 = MEMORY / 8 * 5;
/// Bytes of region 1.
pub const INTERLEAVED: u64 = 0x6_8000;

/// Largest sums over tiles and steps of the buffers alive together. Buffers that are never alive count nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peaks {
    /// Buffers that may lie outside region 1.
    pub standard: u64,
    /// Buffers that must lie in region 1.
    pub interleaved: u64,
    /// All buffers.
    pub total: u64,
    /// Largest buffer.
    pub largest: u64,
    /// Its name.
    pub largest_name: String,
}

impl Peaks {
    /// The sums leave three eighths of a tile free, so that placement finds a place for everything.
    #[must_use]
    pub fn roomy(&self) -> bool {
        self.fit() && self.interleaved <= INTERLEAVED / 8 * 5 && self.total <= ROOMY
    }

    /// The sums fit a tile. Necessary, not sufficient: conflict units and alignment are placement's.
    #[must_use]
    pub fn fit(&self) -> bool {
        self.interleaved <= INTERLEAVED && self.total + RESERVED <= MEMORY && self.largest <= INTERLEAVED
    }
}

/// Adds up the buffers of every tile, step by step. Tiles with the same buffers are added up once.
#[must_use]
pub fn peaks(program: &Expanded) -> Peaks {
    let mut of_tile: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, buffer) in program.buffers.iter().enumerate() {
        buffer.tiles.iter().for_each(|tile| of_tile.entry(*tile).or_default().push(index));
    }
    let mut classes: Vec<_> = of_tile.into_values().collect();
    classes.sort_unstable();
    classes.dedup();
    let largest = program.buffers.iter().max_by_key(|buffer| buffer.bytes);
    let mut peaks = Peaks {
        largest: largest.map_or(0, |buffer| u64::from(buffer.bytes)),
        largest_name: largest.map_or_else(String::new, |buffer| buffer.name.clone()),
        ..Peaks::default()
    };
    for class in classes {
        add_class(program, &class, &mut peaks);
    }
    peaks
}

fn add_class(program: &Expanded, class: &[usize], peaks: &mut Peaks) {
    let steps = program.steps.len().max(1);
    let mut change = vec![(0i64, 0i64); steps + 1];
    for &index in class {
        let buffer = &program.buffers[index];
        let first = buffer.first_step.map_or(0, |step| step as usize);
        let last = buffer.last_step.map_or(steps - 1, |step| step as usize);
        let bytes = i64::from(buffer.bytes) + i64::from(buffer.readable_tail);
        let (standard, interleaved) = if buffer.region == Region::One { (0, bytes) } else { (bytes, 0) };
        change[first].0 += standard;
        change[first].1 += interleaved;
        change[last + 1].0 -= standard;
        change[last + 1].1 -= interleaved;
    }
    let (mut standard, mut interleaved) = (0i64, 0i64);
    for (more_standard, more_interleaved) in &change[..steps] {
        standard += more_standard;
        interleaved += more_interleaved;
        peaks.standard = peaks.standard.max(standard.unsigned_abs());
        peaks.interleaved = peaks.interleaved.max(interleaved.unsigned_abs());
        peaks.total = peaks.total.max((standard + interleaved).unsigned_abs());
    }
}
