//! Figures of a program and its runs by name, for sweeps to compare.

use std::collections::BTreeSet;

use compiler::placement::Placement;
use compiler::program::{Expanded, Step};
use graph::{Engine, Failure, Figure, Target, load};
use ipu21::tile::TileId;

use crate::key::FinalistKey;
use crate::stage::expanded::expanded;
use crate::stage::kernel_object::machine_of;
use crate::stage::placement::placement;
use crate::stage::selected::{refined, selected};
use crate::stage::verdict::Report;

/// Named figures in their order.
type Figures = Vec<(String, Figure)>;

/// Of a program: clocks with their parts, bytes on its fullest tile, and parts of the clocks by operation.
pub(crate) fn of_program(engine: &Engine, program: Target) -> Result<Figures, Failure> {
    let choice = selected(engine, program)?.facts().clone();
    let key = FinalistKey::new(engine, program, choice.finalist);
    let clocks = load(engine, &refined(engine, key)?)?;
    let (expanded, placement) = (load(engine, &expanded(engine, key)?)?, load(engine, &placement(engine, key, choice.round)?)?);
    let barrier = u64::from(machine_of(engine, program)?.parameters.barrier.internal_empty_phase);
    let mut figures = Figures::new();
    let mut add = |name: &str, figure: Figure| figures.push((name.to_owned(), figure));
    let refined = &clocks.refined;
    let barriers = barrier * expanded.phases.len() as u64;
    add("clocks", refined.total.into());
    add("planned", clocks.planned.total.into());
    add("scheduled", refined.total.into());
    add("compute", (refined.total - refined.exchange).into());
    add("exchange", refined.exchange.saturating_sub(barriers).into());
    add("barriers", barriers.into());
    add("phases", expanded.phases.len().into());
    let (buffers, code) = (fullest(&expanded, &placement), u64::from(placement.figures.code_bytes));
    add("memory", (buffers + code).into());
    add("memory_buffers", buffers.into());
    add("memory_code", code.into());
    add("active_tiles", active_tiles(&expanded).into());
    for (number, (name, clocks)) in expanded.operations.iter().zip(&refined.operations).enumerate() {
        let of_operation = |step: &&Step| matches!(step, Step::Exchange { operation, .. } if *operation as usize == number);
        let barriers = barrier * expanded.steps.iter().filter(of_operation).count() as u64;
        if clocks.compute + clocks.exchange > 0 {
            add(&format!("{name}.compute"), clocks.compute.into());
            add(&format!("{name}.exchange"), clocks.exchange.saturating_sub(barriers).into());
            add(&format!("{name}.barriers"), barriers.min(clocks.exchange).into());
        }
    }
    Ok(figures)
}

/// Of a run: those of its program, with the simulated clocks as what counts, and the largest error of any result.
pub(crate) fn of_run(engine: &Engine, program: Target, report: &Report) -> Result<Figures, Failure> {
    let mut figures = of_program(engine, program)?;
    if let Some((_, clocks)) = figures.iter_mut().find(|(name, _)| name == "clocks") {
        *clocks = report.total.simulated.into();
    }
    let compared = report.checkpoints.iter().chain(&report.outputs).chain(&report.expected);
    let error = compared.map(|comparison| comparison.maximum_absolute_error).fold(0.0, f64::max);
    figures.push(("error".to_owned(), error.into()));
    Ok(figures)
}

/// Bytes of a tile's memory that buffers take at some time, on the tile with the most.
fn fullest(program: &Expanded, placement: &Placement) -> u64 {
    let mut spans: Vec<Vec<(u32, u32)>> = vec![Vec::new(); ipu21::tile::COUNT];
    for (buffer, address) in program.buffers.iter().zip(&placement.buffers) {
        for tile in buffer.tiles.iter() {
            spans[tile.index()].push((*address, address + buffer.bytes));
        }
    }
    spans.into_iter().map(covered).max().unwrap_or(0)
}

/// Bytes that at least one of the spans covers.
fn covered(mut spans: Vec<(u32, u32)>) -> u64 {
    spans.sort_unstable();
    let mut reached = 0;
    let mut bytes = 0;
    for (start, end) in spans {
        bytes += u64::from(end.saturating_sub(start.max(reached)));
        reached = reached.max(end);
    }
    bytes
}

/// Tiles that hold some buffer.
fn active_tiles(program: &Expanded) -> usize {
    program.buffers.iter().flat_map(|buffer| buffer.tiles.iter()).collect::<BTreeSet<&TileId>>().len()
}

#[cfg(test)]
mod tests {
    use super::covered;

    #[test]
    fn bytes_that_several_buffers_share_in_time_count_once() {
        assert_eq!(covered(vec![(8, 16), (0, 4), (12, 20), (12, 14)]), 4 + 12);
        assert_eq!(covered(Vec::new()), 0);
    }
}
