//! The nearest layout that fits, for the message that the one asked for does not.
//!
//! Fields are released one at a time on as many tiles as asked for, then tiles are added, then both. Each layout is tried with
//! a search of its own that keeps the smallest partial plans instead of the fastest; a plan fits when its expansion does.

use super::{Search, State, phase_clocks};
use crate::axes::axes;
use crate::candidates::{Candidate, Context, demands};
use crate::clocks::Costs;
use crate::does_not_fit::Nearest;
use crate::expand::expand;
use crate::kernel_table::KernelTable;
use crate::layout::{Layout, PartialsChoice, WeightsMemory};
use crate::mapping::identity;
use crate::model::Model;
use crate::peaks::peaks;
use crate::plan_fault::Fault;

/// Partial plans kept after every operation.
const BEAM: usize = 3;
/// Candidates of an operation that are followed.
const FOLLOWED: usize = 8;
/// Layouts tried, all together.
const TRIES: u32 = 12;
/// Steps of [`more_tiles`] taken at once until a number fits: two octaves. Many tiles take seconds, few take milliseconds: with the
/// largest first, 24 tiles of a layer of 16 heads were answered in 4.7 s, with this in about 1 s.
const STRIDE: usize = 8;
/// Most tiles of a layout.
const TILES: u32 = ipu21::tile::COUNT as u32;

/// The fault with what the search did not know: the name of the operation, and the nearest layout that fits.
pub(super) fn completed(mut fault: Fault, model: &Model, layout: &Layout, kernels: &KernelTable, costs: &Costs) -> Fault {
    let found = || {
        let mut tries = Tries { model, kernels, costs, tried: 0 };
        let changes = tries.nearest(layout);
        Nearest { tried: tries.tried, changes }
    };
    match &mut fault {
        Fault::DoesNotFit(refusal) => {
            let operation = refusal.peaks.fullest.operation.and_then(|number| model.operations.get(number as usize));
            refusal.operation = operation.map_or_else(String::new, |operation| operation.name.clone());
            refusal.nearest = found();
        }
        Fault::KernelLimit { nearest, .. } => *nearest = found(),
        _ => {}
    }
    fault
}

/// A layout with the fields changed in it.
struct Changed {
    layout: Layout,
    changes: Vec<String>,
}

/// The layouts with one more field released, for every field that takes memory as it is set.
fn released(layout: &Layout) -> Vec<Changed> {
    let mut found = Vec::new();
    let mut add = |change: &str, layout: Layout| found.push(Changed { layout, changes: vec![change.to_owned()] });
    if layout.weights_memory == WeightsMemory::Interleaved {
        add("weights_memory = \"standard\"", Layout { weights_memory: WeightsMemory::Standard, ..layout.clone() });
    }
    if !layout.grids.is_empty() {
        add("grids = {}", Layout { grids: Default::default(), ..layout.clone() });
    }
    if layout.partials != PartialsChoice::F16 {
        add("partials = \"f16\"", Layout { partials: PartialsChoice::F16, ..layout.clone() });
    }
    found
}

/// All fields released at once.
fn all_released(layout: &Layout) -> Changed {
    let mut all = Changed { layout: layout.clone(), changes: Vec::new() };
    while let Some(next) = released(&all.layout).into_iter().next() {
        all.layout = next.layout;
        all.changes.extend(next.changes);
    }
    all
}

/// Numbers of tiles above one: four to an octave, and all.
fn more_tiles(above: u32) -> Vec<u32> {
    let octaves = (0..12).flat_map(|octave| [4, 5, 6, 7].map(|quarter| (quarter << octave) >> 2));
    let mut found: Vec<u32> = octaves.chain([TILES]).filter(|tiles| *tiles > above && *tiles <= TILES).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// What is tried, and how often.
struct Tries<'a> {
    model: &'a Model,
    kernels: &'a KernelTable,
    costs: &'a Costs,
    tried: u32,
}

impl Tries<'_> {
    fn nearest(&mut self, layout: &Layout) -> Option<Vec<String>> {
        for changed in released(layout) {
            if self.fits(&changed.layout) {
                return Some(changed.changes);
            }
        }
        let asked = Changed { layout: layout.clone(), changes: Vec::new() };
        self.with_tiles(&asked).or_else(|| {
            let all = all_released(layout);
            if all.changes.is_empty() { None } else { self.with_tiles(&all) }
        })
    }

    /// The layout on the fewest tiles that fit, by steps and then bisection: what fits is taken to fit on more tiles too.
    fn with_tiles(&mut self, from: &Changed) -> Option<Vec<String>> {
        let all = more_tiles(from.layout.tiles);
        let (mut left, mut fewest) = all.chunks(STRIDE).find_map(|chunk| {
            let (last, before) = chunk.split_last()?;
            self.fits_on(from, *last).then_some((before, *last))
        })?;
        while !left.is_empty() {
            let (before, behind) = left.split_at(left.len() / 2);
            if self.fits_on(from, behind[0]) {
                (left, fewest) = (before, behind[0]);
            } else {
                left = &behind[1..];
            }
        }
        Some(std::iter::once(format!("tiles = {fewest}")).chain(from.changes.iter().cloned()).collect())
    }

    fn fits_on(&mut self, from: &Changed, tiles: u32) -> bool {
        self.fits(&Layout { tiles, ..from.layout.clone() })
    }

    /// A plan of this layout was found whose expansion fits.
    fn fits(&mut self, layout: &Layout) -> bool {
        if self.tried == TRIES {
            return false;
        }
        self.tried += 1;
        self.smallest(layout).is_ok_and(|found| found)
    }

    fn smallest(&self, layout: &Layout) -> Result<bool, Fault> {
        let Self { model, kernels, costs, .. } = *self;
        let axes = axes(model).map_err(|mut faults| faults.remove(0))?;
        let demands = demands(model);
        let context = Context { model, layout, kernels, axes: &axes, demands: &demands, phase: phase_clocks(costs) };
        let search = Search { model, layout, kernels, costs, axes: &axes, demands: &demands };
        let mut beam = vec![State::new(layout)];
        for (number, operation) in (0u32..).zip(&model.operations) {
            let candidates = followed(context.of(number)?);
            beam = beam.iter().flat_map(|state| search.after(state, &candidates, operation.result).1).collect();
            beam.sort_by_cached_key(|state| (state.peak, state.cost()));
            beam.dedup_by(|one, other| one.shape == other.shape);
            beam.truncate(BEAM);
        }
        for state in beam {
            let plan = super::anywhere(model, layout, state.plan(layout, &axes));
            let program = expand(model, &plan, &identity(layout.tiles), kernels, &[])?;
            if peaks(&program).fit() && program.variants.iter().all(|variant| kernels.accepts(variant).is_ok()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The candidates that need least memory, of every demand on the operands' orders.
fn followed(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates
        .sort_by_key(|candidate| candidate.working_bytes + candidate.result_bytes + candidate.resident_bytes + candidate.gathered_bytes());
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        let orders = |candidate: &Candidate| candidate.wanted.iter().map(|wanted| wanted.order).collect::<Vec<_>>();
        let is_new = kept.iter().all(|other| orders(other) != orders(&candidate));
        if kept.len() < FOLLOWED || is_new {
            kept.push(candidate);
        }
    }
    kept
}
