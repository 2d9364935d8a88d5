//! An expanded program: what every tile does, over buffers without addresses.
//!
//! This is the seam between planning (which produces an [`Expanded`]) and placement, tile code, rows and images (which give
//! it addresses and words). Nothing here knows an address, a start event or an instruction word.

use std::collections::BTreeMap;

use exchange::{BufferId, Problem};
use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};

/// Where in tile memory a buffer may lie (machine.md b).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Region {
    /// Either region.
    Any,
    /// 0x4c000..0x80000, not interleaved.
    Zero,
    /// 0x80000..0xe8000, two-way interleaved.
    One,
}

/// A buffer: the same size, and after placement the same address, on all its tiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Unique in the program, for maps and messages: `q.out`, `attention.keys`.
    pub name: String,
    /// Size in bytes, a multiple of 8, without [`Buffer::readable_tail`].
    pub bytes: u32,
    /// The tiles that have it, ascending.
    pub tiles: Vec<TileId>,
    /// Region wanted by the kernels that use it.
    pub region: Region,
    /// Alignment in bytes, a power of two, at least 8.
    pub align: u32,
    /// Bytes after the end that kernels may read (their value is never used); must exist in memory.
    pub readable_tail: u32,
    /// First step during which the contents matter; `None`: from the call `initialize` or the host inputs on.
    pub first_step: Option<u32>,
    /// Last step that reads or writes it; `None`: to the end of the program (outputs).
    pub last_step: Option<u32>,
}

/// A kernel with its shape parameters; one object per variant. Parameter names are upper case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Variant {
    /// Name in the kernel manifest.
    pub kernel: String,
    /// Assembler defines.
    pub parameters: BTreeMap<String, i64>,
}

/// Index into [`Expanded::variants`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VariantId(pub u32);

/// An operand of a call: a place inside a buffer of the calling tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Operand {
    /// The buffer.
    pub buffer: BufferId,
    /// Byte offset inside it.
    pub offset: u32,
}

/// One kernel call: operands in manifest order, then runtime values in manifest order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Call {
    /// What is called.
    pub kernel: VariantId,
    /// Addresses passed, manifest order.
    pub operands: Vec<Operand>,
    /// Plain integers passed behind the addresses, manifest order.
    pub values: Vec<u32>,
}

/// The tiles that make the same calls in a compute step, and those calls in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallGroup {
    /// Ascending; a tile is in at most one group of a step.
    pub tiles: Vec<TileId>,
    /// In program order.
    pub calls: Vec<Call>,
}

/// A step of the program; all tiles walk the same list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Internal barrier, then one exchange phase: index into [`Expanded::phases`].
    Exchange {
        /// Index of the phase.
        phase: u32,
        /// Operation it serves.
        operation: u32,
    },
    /// Kernel calls between barriers. Tiles in no group do nothing.
    Compute {
        /// Operation it serves.
        operation: u32,
        /// What it does, for reports: `product`, `softmax`.
        what: String,
        /// Disjoint tile groups.
        groups: Vec<CallGroup>,
    },
    /// All tiles stop at a trap; the host reads tensors: index into [`Expanded::checkpoints`].
    Checkpoint {
        /// Index of the checkpoint.
        checkpoint: u32,
    },
}

/// Which axis has its elements sixteen by sixteen contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Order {
    /// Panels over columns, `[column / 16][row][16 columns]`.
    ByColumn,
    /// Panels over rows, `[row / 16][column][16 rows]`.
    ByRow,
}

/// The columns of a value: `parts` blocks (heads) of `width` columns, each padded to `padded` (a multiple of 16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ColumnAxis {
    /// Number of blocks, at least 1.
    pub parts: u32,
    /// Real columns of a block.
    pub width: u32,
    /// Columns of a block in the padded index space.
    pub padded: u32,
}

/// A rectangle of a value in padded index space, held by one tile in panel form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Piece {
    /// The tile.
    pub tile: TileId,
    /// The buffer on that tile.
    pub buffer: BufferId,
    /// Byte offset of the piece's first element.
    pub offset: u32,
    /// Order of the elements.
    pub order: Order,
    /// Padded rows `[start, end)`; a multiple of 16 apart and aligned when `ByRow`.
    pub rows: (u32, u32),
    /// Padded columns `[start, end)`; a multiple of 16 apart and aligned when `ByColumn`.
    pub columns: (u32, u32),
    /// Bytes from one panel of 16 to the next.
    pub panel_bytes: u32,
}

/// Which way a binding moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Group {
    /// Sent by the call `run` before the first step.
    Input,
    /// Read back by the call `run` after the last step.
    Output,
    /// Sent by the call `initialize`.
    Weight,
}

/// A graph input, parameter or output and where its pieces lie. Inputs and weights: padding is sent as zeros; the same
/// rectangle may be on several tiles. Outputs: the pieces cover the value exactly once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Name of the value.
    pub name: String,
    /// Direction.
    pub group: Group,
    /// Logical shape as declared, row-major f16: `[1, 729, 72]`.
    pub shape: Vec<u32>,
    /// Real rows: all leading dimensions together (1 for a vector).
    pub rows: u32,
    /// Columns of the logical tensor and their padding. For a parameter used transposed see [`Binding::swapped`].
    pub columns: ColumnAxis,
    /// Blocks of the rows likewise (a weight's input channels follow the padding of the value it multiplies).
    pub row_axis: ColumnAxis,
    /// The logical tensor is stored with rows and columns exchanged relative to `rows`/`columns` above
    /// (a weight given as `[in, out]` whose pieces are rectangles of the matrix `[out, in]`).
    pub swapped: bool,
    /// The pieces, in file order.
    pub pieces: Vec<Piece>,
}

/// Tensors readable at a stop of all tiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Number of the operation it stands behind.
    pub operation: u32,
    /// Name of that operation.
    pub name: String,
    /// The operation's result; pieces cover it exactly once.
    pub tensor: Binding,
}

/// A whole program over buffers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expanded {
    /// Index = [`BufferId`].
    pub buffers: Vec<Buffer>,
    /// In program order.
    pub steps: Vec<Step>,
    /// Exchange problems, in program order.
    pub phases: Vec<Problem>,
    /// Kernel variants called, sorted, without repeats.
    pub variants: Vec<Variant>,
    /// Inputs, weights and outputs, sorted by group and name.
    pub bindings: Vec<Binding>,
    /// In program order.
    pub checkpoints: Vec<Checkpoint>,
    /// Names of the operations, by number.
    pub operations: Vec<String>,
    /// Whole pairs of tiles may be sent 64-bit items (machine.md c.7).
    pub pairs: bool,
}
