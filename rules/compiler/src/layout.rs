//! What a user may fix about the layout of a program; every field is `"auto"` unless set.
//!
//! In: the table `layout` of a program target. Out: a [`Layout`]; [`Layout::check`] lists what holds of it. The choice of
//! `"auto"` fields is made by the planner, with [`PartialsChoice::for_chain`] for the width of partial sums.

use std::collections::BTreeMap;
use std::fmt;

use ipu21::tile;
use serde::{Deserialize, Serialize};

use crate::plan::Orientation;

/// Width of the partial sums between blocks of sixteen inner channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartialsChoice {
    /// The fastest whose predicted error fits [`Layout::accuracy`].
    #[default]
    Auto,
    /// Always f16.
    F16,
    /// Always f32.
    F32,
}

/// Where the stationary operand of a product lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightsMemory {
    /// Interleaved unless that does not fit.
    #[default]
    Auto,
    /// Anywhere, 8 bytes a clock.
    Standard,
    /// Region 1, 16 bytes a clock.
    Interleaved,
}

/// Where the values of an attention are packed by column of keys, as its second product needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// Where they are made, so that they are sent packed.
    Producer,
    /// Where they are used: they are sent as keys are and turned there.
    Consumer,
}

/// What an attention multiplies by its scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scaling {
    /// Queries, where they are made.
    Queries,
    /// Scores, in the softmax.
    Scores,
}

/// Units in which rows can be cut: what divides the sixteen rows that every value is padded to.
const ROW_UNITS: [u32; 5] = [1, 2, 4, 8, 16];

/// How one operation is done and its grid is cut; what is not set is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridChoice {
    /// `matmul`: parts of the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u32>,
    /// `matmul`: parts of the columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<u32>,
    /// `matmul`: groups of the inner channels, whose sums are added at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<u32>,
    /// `matmul`: pieces of a group that are gathered and multiplied one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<u32>,
    /// `matmul`: weights are dealt out among all tiles and gathered as the other operand is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<bool>,
    /// `matmul`: which operand is streamed, if a result in the order its readers want can be made so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orientation: Option<Orientation>,
    /// `attention`: groups of heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<u32>,
    /// `attention`: groups of queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries: Option<u32>,
    /// `attention`: groups of keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u32>,
    /// `attention`: where values are packed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packing: Option<Packing>,
    /// `attention`: what is multiplied by the scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// Rows of a part are a multiple of this: the rows of a `matmul`, the queries of an `attention`. Parts differ by one unit at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_unit: Option<u32>,
    /// Width of partial sums; [`Layout::partials`] unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partials: Option<PartialsChoice>,
    /// Where stationary operands lie; [`Layout::weights_memory`] unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights_memory: Option<WeightsMemory>,
}

/// Pieces of inner channels: blocks of sixteen of more channels than a tile can hold.
const PIECES_MAX: u32 = 4096;

/// The layout fields of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Tiles that may compute, 1..=1472: logical ids from 0.
    pub tiles: u32,
    /// Width of partial sums.
    #[serde(default)]
    pub partials: PartialsChoice,
    /// Largest absolute error wanted of results with variance 1; decides [`PartialsChoice::Auto`].
    #[serde(default = "default_accuracy")]
    pub accuracy: f64,
    /// Where stationary operands lie.
    #[serde(default)]
    pub weights_memory: WeightsMemory,
    /// Name of a tile mapping, or `auto`.
    #[serde(default = "auto")]
    pub mapping: String,
    /// Plans kept for scheduling, 1..=16.
    #[serde(default = "default_finalists")]
    pub finalists: u32,
    /// Times the usual work that a schedule may take, 1..=1000; with more than once it goes on until its bound is met.
    #[serde(default = "default_effort")]
    pub effort: u32,
    /// 64-bit items to pairs of tiles where that is legal; not confirmed on hardware.
    #[serde(default)]
    pub pairs: bool,
    /// Grids of operations, by operation name.
    #[serde(default)]
    pub grids: BTreeMap<String, GridChoice>,
}

fn default_accuracy() -> f64 {
    3e-3
}

fn auto() -> String {
    "auto".to_owned()
}

fn default_finalists() -> u32 {
    4
}

fn default_effort() -> u32 {
    1
}

impl Layout {
    /// Everything `auto` on this many tiles.
    #[must_use]
    pub fn on(tiles: u32) -> Self {
        Self {
            tiles,
            partials: PartialsChoice::Auto,
            accuracy: default_accuracy(),
            weights_memory: WeightsMemory::Auto,
            mapping: auto(),
            finalists: default_finalists(),
            effort: default_effort(),
            pairs: false,
            grids: BTreeMap::new(),
        }
    }

    /// What is asked of an operation.
    #[must_use]
    pub fn grid(&self, operation: &str) -> GridChoice {
        let grid = self.grids.get(operation).copied().unwrap_or_default();
        let (partials, memory) = (grid.partials.unwrap_or(self.partials), grid.weights_memory.unwrap_or(self.weights_memory));
        GridChoice { partials: Some(partials), weights_memory: Some(memory), ..grid }
    }

    /// Ranges of the fields that do not depend on a model.
    ///
    /// # Errors
    /// Every field out of range.
    pub fn check(&self) -> Result<(), Vec<Fault>> {
        let tiles = u32::try_from(tile::COUNT).unwrap_or(u32::MAX);
        let mut faults = Vec::new();
        let mut refuse = |is_wrong: bool, field: &str, expected: &str, found: u32| {
            if is_wrong {
                faults.push(Fault { field: field.to_owned(), expected: expected.to_owned(), found: found.to_string() });
            }
        };
        let mut range = |field: &str, found: u32, maximum: u32| {
            refuse(!(1..=maximum).contains(&found), field, &format!("1 to {maximum}"), found);
        };
        range("tiles", self.tiles, tiles);
        range("finalists", self.finalists, 16);
        range("effort", self.effort, exchange::Effort::MAX);
        for (name, grid) in &self.grids {
            let parts = [
                ("rows", grid.rows),
                ("columns", grid.columns),
                ("inner", grid.inner),
                ("heads", grid.heads),
                ("queries", grid.queries),
                ("keys", grid.keys),
            ];
            for (field, parts) in parts {
                if let Some(parts) = parts {
                    range(&format!("grids.{name}.{field}"), parts, self.tiles.max(1));
                }
            }
            if let Some(pieces) = grid.pieces {
                range(&format!("grids.{name}.pieces"), pieces, PIECES_MAX);
            }
        }
        for (name, grid) in &self.grids {
            if let Some(unit) = grid.row_unit {
                refuse(!ROW_UNITS.contains(&unit), &format!("grids.{name}.row_unit"), "1, 2, 4, 8 or 16", unit);
            }
        }
        if !(self.accuracy.is_finite() && self.accuracy > 0.0) {
            faults.push(Fault { field: "accuracy".to_owned(), expected: "a number above 0".to_owned(), found: self.accuracy.to_string() });
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }
}

/// A layout field out of its range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Path of the field inside `layout`.
    pub field: String,
    /// What is possible.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "layout.{}: expected {}, found {}", self.field, self.expected, self.found)
    }
}

impl std::error::Error for Fault {}

/// Width of partial sums, decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Partials {
    /// Rounded to f16 once per sixteen inner channels.
    F16,
    /// Exact in f32, rounded once at the end.
    F32,
}

/// Predicted rms error of a chain of one block of sixteen channels, results of variance 1. The error of an f16 chain
/// grows with the square root of its blocks (0.9e-3 at 32, 1.2e-3 at 64, 2.2e-3 at 256: kernel-budget 1).
const CHAIN_RMS: f64 = 0.16e-3;
/// Largest of some ten thousand errors over their rms.
const MAXIMUM_OVER_RMS: f64 = 4.5;

/// Predicted largest absolute error of a chain of `blocks` blocks with f16 partial sums, results of variance 1.
#[must_use]
pub fn predicted_error(blocks: u32) -> f64 {
    MAXIMUM_OVER_RMS * CHAIN_RMS * f64::from(blocks).sqrt()
}

impl PartialsChoice {
    /// The width of partial sums for a chain of `blocks` blocks of sixteen channels.
    #[must_use]
    pub fn for_chain(self, blocks: u32, accuracy: f64) -> Partials {
        match self {
            Self::F16 => Partials::F16,
            Self::F32 => Partials::F32,
            Self::Auto if predicted_error(blocks) <= accuracy => Partials::F16,
            Self::Auto => Partials::F32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{GridChoice, Layout, Partials, PartialsChoice};

    #[test]
    fn every_field_out_of_range_is_reported() {
        let choice = GridChoice { rows: Some(0), pieces: Some(0), row_unit: Some(6), ..GridChoice::default() };
        let grids = [("q".to_owned(), choice)].into();
        let layout = Layout { accuracy: 0.0, finalists: 17, effort: 0, grids, ..Layout::on(1473) };
        let faults: Vec<_> = layout.check().unwrap_err().iter().map(ToString::to_string).collect();
        #[rustfmt::skip]
        assert_eq!(faults, [
            "layout.tiles: expected 1 to 1472, found 1473",
            "layout.finalists: expected 1 to 16, found 17",
            "layout.effort: expected 1 to 1000, found 0",
            "layout.grids.q.rows: expected 1 to 1473, found 0",
            "layout.grids.q.pieces: expected 1 to 4096, found 0",
            "layout.grids.q.row_unit: expected 1, 2, 4, 8 or 16, found 6",
            "layout.accuracy: expected a number above 0, found 0",
        ]);
    }

    #[test]
    fn partial_sums_are_f16_while_the_predicted_error_fits() {
        let chosen = [5, 17, 18].map(|blocks| PartialsChoice::Auto.for_chain(blocks, Layout::on(64).accuracy));
        assert_eq!(chosen, [Partials::F16, Partials::F16, Partials::F32]);
    }
}
