//! The tiles of a plan's positions, on the chip's grid, and the buffers that lie on them.

use compiler::mapping::Mapping;
use compiler::program::Expanded;
use graph::{Cell, Document, ShowFault, Shown};
use ipu21::tile::TileId;

use super::chip_grid::with_grid;
use super::selected_tile::{not_among, selected_tile};
use super::tile_bytes::tile_bytes;

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let mapping: Mapping = shown.decode()?;
    let program: Option<Expanded> = shown.other("expanded", shown.entry.name.index.as_deref());
    let tile = selected_tile(shown)?;
    if let Some(tile) = tile.filter(|tile| !mapping.tiles.contains(tile)) {
        return Err(not_among(tile, mapping.tiles.iter().copied()));
    }
    let document = Document::default().fact("rule", mapping.name.as_str()).fact("positions", mapping.tiles.len());
    let document = match &program {
        Some(program) => values(document, program, tile),
        None => document,
    };
    let positions = (0_u64..).zip(&mapping.tiles).filter(|(_, at)| tile.is_none_or(|tile| tile == **at)).map(position);
    Ok(document.table("positions", &["position", "tile", "physical", "row", "column", "sub"], positions))
}

fn position((position, tile): (u64, &TileId)) -> Vec<Cell> {
    let physical = tile.physical();
    let numbers = [tile.get(), physical.get(), physical.row(), physical.column(), physical.sub()];
    std::iter::once(position).chain(numbers.map(u64::from)).map(Cell::Number).collect()
}

fn values(document: Document, program: &Expanded, tile: Option<TileId>) -> Document {
    let bytes = tile_bytes(program);
    let largest = bytes.iter().copied().max().unwrap_or(0);
    let buffers = program.buffers.iter().filter(|buffer| tile.is_none_or(|tile| buffer.tiles.contains(&tile)));
    let rows = buffers.map(|buffer| {
        let end = |tile: Option<&TileId>| tile.map(|tile| Cell::Number(tile.get().into())).unwrap_or(Cell::None);
        vec![
            buffer.name.as_str().into(),
            buffer.bytes.into(),
            buffer.tiles.len().into(),
            end(buffer.tiles.first()),
            end(buffer.tiles.last()),
            format!("{:?}", buffer.region).to_lowercase().into(),
        ]
    });
    let document = document.fact("fullest tile bytes", largest).table(
        "values",
        &["buffer", "bytes per tile", "tiles", "first tile", "last tile", "region"],
        rows,
    );
    with_grid(document, |tile| Some(bytes[tile.index()]))
}
