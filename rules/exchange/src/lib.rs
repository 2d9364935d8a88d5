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

mod assignment;
mod clique;
mod occupancy;

mod fabric;

mod colouring;
mod ejection;
mod order;
mod permutations;
mod search;

mod scheduler;

mod phase_file;
mod timeline;

mod events;
mod row;

mod violation;

mod check_messages;
mod check_programs;
mod check_rows;
mod check_schedule;

pub use bound::{bound, estimate};
pub use check_messages::validate_messages;
pub use check_programs::{FabricState, TileProgram, validate_programs};
pub use check_rows::{PlacedRow, validate_rows};
pub use check_schedule::validate;
pub use clique::clique_bound;
pub use events::{Control, Send, Setting, TileEvents, lower};
pub use message::{Spot, TimedMessage, Width};
pub use phase_file::{
    Judged, Piece, PlacedTransfer, TextFault, judge, phase_text, pieces_of, problem_of, read_phase, read_starts, starts_text,
};
pub use problem::{BufferId, Fault, Place, Problem, Transfer};
pub use row::{Row, RowCause, RowFault, row, rows, timed_rows};
pub use schedule::{Figures, Kind, Message, Schedule, TilePlan};
pub use scheduler::{schedule, schedule_with};
pub use search::{Effort, Options};
pub use timeline::timeline;
pub use violation::{Invariant, Violation};
