//! The tile that `--tile` names.

use graph::{ShowFault, Shown};
use ipu21::tile::{COUNT, TileId};

/// The tile asked for, when one is; logical numbers, as everywhere in plans.
pub(super) fn selected_tile(shown: &Shown<'_>) -> Result<Option<TileId>, ShowFault> {
    let Some(tile) = shown.selection.tile else { return Ok(None) };
    let found = u16::try_from(tile).ok().and_then(TileId::new);
    found.map(Some).ok_or_else(|| no_such_tile(tile, format!("0 to {}", COUNT - 1)))
}

/// Refuses a tile that takes no part; `others` are those that do.
pub(super) fn not_among(tile: TileId, others: impl IntoIterator<Item = TileId>) -> ShowFault {
    let others: Vec<TileId> = others.into_iter().collect();
    let expected = match (others.first(), others.last()) {
        (Some(first), Some(last)) => format!("one of {} from {first} to {last}", others.len()),
        _ => "none: it has no tiles".to_owned(),
    };
    no_such_tile(tile.get().into(), expected)
}

fn no_such_tile(tile: u32, expected: String) -> ShowFault {
    ShowFault::NoSuchTile { tile, expected }
}
