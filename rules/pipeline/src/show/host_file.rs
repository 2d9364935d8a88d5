//! A tensor as the host sends it: its bytes in the order of the package's slices.

use graph::{Bytes, Document, ShowFault, Shown};

use super::statistics::with_statistics;

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let bytes: Bytes = shown.decode()?;
    let values: Vec<f64> = bytes.as_chunks::<2>().0.iter().map(|pair| half::f16::from_bits(u16::from_le_bytes(*pair)).to_f64()).collect();
    let document = Document::default().fact("tensor", shown.index()).fact("file bytes", bytes.len()).fact("element", "f16");
    Ok(with_statistics(document, &values))
}
