//! Checks an expanded program by replaying which bytes are written. Knows the program, the manifests and nothing of plans.
//!
//! What holds of a program that passes:
//! 1. buffers have distinct names, sizes in eights, tiles in ascending order; a tile is in one group of a step;
//! 2. operands lie inside their buffers (tails inside the readable tails), aligned, in the region their kernel wants, on
//!    tiles that have the buffer; operands to be kept apart are different buffers;
//! 3. every byte a call or transfer reads, or the host reads back, was written before by the host, a transfer or a call;
//! 4. the destinations of a phase overlap neither each other nor what the phase sends;
//! 5. buffers are touched inside their lifetimes only;
//! 6. the pieces of inputs, outputs and checkpoints hold every element once, those of weights at least once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use exchange::{BufferId, Place};
use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};

use crate::footprint::{self, Footprint};
use crate::kernel_table::{Access, KernelTable, OperandFacts, printed};
use crate::program::{Binding, Call, Expanded, Group, Order, Piece, Region, Step};

/// What can be wrong with an expanded program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// Rule 1, of a buffer.
    Buffer {
        /// Its name.
        buffer: String,
        /// Why.
        reason: String,
    },
    /// Rule 1, of a step.
    TwoGroups {
        /// The step.
        step: u32,
        /// The tile in two groups.
        tile: TileId,
    },
    /// A number that names nothing: a buffer, variant, phase, checkpoint or operation.
    Dangling {
        /// The step.
        step: u32,
        /// What it is.
        what: String,
    },
    /// Rule 2.
    Operand {
        /// The step.
        step: u32,
        /// The kernel variant.
        variant: String,
        /// The operand.
        operand: String,
        /// Why.
        reason: String,
    },
    /// Rule 3.
    Unwritten {
        /// The step; none: after the last.
        step: Option<u32>,
        /// The tile.
        tile: TileId,
        /// The buffer.
        buffer: String,
        /// Bytes `[start, end)` of the buffer.
        bytes: (u32, u32),
    },
    /// Rule 4.
    Overlap {
        /// The step.
        step: u32,
        /// The tile.
        tile: TileId,
        /// The buffer.
        buffer: String,
        /// Bytes `[start, end)` of the buffer.
        bytes: (u32, u32),
    },
    /// A transfer from or to a place outside its buffer.
    Outside {
        /// The step.
        step: u32,
        /// The place.
        place: Place,
        /// Words.
        words: u32,
    },
    /// Rule 5.
    Lifetime {
        /// The step.
        step: u32,
        /// The buffer.
        buffer: String,
    },
    /// Rule 6.
    Cover {
        /// The value.
        value: String,
        /// Elements of the value in padded index space.
        expected: u64,
        /// Elements held by pieces.
        found: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer { buffer, reason } => write!(f, "buffer `{buffer}`: {reason}"),
            Self::TwoGroups { step, tile } => write!(f, "step {step}: tile {tile} is in two groups"),
            Self::Dangling { step, what } => write!(f, "step {step}: there is no {what}"),
            Self::Operand { step, variant, operand, reason } => write!(f, "step {step}: {variant}, operand {operand}: {reason}"),
            Self::Unwritten { step: Some(step), tile, buffer, bytes } => {
                write!(f, "step {step}: tile {tile} reads bytes {}..{} of `{buffer}` that nobody wrote", bytes.0, bytes.1)
            }
            Self::Unwritten { step: None, tile, buffer, bytes } => {
                write!(f, "the host reads bytes {}..{} of `{buffer}` on tile {tile} that nobody wrote", bytes.0, bytes.1)
            }
            Self::Overlap { step, tile, buffer, bytes } => {
                write!(f, "step {step}: bytes {}..{} of `{buffer}` on tile {tile} are stored twice or sent and stored", bytes.0, bytes.1)
            }
            Self::Outside { step, place, words } => write!(
                f,
                "step {step}: {words} words at offset {} of buffer {} on tile {} are not inside it",
                place.offset, place.buffer.0, place.tile
            ),
            Self::Lifetime { step, buffer } => write!(f, "step {step}: `{buffer}` is touched outside its lifetime"),
            Self::Cover { value, expected, found } => {
                write!(f, "`{value}`: expected pieces that hold {expected} elements once, found {found}")
            }
        }
    }
}

impl std::error::Error for Fault {}

/// Replays a program.
///
/// # Errors
/// All faults of the first stage that has any: buffers, then steps in order up to the first faulty one, then bindings.
pub fn check(program: &Expanded, kernels: &KernelTable) -> Result<(), Vec<Fault>> {
    let mut replay = Replay { program, kernels, facts: Vec::new(), written: BTreeMap::new(), faults: Vec::new() };
    replay.buffers();
    replay.stop_at_faults()?;
    replay.host_writes();
    replay.stop_at_faults()?;
    for (number, step) in (0u32..).zip(&program.steps) {
        replay.step(number, step);
        replay.stop_at_faults()?;
    }
    for binding in program.bindings.iter().filter(|binding| binding.group == Group::Output) {
        replay.host_reads(None, binding);
    }
    replay.stop_at_faults()
}

/// `[start, end)`.
type Range = (u32, u32);
/// First byte, end, and whether the bytes are stored rather than sent.
type Span = (u32, u32, bool);

struct Replay<'a> {
    program: &'a Expanded,
    kernels: &'a KernelTable,
    /// Operands of every variant.
    facts: Vec<Vec<(OperandFacts, Footprint)>>,
    written: BTreeMap<(TileId, BufferId), Intervals>,
    faults: Vec<Fault>,
}

impl Replay<'_> {
    fn stop_at_faults(&mut self) -> Result<(), Vec<Fault>> {
        if self.faults.is_empty() { Ok(()) } else { Err(std::mem::take(&mut self.faults)) }
    }

    fn name(&self, buffer: BufferId) -> String {
        self.program.buffers.get(buffer.0 as usize).map_or_else(|| format!("number {}", buffer.0), |buffer| buffer.name.clone())
    }

    fn buffers(&mut self) {
        let mut names = BTreeSet::new();
        for buffer in &self.program.buffers {
            let mut refuse = |reason: &str| self.faults.push(Fault::Buffer { buffer: buffer.name.clone(), reason: reason.to_owned() });
            if !names.insert(&buffer.name) {
                refuse("another buffer has this name");
            }
            if buffer.bytes == 0 || !buffer.bytes.is_multiple_of(8) {
                refuse("its size is no multiple of 8 above 0");
            }
            if buffer.tiles.is_empty() || !buffer.tiles.windows(2).all(|pair| pair[0] < pair[1]) {
                refuse("its tiles are not in ascending order");
            }
        }
        for variant in &self.program.variants {
            let refuse = |reason: String| Fault::Operand { step: 0, variant: printed(variant), operand: "all".to_owned(), reason };
            match self.kernels.accepts(variant).and_then(|()| self.kernels.operands(variant)) {
                Err(fault) => self.faults.push(refuse(fault.to_string())),
                Ok(facts) => {
                    let with_footprint = |fact: OperandFacts| {
                        let bytes = u32::try_from(fact.bytes).unwrap_or(u32::MAX);
                        let whole = Footprint { count: 1, bytes, stride: bytes };
                        let footprint = footprint::of(variant, &fact.name).unwrap_or(whole);
                        (fact, footprint)
                    };
                    self.facts.push(facts.into_iter().map(with_footprint).collect());
                }
            }
        }
    }

    /// Inputs and weights; also rule 6 for them.
    fn host_writes(&mut self) {
        for binding in self.program.bindings.iter().filter(|binding| binding.group != Group::Output) {
            self.cover(binding);
            for piece in &binding.pieces {
                for (start, end) in runs_of(piece) {
                    self.write(None, piece.tile, piece.buffer, start, end);
                }
            }
        }
    }

    fn host_reads(&mut self, step: Option<u32>, binding: &Binding) {
        self.cover(binding);
        for piece in &binding.pieces {
            for (start, end) in runs_of(piece) {
                self.read(step, piece.tile, piece.buffer, start, end);
            }
        }
    }

    /// Rule 6 by areas: pieces of one value are disjoint when no two overlap, and then cover it when their areas add up.
    fn cover(&mut self, binding: &Binding) {
        let expected = elements(binding);
        let mut rectangles: Vec<_> = binding.pieces.iter().map(|piece| (piece.rows, piece.columns)).collect();
        rectangles.sort_unstable();
        if binding.group == Group::Weight {
            rectangles.dedup();
        }
        let found: u64 = rectangles.iter().map(|(rows, columns)| extent(*rows) * extent(*columns)).sum();
        let is_once = binding.group == Group::Weight || (found == expected && !overlapping(&rectangles));
        if !is_once || found < expected {
            self.faults.push(Fault::Cover { value: binding.name.clone(), expected, found });
        }
    }

    fn step(&mut self, number: u32, step: &Step) {
        match step {
            Step::Exchange { phase, .. } => self.exchange(number, *phase),
            Step::Compute { groups, .. } => {
                let mut seen = BTreeSet::new();
                for group in groups {
                    for tile in &group.tiles {
                        if !seen.insert(*tile) {
                            self.faults.push(Fault::TwoGroups { step: number, tile: *tile });
                        }
                    }
                    for call in &group.calls {
                        self.call(number, call, &group.tiles);
                    }
                }
            }
            Step::Checkpoint { checkpoint } => match self.program.checkpoints.get(*checkpoint as usize) {
                Some(checkpoint) => self.host_reads(Some(number), &checkpoint.tensor),
                None => self.dangling(number, format!("checkpoint {checkpoint}")),
            },
        }
    }

    fn dangling(&mut self, step: u32, what: String) {
        self.faults.push(Fault::Dangling { step, what });
    }

    fn exchange(&mut self, step: u32, phase: u32) {
        let Some(problem) = self.program.phases.get(phase as usize) else {
            return self.dangling(step, format!("phase {phase}"));
        };
        let mut busy: BTreeMap<(TileId, BufferId), Vec<Span>> = BTreeMap::new();
        for transfer in &problem.transfers {
            let bytes = transfer.words * 4;
            let places = std::iter::once((&transfer.source, false)).chain(transfer.destinations.iter().map(|place| (place, true)));
            for (place, stored) in places {
                if !self.holds(place.tile, place.buffer, place.offset, bytes) {
                    self.faults.push(Fault::Outside { step, place: *place, words: transfer.words });
                    return;
                }
                busy.entry((place.tile, place.buffer)).or_default().push((place.offset, place.offset + bytes, stored));
            }
            self.read(Some(step), transfer.source.tile, transfer.source.buffer, transfer.source.offset, transfer.source.offset + bytes);
        }
        for ((tile, buffer), mut spans) in busy {
            spans.sort_unstable();
            let mut reach = (0, false);
            for (start, end, stored) in spans {
                if start < reach.0 && (stored || reach.1) {
                    self.faults.push(Fault::Overlap { step, tile, buffer: self.name(buffer), bytes: (start, end) });
                }
                reach = (reach.0.max(end), if end > reach.0 { stored } else { reach.1 });
                if stored {
                    self.write(Some(step), tile, buffer, start, end);
                }
            }
        }
    }

    fn holds(&self, tile: TileId, buffer: BufferId, offset: u32, bytes: u32) -> bool {
        let Some(buffer) = self.program.buffers.get(buffer.0 as usize) else { return false };
        buffer.tiles.binary_search(&tile).is_ok() && offset.checked_add(bytes).is_some_and(|end| end <= buffer.bytes)
    }

    fn call(&mut self, step: u32, call: &Call, tiles: &[TileId]) {
        let Some(facts) = self.facts.get(call.kernel.0 as usize).cloned() else {
            return self.dangling(step, format!("variant {}", call.kernel.0));
        };
        if facts.len() != call.operands.len() {
            return self.dangling(step, format!("operand {} of variant {}", facts.len().min(call.operands.len()), call.kernel.0));
        }
        self.apart(step, call);
        for (operand, (fact, _)) in call.operands.iter().zip(&facts) {
            if let Err(reason) = self.operand(operand.buffer, operand.offset, fact, tiles) {
                let variant = printed(&self.program.variants[call.kernel.0 as usize]);
                self.faults.push(Fault::Operand { step, variant, operand: fact.name.clone(), reason });
                return;
            }
        }
        for tile in tiles {
            for wanted in [Access::Read, Access::Write] {
                for (operand, (fact, footprint)) in call.operands.iter().zip(&facts) {
                    if fact.access != wanted && fact.access != Access::ReadWrite {
                        continue;
                    }
                    for run in 0..footprint.count {
                        let start = operand.offset + run * footprint.stride;
                        let end = start + footprint.bytes;
                        match wanted {
                            Access::Read => self.read(Some(step), *tile, operand.buffer, start, end),
                            Access::Write | Access::ReadWrite => self.write(Some(step), *tile, operand.buffer, start, end),
                        }
                    }
                }
            }
        }
    }

    /// Operands to be kept apart are different buffers: inside one buffer nobody could.
    fn apart(&mut self, step: u32, call: &Call) {
        let variant = &self.program.variants[call.kernel.0 as usize];
        for (one, other) in self.kernels.apart(variant).unwrap_or_default() {
            if call.operands[one].buffer == call.operands[other].buffer {
                self.faults.push(Fault::Operand {
                    step,
                    variant: printed(variant),
                    operand: one.to_string(),
                    reason: format!("lies in one buffer with operand {other}, from which it must be kept apart"),
                });
            }
        }
    }

    fn operand(&self, buffer: BufferId, offset: u32, fact: &OperandFacts, tiles: &[TileId]) -> Result<(), String> {
        let Some(buffer) = self.program.buffers.get(buffer.0 as usize) else {
            return Err(format!("there is no buffer {}", buffer.0));
        };
        let end = u64::from(offset) + fact.bytes;
        if end > u64::from(buffer.bytes) {
            return Err(format!("reaches to byte {end} of {} of `{}`", buffer.bytes, buffer.name));
        }
        let tail = end + u64::from(fact.readable_tail);
        if tail > u64::from(buffer.bytes) + u64::from(buffer.readable_tail) {
            return Err(format!("may read to byte {tail} of `{}`", buffer.name));
        }
        if !offset.is_multiple_of(fact.align) || buffer.align < fact.align {
            return Err(format!("is not aligned to {} in `{}`", fact.align, buffer.name));
        }
        if fact.region != Region::Any && fact.region != buffer.region {
            return Err(format!("wants region {:?}, `{}` has {:?}", fact.region, buffer.name, buffer.region));
        }
        match tiles.iter().find(|tile| buffer.tiles.binary_search(tile).is_err()) {
            Some(tile) => Err(format!("tile {tile} has no `{}`", buffer.name)),
            None => Ok(()),
        }
    }

    fn alive(&mut self, step: Option<u32>, buffer: BufferId) {
        let Some(step) = step else { return };
        let found = &self.program.buffers[buffer.0 as usize];
        let is_alive = found.first_step.is_none_or(|first| first <= step) && found.last_step.is_none_or(|last| step <= last);
        if !is_alive {
            self.faults.push(Fault::Lifetime { step, buffer: found.name.clone() });
        }
    }

    fn read(&mut self, step: Option<u32>, tile: TileId, buffer: BufferId, start: u32, end: u32) {
        self.alive(step, buffer);
        if !self.written.get(&(tile, buffer)).is_some_and(|written| written.contain(start, end)) {
            self.faults.push(Fault::Unwritten { step, tile, buffer: self.name(buffer), bytes: (start, end) });
        }
    }

    fn write(&mut self, step: Option<u32>, tile: TileId, buffer: BufferId, start: u32, end: u32) {
        if !self.holds(tile, buffer, start, end - start) {
            let reason = format!("bytes {start}..{end} written on tile {tile} are not inside it");
            self.faults.push(Fault::Buffer { buffer: self.name(buffer), reason });
            return;
        }
        self.alive(step, buffer);
        self.written.entry((tile, buffer)).or_default().add(start, end);
    }
}

fn extent((start, end): (u32, u32)) -> u64 {
    u64::from(end) - u64::from(start)
}

/// Elements of the padded index space; rows that are one block are padded or not as the axis says.
fn elements(binding: &Binding) -> u64 {
    let length = |axis: &crate::program::ColumnAxis| u64::from(axis.parts) * u64::from(axis.padded);
    length(&binding.row_axis) * length(&binding.columns)
}

/// Two of the rectangles, sorted by rows, have an element in common.
fn overlapping(rectangles: &[(Range, Range)]) -> bool {
    rectangles.iter().enumerate().any(|(index, (rows, columns))| {
        let behind = rectangles[index + 1..].iter().take_while(|(other, _)| other.0 < rows.1);
        behind.into_iter().any(|(_, other)| other.0 < columns.1 && columns.0 < other.1)
    })
}

/// The byte runs of a piece, panel by panel.
fn runs_of(piece: &Piece) -> Vec<(u32, u32)> {
    let (rows, columns) = match piece.order {
        Order::ByColumn => (piece.rows, piece.columns),
        Order::ByRow => (piece.columns, piece.rows),
    };
    let bytes = (rows.1 - rows.0) * 32;
    let panels = (columns.1 - columns.0) / 16;
    (0..panels).map(|panel| piece.offset + panel * piece.panel_bytes).map(|start| (start, start + bytes)).collect()
}

/// Disjoint byte ranges, ascending, none touching the next.
#[derive(Clone, Debug, Default)]
struct Intervals {
    ranges: Vec<(u32, u32)>,
}

impl Intervals {
    fn contain(&self, start: u32, end: u32) -> bool {
        let after = self.ranges.partition_point(|range| range.0 <= start);
        start == end || (after > 0 && self.ranges[after - 1].1 >= end)
    }

    fn add(&mut self, start: u32, end: u32) {
        let first = self.ranges.partition_point(|range| range.1 < start);
        let last = self.ranges.partition_point(|range| range.0 <= end);
        let joined = self.ranges[first..last].iter().fold((start, end), |whole, range| (whole.0.min(range.0), whole.1.max(range.1)));
        self.ranges.splice(first..last, [joined]);
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut intervals = Intervals::default();
        for (start, end) in [(0, 4), (8, 12), (20, 24), (4, 8)] {
            intervals.add(start, end);
        }
        assert_eq!(intervals.ranges, [(0, 12), (20, 24)]);
        assert!(intervals.contain(2, 12) && !intervals.contain(2, 13) && !intervals.contain(12, 20));
    }
}
