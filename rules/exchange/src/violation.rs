//! What a validator can object to.

use std::fmt;

use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};

/// The rules of a phase: those of machine.md c.10 under their numbers, and two of this crate's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each rule's sentence is in `Invariant::sentence`")]
pub enum Invariant {
    Coverage,
    Report,
    I1,
    I2,
    I3,
    I4,
    I5,
    I6,
    I7,
    I8,
    I9,
    I10,
    I11,
    I12,
    I13,
    I14,
    I15,
    I16,
    I17,
    I18,
    I19,
    I20,
    I21,
    I22,
    I23,
}

impl Invariant {
    /// The rule in a sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Coverage => "every word of every transfer goes exactly once to every destination",
            Self::Report => "horizons, row sizes and pairs of buffers are reported as they are",
            Self::I1 => "a message has destinations, all different, none of them its source",
            Self::I2 => "a message has 1 to 4148 items, at least 64 in pair mode",
            Self::I3 => "addresses are aligned to an item, inside tile memory, equal on both tiles of a pair",
            Self::I4 => "the direction and width bits of a send are those its receivers need",
            Self::I5 => "no select and no control is before event 1",
            Self::I6 => "a receiver selects its source on the event the route demands",
            Self::I7 => "the pointer is set on the event of the first word, or left out where it stands right",
            Self::I8 => "a selection ends with a neutral, unless the next one starts on that event",
            Self::I9 => "the sends of a tile are disjoint",
            Self::I10 => "the selections of a tile are disjoint",
            Self::I11 => "the stores of a tile are disjoint",
            Self::I12 => "at most one XPIC and one PIC control take effect on an event",
            Self::I13 => "no control falls on the first two events of a send of its tile",
            Self::I14 => "send and receive windows that meet touch different conflict units",
            Self::I15 => "a row is 8-byte aligned, in region 0, in units no data of the phase touches",
            Self::I16 => "program order is kept where byte ranges meet",
            Self::I17 => "a row consists of exchange instructions, two-word ones on even words, and a return",
            Self::I18 => "a row lasts to its tile's horizon",
            Self::I19 => "no worker is active from the barrier to the horizon",
            Self::I20 => "every tile contributes to the barrier exactly once",
            Self::I21 => "mux neutral, format and bases 0, countdown 1, exchange idle before the row",
            Self::I22 => "all tiles take the same instruction path from the barrier to the row",
            Self::I23 => "a 64-bit message goes to whole pairs, its partner rests, and no controls of the early member coincide",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

/// A broken rule, with where it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Violation {
    /// Which rule.
    pub invariant: Invariant,
    /// On which tile, if on one.
    pub tile: Option<TileId>,
    /// Index of the message (or transfer, for coverage), if there is one.
    pub message: Option<u32>,
    /// Event on the tile's counter, word index or address, whichever the rule is about.
    pub at: Option<i64>,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.invariant)?;
        if let Some(tile) = self.tile {
            write!(out, ", tile {tile}")?;
        }
        if let Some(message) = self.message {
            write!(out, ", message {message}")?;
        }
        if let Some(at) = self.at {
            write!(out, ", at {at}")?;
        }
        write!(out, ": expected that {}", self.invariant.sentence())
    }
}

impl std::error::Error for Violation {}

/// Collects violations; each once, in order of rule, tile and message.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: Vec<Violation>,
}

impl Findings {
    pub(crate) fn expect(&mut self, holds: bool, invariant: Invariant, tile: Option<TileId>, message: Option<u32>, at: Option<i64>) {
        if !holds {
            self.found.push(Violation { invariant, tile, message, at });
        }
    }

    pub(crate) fn extend(&mut self, result: Result<(), Vec<Violation>>) {
        self.found.extend(result.err().unwrap_or_default());
    }

    pub(crate) fn result(mut self) -> Result<(), Vec<Violation>> {
        self.found.sort_unstable();
        self.found.dedup();
        if self.found.is_empty() { Ok(()) } else { Err(self.found) }
    }
}
