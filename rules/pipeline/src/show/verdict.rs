//! Results against their expectations, and clocks by source of knowledge.

use graph::{Cell, Document, ShowFault, Shown};

use crate::stage::verdict::{Comparison, OperationReport, Report};

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let report: Report = shown.decode()?;
    let (compute, exchange, barriers) = report.parts;
    let groups = [("checkpoint", &report.checkpoints), ("output", &report.outputs), ("expected", &report.expected)];
    let comparisons = groups.iter().flat_map(|(kind, list)| list.iter().map(|comparison| comparison_row(kind, comparison)));
    let operations = report.operations.iter().chain([&report.total]).map(operation_row);
    Ok(Document::default()
        .fact("passed", report.passed)
        .fact("scheduled compute cycles", compute)
        .fact("scheduled exchange cycles", exchange)
        .fact("barrier cycles", barriers)
        .fact("phases", report.phases)
        .fact("parameters", report.parameters_digest.as_str())
        .fact("f16 overflows", report.f16_overflows)
        .fact("device seed", Cell::Number(report.device_seed))
        .table("comparisons", &["kind", "name", "elements", "maximum absolute error", "worst element", "tolerance", "passed"], comparisons)
        .table("clocks", &["operation", "planned cycles", "scheduled cycles", "simulated cycles"], operations))
}

fn comparison_row(kind: &str, comparison: &Comparison) -> Vec<Cell> {
    vec![
        kind.into(),
        comparison.name.as_str().into(),
        comparison.elements.into(),
        comparison.maximum_absolute_error.into(),
        Cell::Number(comparison.worst_element as u64),
        comparison.tolerance.into(),
        comparison.passed.into(),
    ]
}

fn operation_row(report: &OperationReport) -> Vec<Cell> {
    vec![report.name.as_str().into(), report.planned.into(), report.scheduled.into(), report.simulated.into()]
}
