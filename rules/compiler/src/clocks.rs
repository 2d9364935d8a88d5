//! Adds up what a program costs: calls and phases to clocks of the slowest tile.
//!
//! Between two phases every tile goes at its own pace; a phase starts when the slowest has arrived. The same walk serves the
//! screening model of the manifests (*modelled*), measured calls with estimated phases (*planned*) and measured calls with
//! scheduled phases (*refined*).

use ipu21::parameters::Parameters;
use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};

use crate::program::{Expanded, Step};

/// Clocks that are no kernel's and no message's, from `parameters.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    /// An empty exchange phase in full: join, barrier, row call, return (`barrier.internal_empty_phase`).
    pub internal_empty_phase: u64,
    /// Supervisor instructions of a call that are not inside the measured call.
    pub call: u64,
}

impl Costs {
    /// The costs of a machine with these parameters; a call spends one instruction on its argument block.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            internal_empty_phase: u64::from(parameters.barrier.internal_empty_phase),
            call: u64::from(parameters.supervisor.independent_instruction),
        }
    }
}

/// How long a phase takes on each tile behind the barrier and row call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseClocks {
    /// Horizon of tiles that take part; others need none.
    pub horizons: Vec<(TileId, u64)>,
    /// Horizon of a tile not listed.
    pub others: u64,
}

impl PhaseClocks {
    /// The same horizon for all tiles.
    #[must_use]
    pub fn uniform(horizon: u64) -> Self {
        Self { horizons: Vec::new(), others: horizon }
    }
}

/// Clocks of an operation: what it adds to the program's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationClocks {
    /// Added by its compute steps.
    pub compute: u64,
    /// Added by its phases.
    pub exchange: u64,
}

/// Clocks of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// From start to end.
    pub total: u64,
    /// Part of `total` added by phases.
    pub exchange: u64,
    /// What every step adds; their sum is `total`.
    pub steps: Vec<u64>,
    /// By operation number; their sum is `total`.
    pub operations: Vec<OperationClocks>,
}

/// Walks the program. `calls`: clocks of one call, by variant; `phases`: by phase number. Missing entries count 0.
#[must_use]
pub fn add_up(program: &Expanded, calls: &[u64], phases: &[PhaseClocks], costs: &Costs) -> Clocks {
    let mut clock = TileClocks::new(program);
    let mut steps = Vec::with_capacity(program.steps.len());
    let mut operations = vec![OperationClocks::default(); program.operations.len()];
    let mut exchange = 0;
    for step in &program.steps {
        let before = clock.latest;
        match step {
            Step::Exchange { phase, operation } => {
                clock.exchange(phases.get(*phase as usize), costs);
                exchange += clock.latest - before;
                operations[*operation as usize].exchange += clock.latest - before;
            }
            Step::Compute { operation, groups, .. } => {
                for group in groups {
                    let one = |call: &crate::program::Call| calls.get(call.kernel.0 as usize).copied().unwrap_or(0) + costs.call;
                    let clocks = group.calls.iter().map(one).sum();
                    group.tiles.iter().for_each(|tile| clock.spend(*tile, clocks));
                }
                operations[*operation as usize].compute += clock.latest - before;
            }
            Step::Checkpoint { .. } => {}
        }
        steps.push(clock.latest - before);
    }
    Clocks { total: clock.latest, exchange, steps, operations }
}

/// Where every tile of a program stands.
struct TileClocks {
    tiles: Vec<TileId>,
    at: Vec<u64>,
    latest: u64,
}

impl TileClocks {
    fn new(program: &Expanded) -> Self {
        let mut tiles: Vec<_> = program.buffers.iter().flat_map(|buffer| buffer.tiles.iter().copied()).collect();
        tiles.sort_unstable();
        tiles.dedup();
        Self { at: vec![0; tiles.len()], tiles, latest: 0 }
    }

    fn spend(&mut self, tile: TileId, clocks: u64) {
        if let Ok(index) = self.tiles.binary_search(&tile) {
            self.at[index] += clocks;
            self.latest = self.latest.max(self.at[index]);
        }
    }

    fn exchange(&mut self, phase: Option<&PhaseClocks>, costs: &Costs) {
        let start = self.latest + costs.internal_empty_phase;
        let others = phase.map_or(0, |phase| phase.others);
        self.at.fill(start + others);
        for (tile, horizon) in phase.iter().flat_map(|phase| &phase.horizons) {
            if let Ok(index) = self.tiles.binary_search(tile) {
                self.at[index] = start + horizon;
            }
        }
        self.latest = self.at.iter().copied().max().unwrap_or(start);
    }
}
