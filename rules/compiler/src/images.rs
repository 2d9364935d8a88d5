//! The memory contents of all 1472 tiles when they start: code, argument blocks and rows, no tensor bytes.
//!
//! In: tile code, placement, kernel objects, relocated exchange rows. Out: [`Images`]; equal contents are stored once and shared.
//! [`check`] lists what holds. Nothing relies on memory outside the segments: tensors arrive through the host, kernels write
//! before they read.

use std::{collections::BTreeMap, sync::Arc};

use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};
use toolchain::object::{LinkError, Object};

use crate::{
    host_plan::HostPlan,
    host_rows,
    placement::{Block, Placement},
    program::{Expanded, VariantId},
    supervisor::{Routine, Target},
    tile_code::{ClassCode, TileCode},
};

/// An assembled kernel and the symbol that its callers use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelObject {
    /// Text, symbols, lines.
    pub object: Object,
    /// Entry symbol.
    pub entry: String,
}

/// The objects of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objects {
    /// By variant, in the order of [`Expanded::variants`].
    pub kernels: Vec<KernelObject>,
    /// The kernel `copy` without parameters; moves staged host data.
    pub copy: KernelObject,
    /// The runtime, assembled from [`crate::runtime::source`].
    pub runtime: Object,
}

/// A stretch of tile memory with its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSegment {
    /// What it is.
    pub block: Block,
    /// First byte.
    pub address: u32,
    /// Index into [`Images::contents`].
    pub content: u32,
}

/// The images of all tiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Images {
    /// Distinct contents, in order of first use.
    pub contents: Vec<Arc<[u8]>>,
    /// By logical tile: segments by ascending address.
    pub tiles: Vec<Vec<ImageSegment>>,
}

/// Why the images cannot be made, or what is wrong with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An object does not link at its address.
    Link {
        /// The block.
        block: Block,
        /// What is wrong.
        cause: LinkError,
    },
    /// An object lacks a symbol that programs call.
    NoSymbol {
        /// The block.
        block: Block,
        /// The symbol.
        symbol: String,
    },
    /// An active tile has no row in a phase, or the row is larger than its block.
    Row {
        /// The tile.
        tile: TileId,
        /// Number of the exchange phase.
        phase: u32,
        /// Size found, in bytes.
        bytes: u32,
        /// Bytes of the block.
        limit: u32,
    },
    /// Two segments of a tile overlap or are out of order.
    Overlap {
        /// The tile.
        tile: TileId,
        /// The one.
        first: u32,
        /// The other.
        second: u32,
    },
    /// The lowest segment of a tile is not at the entry.
    Entry {
        /// The tile.
        tile: TileId,
        /// The address.
        address: u32,
    },
    /// A segment covers the staging window or leaves the loadable part of region 0.
    Misplaced {
        /// The tile.
        tile: TileId,
        /// The address.
        address: u32,
        /// Size found, in bytes.
        bytes: u32,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Link { block, cause } => write!(f, "code block {block:?}: {cause}"),
            Self::NoSymbol { block, symbol } => write!(f, "code block {block:?} has no symbol {symbol}"),
            Self::Row { tile, phase, bytes, limit } => {
                write!(f, "tile {}: the row of phase {phase} has {bytes} bytes, its block {limit}", tile)
            }
            Self::Overlap { tile, first, second } => {
                write!(f, "tile {}: the segments at {first:#x} and {second:#x} overlap or are out of order", tile)
            }
            Self::Entry { tile, address } => write!(f, "tile {}: the lowest segment is at {address:#x}, not at the entry", tile),
            Self::Misplaced { tile, address, bytes } => {
                write!(f, "tile {}: a segment of {bytes} bytes at {address:#x} is in reserved memory", tile)
            }
        }
    }
}

impl std::error::Error for Fault {}

/// The exchange rows of every phase: words by tile.
pub type Rows = Vec<BTreeMap<TileId, Vec<u32>>>;

/// What images are made from.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The program.
    pub expanded: &'a Expanded,
    /// Its host traffic.
    pub plan: &'a HostPlan,
    /// Its tile programs.
    pub code: &'a TileCode,
    /// Its objects.
    pub objects: &'a Objects,
    /// Its addresses.
    pub placement: &'a Placement,
    /// Its exchange rows at those addresses.
    pub rows: &'a Rows,
}

/// Links the shared blocks once, then collects the segments of each tile.
pub fn build(parts: &Parts<'_>) -> Result<Images, Fault> {
    let mut pool = Pool::default();
    let shared = shared_blocks(parts, &mut pool)?;
    let mut tiles: Vec<Vec<ImageSegment>> = Vec::with_capacity(parts.code.class_of.len());
    for tile in TileId::all() {
        let class = parts.code.class_of[tile.index()] as usize;
        let mut segments = shared[class].clone();
        segments.push(pool.segment(Block::Greeting, parts.placement.block(Block::Greeting), host_rows::greeting(tile)));
        tiles.push(segments);
    }
    host_blocks(parts, &mut pool, &mut tiles);
    row_blocks(parts, &mut pool, &mut tiles)?;
    tiles.iter_mut().for_each(|segments| segments.sort_by_key(|segment| segment.address));
    Ok(Images { contents: pool.contents, tiles })
}

/// Distinct contents by bytes.
#[derive(Default)]
struct Pool {
    contents: Vec<Arc<[u8]>>,
    numbers: BTreeMap<Arc<[u8]>, u32>,
}

impl Pool {
    fn add(&mut self, bytes: Vec<u8>) -> u32 {
        if let Some(number) = self.numbers.get(bytes.as_slice()) {
            return *number;
        }
        let (content, number): (Arc<[u8]>, u32) = (bytes.into(), self.contents.len() as u32);
        self.contents.push(content.clone());
        self.numbers.insert(content, number);
        number
    }

    fn segment(&mut self, block: Block, address: u32, words: Vec<u32>) -> ImageSegment {
        let content = self.add(words.iter().flat_map(|word| word.to_le_bytes()).collect());
        ImageSegment { block, address, content }
    }
}

/// Per class: runtime, program, kernels, copy.
fn shared_blocks(parts: &Parts<'_>, pool: &mut Pool) -> Result<Vec<Vec<ImageSegment>>, Fault> {
    let mut linked: BTreeMap<Block, ImageSegment> = BTreeMap::new();
    for (block, address) in &parts.placement.blocks {
        if let Some(object) = object_of(parts.objects, *block) {
            let bytes = object.link_at(*address, &externals(parts, *block)).map_err(|cause| Fault::Link { block: *block, cause })?;
            linked.insert(*block, ImageSegment { block: *block, address: *address, content: pool.add(bytes) });
        }
    }
    let symbols = Symbols::new(parts)?;
    let segments = |class: &ClassCode, pool: &mut Pool| {
        let called = class.kernels.iter().map(|kernel| Block::Kernel(*kernel)).chain(class.copies.then_some(Block::Copy));
        let mut segments: Vec<ImageSegment> = std::iter::once(Block::Runtime).chain(called).map(|block| linked[&block]).collect();
        segments.push(pool.segment(Block::Program, parts.placement.block(Block::Program), relocated(class, &symbols)));
        segments
    };
    Ok(parts.code.classes.iter().map(|class| segments(class, pool)).collect())
}

/// The object of a block that has one.
pub(crate) fn object_of(objects: &Objects, block: Block) -> Option<&Object> {
    match block {
        Block::Runtime => Some(&objects.runtime),
        Block::Copy => Some(&objects.copy.object),
        Block::Kernel(VariantId(variant)) => objects.kernels.get(variant as usize).map(|kernel| &kernel.object),
        Block::Program | Block::Greeting | Block::Host(_) | Block::Row(_) => None,
    }
}

/// Symbols that only the runtime refers to.
fn externals(parts: &Parts<'_>, block: Block) -> BTreeMap<String, u32> {
    let names = [("greeting", Block::Greeting), ("program", Block::Program)];
    let known = names.into_iter().filter(|_| block == Block::Runtime);
    known.map(|(name, block)| (name.to_owned(), parts.placement.block(block))).collect()
}

/// Addresses of everything that programs refer to.
struct Symbols<'a> {
    placement: &'a Placement,
    routines: BTreeMap<Routine, u32>,
    entries: BTreeMap<Block, u32>,
    host_rows: Vec<u32>,
}

impl<'a> Symbols<'a> {
    fn new(parts: &Parts<'a>) -> Result<Self, Fault> {
        let checkpoints = (0..parts.expanded.checkpoints.len() as u32).map(Routine::Checkpoint);
        let fixed = [Routine::Join, Routine::Stage, Routine::Idle, Routine::Finish];
        let routines = fixed
            .into_iter()
            .chain(checkpoints)
            .map(|routine| Ok((routine, symbol(parts, Block::Runtime, &parts.objects.runtime, &routine.symbol())?)));
        let kernels = (0u32..).map(VariantId).zip(&parts.objects.kernels).map(|(id, kernel)| (Block::Kernel(id), kernel));
        let placed = kernels.chain([(Block::Copy, &parts.objects.copy)]).filter(|(block, _)| parts.placement.blocks.contains_key(block));
        let entries = placed.map(|(block, kernel)| Ok((block, symbol(parts, block, &kernel.object, &kernel.entry)?)));
        let layouts = crate::code_blocks::host_layouts(parts.plan);
        let host_rows = (0u32..).zip(layouts).map(|(phase, layout)| parts.placement.block(Block::Host(phase)) + layout.row_offset);
        Ok(Self {
            placement: parts.placement,
            routines: routines.collect::<Result<_, Fault>>()?,
            entries: entries.collect::<Result<_, Fault>>()?,
            host_rows: host_rows.collect(),
        })
    }

    fn address(&self, target: Target) -> u32 {
        match target {
            Target::Routine(routine) => self.routines[&routine],
            Target::Block(block) => self.entries.get(&block).copied().unwrap_or_else(|| self.placement.block(block)),
            Target::HostRow(phase) => self.host_rows[phase as usize],
            Target::Arguments(offset) => self.placement.block(Block::Program) + offset,
            Target::Place(place) => self.placement.buffer(place.buffer) + place.offset,
        }
    }
}

fn symbol(parts: &Parts<'_>, block: Block, object: &Object, name: &str) -> Result<u32, Fault> {
    let offset = object.symbols().get(name).copied();
    let missing = || Fault::NoSymbol { block, symbol: name.to_owned() };
    offset.map(|offset| parts.placement.block(block) + offset).ok_or_else(missing)
}

fn relocated(class: &ClassCode, symbols: &Symbols<'_>) -> Vec<u32> {
    let mut words = class.words.clone();
    class.relocations.iter().for_each(|relocation| relocation.apply(&mut words, symbols.address(relocation.target)));
    words
}

/// Table and row of every tile that takes part in a host phase.
fn host_blocks(parts: &Parts<'_>, pool: &mut Pool, tiles: &mut [Vec<ImageSegment>]) {
    let layouts = crate::code_blocks::host_layouts(parts.plan);
    for (number, ((way, batch), layout)) in (0u32..).zip(parts.plan.batches().zip(layouts)) {
        let block = Block::Host(number);
        for tile in host_rows::participants(batch).iter() {
            let address_of = |buffer| parts.placement.buffer(buffer);
            let Some(host) = host_rows::host_row(parts.plan, way, batch, tile, address_of) else { continue };
            let mut words = vec![host.staged.len() as u32];
            words.extend(host.staged);
            words.resize(layout.row_offset as usize / 4, 0);
            words.extend(host.row);
            tiles[tile.index()].push(pool.segment(block, parts.placement.block(block), words));
        }
    }
}

/// The exchange rows of every tile.
fn row_blocks(parts: &Parts<'_>, pool: &mut Pool, tiles: &mut [Vec<ImageSegment>]) -> Result<(), Fault> {
    for class in &parts.code.classes {
        for (phase, tile) in class.phases.iter().flat_map(|phase| class.tiles.iter().map(move |tile| (*phase, *tile))) {
            let Some(words) = parts.rows.get(phase as usize).and_then(|rows| rows.get(&tile)) else {
                return Err(Fault::Row { tile, phase, bytes: 0, limit: 0 });
            };
            let block = Block::Row(phase);
            tiles[tile.index()].push(pool.segment(block, parts.placement.block(block), words.clone()));
        }
    }
    Ok(())
}

/// What holds of images:
/// * the lowest segment of every tile is at the entry; segments ascend and do not overlap;
/// * no segment meets the staging window or memory from `code_end` on;
/// * every row is inside the block that placement gave it.
pub fn check(placement: &Placement, row_bytes: &[u32], images: &Images) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    for (tile, segments) in TileId::all().zip(&images.tiles) {
        let span = |segment: &ImageSegment| (segment.address, segment.address + images.contents[segment.content as usize].len() as u32);
        if segments.first().is_none_or(|segment| segment.address != ipu21::memory::ENTRY) {
            faults.push(Fault::Entry { tile, address: segments.first().map_or(0, |segment| segment.address) });
        }
        for pair in segments.windows(2) {
            if span(&pair[0]).1 > pair[1].address {
                faults.push(Fault::Overlap { tile, first: pair[0].address, second: pair[1].address });
            }
        }
        for segment in segments {
            let (address, end) = span(segment);
            let staged = address < crate::placement::STAGING.1 && end > crate::placement::STAGING.0;
            if staged || end > placement.code_end {
                faults.push(Fault::Misplaced { tile, address, bytes: end - address });
            }
            if let Block::Row(phase) = segment.block {
                let limit = row_bytes.get(phase as usize).copied().unwrap_or(0);
                if end - address > limit {
                    faults.push(Fault::Row { tile, phase, bytes: end - address, limit });
                }
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}
