//! A tensor: shape, element type, statistics and the first values.

use graph::{Cell, Document, ShowFault, Shown};

use super::statistics::{STATISTICS, extents, statistics};
use crate::tensor::{Tensor, Values};

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let tensor: Tensor = shown.decode()?;
    let mut document = Document::default().fact("shape", extents(&tensor.shape)).fact("element", element(&tensor));
    let facts = STATISTICS.iter().map(|name| (*name).to_owned()).zip(statistics(&tensor.to_f64()));
    document.facts.extend(facts);
    Ok(document)
}

/// The type of the elements.
pub(super) fn element(tensor: &Tensor) -> &'static str {
    match tensor.values {
        Values::F16(_) => "f16",
        Values::F32(_) => "f32",
        Values::F64(_) => "f64",
    }
}

/// A row of a table of tensors: name, shape, statistics.
pub(super) fn row(name: &str, tensor: &Tensor) -> Vec<Cell> {
    let mut row = vec![name.into(), extents(&tensor.shape).into()];
    row.extend(statistics(&tensor.to_f64()));
    row
}
