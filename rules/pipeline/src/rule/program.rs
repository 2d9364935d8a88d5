//! The rule `program`: a model laid out on a machine.

use std::sync::Arc;

use compiler::layout::Layout;
use graph::{Declaration, Field, Label, Rule, RuleData, RuleKind};
use serde::Deserialize;

/// The fields of a `program`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Program {
    /// A `model`.
    pub model: Label,
    /// A `machine`.
    pub machine: Label,
    /// `kernel_library` targets; of two kernels of one name the first counts.
    pub kernels: Vec<Label>,
    /// How the model is laid out.
    pub layout: Layout,
    /// Numbers of operations behind which all tiles stop for the host to read their results.
    #[serde(default)]
    pub checkpoints: Vec<u32>,
}

pub(crate) struct ProgramRule;

impl Rule for ProgramRule {
    fn name(&self) -> &'static str {
        "program"
    }

    fn summary(&self) -> &'static str {
        "A model compiled for a machine: gives the application package `model.ipuexe`."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::required("model", "label of a `model`", "What is computed.").accepting(&["model"]),
            Field::required("machine", "label of a `machine`", "What it is compiled for.").accepting(&["machine"]),
            Field::required(
                "kernels",
                "list of labels of `kernel_library`s",
                "Where kernels come from; of two kernels of one name the first counts.",
            )
            .accepting(&["kernel_library"]),
            Field::required(
                "layout",
                "table",
                "`tiles` (1..=1472), and optionally `partials`, `accuracy`, `weights_memory`, `mapping`, `finalists`, `effort`, `grids`: see Layout.",
            ),
            Field::optional("checkpoints", "list of integers", "Operations behind which all tiles stop and the host reads the result."),
        ];
        FIELDS
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Built
    }

    fn fingerprint(&self) -> graph::Digest {
        crate::fingerprint::of(crate::fingerprint::PROGRAM)
    }

    fn code(&self) -> Vec<(&'static str, graph::Digest)> {
        crate::fingerprint::parts(crate::fingerprint::PROGRAM)
    }

    fn waves(&self) -> &'static [graph::WaveFunction] {
        crate::waves::PROGRAM
    }

    fn stages(&self, engine: &graph::Engine, label: &Label) -> Vec<graph::StageNote> {
        crate::outcome::program_stages(engine, label)
    }

    fn finish(&self, engine: &graph::Engine, label: &Label) -> Result<graph::Outcome, graph::Failure> {
        crate::outcome::program(engine, label)
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        let program = declaration.read::<Program>()?;
        if let Err(faults) = program.layout.check() {
            for fault in faults {
                declaration.fault(&format!("layout.{}", fault.field), format!("found {}", fault.found), fault.expected.clone());
            }
            return None;
        }
        Some(Arc::new(program))
    }
}
