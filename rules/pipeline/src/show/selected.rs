//! The finalist that was chosen.

use compiler::selected::Refined;
use graph::{Cell, Document, ShowFault, Shown};

use crate::stage::selected::Selected;

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let selected: Selected = shown.decode()?;
    let finalists = shown.others("refined").filter_map(|entry| {
        let refined: Refined = shown.read(&entry.digest)?;
        let index = entry.name.index.as_deref()?;
        let is_chosen = index.parse() == Ok(selected.finalist);
        let refused = selected.refused.iter().find(|(finalist, _)| index.parse() == Ok(*finalist));
        let fate = match refused {
            Some((_, reason)) => reason.clone(),
            None if is_chosen => "chosen".to_owned(),
            None => "slower".to_owned(),
        };
        let clocks = [refined.modelled.total, refined.planned.total, refined.refined.total, refined.refined.exchange];
        Some([index.into()].into_iter().chain(clocks.map(Cell::Count)).chain([fate.into()]).collect())
    });
    let dropped = selected.dropped.iter().map(|(index, bound)| {
        let fate = "not scheduled: its planned cycles are more than the refined ones of the chosen".into();
        vec![index.to_string().into(), Cell::None, Cell::Count(*bound), Cell::None, Cell::None, fate]
    });
    let columns = ["finalist", "modelled cycles", "planned cycles", "refined cycles", "exchange cycles", "fate"];
    Ok(Document::default()
        .fact("finalist", Cell::Number(selected.finalist.into()))
        .fact("round", Cell::Number(selected.round.into()))
        .table("finalists", &columns, finalists.chain(dropped)))
}
