//! Tiles of the C600: two numberings of the same 1472 tiles (machine.md a.1 to a.8).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Tiles of a chip.
pub const COUNT: usize = 1472;
/// Rows of the tile array, `p[10:6]`.
pub const ROWS: u16 = 23;
/// Columns of the tile array, `p[5:2]`.
pub const COLUMNS: u16 = 16;
/// Contexts of workers of a tile, which have its slots in turn.
pub const WORKERS: u32 = 6;

/// Logical number: neighbours in it are neighbours on the chip. Used for placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct TileId(u16);

/// Physical number, `64*row + 4*column + sub`: what exchange selectors, host packets and debug windows carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct PhysTile(u16);

/// A number that no tile has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchTile {
    /// The number.
    pub found: u16,
}

impl TileId {
    /// `None` from 1472 on.
    #[must_use]
    pub const fn new(number: u16) -> Option<Self> {
        if (number as usize) < COUNT { Some(Self(number)) } else { None }
    }

    /// The plain number, 0..1472.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The plain number as an index, 0..1472.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// All tiles in logical order.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        (0..COUNT as u16).map(Self)
    }

    /// The same tile's physical number (machine.md a.4, a snake over bands of 23 pairs).
    #[must_use]
    pub const fn physical(self) -> PhysTile {
        let (pair, lane) = (self.0 / 2, self.0 % 2);
        let (band, along) = (pair / ROWS, pair % ROWS);
        let row = if band.is_multiple_of(2) { along } else { ROWS - 1 - along };
        PhysTile(64 * row + 4 * (band / 2) + 2 * lane + band % 2)
    }

    /// The other tile of the pair that shares a double-width exchange path (machine.md a.5).
    #[must_use]
    pub const fn partner(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl PhysTile {
    /// `None` when the row is beyond 22.
    #[must_use]
    pub const fn new(number: u16) -> Option<Self> {
        if (number as usize) < COUNT { Some(Self(number)) } else { None }
    }

    /// The plain number, 0..1472.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The plain number as an index, 0..1472.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// All tiles in physical order.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        (0..COUNT as u16).map(Self)
    }

    /// The same tile's logical number.
    #[must_use]
    pub const fn logical(self) -> TileId {
        let band = 2 * self.column() + self.band_bit();
        let along = if band.is_multiple_of(2) { self.row() } else { ROWS - 1 - self.row() };
        TileId(2 * (ROWS * band + along) + self.lane())
    }

    /// Row, 0..23.
    #[must_use]
    pub const fn row(self) -> u16 {
        self.0 >> 6
    }

    /// Column, 0..16.
    #[must_use]
    pub const fn column(self) -> u16 {
        self.0 >> 2 & 15
    }

    /// Sub id, 0..4.
    #[must_use]
    pub const fn sub(self) -> u16 {
        self.0 & 3
    }

    /// Bit 0 of the sub id: which of the two bands of its column.
    #[must_use]
    pub const fn band_bit(self) -> u16 {
        self.sub() & 1
    }

    /// Bit 1 of the sub id: which tile of the pair.
    #[must_use]
    pub const fn lane(self) -> u16 {
        self.sub() >> 1
    }

    /// Side of the chip, 0 for columns 0..8, 1 for 8..16 (machine.md a.6).
    #[must_use]
    pub const fn side(self) -> u16 {
        self.column() / 8
    }

    /// Column as seen from the exchange spine, 0..8 (machine.md a.6).
    #[must_use]
    pub const fn folded_column(self) -> u16 {
        if self.side() == 0 { self.column() } else { 15 - self.column() }
    }

    /// The other tile of the pair, `p xor 2` (machine.md a.5).
    #[must_use]
    pub const fn partner(self) -> Self {
        Self(self.0 ^ 2)
    }

    /// The tile that announces participation for this tile's host group (machine.md a.7).
    #[must_use]
    pub const fn group_owner(self) -> Self {
        Self(self.0 & 0x3d)
    }
}

impl fmt::Display for NoSuchTile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "no tile {}: expected a number below {COUNT}", self.found)
    }
}

impl std::error::Error for NoSuchTile {}

impl TryFrom<u16> for TileId {
    type Error = NoSuchTile;

    fn try_from(found: u16) -> Result<Self, NoSuchTile> {
        Self::new(found).ok_or(NoSuchTile { found })
    }
}

impl From<TileId> for u16 {
    fn from(tile: TileId) -> Self {
        tile.0
    }
}

impl TryFrom<u16> for PhysTile {
    type Error = NoSuchTile;

    fn try_from(found: u16) -> Result<Self, NoSuchTile> {
        Self::new(found).ok_or(NoSuchTile { found })
    }
}

impl From<PhysTile> for u16 {
    fn from(tile: PhysTile) -> Self {
        tile.0
    }
}

impl fmt::Display for TileId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

impl fmt::Display for PhysTile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}
