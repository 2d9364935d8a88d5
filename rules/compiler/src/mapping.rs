//! Gives every position of a plan its tile.
//!
//! In: a plan expanded under the identity mapping, and the layout. Out: a [`Mapping`], a permutation of the first logical
//! tiles. Candidates are screened by the route bounds of the plan's phases; the fabric is non-blocking, so distances and
//! sides matter only through latencies.

use std::collections::BTreeMap;

use exchange::{Place, Problem, Transfer};
use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};

use crate::layout::Layout;
use crate::plan_fault::Fault;
use crate::program::Expanded;

/// A mapping and how it was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// Name of the rule that made it.
    pub name: String,
    /// Position to tile; distinct tiles.
    pub tiles: Vec<TileId>,
    /// Figures of the screening.
    pub figures: Figures,
}

/// What the screening saw, for the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Mappings tried.
    pub candidates: u32,
    /// Sum of the route bounds of all phases under the identity, clocks.
    pub baseline_cycles: u64,
    /// The same under the mapping chosen.
    pub candidate_cycles: u64,
    /// Largest number of words one tile sends or receives in a phase, summed over phases, under the identity.
    pub baseline_pressure: u64,
    /// The same under the mapping chosen.
    pub candidate_pressure: u64,
    /// Positions whose tile is not the one of their number.
    pub mapped: u32,
}

/// A rule from the number of tiles and a position to a tile number.
type Rule = fn(u32, u32) -> u32;

/// The candidates, in the order in which ties are broken.
#[rustfmt::skip]
const RULES: [(&str, Rule); 5] = [
    ("identity",    |_, position| position),
    ("reversed",    |tiles, position| tiles - 1 - position),
    ("pair-spread", pair_spread),
    ("transposed",  transposed),
    ("centred",     centred),
];

/// Neighbours on different pairs: first all even tiles, then all odd ones.
fn pair_spread(tiles: u32, position: u32) -> u32 {
    let even = tiles.div_ceil(2);
    if position < even { 2 * position } else { 2 * (position - even) + 1 }
}

/// Column-major over the most square grid that has exactly this many tiles.
fn transposed(tiles: u32, position: u32) -> u32 {
    let columns = (1..=tiles.isqrt()).rev().find(|columns| tiles.is_multiple_of(*columns)).unwrap_or(1);
    let rows = tiles / columns;
    position % rows * columns + position / rows
}

/// From the middle outwards, one side after the other.
fn centred(tiles: u32, position: u32) -> u32 {
    let middle = (tiles - 1) / 2;
    let step = position.div_ceil(2);
    if position % 2 == 1 { middle + step } else { middle - step }
}

/// The mapping that puts position `n` on tile `n`.
#[must_use]
pub fn identity(tiles: u32) -> Mapping {
    named(tiles, &RULES[0])
}

fn named(tiles: u32, (name, rule): &(&str, Rule)) -> Mapping {
    let logical: Vec<_> = TileId::all().take(tiles as usize).collect();
    let tiles = (0..).take(logical.len()).map(|position| logical[rule(tiles, position) as usize]).collect();
    Mapping { name: (*name).to_owned(), tiles, figures: Figures::default() }
}

/// Names a layout may ask for besides `auto`.
#[must_use]
pub fn names() -> Vec<String> {
    RULES.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Screens the candidates on a program expanded under [`identity`]. Fewest clocks win, then the earlier rule.
///
/// # Errors
/// A layout that names no mapping.
pub fn map(program: &Expanded, layout: &Layout) -> Result<Mapping, Fault> {
    let is_wanted = |name: &str| layout.mapping == "auto" || layout.mapping == name;
    let candidates: Vec<_> = RULES.iter().filter(|(name, _)| is_wanted(name)).map(|rule| named(layout.tiles, rule)).collect();
    let baseline = identity(layout.tiles);
    let costs = candidates.iter().map(|candidate| cycles(program, candidate));
    let best = candidates.iter().zip(costs).min_by_key(|(_, cost)| *cost);
    let Some((chosen, candidate_cycles)) = best else {
        return Err(Fault::UnknownMapping { found: layout.mapping.clone(), possible: names() });
    };
    let mapped = TileId::all().zip(&chosen.tiles).filter(|(position, chosen)| position != *chosen).count();
    let pressure = pressure(program);
    let figures = Figures {
        candidates: u32::try_from(candidates.len()).unwrap_or(u32::MAX),
        baseline_cycles: cycles(program, &baseline),
        candidate_cycles,
        baseline_pressure: pressure,
        candidate_pressure: pressure,
        mapped: u32::try_from(mapped).unwrap_or(u32::MAX),
    };
    Ok(Mapping { figures, ..chosen.clone() })
}

/// Positions are distinct tiles among the first of the layout.
///
/// # Errors
/// The first position that is not.
pub fn check(layout: &Layout, mapping: &Mapping) -> Result<(), CheckFault> {
    let mut position_of = BTreeMap::new();
    for (position, tile_of) in (0u32..).zip(&mapping.tiles) {
        if u32::from(tile_of.get()) >= layout.tiles {
            return Err(CheckFault::Outside { position, tile: *tile_of });
        }
        if let Some(other) = position_of.insert(*tile_of, position) {
            return Err(CheckFault::Twice { tile: *tile_of, positions: (other, position) });
        }
    }
    let found = u32::try_from(mapping.tiles.len()).unwrap_or(u32::MAX);
    if found == layout.tiles { Ok(()) } else { Err(CheckFault::Count { expected: layout.tiles, found }) }
}

/// What can be wrong with a mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckFault {
    /// A tile the layout does not allow.
    Outside {
        /// Position.
        position: u32,
        /// Its tile.
        tile: TileId,
    },
    /// A tile with two positions.
    Twice {
        /// The tile.
        tile: TileId,
        /// Both positions.
        positions: (u32, u32),
    },
    /// A position without a tile, or a tile too many.
    Count {
        /// Positions.
        expected: u32,
        /// Entries.
        found: u32,
    },
}

impl std::fmt::Display for CheckFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Outside { position, tile } => write!(f, "position {position} is on tile {tile:?}, outside the layout"),
            Self::Twice { tile, positions } => write!(f, "positions {} and {} are both on tile {tile:?}", positions.0, positions.1),
            Self::Count { expected, found } => write!(f, "{found} tiles for {expected} positions"),
        }
    }
}

impl std::error::Error for CheckFault {}

fn cycles(program: &Expanded, mapping: &Mapping) -> u64 {
    program.phases.iter().map(|phase| u64::from(exchange::bound(&moved(phase, mapping), program.pairs))).sum()
}

/// A problem of the identity mapping with every tile replaced.
fn moved(phase: &Problem, mapping: &Mapping) -> Problem {
    let place = |place: &Place| Place { tile: mapping.tiles[place.tile.index()], ..*place };
    let transfer = |transfer: &Transfer| Transfer {
        source: place(&transfer.source),
        words: transfer.words,
        destinations: transfer.destinations.iter().map(place).collect(),
    };
    Problem { transfers: phase.transfers.iter().map(transfer).collect(), serial: phase.serial.clone() }
}

/// Largest endpoint load of every phase, summed. The same under every mapping.
fn pressure(program: &Expanded) -> u64 {
    program.phases.iter().map(largest_load).sum()
}

/// The largest number of words one tile sends or receives.
pub(crate) fn largest_load(phase: &Problem) -> u64 {
    let (mut sent, mut received) = (BTreeMap::<_, u64>::new(), BTreeMap::<_, u64>::new());
    for transfer in &phase.transfers {
        *sent.entry(transfer.source.tile).or_default() += u64::from(transfer.words);
        for destination in &transfer.destinations {
            *received.entry(destination.tile).or_default() += u64::from(transfer.words);
        }
    }
    sent.into_values().chain(received.into_values()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{RULES, check, named};
    use crate::layout::Layout;

    #[test]
    fn every_rule_gives_every_position_its_own_tile() {
        for tiles in (1..130).chain([1471, 1472]) {
            for rule in &RULES {
                assert_eq!(check(&Layout::on(tiles), &named(tiles, rule)), Ok(()), "{} on {tiles}", rule.0);
            }
        }
    }

    #[test]
    fn a_tile_with_two_positions_is_refused() {
        let mut mapping = named(4, &RULES[0]);
        mapping.tiles[3] = mapping.tiles[1];
        let fault = check(&Layout::on(4), &mapping).unwrap_err();
        assert_eq!(fault.to_string(), "positions 1 and 3 are both on tile TileId(1)");
    }
}
