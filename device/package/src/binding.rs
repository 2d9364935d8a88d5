//! How tensors map to host files and tiles (package.md 3).

use ipu21::tile::PhysTile;
use serde::{Deserialize, Serialize};

/// Which way a binding moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Group {
    /// Sent by a run call before the first step.
    Input,
    /// Read back by a run call after the last step.
    Output,
    /// Sent by the weight call.
    Weight,
}

/// Element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Element {
    /// FP8, 1-4-3.
    F8E4M3,
    /// IEEE binary16.
    F16,
    /// IEEE binary32.
    F32,
    /// Unsigned 32-bit.
    U32,
}

/// A contiguous part of a host file in the memory of one tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slice {
    /// The tile.
    pub tile: PhysTile,
    /// First byte in tile memory, a multiple of 4.
    pub address: u32,
    /// First byte in the host file.
    pub file_offset: u64,
    /// Size, a multiple of 4.
    pub bytes: u32,
}

/// Which axis has sixteen neighbouring elements contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Order {
    /// `[column / 16][row][16 columns]`.
    ByColumn,
    /// `[row / 16][column][16 rows]`.
    ByRow,
}

/// An axis in padded index space: `parts` blocks of `width` real positions, each padded to `padded`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Axis {
    /// Blocks (heads), at least 1.
    pub parts: u32,
    /// Real positions of a block.
    pub width: u32,
    /// Positions of a block with padding, at least `width`.
    pub padded: u32,
}

/// A rectangle of the padded matrix in panels of sixteen on one tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Piece {
    /// The tile.
    pub tile: PhysTile,
    /// Byte address of the first element.
    pub address: u32,
    /// Order of the elements.
    pub order: Order,
    /// Padded rows `[start, end)`.
    pub rows: (u32, u32),
    /// Padded columns `[start, end)`.
    pub columns: (u32, u32),
    /// Bytes from one panel to the next in tile memory; in the file panels are dense.
    pub panel_bytes: u32,
    /// First byte in the host file.
    pub file_offset: u64,
}

/// A matrix in panels: element (row, column) of a piece in column order is at `(column / 16) * panel_bytes + row * 32 +
/// (column % 16) * 2`, both counted from the piece's first row and column; in row order with the axes exchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Panels {
    /// Real rows: all leading dimensions together.
    pub rows: u32,
    /// Padding of the rows.
    pub row_axis: Axis,
    /// Padding of the columns.
    pub column_axis: Axis,
    /// The logical tensor has rows and columns exchanged.
    pub swapped: bool,
    /// In file order.
    pub pieces: Vec<Piece>,
}

/// How the order of a host file relates to the row-major tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layout {
    /// It is the same.
    RowMajor,
    /// Pieces in panels, one behind the other, each densely; padding is zero in files for the device.
    Panels(Panels),
}

/// A named tensor that the host sends or reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Unique in the package.
    pub name: String,
    /// Direction.
    pub group: Group,
    /// Element type.
    pub element: Element,
    /// Logical shape, outermost first.
    pub shape: Vec<u32>,
    /// Size of the host file.
    pub file_bytes: u64,
    /// In file order.
    pub slices: Vec<Slice>,
    /// File order against row-major order.
    pub layout: Layout,
}

impl Element {
    /// Bytes of an element.
    #[must_use]
    pub fn bytes(self) -> u32 {
        match self {
            Self::F8E4M3 => 1,
            Self::F16 => 2,
            Self::F32 | Self::U32 => 4,
        }
    }
}

impl Axis {
    /// Positions of the axis with padding; wide enough for foreign values.
    #[must_use]
    pub fn padded_extent(self) -> u64 {
        u64::from(self.parts) * u64::from(self.padded)
    }

    /// Real positions of the axis.
    #[must_use]
    pub fn extent(self) -> u64 {
        u64::from(self.parts) * u64::from(self.width)
    }
}

impl Piece {
    /// Positions along and across the panels.
    fn extents(&self) -> (u64, u64) {
        let of = |(start, end): (u32, u32)| u64::from(end.saturating_sub(start));
        match self.order {
            Order::ByColumn => (of(self.rows), of(self.columns)),
            Order::ByRow => (of(self.columns), of(self.rows)),
        }
    }

    /// Bytes of one panel without what lies between panels.
    #[must_use]
    pub fn dense_panel_bytes(&self) -> u64 {
        self.extents().0 * 32
    }

    /// Panels of sixteen positions.
    #[must_use]
    pub fn panels(&self) -> u64 {
        self.extents().1.div_ceil(16)
    }

    /// Bytes in the host file.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.dense_panel_bytes().saturating_mul(self.panels())
    }
}
