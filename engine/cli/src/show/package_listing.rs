//! A package file as text.

use std::fmt::Write;

use package::{Summary, SummaryBinding, SummaryCall, SummaryStep};

use crate::show::table::{grouped, table};

/// Everything of a summary, for reading.
pub(crate) fn listing(summary: &Summary, file_bytes: usize) -> String {
    let mut text = String::new();
    for (name, value) in head(summary, file_bytes) {
        let _ = writeln!(text, "{name:<12}  {value}");
    }
    let pages: Vec<Vec<String>> = summary.pages.iter().map(|(index, bytes)| vec![index.to_string(), grouped((*bytes).into())]).collect();
    let checkpoints = summary.checkpoints.iter();
    let checkpoints: Vec<Vec<String>> =
        checkpoints.map(|(operation, name, tensors)| vec![operation.to_string(), name.clone(), tensors.to_string()]).collect();
    let sections = [
        ("tensors", table(&["name", "group", "element", "shape", "bytes", "slices", "tiles"], &rows(&summary.bindings, binding))),
        ("calls", table(&["name", "kind", "phases", "batches in", "batches out", "bytes"], &rows(&summary.calls, call))),
        ("pages", table(&["page", "bytes"], &pages)),
        ("checkpoints", table(&["operation", "name", "tensors"], &checkpoints)),
        ("steps", table(&["step", "operation", "kind", "planned clocks"], &rows(&summary.steps, step))),
    ];
    for (name, body) in sections {
        let _ = write!(text, "\n{name}\n{body}");
    }
    text
}

fn head(summary: &Summary, file_bytes: usize) -> Vec<(&'static str, String)> {
    let target = &summary.target;
    let none = || "none".to_owned();
    let parameters = Some(summary.code_parameters.join(", ")).filter(|names| !names.is_empty()).unwrap_or_else(none);
    vec![
        ("file", format!("{} bytes", grouped(file_bytes as u64))),
        ("chip", format!("{}, {} tiles of {} bytes", target.name, target.tiles, grouped(target.memory_bytes.into()))),
        ("producer", target.producer.clone()),
        ("tiles", format!("{}, {} segments, {} bytes in all", summary.tiles, summary.segments, grouped(summary.memory_bytes))),
        ("fullest tile", format!("{} bytes", grouped(summary.largest_tile_bytes))),
        ("contents", format!("{} distinct, {} bytes", summary.blobs, grouped(summary.blob_bytes))),
        ("planned", format!("{} clocks in {} steps", grouped(summary.planned_clocks), summary.steps.len())),
        ("code", format!("{} pieces, {} symbols", summary.code.len(), summary.symbols)),
        ("assumes", parameters),
    ]
}

fn rows<T>(items: &[T], row: impl Fn(&T) -> Vec<String>) -> Vec<Vec<String>> {
    items.iter().map(row).collect()
}

fn binding(binding: &SummaryBinding) -> Vec<String> {
    let shape: Vec<String> = binding.shape.iter().map(ToString::to_string).collect();
    vec![
        binding.name.clone(),
        word(&binding.group),
        word(&binding.element),
        shape.join("x"),
        grouped(binding.file_bytes),
        binding.slices.to_string(),
        binding.tiles.to_string(),
    ]
}

fn call(call: &SummaryCall) -> Vec<String> {
    vec![
        call.name.clone(),
        word(&call.kind),
        call.phases.to_string(),
        call.input_batches.to_string(),
        call.output_batches.to_string(),
        grouped(call.bytes),
    ]
}

fn step(step: &SummaryStep) -> Vec<String> {
    let operation = step.operation.clone().unwrap_or_else(|| "-".to_owned());
    vec![step.name.clone(), operation, word(&step.kind), grouped(step.planned_clocks)]
}

/// The name of a variant, without its fields.
fn word(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default().to_lowercase()
}
