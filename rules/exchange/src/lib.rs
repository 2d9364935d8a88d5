//! Physical exchange scheduling and its independent validator. Pure: problems in, timed messages and instruction rows out.
//!
//! A [`Problem`] names transfers over (tile, buffer, offset). [`schedule`] gives every message a start event, [`rows`] turns a schedule
//! with addresses into instruction words, and [`validate`] and [`validate_rows`] check both with arithmetic of their own. Facts are
//! those of machine.md c; nothing here knows a program, a kernel or a store.

mod bound;
mod problem;

pub use bound::estimate;
pub use problem::{BufferId, Fault, Place, Problem, Transfer};
