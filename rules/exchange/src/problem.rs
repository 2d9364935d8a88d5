//! What one exchange phase must move: transfers over (tile, buffer, offset), without addresses or times.

use std::fmt;

use ipu21::memory;
use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};

/// A buffer of the program; the same number on all its tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BufferId(pub u32);

/// A byte inside a buffer of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The tile.
    pub tile: TileId,
    /// The buffer.
    pub buffer: BufferId,
    /// Byte offset, a multiple of 4.
    pub offset: u32,
}

/// Words that go from one place to one or more places; of any length, the scheduler cuts it into messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Transfer {
    /// Where the words lie.
    pub source: Place,
    /// 32-bit words, at least 1.
    pub words: u32,
    /// Where they go; distinct tiles, none the source's.
    pub destinations: Vec<Place>,
}

/// A phase's transfers; all may be in flight at once unless their byte ranges meet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    /// In program order: where byte ranges of one tile meet, the earlier transfer comes first (machine.md I16).
    pub transfers: Vec<Transfer>,
    /// Pairs of buffers of a tile that placement could not keep in different conflict units: a send from the first and a
    /// receive into the second must not overlap in time (I14).
    pub serial: Vec<(BufferId, BufferId, TileId)>,
}

/// What is wrong with a problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fault {
    /// No destination.
    NoDestination {
        /// Index of the transfer.
        transfer: u32,
    },
    /// The source tile is among the destinations.
    ToItself {
        /// Index of the transfer.
        transfer: u32,
        /// The tile.
        tile: TileId,
    },
    /// A tile twice among the destinations.
    DestinationTwice {
        /// Index of the transfer.
        transfer: u32,
        /// The tile.
        tile: TileId,
    },
    /// No words.
    NoWords {
        /// Index of the transfer.
        transfer: u32,
    },
    /// An offset that is no multiple of 4, or a range that ends beyond the size of tile memory.
    Range {
        /// Index of the transfer.
        transfer: u32,
        /// The place.
        place: Place,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDestination { transfer } => write!(out, "transfer {transfer}: no destination"),
            Self::ToItself { transfer, tile } => write!(out, "transfer {transfer}: tile {tile} sends to itself"),
            Self::DestinationTwice { transfer, tile } => write!(out, "transfer {transfer}: tile {tile} is a destination twice"),
            Self::NoWords { transfer } => write!(out, "transfer {transfer}: no words"),
            Self::Range { transfer, place } => {
                write!(
                    out,
                    "transfer {transfer}: expected a word-aligned range no larger than tile memory, found buffer {} offset {} on tile {}",
                    place.buffer.0, place.offset, place.tile
                )
            }
        }
    }
}

impl std::error::Error for Fault {}

impl Problem {
    /// What must hold before scheduling.
    ///
    /// # Errors
    /// Every fault, in transfer order.
    pub fn check(&self) -> Result<(), Vec<Fault>> {
        let mut faults = Vec::new();
        for (index, transfer) in self.transfers.iter().enumerate() {
            check_transfer(index as u32, transfer, &mut faults);
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// The buffers of the transfers, ascending.
    #[must_use]
    pub fn buffers(&self) -> Vec<BufferId> {
        let places = self.transfers.iter().flat_map(|transfer| std::iter::once(&transfer.source).chain(&transfer.destinations));
        let mut buffers: Vec<BufferId> = places.map(|place| place.buffer).collect();
        buffers.sort_unstable();
        buffers.dedup();
        buffers
    }

    /// The same phase apart from its program: buffers are numbered from 0 in their order, pairs that no transfer can touch are left
    /// out. [`crate::Schedule::in_program`] is the way back. Phases with the same transfers are equal in this form, wherever they
    /// stand and however many buffers are before theirs.
    #[must_use]
    pub fn on_its_own(&self) -> Problem {
        let buffers = self.buffers();
        let number = |buffer: BufferId| buffers.binary_search(&buffer).ok().map(|index| BufferId(index as u32));
        let place = |place: &Place| Place { buffer: number(place.buffer).unwrap_or(place.buffer), ..*place };
        let transfer = |transfer: &Transfer| Transfer {
            source: place(&transfer.source),
            words: transfer.words,
            destinations: transfer.destinations.iter().map(place).collect(),
        };
        let pair = |(one, other, tile): &(BufferId, BufferId, TileId)| Some((number(*one)?, number(*other)?, *tile));
        Problem { transfers: self.transfers.iter().map(transfer).collect(), serial: self.serial.iter().filter_map(pair).collect() }
    }

    /// The most receivers of any transfer; 0 without transfers.
    #[must_use]
    pub fn largest_multicast(&self) -> usize {
        self.transfers.iter().map(|transfer| transfer.destinations.len()).max().unwrap_or(0)
    }
}

fn check_transfer(index: u32, transfer: &Transfer, faults: &mut Vec<Fault>) {
    if transfer.words == 0 {
        faults.push(Fault::NoWords { transfer: index });
    }
    if transfer.destinations.is_empty() {
        faults.push(Fault::NoDestination { transfer: index });
    }
    for place in std::iter::once(&transfer.source).chain(&transfer.destinations) {
        let end = transfer.words.checked_mul(4).and_then(|bytes| place.offset.checked_add(bytes));
        if !place.offset.is_multiple_of(4) || end.is_none_or(|end| end > memory::SIZE) {
            faults.push(Fault::Range { transfer: index, place: *place });
        }
    }
    let mut tiles: Vec<TileId> = transfer.destinations.iter().map(|place| place.tile).collect();
    if tiles.contains(&transfer.source.tile) {
        faults.push(Fault::ToItself { transfer: index, tile: transfer.source.tile });
    }
    tiles.sort_unstable();
    for pair in tiles.windows(2).filter(|pair| pair[0] == pair[1]) {
        faults.push(Fault::DestinationTwice { transfer: index, tile: pair[0] });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(tile: u16, offset: u32) -> Place {
        Place { tile: TileId::new(tile).unwrap(), buffer: BufferId(0), offset }
    }

    fn between(first: u32, second: u32) -> Transfer {
        let at = |tile, buffer| Place { buffer: BufferId(buffer), ..place(tile, 8) };
        Transfer { source: at(1, first), words: 3, destinations: vec![at(2, second), at(3, first)] }
    }

    #[test]
    fn equal_transfers_are_equal_wherever_their_buffers_stand() {
        let tile = TileId::new(2).unwrap();
        let phase = |first, second, foreign| Problem {
            transfers: vec![between(first, second), between(second, first)],
            serial: vec![(BufferId(second), BufferId(first), tile), (BufferId(first), BufferId(foreign), tile)],
        };
        let own = phase(7, 9, 8).on_its_own();
        assert_eq!(own, Problem { serial: vec![(BufferId(1), BufferId(0), tile)], ..phase(0, 1, 2) });
        assert_eq!(own, phase(20, 31, 3).on_its_own());
        assert_ne!(own, phase(31, 20, 3).on_its_own());
        assert_eq!(own, own.on_its_own());
    }

    #[test]
    fn a_schedule_of_a_phase_on_its_own_is_that_of_the_phase() {
        let program = Problem { transfers: vec![between(7, 9), between(9, 7), between(4, 9)], serial: vec![] };
        let own = crate::schedule(&program.on_its_own()).unwrap().in_program(&program.buffers());
        assert_eq!(crate::schedule(&program).unwrap(), own);
        assert_eq!(crate::validate(&program, &own), Ok(()));
    }

    #[test]
    fn every_fault_of_a_problem_is_reported() {
        let transfers = vec![
            Transfer { source: place(1, 0), words: 0, destinations: vec![] },
            Transfer { source: place(1, 2), words: 1, destinations: vec![place(1, 0), place(2, 0), place(2, 8)] },
        ];
        let faults = Problem { transfers, serial: vec![] }.check().unwrap_err();
        assert_eq!(
            faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "transfer 0: no words",
                "transfer 0: no destination",
                "transfer 1: expected a word-aligned range no larger than tile memory, found buffer 0 offset 2 on tile 1",
                "transfer 1: tile 1 sends to itself",
                "transfer 1: tile 2 is a destination twice",
            ]
        );
    }
}
