//! The rule `run`: a program with tensors on a device, and the verdict.

use std::collections::BTreeMap;
use std::sync::Arc;

use graph::{Declaration, Field, Label, Rule, RuleData, RuleKind};
use serde::Deserialize;

/// The fields of a `run`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Run {
    /// A `program`.
    pub program: Label,
    /// A `device`.
    pub device: Label,
    /// For each input a `tensors` target with a tensor of that name.
    #[serde(default)]
    pub tensors: BTreeMap<String, Label>,
    /// A `tensors` target with a tensor for each parameter.
    #[serde(default)]
    pub parameters: Option<Label>,
    /// Largest absolute error allowed, by result name; `default` for the others.
    pub tolerance: BTreeMap<String, f64>,
    /// Simulated clocks that make the verdict a failure when there are more.
    #[serde(default)]
    pub max_clocks: Option<u64>,
    /// Results compared with given values too: a `tensors` target with a tensor of that name.
    #[serde(default)]
    pub expected: BTreeMap<String, Label>,
    /// Seed of the choice of printed samples.
    #[serde(default)]
    pub sample_seed: u64,
}

pub(crate) struct RunRule;

impl Rule for RunRule {
    fn name(&self) -> &'static str {
        "run"
    }

    fn summary(&self) -> &'static str {
        "Runs a program on a device and compares every checkpointed tensor with a float64 evaluation of the whole model."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::required("program", "label of a `program`", "What runs.").accepting(&["program"]),
            Field::required("device", "label of a `device`", "Where it runs.").accepting(&["device"]),
            Field::optional("tensors", "table of labels of `tensors`", "For each input of the model a target with a tensor of that name.")
                .accepting(&["tensors"]),
            Field::optional("parameters", "label of `tensors`", "A target with a tensor for each parameter of the model.")
                .accepting(&["tensors"]),
            Field::required("tolerance", "table of numbers", "Largest absolute error by result name; `default` for the others."),
            Field::optional(
                "expected",
                "table of labels of `tensors`",
                "Results compared with given values too: for each a target with a tensor of that name.",
            )
            .accepting(&["tensors"]),
            Field::optional("max_clocks", "integer of at least 1", "The run fails when it takes more clocks."),
            Field::optional("sample_seed", "integer", "Seed of the choice of the reported samples; 0 unless set."),
        ];
        FIELDS
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Run
    }

    fn fingerprint(&self) -> graph::Digest {
        crate::fingerprint::of(crate::fingerprint::RUN)
    }

    fn code(&self) -> Vec<(&'static str, graph::Digest)> {
        crate::fingerprint::parts(crate::fingerprint::RUN)
    }

    fn waves(&self) -> &'static [graph::WaveFunction] {
        crate::waves::RUN
    }

    fn stages(&self, engine: &graph::Engine, label: &Label) -> Vec<graph::StageNote> {
        crate::outcome::run_stages(engine, label)
    }

    fn finish(&self, engine: &graph::Engine, label: &Label) -> Result<graph::Outcome, graph::Failure> {
        crate::outcome::run(engine, label)
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        let run = declaration.read::<Run>()?;
        let mut sound = true;
        for (name, tolerance) in &run.tolerance {
            if !(tolerance.is_finite() && *tolerance >= 0.0) {
                declaration.fault(&format!("tolerance.{name}"), format!("found {tolerance}"), "a finite number of at least 0");
                sound = false;
            }
        }
        if run.max_clocks == Some(0) {
            declaration.fault("max_clocks", "found 0", "an integer of at least 1");
            sound = false;
        }
        if !run.tolerance.contains_key("default") {
            declaration.fault("tolerance", "there is no tolerance for all results", "a field `default`");
            sound = false;
        }
        sound.then(|| Arc::new(run) as RuleData)
    }
}
