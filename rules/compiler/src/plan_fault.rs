//! What can go wrong between a checked model and an expanded program.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::does_not_fit::{DoesNotFit, Nearest};

/// A model that cannot be planned or a plan that cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// No plan fits the memory of a tile.
    DoesNotFit(Box<DoesNotFit>),
    /// One value is split into blocks that would have to be padded in two ways.
    SplitConflict {
        /// The value.
        value: String,
        /// Operation that wants the second split.
        operation: String,
        /// Blocks and their width of the first split.
        first: (u32, u32),
        /// Blocks and their width of the second split.
        second: (u32, u32),
    },
    /// One parameter is multiplied with values whose columns are padded differently.
    ParameterConflict {
        /// The parameter.
        parameter: String,
        /// Operation that wants the second padding.
        operation: String,
    },
    /// A layout field that names no operation of the model, or an operation that has no such field.
    GridField {
        /// Path of the field.
        field: String,
        /// What is possible.
        expected: String,
    },
    /// The grid wanted by the layout needs more tiles than there are, or more parts than the axis has.
    Grid {
        /// Operation.
        operation: String,
        /// Why.
        reason: String,
    },
    /// A checkpoint that is no operation with a result of its own.
    Checkpoint {
        /// Number asked for.
        operation: u32,
        /// Operations that can be checkpointed.
        possible: Vec<u32>,
    },
    /// The kernel libraries have no such kernel.
    NoKernel {
        /// Name.
        kernel: String,
    },
    /// A kernel cannot be assembled for, or its manifest not evaluated at, these parameters.
    KernelLimit {
        /// The variant, as printed.
        variant: String,
        /// The manifest's reason.
        reason: String,
        /// What was looked for after the planner's refusal.
        nearest: Nearest,
    },
    /// A variant without a measurement.
    NotMeasured {
        /// The variant, as printed.
        variant: String,
    },
    /// A buffer is an operand of kernels that want it in different regions.
    TwoRegions {
        /// The buffer.
        buffer: String,
    },
    /// The plan of an operation is not one for its kind.
    PlanMismatch {
        /// Operation.
        operation: String,
    },
    /// A mapping of that name does not exist.
    UnknownMapping {
        /// What was written.
        found: String,
        /// Names that exist.
        possible: Vec<String>,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoesNotFit(refusal) => refusal.fmt(f),
            Self::SplitConflict { value, operation, first, second } => write!(
                f,
                "`{value}` is split into {} blocks of {} and, by `{operation}`, into {} blocks of {}; \
                 two splits of one value need blocks that are multiples of 16",
                first.0, first.1, second.0, second.1
            ),
            Self::ParameterConflict { parameter, operation } => {
                write!(f, "parameter `{parameter}` is used by `{operation}` and others with differently split values")
            }
            Self::GridField { field, expected } => write!(f, "layout.{field}: expected {expected}"),
            Self::Grid { operation, reason } => write!(f, "layout.grids.{operation}: {reason}"),
            Self::Checkpoint { operation, possible } => {
                write!(f, "checkpoint {operation} is no operation with a result of its own; possible: {possible:?}")
            }
            Self::NoKernel { kernel } => write!(f, "no kernel library has a kernel `{kernel}`"),
            Self::KernelLimit { variant, reason, nearest } => write!(f, "kernel variant {variant}: {reason}{nearest}"),
            Self::NotMeasured { variant } => write!(f, "kernel variant {variant} was not measured"),
            Self::TwoRegions { buffer } => write!(f, "buffer `{buffer}` is wanted in two memory regions"),
            Self::PlanMismatch { operation } => write!(f, "the plan of `{operation}` is not one for its kind of operation"),
            Self::UnknownMapping { found, possible } => write!(f, "layout.mapping: expected auto or one of {possible:?}, found `{found}`"),
        }
    }
}

impl std::error::Error for Fault {}
