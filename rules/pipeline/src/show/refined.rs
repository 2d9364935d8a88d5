//! Clocks of a finalist by source of knowledge: models of manifests, measured calls, scheduled phases.

use compiler::clocks::Clocks;
use compiler::program::{Expanded, Step};
use compiler::selected::Refined;
use graph::{Cell, Document, ShowFault, Shown};

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let refined: Refined = shown.decode()?;
    let program: Option<Expanded> = shown.input("expanded");
    let tables = [&refined.modelled, &refined.planned, &refined.refined];
    let operations = (0..refined.refined.operations.len()).map(|number| {
        let name = program.as_ref().and_then(|program| program.operations.get(number));
        let sums = tables.map(|clocks| sum(clocks, number));
        let refined = &refined.refined.operations[number];
        let parts = [refined.compute, refined.exchange].map(Cell::Count);
        [name.map_or_else(|| number.to_string(), Clone::clone).into()].into_iter().chain(sums).chain(parts).collect()
    });
    let steps = (0..refined.refined.steps.len()).map(|number| {
        let step = program.as_ref().and_then(|program| program.steps.get(number));
        let clocks = tables.map(|clocks| clocks.steps.get(number).copied().into());
        [Cell::Number(number as u64), step.map(step_name).into()].into_iter().chain(clocks).collect()
    });
    let by_source = ["modelled cycles", "planned cycles", "refined cycles"];
    let operation_columns: Vec<&str> = ["operation"].into_iter().chain(by_source).chain(["compute cycles", "exchange cycles"]).collect();
    let step_columns: Vec<&str> = ["step", "what"].into_iter().chain(by_source).collect();
    Ok(Document::default()
        .fact("modelled cycles", refined.modelled.total)
        .fact("planned cycles", refined.planned.total)
        .fact("refined cycles", refined.refined.total)
        .fact("exchange cycles", refined.refined.exchange)
        .table("operations", &operation_columns, operations)
        .table("steps", &step_columns, steps))
}

fn sum(clocks: &Clocks, number: usize) -> Cell {
    clocks.operations.get(number).and_then(|operation| operation.compute.checked_add(operation.exchange)).into()
}

/// A step in a word or two.
pub(super) fn step_name(step: &Step) -> String {
    match step {
        Step::Exchange { phase, .. } => format!("exchange phase {phase}"),
        Step::Compute { what, .. } => what.clone(),
        Step::Checkpoint { checkpoint } => format!("checkpoint {checkpoint}"),
    }
}
