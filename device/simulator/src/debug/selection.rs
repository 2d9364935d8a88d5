//! Which tiles, contexts and instructions are meant.

use ipu21::tile::{COUNT, PhysTile};

use crate::fault::Context;

/// A set of tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileSelection([u64; COUNT.div_ceil(64)]);

impl TileSelection {
    /// No tile.
    #[must_use]
    pub fn none() -> TileSelection {
        TileSelection([0; COUNT.div_ceil(64)])
    }

    /// Every tile.
    #[must_use]
    pub fn all() -> TileSelection {
        PhysTile::all().collect()
    }

    /// Whether a tile is in it.
    #[must_use]
    pub fn contains(&self, tile: PhysTile) -> bool {
        self.0[tile.index() / 64] >> (tile.index() % 64) & 1 == 1
    }

    /// Tiles in it.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The tiles in both.
    #[must_use]
    pub fn intersection(&self, other: &TileSelection) -> TileSelection {
        TileSelection(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// The tiles in one or the other.
    #[must_use]
    pub fn union(&self, other: &TileSelection) -> TileSelection {
        TileSelection(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// The tiles, ascending.
    pub fn tiles(&self) -> impl Iterator<Item = PhysTile> {
        PhysTile::all().filter(|tile| self.contains(*tile))
    }
}

impl FromIterator<PhysTile> for TileSelection {
    fn from_iter<I: IntoIterator<Item = PhysTile>>(tiles: I) -> TileSelection {
        let mut selection = TileSelection::none();
        tiles.into_iter().for_each(|tile| selection.0[tile.index() / 64] |= 1 << (tile.index() % 64));
        selection
    }
}

/// The instructions that an [`Observer`](super::Observer) is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFilter {
    /// On these tiles.
    pub tiles: TileSelection,
    /// Of this context; `None`: of all.
    pub context: Option<Context>,
    /// With this mnemonic in one of the lanes; `None`: any.
    pub mnemonic: Option<String>,
    /// At a byte address in `first..end`.
    pub addresses: (u32, u32),
}

impl TraceFilter {
    /// Whether an instruction at `pc` of `context` with these mnemonics passes.
    pub(crate) fn passes(&self, context: Context, pc: u32, mnemonics: [Option<&str>; 2]) -> bool {
        let (first, end) = self.addresses;
        (first..end).contains(&pc)
            && self.context.is_none_or(|wanted| wanted == context)
            && self.mnemonic.as_deref().is_none_or(|wanted| mnemonics.contains(&Some(wanted)))
    }
}
