//! A message of a phase with its addresses and start event, and the events that follow from it (machine.md c.5, c.7).

use ipu21::route::{pair_route, route};
use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};

use crate::bound::SENDER_END;
use crate::problem::BufferId;

/// Size of the items of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Width {
    /// 32-bit items to single tiles.
    Word,
    /// 64-bit items to pairs of tiles (machine.md c.7). The scheduler takes it only when asked to, because the mode is only reported as
    /// working in diagnostics (exchange-bounds.md).
    Pair,
}

impl Width {
    /// Bytes of an item.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Word => 4,
            Self::Pair => 8,
        }
    }
}

/// An address of a tile, inside a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Spot {
    /// The tile.
    pub tile: TileId,
    /// The buffer; a pointer event is left out only between contiguous pieces of one buffer.
    pub buffer: BufferId,
    /// Byte address.
    pub address: u32,
}

/// A message with addresses and its start event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TimedMessage {
    /// Where the items lie.
    pub source: Spot,
    /// Size of an item.
    pub width: Width,
    /// Items, 1..=4148 (64.. in pair mode).
    pub items: u32,
    /// Event of the first item on the sender's counter.
    pub start: u32,
    /// Bit 0 East, bit 1 West, bit 2 64-bit items.
    pub control: u32,
    /// Where the items go; distinct tiles, whole pairs in pair mode.
    pub destinations: Vec<Spot>,
}

impl TimedMessage {
    /// Bytes moved to each destination.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.items.saturating_mul(self.width.bytes())
    }

    /// The earliest start at which every receiver can select in time.
    pub(crate) fn natural(&self) -> i32 {
        let source = self.source.tile.physical();
        self.destinations.iter().map(|spot| -route(source, spot.tile.physical()).offset).fold(0, i32::max)
    }

    /// End of the sender's part of its row.
    pub(crate) fn sender_horizon(&self) -> i32 {
        let (natural, start, items) = (self.natural(), self.start as i32, self.items as i32);
        start - natural + (natural + items).max(SENDER_END)
    }

    /// Event of the receiver's select.
    pub(crate) fn select(&self, receiver: TileId) -> i32 {
        let (source, destination) = (self.source.tile.physical(), receiver.physical());
        let delay = match self.width {
            Width::Word => route(source, destination).offset + 1,
            Width::Pair => pair_route(source, destination).offset,
        };
        self.start as i32 + delay
    }
}

impl TimedMessage {
    /// Event of the receiver's first store.
    pub(crate) fn first_store(&self, receiver: TileId) -> i32 {
        let depth = 52 + 2 * i32::from(receiver.physical().row());
        self.select(receiver) + depth + i32::from(self.width == Width::Pair)
    }
}

/// The control field of a send to `destinations`: one direction for a single tile or pair, both for a multicast.
pub(crate) fn control(source: TileId, width: Width, destinations: impl ExactSizeIterator<Item = TileId>) -> u32 {
    let receivers = if width == Width::Word { 1 } else { 2 };
    let several = destinations.len() > receivers;
    let bits = destinations.map(|tile| route(source.physical(), tile.physical()).direction.control()).fold(0, |all, bit| all | bit);
    (if several { 3 } else { bits }) | if width == Width::Pair { 4 } else { 0 }
}
