//! What the scheduler decides: a start event for every message, and what follows from it before addresses are known.

use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};

use crate::message::{Spot, TimedMessage, Width};
use crate::problem::{BufferId, Place};

/// A piece of a transfer, for all or some of its destinations, with its start event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Message {
    /// Index of the transfer.
    pub transfer: u32,
    /// First word of the transfer in this message.
    pub first_word: u32,
    /// 32-bit words: 1..=4148, in pair mode 128..=8296.
    pub words: u32,
    /// Size of the items it goes in.
    pub width: Width,
    /// Event of the first word on the sender's counter.
    pub start: u32,
    /// Bit 0 East, bit 1 West.
    pub control: u32,
    /// Where the first word lies.
    pub source: Place,
    /// Where the first word goes, in the transfer's order; not all of the transfer's where some are whole pairs.
    pub destinations: Vec<Place>,
}

/// What a tile spends on the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TilePlan {
    /// The tile.
    pub tile: TileId,
    /// Events until its data may be touched and its workers started.
    pub horizon: u32,
    /// Words of its row, the return included; the same for any 8-byte aligned addresses.
    pub row_words: u32,
}

/// Which search made the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// Transfers in the given order.
    Program,
    /// Most loaded endpoints first.
    Loaded,
    /// Most receivers first, then most loaded endpoints.
    Multicast,
    /// Earliest on the clock that sender and receiver share, most loaded first among equals.
    Clock,
    /// Permutations of senders and receivers one after the other, each used as often as possible.
    Permutation,
    /// Colour classes of the send and receive graph one after the other.
    Colour,
    /// Shifts of a ring: tile distance after tile distance.
    Ring,
}

/// Figures for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Transfers of the problem.
    pub transfers: u32,
    /// Most transfers to one and the same set of destination tiles.
    pub identical_destinations: u32,
    /// Horizon of the first order tried, in events.
    pub initial_horizon: u32,
    /// Horizon of this schedule, in events.
    pub horizon: u32,
    /// No schedule is shorter (exchange-bounds.md).
    pub lower_bound: u32,
    /// The order that won.
    pub kind: Kind,
    /// Accepted steps of the local search.
    pub improvements: u32,
    /// Messages of 64-bit items to pairs of tiles.
    pub pairs: u32,
    /// Words of the largest row.
    pub largest_row_words: u32,
    /// The tile with it, the lowest one; `None` without transfers.
    pub largest_row_tile: Option<TileId>,
}

impl Figures {
    /// Events above the lower bound.
    #[must_use]
    pub const fn gap(&self) -> u32 {
        self.horizon.saturating_sub(self.lower_bound)
    }
}

/// Timed messages of a phase; knows (tile, buffer, offset), no address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// In order of transfer, pairs first, and first word: program order.
    pub messages: Vec<Message>,
    /// Participating tiles, ascending.
    pub tiles: Vec<TilePlan>,
    /// Buffers of a tile whose send and receive windows meet (machine.md I14): they need different conflict units. Ascending,
    /// the lower buffer first, never a buffer with itself.
    pub apart: Vec<(TileId, BufferId, BufferId)>,
    /// Figures for reports.
    pub figures: Figures,
}

impl Schedule {
    /// The schedule of a phase on its own ([`crate::Problem::on_its_own`]) with the numbers that its buffers have in the program:
    /// those of [`crate::Problem::buffers`]. Buffers that are not among them keep their numbers.
    #[must_use]
    pub fn in_program(&self, buffers: &[BufferId]) -> Schedule {
        let number = |buffer: BufferId| buffers.get(buffer.0 as usize).copied().unwrap_or(buffer);
        let place = |place: &Place| Place { buffer: number(place.buffer), ..*place };
        let message = |message: &Message| Message {
            source: place(&message.source),
            destinations: message.destinations.iter().map(place).collect(),
            ..*message
        };
        Schedule {
            messages: self.messages.iter().map(message).collect(),
            tiles: self.tiles.clone(),
            apart: self.apart.iter().map(|(tile, one, other)| (*tile, number(*one), number(*other))).collect(),
            figures: self.figures,
        }
    }

    /// The messages at given addresses of buffers (8-byte aligned).
    pub fn timed(&self, address_of: impl Fn(TileId, BufferId) -> u32) -> Vec<TimedMessage> {
        let spot = |place: &Place| Spot {
            tile: place.tile,
            buffer: place.buffer,
            address: address_of(place.tile, place.buffer).wrapping_add(place.offset),
        };
        self.messages
            .iter()
            .map(|message| TimedMessage {
                source: spot(&message.source),
                width: message.width,
                items: 4 * message.words / message.width.bytes(),
                start: message.start,
                control: message.control,
                destinations: message.destinations.iter().map(spot).collect(),
            })
            .collect()
    }
}
