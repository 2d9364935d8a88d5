//! What stops a run.

use crate::debug::selection::TileSelection;
use crate::fault::Context;

/// A reason to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Before the instruction at one of these byte addresses on these tiles.
    Address(Vec<(u32, TileSelection)>),
    /// Before an instruction with this mnemonic in one of its lanes.
    Mnemonic(String),
    /// Behind a write to some of these bytes: by an instruction, the exchange or the host.
    Write {
        /// First byte.
        address: u32,
        /// Length.
        bytes: u32,
    },
}

/// A breakpoint or watchpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    /// Its number, unique in its debugger.
    pub id: u32,
    /// What stops.
    pub trigger: Trigger,
    /// Tiles on which it stops.
    pub tiles: TileSelection,
    /// Context that it stops; `None`: all.
    pub context: Option<Context>,
    /// Gone after its first hit.
    pub once: bool,
    /// Hits so far.
    pub hits: u64,
}

/// Whether `address..address + bytes` and `other..other + length` have a byte in common.
pub(crate) fn overlap((address, bytes): (u32, u32), (other, length): (u32, u32)) -> bool {
    u64::from(address) < u64::from(other) + u64::from(length) && u64::from(other) < u64::from(address) + u64::from(bytes)
}
