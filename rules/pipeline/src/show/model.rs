//! A checked operator graph: its values and operations.

use compiler::model::{Kind, Model, Source, ValueId};
use graph::{Cell, Document, ShowFault, Shown};

use super::statistics::extents;

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let model: Model = shown.decode()?;
    let values = (0_u64..).zip(&model.values).map(|(number, value)| {
        let source = match value.source {
            Source::Input => "input".to_owned(),
            Source::Parameter => "parameter".to_owned(),
            Source::Result(operation) => format!("operation {operation}"),
        };
        vec![Cell::Number(number), value.name.as_str().into(), extents(&value.shape).into(), source.into()]
    });
    let name = |value: ValueId| model.values.get(value.index()).map_or_else(|| format!("value {}", value.0), |value| value.name.clone());
    let operations = (0_u64..).zip(&model.operations).map(|(number, operation)| {
        let (kind, arguments) = described(&operation.kind, name);
        vec![Cell::Number(number), operation.name.as_str().into(), kind.into(), arguments.into()]
    });
    let outputs: Vec<String> = model.outputs.iter().copied().map(name).collect();
    Ok(Document::default().fact("outputs", outputs.join(", ")).table("values", &["value", "name", "shape", "source"], values).table(
        "operations",
        &["operation", "name", "kind", "of"],
        operations,
    ))
}

fn described(kind: &Kind, name: impl Fn(ValueId) -> String) -> (&'static str, String) {
    match kind {
        Kind::Product { x, weight, bias, transposed } => {
            let bias = bias.map(|bias| format!(" + {}", name(bias))).unwrap_or_default();
            let turned = if *transposed { " transposed" } else { "" };
            ("matmul", format!("{} · {}{turned}{bias}", name(*x), name(*weight)))
        }
        Kind::Split { value, heads } => ("split", format!("{} into {heads} heads", name(*value))),
        Kind::Attention { queries, keys, values, heads, scale } => {
            ("attention", format!("{}, {}, {}; {heads} heads, scale {scale}", name(*queries), name(*keys), name(*values)))
        }
    }
}
