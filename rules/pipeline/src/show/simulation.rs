//! A run on the simulator: clocks of every step, and the tensors it gave.

use graph::{Cell, Document, ShowFault, Shown};

use super::statistics::STATISTICS;
use super::tensor::row;
use crate::stage::simulation::{Sample, Simulation};

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let simulation: Simulation = shown.decode()?;
    let columns: Vec<&str> = ["name", "shape"].into_iter().chain(STATISTICS).collect();
    let rows = |samples: &[Sample]| -> Vec<Vec<Cell>> { samples.iter().map(|sample| row(&sample.name, &sample.tensor)).collect() };
    let steps = (0_u64..).zip(&simulation.steps).map(|(step, clocks)| vec![Cell::Number(step), (*clocks).into()]);
    Ok(Document::default()
        .fact("clocks", simulation.clocks)
        .fact("f16 overflows", simulation.f16_overflows)
        .fact("parameters read", simulation.parameters_read.join(", "))
        .table("outputs", &columns, rows(&simulation.outputs))
        .table("checkpoints", &columns, rows(&simulation.checkpoints))
        .table("steps", &["step", "clocks"], steps))
}
