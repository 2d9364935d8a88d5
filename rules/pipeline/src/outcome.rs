//! What targets give: exported files and lines for standard output.

use graph::{Db, Engine, Export, Failure, Label, Outcome, StageNote, data_of, load};

use crate::figures;
use crate::rule::Run;
use crate::stage::package::package;
use crate::stage::simulation::simulation;
use crate::stage::verdict::{Comparison, Report, SAMPLE_LIMIT, verdict};
use crate::tensor::to_npy;

/// Name of a program's package below its folder.
const PACKAGE: &str = "model.ipuexe";

/// A `program` gives its package.
pub(crate) fn program(engine: &Engine, label: &Label) -> Result<Outcome, Failure> {
    let package = package(engine, engine.target(label))?;
    let figures = figures::of_program(engine, engine.target(label))?;
    Ok(Outcome { exports: vec![Export::of_artifact(engine, PACKAGE, &package)?], figures, ..Outcome::default() })
}

/// The stages of a `program`.
pub(crate) fn program_stages(engine: &Engine, label: &Label) -> Vec<StageNote> {
    package::accumulated::<StageNote>(engine, engine.target(label)).into_iter().cloned().collect()
}

/// The stages of a `run`.
pub(crate) fn run_stages(engine: &Engine, label: &Label) -> Vec<StageNote> {
    verdict::accumulated::<StageNote>(engine, engine.target(label)).into_iter().cloned().collect()
}

/// A `run` gives its verdict, a report and the tensors it read.
pub(crate) fn run(engine: &Engine, label: &Label) -> Result<Outcome, Failure> {
    let target = engine.target(label);
    let declared = data_of::<Run>(engine, label)?;
    let (verdict, simulation) = (verdict(engine, target)?, simulation(engine, target)?);
    let (report, simulation) = (load(engine, &verdict)?, load(engine, &simulation)?);
    let text = serde_json::to_string_pretty(&*report).map_err(|fault| Failure::build(format!("the report cannot be written: {fault}")))?;
    let mut exports = vec![Export::of_bytes(engine, "report.json", text.into_bytes())];
    let named = |kind: &str, name: &str| format!("{kind}/{name}.npy");
    let tensors = simulation.outputs.iter().map(|sample| (named("outputs", &sample.name), sample));
    for (path, sample) in tensors.chain(simulation.checkpoints.iter().map(|sample| (named("checkpoints", &sample.name), sample))) {
        let bytes = to_npy(&sample.tensor).map_err(|fault| Failure::build(format!("{path}: {fault}")))?;
        exports.push(Export::of_bytes(engine, &path, bytes));
    }
    let lines = lines(&report, &package_path(&declared.program));
    let figures = figures::of_run(engine, engine.target(&declared.program), &report)?;
    Ok(Outcome { success: report.passed, lines, figures, exports, ..Outcome::default() })
}

/// Where a program's package lies below the workspace root.
fn package_path(program: &Label) -> String {
    format!("{}/{PACKAGE}", program.artifacts())
}

fn lines(report: &Report, package: &str) -> Vec<String> {
    let mut lines = table(report);
    for (index, checkpoint) in report.checkpoints.iter().enumerate() {
        lines.push(format!(
            "checkpoint={index} operation={} tensors=1 samples={} maximumAbsoluteError={:.6}",
            checkpoint.operation.unwrap_or_default(),
            checkpoint.samples.len(),
            checkpoint.maximum_absolute_error
        ));
    }
    for expected in &report.expected {
        lines.push(format!(
            "expected={} maximumAbsoluteError={:.6} tolerance={}",
            expected.name, expected.maximum_absolute_error, expected.tolerance
        ));
    }
    let word = |passed: bool| if passed { "PASS" } else { "FAIL" };
    let all = |comparisons: &[Comparison]| comparisons.iter().all(|comparison| comparison.passed);
    let numerical = all(&report.checkpoints) && all(&report.expected);
    if let Some(most) = report.max_clocks {
        let simulated = report.total.simulated;
        lines.push(format!("clocks={simulated} maxClocks={most} clocksTest={}", word(simulated <= most)));
    }
    lines.push(format!("diagnosticCheckpoints={} sampleLimit={SAMPLE_LIMIT} numericalTest={}", report.checkpoints.len(), word(numerical)));
    lines.push(format!("package={package} tiles={} simulatorTest={}", ipu21::tile::COUNT, word(all(&report.outputs))));
    lines
}

/// Planned, scheduled and simulated clocks by operation.
fn table(report: &Report) -> Vec<String> {
    let width = report.operations.iter().map(|operation| operation.name.len()).max().unwrap_or(0).max("operation".len());
    let row = |name: &str, planned: &str, scheduled: &str, simulated: &str| {
        format!("{name:<width$}  {planned:>10}  {scheduled:>10}  {simulated:>10}")
    };
    let mut lines = vec![row("operation", "planned", "scheduled", "simulated")];
    for operation in report.operations.iter().chain([&report.total]) {
        let [planned, scheduled, simulated] =
            [operation.planned, operation.scheduled, operation.simulated].map(|clocks| clocks.to_string());
        lines.push(row(&operation.name, &planned, &scheduled, &simulated));
    }
    let (compute, exchange, barrier) = report.parts;
    lines.push(format!(
        "clocks: compute {compute}, exchange {exchange} in {} phases, barriers {barrier}; parameters {}",
        report.phases,
        &report.parameters_digest[..12.min(report.parameters_digest.len())]
    ));
    lines
}
