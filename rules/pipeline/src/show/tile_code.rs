//! Tile programs without addresses: their classes, and the words of one tile's.

use compiler::tile_code::ClassCode;
use graph::{Cell, Document, ShowFault, Shown};

use super::selected_tile::{not_among, selected_tile};
use super::words::with_listing;
use crate::stage::tile_code::Code;

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let Code { plan, code } = shown.decode()?;
    let tile = selected_tile(shown)?;
    let wanted = |class: &ClassCode| tile.is_none_or(|tile| class.tiles.contains(&tile));
    let classes = (0_u64..).zip(&code.classes).filter(|(_, class)| wanted(class)).map(|(number, class)| class_row(number, class));
    let batches = [("initialize", &plan.initialize), ("inputs", &plan.inputs), ("outputs", &plan.outputs)];
    let batches = batches.iter().flat_map(|(when, batches)| {
        (0_u64..).zip(*batches).map(|(number, batch)| {
            let bytes: u64 = batch.shares.iter().flat_map(|share| &share.parts).map(|part| u64::from(part.bytes)).sum();
            vec![(*when).into(), Cell::Number(number), batch.shares.len().into(), bytes.into()]
        })
    });
    let columns = ["class", "tiles", "first tile", "bytes", "relocations", "kernels", "exchange phases", "host phases"];
    let document = Document::default().fact("host participants", plan.participants.len()).table("classes", &columns, classes).table(
        "host batches",
        &["when", "batch", "tiles", "bytes"],
        batches,
    );
    let Some(tile) = tile else { return Ok(document) };
    let class = code.classes.iter().find(|class| class.tiles.contains(&tile));
    let class = class.ok_or_else(|| not_among(tile, code.classes.iter().flat_map(|class| class.tiles.iter().copied())))?;
    Ok(with_listing(document, &format!("program of tile {tile}, from offset 0, addresses open"), &class.words, 0))
}

fn class_row(number: u64, class: &ClassCode) -> Vec<Cell> {
    let counts = [class.words.len() * 4, class.relocations.len(), class.kernels.len(), class.phases.len(), class.host_phases.len()];
    let first = class.tiles.first().map_or(Cell::None, |tile| Cell::Number(tile.get().into()));
    [Cell::Number(number), class.tiles.len().into(), first].into_iter().chain(counts.map(Cell::from)).collect()
}
