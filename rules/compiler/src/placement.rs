//! Gives every buffer and every block of code and exchange rows its address.
//!
//! In: [`Demand`], buffers with lifetimes, blocks of code with their final sizes, pairs of buffers that want different conflict
//! units. Out: [`Placement`]. Equal buffers get equal addresses on all their tiles, so memory is one space of intervals in which
//! two buffers may share bytes when no tile has both or when they are never alive together. Code and rows have conflict units of
//! their own in region 0 (machine.md I15); the host staging window is nobody's. [`check`] lists what holds of a placement and
//! [`confirm`] repeats the arithmetic of a refusal.

use std::collections::{BTreeMap, BTreeSet};

use exchange::BufferId;
use ipu21::{
    memory::{self, ENTRY, FETCH_LOOK_AHEAD, REGION1, UNIT0, UnitSet},
    tile::TileId,
};
use serde::{Deserialize, Serialize};

use crate::{
    program::{Buffer, Expanded, Region, VariantId},
    tile_set::TileSet,
};

/// The host staging window, with worker scratch and the completion word behind the staged data (machine.md e.5).
pub const STAGING: (u32, u32) = (0x5_0000, 0x5_4000);

/// A block of code, of exchange rows or of host rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Block {
    /// Prologue and shared routines, at [`memory::ENTRY`].
    Runtime,
    /// A class's program with its argument blocks; every class starts at the same address.
    Program,
    /// The object of a kernel variant.
    Kernel(VariantId),
    /// The object that copies staged host data to its place.
    Copy,
    /// The greeting of the host at the start of a program.
    Greeting,
    /// Packet words and instruction row of a host phase.
    Host(u32),
    /// The exchange rows of a phase; each tile has its own, all at one address.
    Row(u32),
}

/// Size and tiles of a [`Block`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDemand {
    /// Which block.
    pub block: Block,
    /// Largest size over its tiles.
    pub bytes: u32,
    /// Alignment, a power of two, at least 8.
    pub align: u32,
    /// Tiles that have it.
    pub tiles: Vec<TileId>,
}

/// Everything that wants an address.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// Buffers and their lifetimes.
    pub expanded: &'a Expanded,
    /// Code and rows.
    pub blocks: &'a [BlockDemand],
    /// Pairs of operands that a kernel accesses in one clock: never in one conflict unit.
    pub kernel_apart: &'a [(BufferId, BufferId)],
    /// Pairs whose send and receive windows overlap in a schedule (machine.md I14); may be given up.
    pub schedule_apart: &'a [(TileId, BufferId, BufferId)],
}

/// Addresses of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Address of each buffer, indexed by [`BufferId`].
    pub buffers: Vec<u32>,
    /// Address of each block.
    pub blocks: BTreeMap<Block, u32>,
    /// First byte behind the conflict units of code and rows; buffers of region 0 start here.
    pub code_end: u32,
    /// Schedule pairs that share a conflict unit, cheapest (fewest tiles) first. Their phases must be scheduled again with
    /// these pairs in [`exchange::Problem::serial`].
    pub given_up: Vec<(TileId, BufferId, BufferId)>,
    /// Figures for reports.
    pub figures: Figures,
}

/// What the memory of the fullest tile holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Bytes of code, argument blocks and rows, largest tile.
    pub code_bytes: u32,
    /// Bytes between the lowest and highest buffer byte in region 0.
    pub region_zero_bytes: u32,
    /// The same in region 1.
    pub region_one_bytes: u32,
    /// Largest single buffer.
    pub largest_buffer_bytes: u32,
}

impl Placement {
    /// Address of a buffer; a validated program names only buffers it has.
    pub fn buffer(&self, buffer: BufferId) -> u32 {
        self.buffers[buffer.0 as usize]
    }

    /// Address of a block; a validated program names only blocks it has.
    pub fn block(&self, block: Block) -> u32 {
        self.blocks[&block]
    }
}

/// Why a program has no placement, or what is wrong with one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// Code and rows of a tile do not fit region 0 beside the staging window.
    CodeDoesNotFit {
        /// The block.
        block: Block,
        /// Size found, in bytes.
        bytes: u32,
        /// Bytes of other blocks on its tiles.
        placed_bytes: u32,
        /// Bytes of region 0 for code.
        available_bytes: u32,
    },
    /// No address is free for a buffer among those placed before it.
    DoesNotFit(Box<NoRoom>),
    /// A kernel wants two operands in different units but both are in one buffer.
    OneBuffer {
        /// Name of the buffer.
        buffer: String,
    },
    /// A buffer's own description cannot be placed anywhere.
    BadBuffer {
        /// Name of the buffer.
        buffer: String,
        /// Size found, in bytes.
        bytes: u32,
        /// Alignment found.
        align: u32,
    },
    /// Two blocks or buffers of a tile share memory while both matter.
    Overlap {
        /// The one.
        first: String,
        /// The other.
        second: String,
        /// The address.
        address: u32,
    },
    /// Outside its region, misaligned or in a place that is not for it.
    Misplaced {
        /// Its name.
        name: String,
        /// The address.
        address: u32,
        /// Size found, in bytes.
        bytes: u32,
    },
    /// Two buffers that must be apart share a conflict unit.
    SharedUnit {
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
}

/// The arithmetic of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoRoom {
    /// The buffer without a place.
    pub buffer: BufferId,
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u32,
    /// Its region.
    pub region: Region,
    /// A tile that has it, and the step at which most of that tile's memory is taken; -1 is before the first step.
    pub tile: TileId,
    /// See `tile`.
    pub step: i64,
    /// Bytes of buffers of that region alive on that tile at that step, this one included.
    pub needed_bytes: u64,
    /// Bytes buffers may use in that region.
    pub available_bytes: u64,
    /// First byte for buffers in region 0.
    pub code_end: u32,
    /// What had been placed already: no address is left for this buffer beside these.
    pub placed: Vec<(BufferId, u32)>,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CodeDoesNotFit { block, bytes, placed_bytes, available_bytes } => write!(
                f,
                "does not fit: code block {block:?} of {bytes} bytes beside {placed_bytes} bytes of code and rows; region 0 has {available_bytes} bytes for them"
            ),
            Self::DoesNotFit(room) => write!(
                f,
                "does not fit: buffer {} of {} bytes (region {:?}): on tile {} at step {} buffers need {} bytes, {} bytes are available and {} buffers were placed before it",
                room.name,
                room.bytes,
                room.region,
                room.tile,
                room.step,
                room.needed_bytes,
                room.available_bytes,
                room.placed.len()
            ),
            Self::OneBuffer { buffer } => {
                write!(f, "buffer {buffer}: a kernel needs two of its parts in different memory elements")
            }
            Self::BadBuffer { buffer, bytes, align } => {
                write!(f, "buffer {buffer}: size {bytes} or alignment {align} is not a multiple of 8 and a power of two")
            }
            Self::Overlap { first, second, address } => write!(f, "{first} and {second} both hold address {address:#x}"),
            Self::Misplaced { name, address, bytes } => {
                write!(f, "{name}: {bytes} bytes at {address:#x} are outside its region, misaligned or in reserved memory")
            }
            Self::SharedUnit { first, second } => write!(f, "{first} and {second} share a memory element"),
        }
    }
}

impl std::error::Error for Fault {}

impl Fault {
    /// Whether the program is too large, as against wrong.
    pub fn is_capacity(&self) -> bool {
        matches!(self, Self::CodeDoesNotFit { .. } | Self::DoesNotFit(_))
    }
}

/// Blocks first, then buffers by first fit in a few fixed orders; the order that gives up the fewest schedule pairs wins.
pub fn place(demand: &Demand<'_>) -> Result<Placement, Fault> {
    well_formed(demand)?;
    let (blocks, code_end) = place_blocks(demand.blocks)?;
    let space = Space::new(demand, code_end);
    let mut best: Option<(u64, Vec<u32>)> = None;
    let mut refusal = None;
    for order in space.orders() {
        match space.first_fit(&order) {
            Ok((cost, addresses)) if best.as_ref().is_none_or(|(least, _)| cost < *least) => best = Some((cost, addresses)),
            Ok(_) => {}
            Err(room) => refusal = refusal.or(Some(room)),
        }
        if best.as_ref().is_some_and(|(cost, _)| *cost == 0) {
            break;
        }
    }
    let Some((_, buffers)) = best else {
        return Err(Fault::DoesNotFit(Box::new(refusal.expect("an order without addresses has a refusal"))));
    };
    let given_up = given_up(demand, &buffers);
    let figures = figures(demand, &buffers);
    Ok(Placement { buffers, blocks, code_end, given_up, figures })
}

fn well_formed(demand: &Demand<'_>) -> Result<(), Fault> {
    for buffer in &demand.expanded.buffers {
        if buffer.bytes % 8 != 0 || buffer.align < 8 || !buffer.align.is_power_of_two() {
            return Err(Fault::BadBuffer { buffer: buffer.name.clone(), bytes: buffer.bytes, align: buffer.align });
        }
    }
    match demand.kernel_apart.iter().find(|(first, second)| first == second) {
        Some((buffer, _)) => Err(Fault::OneBuffer { buffer: name_of(demand, *buffer) }),
        None => Ok(()),
    }
}

fn name_of(demand: &Demand<'_>, buffer: BufferId) -> String {
    demand.expanded.buffers[buffer.0 as usize].name.clone()
}

/// The stretches of region 0 that code may use; the second grows as needed.
const CODE_STRETCHES: [(u32, u32); 2] = [(ENTRY, STAGING.0 - FETCH_LOOK_AHEAD), (STAGING.1, REGION1 - FETCH_LOOK_AHEAD)];

/// First fit, the runtime first, then by descending size. Returns the end of the last conflict unit that holds code.
fn place_blocks(demands: &[BlockDemand]) -> Result<(BTreeMap<Block, u32>, u32), Fault> {
    let mut order: Vec<(&BlockDemand, TileSet)> = demands.iter().map(|demand| (demand, demand.tiles.iter().collect())).collect();
    order.sort_by_key(|(demand, _)| (demand.block != Block::Runtime, std::cmp::Reverse(demand.bytes), demand.block));
    let mut placed: Vec<(u32, u32, TileSet, Block)> = Vec::new();
    for (demand, tiles) in order {
        let meeting: Vec<(u32, u32)> =
            placed.iter().filter(|(_, _, other, _)| other.meets(&tiles)).map(|(start, end, _, _)| (*start, *end)).collect();
        let Some(address) = code_address(demand, &meeting) else {
            let placed_bytes = meeting.iter().map(|(start, end)| end - start).sum();
            let available_bytes = CODE_STRETCHES.iter().map(|(start, end)| end - start).sum();
            return Err(Fault::CodeDoesNotFit { block: demand.block, bytes: demand.bytes, placed_bytes, available_bytes });
        };
        placed.push((address, address + demand.bytes, tiles, demand.block));
    }
    let last = placed.iter().map(|(_, end, _, _)| *end).max().unwrap_or(ENTRY);
    let code_end = if last <= STAGING.0 { STAGING.1 } else { (last + FETCH_LOOK_AHEAD).next_multiple_of(UNIT0) };
    Ok((placed.into_iter().map(|(start, _, _, block)| (block, start)).collect(), code_end))
}

fn code_address(demand: &BlockDemand, meeting: &[(u32, u32)]) -> Option<u32> {
    let mut candidates: Vec<u32> = CODE_STRETCHES.iter().map(|(start, _)| *start).chain(meeting.iter().map(|(_, end)| *end)).collect();
    candidates.iter_mut().for_each(|address| *address = address.next_multiple_of(demand.align));
    candidates.sort_unstable();
    candidates.into_iter().find(|address| {
        let end = address + demand.bytes;
        let inside = CODE_STRETCHES.iter().any(|(low, high)| low <= address && end <= *high);
        inside && meeting.iter().all(|(start, stop)| end <= *start || *stop <= *address)
    })
}

/// Buffers with everything that two of them have to do with each other.
struct Space<'a> {
    buffers: &'a [Buffer],
    code_end: u32,
    /// By buffer: those with which it may share no byte.
    meeting: Vec<Vec<usize>>,
    /// By buffer: those in no common conflict unit, with the cost of giving that up; `None` for never.
    apart: Vec<BTreeMap<usize, Option<u64>>>,
}

impl<'a> Space<'a> {
    fn new(demand: &Demand<'a>, code_end: u32) -> Self {
        let buffers = &demand.expanded.buffers;
        let tiles: Vec<TileSet> = buffers.iter().map(|buffer| buffer.tiles.iter().collect()).collect();
        let meets = |a: usize, b: usize| a != b && alive_together(&buffers[a], &buffers[b]) && tiles[a].meets(&tiles[b]);
        let meeting = (0..buffers.len()).map(|a| (0..buffers.len()).filter(|b| meets(a, *b)).collect()).collect();
        let mut apart = vec![BTreeMap::new(); buffers.len()];
        let mut note = |first: BufferId, second: BufferId, kernel: bool| {
            for (from, to) in [(first, second), (second, first)] {
                let cost: &mut Option<u64> = apart[from.0 as usize].entry(to.0 as usize).or_insert(Some(0));
                *cost = if kernel { None } else { cost.map(|cost| cost + 1) };
            }
        };
        demand.schedule_apart.iter().for_each(|(_, first, second)| note(*first, *second, false));
        demand.kernel_apart.iter().for_each(|(first, second)| note(*first, *second, true));
        Self { buffers, code_end, meeting, apart }
    }

    /// Orders worth trying: by size, by number of units to avoid, by lifetime; those bound to a region always first.
    fn orders(&self) -> Vec<Vec<usize>> {
        let sorted = |key: &dyn Fn(usize) -> (u64, u64)| {
            let mut order: Vec<usize> = (0..self.buffers.len()).collect();
            order.sort_by_key(|index| (self.buffers[*index].region == Region::Any, std::cmp::Reverse(key(*index)), *index));
            order
        };
        let size = |index: usize| u64::from(self.buffers[index].bytes);
        let degree = |index: usize| self.apart[index].len() as u64;
        let life = |index: usize| {
            let (first, last) = lifetime(&self.buffers[index]);
            (last.saturating_sub(first)) as u64
        };
        vec![
            sorted(&|index| (size(index), degree(index))),
            sorted(&|index| (degree(index), size(index))),
            sorted(&|index| (life(index), size(index))),
        ]
    }

    /// Each buffer at the lowest address with the least cost. Returns the whole cost and the addresses.
    fn first_fit(&self, order: &[usize]) -> Result<(u64, Vec<u32>), NoRoom> {
        let mut addresses: Vec<Option<u32>> = vec![None; self.buffers.len()];
        let mut whole = 0;
        for index in order {
            let Some((cost, address)) = self.cheapest(*index, &addresses) else {
                return Err(self.no_room(*index, order, &addresses));
            };
            addresses[*index] = Some(address);
            whole += cost;
        }
        Ok((whole, addresses.into_iter().map(|address| address.expect("every buffer is in the order")).collect()))
    }

    fn cheapest(&self, index: usize, addresses: &[Option<u32>]) -> Option<(u64, u32)> {
        let mut best: Option<(u64, u32)> = None;
        for address in self.candidates(index, addresses) {
            let Some(cost) = self.cost(index, address, addresses) else { continue };
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, address));
            }
            if cost == 0 {
                break;
            }
        }
        best
    }

    /// Region starts, ends of buffers that must not be met, and starts of conflict units; ascending.
    fn candidates(&self, index: usize, addresses: &[Option<u32>]) -> BTreeSet<u32> {
        let buffer = &self.buffers[index];
        let ends = self.meeting[index].iter().filter_map(|other| addresses[*other].map(|address| address + self.buffers[*other].bytes));
        let units = (0..memory::UNITS).map(memory::unit_start);
        let aligned = ends.chain(units).map(|address| address.next_multiple_of(buffer.align));
        aligned.filter(|address| inside_region(buffer, *address, self.code_end)).collect()
    }

    /// `None` when a byte is taken or a kernel's pair would share a unit; else the schedule pairs given up.
    fn cost(&self, index: usize, address: u32, addresses: &[Option<u32>]) -> Option<u64> {
        let bytes = self.buffers[index].bytes;
        let free =
            |other: &usize| addresses[*other].is_none_or(|start| address + bytes <= start || start + self.buffers[*other].bytes <= address);
        if !self.meeting[index].iter().all(free) {
            return None;
        }
        let units = reach_units(&self.buffers[index], address);
        let mut cost = 0;
        for (other, price) in &self.apart[index] {
            let Some(start) = addresses[*other] else { continue };
            if *other != index && units.intersects(reach_units(&self.buffers[*other], start)) {
                cost += (*price)?;
            }
        }
        Some(cost)
    }

    fn no_room(&self, index: usize, order: &[usize], addresses: &[Option<u32>]) -> NoRoom {
        let buffer = &self.buffers[index];
        let (tile, step, needed_bytes) = fullest(self.buffers, buffer);
        let id = |index: usize| BufferId(index as u32);
        NoRoom {
            buffer: id(index),
            name: buffer.name.clone(),
            bytes: buffer.bytes,
            region: buffer.region,
            tile,
            step,
            needed_bytes,
            available_bytes: available(buffer.region, self.code_end),
            code_end: self.code_end,
            placed: order.iter().filter_map(|other| addresses[*other].map(|address| (id(*other), address))).collect(),
        }
    }
}

/// First and last step as numbers: -1 is before the first step.
fn lifetime(buffer: &Buffer) -> (i64, i64) {
    (buffer.first_step.map_or(-1, i64::from), buffer.last_step.map_or(i64::from(u32::MAX) + 1, i64::from))
}

fn alive_together(first: &Buffer, second: &Buffer) -> bool {
    let ((a, b), (c, d)) = (lifetime(first), lifetime(second));
    a <= d && c <= b
}

/// Conflict units from a buffer's first byte to the end of its readable tail.
fn reach_units(buffer: &Buffer, address: u32) -> UnitSet {
    memory::units(address, (buffer.bytes + buffer.readable_tail).max(1))
}

fn inside_region(buffer: &Buffer, address: u32, code_end: u32) -> bool {
    let end = u64::from(address) + u64::from(buffer.bytes);
    let exists = end + u64::from(buffer.readable_tail) <= u64::from(memory::END);
    let zero = address >= code_end && end <= u64::from(REGION1);
    let one = address >= REGION1 && exists;
    exists
        && match buffer.region {
            Region::Any => zero || one,
            Region::Zero => zero,
            Region::One => one,
        }
}

fn available(region: Region, code_end: u32) -> u64 {
    let (zero, one) = (u64::from(REGION1 - code_end.min(REGION1)), u64::from(memory::END - REGION1));
    match region {
        Region::Any => zero + one,
        Region::Zero => zero,
        Region::One => one,
    }
}

/// Of the tiles of `buffer` and the steps of its life, where most bytes that compete with it are alive.
fn fullest(buffers: &[Buffer], buffer: &Buffer) -> (TileId, i64, u64) {
    let competes = |other: &&Buffer| buffer.region == Region::Any || other.region == buffer.region;
    let rivals: Vec<&Buffer> = buffers.iter().filter(competes).filter(|other| alive_together(other, buffer)).collect();
    let starts: BTreeSet<i64> = rivals.iter().map(|rival| lifetime(rival).0.max(lifetime(buffer).0)).collect();
    let mut best =
        (buffer.tiles.first().copied().unwrap_or_else(|| TileId::all().next().expect("a chip has tiles")), lifetime(buffer).0, 0);
    for step in starts {
        let alive = rivals.iter().filter(|rival| lifetime(rival).0 <= step && step <= lifetime(rival).1);
        let mut sums: BTreeMap<TileId, u64> = BTreeMap::new();
        for rival in alive {
            rival.tiles.iter().for_each(|tile| *sums.entry(*tile).or_default() += u64::from(rival.bytes));
        }
        for tile in &buffer.tiles {
            let bytes = sums.get(tile).copied().unwrap_or(0);
            if bytes > best.2 {
                best = (*tile, step, bytes);
            }
        }
    }
    best
}

/// Pairs of the schedules that share a unit, those on the fewest tiles first.
fn given_up(demand: &Demand<'_>, addresses: &[u32]) -> Vec<(TileId, BufferId, BufferId)> {
    let units = |buffer: BufferId| {
        let index = buffer.0 as usize;
        reach_units(&demand.expanded.buffers[index], addresses[index])
    };
    let mut tiles: BTreeMap<(BufferId, BufferId), BTreeSet<TileId>> = BTreeMap::new();
    for (tile, first, second) in demand.schedule_apart {
        if units(*first).intersects(units(*second)) {
            tiles.entry((*first, *second)).or_default().insert(*tile);
        }
    }
    let mut pairs: Vec<_> = tiles.into_iter().collect();
    pairs.sort_by_key(|(pair, tiles)| (tiles.len(), *pair));
    pairs.into_iter().flat_map(|((first, second), tiles)| tiles.into_iter().map(move |tile| (tile, first, second))).collect()
}

fn figures(demand: &Demand<'_>, addresses: &[u32]) -> Figures {
    let extent = |zero: bool| {
        let spans = demand.expanded.buffers.iter().zip(addresses).filter(|(_, address)| (**address < REGION1) == zero);
        let (low, high) = spans.fold((u32::MAX, 0), |(low, high), (buffer, address)| (low.min(*address), high.max(address + buffer.bytes)));
        high.saturating_sub(low)
    };
    let mut code: BTreeMap<TileId, u32> = BTreeMap::new();
    for block in demand.blocks {
        block.tiles.iter().for_each(|tile| *code.entry(*tile).or_default() += block.bytes);
    }
    Figures {
        code_bytes: code.into_values().max().unwrap_or(0),
        region_zero_bytes: extent(true),
        region_one_bytes: extent(false),
        largest_buffer_bytes: demand.expanded.buffers.iter().map(|buffer| buffer.bytes).max().unwrap_or(0),
    }
}

/// Whether a refusal is right: the buffer's alternatives are walked address by address instead of by first fit, and the bytes
/// alive are added up again.
pub fn confirm(demand: &Demand<'_>, room: &NoRoom) -> bool {
    let buffers = &demand.expanded.buffers;
    let Some(buffer) = buffers.get(room.buffer.0 as usize) else { return false };
    let rivals = |other: &&Buffer| {
        let alive = lifetime(other).0 <= room.step && room.step <= lifetime(other).1;
        alive && other.tiles.contains(&room.tile) && (buffer.region == Region::Any || other.region == buffer.region)
    };
    let needed: u64 = buffers.iter().filter(rivals).map(|other| u64::from(other.bytes)).sum();
    let honest = needed == room.needed_bytes && room.available_bytes == available(buffer.region, room.code_end);
    let first = room.code_end.next_multiple_of(buffer.align);
    let addresses = (first..memory::END).step_by(buffer.align as usize);
    honest && addresses.filter(|address| inside_region(buffer, *address, room.code_end)).all(|address| obstructed(demand, room, address))
}

fn obstructed(demand: &Demand<'_>, room: &NoRoom, address: u32) -> bool {
    let buffers = &demand.expanded.buffers;
    let buffer = &buffers[room.buffer.0 as usize];
    room.placed.iter().any(|(id, start)| {
        let other = &buffers[id.0 as usize];
        let bytes = alive_together(buffer, other)
            && address < start + other.bytes
            && *start < address + buffer.bytes
            && buffer.tiles.iter().any(|tile| other.tiles.contains(tile));
        let pair = |(a, b): &(BufferId, BufferId)| (*a, *b) == (room.buffer, *id) || (*a, *b) == (*id, room.buffer);
        bytes || demand.kernel_apart.iter().any(pair) && shared_unit((address, buffer), (*start, other))
    })
}

/// Whether some unit holds a byte of both, counted unit by unit.
fn shared_unit(first: (u32, &Buffer), second: (u32, &Buffer)) -> bool {
    let spans = |(address, buffer): (u32, &Buffer)| {
        (u64::from(address), u64::from(address) + u64::from(buffer.bytes + buffer.readable_tail).max(1))
    };
    let zero = (0x4_c000..0x8_0000u64).step_by(0x4000).map(|start| (start, start + 0x4000));
    let one = (0x8_0000..0xe_8000u64).step_by(0x8000).map(|start| (start, start + 0x8000));
    let touches = |(low, high): (u64, u64), (start, end): (u64, u64)| low < end && start < high;
    zero.chain(one).any(|unit| touches(unit, spans(first)) && touches(unit, spans(second)))
}

/// What holds of a placement:
/// * every buffer is aligned, inside its region, behind the code units, with its tail inside memory;
/// * every block is in region 0 from the entry on, aligned, outside the staging window and, with the fetch look-ahead, in front
///   of `code_end` or of the window;
/// * two buffers alive together on a tile, and two blocks of a tile, share no byte;
/// * kernel pairs share no conflict unit, schedule pairs neither unless given up.
pub fn check(demand: &Demand<'_>, placement: &Placement) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    check_blocks(demand, placement, &mut faults);
    check_buffers(demand, placement, &mut faults);
    check_pairs(demand, placement, &mut faults);
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn check_blocks(demand: &Demand<'_>, placement: &Placement, faults: &mut Vec<Fault>) {
    let mut spans = Vec::new();
    for block in demand.blocks {
        let address = placement.blocks.get(&block.block).copied().unwrap_or(0);
        let fetched = address + block.bytes + FETCH_LOOK_AHEAD;
        let low = address >= ENTRY && fetched <= STAGING.0;
        let high = address >= STAGING.1 && fetched <= placement.code_end;
        let entry = block.block != Block::Runtime || address == ENTRY;
        if !(low || high) || !entry || address % block.align != 0 {
            faults.push(Fault::Misplaced { name: format!("{:?}", block.block), address, bytes: block.bytes });
        }
        spans.push((format!("{:?}", block.block), address, block.bytes, &block.tiles, (-1, -1)));
    }
    check_overlaps(&spans, faults);
}

fn check_buffers(demand: &Demand<'_>, placement: &Placement, faults: &mut Vec<Fault>) {
    let mut spans = Vec::new();
    for (buffer, address) in demand.expanded.buffers.iter().zip(&placement.buffers) {
        let (start, end) = (*address, address + buffer.bytes);
        let zero = start >= placement.code_end && end <= 0x8_0000;
        let one = start >= 0x8_0000 && end <= 0xe_8000;
        let right = match buffer.region {
            Region::Any => zero || one,
            Region::Zero => zero,
            Region::One => one,
        };
        if !right || start & (buffer.align - 1) != 0 || end + buffer.readable_tail > 0xe_8000 {
            faults.push(Fault::Misplaced { name: buffer.name.clone(), address: start, bytes: buffer.bytes });
        }
        spans.push((buffer.name.clone(), start, buffer.bytes, &buffer.tiles, lifetime(buffer)));
    }
    check_overlaps(&spans, faults);
}

type Span<'a> = (String, u32, u32, &'a Vec<TileId>, (i64, i64));

/// Sweeps the spans by address; tiles and lifetimes are compared only where bytes meet.
fn check_overlaps(spans: &[Span<'_>], faults: &mut Vec<Fault>) {
    let mut sorted: Vec<&Span<'_>> = spans.iter().filter(|span| span.2 > 0).collect();
    sorted.sort_by_key(|span| span.1);
    for (index, first) in sorted.iter().enumerate() {
        for second in sorted[index + 1..].iter().take_while(|second| second.1 < first.1 + first.2) {
            let together = first.4.0 <= second.4.1 && second.4.0 <= first.4.1;
            let tiles: BTreeSet<&TileId> = first.3.iter().collect();
            if together && second.3.iter().any(|tile| tiles.contains(tile)) {
                faults.push(Fault::Overlap { first: first.0.clone(), second: second.0.clone(), address: second.1 });
            }
        }
    }
}

fn check_pairs(demand: &Demand<'_>, placement: &Placement, faults: &mut Vec<Fault>) {
    let buffers = &demand.expanded.buffers;
    let at = |id: BufferId| (placement.buffers[id.0 as usize], &buffers[id.0 as usize]);
    let given_up: BTreeSet<_> = placement.given_up.iter().collect();
    let kernels = demand.kernel_apart.iter().copied();
    let schedules = demand.schedule_apart.iter().filter(|pair| !given_up.contains(pair)).map(|(_, first, second)| (*first, *second));
    let pairs: BTreeSet<(BufferId, BufferId)> = kernels.chain(schedules).collect();
    for (first, second) in pairs {
        if shared_unit(at(first), at(second)) {
            let name = |id: BufferId| buffers[id.0 as usize].name.clone();
            faults.push(Fault::SharedUnit { first: name(first), second: name(second) });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tile(number: u16) -> TileId {
        TileId::new(number).expect("a tile")
    }

    fn buffer(number: usize, bytes: u32, tiles: &[u16], region: Region, life: (Option<u32>, Option<u32>)) -> Buffer {
        Buffer {
            name: format!("buffer{number}"),
            bytes,
            tiles: tiles.iter().map(|number| tile(*number)).collect(),
            region,
            align: 32,
            readable_tail: 32,
            first_step: life.0,
            last_step: life.1,
        }
    }

    fn program(buffers: Vec<Buffer>) -> Expanded {
        Expanded {
            buffers,
            steps: Vec::new(),
            phases: Vec::new(),
            variants: Vec::new(),
            bindings: Vec::new(),
            checkpoints: Vec::new(),
            operations: Vec::new(),
            pairs: false,
        }
    }

    fn code(bytes: u32) -> Vec<BlockDemand> {
        let block = |block, bytes| BlockDemand { block, bytes, align: 8, tiles: TileId::all().collect() };
        vec![block(Block::Runtime, 200), block(Block::Program, bytes)]
    }

    fn id(number: usize) -> BufferId {
        BufferId(number as u32)
    }

    fn demand<'a>(expanded: &'a Expanded, blocks: &'a [BlockDemand], kernels: &'a [(BufferId, BufferId)]) -> Demand<'a> {
        Demand { expanded, blocks, kernel_apart: kernels, schedule_apart: &[] }
    }

    const ALWAYS: (Option<u32>, Option<u32>) = (None, None);

    #[test]
    fn code_that_fills_the_first_unit_continues_behind_the_staging_window() {
        let expanded = program(vec![buffer(0, 64, &[0], Region::Zero, ALWAYS)]);
        let blocks = code(0x3fa0);
        let placement = place(&demand(&expanded, &blocks, &[])).expect("there is room");
        assert_eq!(placement.block(Block::Runtime), ENTRY);
        assert_eq!(placement.block(Block::Program), 0x5_4000);
        assert_eq!(placement.code_end, 0x5_8000);
        assert_eq!(placement.buffer(id(0)), 0x5_8000);
    }

    #[test]
    fn buffers_share_bytes_only_when_tiles_or_lifetimes_are_disjoint() {
        let expanded = program(vec![
            buffer(0, 4096, &[0], Region::One, (Some(0), Some(1))),
            buffer(1, 4096, &[1], Region::One, ALWAYS),
            buffer(2, 4096, &[0], Region::One, (Some(2), Some(3))),
            buffer(3, 4096, &[0, 1], Region::One, (Some(1), Some(2))),
        ]);
        let blocks = code(64);
        let demand = demand(&expanded, &blocks, &[]);
        let placement = place(&demand).expect("there is room");
        assert_eq!(check(&demand, &placement), Ok(()));
        assert_eq!(placement.buffers, [0x8_0000, 0x8_0000, 0x8_0000, 0x8_1000]);
    }

    #[test]
    fn kernel_pairs_never_share_a_unit_and_schedule_pairs_are_given_up_cheapest_first() {
        let one = |number, bytes| buffer(number, bytes, &[0, 1], Region::One, ALWAYS);
        let expanded = program(vec![one(0, 0x3_4000), one(1, 0x2_bfe0), buffer(2, 64, &[0, 1], Region::One, ALWAYS)]);
        let blocks = code(64);
        let schedule = [(tile(0), id(1), id(2)), (tile(1), id(0), id(2)), (tile(0), id(0), id(2))];
        let demand = Demand { schedule_apart: &schedule, ..demand(&expanded, &blocks, &[]) };
        let placement = place(&demand).expect("there is room");
        assert_eq!(check(&demand, &placement), Ok(()));
        assert_eq!(placement.given_up, []);
        let full = program(vec![one(0, 0x3_4000), one(1, 0x3_3f80), buffer(2, 64, &[0, 1], Region::One, ALWAYS)]);
        let demand = Demand { expanded: &full, ..demand };
        let placement = place(&demand).expect("there is room");
        assert_eq!(placement.given_up, [(tile(0), id(1), id(2))]);
        assert_eq!(check(&demand, &placement), Ok(()));
        let kernels = [(id(1), id(2)), (id(0), id(2))];
        let demand = Demand { kernel_apart: &kernels, schedule_apart: &[], ..demand };
        let Err(Fault::DoesNotFit(room)) = place(&demand) else { panic!("the pair cannot be held") };
        assert!(confirm(&demand, &room));
    }

    #[test]
    fn too_many_bytes_are_refused_with_needed_and_available() {
        let buffers = (0..8).map(|number| buffer(number, 0x1_0000, &[9], Region::One, ALWAYS)).collect();
        let expanded = program(buffers);
        let blocks = code(64);
        let demand = demand(&expanded, &blocks, &[]);
        let Err(Fault::DoesNotFit(room)) = place(&demand) else { panic!("512 KiB do not fit 416 KiB") };
        assert_eq!((room.tile, room.needed_bytes, room.available_bytes), (tile(9), 0x8_0000, 0x6_8000));
        assert!(confirm(&demand, &room));
        assert!(!confirm(&demand, &NoRoom { needed_bytes: 1, ..(*room).clone() }));
        assert!(!confirm(&demand, &NoRoom { placed: room.placed[1..].to_vec(), ..*room }));
    }

    #[test]
    fn too_much_code_is_refused_with_both_sizes() {
        let expanded = program(Vec::new());
        let blocks = code(0x3_0000);
        let fault = place(&demand(&expanded, &blocks, &[])).expect_err("192 KiB of code");
        let Fault::CodeDoesNotFit { block, bytes, .. } = fault else { panic!("another fault: {fault}") };
        assert_eq!((block, bytes), (Block::Program, 0x3_0000));
    }

    #[test]
    fn every_rule_has_a_case_that_breaks_it() {
        let expanded = program(vec![buffer(0, 64, &[0], Region::One, ALWAYS), buffer(1, 64, &[0], Region::Zero, ALWAYS)]);
        let blocks = code(64);
        let kernels = [(id(0), id(1))];
        let demand = demand(&expanded, &blocks, &kernels);
        let right = place(&demand).expect("there is room");
        let kinds = |change: &dyn Fn(&mut Placement)| {
            let mut placement = right.clone();
            change(&mut placement);
            let faults = check(&demand, &placement).expect_err("the placement is wrong");
            faults.iter().map(|fault| format!("{fault:?}").split([' ', '{']).next().unwrap_or("").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&|placement| placement.buffers[0] += 8), ["Misplaced"]);
        assert_eq!(kinds(&|placement| placement.buffers[1] = 0x8_8000), ["Misplaced"]);
        assert_eq!(kinds(&|placement| placement.buffers[1] = 0x5_0000), ["Misplaced"]);
        assert_eq!(kinds(&|placement| placement.buffers[0] = 0xe_7fc0), ["Misplaced"]);
        assert!(kinds(&|placement| placement.buffers[1] = placement.buffers[0]).contains(&"Overlap".to_owned()));
        assert!(kinds(&|placement| placement.buffers[1] = placement.buffers[0] + 64).contains(&"SharedUnit".to_owned()));
        let moved = |address| move |placement: &mut Placement| *placement.blocks.entry(Block::Program).or_default() = address;
        assert_eq!(kinds(&moved(0x4_c020)), ["Overlap"]);
        assert_eq!(kinds(&moved(0x5_0000)), ["Misplaced"]);
        assert_eq!(kinds(&moved(0x4_ffc0)), ["Misplaced"]);
    }

    prop_compose! {
        fn any_buffer(number: usize)(
            units in 1u32..2500, tiles in proptest::collection::btree_set(0u16..4, 1..4), region in 0usize..3, first in 0u32..6,
            life in 0u32..6, whole in 0..4,
        ) -> Buffer {
            let region = [Region::Any, Region::Zero, Region::One][region];
            let life = if whole == 0 { ALWAYS } else { (Some(first), Some(first + life)) };
            let tiles: Vec<u16> = tiles.into_iter().collect();
            buffer(number, units * 32, &tiles, region, life)
        }
    }

    fn any_program() -> impl Strategy<Value = Expanded> {
        (2usize..14).prop_flat_map(|count| (0..count).map(any_buffer).collect::<Vec<_>>()).prop_map(program)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn placements_hold_and_refusals_are_confirmed(
            expanded in any_program(),
            pairs in proptest::collection::vec((0usize..14, 0usize..14), 0..8),
            scheduled in proptest::collection::vec((0u16..4, 0usize..14, 0usize..14), 0..8),
        ) {
            let count = expanded.buffers.len();
            let order = |a: usize, b: usize| (id((a % count).min(b % count)), id((a % count).max(b % count)));
            let kernels: Vec<_> = pairs.iter().map(|(a, b)| order(*a, *b)).filter(|(a, b)| a != b).collect();
            let schedule: Vec<_> = scheduled.iter().map(|(t, a, b)| { let (a, b) = order(*a, *b); (tile(*t), a, b) }).collect();
            let blocks = code(0x2000);
            let demand = Demand { expanded: &expanded, blocks: &blocks, kernel_apart: &kernels, schedule_apart: &schedule };
            match place(&demand) {
                Ok(placement) => prop_assert_eq!(check(&demand, &placement), Ok(())),
                Err(Fault::DoesNotFit(room)) => prop_assert!(confirm(&demand, &room)),
                Err(fault) => prop_assert!(false, "{}", fault),
            }
        }
    }
}
