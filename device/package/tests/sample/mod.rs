//! A small package that satisfies every rule.

use ipu21::tile::{PhysTile, TileId};
use ipu21::{isa, memory};
use package::{
    Access, Axis, Binding, Blobs, Call, CallKind, CallSlice, Checkpoint, Element, Group, Layout, Listing, Order, Package, Panels, Piece,
    Point, Profile, Segment, Slice, SourceLine, Step, StepKind, Symbol, SymbolKind, Target, Tensor, Tile, TileSet, Transfers,
};

/// Where the sample's data lies.
pub(crate) const DATA: u32 = 0x60000;
/// Where its traps are.
pub(crate) const TRAPS: u32 = memory::ENTRY + 8;

fn tile(logical: u16) -> PhysTile {
    TileId::new(logical).expect("a tile").physical()
}

fn code(seed: u32) -> Vec<u8> {
    let words = [isa::NOP, seed | 1, Checkpoint::trap_word(0), Checkpoint::trap_word(1), isa::NOP, 0, 0, 0];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn tiles(blobs: &mut Blobs) -> Vec<Tile> {
    let record = |tile: PhysTile| Tile {
        tile,
        entry: memory::ENTRY,
        segments: vec![
            Segment::new(blobs, memory::ENTRY, &code(u32::from(tile.get() % 3) << 8), Access::CODE),
            Segment::new(blobs, DATA - 64, &[0; 32], Access::DATA),
        ],
        completion: Some(0x58000),
    };
    PhysTile::all().map(record).collect()
}

/// A 5 by 20 matrix in two pieces of two panels each, on two tiles; columns padded to 32, rows to 16.
fn panels() -> (Vec<Slice>, Layout) {
    let piece = |number: u32| Piece {
        tile: tile(number as u16),
        address: DATA,
        order: Order::ByColumn,
        rows: (number * 8, number * 8 + 8),
        columns: (0, 32),
        panel_bytes: 512,
        file_offset: u64::from(number) * 512,
    };
    let slice = |number: u32| Slice {
        tile: tile((number / 2) as u16),
        address: DATA + number % 2 * 512,
        file_offset: u64::from(number) * 256,
        bytes: 256,
    };
    let panels = Panels {
        rows: 5,
        row_axis: Axis { parts: 1, width: 5, padded: 16 },
        column_axis: Axis { parts: 2, width: 10, padded: 16 },
        swapped: false,
        pieces: (0..2).map(piece).collect(),
    };
    ((0..4).map(slice).collect(), Layout::Panels(panels))
}

fn binding(name: &str, group: Group) -> Binding {
    let (slices, layout) = panels();
    Binding { name: name.to_owned(), group, element: Element::F16, shape: vec![1, 5, 20], file_bytes: 1024, slices, layout }
}

/// The whole file in two batches.
fn transfers(binding: u32) -> Transfers {
    let slice =
        |number: u32| CallSlice { binding, page: 1, page_offset: number % 2 * 4096, file_offset: u64::from(number) * 256, bytes: 256 };
    let mut transfers = Transfers::default();
    transfers.push_batch([slice(0), slice(1)]);
    transfers.push_batch([slice(2), slice(3)]);
    transfers
}

fn call(name: &str, kind: CallKind, phases: u32, inputs: Transfers, outputs: Transfers) -> Call {
    let ends_program = kind == CallKind::Run;
    Call { name: name.to_owned(), command: phases, kind, phases, inputs, outputs, ends_program, invocations: Some(1) }
}

fn checkpoint(number: u32, point: Point) -> Checkpoint {
    let (slices, layout) = panels();
    let tensor = Tensor { name: format!("value{number}"), element: Element::F16, shape: vec![5, 20], file_bytes: 1024, slices, layout };
    Checkpoint {
        operation: number,
        name: format!("operation{number}"),
        trap: number,
        points: vec![Point { address: TRAPS + 4 * number, ..point }],
        resume_word: isa::NOP,
        trap_word: Checkpoint::trap_word(number),
        tensors: vec![tensor],
    }
}

/// The package.
pub(crate) fn package() -> Package {
    let mut package = Package::new(Target::c600("test", [7; 32]), 2);
    package.tiles = tiles(&mut package.blobs);
    package.bindings = vec![binding("input", Group::Input), binding("output", Group::Output), binding("weight", Group::Weight)];
    package.calls = vec![
        call("initialize", CallKind::Initialize, 4, transfers(2), Transfers::default()),
        call("run", CallKind::Run, 7, transfers(0), transfers(1)),
    ];
    package.code_parameters = vec!["tamp_f16v4_e4".to_owned()];
    let all = Point { tiles: package.tile_set(TileSet::all()), address: memory::ENTRY };
    let pair = package.tile_set(TileSet::new([tile(1), tile(0)]));
    package.checkpoints = (0..2).map(|number| checkpoint(number, all)).collect();
    let step = |number: u32, kind| Step {
        name: format!("step{number}"),
        operation: Some(number % 2),
        kind,
        kernels: vec!["gemm".to_owned()],
        planned_clocks: 100 + u64::from(number),
        starts: vec![Point { address: memory::ENTRY + 4 * number, ..all }],
    };
    package.profile = Profile {
        operations: vec!["operation0".to_owned(), "operation1".to_owned()],
        steps: vec![
            step(0, StepKind::Exchange { phase: 0, scheduled_events: 77 }),
            step(1, StepKind::Compute),
            step(2, StepKind::Checkpoint { checkpoint: 0 }),
        ],
        end: vec![Point { address: memory::ENTRY + 16, ..all }],
    };
    package.listings = vec![Listing {
        name: "gemm{rows=12}".to_owned(),
        source: "gemm.S".to_owned(),
        lines: vec![SourceLine { offset: 0, line: 10 }, SourceLine { offset: 8, line: 12 }],
        labels: vec![(0, "gemm".to_owned()), (8, "loop".to_owned())],
    }];
    let symbol = |name: &str, tiles, address, bytes, kind| Symbol { name: name.to_owned(), tiles, address, bytes, kind };
    package.symbols = vec![
        symbol("program", all.tiles, memory::ENTRY, 32, SymbolKind::Program),
        symbol("gemm", pair, memory::ENTRY + 4, 16, SymbolKind::Code { listing: 0 }),
        symbol("row", pair, memory::ENTRY + 20, 8, SymbolKind::Row { phase: 0 }),
        symbol("keys", pair, DATA, 1024, SymbolKind::Buffer { first_step: None, last_step: Some(1) }),
    ];
    package
}
