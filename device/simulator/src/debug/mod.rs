//! Debugging: a chip that stops before instructions, behind stores and after steps, and that tells what was executed.
//!
//! [`Debugger`] drives a [`Chip`](crate::Chip) in place of [`Chip::run`](crate::Chip::run): a tile that somebody looks at goes one
//! turn of the reference interpreter at a time, in the very order of a normal run, so that words, clocks and faults are those of
//! a run without a debugger; all other tiles run as usual. Tiles are independent of each other between barriers, so they are taken
//! one after the other: where one stops, those behind it stand at their last barrier and those before it at their next.
//! A run without a debugger passes through none of this.

mod debugger;
mod selection;
mod stepper;
mod trigger;
mod view;

pub use debugger::{Barrier, Count, Debugger, Executed, Halt, Hit, Observer, StepRequest, Why, Writer};
pub use selection::{TileSelection, TraceFilter};
pub(crate) use stepper::run_by_steps;
pub use trigger::{Breakpoint, Trigger};
pub use view::{Registers, WorkerRegisters};
