//! How much memory a program needs on its fullest tile, before placement.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};

use crate::program::{Buffer, Expanded, Region, Step};

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
    /// Where the first of the sums that do not fit is largest; of the total when all of them fit.
    pub fullest: Fullest,
}

/// What is alive on the fullest tile at its fullest step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fullest {
    /// Logical tile under the mapping of the program, the lowest of those alike.
    pub tile: u16,
    /// The first such step.
    pub step: u32,
    /// What the step does: `exchange`, `product`, `softmax`.
    pub what: String,
    /// Operation the step serves; `None`: a checkpoint.
    pub operation: Option<u32>,
    /// Names and bytes of the buffers alive, largest first, at most [`Fullest::NAMED`].
    pub alive: Vec<(String, u64)>,
    /// Number and bytes of the others.
    pub others: (u32, u64),
}

impl Fullest {
    /// Buffers that are named.
    pub const NAMED: usize = 5;
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
    let largest = program.buffers.iter().max_by_key(|buffer| buffer.bytes);
    let mut peaks = Peaks {
        largest: largest.map_or(0, |buffer| u64::from(buffer.bytes)),
        largest_name: largest.map_or_else(String::new, |buffer| buffer.name.clone()),
        ..Peaks::default()
    };
    let classes = classes(program);
    let of_class: Vec<_> = classes.iter().map(|(class, _)| sums(program, class)).collect();
    for sum in of_class.iter().flatten() {
        peaks.standard = peaks.standard.max(sum.standard);
        peaks.interleaved = peaks.interleaved.max(sum.interleaved);
        peaks.total = peaks.total.max(sum.total());
    }
    let is_interleaved = peaks.total + RESERVED <= MEMORY && peaks.interleaved > INTERLEAVED;
    let mut places = Vec::new();
    for ((class, tile), sums) in classes.iter().zip(&of_class) {
        let counted = sums.iter().map(|sum| if is_interleaved { sum.interleaved } else { sum.total() });
        places.extend(counted.zip(0..).map(|(bytes, step)| (bytes, Reverse(*tile), Reverse(step), class)).max());
    }
    let place = places.into_iter().max();
    if let Some((_, Reverse(tile), Reverse(step), class)) = place {
        peaks.fullest = fullest(program, class, tile, step);
    }
    peaks
}

/// The distinct sets of buffers that tiles have, each with its lowest tile.
fn classes(program: &Expanded) -> Vec<(Vec<usize>, TileId)> {
    let mut of_tile: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, buffer) in program.buffers.iter().enumerate() {
        buffer.tiles.iter().for_each(|tile| of_tile.entry(*tile).or_default().push(index));
    }
    let mut classes = BTreeMap::new();
    for (tile, class) in of_tile {
        classes.entry(class).or_insert(tile);
    }
    classes.into_iter().collect()
}

/// Bytes alive together.
#[derive(Clone, Copy, Default)]
struct Sum {
    standard: u64,
    interleaved: u64,
}

impl Sum {
    fn total(self) -> u64 {
        self.standard + self.interleaved
    }
}

/// First and last step of a buffer.
fn lifetime(program: &Expanded, buffer: &Buffer) -> (usize, usize) {
    let last = program.steps.len().max(1) - 1;
    (buffer.first_step.map_or(0, |step| step as usize), buffer.last_step.map_or(last, |step| step as usize))
}

fn bytes(buffer: &Buffer) -> u64 {
    u64::from(buffer.bytes) + u64::from(buffer.readable_tail)
}

/// The sums of a set of buffers by step.
fn sums(program: &Expanded, class: &[usize]) -> Vec<Sum> {
    let steps = program.steps.len().max(1);
    let mut change = vec![(Sum::default(), Sum::default()); steps + 1];
    for &index in class {
        let buffer = &program.buffers[index];
        let (first, last) = lifetime(program, buffer);
        let of_region =
            |sum: &mut Sum| *if buffer.region == Region::One { &mut sum.interleaved } else { &mut sum.standard } += bytes(buffer);
        of_region(&mut change[first].0);
        of_region(&mut change[last + 1].1);
    }
    let mut sum = Sum::default();
    let after = |(born, dead): &(Sum, Sum)| {
        sum.standard = sum.standard + born.standard - dead.standard;
        sum.interleaved = sum.interleaved + born.interleaved - dead.interleaved;
        sum
    };
    change[..steps].iter().map(after).collect()
}

fn fullest(program: &Expanded, class: &[usize], tile: TileId, step: usize) -> Fullest {
    let alive = class.iter().map(|index| &program.buffers[*index]).filter(|buffer| {
        let (first, last) = lifetime(program, buffer);
        (first..=last).contains(&step)
    });
    let mut alive: Vec<_> = alive.map(|buffer| (buffer.name.clone(), bytes(buffer))).collect();
    alive.sort_by(|(one, size), (other, than)| (than, one).cmp(&(size, other)));
    let rest = alive.split_off(alive.len().min(Fullest::NAMED));
    let (what, operation) = match program.steps.get(step) {
        Some(Step::Exchange { operation, .. }) => ("exchange".to_owned(), Some(*operation)),
        Some(Step::Compute { operation, what, .. }) => (what.clone(), Some(*operation)),
        Some(Step::Checkpoint { .. }) | None => ("checkpoint".to_owned(), None),
    };
    let others = (u32::try_from(rest.len()).unwrap_or(u32::MAX), rest.iter().map(|(_, bytes)| bytes).sum());
    Fullest { tile: tile.get(), step: u32::try_from(step).unwrap_or(u32::MAX), what, operation, alive, others }
}
