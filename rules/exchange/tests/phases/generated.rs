//! Phases of every kind and size from a fixed sequence of numbers.

use std::collections::BTreeMap;

use exchange::{BufferId, Place, Problem, Transfer};

use super::{RECEIVED, SENT, tile};

/// What a generated phase is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Rounds in which every tile sends 64 words to one tile and hears from one.
    Permutation,
    /// Pieces of 9 words between any two tiles.
    Fragments,
    /// 1 to 400 words between any two tiles.
    Unequal,
    /// 64 words to 2 to 16 tiles.
    Multicast,
    /// All of those.
    Mixture,
    /// The first half of the tiles and the second send 64 words to each other at once.
    Duplex,
    /// Pieces of 9 words that are handed on from the bytes at which they arrived.
    Chain,
}

impl Sort {
    pub(crate) const ALL: [Self; 7] =
        [Self::Permutation, Self::Fragments, Self::Unequal, Self::Multicast, Self::Mixture, Self::Duplex, Self::Chain];
}

/// A fixed sequence of numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, count: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 % count
    }
}

/// Places each transfer's words behind those that a tile sent or received before.
#[derive(Default)]
struct Layout {
    used: BTreeMap<(u32, BufferId), u32>,
}

impl Layout {
    fn place(&mut self, number: u32, buffer: BufferId, words: u32) -> Place {
        let offset = self.used.entry((number, buffer)).or_default();
        let place = Place { tile: tile(number as u16), buffer, offset: *offset };
        *offset += 4 * words;
        place
    }
}

/// So many transfers of a sort among the first `tiles` tiles, at least 2.
pub(crate) fn phase(sort: Sort, tiles: u32, transfers: u32) -> Problem {
    let (mut draw, mut layout) = (Draw(u64::from(tiles) << 32 | u64::from(transfers)), Layout::default());
    let made = |index| transfer(sort, (tiles, index), &mut draw, &mut layout);
    let mut problem = Problem { transfers: (0..transfers).map(made).collect(), serial: Vec::new() };
    if sort == Sort::Chain {
        hand_on(&mut problem.transfers, tiles);
    }
    problem
}

fn transfer(sort: Sort, (tiles, index): (u32, u32), draw: &mut Draw, layout: &mut Layout) -> Transfer {
    let (round, at) = (index / tiles, index % tiles);
    let other = |draw: &mut Draw, source: u32| (source + 1 + draw.below(tiles - 1)) % tiles;
    let (source, words, first, receivers) = match sort {
        Sort::Permutation => (at, 64, (at + 1 + round % (tiles - 1)) % tiles, 1),
        Sort::Duplex => (at, 64, (at + tiles / 2) % tiles, 1),
        Sort::Fragments | Sort::Chain => (at, 9, other(draw, at), 1),
        Sort::Unequal => (at, 1 + draw.below(400), other(draw, at), 1),
        Sort::Multicast => (at, 64, other(draw, at), (2 + draw.below(15)).min(tiles - 1)),
        Sort::Mixture => {
            let part = [Sort::Permutation, Sort::Fragments, Sort::Unequal, Sort::Multicast][draw.below(4) as usize];
            return transfer(part, (tiles, index), draw, layout);
        }
    };
    // Receivers follow each other round the ring of tiles, the source left out.
    let ring = (0..=receivers).map(|step| (first + step) % tiles).filter(|number| *number != source);
    let destinations = ring.take(receivers as usize).map(|number| layout.place(number, RECEIVED, words)).collect();
    Transfer { source: layout.place(source, SENT, words), words, destinations }
}

/// Every other round sends what its tile received first.
fn hand_on(transfers: &mut [Transfer], tiles: u32) {
    let mut arrived = BTreeMap::new();
    for (index, transfer) in (0..).zip(transfers) {
        if index / tiles % 2 == 1
            && let Some(place) = arrived.get(&transfer.source.tile)
        {
            transfer.source = *place;
        }
        for place in &transfer.destinations {
            arrived.entry(place.tile).or_insert(*place);
        }
    }
}
