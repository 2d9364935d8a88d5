//! Same sources, same bytes: other directories, stores, numbers of threads and orders of work change no artifact.

use std::collections::BTreeMap;

use graph::{Digest, EngineOptions, StageId};
use tests::TemporaryWorkspace;

/// A cross attention of two heads between a product with a bias and one without, on 24 tiles.
const PROGRAM: &str = r#"
[model]
rule = "model"
inputs.text = { type = "f16", shape = [1, 77, 48] }
inputs.image = { type = "f16", shape = [1, 50, 24] }
parameters.wq = { type = "f16", shape = [48, 48] }
parameters.bq = { type = "f16", shape = [48] }
parameters.wk = { type = "f16", shape = [48, 24] }
parameters.wv = { type = "f16", shape = [24, 48] }
parameters.wo = { type = "f16", shape = [48, 40] }
op = [
    { name = "q", op = "matmul", args = ["text", "wq", "bq"] },
    { name = "k", op = "matmul", args = ["image", "wk"], transposed = true },
    { name = "v", op = "matmul", args = ["image", "wv"] },
    { name = "queries", op = "split", args = ["q"], heads = 2 },
    { name = "keys", op = "split", args = ["k"], heads = 2 },
    { name = "values", op = "split", args = ["v"], heads = 2 },
    { name = "context", op = "attention", args = ["queries", "keys", "values"] },
    { name = "output", op = "matmul", args = ["context", "wo"] },
]

[tensors]
rule = "tensors"
seed = 5
normal.text = { shape = [1, 77, 48] }
normal.image = { shape = [1, 50, 24] }
normal.wq = { shape = [48, 48], variance = 0.02 }
normal.bq = { shape = [48] }
normal.wk = { shape = [48, 24], variance = 0.04 }
normal.wv = { shape = [24, 48], variance = 0.04 }
normal.wo = { shape = [48, 40], variance = 0.02 }

[chip]
rule = "device"
kind = "simulator"
seed = 0

[program]
rule = "program"
model = ":model"
machine = "@ipu//machines:c600"
kernels = ["@ipu//kernels"]
layout = { tiles = 24 }
checkpoints = [0, 6]

[run]
rule = "run"
program = ":program"
device = ":chip"
tensors = { text = ":tensors", image = ":tensors" }
parameters = ":tensors"
tolerance = { default = 1e-2 }
"#;

/// What a build from an empty store gives.
struct Built {
    digests: BTreeMap<StageId, Digest>,
    files: BTreeMap<String, Vec<u8>>,
}

fn build(text: &str, options: EngineOptions) -> Built {
    let mut workspace = TemporaryWorkspace::new(text);
    workspace.move_to(&format!("threads-{}/of/it", options.threads));
    let mut session = workspace.session(options);
    let reports = session.build("//:run").unwrap_or_else(|failure| panic!("{failure}"));
    let run = reports.last().expect("a report");
    assert!(run.success, "{}", run.lines.join("\n"));
    let exports = reports.iter().flat_map(|report| &report.exports);
    let path = |export: &camino::Utf8PathBuf| export.as_str().rsplit_once("artifacts/").expect("exports lie in artifacts").1.to_owned();
    let files = exports.map(|export| (path(export), std::fs::read(export).expect("exported"))).collect();
    Built { digests: session.digests(), files }
}

#[test]
fn builds_with_other_directories_threads_and_orders_of_work_are_equal() {
    let first = build(PROGRAM, EngineOptions { threads: 1, shuffle: None });
    let second = build(PROGRAM, EngineOptions { threads: 2, shuffle: Some(0x5eed) });
    assert!(first.digests.len() > 50, "only {} stages", first.digests.len());
    let other: Vec<_> =
        first.digests.iter().filter(|(id, digest)| second.digests.get(id) != Some(*digest)).map(|(id, _)| id.to_string()).collect();
    assert_eq!(other, [""; 0], "stages with other results");
    assert_eq!(first.digests.len(), second.digests.len());
    assert!(first.files["program/model.ipuexe"] == second.files["program/model.ipuexe"], "the packages differ");
    let other: Vec<_> = first.files.iter().filter(|(path, bytes)| second.files.get(*path) != Some(*bytes)).map(|(path, _)| path).collect();
    assert_eq!(other, Vec::<&String>::new(), "files with other bytes");
}

#[test]
fn poison_of_the_device_reaches_no_result() {
    let results = |seed: u64| {
        let built = build(&PROGRAM.replace("seed = 0\n", &format!("seed = {seed}\n")), EngineOptions { threads: 2, shuffle: None });
        let simulation: Vec<_> = built.digests.into_iter().filter(|(id, _)| id.stage.stage != "verdict").collect();
        let tensors: Vec<_> = built.files.into_iter().filter(|(path, _)| path.ends_with(".npy")).collect();
        assert_eq!(tensors.len(), 3);
        (simulation, tensors)
    };
    let first = results(0);
    for seed in [1, 0xdead_beef] {
        assert!(results(seed) == first, "poison of seed {seed} changes a result");
    }
}
