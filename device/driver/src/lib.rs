//! Sessions with a device: load a package, call it, read its tensors and clocks.
//!
//! [`Session`] drives the simulated chip the way a host drives a board (machine.md e.6, f.8, f.11): pages, marks, traps. What it
//! does is in the package alone; it names faults through the package's symbols. [`Board`] opens a real `/dev/ipuN` far enough to
//! say what is missing. The crate knows no compiler, no label and no store.

mod clocks;
mod fault;
mod session;

mod board;
mod ioctl;

pub use board::{Board, BoardFault, BoardFiles, Missing};
pub use clocks::{Clocks, StepClocks};
pub use fault::{Named, SessionFault};
pub use ioctl::{Argument, REQUESTS, Request};
pub use session::{Files, Outcome, Reading, Runner, Session, SessionOptions};
