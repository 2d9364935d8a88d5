//! One tile, one instruction at a time, in the order of `Tile::run`.
//!
//! `Tile::run` lets workers go on up to the supervisor's next free slot, or until one of them ends, and then looks again. What it
//! is about to wait for is kept here between two turns.

use crate::code::Operation;
use crate::context::Worker;
use crate::crew::WORKERS;
use crate::fault::{Context, Fault};
use crate::load_store::peek;
use crate::operation::{Kind, Pace};
use crate::pace;
use crate::tile::{Environment, State, Tile};

/// What a tile does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A worker's turn.
    Worker(u8),
    /// An instruction of the supervisor.
    Supervisor,
    /// The supervisor goes on behind the last worker.
    Join,
    /// The tile came back to where it was called from.
    Return,
}

impl Next {
    /// The context whose instruction it is.
    pub(crate) fn context(self) -> Option<Context> {
        match self {
            Next::Worker(n) => Some(Context::Worker(n)),
            Next::Supervisor => Some(Context::Supervisor),
            Next::Join | Next::Return => None,
        }
    }
}

/// Where a tile is between two instructions.
#[derive(Debug, Default)]
pub(crate) struct Stepper {
    /// The clock of the supervisor's slot up to which workers go on.
    issue: Option<u64>,
}

impl Stepper {
    /// Whether the tile may be left to `Tile::run` again.
    pub(crate) fn is_between(&self) -> bool {
        self.issue.is_some()
    }

    /// What comes next on a tile that can go on alone.
    pub(crate) fn next(&mut self, tile: &Tile) -> Next {
        let worker = earliest(tile);
        if tile.state != State::Running || tile.joining {
            return worker.map_or(Next::Join, |worker| Next::Worker(worker.number));
        }
        loop {
            let Some(worker) = worker else {
                let returns = self.issue.is_none() && tile.return_to == Some(tile.pc);
                return if returns { Next::Return } else { Next::Supervisor };
            };
            if tile.active == 0x3f {
                return Next::Worker(worker.number);
            }
            let issue = *self.issue.get_or_insert_with(|| tile.free_slot(tile.clock));
            if worker.next < issue {
                return Next::Worker(worker.number);
            }
            if tile.free_slot(tile.clock) == issue {
                return Next::Supervisor;
            }
            self.issue = None;
        }
    }

    /// Does it, as `Tile::run` would.
    pub(crate) fn execute(&mut self, tile: &mut Tile, next: Next, environment: &Environment) {
        let step = match next {
            Next::Worker(n) => turn(tile, usize::from(n), environment),
            Next::Join => tile.join(environment),
            Next::Supervisor => {
                self.issue = None;
                tile.supervisor_step(environment)
            }
            Next::Return => {
                tile.state = State::Returned;
                return;
            }
        };
        if let Err(fault) = step {
            tile.fail(fault);
        } else if tile.clock > environment.clock_limit {
            tile.state = State::Limited;
        }
    }
}

/// `Tile::run`, a turn at a time.
pub(crate) fn run_by_steps(tile: &mut Tile, environment: &Environment) {
    let mut stepper = Stepper::default();
    while tile.can_go() && !matches!(tile.state, State::Failed(_) | State::Limited | State::Returned) {
        let next = stepper.next(tile);
        stepper.execute(tile, next, environment);
    }
}

/// The running worker whose turn comes first; no two have theirs at one clock.
fn earliest(tile: &Tile) -> Option<&Worker> {
    if tile.active == 0 {
        return None;
    }
    tile.workers.as_deref()?.iter().filter(|worker| worker.active).min_by_key(|worker| worker.next)
}

fn turn(tile: &mut Tile, n: usize, environment: &Environment) -> Result<(), Box<Fault>> {
    let Some(mut crew) = tile.crew(environment) else { return Ok(()) };
    let (clock, round) = (crew.workers[n].next, crew.workers[n].round());
    crew.turn(n, clock)?;
    let next = crew.workers.iter().filter(|worker| worker.active).map(Worker::round).min();
    let next = next.unwrap_or(round + WORKERS as u64);
    if next > environment.clock_limit {
        tile.clock = tile.clock.max(next);
    }
    Ok(())
}

/// The bytes that an instruction is about to store, if it stores: address and length.
pub(crate) fn store(tile: &Tile, context: Context, operation: &Operation) -> Option<(u32, u32)> {
    let main = match context {
        Context::Supervisor => &tile.main,
        Context::Worker(n) => &tile.workers.as_deref()?[usize::from(n)].main,
    };
    match operation.kind {
        Kind::Store { transfer, step } => Some((peek(main, operation, transfer, step), transfer.bytes())),
        Kind::Pace(Pace::Load2Store | Pace::LoadStore | Pace::Store) => Some((pace::store_address(main, operation), 8)),
        _ => None,
    }
}
