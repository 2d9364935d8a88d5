//! Plans, expansions and their checks on the shapes the project is about.

use std::collections::BTreeMap;
use std::time::Instant;

use compiler::clocks::Costs;
use compiler::finalists::{Finalists, finalists};
use compiler::kernel_table::KernelTable;
use compiler::layout::Layout;
use compiler::model::{Declaration, Model, check};
use toolchain::expression::Expression;
use toolchain::manifest;

const COSTS: Costs = Costs { internal_empty_phase: 600, call: 1 };

/// The standard library with the screening models of kernel-budget.
fn kernels() -> KernelTable {
    #[rustfmt::skip]
    let models = BTreeMap::from([
        ("gemm",         "80+CG*(100+KB*(99-32*WMEM+24*max(4,ceildiv(ROWS,6))))"),
        ("gemm_f32",     "80+CG*(100+KB*2*(83-16*WMEM+24*max(4,ceildiv(ROWS,6))))"),
        ("bias_columns", "60+CG*ROWS*5"),
        ("bias_rows",    "60+CG*ROWS*5"),
        ("softmax",      "60+ROWS*KG*16*13/8+22*ROWS"),
        ("normalise",    "60+ROWS*CG*6"),
        ("merge",        "60+ROWS*CG*PARTS*10+60*ROWS"),
        ("reduce",       "60+PARTS*BYTES/8"),
        ("transpose",    "60+ROWS*CG*5"),
        ("copy",         "60+bytes/8"),
        ("copy_panels",  "60+G*(30+BYTES/8)"),
    ]);
    let text = include_str!("../../../device/kernels/manifest.toml");
    let parsed = manifest::parse(text).expect("the shipped manifest is right");
    KernelTable::new(parsed.into_iter().map(|mut kernel| {
        if let Some(model) = models.get(kernel.name.as_str()) {
            kernel.cycles = Expression::parse(model).expect("a model above");
        }
        kernel
    }))
}

fn model(text: &str) -> Model {
    let declaration: Declaration = toml::from_str(text).expect("a test model");
    check(&declaration).expect("a test model")
}

fn reference() -> Model {
    model(
        r#"
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
    )
}

fn encoder_layer() -> Model {
    model(
        r#"
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
    )
}

fn report(name: &str, found: &Finalists, started: Instant) {
    eprintln!("{name}: {} ms, {} considered", started.elapsed().as_millis(), found.considered);
    for finalist in &found.plans {
        eprintln!("  {} ({}) {:?} {:?}", finalist.estimated_cycles, finalist.estimated_exchange_cycles, finalist.active_tiles, finalist.peaks);
    }
    eprintln!("{:#?}", found.plans[0].plan.operations);
}

#[test]
fn the_reference_beats_the_known_compiler_clearly() {
    let (model, kernels) = (reference(), kernels());
    let started = Instant::now();
    let found = finalists(&model, &Layout::on(64), &kernels, &COSTS, &[0, 1, 2, 6]).unwrap();
    report("reference", &found, started);
    assert!(found.plans[0].estimated_cycles < 130_000);
}

#[test]
fn encoder() {
    let (model, kernels) = (encoder_layer(), kernels());
    for tiles in [64, 192, 1472] {
        let started = Instant::now();
        let found = finalists(&model, &Layout::on(tiles), &kernels, &COSTS, &[]).unwrap();
        report("encoder", &found, started);
    }
}
