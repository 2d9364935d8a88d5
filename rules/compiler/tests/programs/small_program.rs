//! A program of three tiles, written by hand, goes from buffers to bytes on the simulated chip.
//!
//! Tile 0 holds the input and sends it to tiles 5 and 701; tile 5 copies it, tile 701 replaces a part of it by a weight; both
//! results go back as outputs. Elements carry their own index, and tile memory is read through the layout formula written here a
//! second time.

use std::collections::BTreeMap;

use crate::building::{build, options};
use compiler::{
    host_files, placement,
    program::{
        Binding, Buffer, Call, CallGroup, Checkpoint, ColumnAxis, Expanded, Group, Operand, Order, Piece, Region, Step, Variant, VariantId,
    },
};
use driver::{Files, Reading, Session, SessionFault};
use exchange::{BufferId, Place, Problem, Transfer};
use ipu21::tile::TileId;

const ROWS: u32 = 24;
const WIDTH: u32 = 40;
const PADDED: u32 = 48;
/// Bytes of a panel of 24 rows.
const PANEL: u32 = ROWS * 32;
const VALUE: u32 = PANEL * PADDED / 16;
/// Tile 701 takes the second panel from the weight.
const REPLACED: std::ops::Range<u32> = 16..32;

fn tile(number: u16) -> TileId {
    TileId::new(number).expect("a tile")
}

fn buffer(name: &str, tiles: &[u16], life: (Option<u32>, Option<u32>)) -> Buffer {
    Buffer {
        name: name.to_owned(),
        bytes: VALUE,
        tiles: tiles.iter().map(|number| tile(*number)).collect(),
        region: Region::Any,
        align: 32,
        readable_tail: 48,
        first_step: life.0,
        last_step: life.1,
    }
}

fn binding(name: &str, group: Group, on: u16, buffer: u32) -> Binding {
    let piece = Piece {
        tile: tile(on),
        buffer: BufferId(buffer),
        offset: 0,
        order: Order::ByColumn,
        rows: (0, ROWS),
        columns: (0, PADDED),
        panel_bytes: PANEL,
    };
    Binding {
        name: name.to_owned(),
        group,
        shape: vec![1, ROWS, WIDTH],
        rows: ROWS,
        columns: ColumnAxis { parts: 1, width: WIDTH, padded: PADDED },
        row_axis: ColumnAxis { parts: 1, width: ROWS, padded: 32 },
        swapped: false,
        pieces: vec![piece],
    }
}

fn place(on: u16, buffer: u32) -> Place {
    Place { tile: tile(on), buffer: BufferId(buffer), offset: 0 }
}

fn copy(source: u32, destination: u32, offset: u32, bytes: u32) -> Call {
    let operand = |buffer| Operand { buffer: BufferId(buffer), offset };
    Call { kernel: VariantId(0), operands: vec![operand(source), operand(destination)], values: vec![bytes] }
}

/// Buffers: 0 input, 1 received, 2 result, 3 returned from tile 5, 4 returned from tile 701, 5 weight.
fn program() -> Expanded {
    let multicast = Transfer { source: place(0, 0), words: VALUE / 4, destinations: vec![place(5, 1), place(701, 1)] };
    let back = |on, buffer| Transfer { source: place(on, 2), words: VALUE / 4, destinations: vec![place(0, buffer)] };
    let group = |on, calls| CallGroup { tiles: vec![tile(on)], calls };
    Expanded {
        buffers: vec![
            buffer("input", &[0], (None, Some(0))),
            buffer("received", &[5, 701], (Some(0), Some(1))),
            buffer("result", &[5, 701], (Some(1), Some(3))),
            buffer("first", &[0], (Some(3), None)),
            buffer("second", &[0], (Some(3), None)),
            buffer("weight", &[701], (None, Some(1))),
        ],
        steps: vec![
            Step::Exchange { phase: 0, operation: 0 },
            Step::Compute {
                operation: 0,
                what: "copy".to_owned(),
                groups: vec![group(5, vec![copy(1, 2, 0, VALUE)]), group(701, vec![copy(1, 2, 0, VALUE), copy(5, 2, PANEL, PANEL)])],
            },
            Step::Checkpoint { checkpoint: 0 },
            Step::Exchange { phase: 1, operation: 1 },
            Step::Checkpoint { checkpoint: 1 },
        ],
        phases: vec![
            Problem { transfers: vec![multicast], serial: Vec::new() },
            Problem { transfers: vec![back(5, 3), back(701, 4)], serial: Vec::new() },
        ],
        variants: vec![Variant { kernel: "copy".to_owned(), parameters: BTreeMap::new() }],
        bindings: vec![
            binding("x", Group::Input, 0, 0),
            binding("y", Group::Output, 0, 3),
            binding("z", Group::Output, 0, 4),
            binding("w", Group::Weight, 701, 5),
        ],
        checkpoints: vec![
            Checkpoint { operation: 0, name: "mixed".to_owned(), tensor: binding("mixed", Group::Output, 701, 2) },
            Checkpoint { operation: 1, name: "moved".to_owned(), tensor: binding("moved", Group::Output, 0, 3) },
        ],
        operations: vec!["mix".to_owned(), "move".to_owned()],
        pairs: false,
    }
}

/// Element `index` of a tensor, distinct for small indices in every tensor.
fn element(base: u32, index: u32) -> [u8; 2] {
    (base + index).to_le_bytes()[..2].try_into().expect("two bytes")
}

fn tensor(base: u32) -> Vec<u8> {
    (0..ROWS * WIDTH).flat_map(|index| element(base, index)).collect()
}

const X: u32 = 0x1000;
const W: u32 = 0x2000;

/// What tile 701 makes of input and weight.
fn mixed() -> Vec<u8> {
    let index = |row: u32, column: u32| row * WIDTH + column;
    let all = (0..ROWS).flat_map(|row| (0..WIDTH).map(move |column| (row, column)));
    all.flat_map(|(row, column)| element(if REPLACED.contains(&column) { W } else { X }, index(row, column))).collect()
}

fn files(expanded: &Expanded, named: &[(&str, u32)]) -> Files {
    let file = |(name, base): &(&str, u32)| {
        let binding = expanded.bindings.iter().find(|binding| binding.name == *name).expect("a binding");
        ((*name).to_owned(), host_files::file_of(binding, &tensor(*base)).expect("a whole tensor"))
    };
    named.iter().map(file).collect()
}

#[test]
fn buffers_become_bytes_and_every_element_is_where_the_layout_says() {
    let built = build(program());
    let mut session = Session::open(&built.package, &options(1, 1)).expect("the tiles greet the host");
    session.initialize(&files(&built.expanded, &[("w", W)])).expect("weights arrive");
    let mut readings: Vec<Reading> = Vec::new();
    let outcome = session.run(&files(&built.expanded, &[("x", X)]), &mut |reading| readings.push(reading)).expect("the program runs");

    let binding = |name: &str| built.expanded.bindings.iter().find(|binding| binding.name == name).expect("a binding");
    let output = |name: &str| host_files::tensor_of(binding(name), &outcome.outputs[name]).expect("a whole file");
    assert_eq!(output("y"), tensor(X));
    assert_eq!(output("z"), mixed());

    let names: Vec<(usize, &str, u32)> =
        readings.iter().map(|reading| (reading.checkpoint, reading.name.as_str(), reading.operation)).collect();
    assert_eq!(names, [(0, "mixed", 0), (1, "moved", 1)]);
    let checkpoint = |number: usize| {
        let tensor = &built.expanded.checkpoints[number].tensor;
        host_files::tensor_of(tensor, &readings[number].tensors[0].1).expect("a whole file")
    };
    assert_eq!(checkpoint(0), mixed());
    assert_eq!(checkpoint(1), tensor(X));

    let address = built.placement.buffer(BufferId(3));
    for (row, column) in (0..ROWS).flat_map(|row| (0..WIDTH).map(move |column| (row, column))) {
        let at = address + column / 16 * PANEL + row * 32 + column % 16 * 2;
        let found = session.chip().read_memory(tile(0).physical(), at, 2).expect("written memory");
        assert_eq!(found, element(X, row * WIDTH + column), "row {row} column {column}");
    }
}

#[test]
fn clocks_are_those_of_the_steps_and_depend_on_neither_seed_nor_threads() {
    let built = build(program());
    let run = |seed, threads| {
        let mut session = Session::open(&built.package, &options(seed, threads)).expect("the tiles greet the host");
        session.initialize(&files(&built.expanded, &[("w", W)])).expect("weights arrive");
        session.run(&files(&built.expanded, &[("x", X)]), &mut |_| {}).expect("the program runs")
    };
    let (one, two) = (run(1, 1), run(2, 2));
    assert_eq!((&one.outputs, &one.clocks), (&two.outputs, &two.clocks));
    let steps: Vec<u64> = one.clocks.steps.iter().map(|step| step.simulated).collect();
    // A phase is the barrier's 600 clocks and about the 576 words of a value; both copies of a value take 72 clocks of paced moves.
    assert!((1000..2200).contains(&steps[0]), "{steps:?}");
    assert!((300..900).contains(&steps[1]), "{steps:?}");
    assert!((1500..2600).contains(&steps[3]), "{steps:?}");
    let timed = steps[0] + steps[1] + steps[3];
    assert!(one.clocks.total >= timed && one.clocks.total < timed + 2000, "{} against {timed}", one.clocks.total);
}

#[test]
fn a_run_without_weights_is_found_out() {
    let built = build(program());
    let mut session = Session::open(&built.package, &options(3, 1)).expect("the tiles greet the host");
    let fault = session.run(&files(&built.expanded, &[("x", X)]), &mut |_| {}).expect_err("the weights are missing");
    let SessionFault::OutOfStep { initialized, .. } = &fault else { panic!("another fault: {fault}") };
    assert!(!initialized);
    assert!(fault.to_string().ends_with("the call that sends the weights was not made"), "{fault}");
}

#[test]
fn wrong_files_and_repeated_calls_are_refused_by_name() {
    let built = build(program());
    let mut session = Session::open(&built.package, &options(3, 1)).expect("the tiles greet the host");
    let message = |fault: SessionFault| fault.to_string();
    assert_eq!(session.initialize(&Files::new()).map_err(message), Err("call initialize: tensor w was not given".to_owned()));
    let short = Files::from([("w".to_owned(), vec![0; 10])]);
    assert_eq!(session.initialize(&short).map_err(message), Err("host file of w: expected 2304 bytes, found 10".to_owned()));
    let right = files(&built.expanded, &[("w", W)]);
    let mut more = right.clone();
    more.insert("v".to_owned(), Vec::new());
    assert_eq!(session.initialize(&more).map_err(message), Err("call initialize: tensor v was given but is not sent".to_owned()));
    assert_eq!(session.initialize(&right), Ok(()));
    let again = session.initialize(&right).map_err(message);
    assert_eq!(again, Err("call initialize was already made; load the package again".to_owned()));
}

#[test]
fn a_changed_kernel_word_is_a_fault_with_kernel_and_source_line() {
    let built = build(program());
    let mut package = built.package.clone();
    let kernel = built.placement.block(placement::Block::Kernel(VariantId(0)));
    let broken = package.tiles.iter().position(|record| record.tile == tile(5).physical()).expect("tile 5");
    let segment = package.tiles[broken].segments.iter().position(|segment| segment.address == kernel).expect("its kernel");
    let mut contents = package.blobs.get(package.tiles[broken].segments[segment].data).expect("its bytes").to_vec();
    let first_worker_word = (contents.len() - contents.len() / 2) & !7;
    contents[first_worker_word..first_worker_word + 4].copy_from_slice(&[0xff; 4]);
    package.tiles[broken].segments[segment].data = package.blobs.intern(&contents);
    let mut session = Session::open(&package, &options(3, 1)).expect("the tiles greet the host");
    session.initialize(&files(&built.expanded, &[("w", W)])).expect("weights arrive");
    let fault = session.run(&files(&built.expanded, &[("x", X)]), &mut |_| {}).expect_err("an illegal word");
    let SessionFault::Tile { fault: cause, place: Some(place) } = &fault else { panic!("another fault: {fault}") };
    assert_eq!(cause.tile, tile(5).physical());
    assert_eq!(place.symbol, "copy");
    assert_eq!(place.source.as_ref().map(|(file, _)| file.as_str()), Some("copy.S"));
}

#[test]
fn idle_tiles_share_their_images_and_nothing_is_made_twice() {
    let built = build(program());
    let largest = built.code.classes.iter().map(|class| class.tiles.len()).max();
    assert!(largest.is_some_and(|tiles| tiles > 1460), "{largest:?}");
    let greetings = 32;
    assert!(built.images.contents.len() < greetings + 40, "{} contents", built.images.contents.len());
    let again = build(program());
    assert_eq!(again.images, built.images);
    assert_eq!(again.package.write(), built.package.write());
}
