//! Fields of `layout.grids` that ask how one operation is done: whatever is asked, every element agrees with float64, and the program is
//! another one.

use std::collections::BTreeSet;

use graph::EngineOptions;
use tests::TemporaryWorkspace;

/// Attention of two heads over 100 tokens on 12 tiles with keys cut into two groups.
fn workspace(grid: &str) -> TemporaryWorkspace {
    TemporaryWorkspace::new(&format!(
        r#"
model = {{ rule = "model", inputs.x = {{ type = "f16", shape = [1, 100, 48] }}, parameters.wq = {{ type = "f16", shape = [48, 48] }}, parameters.wk = {{ type = "f16", shape = [48, 48] }}, parameters.wv = {{ type = "f16", shape = [48, 48] }}, op = [
    {{ name = "q", op = "matmul", args = ["x", "wq"] }},
    {{ name = "k", op = "matmul", args = ["x", "wk"] }},
    {{ name = "v", op = "matmul", args = ["x", "wv"] }},
    {{ name = "queries", op = "split", args = ["q"], heads = 2 }},
    {{ name = "keys", op = "split", args = ["k"], heads = 2 }},
    {{ name = "values", op = "split", args = ["v"], heads = 2 }},
    {{ name = "attended", op = "attention", args = ["queries", "keys", "values"] }},
] }}
input = {{ rule = "tensors", seed = 1, normal.x = {{ shape = [1, 100, 48] }} }}
weights = {{ rule = "tensors", seed = 2, normal.wq = {{ shape = [48, 48], variance = 0.02 }}, normal.wk = {{ shape = [48, 48], variance = 0.02 }}, normal.wv = {{ shape = [48, 48], variance = 0.02 }} }}

[program]
rule = "program"
model = ":model"
machine = "@ipu//machines:c600"
kernels = ["@ipu//kernels"]
layout = {{ tiles = 12, finalists = 1, grids.attended.keys = 2{grid} }}
checkpoints = [0, 1, 2, 6]

[run]
rule = "run"
program = ":program"
device = "@ipu//devices:simulator"
tensors = {{ x = ":input" }}
parameters = ":weights"
tolerance = {{ default = 5e-3 }}
"#
    ))
}

#[test]
fn whatever_a_layout_asks_of_an_operation_is_exact() {
    let mut packages = BTreeSet::new();
    let choices = [
        "packing = \"producer\"|scaling = \"queries\"",
        "packing = \"producer\"|scaling = \"scores\"",
        "packing = \"consumer\"|scaling = \"queries\"",
        "packing = \"consumer\"|scaling = \"scores\"",
        "packing = \"consumer\"|scaling = \"scores\"|row_unit = 8",
        "packing = \"consumer\"|scaling = \"scores\"|partials = \"f32\"",
        "packing = \"consumer\"|scaling = \"scores\"|weights_memory = \"standard\"",
    ];
    for choice in choices {
        let fields: String = choice.split('|').map(|field| format!(", grids.attended.{field}")).collect();
        let workspace = workspace(&fields);
        let mut session = workspace.session(EngineOptions { threads: 1, shuffle: None });
        let reports = session.build("//:run").unwrap_or_else(|failure| panic!("{choice}: {failure}"));
        let report = reports.last().expect("a report");
        assert!(report.success, "{choice}: {}", report.lines.join("\n"));
        let package = std::fs::read(workspace.root().join("artifacts/program/model.ipuexe")).expect("an exported package");
        assert!(packages.insert(package), "{choice} gives the program of another choice");
    }
}

/// A product whose operand goes from each of sixteen tiles to the seven others of its row, which are whole pairs but one.
const BROADCASTS: &str = r#"
model = { rule = "model", inputs.x = { type = "f16", shape = [1, 256, 512] }, parameters.w = { type = "f16", shape = [512, 256] }, op = [
    { name = "y", op = "matmul", args = ["x", "w"] },
] }
input = { rule = "tensors", seed = 1, normal.x = { shape = [1, 256, 512] } }
weights = { rule = "tensors", seed = 2, normal.w = { shape = [512, 256], variance = 0.002 } }

[program]
rule = "program"
model = ":model"
machine = "@ipu//machines:c600"
kernels = ["@ipu//kernels"]
layout = { tiles = 16, pairs = PAIRS, finalists = 1, mapping = "identity", grids.y = { rows = 2, columns = 8, inner = 1 } }

[run]
rule = "run"
program = ":program"
device = "@ipu//devices:simulator"
tensors = { x = ":input" }
parameters = ":weights"
tolerance = { default = 5e-3 }
"#;

#[test]
fn whole_pairs_of_tiles_are_sent_64_bits_when_asked() {
    let clocks = ["false", "true"].map(|pairs| {
        let workspace = TemporaryWorkspace::new(&BROADCASTS.replace("PAIRS", pairs));
        let reports = workspace.session(EngineOptions { threads: 1, shuffle: None }).build("//:run").expect("a program");
        let report = reports.last().expect("a report");
        assert!(report.success, "{}", report.lines.join("\n"));
        let total = report.lines.iter().find(|line| line.starts_with("total")).expect("a line of totals");
        total.split_whitespace().last().and_then(|clocks| clocks.parse::<u64>().ok()).expect("simulated clocks")
    });
    assert!(10 * clocks[1] < 9 * clocks[0], "{clocks:?}");
}
