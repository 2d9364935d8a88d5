//! What a package was built for (package.md 1).

use ipu21::{memory, tile};
use serde::{Deserialize, Serialize};

/// A blake3 digest.
pub type Digest = [u8; 32];

/// Chip geometry, numbering and assumptions of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Name of the chip: `IPU21`.
    pub name: String,
    /// First byte of tile memory.
    pub memory_base: u32,
    /// Bytes of tile memory.
    pub memory_bytes: u32,
    /// Tiles of the chip.
    pub tiles: u32,
    /// Digest of the logical-to-physical table used; boards may differ (machine.md a.4).
    pub tile_table: Digest,
    /// Version of the producing program, for messages only.
    pub producer: String,
    /// Clock that reports assume, in Hz.
    pub clock_hertz: u64,
    /// Digest of the parameter table the words and clocks were made with.
    pub parameters: Digest,
    /// First and one-past-last byte of the window that host data is staged in (machine.md e.5).
    pub host_window: (u32, u32),
}

impl Target {
    /// Clock of the published peak figures (machine.md a.2); no source has measured a board.
    pub const CLOCK_HERTZ: u64 = 1_500_000_000;

    /// A C600 with the numbering of machine.md a.4 and the proven host window of b.3.
    #[must_use]
    pub fn c600(producer: &str, parameters: Digest) -> Self {
        Self {
            name: "IPU21".to_owned(),
            memory_base: memory::BASE,
            memory_bytes: memory::SIZE,
            tiles: tile::COUNT as u32,
            tile_table: c600_tile_table(),
            producer: producer.to_owned(),
            clock_hertz: Self::CLOCK_HERTZ,
            parameters,
            host_window: (0x50000, 0x58000),
        }
    }
}

/// Digest of the physical numbers in logical order, two little-endian bytes each.
pub(crate) fn c600_tile_table() -> Digest {
    let mut hasher = blake3::Hasher::new();
    for tile in tile::TileId::all() {
        hasher.update(&tile.physical().get().to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}
