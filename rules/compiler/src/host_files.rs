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
