//! The rule `device`: what runs a package.

use std::sync::Arc;

use graph::{Declaration, Field, Rule, RuleData};
use serde::Deserialize;

/// The fields of a `device`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Device {
    /// What it is.
    pub kind: DeviceKind,
    /// Simulator: seed of the poison that fills memory, registers and accumulators at the start.
    #[serde(default)]
    pub seed: u64,
    /// Hardware: number N of `/dev/ipuN`.
    #[serde(default)]
    pub number: u32,
    /// Hardware: path of the vendor's secondary loader on this machine.
    #[serde(default)]
    pub loader: Option<String>,
    /// Hardware: path of the capture of the board's configuration on this machine.
    #[serde(default)]
    pub configuration: Option<String>,
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// The embedded simulator.
    Simulator,
    /// A board at `/dev/ipuN`.
    Hardware,
}

pub(crate) struct DeviceRule;

impl Rule for DeviceRule {
    fn name(&self) -> &'static str {
        "device"
    }

    fn summary(&self) -> &'static str {
        "What runs a package: the embedded simulator or a board."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::required("kind", "\"simulator\" or \"hardware\"", "What it is."),
            Field::optional("seed", "integer", "Simulator: seed of the poison in memory, registers and accumulators; 0 unless set."),
            Field::optional("number", "integer", "Hardware: N of `/dev/ipuN`; 0 unless set."),
            Field::optional("loader", "path", "Hardware: the vendor's secondary loader, a file of this machine."),
            Field::optional("configuration", "path", "Hardware: the capture of the board's configuration, a file of this machine."),
        ];
        FIELDS
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        Some(Arc::new(declaration.read::<Device>()?))
    }
}
