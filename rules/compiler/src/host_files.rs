//! A tensor's bytes in the order in which its pieces lie on the tiles, and back.
//!
//! The host file of a [`Binding`] holds its pieces one after the other, each densely, panel by panel: element (row, column) of a
//! piece in column order is at `panel * rows * 32 + row * 32 + (column % 16) * 2`, panels counted from the piece's first column.
//! Padding is zero in files for the device and is dropped from files of the device.

use crate::program::{Binding, ColumnAxis, Order, Piece};

/// Bytes of an f16 element.
const ELEMENT: usize = 2;
/// Elements that are contiguous along the panel axis.
const PANEL: u32 = 16;

/// Why a file cannot be made or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The tensor has another number of bytes than its shape asks for.
    TensorSize {
        /// Name of the binding.
        binding: String,
        /// Bytes expected.
        expected_bytes: usize,
        /// Bytes found.
        found_bytes: usize,
    },
    /// The file has another number of bytes than the pieces hold.
    FileSize {
        /// Name of the binding.
        binding: String,
        /// Bytes expected.
        expected_bytes: usize,
        /// Bytes found.
        found_bytes: usize,
    },
    /// An element of the tensor is in no piece.
    Missing {
        /// Name of the binding.
        binding: String,
        /// Row.
        row: u32,
        /// Column.
        column: u32,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TensorSize { binding, expected_bytes, found_bytes } => {
                write!(f, "tensor {binding}: expected {expected_bytes} bytes of f16 elements, found {found_bytes}")
            }
            Self::FileSize { binding, expected_bytes, found_bytes } => {
                write!(f, "host file of {binding}: expected {expected_bytes} bytes, found {found_bytes}")
            }
            Self::Missing { binding, row, column } => {
                write!(f, "binding {binding}: no tile holds the element of row {row} and column {column}")
            }
        }
    }
}

impl std::error::Error for Fault {}

/// Size of a binding's host file.
pub fn file_bytes(binding: &Binding) -> usize {
    binding.pieces.iter().map(piece_bytes).sum()
}

/// The host file of a row-major f16 tensor given as little-endian bytes.
pub fn file_of(binding: &Binding, tensor: &[u8]) -> Result<Vec<u8>, Fault> {
    expect_tensor(binding, tensor.len())?;
    let mut file = vec![0; file_bytes(binding)];
    each_element(binding, |place, row, column| {
        if let Some(index) = logical_index(binding, row, column) {
            file[place..place + ELEMENT].copy_from_slice(&tensor[index..index + ELEMENT]);
        }
    });
    Ok(file)
}

/// The row-major f16 tensor of a host file, as little-endian bytes.
pub fn tensor_of(binding: &Binding, file: &[u8]) -> Result<Vec<u8>, Fault> {
    let expected_bytes = file_bytes(binding);
    if file.len() != expected_bytes {
        return Err(Fault::FileSize { binding: binding.name.clone(), expected_bytes, found_bytes: file.len() });
    }
    let mut tensor = vec![0; tensor_bytes(binding)];
    let mut seen = vec![false; tensor.len() / ELEMENT];
    each_element(binding, |place, row, column| {
        if let Some(index) = logical_index(binding, row, column) {
            tensor[index..index + ELEMENT].copy_from_slice(&file[place..place + ELEMENT]);
            seen[index / ELEMENT] = true;
        }
    });
    match seen.iter().position(|seen| !seen) {
        None => Ok(tensor),
        Some(element) => {
            let columns = tensor_columns(binding);
            let (row, column) = (element as u32 / columns, element as u32 % columns);
            Err(Fault::Missing { binding: binding.name.clone(), row, column })
        }
    }
}

fn expect_tensor(binding: &Binding, found_bytes: usize) -> Result<(), Fault> {
    let expected_bytes = tensor_bytes(binding);
    match expected_bytes == found_bytes {
        true => Ok(()),
        false => Err(Fault::TensorSize { binding: binding.name.clone(), expected_bytes, found_bytes }),
    }
}

fn tensor_bytes(binding: &Binding) -> usize {
    binding.shape.iter().map(|extent| *extent as usize).product::<usize>() * ELEMENT
}

/// Columns of the logical row-major tensor.
fn tensor_columns(binding: &Binding) -> u32 {
    match binding.swapped {
        true => binding.rows,
        false => binding.columns.parts * binding.columns.width,
    }
}

fn piece_bytes(piece: &Piece) -> usize {
    (piece.rows.1 - piece.rows.0) as usize * (piece.columns.1 - piece.columns.0) as usize * ELEMENT
}

/// Byte offset of a padded position in the logical tensor; `None` for padding.
fn logical_index(binding: &Binding, row: u32, column: u32) -> Option<usize> {
    let row = real(binding.row_axis, row).filter(|row| *row < binding.rows)?;
    let column = real(binding.columns, column)?;
    let (major, minor) = if binding.swapped { (column, row) } else { (row, column) };
    let index = (major as usize * tensor_columns(binding) as usize + minor as usize) * ELEMENT;
    (index < tensor_bytes(binding)).then_some(index)
}

/// The real position of a padded one along an axis.
fn real(axis: ColumnAxis, position: u32) -> Option<u32> {
    let (part, within) = (position / axis.padded, position % axis.padded);
    (part < axis.parts && within < axis.width).then_some(part * axis.width + within)
}

/// Calls `visit(byte offset in the file, padded row, padded column)` for every element, in file order.
fn each_element(binding: &Binding, mut visit: impl FnMut(usize, u32, u32)) {
    let mut place = 0;
    for piece in &binding.pieces {
        let (along, across) = match piece.order {
            Order::ByColumn => (piece.rows, piece.columns),
            Order::ByRow => (piece.columns, piece.rows),
        };
        for panel in (across.0..across.1).step_by(PANEL as usize) {
            for line in along.0..along.1 {
                for position in panel..panel + PANEL {
                    let (row, column) = if piece.order == Order::ByColumn { (line, position) } else { (position, line) };
                    visit(place, row, column);
                    place += ELEMENT;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use exchange::BufferId;
    use ipu21::tile::TileId;

    use super::*;
    use crate::program::Group;

    fn piece(order: Order, rows: (u32, u32), columns: (u32, u32)) -> Piece {
        let tile = TileId::new(3).expect("a tile");
        Piece { tile, buffer: BufferId(0), offset: 0, order, rows, columns, panel_bytes: 4096 }
    }

    /// Two heads of 5 columns in 16 each, 6 rows.
    fn binding(pieces: Vec<Piece>, swapped: bool) -> Binding {
        Binding {
            name: "value".to_owned(),
            group: Group::Weight,
            shape: if swapped { vec![10, 6] } else { vec![6, 10] },
            rows: 6,
            columns: ColumnAxis { parts: 2, width: 5, padded: 16 },
            row_axis: ColumnAxis { parts: 1, width: 6, padded: 16 },
            swapped,
            pieces,
        }
    }

    /// Element (row, column) of the padded value holds this.
    fn mark(row: u32, column: u32) -> u16 {
        (100 * row + column + 1) as u16
    }

    /// The logical tensor: row-major, or column-major when swapped.
    fn tensor(swapped: bool) -> Vec<u8> {
        let columns = (0..2).flat_map(|head| (0..5).map(move |column| head * 16 + column));
        let places: Vec<(u32, u32)> = match swapped {
            false => (0..6).flat_map(|row| columns.clone().map(move |column| (row, column))).collect(),
            true => columns.flat_map(|column| (0..6).map(move |row| (row, column))).collect(),
        };
        places.into_iter().flat_map(|(row, column)| mark(row, column).to_le_bytes()).collect()
    }

    fn at(file: &[u8], place: u32) -> u16 {
        u16::from_le_bytes([file[place as usize], file[place as usize + 1]])
    }

    fn expected(row: u32, column: u32) -> u16 {
        if row < 6 && column % 16 < 5 { mark(row, column) } else { 0 }
    }

    #[test]
    fn panels_over_columns_hold_their_rows_one_after_the_other() {
        for swapped in [false, true] {
            let binding = binding(vec![piece(Order::ByColumn, (1, 7), (0, 32))], swapped);
            let file = file_of(&binding, &tensor(swapped)).expect("a whole tensor");
            for (row, column) in (1..7).flat_map(|row| (0..32).map(move |column| (row, column))) {
                let place = column / 16 * (6 * 32) + (row - 1) * 32 + column % 16 * 2;
                assert_eq!(at(&file, place), expected(row, column), "row {row} column {column}");
            }
        }
    }

    #[test]
    fn panels_over_rows_hold_their_columns_one_after_the_other() {
        let binding = binding(vec![piece(Order::ByRow, (0, 16), (3, 20))], false);
        let file = file_of(&binding, &tensor(false)).expect("a whole tensor");
        assert_eq!(file.len(), file_bytes(&binding));
        for (row, column) in (0..16).flat_map(|row| (3..20).map(move |column| (row, column))) {
            let place = (column - 3) * 32 + row * 2;
            assert_eq!(at(&file, place), expected(row, column), "row {row} column {column}");
        }
    }

    #[test]
    fn files_of_covering_pieces_give_the_tensor_back() {
        for swapped in [false, true] {
            let pieces = vec![
                piece(Order::ByColumn, (0, 4), (0, 32)),
                piece(Order::ByColumn, (4, 16), (16, 32)),
                piece(Order::ByColumn, (4, 16), (0, 16)),
            ];
            let binding = binding(pieces, swapped);
            let file = file_of(&binding, &tensor(swapped)).expect("a whole tensor");
            assert_eq!(tensor_of(&binding, &file), Ok(tensor(swapped)));
        }
    }

    #[test]
    fn wrong_sizes_and_uncovered_elements_are_refused_with_the_figures() {
        let whole = binding(vec![piece(Order::ByColumn, (0, 6), (0, 32))], false);
        let message = |fault: Fault| fault.to_string();
        let short = file_of(&whole, &[0; 118]).map_err(message);
        assert_eq!(short, Err("tensor value: expected 120 bytes of f16 elements, found 118".to_owned()));
        let short = tensor_of(&whole, &[0; 2]).map_err(message);
        assert_eq!(short, Err("host file of value: expected 384 bytes, found 2".to_owned()));
        let part = binding(vec![piece(Order::ByColumn, (0, 6), (0, 16))], false);
        let missing = tensor_of(&part, &vec![0; file_bytes(&part)]).map_err(message);
        assert_eq!(missing, Err("binding value: no tile holds the element of row 0 and column 5".to_owned()));
    }
}
