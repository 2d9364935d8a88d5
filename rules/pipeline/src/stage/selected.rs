//! The finalist with the fewest refined clocks that can be placed.

use compiler::clocks::{Clocks, Costs, PhaseClocks};
use compiler::placement::Placement;
use compiler::selected::Refined;
use graph::{Artifact, Cause, Db, Failure, Made, Target, load, note_facts, stage};
use serde::{Deserialize, Serialize};

use crate::fingerprint::COMPILATION;
use crate::key::{FinalistKey, digest_of, spec};
use crate::stage::expanded::expanded;
use crate::stage::finalists::finalists;
use crate::stage::kernel_library::kernel_library;
use crate::stage::kernel_object::machine_of;
use crate::stage::placement::{placement, schedules};
use crate::stage::planned::{Calls, planned};

/// Clocks of a finalist by source of knowledge.
#[salsa::tracked(returns(clone))]
pub fn refined<'db>(db: &'db dyn Db, key: FinalistKey<'db>) -> Result<Artifact<Refined, u64>, Failure> {
    let (program, index) = (key.program(db), key.index(db));
    let label = program.label(db);
    let library = kernel_library(db, program)?;
    let machine = machine_of(db, program)?;
    let (expanded, calls) = (expanded(db, key)?, Calls::of(db, key)?);
    let schedules = schedules(db, key, 0)?;
    let costs = costs_of(&machine.parameters);
    let mut inputs = vec![
        ("expanded", expanded.digest()),
        ("measured", calls.digest()),
        ("manifests", library.digest_of_called(&expanded.facts().variants, |kernel| kernel.digest)),
        ("costs", digest_of(&costs)),
    ];
    inputs.extend(schedules.iter().map(|schedule| ("schedule", schedule.digest())));
    stage(db, &spec("refined", COMPILATION, label).index(index), &inputs, || {
        calls.note();
        let program = load(db, &expanded)?;
        let mut phases = Vec::new();
        for schedule in &schedules {
            let schedule = load(db, schedule)?;
            let horizons = schedule.tiles.iter().map(|tile| (tile.tile, u64::from(tile.horizon))).collect();
            phases.push(PhaseClocks { horizons, others: 0 });
        }
        let refined = compiler::selected::refined(&program, &library.table(), &calls.clocks, &phases, &costs)
            .map_err(|fault| Failure::build(fault.to_string()))?;
        let (modelled, planned, total) = (refined.modelled.total, refined.planned.total, refined.refined.total);
        let exchange = refined.refined.exchange;
        Ok(Made::with_facts(refined, total)
            .figure("analytical_cycles", modelled)
            .figure("planned_cycles", planned)
            .figure("refined_cycles", total)
            .figure("exchange_cycles", exchange)
            .figure("model_error_percent", percent(modelled, planned))
            .figure("gap_percent", percent(total, planned)))
    })
}

/// By how much `found` is more than `reference`, with two decimals.
fn percent(found: u64, reference: u64) -> String {
    format!("{:.2}", 100.0 * (found as f64 / reference.max(1) as f64 - 1.0))
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
    /// Finalists that were not scheduled, since their planned clocks alone are more than the refined clocks of the chosen one; with
    /// those clocks.
    pub dropped: Vec<(u32, u64)>,
}

/// Refines the finalists in the order of their planned clocks, which no schedule can better, until the best refined one is not above
/// the next one's; of the refined ones the fastest that can be placed is taken. Not a stage with a body of its own work: it only reads
/// clocks and placements.
#[salsa::tracked(returns(clone))]
pub fn selected(db: &dyn Db, program: Target) -> Result<Artifact<Selected, Selected>, Failure> {
    let label = program.label(db);
    let mut choice = Choice::of(db, program)?;
    let (finalist, round) = choice.made(db, program)?.map_err(|reasons| Failure::all(Cause::Build, reasons).at_label(label))?;
    let Choice { bounds, planned, clocks, costed, refused, tried } = choice;
    let dropped = bounds.iter().filter(|(_, index)| clocks.iter().all(|(_, refined)| refined != index));
    let selected = Selected { finalist, round, refused, dropped: dropped.map(|(bound, index)| (*index, *bound)).collect() };
    let inputs = [("bounds", digest_of(&bounds)), ("clocks", digest_of(&clocks)), ("selected", digest_of(&selected))];
    stage(db, &spec("selected", COMPILATION, label), &inputs, || {
        planned.iter().for_each(note_facts);
        costed.iter().for_each(note_facts);
        tried.iter().for_each(note_facts);
        let of = |table: &[(u64, u32)]| table.iter().find(|(_, index)| *index == finalist).map_or(0, |(clocks, _)| *clocks);
        let (refined, bound) = (of(&clocks), of(&bounds));
        let slower: Vec<_> =
            clocks.iter().filter(|(clocks, _)| *clocks > refined).map(|(clocks, index)| (*index, clocks - refined)).collect();
        let dropped: Vec<_> = selected.dropped.iter().map(|(index, bound)| (*index, bound - refined)).collect();
        Ok(Made::with_facts(selected.clone(), selected.clone())
            .figure("finalist", finalist)
            .figure("round", round)
            .figure("refined_cycles", refined)
            .figure("lower_bound", bound)
            .figure("gap_percent", percent(refined, bound))
            .figure("slower", list(&slower))
            .figure("dropped", list(&dropped))
            .figure("refused", selected.refused.len()))
    })
}

/// Finalists with the clocks by which they lost.
fn list(lost: &[(u32, u64)]) -> String {
    let each: Vec<String> = lost.iter().map(|(index, clocks)| format!("{index}:+{clocks}")).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(",") }
}

/// What is known of the finalists while one of them is chosen.
struct Choice {
    /// Planned clocks and rank of every finalist, ascending.
    bounds: Vec<(u64, u32)>,
    planned: Vec<Artifact<Clocks, u64>>,
    /// Refined clocks and rank of those refined so far.
    clocks: Vec<(u64, u32)>,
    costed: Vec<Artifact<Refined, u64>>,
    refused: Vec<(u32, String)>,
    tried: Vec<Artifact<Placement, bool>>,
}

impl Choice {
    fn of(db: &dyn Db, program: Target) -> Result<Self, Failure> {
        let (mut bounds, mut all) = (Vec::new(), Vec::new());
        for index in 0..finalists(db, program)?.facts().len() as u32 {
            let planned = planned(db, FinalistKey::new(db, program, index))?;
            bounds.push((*planned.facts(), index));
            all.push(planned);
        }
        bounds.sort_unstable();
        Ok(Self { bounds, planned: all, clocks: Vec::new(), costed: Vec::new(), refused: Vec::new(), tried: Vec::new() })
    }

    /// Rank and round of the chosen one; the reasons why none can be placed.
    fn made(&mut self, db: &dyn Db, program: Target) -> Result<Result<(u32, u32), Vec<String>>, Failure> {
        loop {
            let is_refused = |index: u32| self.refused.iter().any(|(refused, _)| *refused == index);
            let best = self.clocks.iter().copied().filter(|(_, index)| !is_refused(*index)).min();
            let next = self.bounds.get(self.clocks.len()).copied();
            match (best, next) {
                (best, Some((bound, index))) if best.is_none_or(|(clocks, _)| bound <= clocks) => {
                    let refined = refined(db, FinalistKey::new(db, program, index))?;
                    self.clocks.push((*refined.facts(), index));
                    self.costed.push(refined);
                }
                (Some((_, finalist)), _) => match place(db, FinalistKey::new(db, program, finalist), &mut self.tried) {
                    Ok(round) => return Ok(Ok((finalist, round))),
                    Err(failure) if *failure.cause() == Cause::Build => self.refused.push((finalist, failure.messages().join("; "))),
                    Err(failure) => return Err(failure),
                },
                (None, _) => {
                    let reasons = self.refused.iter().map(|(finalist, reason)| format!("finalist {finalist}: {reason}"));
                    return Ok(Err(reasons.collect()));
                }
            }
        }
    }
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
