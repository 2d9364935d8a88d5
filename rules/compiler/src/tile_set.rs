//! Sets of tiles with a cheap intersection test.

use ipu21::tile::TileId;

const WORDS: usize = ipu21::tile::COUNT / 64;

/// A set of logical tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TileSet([u64; WORDS]);

impl TileSet {
    pub(crate) const EMPTY: Self = Self([0; WORDS]);

    pub(crate) fn insert(&mut self, tile: TileId) {
        let index = tile.index();
        self.0[index / 64] |= 1 << (index % 64);
    }

    pub(crate) fn contains(&self, tile: TileId) -> bool {
        let index = tile.index();
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(left, right)| left & right != 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = TileId> + '_ {
        TileId::all().filter(|tile| self.contains(*tile))
    }
}

impl<'a> FromIterator<&'a TileId> for TileSet {
    fn from_iter<T: IntoIterator<Item = &'a TileId>>(tiles: T) -> Self {
        let mut set = Self::EMPTY;
        tiles.into_iter().for_each(|tile| set.insert(*tile));
        set
    }
}
