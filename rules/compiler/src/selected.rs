//! Chooses the finalist with the fewest refined clocks.
//!
//! In: per finalist the expanded program, measured clocks of its kernel variants and horizons of its phases. Out: a [`Refined`]
//! table each, and the winner. The winner that cannot be placed is left out by the caller, who asks again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::clocks::{Clocks, Costs, PhaseClocks, add_up};
use crate::kernel_table::{KernelTable, printed};
use crate::plan_fault::Fault;
use crate::program::{Expanded, Variant};

/// Measured clocks of one call, by variant.
pub type Measured = BTreeMap<Variant, u64>;

/// Clocks of a program by three sources of knowledge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refined {
    /// Screening models of the manifests and route bounds.
    pub modelled: Clocks,
    /// Measured calls and route bounds; written before anything is scheduled.
    pub planned: Clocks,
    /// Measured calls and scheduled horizons.
    pub refined: Clocks,
}

/// Clocks by the manifests' models and the route bounds of the phases.
///
/// # Errors
/// A variant the table cannot evaluate.
pub fn modelled(program: &Expanded, kernels: &KernelTable, costs: &Costs) -> Result<Clocks, Fault> {
    let calls: Vec<_> = program.variants.iter().map(|variant| kernels.modelled_clocks(variant)).collect::<Result<_, _>>()?;
    Ok(add_up(program, &calls, &bounds(program), costs))
}

/// Clocks by measured calls and the route bounds of the phases.
///
/// # Errors
/// A variant that was not measured.
pub fn planned(program: &Expanded, measured: &Measured, costs: &Costs) -> Result<Clocks, Fault> {
    Ok(add_up(program, &measured_calls(program, measured)?, &bounds(program), costs))
}

/// All three tables. `phases`: the scheduled horizons, by phase number.
///
/// # Errors
/// A variant that was not measured or cannot be evaluated.
pub fn refined(
    program: &Expanded,
    kernels: &KernelTable,
    measured: &Measured,
    phases: &[PhaseClocks],
    costs: &Costs,
) -> Result<Refined, Fault> {
    Ok(Refined {
        modelled: modelled(program, kernels, costs)?,
        planned: planned(program, measured, costs)?,
        refined: add_up(program, &measured_calls(program, measured)?, phases, costs),
    })
}

/// The order in which finalists are to be tried: fewest refined clocks first, then the earlier finalist.
#[must_use]
pub fn order(finalists: &[Refined]) -> Vec<usize> {
    let mut order: Vec<_> = (0..finalists.len()).collect();
    order.sort_by_key(|&index| finalists[index].refined.total);
    order
}

fn measured_calls(program: &Expanded, measured: &Measured) -> Result<Vec<u64>, Fault> {
    let clocks = |variant| measured.get(variant).copied().ok_or_else(|| Fault::NotMeasured { variant: printed(variant) });
    program.variants.iter().map(clocks).collect()
}

fn bounds(program: &Expanded) -> Vec<PhaseClocks> {
    program.phases.iter().map(|phase| PhaseClocks::uniform(u64::from(exchange::bound(phase, program.pairs)))).collect()
}
