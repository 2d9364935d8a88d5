//! Clocks of a run from the watched program points.

use std::collections::BTreeMap;

use ipu21::tile::PhysTile;
use package::{Package, Point, StepKind};
use simulator::{Chip, WatchHit};

/// Clocks of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepClocks {
    /// Name of the step.
    pub name: String,
    /// Operation it serves.
    pub operation: Option<u32>,
    /// Kind.
    pub kind: StepKind,
    /// Clocks the plan gave it.
    pub planned: u64,
    /// Clocks by which the latest tile moved on: latest end less latest start. The steps add up to the whole run.
    pub simulated: u64,
    /// Clocks of the tile that spent most in it, waiting included.
    pub longest: u64,
}

/// Clocks of a program: from the first instruction after the last host input phase to the last one before the first host output
/// phase, without checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Maximum over the tiles.
    pub total: u64,
    /// In program order.
    pub steps: Vec<StepClocks>,
}

/// Watches the start of every step and the end of the last on every tile.
pub(crate) fn watch(package: &Package, chip: &mut Chip) {
    let mut points: Vec<(PhysTile, u32)> = Vec::new();
    for point in package.profile.steps.iter().flat_map(|step| &step.starts).chain(&package.profile.end) {
        if let Some(set) = package.tile_sets.get(point.tiles.0 as usize) {
            points.extend(set.0.iter().map(|tile| (*tile, point.address)));
        }
    }
    points.sort_unstable();
    points.dedup();
    points.into_iter().for_each(|(tile, address)| chip.watch(tile, address));
}

/// The clocks of a finished run.
pub(crate) fn clocks(package: &Package, hits: &[WatchHit]) -> Clocks {
    let passed: BTreeMap<(PhysTile, u32), u64> = hits.iter().map(|hit| ((hit.tile, hit.pc), hit.clock)).collect();
    let steps = &package.profile.steps;
    let columns: Vec<BTreeMap<PhysTile, u64>> =
        steps.iter().map(|step| &step.starts).chain([&package.profile.end]).map(|points| column(package, points, &passed)).collect();
    let mut totals: BTreeMap<PhysTile, u64> = BTreeMap::new();
    let mut clocks = Clocks::default();
    for (step, pair) in steps.iter().zip(columns.windows(2)) {
        let spent = |tile: &PhysTile| pair[1].get(tile).zip(pair[0].get(tile)).map_or(0, |(end, start)| end.saturating_sub(*start));
        if !matches!(step.kind, StepKind::Checkpoint { .. }) {
            pair[0].keys().for_each(|tile| *totals.entry(*tile).or_default() += spent(tile));
        }
        let latest = |column: &BTreeMap<PhysTile, u64>| column.values().copied().max().unwrap_or(0);
        clocks.steps.push(StepClocks {
            name: step.name.clone(),
            operation: step.operation,
            kind: step.kind,
            planned: step.planned_clocks,
            simulated: latest(&pair[1]).saturating_sub(latest(&pair[0])),
            longest: pair[0].keys().map(spent).max().unwrap_or(0),
        });
    }
    clocks.total = totals.into_values().max().unwrap_or(0);
    clocks
}

/// When each tile passed its point.
fn column(package: &Package, points: &[Point], passed: &BTreeMap<(PhysTile, u32), u64>) -> BTreeMap<PhysTile, u64> {
    let sets = points.iter().filter_map(|point| package.tile_sets.get(point.tiles.0 as usize).map(|set| (set, point.address)));
    let tiles = sets.flat_map(|(set, address)| set.0.iter().map(move |tile| (*tile, address)));
    tiles.filter_map(|(tile, address)| passed.get(&(tile, address)).map(|clock| (tile, *clock))).collect()
}
