//! The schedule of one exchange phase.

use exchange::{BufferId, Effort, Options, Problem, Schedule};
use graph::{Artifact, Db, Failure, Made, data_of, load, stage};
use serde::{Deserialize, Serialize};

use crate::fingerprint::Crate;
use crate::key::{FinalistKey, PhaseKey, digest_of, faults, spec};
use crate::rule::Program;
use crate::stage::expanded::expanded;
use crate::stage::placement::placement;

/// What later stages branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleFacts {
    /// Events until the last tile is done.
    pub horizon: u32,
    /// Bytes of the largest row.
    pub row_bytes: u32,
}

/// Timed messages over the buffers of the phase alone: [`Schedule::in_program`] gives them the program's numbers. Key: the problem on
/// its own, the pairs that must not overlap and the effort; phases with equal problems, of one program or of several, are scheduled once.
#[salsa::tracked(returns(clone))]
pub fn schedule<'db>(db: &'db dyn Db, key: PhaseKey<'db>) -> Result<Artifact<Schedule, ScheduleFacts>, Failure> {
    let (program, finalist, phase, round) = (key.program(db), key.finalist(db), key.phase(db), key.round(db));
    let label = program.label(db);
    let finalist_key = FinalistKey::new(db, program, finalist);
    let expanded = expanded(db, finalist_key)?;
    let facts = &expanded.facts().phases[phase as usize];
    let serial = if round == 0 { Vec::new() } else { given_up(db, finalist_key, &facts.buffers)? };
    let layout = &data_of::<Program>(db, label)?.layout;
    let (times, pairs) = (layout.effort, layout.pairs);
    let inputs = [("problem", facts.problem), ("serial", digest_of(&serial)), ("effort", digest_of(&times)), ("pairs", digest_of(&pairs))];
    let spec = spec("schedule", &[Crate::Exchange, Crate::Ipu21], label).index(format!("{finalist}.{phase}"));
    stage(db, &spec, &inputs, || {
        let program = load(db, &expanded)?;
        let problem = Problem { serial: serial.clone(), ..program.phases[phase as usize].on_its_own() };
        let options = Options { effort: Effort::new(times).unwrap_or(Effort::DEFAULT), pairs };
        let schedule = exchange::schedule_with(&problem, options).map_err(|found| faults(&found))?;
        exchange::validate(&problem, &schedule).map_err(|found| faults(&found))?;
        let figures = schedule.figures;
        let facts = ScheduleFacts { horizon: figures.horizon, row_bytes: 4 * figures.largest_row_words };
        Ok(Made::with_facts(schedule, facts)
            .figure("transfers", figures.transfers)
            .figure("maximum_identical_destinations", figures.identical_destinations)
            .figure("initial_horizon", figures.initial_horizon)
            .figure("selected_horizon", figures.horizon)
            .figure("lower_bound", figures.lower_bound)
            .figure("gap", figures.gap())
            .figure("proven", figures.gap() == 0)
            .figure("selected_kind", format!("{:?}", figures.kind).to_lowercase())
            .figure("improvements", figures.improvements)
            .figure("pairs", figures.pairs)
            .figure("largest_row_words", figures.largest_row_words)
            .figure("largest_row_tile", figures.largest_row_tile.map_or(-1, |tile| i64::from(tile.get()))))
    })
}

type Pairs = Vec<(BufferId, BufferId, ipu21::tile::TileId)>;

/// The pairs among these buffers, by their position, that the first placement of a finalist gave up.
fn given_up<'db>(db: &'db dyn Db, key: FinalistKey<'db>, buffers: &[BufferId]) -> Result<Pairs, Failure> {
    let first = placement(db, key, 0)?;
    let placed = load(db, &first)?;
    let number = |buffer: &BufferId| buffers.binary_search(buffer).ok().map(|index| BufferId(index as u32));
    Ok(placed.given_up.iter().filter_map(|(tile, one, other)| Some((number(one)?, number(other)?, *tile))).collect())
}
