//! Physical exchange scheduling and its independent validator. Pure: problems in, timed messages and instruction rows out.
//!
//! A [`Problem`] names transfers over (tile, buffer, offset). [`schedule`] gives every message a start event, [`rows`] turns a schedule
//! with addresses into instruction words, and [`validate`] and [`validate_rows`] check both with arithmetic of their own. Facts are
//! those of machine.md c; nothing here knows a program, a kernel or a store.

mod problem;

mod bound;
mod message;
mod schedule;

mod job;
mod occupancy;

mod fabric;

mod colouring;
mod order;
mod search;

mod scheduler;

mod events;
mod row;

pub use bound::estimate;
pub use events::{Control, Send, Setting, TileEvents, lower};
pub use message::{Spot, TimedMessage, Width};
pub use problem::{BufferId, Fault, Place, Problem, Transfer};
pub use row::{Row, RowCause, RowFault, row, rows, timed_rows};
pub use schedule::{Figures, Kind, Message, Schedule, TilePlan};
pub use scheduler::schedule;
