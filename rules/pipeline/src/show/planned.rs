//! Clocks of a finalist before anything is scheduled: no schedule of it can take fewer.

use compiler::clocks::Clocks;
use compiler::program::Expanded;
use graph::{Cell, Document, ShowFault, Shown};

use super::refined::step_name;

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let clocks: Clocks = shown.decode()?;
    let program: Option<Expanded> = shown.input("expanded");
    let steps = (0_u64..).zip(&clocks.steps).map(|(number, clocks)| {
        let step = program.as_ref().and_then(|program| program.steps.get(number as usize));
        vec![Cell::Number(number), step.map(step_name).into(), Cell::Count(*clocks)]
    });
    Ok(Document::default().fact("planned cycles", clocks.total).fact("exchange cycles", clocks.exchange).table(
        "steps",
        &["step", "what", "planned cycles"],
        steps,
    ))
}
