//! What the engine tells while it works; the command line prints it, tests count it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use store::{Digest, StoreReport};

use crate::{Label, Objective, StageName};

/// The value of a named figure of a stage.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub enum Figure {
    /// A count, of whatever unit the name says.
    Integer(i64),
    /// A measure.
    Float(f64),
    /// A choice.
    Text(String),
    /// A fact.
    Flag(bool),
}

impl Serialize for Figure {
    /// As the plain value in readable formats, tagged elsewhere.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return match self {
                Figure::Integer(value) => serializer.serialize_i64(*value),
                Figure::Float(value) => serializer.serialize_f64(*value),
                Figure::Text(value) => serializer.serialize_str(value),
                Figure::Flag(value) => serializer.serialize_bool(*value),
            };
        }
        match self {
            Figure::Integer(value) => serializer.serialize_newtype_variant("Figure", 0, "Integer", value),
            Figure::Float(value) => serializer.serialize_newtype_variant("Figure", 1, "Float", value),
            Figure::Text(value) => serializer.serialize_newtype_variant("Figure", 2, "Text", value),
            Figure::Flag(value) => serializer.serialize_newtype_variant("Figure", 3, "Flag", value),
        }
    }
}

impl Figure {
    /// As a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Figure::Integer(value) => Some(*value as f64),
            Figure::Float(value) => Some(*value),
            Figure::Text(_) | Figure::Flag(_) => None,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Integer(value) => value.fmt(formatter),
            Figure::Float(value) => value.fmt(formatter),
            Figure::Text(value) => value.fmt(formatter),
            Figure::Flag(value) => value.fmt(formatter),
        }
    }
}

macro_rules! integer_figures {
    ($($integer:ty)*) => {
        $(impl From<$integer> for Figure {
            fn from(value: $integer) -> Figure {
                Figure::Integer(i64::try_from(value).unwrap_or(i64::MAX))
            }
        })*
    };
}
integer_figures!(i32 i64 u8 u16 u32 u64 usize);

impl From<f64> for Figure {
    fn from(value: f64) -> Figure {
        Figure::Float(value)
    }
}

impl From<bool> for Figure {
    fn from(value: bool) -> Figure {
        Figure::Flag(value)
    }
}

impl From<&str> for Figure {
    fn from(value: &str) -> Figure {
        Figure::Text(value.to_owned())
    }
}

impl From<String> for Figure {
    fn from(value: String) -> Figure {
        Figure::Text(value)
    }
}

/// One execution of a stage: which, and for what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageId {
    /// The target the stage works for.
    pub label: Label,
    /// Stage and index.
    pub stage: StageName,
}

impl fmt::Display for StageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.label, self.stage)
    }
}

/// What became of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It runs now.
    Started,
    /// It ran.
    Executed,
    /// Its result was in the store.
    Cached,
}

/// A stage started or ended.
#[derive(Clone, Debug)]
pub struct StageEvent {
    /// Which.
    pub id: StageId,
    /// What became of it.
    pub progress: Progress,
    /// False when it ended with a failure.
    pub success: bool,
    /// Wall time in milliseconds; of the look-up when cached, 0 when started.
    pub elapsed_ms: f64,
    /// Milliseconds that threads of its own worked beside the one it ran on, summed.
    pub help_ms: f64,
    /// Its deep key.
    pub key: Digest,
    /// The artifact's digest, when there is one.
    pub digest: Option<Digest>,
    /// Digests of what it read, when it executed: its inputs, and the artifacts of which they are parts.
    pub reads: Vec<Digest>,
    /// Named figures in the stage's order; those of the execution when cached.
    pub figures: Vec<(String, Figure)>,
}

/// A point of a sweep is done.
#[derive(Clone, Debug)]
pub struct PointEvent {
    /// Which.
    pub label: Label,
    /// Points done so far, of all that have to be built.
    pub done: usize,
    /// All that have to be built.
    pub total: usize,
    /// Whether nothing had to be built for it.
    pub cached: bool,
    /// Whether it gave something, and its verdict is a pass.
    pub success: bool,
    /// The objective's figure.
    pub value: Option<f64>,
    /// Whether that is the best so far.
    pub is_best: bool,
    /// What makes one better than another.
    pub objective: Objective,
    /// What is wrong with it.
    pub message: Option<Arc<str>>,
}

/// What the engine tells.
#[derive(Clone, Debug)]
pub enum Event {
    /// A stage started or ended.
    Stage(StageEvent),
    /// A wave of `total` pieces begins for a target.
    WaveStarted {
        /// The target.
        label: Label,
        /// The wave's name.
        wave: &'static str,
        /// Number of pieces.
        total: usize,
    },
    /// One more piece of a wave is done.
    WaveAdvanced {
        /// The target.
        label: Label,
        /// The wave's name.
        wave: &'static str,
        /// Pieces done so far.
        done: usize,
        /// Number of pieces.
        total: usize,
    },
    /// All pieces of a wave are done, or it was stopped.
    WaveEnded {
        /// The target.
        label: Label,
        /// The wave's name.
        wave: &'static str,
        /// Wall time from its start.
        elapsed: Duration,
    },
    /// A point of a sweep is done.
    Point(PointEvent),
    /// The engine was at work on something else than stages, and has just finished.
    Work {
        /// What it was: `declarations`, `keys`, `exports`, `store`.
        name: &'static str,
        /// Wall time.
        elapsed: Duration,
    },
    /// Something about the store that the user should hear.
    Store(StoreReport),
    /// A remark of a stage or the engine, as "finalist 2 does not fit, trying the next".
    Notice {
        /// The target it is about.
        label: Option<Label>,
        /// The remark.
        message: String,
    },
}

/// Receives events, from any thread, in the order of each thread.
pub trait EventSink: Send + Sync {
    /// Takes one event; must not call the engine.
    fn event(&self, event: &Event);
}

/// Drops every event.
pub struct Silent;

impl EventSink for Silent {
    fn event(&self, _event: &Event) {}
}
