//! The rule `machine`: a chip and the parameters its public facts leave open.

use std::sync::Arc;

use graph::{Declaration, Field, Rule, RuleData, SourcePath};
use serde::Deserialize;

/// The fields of a `machine`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Machine {
    /// Which chip.
    pub chip: Chip,
    /// Values the public facts leave open.
    pub parameters: SourcePath,
}

/// A chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Chip {
    /// Graphcore C600, ipu21, 1472 tiles.
    C600,
}

pub(crate) struct MachineRule;

impl Rule for MachineRule {
    fn name(&self) -> &'static str {
        "machine"
    }

    fn summary(&self) -> &'static str {
        "A chip, with the parameters that its public facts leave open."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::required("chip", "\"c600\"", "Which chip."),
            Field::required("parameters", "file", "Every value that the public facts leave open; `@ipu//machines:c600` has the defaults."),
        ];
        FIELDS
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        Some(Arc::new(declaration.read::<Machine>()?))
    }
}
