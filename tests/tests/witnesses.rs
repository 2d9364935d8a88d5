//! Where tensors lie in tile memory, said without the compiler: every element holds its own index, and tile memory is read through the
//! layout formula as it is written here.
//!
//! A panel holds 16 positions of one axis for every position of the other, 32 bytes a position; panels follow each other at
//! `panel_bytes`. The columns of a value are heads, each padded to a multiple of 16, and padding holds zero.

use std::collections::{BTreeMap, BTreeSet};

use compiler::layout::Layout;
use compiler::model::{Declaration, OperationDeclaration};
use compiler::program::{Binding, Expanded, Group, Order, Piece};
use driver::Session;
use half::f16;
use tests::compiled::{self, Compiled, Mutation, Task, Tensors, operation, tensor};

/// Rows of inputs.
const ROWS: u32 = 28;
/// Columns of inputs: 28 * 72 indices are exact in f16.
const WIDTH: u32 = 72;
const HEADS: u32 = 3;
const TILES: u32 = 6;

/// Nothing shares memory in time, so that inputs and weights are still there when the program has ended.
struct Kept;

impl Mutation for Kept {
    fn expanded(&self, program: &mut Expanded) {
        for buffer in &mut program.buffers {
            (buffer.first_step, buffer.last_step) = (None, None);
        }
    }
}

/// Byte offset of an element of a piece: `along` counts inside the panels' 16, `across` between rows of 32 bytes.
fn offset(piece: &Piece, row: u32, column: u32) -> u32 {
    let (panelled, other) = match piece.order {
        Order::ByColumn => (column - piece.columns.0, row - piece.rows.0),
        Order::ByRow => (row - piece.rows.0, column - piece.columns.0),
    };
    piece.offset + panelled / 16 * piece.panel_bytes + other * 32 + panelled % 16 * 2
}

/// An axis of a matrix: heads of `width` positions, each padded to a multiple of 16.
#[derive(Clone, Copy)]
struct Heads {
    count: u32,
    width: u32,
}

impl Heads {
    /// The plain position, of a padded one that has one.
    fn plain(self, padded: u32) -> Option<u32> {
        let block = self.width.div_ceil(16) * 16;
        let (head, within) = (padded / block, padded % block);
        (head < self.count && within < self.width).then_some(head * self.width + within)
    }
}

/// What a test knows of a tensor: the axes of the matrix that its pieces are rectangles of, and whether the tensor is given with rows
/// and columns exchanged.
#[derive(Clone, Copy)]
struct Known {
    rows: Heads,
    columns: Heads,
    exchanged: bool,
}

impl Known {
    fn new(rows: Heads, columns: Heads) -> Self {
        Self { rows, columns, exchanged: false }
    }

    /// Row-major index of the element at a padded place.
    fn index(self, row: u32, column: u32) -> Option<u32> {
        let (row, column) = (self.rows.plain(row)?, self.columns.plain(column)?);
        let (rows, columns) = (self.rows.count * self.rows.width, self.columns.count * self.columns.width);
        Some(if self.exchanged { column * rows + row } else { row * columns + column })
    }

    fn elements(self) -> u32 {
        self.rows.count * self.rows.width * self.columns.count * self.columns.width
    }
}

const fn one(width: u32) -> Heads {
    Heads { count: 1, width }
}

const fn heads() -> Heads {
    Heads { count: HEADS, width: WIDTH / HEADS }
}

fn task(inputs: &[(&str, &[u32])], parameters: &[(&str, &[u32])], op: Vec<OperationDeclaration>) -> Task {
    let declared = |tensors: &[(&str, &[u32])]| tensors.iter().map(|(name, shape)| ((*name).to_owned(), tensor(shape))).collect();
    let declaration = Declaration { inputs: declared(inputs), parameters: declared(parameters), op, outputs: None };
    Task { declaration, layout: Layout::on(TILES), checkpoints: Vec::new() }
}

/// Every element its own row-major index.
fn indices(task: &Task) -> Tensors {
    let declared = task.declaration.inputs.iter().chain(&task.declaration.parameters);
    let filled = |shape: &[u32]| (0..shape.iter().product::<u32>()).map(|index| f16::from_f64(f64::from(index))).collect();
    declared.map(|(name, tensor)| (name.clone(), filled(&tensor.shape))).collect()
}

/// Runs a program on tensors full of indices and reads every input and weight back from tile memory.
fn assert_places(task: &Task, mutation: &dyn Mutation, known: &BTreeMap<&str, Known>) -> Compiled {
    let compiled = compiled::compile(task, mutation).unwrap_or_else(|refusal| panic!("{refusal}"));
    let tensors = indices(task);
    let mut session = Session::open(&compiled.package, &compiled::options(7)).expect("the tiles greet the host");
    let weights = compiled::files(&compiled.expanded, Group::Weight, &tensors, mutation);
    session.initialize(&weights).unwrap_or_else(|fault| panic!("{fault}"));
    compiled::run_from(&mut session, &compiled, &tensors, mutation).unwrap_or_else(|fault| panic!("{fault}"));
    let given: Vec<&Binding> = compiled.expanded.bindings.iter().filter(|binding| binding.group != Group::Output).collect();
    let names: BTreeSet<&str> = given.iter().map(|binding| binding.name.as_str()).collect();
    assert_eq!(names, known.keys().copied().collect());
    for binding in given {
        let known = known[binding.name.as_str()];
        let mut seen = BTreeSet::new();
        for piece in &binding.pieces {
            seen.extend(assert_piece(&session, &compiled, &binding.name, piece, known));
        }
        assert_eq!(seen, (0..known.elements()).collect(), "elements of {} in memory", binding.name);
    }
    drop(session);
    compiled
}

/// Reads all elements of a piece; gives the indices found.
fn assert_piece(session: &Session<'_>, compiled: &Compiled, name: &str, piece: &Piece, known: Known) -> Vec<u32> {
    let base = compiled.placement.buffer(piece.buffer);
    let places = (piece.rows.0..piece.rows.1).flat_map(|row| (piece.columns.0..piece.columns.1).map(move |column| (row, column)));
    let mut seen = Vec::new();
    for (row, column) in places {
        let address = base + offset(piece, row, column);
        let bytes = session.chip().read_memory(piece.tile.physical(), address, 2).expect("written memory");
        let found = f16::from_le_bytes(bytes.try_into().expect("two bytes"));
        let index = known.index(row, column);
        assert_eq!(found.to_f64(), f64::from(index.unwrap_or(0)), "{name} row {row} column {column} at {address:#x} of {:?}", piece.tile);
        seen.extend(index);
    }
    seen
}

fn orders(compiled: &Compiled, name: &str) -> BTreeSet<Order> {
    let bindings = compiled.expanded.bindings.iter().filter(|binding| binding.name == name && binding.group != Group::Output);
    bindings.flat_map(|binding| &binding.pieces).map(|piece| piece.order).collect()
}

/// Products with a weight either way round, and with a bias.
fn products() -> (Task, BTreeMap<&'static str, Known>) {
    let turned = OperationDeclaration { transposed: Some(true), ..operation("turned", "matmul", &["x", "by_output", "bias"]) };
    let op = vec![operation("plain", "matmul", &["x", "by_input"]), turned];
    let parameters: [(&str, &[u32]); 3] = [("by_input", &[WIDTH, ROWS]), ("by_output", &[ROWS, WIDTH]), ("bias", &[ROWS])];
    let known = BTreeMap::from([
        ("x", Known::new(one(ROWS), one(WIDTH))),
        ("by_input", Known::new(one(WIDTH), one(ROWS))),
        ("by_output", Known::new(one(ROWS), one(WIDTH))),
        ("bias", Known::new(one(1), one(ROWS))),
    ]);
    (task(&[("x", &[1, ROWS, WIDTH])], &parameters, op), known)
}

#[test]
fn inputs_weights_and_biases_lie_where_the_formula_says() {
    let (task, known) = products();
    let compiled = assert_places(&task, &Kept, &known);
    assert_eq!(orders(&compiled, "by_input"), BTreeSet::from([Order::ByRow]));
    assert_eq!(orders(&compiled, "by_output"), BTreeSet::from([Order::ByColumn]));
}

#[test]
fn heads_of_inputs_and_of_the_next_weights_are_padded_one_by_one() {
    let split = |name, value| OperationDeclaration { heads: Some(HEADS), ..operation(name, "split", &[value]) };
    let turned = OperationDeclaration { transposed: Some(true), ..operation("turned", "matmul", &["context", "by_output"]) };
    let op = vec![
        split("queries", "q"),
        split("keys", "k"),
        split("values", "v"),
        operation("context", "attention", &["queries", "keys", "values"]),
        operation("plain", "matmul", &["context", "by_input"]),
        turned,
    ];
    let shape: &[u32] = &[1, ROWS, WIDTH];
    let parameters: [(&str, &[u32]); 2] = [("by_input", &[WIDTH, ROWS]), ("by_output", &[ROWS, WIDTH])];
    let task = task(&[("q", shape), ("k", shape), ("v", shape)], &parameters, op);
    let known = BTreeMap::from([
        ("q", Known::new(one(ROWS), heads())),
        ("k", Known::new(one(ROWS), heads())),
        ("v", Known::new(one(ROWS), heads())),
        ("by_input", Known::new(heads(), one(ROWS))),
        ("by_output", Known::new(one(ROWS), heads())),
    ]);
    let compiled = assert_places(&task, &Kept, &known);
    let used: BTreeSet<Order> = ["q", "k", "v"].iter().flat_map(|name| orders(&compiled, name)).collect();
    assert_eq!(used, BTreeSet::from([Order::ByColumn, Order::ByRow]));
}

/// Describes the weight `by_input` as rectangles of `[out, in]`, the tensor given exchanged: the same bytes in other words.
struct Exchanged;

impl Mutation for Exchanged {
    fn expanded(&self, program: &mut Expanded) {
        Kept.expanded(program);
        let binding = program.bindings.iter_mut().find(|binding| binding.name == "by_input").expect("a weight");
        binding.swapped = true;
        binding.rows = binding.columns.parts * binding.columns.width;
        std::mem::swap(&mut binding.row_axis, &mut binding.columns);
        for piece in &mut binding.pieces {
            assert_eq!(piece.order, Order::ByRow);
            piece.order = Order::ByColumn;
            std::mem::swap(&mut piece.rows, &mut piece.columns);
        }
    }
}

#[test]
fn a_weight_in_exchanged_words_has_the_same_bytes() {
    let (task, mut known) = products();
    known.insert("by_input", Known { exchanged: true, ..Known::new(one(ROWS), one(WIDTH)) });
    assert_places(&task, &Exchanged, &known);
}

#[test]
fn a_product_with_the_identity_gives_every_element_its_own_index() {
    let mut task = task(&[("x", &[1, ROWS, WIDTH])], &[("identity", &[WIDTH, WIDTH])], vec![operation("y", "matmul", &["x", "identity"])]);
    task.checkpoints = vec![0];
    let mut tensors = indices(&task);
    let diagonal = |index: u32| f16::from_f64(if index / WIDTH == index % WIDTH { 1.0 } else { 0.0 });
    tensors.insert("identity".to_owned(), (0..WIDTH * WIDTH).map(diagonal).collect());
    let compiled = compiled::compile(&task, &compiled::Unchanged).unwrap_or_else(|refusal| panic!("{refusal}"));
    let results = compiled::run(&compiled, &tensors, &compiled::Unchanged).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(results.checkpoints[0].values, tensors["x"]);
    assert_eq!(results.outputs[0].values, tensors["x"]);
}
