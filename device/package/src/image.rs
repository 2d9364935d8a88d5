//! Tile memory at load time (package.md 2).

use std::collections::HashMap;
use std::sync::Arc;

use ipu21::tile::PhysTile;
use serde::{Deserialize, Serialize};

/// Index into [`Blobs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlobId(pub u32);

/// Distinct segment contents in order of first use, without trailing zeros.
#[derive(Clone, Debug, Default)]
pub struct Blobs {
    contents: Vec<Arc<[u8]>>,
    known: HashMap<Arc<[u8]>, BlobId>,
}

/// What a program may do with a segment; information for readers, tile memory has no protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Access {
    /// Loads, and sends of the exchange.
    pub read: bool,
    /// Stores, and receives of the exchange.
    pub write: bool,
    /// Instruction fetch; only below 0x80000.
    pub execute: bool,
}

/// A stretch of tile memory with its contents at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// First byte, a multiple of 4.
    pub address: u32,
    /// First part of the contents.
    pub data: BlobId,
    /// Whole size; what the data does not cover is zero.
    pub memory_bytes: u32,
    /// What the program does with it.
    pub access: Access,
    /// Declares that the segment lies in the host window on purpose.
    pub in_host_window: bool,
}

/// The image of a tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tile {
    /// Physical number.
    pub tile: PhysTile,
    /// Where the supervisor starts; 0x4c010 with the secondary loader.
    pub entry: u32,
    /// By ascending address, at least one.
    pub segments: Vec<Segment>,
    /// Word that the program sets to 1 when it ends, for diagnosis.
    pub completion: Option<u32>,
}

impl Access {
    /// Code and rows.
    pub const CODE: Self = Self { read: true, write: false, execute: true };
    /// Code that the program patches.
    pub const PATCHED_CODE: Self = Self { read: true, write: true, execute: true };
    /// Constants and argument blocks.
    pub const CONSTANT: Self = Self { read: true, write: false, execute: false };
    /// Data.
    pub const DATA: Self = Self { read: true, write: true, execute: false };
}

impl Blobs {
    /// The id of these contents without their trailing zeros; equal contents have one id.
    pub fn intern(&mut self, contents: &[u8]) -> BlobId {
        let kept = contents.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let kept = &contents[..kept];
        if let Some(id) = self.known.get(kept) {
            return *id;
        }
        self.push(Arc::from(kept))
    }

    /// Contents as they are, for the reader; [`crate::Package::check`] judges them.
    pub(crate) fn push(&mut self, contents: Arc<[u8]>) -> BlobId {
        let id = BlobId(self.contents.len() as u32);
        self.known.entry(contents.clone()).or_insert(id);
        self.contents.push(contents);
        id
    }

    /// The contents, or `None` for an id of another package.
    #[must_use]
    pub fn get(&self, id: BlobId) -> Option<&Arc<[u8]>> {
        self.contents.get(id.0 as usize)
    }

    /// All contents by id.
    #[must_use]
    pub fn contents(&self) -> &[Arc<[u8]>] {
        &self.contents
    }
}

impl PartialEq for Blobs {
    fn eq(&self, other: &Self) -> bool {
        self.contents == other.contents
    }
}

impl Eq for Blobs {}

impl Segment {
    /// A segment with these contents.
    ///
    /// # Panics
    /// With 4 GiB or more of contents, which no tile has.
    #[must_use]
    pub fn new(blobs: &mut Blobs, address: u32, contents: &[u8], access: Access) -> Self {
        let memory_bytes = u32::try_from(contents.len()).expect("a segment is smaller than tile memory");
        Self { address, data: blobs.intern(contents), memory_bytes, access, in_host_window: false }
    }

    /// One past the last byte; clamped, so that foreign values do not wrap.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.address.saturating_add(self.memory_bytes)
    }

    /// Whether all bytes of `[address, address + bytes)` are inside.
    #[must_use]
    pub fn holds(&self, address: u32, bytes: u32) -> bool {
        address >= self.address && u64::from(address) + u64::from(bytes) <= u64::from(self.end())
    }
}
