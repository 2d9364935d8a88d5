//! The application package of a placed program.
//!
//! In: everything the earlier stages made, and a [`Description`] of plan and tables. Out: a [`package::Package`]. Its rules are
//! those of `Package::check`, which knows nothing of this crate.

use std::collections::BTreeMap;

use ipu21::{host, tile::TileId};
use package::{
    Access, Axis, Call, CallKind, CallSlice, Checkpoint, Element, Layout, Listing, Package, Panels, Point, Segment, SourceLine, StepKind,
    Symbol, SymbolKind, Target, TileSet, TileSetId, Transfers,
};

use crate::{
    host_plan::{self, Batch},
    images::{Images, Parts, object_of},
    kernel_table::printed,
    placement::{Block, STAGING},
    program::{Binding, ColumnAxis, Expanded, Group, Order, Piece, Step},
    runtime,
};

/// Page of the rolling data (machine.md e.1).
const DATA_PAGE: u32 = 1;
/// Command words of the two calls.
const INITIALIZE: u32 = 1;
const RUN: u32 = 2;

/// What a package says beyond words and addresses.
#[derive(Clone, Copy, Debug)]
pub struct Description<'a> {
    /// Name and version of the producing program, for messages only.
    pub producer: &'a str,
    /// Digest of the parameter table.
    pub parameters: [u8; 32],
    /// Parameters of kind `code` and unknown value that the words depend on.
    pub code_parameters: &'a [String],
    /// Planned clocks of each step.
    pub planned_clocks: &'a [u64],
    /// Horizon of each exchange phase in events.
    pub horizons: &'a [u64],
}

/// Puts a program together.
pub fn assemble(parts: &Parts<'_>, images: &Images, description: &Description<'_>) -> Package {
    let mut target = Target::c600(description.producer, description.parameters);
    target.host_window = STAGING;
    let mut package = Package::new(target, parts.plan.participants.len() as u32);
    package.code_parameters = description.code_parameters.to_vec();
    package.code_parameters.sort();
    package.code_parameters.dedup();
    tiles(images, &mut package);
    package.bindings = parts.expanded.bindings.iter().map(|binding| package_binding(parts, binding)).collect();
    package.calls = calls(parts);
    let all = package.tile_set(TileSet::all());
    let classes: Vec<TileSetId> = parts.code.classes.iter().map(|class| package.tile_set(set_of(&class.tiles))).collect();
    package.checkpoints = checkpoints(parts, all);
    profile(parts, description, &classes, &mut package);
    code_symbols(parts, images, &mut package);
    data_symbols(parts, all, &mut package);
    package
}

fn set_of(tiles: &[TileId]) -> TileSet {
    TileSet::new(tiles.iter().map(|tile| tile.physical()))
}

fn tiles(images: &Images, package: &mut Package) {
    let mut tiles: Vec<package::Tile> = TileId::all()
        .zip(&images.tiles)
        .map(|(tile, segments)| package::Tile {
            tile: tile.physical(),
            entry: ipu21::memory::ENTRY,
            segments: segments
                .iter()
                .map(|segment| {
                    let contents = &images.contents[segment.content as usize];
                    Segment::new(&mut package.blobs, segment.address, contents, Access::CODE)
                })
                .collect(),
            completion: Some(runtime::COMPLETION),
        })
        .collect();
    tiles.sort_by_key(|tile| tile.tile);
    package.tiles = tiles;
}

fn package_binding(parts: &Parts<'_>, binding: &Binding) -> package::Binding {
    package::Binding {
        name: binding.name.clone(),
        group: match binding.group {
            Group::Input => package::Group::Input,
            Group::Output => package::Group::Output,
            Group::Weight => package::Group::Weight,
        },
        element: Element::F16,
        shape: binding.shape.clone(),
        file_bytes: crate::host_files::file_bytes(binding) as u64,
        slices: slices(parts, binding),
        layout: layout(parts, binding),
    }
}

fn slices(parts: &Parts<'_>, binding: &Binding) -> Vec<package::Slice> {
    let slice = |slice: host_plan::Slice| package::Slice {
        tile: slice.tile.physical(),
        address: parts.placement.buffer(slice.place.buffer) + slice.place.offset,
        file_offset: slice.file_offset,
        bytes: slice.bytes,
    };
    host_plan::slices(binding).into_iter().map(slice).collect()
}

fn layout(parts: &Parts<'_>, binding: &Binding) -> Layout {
    let mut file_offset = 0;
    let pieces = binding.pieces.iter().map(|piece| {
        let placed = package_piece(parts, piece, file_offset);
        file_offset += placed.file_bytes();
        placed
    });
    Layout::Panels(Panels {
        rows: binding.rows,
        row_axis: axis(binding.row_axis),
        column_axis: axis(binding.columns),
        swapped: binding.swapped,
        pieces: pieces.collect(),
    })
}

fn package_piece(parts: &Parts<'_>, piece: &Piece, file_offset: u64) -> package::Piece {
    package::Piece {
        tile: piece.tile.physical(),
        address: parts.placement.buffer(piece.buffer) + piece.offset,
        order: match piece.order {
            Order::ByColumn => package::Order::ByColumn,
            Order::ByRow => package::Order::ByRow,
        },
        rows: piece.rows,
        columns: piece.columns,
        panel_bytes: piece.panel_bytes,
        file_offset,
    }
}

fn axis(axis: ColumnAxis) -> Axis {
    Axis { parts: axis.parts, width: axis.width, padded: axis.padded }
}

fn calls(parts: &Parts<'_>) -> Vec<Call> {
    let call = |name: &str, command, kind, inputs: &[Batch], outputs: &[Batch]| {
        let mut call = Call {
            name: name.to_owned(),
            command,
            kind,
            phases: 0,
            inputs: transfers(parts, inputs),
            outputs: transfers(parts, outputs),
            ends_program: kind == CallKind::Run,
            invocations: Some(1),
        };
        call.phases = call.expected_phases() as u32;
        call
    };
    let plan = parts.plan;
    vec![
        call("initialize", INITIALIZE, CallKind::Initialize, &plan.initialize, &[]),
        call("run", RUN, CallKind::Run, &plan.inputs, &plan.outputs),
    ]
}

fn transfers(parts: &Parts<'_>, batches: &[Batch]) -> Transfers {
    let mut transfers = Transfers::default();
    for batch in batches {
        transfers.push_batch(batch.shares.iter().flat_map(|share| {
            let slot = parts.plan.slot_of(share.tile).unwrap_or_default() * host::SLOT_BYTES;
            share.parts.iter().map(move |part| CallSlice {
                binding: part.binding,
                page: DATA_PAGE,
                page_offset: slot + part.slot_offset,
                file_offset: part.file_offset,
                bytes: part.bytes,
            })
        }));
    }
    transfers
}

/// Traps lie at the start of their routines, at one address on all tiles.
fn checkpoints(parts: &Parts<'_>, all: TileSetId) -> Vec<Checkpoint> {
    let base = parts.placement.block(Block::Runtime);
    let symbols = parts.objects.runtime.symbols();
    let checkpoint = |(number, checkpoint): (u32, &crate::program::Checkpoint)| {
        let trap = u32::from(runtime::trap_number(number as usize));
        let routine = crate::supervisor::Routine::Checkpoint(number).symbol();
        Checkpoint {
            operation: checkpoint.operation,
            name: checkpoint.name.clone(),
            trap,
            points: vec![Point { tiles: all, address: base + symbols.get(&routine).copied().unwrap_or_default() }],
            resume_word: ipu21::isa::NOP,
            trap_word: Checkpoint::trap_word(trap),
            tensors: vec![package::Tensor {
                name: checkpoint.tensor.name.clone(),
                element: Element::F16,
                shape: checkpoint.tensor.shape.clone(),
                file_bytes: crate::host_files::file_bytes(&checkpoint.tensor) as u64,
                slices: slices(parts, &checkpoint.tensor),
                layout: layout(parts, &checkpoint.tensor),
            }],
        }
    };
    (0u32..).zip(&parts.expanded.checkpoints).map(checkpoint).collect()
}

fn profile(parts: &Parts<'_>, description: &Description<'_>, classes: &[TileSetId], package: &mut Package) {
    let program = parts.placement.block(Block::Program);
    let points = |offset: &dyn Fn(&crate::tile_code::Points) -> u32| -> Vec<Point> {
        let classes = classes.iter().zip(&parts.code.classes);
        classes.map(|(tiles, class)| Point { tiles: *tiles, address: program + offset(&class.points) }).collect()
    };
    package.profile.operations = parts.expanded.operations.clone();
    package.profile.end = points(&|points| points.end);
    for (number, step) in parts.expanded.steps.iter().enumerate() {
        let (name, operation, kind) = step_kind(parts.expanded, step, description);
        package.profile.steps.push(package::Step {
            name,
            operation: Some(operation),
            kind,
            kernels: kernels(parts.expanded, step),
            planned_clocks: description.planned_clocks.get(number).copied().unwrap_or_default(),
            starts: points(&|points| points.steps[number]),
        });
    }
}

fn step_kind(expanded: &Expanded, step: &Step, description: &Description<'_>) -> (String, u32, StepKind) {
    match step {
        Step::Exchange { phase, operation } => {
            let scheduled_events = description.horizons.get(*phase as usize).copied().unwrap_or_default();
            ("move".to_owned(), *operation, StepKind::Exchange { phase: *phase, scheduled_events })
        }
        Step::Compute { operation, what, .. } => (what.clone(), *operation, StepKind::Compute),
        Step::Checkpoint { checkpoint } => {
            let operation = expanded.checkpoints[*checkpoint as usize].operation;
            ("checkpoint".to_owned(), operation, StepKind::Checkpoint { checkpoint: *checkpoint })
        }
    }
}

fn kernels(expanded: &Expanded, step: &Step) -> Vec<String> {
    let Step::Compute { groups, .. } = step else { return Vec::new() };
    let calls = groups.iter().flat_map(|group| &group.calls);
    let mut names: Vec<String> = calls.map(|call| printed(&expanded.variants[call.kernel.0 as usize])).collect();
    names.sort();
    names.dedup();
    names
}

/// One symbol for each block and size, with a listing where there is source.
fn code_symbols(parts: &Parts<'_>, images: &Images, package: &mut Package) {
    let mut stretches: BTreeMap<(Block, u32, u32), Vec<TileId>> = BTreeMap::new();
    for (tile, segments) in TileId::all().zip(&images.tiles) {
        for segment in segments {
            let bytes = images.contents[segment.content as usize].len() as u32;
            stretches.entry((segment.block, segment.address, bytes)).or_default().push(tile);
        }
    }
    let mut listings: BTreeMap<Block, u32> = BTreeMap::new();
    for ((block, address, bytes), tiles) in stretches {
        let name = block_name(parts.expanded, block);
        let kind = match (block, object_of(parts.objects, block)) {
            (Block::Row(phase), _) => SymbolKind::Row { phase },
            (_, None) => SymbolKind::Program,
            (_, Some(object)) => SymbolKind::Code {
                listing: *listings.entry(block).or_insert_with(|| {
                    package.listings.push(listing(&name, object));
                    package.listings.len() as u32 - 1
                }),
            },
        };
        let tiles = package.tile_set(set_of(&tiles));
        package.symbols.push(Symbol { name, tiles, address, bytes, kind });
    }
}

fn listing(name: &str, object: &toolchain::object::Object) -> Listing {
    let mut labels: Vec<(u32, String)> = object.symbols().iter().map(|(name, offset)| (*offset, name.clone())).collect();
    labels.sort();
    Listing {
        name: name.to_owned(),
        source: object.source_name().to_owned(),
        // A listing is of one file; code of a program includes none.
        lines: object.lines().iter().filter(|row| row.file == 0).map(|row| SourceLine { offset: row.offset, line: row.line }).collect(),
        labels,
    }
}

fn block_name(expanded: &Expanded, block: Block) -> String {
    match block {
        Block::Runtime => "runtime".to_owned(),
        Block::Program => "program".to_owned(),
        Block::Kernel(variant) => printed(&expanded.variants[variant.0 as usize]),
        Block::Copy => "copy".to_owned(),
        Block::Greeting => "greeting".to_owned(),
        Block::Host(phase) => format!("host {phase}"),
        Block::Row(phase) => format!("row {phase}"),
    }
}

fn data_symbols(parts: &Parts<'_>, all: TileSetId, package: &mut Package) {
    for (buffer, address) in parts.expanded.buffers.iter().zip(&parts.placement.buffers) {
        let kind = SymbolKind::Buffer { first_step: buffer.first_step, last_step: buffer.last_step };
        let tiles = package.tile_set(set_of(&buffer.tiles));
        package.symbols.push(Symbol { name: buffer.name.clone(), tiles, address: *address, bytes: buffer.bytes, kind });
    }
    let support = [
        ("host staging", STAGING.0, runtime::SCRATCH - STAGING.0),
        ("worker scratch", runtime::SCRATCH, 6 * runtime::SCRATCH_BYTES),
        ("completion", runtime::COMPLETION, 4),
    ];
    for (name, address, bytes) in support {
        package.symbols.push(Symbol { name: name.to_owned(), tiles: all, address, bytes, kind: SymbolKind::Support });
    }
}
