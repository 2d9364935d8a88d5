//! Products whose inner channels are cut into groups and pieces, with and without staged weights: every element against float64, and the
//! plan is the one that was asked for.

use compiler::plan::{OperationPlan, ProductPlan};
use graph::{Db, EngineOptions, Label, PackageName, load};
use pipeline::stage;
use tests::TemporaryWorkspace;

/// A product `[rows, inner]` × `[inner, columns]` on some tiles, and how its inner channels are cut.
#[derive(Clone, Copy, Debug)]
struct Case {
    rows: u32,
    inner: u32,
    columns: u32,
    tiles: u32,
    groups: u32,
    pieces: u32,
    staged: bool,
    bias: bool,
    transposed: bool,
}

impl Case {
    fn toml(self) -> String {
        let Case { rows, inner, columns, tiles, groups, pieces, staged, bias, transposed } = self;
        let weight = if transposed { [columns, inner] } else { [inner, columns] };
        let [declared, drawn, argument] = match bias {
            true => [
                format!("parameters.b = {{ type = \"f16\", shape = [{columns}] }}\n"),
                format!("normal.b = {{ shape = [{columns}] }}\n"),
                ", \"b\"".to_owned(),
            ],
            false => Default::default(),
        };
        let variance = 1.0 / f64::from(inner);
        format!(
            r#"[model]
rule = "model"
inputs.x = {{ type = "f16", shape = [1, {rows}, {inner}] }}
parameters.w = {{ type = "f16", shape = {weight:?} }}
{declared}
[[model.op]]
name = "y"
op = "matmul"
args = ["x", "w"{argument}]
transposed = {transposed}

[input]
rule = "tensors"
seed = 1
normal.x = {{ shape = [1, {rows}, {inner}] }}

[weights]
rule = "tensors"
seed = 2
normal.w = {{ shape = {weight:?}, variance = {variance} }}
{drawn}
[program]
rule = "program"
model = ":model"
machine = "@ipu//machines:c600"
kernels = ["@ipu//kernels"]
layout = {{ tiles = {tiles}, accuracy = 1e-2, grids.y = {{ inner = {groups}, pieces = {pieces}, staged = {staged} }} }}
checkpoints = [0]

[run]
rule = "run"
program = ":program"
device = "@ipu//devices:simulator"
tensors = {{ x = ":input" }}
parameters = ":weights"
tolerance = {{ default = 1e-2 }}
"#
        )
    }
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { rows: 60,  inner: 128, columns: 32,  tiles: 4,  groups: 2, pieces: 1, staged: false, bias: false, transposed: false },
    Case { rows: 60,  inner: 128, columns: 48,  tiles: 8,  groups: 4, pieces: 2, staged: true,  bias: true,  transposed: false },
    Case { rows: 95,  inner: 144, columns: 40,  tiles: 6,  groups: 1, pieces: 4, staged: false, bias: true,  transposed: true  },
    Case { rows: 95,  inner: 144, columns: 40,  tiles: 6,  groups: 3, pieces: 3, staged: true,  bias: false, transposed: true  },
    Case { rows: 131, inner: 112, columns: 80,  tiles: 12, groups: 3, pieces: 2, staged: true,  bias: true,  transposed: false },
    Case { rows: 200, inner: 72,  columns: 100, tiles: 5,  groups: 1, pieces: 5, staged: true,  bias: false, transposed: false },
    // Shares of fewer rows than members.
    Case { rows: 3,   inner: 128, columns: 16,  tiles: 8,  groups: 8, pieces: 1, staged: false, bias: true,  transposed: false },
    Case { rows: 5,   inner: 256, columns: 32,  tiles: 16, groups: 7, pieces: 1, staged: true,  bias: false, transposed: true  },
];

fn planned(workspace: &TemporaryWorkspace, case: Case) -> ProductPlan {
    let mut session = workspace.session(EngineOptions { threads: 1, shuffle: None });
    let reports = session.build("//:run").unwrap_or_else(|failure| panic!("{case:?}: {failure}"));
    let report = reports.last().expect("a report");
    assert!(report.success, "{case:?}: {}", report.lines.join("\n"));
    let engine = session.engine();
    let label = Label::parse("//:program", &PackageName::in_workspace("")).expect("a label");
    let made = stage::finalists::finalists(engine, engine.target(&label)).expect("plans were made");
    let finalists = load(engine, &made).expect("the plans are stored");
    match &finalists[0].plan.operations[0] {
        OperationPlan::Product(product) => product.clone(),
        other => panic!("{case:?}: {other:?}"),
    }
}

#[test]
fn products_in_groups_and_pieces_are_exact_and_cut_as_asked() {
    for &case in CASES {
        let plan = planned(&TemporaryWorkspace::new(&case.toml()), case);
        assert_eq!((plan.inner.parts, plan.pieces, plan.staged), (case.groups, case.pieces, case.staged), "{case:?}");
    }
}

/// Operands of a part that are larger than a tile's memory are cut without being asked.
#[test]
fn operands_that_do_not_fit_are_cut() {
    let (rows, inner, columns) = (512, 2048, 512);
    let case = Case { rows, inner, columns, tiles: 16, groups: 1, pieces: 1, staged: false, bias: false, transposed: false };
    let whole = "grids.y = { inner = 1, pieces = 1, staged = false }";
    let free = case.toml().replace(&format!(", {whole}"), "");
    assert_ne!(free, case.toml());
    let plan = planned(&TemporaryWorkspace::new(&free), case);
    assert!(plan.inner.parts * plan.pieces > 1, "{plan:?}");
    let workspace = TemporaryWorkspace::new(&case.toml());
    let failure = workspace.session(EngineOptions { threads: 1, shuffle: None }).build("//:run").expect_err("as a whole it does not fit");
    assert!(failure.to_string().contains("does not fit"), "{failure}");
}
