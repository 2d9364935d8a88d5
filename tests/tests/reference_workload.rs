//! The program as a user runs it: both packages of `workspaces/attention`, from an empty store and again.

use std::fs;

use half::f16;
use package::Package;
use pipeline::tensor::{self, Tensor};
use tests::binary::{Run, WorkspaceCopy};

/// A line `checkpoint=… operation=… tensors=… samples=… maximumAbsoluteError=…`.
#[derive(Debug)]
struct CheckpointLine {
    checkpoint: u32,
    operation: u32,
    tensors: u32,
    samples: u32,
    maximum_absolute_error: f64,
}

impl CheckpointLine {
    /// Reads a line, and sees that written again it is the same.
    fn read(line: &str) -> Self {
        let fields: Vec<(&str, &str)> = line.split(' ').filter_map(|field| field.split_once('=')).collect();
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["checkpoint", "operation", "tensors", "samples", "maximumAbsoluteError"], "{line}");
        let count = |index: usize| fields[index].1.parse::<u32>().unwrap_or_else(|fault| panic!("{line}: {fault}"));
        let maximum_absolute_error = fields[4].1.parse::<f64>().unwrap_or_else(|fault| panic!("{line}: {fault}"));
        let read = Self { checkpoint: count(0), operation: count(1), tensors: count(2), samples: count(3), maximum_absolute_error };
        assert_eq!(read.to_string(), line);
        read
    }
}

impl std::fmt::Display for CheckpointLine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { checkpoint, operation, tensors, samples, maximum_absolute_error } = self;
        write!(out, "checkpoint={checkpoint} operation={operation} tensors={tensors} samples={samples} ")?;
        write!(out, "maximumAbsoluteError={maximum_absolute_error:.6}")
    }
}

/// The verdict lines of a run: checkpoints, then whatever stands behind them.
fn verdict(run: &Run) -> (Vec<CheckpointLine>, Vec<&str>) {
    let lines: Vec<&str> = run.stdout.lines().skip_while(|line| !line.starts_with("checkpoint=")).collect();
    let (checkpoints, rest): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| line.starts_with("checkpoint="));
    (checkpoints.into_iter().map(CheckpointLine::read).collect(), rest)
}

fn assert_success(run: &Run) {
    assert_eq!(run.code, Some(0), "{}\n{}", run.stdout, run.stderr);
}

/// Checkpoint numbers ascend from 0; the operations are those; errors are within the bounds.
fn assert_checkpoints(lines: &[CheckpointLine], bounds: &[(u32, f64)]) {
    assert_eq!(lines.len(), bounds.len(), "{lines:?}");
    for ((number, line), (operation, bound)) in (0..).zip(lines).zip(bounds) {
        assert_eq!((line.checkpoint, line.operation, line.tensors, line.samples), (number, *operation, 1, 256), "{line}");
        assert!(line.maximum_absolute_error > 0.0 && line.maximum_absolute_error <= *bound, "{line}");
    }
}

/// The table before the verdict has a row for each name, with numbers in the columns planned, scheduled and simulated.
fn assert_table(run: &Run, names: &[&str]) {
    let mut lines = run.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(lines.next().as_deref(), Some(&["operation", "planned", "scheduled", "simulated"][..]), "{}", run.stdout);
    for (name, row) in names.iter().zip(lines) {
        assert_eq!(row[0], *name);
        assert!(row.len() == 4 && row[1..].iter().all(|clocks| clocks.parse::<u64>().is_ok()), "{row:?}");
    }
}

fn artifact(workspace: &WorkspaceCopy, path: &str) -> Vec<u8> {
    let path = workspace.root().join("artifacts").join(path);
    fs::read(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

fn npy(workspace: &WorkspaceCopy, path: &str) -> Tensor {
    let mut tensors = tensor::read_file(path, &artifact(workspace, path)).unwrap_or_else(|fault| panic!("{path}: {fault}"));
    tensors.pop_first().expect("one tensor").1
}

const REFERENCE: &str = "//sweeps/attention-packed:run";
const MINILM: &str = "//models/minilm-attention:run";

#[test]
fn the_reference_workload_passes_and_a_second_run_executes_nothing() {
    let workspace = WorkspaceCopy::of("attention");
    let first = workspace.run(&[REFERENCE]);
    assert_success(&first);
    let (checkpoints, rest) = verdict(&first);
    assert_checkpoints(&checkpoints, &[(0, 3e-3), (1, 3e-3), (2, 3e-3), (6, 5e-4)]);
    let package = "artifacts/sweeps/attention-packed/program/model.ipuexe";
    let passed = [
        "diagnosticCheckpoints=4 sampleLimit=256 numericalTest=PASS".to_owned(),
        format!("package={package} tiles=1472 simulatorTest=PASS"),
    ];
    assert_eq!(rest, passed);
    assert_table(&first, &["q", "k", "v", "queries", "keys", "values", "output", "total"]);
    assert!(!first.executed().is_empty());
    the_artifacts_are_readable(&workspace);

    let second = workspace.run(&["-v", REFERENCE]);
    assert_success(&second);
    assert_eq!(second.stdout, first.stdout);
    assert_eq!(second.executed(), [""; 0]);
    let targets: Vec<_> = second.events_of("target").map(|event| (event["label"].as_str(), event["cached"].as_bool())).collect();
    assert!(targets.contains(&(Some(REFERENCE), Some(true))), "{targets:?}");
    assert!(targets.iter().all(|(_, cached)| *cached == Some(true)), "{targets:?}");
    assert!(second.stderr.lines().any(|line| line == format!("{REFERENCE} cached=true")), "{}", second.stderr);
}

fn the_artifacts_are_readable(workspace: &WorkspaceCopy) {
    let package = artifact(workspace, "sweeps/attention-packed/program/model.ipuexe");
    let package = Package::read(&package).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(package.check(), Ok(()));
    assert_eq!(package.tiles.len(), ipu21::tile::COUNT);
    let report: serde_json::Value =
        serde_json::from_slice(&artifact(workspace, "sweeps/attention-packed/run/report.json")).expect("a report");
    assert!(report.is_object());
    for name in ["q", "k", "v", "output"] {
        assert_eq!(npy(workspace, &format!("sweeps/attention-packed/run/checkpoints/{name}.npy")).shape, [1, 729, 72], "{name}");
    }
    let output = npy(workspace, "sweeps/attention-packed/run/outputs/output.npy");
    assert_eq!(output, npy(workspace, "sweeps/attention-packed/run/checkpoints/output.npy"));
    assert!(output.f16_bits().into_iter().all(|bits| f16::from_bits(bits).is_finite()));
}

#[test]
fn a_layer_of_minilm_gives_what_its_authors_computed() {
    let workspace = WorkspaceCopy::of("attention");
    let run = workspace.run(&[MINILM]);
    assert_success(&run);
    let (checkpoints, rest) = verdict(&run);
    assert_checkpoints(&checkpoints, &[(0, 2e-2), (1, 2e-2), (2, 2e-2), (6, 8e-3), (7, 8e-3)]);
    let passed = rest.iter().filter(|line| line.ends_with("=PASS")).count();
    assert_eq!(passed, 2, "{}", run.stdout);
    let output = npy(&workspace, "models/minilm-attention/run/outputs/output.npy").to_f64();
    let tokens = fs::read(workspace.root().join("models/minilm-attention/layer0-tokens64.safetensors")).expect("the tokens");
    let expected = tensor::read_file("tokens.safetensors", &tokens).expect("tensors").remove("output").expect("the output").to_f64();
    assert_eq!(output.len(), expected.len());
    let error = output.iter().zip(&expected).map(|(found, expected)| (found - expected).abs()).fold(0.0, f64::max);
    assert!(error <= 8e-3, "{error}");
}

#[test]
fn a_verdict_beyond_its_tolerance_fails_with_exit_code_1() {
    let workspace = WorkspaceCopy::of("attention");
    let build = workspace.root().join("sweeps/attention-packed/BUILD.toml");
    let text = fs::read_to_string(&build).expect("the declaration");
    let tighter = text.replace("output = 5e-4", "output = 5e-6");
    assert_ne!(text, tighter);
    fs::write(&build, tighter).expect("it can be changed");
    let run = workspace.run(&[REFERENCE]);
    assert_eq!(run.code, Some(1), "{}\n{}", run.stdout, run.stderr);
    let (checkpoints, rest) = verdict(&run);
    assert_eq!(checkpoints.len(), 4);
    assert_eq!(rest.first(), Some(&"diagnosticCheckpoints=4 sampleLimit=256 numericalTest=FAIL"));
}
