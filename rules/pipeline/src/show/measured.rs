//! Measured clocks of a kernel.

use graph::{Document, ShowFault, Shown};

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let clocks: u64 = shown.decode()?;
    Ok(Document::default().fact("kernel", shown.index()).fact("clocks", clocks))
}
