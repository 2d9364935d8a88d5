//! A tensor: shape, element type, statistics and the first values.

use graph::{Cell, Document, ShowFault, Shown};

use super::statistics::{extents, statistics, with_statistics};
use crate::tensor::{Tensor, Values};

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let tensor: Tensor = shown.decode()?;
    let document = Document::default().fact("shape", extents(&tensor.shape)).fact("element", element(&tensor));
    Ok(with_statistics(document, &tensor.to_f64()))
}

/// The type of the elements.
fn element(tensor: &Tensor) -> &'static str {
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
