//! The rows of an exchange phase of the selected finalist, at its addresses.

use compiler::rows::PhaseRows;
use graph::{Artifact, Db, Failure, Made, Target, load, stage};

use crate::fingerprint::COMPILATION;
use crate::key::{FinalistKey, PhaseKey, faults, spec};
use crate::stage::placement::placement;
use crate::stage::schedule::schedule;
use crate::stage::selected::selected;

/// Words by tile. Key: the schedule and the placement.
#[salsa::tracked(returns(clone))]
pub fn rows(db: &dyn Db, program: Target, phase: u32) -> Result<Artifact<PhaseRows>, Failure> {
    let label = program.label(db);
    let selected = selected(db, program)?;
    let (finalist, round) = (selected.facts().finalist, selected.facts().round);
    let placement = placement(db, FinalistKey::new(db, program, finalist), round)?;
    let schedule = schedule(db, PhaseKey::new(db, program, finalist, phase, round))?;
    let inputs = [("schedule", schedule.digest()), ("placement", placement.digest())];
    stage(db, &spec("rows", COMPILATION, label).index(phase), &inputs, || {
        let (schedule, placed) = (load(db, &schedule)?, load(db, &placement)?);
        let rows = compiler::rows::relocate(&schedule, &placed).map_err(|found| faults(&found))?;
        compiler::rows::check(&schedule, &placed, phase, &rows).map_err(|found| faults(&found))?;
        let (count, words) = (rows.len(), rows.values().map(Vec::len).sum::<usize>());
        Ok(Made::new(rows).figure("rows", count).figure("words", words))
    })
}
