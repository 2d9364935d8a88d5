//! An application package, the same facts as of a package file.

use graph::{Bytes, Cell, Document, ShowFault, Shown};
use package::{Package, Summary};

use super::statistics::extents;

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let bytes: Bytes = shown.decode()?;
    let package = Package::read(&bytes).map_err(|fault| ShowFault::Malformed { message: fault.to_string() })?;
    package.check().map_err(|faults| ShowFault::Malformed { message: faults.first().map(ToString::to_string).unwrap_or_default() })?;
    let summary = package.summary();
    let document = facts(&summary).fact("file bytes", bytes.len());
    Ok(tables(document, &summary))
}

fn facts(summary: &Summary) -> Document {
    Document::default()
        .fact("chip", summary.target.name.as_str())
        .fact("producer", summary.target.producer.as_str())
        .fact("tiles", summary.tiles)
        .fact("segments", summary.segments)
        .fact("memory bytes", summary.memory_bytes)
        .fact("largest tile bytes", summary.largest_tile_bytes)
        .fact("distinct contents", summary.blobs)
        .fact("distinct bytes", summary.blob_bytes)
        .fact("planned clocks", summary.planned_clocks)
        .fact("symbols", summary.symbols)
        .fact("assumes", summary.code_parameters.join(", "))
}

fn tables(document: Document, summary: &Summary) -> Document {
    let bindings = summary.bindings.iter().map(|binding| {
        vec![
            binding.name.as_str().into(),
            word(&binding.group).into(),
            word(&binding.element).into(),
            extents(&binding.shape).into(),
            binding.file_bytes.into(),
            binding.slices.into(),
            binding.tiles.into(),
        ]
    });
    let calls = summary.calls.iter().map(|call| {
        let counts = [u64::from(call.phases), call.input_batches as u64, call.output_batches as u64, call.bytes];
        [call.name.as_str().into(), word(&call.kind).into()].into_iter().chain(counts.map(Cell::Count)).collect()
    });
    let steps = summary
        .steps
        .iter()
        .map(|step| vec![step.name.as_str().into(), step.operation.clone().into(), word(&step.kind).into(), step.planned_clocks.into()]);
    let code = summary.code.iter().map(|name| vec![name.as_str().into()]);
    document
        .table("tensors", &["name", "group", "element", "shape", "bytes", "slices", "tiles"], bindings)
        .table("calls", &["name", "kind", "phases", "batches in", "batches out", "bytes"], calls)
        .table("steps", &["step", "operation", "kind", "planned clocks"], steps)
        .table("code", &["piece"], code)
}

/// The name of a variant, without its fields.
fn word(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default().to_lowercase()
}
