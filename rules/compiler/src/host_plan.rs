//! Splits the host's tensors into batches: what every tile reads from or writes to its page slot in every host phase.
//!
//! In: the bindings of an [`Expanded`]. Out: [`HostPlan`], without addresses. A batch is what one load of the rolling data page
//! holds: one slot of [`SLOT_BYTES`] for each participating tile (machine.md e.6). [`check`] lists what holds of a plan.

use std::collections::{BTreeMap, BTreeSet};

use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};

use crate::program::{Binding, Expanded, Group, Operand, Piece};

/// Bytes of a tile's slot in the data page (machine.md e.1).
pub const SLOT_BYTES: u32 = 4096;
/// Bytes in front of slot 0: the command page (machine.md e.1).
pub const COMMAND_BYTES: u32 = 4096;
/// Slot offsets of outgoing parts are multiples of this, so that whole packets are long ones (machine.md e.3).
const LONG_UNIT: u32 = 64;
/// Largest payload of a packet to the host (machine.md e.3).
const OUTGOING_PACKET_BYTES: u32 = 256;
/// Packet headers that fit between the first packet word and the close-read target, less the closing read (machine.md e.5).
const OUTGOING_PACKETS: u32 = 42;

/// A contiguous part of a binding in the memory of one tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// The tile.
    pub tile: TileId,
    /// Where it starts.
    pub place: Operand,
    /// Byte offset in the binding's file.
    pub file_offset: u64,
    /// Size.
    pub bytes: u32,
    /// Index of the piece of the binding it belongs to.
    pub piece: u32,
}

/// What one host phase moves between a tile's slot and one place in its memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Part {
    /// Index into [`Expanded::bindings`].
    pub binding: u32,
    /// Byte offset in the binding's file.
    pub file_offset: u64,
    /// Byte offset in the slot.
    pub slot_offset: u32,
    /// Place in tile memory.
    pub place: Operand,
    /// Size, a multiple of 8.
    pub bytes: u32,
}

/// A tile's part in a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The tile.
    pub tile: TileId,
    /// In slot order, not empty.
    pub parts: Vec<Part>,
}

/// One load of the data page: two host barriers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Ascending tile, not empty.
    pub shares: Vec<Share>,
}

/// All host traffic of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPlan {
    /// Tiles with a slot, ascending; slot number = position.
    pub participants: Vec<TileId>,
    /// Weights, by the call `initialize`.
    pub initialize: Vec<Batch>,
    /// Inputs, by the call `run` before the first step.
    pub inputs: Vec<Batch>,
    /// Outputs, by the call `run` after the last step.
    pub outputs: Vec<Batch>,
}

/// Which way a batch moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the page to the tiles.
    ToTiles,
    /// From the tiles to the page.
    ToHost,
}

impl HostPlan {
    /// Every batch in program order with its way: weights, inputs, outputs. The position is the number of the host phase.
    pub fn batches(&self) -> impl Iterator<Item = (Way, &Batch)> {
        let to_tiles = self.initialize.iter().chain(&self.inputs).map(|batch| (Way::ToTiles, batch));
        to_tiles.chain(self.outputs.iter().map(|batch| (Way::ToHost, batch)))
    }

    /// Slot number of a participating tile.
    pub fn slot_of(&self, tile: TileId) -> Option<u32> {
        self.participants.binary_search(&tile).ok().map(|slot| slot as u32)
    }

    /// Offset of a tile's slot from the start of page 0.
    pub fn host_offset(&self, tile: TileId) -> Option<u32> {
        self.slot_of(tile).map(|slot| COMMAND_BYTES + slot * SLOT_BYTES)
    }
}

impl Batch {
    /// The parts of one tile; empty when it takes no part.
    pub fn parts_of(&self, tile: TileId) -> &[Part] {
        match self.shares.binary_search_by_key(&tile, |share| share.tile) {
            Ok(index) => &self.shares[index].parts,
            Err(_) => &[],
        }
    }
}

/// What is wrong with a plan of host traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A part is not a multiple of the transfer unit.
    OddSize {
        /// Name of the binding.
        binding: String,
        /// The tile.
        tile: TileId,
        /// Size found, in bytes.
        bytes: u32,
    },
    /// A part leaves its slot or overlaps its predecessor.
    OutsideSlot {
        /// Name of the binding.
        binding: String,
        /// The tile.
        tile: TileId,
        /// Byte offset in the slot.
        slot_offset: u32,
        /// Size found, in bytes.
        bytes: u32,
    },
    /// A tile has parts in a batch but no slot.
    NoSlot {
        /// The tile.
        tile: TileId,
    },
    /// The parts of a binding's slice do not cover it exactly once.
    Uncovered {
        /// Name of the binding.
        binding: String,
        /// The tile.
        tile: TileId,
        /// Byte offset in the binding's file.
        file_offset: u64,
        /// Size of the slice.
        slice_bytes: u32,
        /// Bytes that are moved, 0 when out of order.
        moved_bytes: u64,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OddSize { binding, tile, bytes } => {
                write!(f, "binding {binding}: a part of {bytes} bytes on tile {tile} is not a multiple of 8")
            }
            Self::OutsideSlot { binding, tile, slot_offset, bytes } => write!(
                f,
                "binding {binding}: {bytes} bytes at {slot_offset} leave the slot of {SLOT_BYTES} bytes of tile {tile} or meet another part"
            ),
            Self::NoSlot { tile } => write!(f, "tile {tile} moves host data but has no page slot"),
            Self::Uncovered { binding, tile, file_offset, slice_bytes, moved_bytes } => write!(
                f,
                "binding {binding}: of the slice of {slice_bytes} bytes at {file_offset} on tile {tile}, {moved_bytes} bytes are moved"
            ),
        }
    }
}

impl std::error::Error for Fault {}

/// Batches in file order of the bindings, each tile filling slot after slot.
pub fn plan(expanded: &Expanded) -> HostPlan {
    let participants: BTreeSet<TileId> = expanded.bindings.iter().flat_map(|binding| &binding.pieces).map(|piece| piece.tile).collect();
    HostPlan {
        participants: participants.into_iter().collect(),
        initialize: batches(expanded, Group::Weight),
        inputs: batches(expanded, Group::Input),
        outputs: batches(expanded, Group::Output),
    }
}

/// The contiguous parts of a binding in file order. The file holds the pieces densely, one after the other, each panel by
/// panel; neighbouring panels that also touch in memory are one slice.
pub fn slices(binding: &Binding) -> Vec<Slice> {
    let mut file_offset = 0;
    let mut slices = Vec::new();
    for (index, piece) in binding.pieces.iter().enumerate() {
        for (offset, bytes) in runs(piece) {
            let place = Operand { buffer: piece.buffer, offset };
            slices.push(Slice { tile: piece.tile, place, file_offset, bytes, piece: index as u32 });
            file_offset += u64::from(bytes);
        }
    }
    slices
}

/// Offset and size of each contiguous run of a piece.
fn runs(piece: &Piece) -> Vec<(u32, u32)> {
    let (along, across) = match piece.order {
        crate::program::Order::ByColumn => (piece.rows, piece.columns),
        crate::program::Order::ByRow => (piece.columns, piece.rows),
    };
    let panel = (along.1 - along.0) * 32;
    let panels = (across.1 - across.0) / 16;
    match panel == piece.panel_bytes {
        true => vec![(piece.offset, panel * panels)],
        false => (0..panels).map(|index| (piece.offset + index * piece.panel_bytes, panel)).collect(),
    }
}

fn batches(expanded: &Expanded, group: Group) -> Vec<Batch> {
    let mut slots: BTreeMap<TileId, Slots> = BTreeMap::new();
    for (index, binding) in expanded.bindings.iter().enumerate().filter(|(_, binding)| binding.group == group) {
        for slice in slices(binding) {
            slots.entry(slice.tile).or_default().push(group, index as u32, &slice);
        }
    }
    let count = slots.values().map(|slots| slots.full.len()).max().unwrap_or(0);
    let share = |number: usize| {
        slots.iter().filter_map(move |(tile, slots)| slots.full.get(number).map(|parts| Share { tile: *tile, parts: parts.clone() }))
    };
    (0..count).map(|number| Batch { shares: share(number).collect() }).collect()
}

/// The slots of one tile being filled.
#[derive(Default)]
struct Slots {
    full: Vec<Vec<Part>>,
    used: u32,
    packets: u32,
}

impl Slots {
    fn push(&mut self, group: Group, binding: u32, slice: &Slice) {
        let mut done = 0;
        while done < slice.bytes {
            let room = self.room(group);
            let bytes = room.min(slice.bytes - done);
            let place = Operand { buffer: slice.place.buffer, offset: slice.place.offset + done };
            let part = Part { binding, file_offset: slice.file_offset + u64::from(done), slot_offset: self.used, place, bytes };
            self.full.last_mut().expect("room opened a slot").push(part);
            self.used += bytes;
            self.packets += packets(bytes);
            done += bytes;
        }
    }

    /// Bytes that can be added at `used`, after opening a new slot when the last one is full.
    fn room(&mut self, group: Group) -> u32 {
        if group == Group::Output {
            self.used = self.used.next_multiple_of(LONG_UNIT);
        }
        // A part of 256 bytes and its remainder are at most two packets, so one that starts below the limit fits.
        let crowded = group == Group::Output && self.packets + packets(SLOT_BYTES.saturating_sub(self.used)) > OUTGOING_PACKETS;
        if self.full.is_empty() || self.used >= SLOT_BYTES || crowded {
            self.full.push(Vec::new());
            (self.used, self.packets) = (0, 0);
        }
        SLOT_BYTES - self.used
    }
}

/// Packets to the host for `bytes` from an offset that is a multiple of 64: long ones, then one short one.
fn packets(bytes: u32) -> u32 {
    let long = bytes / LONG_UNIT * LONG_UNIT;
    long.div_ceil(OUTGOING_PACKET_BYTES) + u32::from(long < bytes)
}

/// Every slice of every binding is moved exactly once in a batch of its group; parts of a tile stay apart inside its slot and
/// are multiples of 8 bytes; every tile that moves data has a slot.
pub fn check(expanded: &Expanded, plan: &HostPlan) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    let groups = [(Group::Weight, &plan.initialize), (Group::Input, &plan.inputs), (Group::Output, &plan.outputs)];
    let mut moved: BTreeMap<(u32, TileId), Vec<&Part>> = BTreeMap::new();
    for (group, share) in
        groups.into_iter().flat_map(|(group, batches)| batches.iter().flat_map(|batch| &batch.shares).map(move |share| (group, share)))
    {
        check_share(expanded, group, plan, share, &mut faults);
        share.parts.iter().for_each(|part| moved.entry((part.binding, share.tile)).or_default().push(part));
    }
    for (number, binding) in (0u32..).zip(&expanded.bindings) {
        for slice in slices(binding) {
            let parts = moved.get(&(number, slice.tile)).map_or(&[][..], Vec::as_slice);
            let moved_bytes = bytes_moved(&slice, parts);
            if moved_bytes != u64::from(slice.bytes) {
                let (binding, tile) = (binding.name.clone(), slice.tile);
                let (file_offset, slice_bytes) = (slice.file_offset, slice.bytes);
                faults.push(Fault::Uncovered { binding, tile, file_offset, slice_bytes, moved_bytes });
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Bytes of a slice that the parts inside it move to the right place; 0 when they overlap or leave a gap.
fn bytes_moved(slice: &Slice, parts: &[&Part]) -> u64 {
    let end = slice.file_offset + u64::from(slice.bytes);
    let mut inside: Vec<&&Part> = parts.iter().filter(|part| part.file_offset >= slice.file_offset && part.file_offset < end).collect();
    inside.sort_by_key(|part| part.file_offset);
    let mut moved = 0;
    for part in inside {
        let place =
            part.place.buffer == slice.place.buffer && part.place.offset.checked_sub(slice.place.offset).map(u64::from) == Some(moved);
        if part.file_offset != slice.file_offset + moved || !place {
            return 0;
        }
        moved += u64::from(part.bytes);
    }
    moved
}

fn check_share(expanded: &Expanded, group: Group, plan: &HostPlan, share: &Share, faults: &mut Vec<Fault>) {
    let tile = share.tile;
    if !plan.participants.contains(&tile) {
        faults.push(Fault::NoSlot { tile });
    }
    let mut end = 0;
    for part in &share.parts {
        let name = || expanded.bindings[part.binding as usize].name.clone();
        if part.bytes % 8 != 0 || part.bytes == 0 {
            faults.push(Fault::OddSize { binding: name(), tile, bytes: part.bytes });
        }
        let misdirected = expanded.bindings[part.binding as usize].group != group;
        if misdirected || part.slot_offset < end || part.slot_offset + part.bytes > SLOT_BYTES {
            faults.push(Fault::OutsideSlot { binding: name(), tile, slot_offset: part.slot_offset, bytes: part.bytes });
        }
        end = part.slot_offset + part.bytes;
    }
}

#[cfg(test)]
mod tests {
    use exchange::BufferId;

    use super::*;
    use crate::program::{ColumnAxis, Order};

    fn tile(number: u16) -> TileId {
        TileId::new(number).expect("a tile")
    }

    fn binding(group: Group, rows: u32, columns: u32, panel_bytes: u32, tiles: &[u16]) -> Binding {
        let piece = |number: &u16| Piece {
            tile: tile(*number),
            buffer: BufferId(0),
            offset: 64,
            order: Order::ByColumn,
            rows: (0, rows),
            columns: (0, columns),
            panel_bytes,
        };
        Binding {
            name: "value".to_owned(),
            group,
            shape: vec![rows, columns],
            rows,
            columns: ColumnAxis { parts: 1, width: columns, padded: columns },
            row_axis: ColumnAxis { parts: 1, width: rows, padded: rows },
            swapped: false,
            pieces: tiles.iter().map(piece).collect(),
        }
    }

    fn program(bindings: Vec<Binding>) -> Expanded {
        Expanded {
            buffers: Vec::new(),
            steps: Vec::new(),
            phases: Vec::new(),
            variants: Vec::new(),
            bindings,
            checkpoints: Vec::new(),
            operations: Vec::new(),
            pairs: false,
        }
    }

    #[test]
    fn panels_that_touch_are_one_slice_and_others_are_not() {
        let bytes = |panel_bytes| {
            let slices = slices(&binding(Group::Input, 3, 48, panel_bytes, &[5]));
            slices.iter().map(|slice| (slice.place.offset, slice.file_offset, slice.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(bytes(96), [(64, 0, 288)]);
        assert_eq!(bytes(128), [(64, 0, 96), (192, 96, 96), (320, 192, 96)]);
    }

    #[test]
    fn a_large_binding_fills_slot_after_slot_on_every_tile() {
        let expanded = program(vec![binding(Group::Weight, 80, 80, 80 * 32, &[0, 7])]);
        let plan = plan(&expanded);
        assert_eq!(check(&expanded, &plan), Ok(()));
        let sizes: Vec<Vec<u32>> =
            plan.initialize.iter().map(|batch| batch.shares.iter().map(|share| share.parts[0].bytes).collect()).collect();
        assert_eq!(sizes, [[4096, 4096], [4096, 4096], [4096, 4096], [512, 512]]);
        assert_eq!(plan.host_offset(tile(7)), Some(8192));
    }

    #[test]
    fn outgoing_parts_start_at_whole_packets_and_never_need_too_many() {
        let expanded = program(vec![binding(Group::Output, 1, 16 * 300, 64, &[3])]);
        let plan = plan(&expanded);
        assert_eq!(check(&expanded, &plan), Ok(()));
        for part in plan.outputs.iter().flat_map(|batch| batch.parts_of(tile(3))) {
            assert_eq!(part.slot_offset % 64, 0);
        }
        let most = plan.outputs.iter().map(|batch| batch.parts_of(tile(3)).len()).max();
        assert!(most.is_some_and(|most| most <= 42), "{most:?} packets in a phase");
    }

    #[test]
    fn a_part_moved_twice_and_one_left_out_are_found() {
        let expanded = program(vec![binding(Group::Input, 80, 80, 80 * 32, &[1])]);
        let mut twice = plan(&expanded);
        twice.inputs.push(twice.inputs[0].clone());
        assert!(check(&expanded, &twice).is_err());
        let mut less = plan(&expanded);
        less.inputs.pop();
        assert!(check(&expanded, &less).is_err());
    }
}
