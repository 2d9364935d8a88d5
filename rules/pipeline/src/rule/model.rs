//! The rule `model`: an operator graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use compiler::model::{ElementType, OperationDeclaration};
use graph::{Declaration, Field, Label, Rule, RuleData};
use serde::Deserialize;

/// The fields of a `model`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Model {
    /// Tensors given for each run, by name.
    #[serde(default)]
    pub inputs: BTreeMap<String, TensorShape>,
    /// Tensors given once, by name.
    #[serde(default)]
    pub parameters: BTreeMap<String, TensorShape>,
    /// Operations, numbered in this order from 0.
    #[serde(default)]
    pub op: Vec<OperationDeclaration>,
    /// Results given back.
    #[serde(default)]
    pub outputs: Option<Vec<String>>,
}

/// Type and shape of a tensor, or where its shape is found.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TensorShape {
    /// Element type.
    #[serde(rename = "type")]
    pub element: ElementType,
    /// Extents, outermost first.
    #[serde(default)]
    pub shape: Option<Vec<u32>>,
    /// A `tensors` target: the shape is that of its tensor of the same name.
    #[serde(default)]
    pub like: Option<Label>,
}

pub(crate) struct ModelRule;

impl Rule for ModelRule {
    fn name(&self) -> &'static str {
        "model"
    }

    fn summary(&self) -> &'static str {
        "An operator graph: inputs, parameters and operations."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::optional(
                "inputs",
                "table of { type, shape } or { type, like }",
                "Tensors given for each run. `like` names a `tensors` target: the shape is that of its tensor of the same name.",
            )
            .accepting(&["tensors"]),
            Field::optional("parameters", "table of { type, shape } or { type, like }", "Tensors given once, by the call `initialize`.")
                .accepting(&["tensors"]),
            Field::required(
                "op",
                "list of { name, op, args, .. }",
                "Operations, numbered in this order from 0: `matmul` (args x, weight and optionally bias; `transposed = true` for y = x·Wᵀ), `split` (`heads`), `attention` (args queries, keys, values; optional `scale`).",
            ),
            Field::optional("outputs", "list of names", "Results given back; every result that no operation reads, unless set."),
        ];
        FIELDS
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        let model = declaration.read::<Model>()?;
        let mut sound = true;
        for (group, tensors) in [("inputs", &model.inputs), ("parameters", &model.parameters)] {
            for (name, tensor) in tensors {
                if tensor.shape.is_some() == tensor.like.is_some() {
                    let found = if tensor.shape.is_some() { "both" } else { "neither" };
                    declaration.fault(&format!("{group}.{name}"), format!("found {found} of `shape` and `like`"), "one of them");
                    sound = false;
                }
            }
        }
        sound.then(|| Arc::new(model) as RuleData)
    }
}
