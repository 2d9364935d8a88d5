//! Float64 values of results.

use graph::{Cell, Document, ShowFault, Shown};

use super::statistics::{STATISTICS, statistics};
use crate::stage::reference::Expectation;

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let expectations: Vec<Expectation> = shown.decode()?;
    let row = |expectation: &Expectation| {
        let mut row = vec![Cell::Number(expectation.operation.into())];
        row.extend(statistics(&expectation.values));
        row
    };
    let columns: Vec<&str> = std::iter::once("operation").chain(STATISTICS).collect();
    Ok(Document::default().fact("element", "f64").table("results", &columns, expectations.iter().map(row)))
}
