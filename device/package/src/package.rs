//! The whole of a package, and the questions its users ask.

use ipu21::memory;
use ipu21::tile::PhysTile;
use serde::{Deserialize, Serialize};

use crate::binding::Binding;
use crate::call::{Call, Command, Page};
use crate::checkpoint::Checkpoint;
use crate::debug::{Listing, Located, Symbol, SymbolKind, TileSet, TileSetId};
use crate::image::{Blobs, Segment, Tile};
use crate::profile::{Point, Profile};
use crate::target::{Digest, Target};

/// Tiles in one batch of the secondary loader (machine.md f.7).
pub(crate) const LOADER_BATCH: u32 = 64;
/// Smallest image the secondary loader takes (machine.md f.7).
pub(crate) const IMAGE_BYTES_MIN: u32 = 0x4134;

/// A register of the board's configuration space set after loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationWrite {
    /// Byte offset, a multiple of 4 below 0x80000.
    pub offset: u32,
    /// Value.
    pub value: u32,
}

/// An application package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// What it was built for.
    pub target: Target,
    /// One for each physical tile, ascending.
    pub tiles: Vec<Tile>,
    /// Contents of the segments; stored outside the metadata.
    #[serde(skip)]
    pub blobs: Blobs,
    /// Tensors of the host, sorted by group and name.
    pub bindings: Vec<Binding>,
    /// Mark that starts the loaded program: the number of loader batches.
    pub start_mark: u32,
    /// In attach order.
    pub pages: Vec<Page>,
    /// Command word.
    pub command: Command,
    /// Names are unique.
    pub calls: Vec<Call>,
    /// Applied in order after loading.
    pub configuration: Vec<ConfigurationWrite>,
    /// Board configuration capture it was tested with, if any.
    pub board_capture: Option<Digest>,
    /// Parameters of kind `code` and unknown value that its words depend on, sorted. The hardware refuses such a package
    /// unless a user's file supplies the values.
    pub code_parameters: Vec<String>,
    /// In program order.
    pub checkpoints: Vec<Checkpoint>,
    /// Steps with planned clocks.
    pub profile: Profile,
    /// Sets of tiles that symbols and points name.
    pub tile_sets: Vec<TileSet>,
    /// Code of kernels and runtime.
    pub listings: Vec<Listing>,
    /// Memory map.
    pub symbols: Vec<Symbol>,
}

impl Package {
    /// A package without tiles, tensors and calls, with the pages, command and start mark of machine.md e.1 and f.7.
    /// `slots` is the number of tiles with a slot in the data page.
    #[must_use]
    pub fn new(target: Target, slots: u32) -> Self {
        let start_mark = target.tiles.div_ceil(LOADER_BATCH);
        let page = ipu21::host::SLOT_BYTES;
        let data = Page { index: 1, bytes: page * slots.max(1) };
        Self {
            target,
            tiles: Vec::new(),
            blobs: Blobs::default(),
            bindings: Vec::new(),
            start_mark,
            pages: vec![Page { index: 0, bytes: page }, data],
            command: Command { page: 0, offset: 0 },
            calls: Vec::new(),
            configuration: Vec::new(),
            board_capture: None,
            code_parameters: Vec::new(),
            checkpoints: Vec::new(),
            profile: Profile::default(),
            tile_sets: Vec::new(),
            listings: Vec::new(),
            symbols: Vec::new(),
        }
    }

    /// The id of a set of tiles, new or known.
    ///
    /// # Panics
    /// With 2^32 sets or more.
    pub fn tile_set(&mut self, set: TileSet) -> TileSetId {
        let index = self.tile_sets.iter().position(|known| *known == set).unwrap_or_else(|| {
            self.tile_sets.push(set);
            self.tile_sets.len() - 1
        });
        TileSetId(u32::try_from(index).expect("fewer than 2^32 sets"))
    }

    /// The record of a tile.
    #[must_use]
    pub fn tile(&self, tile: PhysTile) -> Option<&Tile> {
        self.tiles.binary_search_by_key(&tile, |record| record.tile).ok().map(|index| &self.tiles[index])
    }

    /// The binding of that name.
    #[must_use]
    pub fn binding(&self, name: &str) -> Option<&Binding> {
        self.bindings.iter().find(|binding| binding.name == name)
    }

    /// The call of that name.
    #[must_use]
    pub fn call(&self, name: &str) -> Option<&Call> {
        self.calls.iter().find(|call| call.name == name)
    }

    /// The address of the point on a tile, if one names the tile.
    #[must_use]
    pub fn address_on(&self, points: &[Point], tile: PhysTile) -> Option<u32> {
        points.iter().find(|point| self.set_contains(point.tiles, tile)).map(|point| point.address)
    }

    /// The word at an address of a tile when it starts; `None` outside the segments.
    #[must_use]
    pub fn word_at(&self, tile: &Tile, address: u32) -> Option<u32> {
        let segment = tile.segments.iter().find(|segment| segment.holds(address, 4))?;
        let data = self.blobs.get(segment.data)?;
        let start = (address - segment.address) as usize;
        let byte = |index: usize| data.get(start + index).copied().unwrap_or(0);
        Some(u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)]))
    }

    /// What a loader sends for a tile: memory from 0x4c010 to the end of the last segment with zeros between and behind the
    /// data, padded to the smallest size the secondary loader takes. Zero tails are included, since nothing clears memory.
    #[must_use]
    pub fn image(&self, tile: &Tile) -> Vec<u8> {
        let end = tile.segments.iter().map(Segment::end).max().unwrap_or(memory::ENTRY);
        let end = end.clamp(memory::ENTRY + IMAGE_BYTES_MIN, memory::LOADABLE_END);
        let mut image = vec![0; (end - memory::ENTRY) as usize];
        for segment in &tile.segments {
            let start = segment.address.saturating_sub(memory::ENTRY) as usize;
            let data = self.blobs.get(segment.data).map_or(&[][..], |data| data);
            if let Some(place) = image.get_mut(start..start + data.len()) {
                place.copy_from_slice(data);
            }
        }
        image
    }

    /// Names a program counter of a tile: the smallest stretch of code, program or row around it.
    #[must_use]
    pub fn locate(&self, tile: PhysTile, pc: u32) -> Option<Located<'_>> {
        let around = |symbol: &&Symbol| pc >= symbol.address && pc - symbol.address < symbol.bytes && self.set_contains(symbol.tiles, tile);
        let code = |symbol: &&Symbol| !matches!(symbol.kind, SymbolKind::Buffer { .. } | SymbolKind::Support);
        let symbol = self.symbols.iter().filter(around).filter(code).min_by_key(|symbol| symbol.bytes)?;
        let offset = pc - symbol.address;
        let listing = match symbol.kind {
            SymbolKind::Code { listing } => self.listings.get(listing as usize),
            _ => None,
        };
        let label = listing.and_then(|listing| listing.label_at(offset));
        let line = listing.and_then(|listing| listing.line_at(offset));
        Some(Located { symbol, offset, listing, label, line })
    }

    /// The memory map of a tile by ascending address.
    #[must_use]
    pub fn memory_map(&self, tile: PhysTile) -> Vec<&Symbol> {
        let mut map: Vec<&Symbol> = self.symbols.iter().filter(|symbol| self.set_contains(symbol.tiles, tile)).collect();
        map.sort_by_key(|symbol| (symbol.address, symbol.bytes));
        map
    }

    /// Whether a set of the package holds the tile; an unknown set holds none.
    #[must_use]
    pub fn set_contains(&self, set: TileSetId, tile: PhysTile) -> bool {
        self.tile_sets.get(set.0 as usize).is_some_and(|set| set.contains(tile))
    }
}
