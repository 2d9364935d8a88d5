//! The rows of an exchange phase of the selected finalist, at its addresses.

use std::collections::BTreeMap;

use graph::{Artifact, Db, Failure, Made, Target, load, stage};
use ipu21::tile::TileId;

use crate::fingerprint::COMPILATION;
use crate::key::{FinalistKey, PhaseKey, faults, spec};
use crate::stage::placement::placement;
use crate::stage::schedule::schedule;
use crate::stage::selected::selected;

/// Words by tile. Key: the schedule and the placement.
#[salsa::tracked(returns(clone))]
pub fn rows(db: &dyn Db, program: Target, phase: u32) -> Result<Artifact<BTreeMap<TileId, Vec<u32>>>, Failure> {
    let label = program.label(db);
    let selected = selected(db, program)?;
    let (finalist, round) = (selected.facts().finalist, selected.facts().round);
    let placement = placement(db, FinalistKey::new(db, program, finalist), round)?;
    let schedule = schedule(db, PhaseKey::new(db, program, finalist, phase, round))?;
    let inputs = [("schedule", schedule.digest()), ("placement", placement.digest())];
    stage(db, &spec("rows", COMPILATION, label).index(phase), &inputs, || {
        let (schedule, placed) = (load(db, &schedule)?, load(db, &placement)?);
        let made = exchange::rows(&schedule, |_, buffer| placed.buffer(buffer)).map_err(|found| faults(&found))?;
        let words: usize = made.iter().map(|row| row.words.len()).sum();
        let count = made.len();
        let rows = made.into_iter().map(|row| (row.tile, row.words)).collect();
        Ok(Made::new(rows).figure("rows", count).figure("words", words))
    })
}
