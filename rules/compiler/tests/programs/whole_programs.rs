//! Planned programs go all the way: planned, scheduled, placed, packed, run on the simulated chip, compared with float64.

use crate::building::{build, options};
use compiler::{
    clocks::Costs,
    expand::expand,
    finalists::finalists,
    host_files,
    kernel_table::KernelTable,
    layout::Layout,
    mapping, model,
    program::{Binding, Expanded, Group},
    spread::Threads,
};
use driver::{Files, Session};
use half::f16;
use reference::{Graph, Matrix, Operation, evaluate};

fn kernel_table() -> KernelTable {
    KernelTable::new(toolchain::manifest::parse(kernels::manifest()).expect("the library's manifest is right"))
}

/// The best plan of a model, expanded.
fn best(declaration: &str, tiles: u32, checkpoints: &[u32]) -> Expanded {
    let declaration: model::Declaration = toml::from_str(declaration).expect("a declaration");
    let model = model::check(&declaration).expect("a model");
    let (layout, kernels) = (Layout::on(tiles), kernel_table());
    let found =
        finalists(&model, &layout, &kernels, &Costs { internal_empty_phase: 600, call: 1 }, checkpoints, &Threads::new(1)).expect("a plan");
    let plan = &found.plans[0].plan;
    let plain = expand(&model, plan, &mapping::identity(layout.tiles), &kernels, checkpoints).expect("an expansion");
    expand(&model, plan, &mapping::map(&plain, &layout).expect("a mapping"), &kernels, checkpoints).expect("an expansion")
}

/// Small repeatable values with standard deviation near `scale` that f16 holds exactly.
fn drawn(rows: usize, columns: usize, scale: f64, seed: u64) -> Matrix {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut value = || f64::from(f16::from_f64((uniform() + uniform() + uniform() + uniform() - 2.0) * 1.732 * scale));
    Matrix::new(rows, columns, (0..rows * columns).map(|_| value()).collect()).expect("as many values as elements")
}

fn bytes(matrix: &Matrix) -> Vec<u8> {
    matrix.values().iter().flat_map(|value| f16::from_f64(*value).to_le_bytes()).collect()
}

fn largest_difference(expected: &Matrix, found: &[u8]) -> f64 {
    let found = found.chunks_exact(2).map(|bytes| f64::from(f16::from_le_bytes([bytes[0], bytes[1]])));
    expected.values().iter().zip(found).map(|(expected, found)| (expected - found).abs()).fold(0.0, f64::max)
}

/// A model in both notations; `given` are its inputs and parameters in the graph's order.
struct Case<'a> {
    declaration: &'a str,
    given: Vec<(&'a str, Matrix)>,
    graph: Graph,
    /// Checkpointed operation and bound on its error.
    bounds: &'a [(u32, f64)],
}

/// Runs a case on `tiles` tiles; returns its clocks.
fn run(case: &Case<'_>, tiles: u32) -> u64 {
    let checkpoints: Vec<u32> = case.bounds.iter().map(|(operation, _)| *operation).collect();
    let built = build(best(case.declaration, tiles, &checkpoints));
    let values = evaluate(&case.graph, case.given.iter().map(|(_, matrix)| matrix.clone()).collect()).expect("a sound graph");
    let files = |group| -> Files {
        let bindings = built.expanded.bindings.iter().filter(|binding| binding.group == group);
        bindings.map(|binding| (binding.name.clone(), file(case, binding))).collect()
    };
    let mut session = Session::open(&built.package, &options(7, 0)).unwrap_or_else(|fault| panic!("{fault}"));
    session.initialize(&files(Group::Weight)).unwrap_or_else(|fault| panic!("{fault}"));
    let mut readings = Vec::new();
    let outcome = session.run(&files(Group::Input), &mut |reading| readings.push(reading)).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(readings.len(), case.bounds.len());
    for (reading, (operation, bound)) in readings.iter().zip(case.bounds) {
        assert_eq!(reading.operation, *operation);
        let tensor = &built.expanded.checkpoints[reading.checkpoint].tensor;
        let found = host_files::tensor_of(tensor, &reading.tensors[0].1).expect("a whole file");
        let difference = largest_difference(&values[case.given.len() + *operation as usize], &found);
        assert!(difference <= *bound, "{} on {tiles} tiles: {difference}", reading.name);
    }
    let last = readings.last().expect("a checkpoint behind the last operation");
    let outputs: Vec<&Vec<u8>> = outcome.outputs.values().collect();
    let output = built.expanded.bindings.iter().find(|binding| binding.group == Group::Output).expect("an output");
    let at_checkpoint = &built.expanded.checkpoints[last.checkpoint].tensor;
    assert_eq!(host_files::tensor_of(output, outputs[0]), host_files::tensor_of(at_checkpoint, &last.tensors[0].1));
    outcome.clocks.total
}

fn file(case: &Case<'_>, binding: &Binding) -> Vec<u8> {
    let (_, matrix) = case.given.iter().find(|(name, _)| *name == binding.name).expect("a tensor of that name");
    host_files::file_of(binding, &bytes(matrix)).expect("a whole tensor")
}

fn product(x: usize, w: usize, bias: Option<usize>, transposed: bool) -> Operation {
    Operation::Product { x, w, bias, transposed }
}

#[test]
fn one_attention_head_on_64_tiles_agrees_with_float64() {
    let weight = |seed| drawn(72, 72, (0.25_f64 / 72.0).sqrt(), seed);
    let case = Case {
        declaration: r#"
            inputs.hidden = { type = "f16", shape = [1, 729, 72] }
            parameters.wq = { type = "f16", shape = [72, 72] }
            parameters.wk = { type = "f16", shape = [72, 72] }
            parameters.wv = { type = "f16", shape = [72, 72] }
            op = [
                { name = "q", op = "matmul", args = ["hidden", "wq"] },
                { name = "k", op = "matmul", args = ["hidden", "wk"] },
                { name = "v", op = "matmul", args = ["hidden", "wv"] },
                { name = "qh", op = "split", args = ["q"], heads = 1 },
                { name = "kh", op = "split", args = ["k"], heads = 1 },
                { name = "vh", op = "split", args = ["v"], heads = 1 },
                { name = "output", op = "attention", args = ["qh", "kh", "vh"] },
            ]
        "#,
        given: vec![("hidden", drawn(729, 72, 1.0, 1)), ("wq", weight(2)), ("wk", weight(3)), ("wv", weight(4))],
        graph: Graph {
            inputs: 4,
            operations: vec![
                product(0, 1, None, false),
                product(0, 2, None, false),
                product(0, 3, None, false),
                Operation::View { x: 4 },
                Operation::View { x: 5 },
                Operation::View { x: 6 },
                Operation::Attention { q: 7, k: 8, v: 9, heads: 1, scale: 72_f64.sqrt().recip() },
            ],
        },
        bounds: &[(0, 3e-3), (1, 3e-3), (2, 3e-3), (6, 5e-4)],
    };
    let clocks = run(&case, 64);
    assert!(clocks < 110_000, "{clocks}");
}

#[test]
fn a_layer_of_twelve_heads_with_biases_and_transposed_weights_agrees_with_float64() {
    let weight = |seed| drawn(384, 384, 384_f64.sqrt().recip(), seed);
    let bias = |seed| drawn(1, 384, 0.1, seed);
    let case = Case {
        declaration: r#"
            inputs.hidden = { type = "f16", shape = [1, 64, 384] }
            parameters.wq = { type = "f16", shape = [384, 384] }
            parameters.wk = { type = "f16", shape = [384, 384] }
            parameters.wv = { type = "f16", shape = [384, 384] }
            parameters.wo = { type = "f16", shape = [384, 384] }
            parameters.bq = { type = "f16", shape = [384] }
            parameters.bk = { type = "f16", shape = [384] }
            parameters.bv = { type = "f16", shape = [384] }
            parameters.bo = { type = "f16", shape = [384] }
            op = [
                { name = "q", op = "matmul", args = ["hidden", "wq", "bq"], transposed = true },
                { name = "k", op = "matmul", args = ["hidden", "wk", "bk"], transposed = true },
                { name = "v", op = "matmul", args = ["hidden", "wv", "bv"], transposed = true },
                { name = "qh", op = "split", args = ["q"], heads = 12 },
                { name = "kh", op = "split", args = ["k"], heads = 12 },
                { name = "vh", op = "split", args = ["v"], heads = 12 },
                { name = "context", op = "attention", args = ["qh", "kh", "vh"] },
                { name = "output", op = "matmul", args = ["context", "wo", "bo"], transposed = true },
            ]
        "#,
        given: vec![
            ("hidden", drawn(64, 384, 1.0, 1)),
            ("wq", weight(2)),
            ("wk", weight(3)),
            ("wv", weight(4)),
            ("wo", weight(5)),
            ("bq", bias(6)),
            ("bk", bias(7)),
            ("bv", bias(8)),
            ("bo", bias(9)),
        ],
        graph: Graph {
            inputs: 9,
            operations: vec![
                product(0, 1, Some(5), true),
                product(0, 2, Some(6), true),
                product(0, 3, Some(7), true),
                Operation::View { x: 9 },
                Operation::View { x: 10 },
                Operation::View { x: 11 },
                Operation::Attention { q: 12, k: 13, v: 14, heads: 12, scale: 32_f64.sqrt().recip() },
                product(15, 4, Some(8), true),
            ],
        },
        bounds: &[(0, 8e-3), (6, 8e-3), (7, 8e-3)],
    };
    for tiles in [64, 1472] {
        run(&case, tiles);
    }
}

#[test]
fn a_product_on_one_tile_agrees_with_float64() {
    let case = Case {
        declaration: r#"
            inputs.a = { type = "f16", shape = [1, 37, 24] }
            parameters.w = { type = "f16", shape = [24, 56] }
            parameters.b = { type = "f16", shape = [56] }
            op = [{ name = "y", op = "matmul", args = ["a", "w", "b"] }]
        "#,
        given: vec![("a", drawn(37, 24, 1.0, 1)), ("w", drawn(24, 56, 0.2, 2)), ("b", drawn(1, 56, 0.5, 3))],
        graph: Graph { inputs: 3, operations: vec![product(0, 1, Some(2), false)] },
        bounds: &[(0, 5e-3)],
    };
    run(&case, 1);
}
