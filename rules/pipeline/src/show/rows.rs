//! The exchange rows of a phase at their addresses: sizes by tile, and the instructions of one.

use compiler::placement::{Block, Placement};
use compiler::rows::PhaseRows;
use graph::{Cell, Document, ShowFault, Shown};

use super::selected_tile::{not_among, selected_tile};
use super::words::with_listing;
use crate::stage::selected::Selected;

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let rows: PhaseRows = shown.decode()?;
    let tile = selected_tile(shown)?;
    let selected: Option<Selected> = shown.other("selected", None);
    let base = selected.and_then(|selected| address(shown, &selected.finalist.to_string(), shown.index()));
    let shown_rows = rows.iter().filter(|(at, _)| tile.is_none_or(|tile| tile == **at));
    let sizes = shown_rows.map(|(tile, words)| {
        vec![Cell::Number(tile.get().into()), Cell::Number(tile.physical().get().into()), words.len().into(), (4 * words.len()).into()]
    });
    let document = Document::default().fact("address", base.map_or(Cell::None, Cell::Address)).table(
        "rows",
        &["tile", "physical", "words", "bytes"],
        sizes,
    );
    let Some(tile) = tile else { return Ok(document) };
    let words = rows.get(&tile).ok_or_else(|| not_among(tile, rows.keys().copied()))?;
    Ok(with_listing(document, &format!("row of tile {tile}"), words, base.unwrap_or(0)))
}

/// Where the rows of a phase lie, the same on all tiles.
pub(super) fn address(shown: &Shown<'_>, finalist: &str, phase: &str) -> Option<u32> {
    let placement: Placement = shown.other("placement", Some(finalist))?;
    placement.blocks.get(&Block::Row(phase.parse().ok()?)).copied()
}
