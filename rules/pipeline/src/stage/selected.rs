//! The finalist with the fewest refined clocks that can be placed.

use compiler::clocks::{Costs, PhaseClocks};
use compiler::placement::Placement;
use compiler::selected::{Measured, Refined};
use graph::{Artifact, Cause, Db, Failure, Made, Target, load, note_facts, stage};
use serde::{Deserialize, Serialize};

use crate::fingerprint::COMPILATION;
use crate::key::{FinalistKey, KernelKey, digest_of, spec};
use crate::stage::expanded::expanded;
use crate::stage::finalists::finalists;
use crate::stage::kernel_library::kernel_library;
use crate::stage::kernel_object::machine_of;
use crate::stage::measured::measured;
use crate::stage::placement::{placement, schedules};

/// Clocks of a finalist by source of knowledge.
#[salsa::tracked(returns(clone))]
pub fn refined<'db>(db: &'db dyn Db, key: FinalistKey<'db>) -> Result<Artifact<Refined, u64>, Failure> {
    let (program, index) = (key.program(db), key.index(db));
    let label = program.label(db);
    let library = kernel_library(db, program)?;
    let machine = machine_of(db, program)?;
    let expanded = expanded(db, key)?;
    let schedules = schedules(db, key, 0)?;
    let (mut clocks, mut kernels) = (Measured::new(), Vec::new());
    for variant in &expanded.facts().variants {
        let measured = measured(db, KernelKey::new(db, program, variant.clone()))?;
        clocks.insert(variant.clone(), *measured.facts());
        kernels.push(measured);
    }
    let costs = costs_of(&machine.parameters);
    let mut inputs = vec![
        ("expanded", expanded.digest()),
        ("measured", digest_of(&clocks.iter().collect::<Vec<_>>())),
        ("manifests", library.digest_of_called(&expanded.facts().variants, |kernel| kernel.digest)),
        ("costs", digest_of(&costs)),
    ];
    inputs.extend(schedules.iter().map(|schedule| ("schedule", schedule.digest())));
    stage(db, &spec("refined", COMPILATION, label).index(index), &inputs, || {
        kernels.iter().for_each(note_facts);
        let program = load(db, &expanded)?;
        let mut phases = Vec::new();
        for schedule in &schedules {
            let schedule = load(db, schedule)?;
            let horizons = schedule.tiles.iter().map(|tile| (tile.tile, u64::from(tile.horizon))).collect();
            phases.push(PhaseClocks { horizons, others: 0 });
        }
        let refined = compiler::selected::refined(&program, &library.table(), &clocks, &phases, &costs)
            .map_err(|fault| Failure::build(fault.to_string()))?;
        let (modelled, planned, total) = (refined.modelled.total, refined.planned.total, refined.refined.total);
        let exchange = refined.refined.exchange;
        Ok(Made::with_facts(refined, total)
            .figure("analytical_cycles", modelled)
            .figure("planned_cycles", planned)
            .figure("refined_cycles", total)
            .figure("exchange_cycles", exchange))
    })
}

/// Clocks that are no kernel's and no message's.
pub(crate) fn costs_of(parameters: &ipu21::parameters::Parameters) -> Costs {
    Costs { internal_empty_phase: u64::from(parameters.barrier.internal_empty_phase), call: 0 }
}

/// The choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selected {
    /// Rank among the finalists.
    pub finalist: u32,
    /// Round of schedules and placement.
    pub round: u32,
    /// Finalists with fewer clocks that could not be placed, and why.
    pub refused: Vec<(u32, String)>,
}

/// Tries the finalists in the order of their refined clocks; the first that can be placed is taken. Not a stage with a body of its
/// own work: it only reads clocks and placements.
#[salsa::tracked(returns(clone))]
pub fn selected(db: &dyn Db, program: Target) -> Result<Artifact<Selected, Selected>, Failure> {
    let label = program.label(db);
    let count = finalists(db, program)?.facts().len() as u32;
    let (mut clocks, mut costed) = (Vec::new(), Vec::new());
    for index in 0..count {
        let refined = refined(db, FinalistKey::new(db, program, index))?;
        clocks.push((*refined.facts(), index));
        costed.push(refined);
    }
    clocks.sort_unstable();
    let (mut refused, mut tried) = (Vec::new(), Vec::new());
    let mut chosen = None;
    for (_, finalist) in &clocks {
        match place(db, FinalistKey::new(db, program, *finalist), &mut tried) {
            Ok(round) => {
                chosen = Some((*finalist, round));
                break;
            }
            Err(failure) if *failure.cause() == Cause::Build => refused.push((*finalist, failure.messages().join("; "))),
            Err(failure) => return Err(failure),
        }
    }
    let Some((finalist, round)) = chosen else {
        let reasons = refused.iter().map(|(finalist, reason)| format!("finalist {finalist}: {reason}")).collect();
        return Err(Failure::all(Cause::Build, reasons).at_label(label));
    };
    let selected = Selected { finalist, round, refused };
    let inputs = [("clocks", digest_of(&clocks)), ("selected", digest_of(&selected))];
    stage(db, &spec("selected", COMPILATION, label), &inputs, || {
        costed.iter().for_each(note_facts);
        tried.iter().for_each(note_facts);
        let refined = clocks.iter().find(|(_, index)| *index == finalist).map_or(0, |(clocks, _)| *clocks);
        Ok(Made::with_facts(selected.clone(), selected.clone())
            .figure("finalist", finalist)
            .figure("round", round)
            .figure("refined_cycles", refined)
            .figure("refused", selected.refused.len()))
    })
}

/// The round in which a finalist can be placed; placements looked at are added to `tried`.
fn place<'db>(db: &'db dyn Db, key: FinalistKey<'db>, tried: &mut Vec<Artifact<Placement, bool>>) -> Result<u32, Failure> {
    for round in 0..2 {
        let placement = placement(db, key, round)?;
        let fits = *placement.facts();
        tried.push(placement);
        if fits {
            return Ok(round);
        }
    }
    Err(Failure::build(
        "does not fit: buffers of one tile that send and receive at once share a memory element, in both rounds of placement",
    ))
}
