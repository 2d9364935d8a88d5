//! Plans, expansions and their checks on the shapes the project is about.

use compiler::clocks::Costs;
use compiler::expand::expand;
use compiler::expanded_check;
use compiler::finalists::{Finalist, Finalists, finalists};
use compiler::kernel_table::KernelTable;
use compiler::layout::{GridChoice, Layout, Packing, Partials, PartialsChoice, Scaling, WeightsMemory};
use compiler::mapping::{self, identity, map};
use compiler::model::{Declaration, Model, check};
use compiler::plan::{OperationPlan, Orientation, Plan};
use compiler::plan_fault::Fault;
use compiler::program::{CallGroup, Expanded, Group, Step};
use compiler::spread::Threads;
use proptest::prelude::*;
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
    let found = finalists(model, layout, &kernels, &COSTS, checkpoints, &Threads::new(1))?;
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
        found.plans[0].estimated_cycles
    };
    let (few, some, all) = (clocks(64), clocks(192), clocks(1472));
    assert!(some < few && all < some, "{few} {some} {all}");
}

fn messages(faults: &[Fault]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

#[test]
fn layouts_and_checkpoints_that_name_nothing_are_refused_together() {
    let grid = GridChoice { keys: Some(2), ..GridChoice::default() };
    let grids = [("q".to_owned(), grid), ("nobody".to_owned(), grid)].into();
    let layout = Layout { grids, ..Layout::on(64) };
    let faults = finalists(&reference(), &layout, &kernels(), &COSTS, &[3, 6], &Threads::new(1)).unwrap_err();
    #[rustfmt::skip]
    assert_eq!(messages(&faults), [
        "checkpoint 3 is no operation with a result of its own; possible: [0, 1, 2, 6]",
        "layout.grids.nobody: expected an operation: q, k, v, output",
        "layout.grids.q.keys: expected rows, columns, inner, pieces, staged, orientation, row_unit, partials or weights_memory",
    ]);
}

#[test]
fn a_grid_asked_for_is_used() {
    let grids = [
        ("k".to_owned(), GridChoice { rows: Some(23), columns: Some(1), ..GridChoice::default() }),
        ("output".to_owned(), GridChoice { queries: Some(16), keys: Some(4), ..GridChoice::default() }),
    ];
    let layout = Layout { grids: grids.into(), mapping: "pair-spread".to_owned(), ..Layout::on(64) };
    let found = plan_and_check(&reference(), &layout, &[6]).unwrap();
    assert!(found.plans.iter().all(|finalist| finalist.active_tiles[1] == 23 && finalist.active_tiles[6] == 64));
}

#[test]
fn standard_memory_for_weights_costs_more() {
    let clocks =
        |weights_memory| plan_and_check(&reference(), &Layout { weights_memory, ..Layout::on(64) }, &[]).unwrap().plans[0].estimated_cycles;
    assert!(clocks(WeightsMemory::Standard) > clocks(WeightsMemory::Interleaved));
}

/// A product of `rows` rows by 512 channels.
fn product_of(rows: u32) -> Model {
    model(&format!(
        r#"
        inputs.x = {{ type = "f16", shape = [1, {rows}, 512] }}
        parameters.w = {{ type = "f16", shape = [512, 512] }}
        op = [{{ name = "y", op = "matmul", args = ["x", "w"] }}]
    "#
    ))
}

fn refusals(model: &Model, layout: &Layout) -> Vec<String> {
    messages(&finalists(model, layout, &kernels(), &COSTS, &[], &Threads::new(1)).unwrap_err())
}

#[test]
fn a_model_too_large_for_its_tile_is_refused_with_the_tile_its_values_and_the_tiles_that_suffice() {
    let layout = Layout { partials: PartialsChoice::F16, ..Layout::on(1) };
    // Input, weights and result: 704 rows of 512, 512 of 512, 704 of 512, and 16 bytes that may be read behind x.
    assert_eq!(2 * 512 * (704 + 512 + 704) + 16, 1_966_096);
    #[rustfmt::skip]
    assert_eq!(refusals(&product_of(700), &layout), [
        "does not fit: the smallest plan needs 1966096 of 589824 bytes on a tile, 720896 of 425984 interleaved; largest allocation 720896 bytes (`y`)\n  \
         tile 0 at step 0, product of `y`: `x` 720912, `y` 720896, `y.weights` 524288 bytes\n  \
         nearest layout that fits: tiles = 4",
    ]);
    plan_and_check(&product_of(700), &Layout { tiles: 4, ..layout.clone() }, &[]).unwrap();
    plan_and_check(&product_of(700), &Layout { tiles: 3, ..layout }, &[]).unwrap_err();
}

#[test]
fn what_kernels_cannot_do_is_refused_after_what_does_not_fit() {
    // Neither operand of 1024 rows can be streamed by the product kernel.
    let square = model(
        r#"
        inputs.x = { type = "f16", shape = [1, 1024, 16] }
        parameters.w = { type = "f16", shape = [16, 1024] }
        op = [{ name = "y", op = "matmul", args = ["x", "w"] }]
    "#,
    );
    let found = refusals(&square, &Layout::on(1));
    assert!(found[0].contains(" = 1024, expected 1 to 768"), "{found:?}");
    let tiles = found[0].lines().last().and_then(|line| line.strip_prefix("  nearest layout that fits: tiles = ")).unwrap();
    plan_and_check(&square, &Layout::on(tiles.parse().unwrap()), &[]).unwrap();
    // Dense copies of 512 KiB are more than their kernel takes, but it is memory that is short.
    let products = model(
        r#"
        inputs.x = { type = "f16", shape = [1, 512, 512] }
        parameters.w = { type = "f16", shape = [512, 512] }
        parameters.v = { type = "f16", shape = [512, 512] }
        op = [{ name = "y", op = "matmul", args = ["x", "w"] }, { name = "z", op = "matmul", args = ["y", "v"] }]
    "#,
    );
    let found = refusals(&products, &Layout::on(2));
    assert!(found[0].starts_with("does not fit: "), "{found:?}");
}

#[test]
fn a_grid_that_takes_too_much_memory_is_released_by_the_nearest_layout() {
    let grids = [("y".to_owned(), GridChoice { rows: Some(1), columns: Some(1), inner: Some(1), ..GridChoice::default() })];
    let layout = Layout { grids: grids.into(), ..Layout::on(16) };
    let found = refusals(&product_of(700), &layout);
    assert_eq!(found[0].lines().last(), Some("  nearest layout that fits: grids = {}"), "{found:?}");
}

#[test]
fn a_model_too_large_for_all_tiles_is_refused_with_the_number_of_layouts_tried() {
    let found = refusals(&product_of(1_000_000), &Layout::on(1472));
    assert_eq!(found[0].lines().last(), Some("  none of 1 other layouts tried fits"), "{found:?}");
}

#[test]
fn two_splits_that_pad_one_value_differently_are_refused() {
    let model = model(
        r#"
        inputs.x = { type = "f16", shape = [1, 20, 72] }
        op = [
            { name = "a", op = "split", args = ["x"], heads = 1 },
            { name = "b", op = "split", args = ["x"], heads = 3 },
            { name = "o", op = "attention", args = ["a", "a", "a"] },
            { name = "p", op = "attention", args = ["b", "b", "b"] },
        ]
    "#,
    );
    let faults = finalists(&model, &Layout::on(4), &kernels(), &COSTS, &[], &Threads::new(1)).unwrap_err();
    let expected =
        "`x` is split into 1 blocks of 72 and, by `b`, into 3 blocks of 24; two splits of one value need blocks that are multiples of 16";
    assert_eq!(messages(&faults), [expected]);
}

/// A small program that passes, for the mutations below.
fn small() -> (Expanded, KernelTable) {
    let model = model(
        r#"
        inputs.x = { type = "f16", shape = [1, 40, 32] }
        parameters.w = { type = "f16", shape = [32, 32] }
        op = [
            { name = "y", op = "matmul", args = ["x", "w"] },
            { name = "h", op = "split", args = ["y"], heads = 2 },
            { name = "o", op = "attention", args = ["h", "h", "h"] },
        ]
    "#,
    );
    let grids = [("o".to_owned(), GridChoice { heads: Some(1), queries: Some(2), keys: Some(3), ..GridChoice::default() })];
    let layout = Layout { grids: grids.into(), ..Layout::on(6) };
    let kernels = kernels();
    let found = finalists(&model, &layout, &kernels, &COSTS, &[0], &Threads::new(1)).unwrap();
    let program = expand(&model, &found.plans[0].plan, &identity(6), &kernels, &[0]).unwrap();
    assert_eq!(expanded_check::check(&program, &kernels), Ok(()));
    (program, kernels)
}

/// The first fault after a change.
fn fault_after(change: impl FnOnce(&mut Expanded)) -> expanded_check::Fault {
    let (mut program, kernels) = small();
    change(&mut program);
    expanded_check::check(&program, &kernels).unwrap_err().remove(0)
}

fn first_calls(program: &mut Expanded) -> &mut Vec<CallGroup> {
    let groups = program.steps.iter_mut().find_map(|step| match step {
        Step::Compute { what, groups, .. } if what == "product" => Some(groups),
        _ => None,
    });
    groups.expect("a product")
}

#[test]
fn each_rule_of_an_expanded_program_has_a_change_that_breaks_it() {
    use expanded_check::Fault as Found;
    let fault = fault_after(|program| program.buffers[1].name = program.buffers[0].name.clone());
    assert!(matches!(fault, Found::Buffer { .. }), "{fault}");
    let fault = fault_after(|program| {
        let groups = first_calls(program);
        groups.push(groups[0].clone());
    });
    assert!(matches!(fault, Found::TwoGroups { .. }), "{fault}");
    let fault = fault_after(|program| first_calls(program)[0].calls[0].operands[0].offset += 32);
    assert!(matches!(fault, Found::Operand { .. } | Found::Unwritten { .. }), "{fault}");
    let fault = fault_after(|program| first_calls(program)[0].calls[0].operands[1] = first_calls(program)[0].calls[0].operands[2]);
    assert!(matches!(fault, Found::Operand { .. } | Found::Unwritten { .. }), "{fault}");
    let fault = fault_after(|program| program.bindings.retain(|binding| binding.group != Group::Weight));
    assert!(matches!(fault, Found::Unwritten { .. }), "{fault}");
    let fault = fault_after(|program| {
        program.phases[0].transfers.pop();
    });
    assert!(matches!(fault, Found::Unwritten { .. }), "{fault}");
    let fault = fault_after(|program| {
        let transfer = program.phases[0].transfers[0].clone();
        program.phases[0].transfers.push(transfer);
    });
    assert!(matches!(fault, Found::Overlap { .. }), "{fault}");
    let fault = fault_after(|program| program.phases[0].transfers[0].source.offset += 0x1_0000);
    assert!(matches!(fault, Found::Outside { .. }), "{fault}");
    let fault = fault_after(|program| {
        let scores = program.buffers.iter_mut().find(|buffer| buffer.name == "o.scores").expect("scores");
        scores.last_step = scores.first_step;
    });
    assert!(matches!(fault, Found::Lifetime { .. }), "{fault}");
    let fault = fault_after(|program| {
        let output = program.bindings.iter_mut().find(|binding| binding.group == Group::Output).expect("an output");
        output.pieces.pop();
    });
    assert!(matches!(fault, Found::Cover { .. }), "{fault}");
    let fault = fault_after(|program| program.checkpoints[0].tensor.pieces[0].rows.0 += 1);
    assert!(matches!(fault, Found::Cover { .. }), "{fault}");
    let fault = fault_after(|program| program.phases.clear());
    assert!(matches!(fault, Found::Dangling { .. }), "{fault}");
}

#[test]
fn expansion_does_not_depend_on_anything_but_its_inputs() {
    let ((one, _), (other, _)) = (small(), small());
    assert_eq!(one, other);
}

/// A random program of the kinds the project promises: one or two inputs, chains of products, attention.
#[derive(Clone, Debug)]
struct Drawn {
    tokens: u32,
    keys: Option<u32>,
    width: u32,
    heads: u32,
    bias: bool,
    transposed: bool,
    chain: u32,
    tiles: u32,
    attention: bool,
    shared: bool,
}

impl Drawn {
    fn model(&self) -> Model {
        let Self { tokens, width, heads, chain, bias, transposed, .. } = *self;
        let mut text = format!("inputs.a = {{ type = \"f16\", shape = [1, {tokens}, {width}] }}\n");
        if let Some(keys) = self.keys {
            text += &format!("inputs.b = {{ type = \"f16\", shape = [1, {keys}, {width}] }}\n");
        }
        let mut operations = Vec::new();
        let mut product = |name: &str, x: &str| {
            text += &format!("parameters.w{name} = {{ type = \"f16\", shape = [{width}, {width}] }}\n");
            text += &format!("parameters.b{name} = {{ type = \"f16\", shape = [{width}] }}\n");
            let arguments = if bias { format!("\"{x}\", \"w{name}\", \"b{name}\"") } else { format!("\"{x}\", \"w{name}\"") };
            operations.push(format!("{{ name = \"{name}\", op = \"matmul\", args = [{arguments}], transposed = {transposed} }}"));
        };
        let mut last = "a".to_owned();
        for link in 0..chain {
            product(&format!("c{link}"), &last);
            last = format!("c{link}");
        }
        if self.attention {
            let other = if self.keys.is_some() { "b" } else { last.as_str() };
            product("q", &last);
            product("k", other);
            let values = if self.shared {
                "k"
            } else {
                product("v", other);
                "v"
            };
            for name in ["q", "k", values] {
                operations
                    .push(format!("{{ name = \"{name}h{}\", op = \"split\", args = [\"{name}\"], heads = {heads} }}", operations.len()));
            }
            let names: Vec<_> = (operations.len() - 3..operations.len())
                .zip(["q", "k", values])
                .map(|(index, name)| format!("\"{name}h{index}\""))
                .collect();
            operations.push(format!("{{ name = \"attended\", op = \"attention\", args = [{}] }}", names.join(", ")));
            let mut product = |name: &str, x: &str| {
                text += &format!("parameters.w{name} = {{ type = \"f16\", shape = [{width}, {width}] }}\n");
                operations.push(format!("{{ name = \"{name}\", op = \"matmul\", args = [\"{x}\", \"w{name}\"] }}"));
            };
            product("out", "attended");
        }
        text += &format!("op = [\n{}\n]\n", operations.join(",\n"));
        model(&text)
    }
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let shape = (1u32..300, proptest::option::of(1u32..300), 1u32..=20, 1u32..=4, 1u32..=3);
    let tiles = prop_oneof![8 => 1u32..=128, 1 => Just(1472u32)];
    let choices = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (shape, tiles, choices).prop_map(|((tokens, keys, eights, heads, chain), tiles, (bias, transposed, attention, shared))| {
        // Widths that the heads divide.
        let width = (eights * 8).next_multiple_of(8 * heads);
        Drawn { tokens, keys, width, heads, bias, transposed, chain, tiles, attention, shared }
    })
}

#[test]
fn values_turned_where_they_are_used_can_follow_any_product_before() {
    // All cheap plans of this attention want its values in one order, and all cheap plans of the product before leave the other.
    let drawn = Drawn {
        tokens: 81,
        keys: Some(241),
        width: 16,
        heads: 2,
        bias: false,
        transposed: false,
        chain: 1,
        tiles: 1472,
        attention: true,
        shared: false,
    };
    let model = drawn.model();
    let checkpoints: Vec<_> = model.computed().collect();
    assert!(!plan_and_check(&model, &Layout::on(drawn.tiles), &checkpoints).unwrap().plans.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_are_planned_or_refused_with_their_sizes(drawn in drawn()) {
        let model = drawn.model();
        let checkpoints: Vec<_> = model.computed().collect();
        match plan_and_check(&model, &Layout::on(drawn.tiles), &checkpoints) {
            Ok(found) => prop_assert!(found.plans[0].estimated_cycles > 0),
            Err(faults) => {
                let is_size = matches!(faults.as_slice(), [Fault::DoesNotFit(refusal)] if !refusal.peaks.fit());
                prop_assert!(is_size, "{faults:?}");
            }
        }
    }
}

#[test]
fn what_the_layout_asks_of_one_operation_holds_of_all_its_plans_and_of_no_other_operation() {
    let plans = |operation: &str, choice: GridChoice| {
        let layout = Layout { grids: [(operation.to_owned(), choice)].into(), ..Layout::on(64) };
        plan_and_check(&reference(), &layout, &[]).unwrap().plans
    };
    for (packing, is_transposed) in [(Packing::Producer, false), (Packing::Consumer, true)] {
        for (scaling, is_scaled) in [(Scaling::Queries, true), (Scaling::Scores, false)] {
            let choice = GridChoice { packing: Some(packing), scaling: Some(scaling), row_unit: Some(8), ..GridChoice::default() };
            for finalist in plans("output", choice) {
                let OperationPlan::Attention(attention) = &finalist.plan.operations[6] else { panic!("output is an attention") };
                assert_eq!((attention.values_transposed, attention.queries_scaled, attention.queries.unit), (is_transposed, is_scaled, 8));
            }
        }
    }
    let choice = GridChoice {
        partials: Some(PartialsChoice::F32),
        weights_memory: Some(WeightsMemory::Standard),
        row_unit: Some(4),
        orientation: Some(Orientation::Straight),
        ..GridChoice::default()
    };
    for finalist in plans("k", choice) {
        let products = finalist.plan.operations.iter().filter_map(|operation| match operation {
            OperationPlan::Product(product) => Some((product.partials, product.interleaved)),
            _ => None,
        });
        let others = (Partials::F16, true);
        assert_eq!(products.collect::<Vec<_>>(), [others, (Partials::F32, false), others]);
    }
}

#[test]
fn phases_of_operations_that_do_not_need_each_other_are_one() {
    let model = |second: &str| {
        model(&format!(
            r#"
            inputs.x = {{ type = "f16", shape = [1, 64, 128] }}
            parameters.w = {{ type = "f16", shape = [128, 128] }}
            parameters.v = {{ type = "f16", shape = [128, 128] }}
            op = [
                {{ name = "y", op = "matmul", args = ["x", "w"] }},
                {{ name = "z", op = "matmul", args = ["{second}", "v"] }},
            ]
        "#
        ))
    };
    let grid = GridChoice { inner: Some(2), pieces: Some(1), ..GridChoice::default() };
    let layout = Layout { grids: ["y", "z"].map(|name| (name.to_owned(), grid)).into(), finalists: 1, ..Layout::on(16) };
    // Sums of both products are added at last; those of a chain wait for each other.
    for (second, are_merged) in [("x", true), ("y", false)] {
        let model = model(second);
        let plan = plan_and_check(&model, &layout, &[0, 1]).unwrap().plans.remove(0).plan;
        assert_eq!(plan.merged, are_merged, "{second}");
        let program = expand(&model, &plan, &identity(16), &kernels(), &[0, 1]).unwrap();
        let apart = expand(&model, &Plan { merged: false, ..plan.clone() }, &identity(16), &kernels(), &[0, 1]).unwrap();
        let transfers = |program: &Expanded| program.phases.iter().map(|phase| phase.transfers.len()).sum::<usize>();
        assert_eq!(transfers(&program), transfers(&apart));
        assert_eq!(program.phases.len() < apart.phases.len(), are_merged, "{second}");
        expanded_check::check(&apart, &kernels()).unwrap();
    }
}

#[test]
fn queries_that_are_an_input_cannot_be_scaled_where_they_are_made() {
    let attended = model(
        r#"
        inputs.q = { type = "f16", shape = [1, 64, 32] }
        inputs.k = { type = "f16", shape = [1, 64, 32] }
        op = [
            { name = "queries", op = "split", args = ["q"], heads = 1 },
            { name = "keys", op = "split", args = ["k"], heads = 1 },
            { name = "attended", op = "attention", args = ["queries", "keys", "keys"] },
        ]
    "#,
    );
    let choice = GridChoice { scaling: Some(Scaling::Queries), ..GridChoice::default() };
    let found = refusals(&attended, &Layout { grids: [("attended".to_owned(), choice)].into(), ..Layout::on(8) });
    assert!(found[0].starts_with("layout.grids.attended: queries that are an input"), "{found:?}");
}

#[test]
fn products_stream_the_operand_that_the_layout_asks_for() {
    for (asked, form) in [(Orientation::Straight, "straight"), (Orientation::Swapped, "swapped")] {
        let choice = GridChoice { orientation: Some(asked), ..GridChoice::default() };
        let layout = Layout { grids: [("q".to_owned(), choice)].into(), ..Layout::on(64) };
        let found = finalists(&reference(), &layout, &kernels(), &COSTS, &[], &Threads::new(1)).expect("both ways are possible");
        for finalist in found.plans {
            let OperationPlan::Product(product) = &finalist.plan.operations[0] else { panic!("q is a product") };
            assert!(product.forms.iter().any(|form| form.orientation == asked), "{form}: {:?}", product.forms);
        }
    }
}
