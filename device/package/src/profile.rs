//! Steps of a program with their planned clocks and the program points that time them (package.md 6).

use serde::{Deserialize, Serialize};

use crate::debug::TileSetId;

/// An address on some tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    /// The tiles.
    pub tiles: TileSetId,
    /// Byte address of an instruction of the supervisor's program.
    pub address: u32,
}

/// What a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StepKind {
    /// Barrier and exchange phase.
    Exchange {
        /// Number of the phase.
        phase: u32,
        /// Events of the longest row: the schedule's horizon.
        scheduled_events: u64,
    },
    /// Kernel calls.
    Compute,
    /// A stop for the host.
    Checkpoint {
        /// Number of the checkpoint.
        checkpoint: u32,
    },
    /// Waiting for other tiles only.
    Synchronisation,
    /// Nothing to do on any tile.
    Idle,
}

/// A step; steps are numbered by their place in [`Profile::steps`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What it does: `product`, `softmax`, `move`.
    pub name: String,
    /// Number of the operation it serves.
    pub operation: Option<u32>,
    /// Kind.
    pub kind: StepKind,
    /// Kernels called, sorted, without repeats.
    pub kernels: Vec<String>,
    /// Clocks that the plan gives it.
    pub planned_clocks: u64,
    /// First instruction of the step on the tiles that reach one.
    pub starts: Vec<Point>,
}

/// The program between the host's inputs and outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Names of the operations by number.
    pub operations: Vec<String>,
    /// In program order.
    pub steps: Vec<Step>,
    /// First instruction behind the last step.
    pub end: Vec<Point>,
}
