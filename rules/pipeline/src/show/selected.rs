//! The finalist that was chosen.

use compiler::selected::Refined;
use graph::{Cell, Document, ShowFault, Shown};

use crate::stage::selected::Selected;

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let selected: Selected = shown.decode()?;
    let finalists = shown.others("refined").filter_map(|entry| {
        let refined: Refined = shown.read(&entry.digest)?;
        let index = entry.name.index.as_deref()?;
        let refused = selected.refused.iter().find(|(finalist, _)| index.parse() == Ok(*finalist));
        let fate = match refused {
            Some((_, reason)) => reason.as_str(),
            None if index.parse() == Ok(selected.finalist) => "chosen",
            None => "",
        };
        let clocks = [refined.modelled.total, refined.planned.total, refined.refined.total, refined.refined.exchange];
        Some([index.into()].into_iter().chain(clocks.map(Cell::Count)).chain([fate.into()]).collect())
    });
    let columns = ["finalist", "modelled cycles", "planned cycles", "refined cycles", "exchange cycles", "fate"];
    Ok(Document::default()
        .fact("finalist", Cell::Number(selected.finalist.into()))
        .fact("round", Cell::Number(selected.round.into()))
        .table("finalists", &columns, finalists))
}
