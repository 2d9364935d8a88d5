//! The rows of an exchange phase of the selected finalist, at its addresses.

use compiler::placement::Block;
use compiler::rows::PhaseRows;
use graph::{Artifact, Db, Failure, Made, Target, load, note_facts, stage};

use crate::fingerprint::COMPILATION;
use crate::key::{FinalistKey, PhaseKey, digest_of, faults, spec};
use crate::stage::expanded::expanded;
use crate::stage::placement::placement;
use crate::stage::schedule::schedule;
use crate::stage::selected::selected;

/// Words by tile. Key: the schedule and the addresses of its buffers and rows.
#[salsa::tracked(returns(clone))]
pub fn rows(db: &dyn Db, program: Target, phase: u32) -> Result<Artifact<PhaseRows>, Failure> {
    let label = program.label(db);
    let selected = selected(db, program)?;
    let (finalist, round) = (selected.facts().finalist, selected.facts().round);
    let key = FinalistKey::new(db, program, finalist);
    let (expanded, placement) = (expanded(db, key)?, placement(db, key, round)?);
    let schedule = schedule(db, PhaseKey::new(db, program, finalist, phase, round))?;
    let (buffers, placed) = (&expanded.facts().phases[phase as usize].buffers, load(db, &placement)?);
    let addresses: Vec<u32> = buffers.iter().map(|buffer| placed.buffer(*buffer)).collect();
    let own = placed.blocks.get(&Block::Row(phase));
    let inputs = [("schedule", schedule.digest()), ("addresses", digest_of(&(addresses, own)))];
    stage(db, &spec("rows", COMPILATION, label).index(phase), &inputs, || {
        note_facts(&selected);
        note_facts(&placement);
        let schedule = load(db, &schedule)?.in_program(buffers);
        let rows = compiler::rows::relocate(&schedule, &placed).map_err(|found| faults(&found))?;
        compiler::rows::check(&schedule, &placed, phase, &rows).map_err(|found| faults(&found))?;
        let (count, words) = (rows.len(), rows.values().map(Vec::len).sum::<usize>());
        Ok(Made::new(rows).figure("rows", count).figure("words", words))
    })
}
