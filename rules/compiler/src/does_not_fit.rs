//! Why no plan of a program fits the memory of a tile, and what would: the refusal of the planner.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::peaks::{Fullest, INTERLEAVED, MEMORY, Peaks, RESERVED};

/// The memory of the smallest plan seen, where it is fullest, and the nearest layout that fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoesNotFit {
    /// Memory of the smallest plan seen, under the identity mapping.
    pub peaks: Peaks,
    /// Name of the operation that [`Fullest::operation`] counts; empty: none.
    pub operation: String,
    /// What was looked for after the refusal.
    pub nearest: Nearest,
}

/// The outcome of looking for layouts that differ in few fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nearest {
    /// Layouts tried.
    pub tried: u32,
    /// The fields to change with their new values, as written in `layout`; `None`: none of those tried fits.
    pub changes: Option<Vec<String>>,
}

impl fmt::Display for DoesNotFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Peaks { total, interleaved, largest, largest_name, fullest, .. } = &self.peaks;
        write!(
            f,
            "does not fit: the smallest plan needs {total} of {} bytes on a tile, {interleaved} of {INTERLEAVED} interleaved; \
             largest allocation {largest} bytes (`{largest_name}`)\n  {}",
            MEMORY - RESERVED,
            Place { fullest, operation: &self.operation }
        )?;
        self.nearest.fmt(f)
    }
}

impl fmt::Display for Nearest {
    /// Nothing when nothing was looked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.changes, self.tried) {
            (Some(changes), _) => write!(f, "\n  nearest layout that fits: {}", changes.join(", ")),
            (None, 0) => Ok(()),
            (None, tried) => write!(f, "\n  none of {tried} other layouts tried fits"),
        }
    }
}

struct Place<'a> {
    fullest: &'a Fullest,
    operation: &'a str,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fullest { tile, step, what, alive, others, .. } = self.fullest;
        write!(f, "tile {tile} at step {step}, {what}")?;
        if !self.operation.is_empty() {
            write!(f, " of `{}`", self.operation)?;
        }
        let named: Vec<_> = alive.iter().map(|(name, bytes)| format!("`{name}` {bytes}")).collect();
        write!(f, ": {} bytes", named.join(", "))?;
        if others.0 > 0 { write!(f, ", {} more {}", others.0, others.1) } else { Ok(()) }
    }
}
