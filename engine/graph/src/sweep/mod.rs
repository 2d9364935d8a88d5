//! The rule `sweep`: a target at many points, each with some of its fields changed, and what becomes of them.
//!
//! [`declared`] is what a user writes, with the points it stands for; the loader makes targets of them ([`expansion`]); they are
//! built like any other ([`crate::Engine`] builds them beside each other, and one that fails is a result); [`table`] is what
//! they gave, side by side, as files and as a page ([`page`]).

mod condition;
mod declared;
pub(crate) mod expansion;
mod page;
#[cfg(feature = "parquet")]
mod parquet_file;
mod rule;
mod table;
mod value;

pub use declared::{Axis, Objective, Point, Range, Sample, Setting, Sweep};
pub(crate) use rule::SweepRule;
pub use value::Value;
