//! Names for places in tile memory (package.md 7).

use ipu21::tile::PhysTile;
use serde::{Deserialize, Serialize};

/// Index into the package's tile sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TileSetId(pub u32);

/// Tiles that agree in something; ascending, without repeats, not empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TileSet(pub Vec<PhysTile>);

/// Where an instruction was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceLine {
    /// Byte offset in the code.
    pub offset: u32,
    /// Line of the source, from 1; holds until the next entry.
    pub line: u32,
}

/// What is known about a piece of code wherever it lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Kernel with its parameters, `gemm{cg=5,rows=12}`, or `runtime`.
    pub name: String,
    /// Source file as the assembler was given it.
    pub source: String,
    /// By ascending offset.
    pub lines: Vec<SourceLine>,
    /// Labels by ascending offset.
    pub labels: Vec<(u32, String)>,
}

/// What a named stretch of memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SymbolKind {
    /// Code with a listing (index into the package's listings).
    Code {
        /// Index.
        listing: u32,
    },
    /// A generated tile program, greeting or host row.
    Program,
    /// An exchange row.
    Row {
        /// Number of the exchange phase.
        phase: u32,
    },
    /// A buffer, live from one step to another; `None` reaches to the host's transfers.
    Buffer {
        /// First step that needs it.
        first_step: Option<u32>,
        /// Last step that needs it.
        last_step: Option<u32>,
    },
    /// Argument blocks, packet words, worker scratch and the like.
    Support,
}

/// A named stretch of memory on some tiles. The symbols of a tile are its memory map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Symbol {
    /// Name, for messages.
    pub name: String,
    /// Tiles that have it at this address.
    pub tiles: TileSetId,
    /// First byte.
    pub address: u32,
    /// Size.
    pub bytes: u32,
    /// What it is.
    pub kind: SymbolKind,
}

/// A program counter with its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located<'a> {
    /// The smallest named stretch around it.
    pub symbol: &'a Symbol,
    /// Byte offset in it.
    pub offset: u32,
    /// What is known of its code.
    pub listing: Option<&'a Listing>,
    /// Last label at or before it.
    pub label: Option<&'a str>,
    /// Line of the source.
    pub line: Option<u32>,
}

impl TileSet {
    /// The set of these tiles.
    #[must_use]
    pub fn new(tiles: impl IntoIterator<Item = PhysTile>) -> Self {
        let mut tiles: Vec<PhysTile> = tiles.into_iter().collect();
        tiles.sort_unstable();
        tiles.dedup();
        Self(tiles)
    }

    /// Every tile of the chip.
    #[must_use]
    pub fn all() -> Self {
        Self(PhysTile::all().collect())
    }

    /// Whether the tile is in it.
    #[must_use]
    pub fn contains(&self, tile: PhysTile) -> bool {
        self.0.binary_search(&tile).is_ok()
    }
}

impl Listing {
    /// Source line of the instruction at a byte offset.
    #[must_use]
    pub fn line_at(&self, offset: u32) -> Option<u32> {
        let after = self.lines.partition_point(|line| line.offset <= offset);
        after.checked_sub(1).map(|index| self.lines[index].line)
    }

    /// Last label at or before a byte offset.
    #[must_use]
    pub fn label_at(&self, offset: u32) -> Option<&str> {
        let after = self.labels.partition_point(|(place, _)| *place <= offset);
        after.checked_sub(1).map(|index| self.labels[index].1.as_str())
    }
}
