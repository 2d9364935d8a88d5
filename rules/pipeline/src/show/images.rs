//! The images of all tiles: bytes on the chip's grid, and the segments.

use compiler::images::{ImageSegment, Images};
use compiler::program::Expanded;
use graph::{Cell, Document, ShowFault, Shown};
use ipu21::tile::TileId;

use super::block_name::block_name;
use super::chip_grid::with_grid;
use super::selected_tile::{not_among, selected_tile};

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let images: Images = shown.decode()?;
    let tile = selected_tile(shown)?;
    if let Some(tile) = tile.filter(|tile| images.tiles.len() <= tile.index()) {
        return Err(not_among(tile, TileId::all().take(images.tiles.len())));
    }
    let bytes = |segment: &ImageSegment| images.contents.get(segment.content as usize).map_or(0, |content| content.len() as u64);
    let of_tile = |tile: TileId| images.tiles.get(tile.index()).map(|segments| segments.iter().map(bytes).sum::<u64>());
    let program: Option<Expanded> = shown.input("expanded");
    let program = program.as_ref();
    let chosen = TileId::all().filter(|at| tile.is_none_or(|tile| tile == *at));
    let segments = chosen.flat_map(|tile| {
        let segments = images.tiles.get(tile.index()).map(Vec::as_slice).unwrap_or_default();
        segments.iter().map(move |segment| {
            vec![
                Cell::Number(tile.get().into()),
                Cell::Address(segment.address),
                Cell::from(bytes(segment)),
                Cell::Number(segment.content.into()),
                block_name(segment.block, program).into(),
            ]
        })
    });
    let segments: Vec<Vec<Cell>> = segments.collect();
    let document = Document::default()
        .fact("segments", images.tiles.iter().map(Vec::len).sum::<usize>())
        .fact("fullest tile bytes", TileId::all().filter_map(of_tile).max())
        .table("segments", &["tile", "address", "bytes", "content", "block"], segments);
    if tile.is_some() {
        return Ok(document);
    }
    Ok(with_grid(document, of_tile))
}
