//! A value of every tile on the chip's grid: 23 rows of 16 columns of four tiles (machine.md a.1 to a.4).

use graph::Document;
use ipu21::tile::{COLUMNS, ROWS, TileId};

/// Adds the grid of what lies on each tile.
pub(super) fn with_grid(document: Document, bytes: impl Fn(TileId) -> Option<u64>) -> Document {
    let lines = chip_grid(|tile| bytes(tile).filter(|bytes| *bytes > 0));
    document.block("bytes by tile, 0 to 9: tenths of the fullest; columns 0 to 15, rows 0 to 22, four tiles each", lines)
}

/// Lines of the grid. A tile is a digit, tenths of the largest value rounded down, or `.` for no value; the four tiles of a
/// column stand side by side by their sub id, the two sides of the chip apart.
fn chip_grid(value: impl Fn(TileId) -> Option<u64>) -> Vec<String> {
    let largest = TileId::all().filter_map(&value).max().unwrap_or(0).max(1);
    let mark = |number: u16| {
        let tile = ipu21::tile::PhysTile::new(number)?.logical();
        let tenths = u128::from(value(tile)?) * 10 / u128::from(largest);
        char::from_digit(tenths.min(9) as u32, 10)
    };
    let row = |row: u16| {
        let cell = |column: u16| -> String { (0..4).map(|sub| mark(64 * row + 4 * column + sub).unwrap_or('.')).collect() };
        let cells: Vec<String> = (0..COLUMNS).map(cell).collect();
        format!("{row:>3}  {}  {}", cells[..8].join(" "), cells[8..].join(" "))
    };
    let head: Vec<String> = (0..COLUMNS).map(|column| format!("{column:<4}")).collect();
    let head = format!("     {}  {}", head[..8].join(" "), head[8..].join(" ").trim_end());
    std::iter::once(head).chain((0..ROWS).map(row)).collect()
}

#[cfg(test)]
mod tests {
    use ipu21::tile::{COUNT, TileId};

    use super::chip_grid;

    #[test]
    fn every_tile_has_one_place_and_the_largest_value_is_nine() {
        let lines = chip_grid(|tile| (tile.get() != 0).then_some(u64::from(tile.get())));
        let marks: String = lines[1..].iter().map(|line| &line[5..]).collect::<String>().replace(' ', "");
        assert_eq!((marks.len(), marks.matches('.').count()), (COUNT, 1));
        assert!(marks.contains('9'));
        let first = TileId::all().next().expect("a tile").physical();
        assert_eq!((first.row(), first.column(), first.sub()), (0, 0, 0));
        assert_eq!(&lines[1][5..6], ".");
    }
}
