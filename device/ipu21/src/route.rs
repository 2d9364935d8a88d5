//! Route times of the exchange fabric (machine.md c.2, c.3; equal to the reference for all 1472 x 1472 ordered pairs).

use serde::{Deserialize, Serialize};

use crate::tile::PhysTile;

/// The direction bit a sender must enable for a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Direction {
    /// Bit 0 of the send control.
    East,
    /// Bit 1 of the send control.
    West,
}

impl Direction {
    /// The bit in the control field of a send.
    #[must_use]
    pub const fn control(self) -> u32 {
        match self {
            Self::East => 1,
            Self::West => 2,
        }
    }
}

/// How a word travels from one tile to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// T: receiver's event counter minus sender's, -78..=112. A receiver sees at event `e + T + 1` what is sent at event `e`.
    pub offset: i32,
    /// Direction on the spine.
    pub direction: Direction,
}

/// How a pair of tiles receives a 64-bit stream (machine.md c.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairRoute {
    /// T2, the larger of both members' offsets: the select event is `S + T2`.
    pub offset: i32,
    /// The member with the smaller offset; it is held back one event.
    pub early: PhysTile,
}

/// Where a sender enters the spine.
#[must_use]
pub const fn injection(tile: PhysTile) -> i32 {
    let far = tile.side() ^ tile.band_bit();
    6 * (tile.folded_column() + far) as i32
}

/// Where a receiver listens on the spine.
#[must_use]
pub const fn tap(tile: PhysTile) -> i32 {
    let far = tile.side() ^ tile.band_bit();
    let within = match (far, tile.lane()) {
        (0, 0) => 1,
        (0, _) => 2,
        (_, 0) => 5,
        _ => 4,
    };
    6 * tile.folded_column() as i32 + within
}

/// The route from `source` to `destination`, which must differ.
#[must_use]
pub const fn route(source: PhysTile, destination: PhysTile) -> Route {
    let displacement = tap(destination) - injection(source);
    let direction = if displacement > 0 { Direction::East } else { Direction::West };
    let along = if destination.side() == 0 { 5 } else { 3 };
    let constant = if source.side() == 1 && destination.side() == 0 { 14 } else { 30 };
    let columns = source.folded_column() as i32 - destination.folded_column() as i32;
    let rows = source.row() as i32 - destination.row() as i32;
    Route { offset: along * columns + 2 * rows + displacement.abs() - constant, direction }
}

/// The route of a 64-bit stream to the pair of `destination`.
#[must_use]
pub const fn pair_route(source: PhysTile, destination: PhysTile) -> PairRoute {
    let (one, other) = (destination, destination.partner());
    let (first, second) = (route(source, one).offset, route(source, other).offset);
    if first < second { PairRoute { offset: second, early: one } } else { PairRoute { offset: first, early: other } }
}

/// Events from the first word sent to that word stored, P - S (exchange-bounds.md), 19..=165.
#[must_use]
pub const fn latency(source: PhysTile, destination: PhysTile) -> i32 {
    route(source, destination).offset + 53 + 2 * destination.row() as i32
}
