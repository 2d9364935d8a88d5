//! Stops at which the host reads tensors (package.md 8, machine.md f.11).

use serde::{Deserialize, Serialize};

use crate::binding::{Element, Layout, Slice};
use crate::profile::Point;

/// A tensor readable at a stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tensor {
    /// Name of the value.
    pub name: String,
    /// Element type.
    pub element: Element,
    /// Logical shape, outermost first.
    pub shape: Vec<u32>,
    /// Bytes of the slices together.
    pub file_bytes: u64,
    /// In file order, each byte of the file once.
    pub slices: Vec<Slice>,
    /// File order against row-major order.
    pub layout: Layout,
}

/// A stop of all supervisors at a trap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Number of the operation it stands behind.
    pub operation: u32,
    /// Name of that operation.
    pub name: String,
    /// Operand of the trap, 0 and 1 in turn.
    pub trap: u32,
    /// Address of the trap word; together the points cover every tile once.
    pub points: Vec<Point>,
    /// Word stored over the trap to go on.
    pub resume_word: u32,
    /// The trap word itself, for running again.
    pub trap_word: u32,
    /// What can be read.
    pub tensors: Vec<Tensor>,
}

impl Checkpoint {
    /// The word `trap 0` or `trap 1`.
    ///
    /// # Panics
    /// With a number that the instruction cannot hold.
    #[must_use]
    pub fn trap_word(number: u32) -> u32 {
        let encoded = ipu21::isa::encode(ipu21::isa::form::TRAP_ZI4, &[number], false);
        encoded.expect("trap numbers have four bits").word()
    }
}
