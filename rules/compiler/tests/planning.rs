//! Plans, expansions and their checks on the shapes the project is about.

use compiler::clocks::Costs;
use compiler::expand::expand;
use compiler::expanded_check;
use compiler::finalists::{Finalist, Finalists, finalists};
use compiler::kernel_table::KernelTable;
use compiler::layout::Layout;
use compiler::mapping::{self, identity, map};
use compiler::model::{Declaration, Model, check};
use compiler::plan_fault::Fault;
use toolchain::manifest;

const COSTS: Costs = Costs { internal_empty_phase: 600, call: 1 };

fn kernels() -> KernelTable {
    let text = include_str!("../../../device/kernels/manifest.toml");
    KernelTable::new(manifest::parse(text).expect("the shipped manifest is right"))
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

/// Every finalist expands, under its own mapping, to a program that passes its check. Returns the finalists.
fn plan_and_check(model: &Model, layout: &Layout, checkpoints: &[u32]) -> Result<Finalists, Vec<Fault>> {
    let kernels = kernels();
    let found = finalists(model, layout, &kernels, &COSTS, checkpoints)?;
    for finalist in &found.plans {
        let plain = expand(model, &finalist.plan, &identity(layout.tiles), &kernels, checkpoints).unwrap();
        let mapping = map(&plain, layout).unwrap();
        mapping::check(layout, &mapping).unwrap();
        let program = expand(model, &finalist.plan, &mapping, &kernels, checkpoints).unwrap();
        expanded_check::check(&program, &kernels).unwrap();
        program.phases.iter().for_each(|phase| phase.check().unwrap());
        assert_eq!(program.checkpoints.len(), checkpoints.len());
    }
    Ok(found)
}

fn figures(found: &Finalists) -> String {
    let lines = found.plans.iter().map(|finalist| {
        let Finalist { estimated_cycles, estimated_exchange_cycles, active_tiles, peaks, .. } = finalist;
        format!("{estimated_cycles} clocks, {estimated_exchange_cycles} of them exchange, tiles {active_tiles:?}, {peaks:?}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_reference_is_planned_far_below_the_known_compiler() {
    let found = plan_and_check(&reference(), &Layout::on(64), &[0, 1, 2, 6]).unwrap();
    assert!(found.plans[0].estimated_cycles < 130_000, "{}", figures(&found));
}

#[test]
fn an_encoder_layer_gets_faster_with_more_tiles() {
    let clocks = |tiles| {
        let found = plan_and_check(&encoder_layer(), &Layout::on(tiles), &[0, 6, 7]).unwrap();
        println!("{}", figures(&found));
        found.plans[0].estimated_cycles
    };
    let (few, some, all) = (clocks(64), clocks(192), clocks(1472));
    assert!(some < few && all < some, "{few} {some} {all}");
}
