//! Finds the best operator plans: a beam search over the grids of all operations.
//!
//! In: model, layout, kernel table, machine costs. Out: [`Finalists`], the best distinct plans with their estimates, best first.
//! Operations are planned in order; a partial plan is priced by kernel models and words received or sent. The best whole
//! plans are expanded under the identity mapping, priced again with the route bounds of their phases and held against the
//! memory of a tile. All work is counted, none is timed.

mod nearest;

use std::collections::{BTreeMap, BTreeSet};

use exchange::Problem;
use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};

use crate::axes::axes;
use crate::candidates::{Candidate, Context, Demand, TRANSFERS_A_CLOCK, Wanted, demands};
use crate::clocks::Costs;
use crate::does_not_fit::{DoesNotFit, Nearest};
use crate::expand::expand;
use crate::kernel_table::KernelTable;
use crate::layout::{Layout, Scaling, WeightsMemory};
use crate::mapping::identity;
use crate::merging::merged;
use crate::model::{Kind, Model, Source, ValueId};
use crate::peaks::{MEMORY, Peaks, RESERVED, ROOMY, peaks};
use crate::plan::{AttentionPlan, Cuts, Form, InputPlan, OperationPlan, PANEL, Plan};
use crate::plan_fault::Fault;
use crate::program::{ColumnAxis, Order, Variant};
use crate::selected::modelled;
use crate::spread::{Threads, spread};

/// Partial plans kept after every operation.
const BEAM: usize = 24;
/// Whole plans expanded on few tiles; fewer on many.
const EXPANDED: usize = 12;
/// Whole plans kept besides the best, each of a structure that none of those has.
const OTHER_STRUCTURES: usize = 2;
/// Partial plans kept that differ only in the positions used.
const SAME_SHAPE: usize = 2;
/// Latency of a phase besides its words, for the screening of partial plans.
const ROUTE: u64 = 100;

/// Clocks of a phase besides its words.
fn phase_clocks(costs: &Costs) -> u64 {
    costs.internal_empty_phase + ROUTE
}

/// A plan and what is expected of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finalist {
    /// The plan.
    pub plan: Plan,
    /// Clocks by kernel models and route bounds under the identity mapping.
    pub estimated_cycles: u64,
    /// Part of it spent in phases.
    pub estimated_exchange_cycles: u64,
    /// Memory on the fullest tile.
    pub peaks: Peaks,
    /// Bytes of the largest row of every phase by the sizes of its controls, summed (machine.md c.9).
    pub row_bytes: u64,
    /// Positions used, by operation; 0 for views.
    pub active_tiles: Vec<u32>,
}

/// The plans kept and figures of the search, for the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finalists {
    /// Best first, distinct, at least one.
    pub plans: Vec<Finalist>,
    /// Values of the model.
    pub values: u32,
    /// Operations of the model.
    pub operations: u32,
    /// Values whose columns are padded in more than one group.
    pub padding_groups: u32,
    /// Names of values that are turned or computed twice because two orders are wanted.
    pub conversion_sources: Vec<String>,
    /// Partial plans priced.
    pub considered: u64,
}

/// Plans a model on the first `layout.tiles` tiles, on `threads`.
///
/// # Errors
/// Grids or checkpoints that name no such operation, splits that contradict each other, kernels that are missing, and
/// `does not fit` with the figures of the smallest plan seen.
pub fn finalists(
    model: &Model,
    layout: &Layout,
    kernels: &KernelTable,
    costs: &Costs,
    checkpoints: &[u32],
    threads: &Threads,
) -> Result<Finalists, Vec<Fault>> {
    check_names(model, layout, checkpoints)?;
    let axes = axes(model)?;
    let demands = demands(model);
    let completed = |fault| vec![nearest::completed(fault, model, layout, kernels, costs)];
    let (found, considered) = search(model, layout, kernels, costs, &axes, &demands, threads).map_err(completed)?;
    let whole: Vec<_> = found.into_iter().map(|state| state.plan(layout, &axes)).collect();
    let plans = judge(whole, layout, threads, |plan| judged_plan(model, layout, kernels, costs, plan));
    let plans = plans.map_err(completed)?;
    let padded = axes.iter().filter(|axis| axis.parts > 1 && axis.width != axis.padded).count();
    Ok(Finalists {
        conversion_sources: conversion_sources(model, &demands),
        plans,
        values: u32::try_from(model.values.len()).unwrap_or(u32::MAX),
        operations: u32::try_from(model.operations.len()).unwrap_or(u32::MAX),
        padding_groups: u32::try_from(padded).unwrap_or(u32::MAX),
        considered,
    })
}

fn conversion_sources(model: &Model, demands: &[Demand]) -> Vec<String> {
    let both = model.values.iter().zip(demands).filter(|(_, demand)| demand.by_column && demand.by_row);
    both.map(|(value, _)| value.name.clone()).collect()
}

/// Layout grids and checkpoints name operations that have such a thing.
fn check_names(model: &Model, layout: &Layout, checkpoints: &[u32]) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    let possible: Vec<_> = model.computed().collect();
    for operation in checkpoints.iter().filter(|number| !possible.contains(number)) {
        faults.push(Fault::Checkpoint { operation: *operation, possible: possible.clone() });
    }
    for (name, grid) in &layout.grids {
        let names = || possible.iter().map(|number| model.operations[*number as usize].name.as_str()).collect::<Vec<_>>().join(", ");
        let Some(operation) = model.operations.iter().find(|operation| &operation.name == name) else {
            faults.push(Fault::GridField { field: format!("grids.{name}"), expected: format!("an operation: {}", names()) });
            continue;
        };
        let wrong: &[(&str, bool)] = match operation.kind {
            Kind::Product { .. } => &[
                ("heads", grid.heads.is_some()),
                ("queries", grid.queries.is_some()),
                ("keys", grid.keys.is_some()),
                ("packing", grid.packing.is_some()),
                ("scaling", grid.scaling.is_some()),
            ],
            Kind::Attention { .. } => &[
                ("rows", grid.rows.is_some()),
                ("columns", grid.columns.is_some()),
                ("inner", grid.inner.is_some()),
                ("pieces", grid.pieces.is_some()),
                ("staged", grid.staged.is_some()),
                ("orientation", grid.orientation.is_some()),
            ],
            Kind::Split { .. } => &[("", true)],
        };
        for (field, _) in wrong.iter().filter(|(_, present)| *present) {
            let expected = match operation.kind {
                Kind::Product { .. } => {
                    "rows, columns, inner, pieces, staged, orientation, row_unit, partials or weights_memory".to_owned()
                }
                Kind::Attention { .. } => "heads, queries, keys, packing, scaling, row_unit, partials or weights_memory".to_owned(),
                Kind::Split { .. } => format!("an operation with a grid: {}", names()),
            };
            let field = if field.is_empty() { format!("grids.{name}") } else { format!("grids.{name}.{field}") };
            faults.push(Fault::GridField { field, expected });
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Where a value lies, as far as the screening needs to know.
#[derive(Clone, Debug)]
struct Home {
    orders: Vec<Order>,
    /// Cuts and first position of a row-major grid; none: cut in another way.
    grid: Option<(Cuts, Cuts, u32)>,
    /// First position and number of positions with a piece.
    on: (u32, u32),
    /// Words of the largest piece.
    words: u64,
}

/// A partial plan.
#[derive(Clone, Debug)]
struct State {
    operations: Vec<OperationPlan>,
    /// The same, all from position 0 on.
    shape: Vec<OperationPlan>,
    inputs: BTreeMap<ValueId, InputPlan>,
    homes: BTreeMap<ValueId, Home>,
    /// What has been gathered on which grid: value, order, cuts, first position.
    gathered: Vec<(ValueId, Order, Cuts, Cuts, u32)>,
    /// Clocks up to the last phase.
    clocks: u64,
    /// Clocks of every position since then.
    load: Vec<u64>,
    /// Position behind the last one used.
    next: u32,
    resident: u64,
    peak: u64,
}

impl State {
    fn new(layout: &Layout) -> Self {
        Self {
            operations: Vec::new(),
            shape: Vec::new(),
            inputs: BTreeMap::new(),
            homes: BTreeMap::new(),
            gathered: Vec::new(),
            clocks: 0,
            load: vec![0; layout.tiles as usize],
            next: 0,
            resident: 0,
            peak: 0,
        }
    }

    fn cost(&self) -> u64 {
        self.clocks + self.load.iter().copied().max().unwrap_or(0)
    }

    fn fits(&self) -> bool {
        self.peak + RESERVED <= MEMORY
    }

    fn plan(self, layout: &Layout, axes: &[ColumnAxis]) -> Plan {
        Plan {
            tiles: layout.tiles,
            axes: axes.to_vec(),
            inputs: self.inputs.into_values().collect(),
            operations: self.operations,
            merged: false,
            pairs: layout.pairs,
        }
    }

    /// A phase in which the busiest tile moves so many words.
    fn phase(&mut self, words: u64, costs: &Costs) {
        self.clocks = self.cost() + phase_clocks(costs) + words;
        self.load.fill(0);
    }

    fn spend(&mut self, first: u32, positions: u32, clocks: u64) {
        let tiles = u32::try_from(self.load.len()).unwrap_or(u32::MAX);
        for offset in 0..positions {
            self.load[((first + offset) % tiles) as usize] += clocks;
        }
    }

    fn is_local(&self, wanted: &Wanted, first: u32) -> bool {
        let known = (wanted.value, wanted.order, wanted.rows, wanted.columns, first);
        if self.gathered.contains(&known) {
            return true;
        }
        let Some(Home { grid: Some((rows, columns, home_first)), .. }) = self.homes.get(&wanted.value) else { return false };
        wanted.spread && *home_first == first && same_borders(rows, &wanted.rows) && same_borders(columns, &wanted.columns)
    }
}

fn same_borders(one: &Cuts, other: &Cuts) -> bool {
    one.extent == other.extent && one.parts == other.parts && (0..one.parts).all(|part| one.part(part) == other.part(part))
}

/// Everything the search reads.
struct Search<'a> {
    model: &'a Model,
    layout: &'a Layout,
    kernels: &'a KernelTable,
    costs: &'a Costs,
    axes: &'a [ColumnAxis],
    demands: &'a [Demand],
}

fn search(
    model: &Model,
    layout: &Layout,
    kernels: &KernelTable,
    costs: &Costs,
    axes: &[ColumnAxis],
    demands: &[Demand],
    threads: &Threads,
) -> Result<(Vec<State>, u64), Fault> {
    let mut considered = 0;
    let context = Context { model, layout, kernels, axes, demands, phase: phase_clocks(costs) };
    let search = Search { model, layout, kernels, costs, axes, demands };
    let mut beam = vec![State::new(layout)];
    for (number, operation) in (0u32..).zip(&model.operations) {
        let candidates = context.of(number)?;
        let next = spread(&beam, threads, |state| search.after(state, &candidates, operation.result));
        considered += next.iter().map(|(considered, _)| considered).sum::<u64>();
        beam = kept(next.into_iter().flat_map(|(_, states)| states).collect());
        if beam.is_empty() {
            let reason = "none of its plans takes its operands in an order that the operations before it leave them in".to_owned();
            return Err(Fault::Grid { operation: operation.name.clone(), reason });
        }
    }
    Ok((beam, considered))
}

/// The cheapest that fit, then the smallest.
fn kept(mut states: Vec<State>) -> Vec<State> {
    states.sort_by_cached_key(|state| if state.fits() { (false, state.cost(), state.peak) } else { (true, state.peak, state.cost()) });
    let roomy = states.iter().find(|state| state.peak <= ROOMY).cloned();
    let smallest = states.iter().min_by_key(|state| (state.peak, state.cost())).cloned();
    states = varied(states);
    // One plan that is placed easily and one small plan stay whatever they cost, so that tight memory does not leave the beam
    // empty-handed.
    for spare in roomy.into_iter().chain(smallest) {
        if states.iter().all(|state| state.operations != spare.operations) {
            states.push(spare);
        }
    }
    states
}

/// The first states of a sorted list, few of every shape.
fn varied(states: Vec<State>) -> Vec<State> {
    let mut kept: Vec<State> = Vec::new();
    for state in states {
        if kept.len() == BEAM {
            break;
        }
        if kept.iter().filter(|other| other.shape == state.shape).count() < SAME_SHAPE {
            kept.push(state);
        }
    }
    kept
}

impl Search<'_> {
    /// The states after one more operation, and how many were considered.
    fn after(&self, state: &State, candidates: &[Candidate], result: ValueId) -> (u64, Vec<State>) {
        let (mut considered, mut states) = (0, Vec::new());
        for candidate in candidates {
            for first in self.firsts(state, candidate) {
                considered += 1;
                states.extend(self.extended(state, candidate, first, result));
            }
        }
        (considered, states)
    }

    /// Start positions worth trying: the beginning, and behind the operation before while tiles are free.
    fn firsts(&self, state: &State, candidate: &Candidate) -> Vec<u32> {
        let mut firsts = vec![0];
        if candidate.positions > 0 && candidate.positions < self.layout.tiles && !state.next.is_multiple_of(self.layout.tiles) {
            firsts.push(state.next % self.layout.tiles);
        }
        firsts
    }

    /// The state after one more operation; none when the candidate does not go with what is kept.
    fn extended(&self, state: &State, candidate: &Candidate, first: u32, result: ValueId) -> Option<State> {
        if let OperationPlan::Attention(attention) = &candidate.plan {
            let values = candidate.wanted.last()?.value;
            let by_row = match state.homes.get(&values) {
                Some(home) => home.orders.contains(&Order::ByRow),
                None => !self.demands[values.index()].by_column,
            };
            if attention.values_transposed == by_row {
                return None;
            }
        }
        let mut next = state.clone();
        let scaled_words = self.scale(&mut next, candidate)?;
        let words = self.gather(&mut next, candidate, first);
        if words > 0 {
            let more = u64::from(candidate.pieces - 1) * phase_clocks(self.costs);
            next.phase(words + more, self.costs);
        }
        next.spend(first, candidate.positions, candidate.clocks - if scaled_words > 0 { candidate.scaling } else { 0 });
        if candidate.merge_words > 0 {
            next.phase(candidate.merge_cost(), self.costs);
            next.spend(first, candidate.positions, candidate.merge_clocks);
        }
        next.resident += candidate.resident_bytes;
        let gathered = next.gathered.iter().filter(|(value, ..)| candidate.wanted.iter().any(|wanted| wanted.value == *value)).count();
        let is_gathered = gathered > 0 || candidate.pieces > 1 || candidate.staged_words > 0;
        let operands = if is_gathered { candidate.gathered_bytes() } else { 0 };
        let kept: u64 = candidate.wanted.iter().filter_map(|wanted| next.homes.get(&wanted.value)).map(|home| 2 * home.words).sum();
        let alive = next.resident + operands + 2 * kept + 4 * scaled_words + candidate.working_bytes + candidate.result_bytes;
        next.peak = next.peak.max(alive);
        if candidate.positions > 0 {
            next.next = first + candidate.positions;
            next.homes.insert(result, self.home(&candidate.plan, first, result));
        }
        let plan = scaled(&candidate.plan, scaled_words > 0);
        next.operations.push(placed(&plan, first));
        next.shape.push(plan);
        Some(next)
    }

    /// Scales the queries where they lie if that is asked or takes less than it saves in the softmax; words on the fullest tile, else 0.
    /// `None` when what is asked cannot be done.
    fn scale(&self, state: &mut State, candidate: &Candidate) -> Option<u64> {
        let home = candidate.wanted.first().filter(|_| candidate.scaling > 0).and_then(|queries| state.homes.get(&queries.value));
        let is_asked = candidate.scaling_asked == Some(Scaling::Queries);
        let Some(&Home { on: (first, positions), words, .. }) = home.filter(|_| candidate.scaling_asked != Some(Scaling::Scores)) else {
            return if is_asked { None } else { Some(0) };
        };
        let parameters = [("BYTES", 4 * words as i64), ("SCALE", 0)].map(|(name, value)| (name.to_owned(), value)).into();
        let clocks = self.kernels.modelled_clocks(&Variant { kernel: "scale".to_owned(), parameters });
        match clocks {
            Ok(clocks) if is_asked || clocks < candidate.scaling => {
                state.spend(first, positions, clocks);
                Some(words)
            }
            Err(_) if is_asked => None,
            _ => Some(0),
        }
    }

    /// Words of the busiest tile in the phase that brings what is not local; places inputs met for the first time.
    fn gather(&self, state: &mut State, candidate: &Candidate, first: u32) -> u64 {
        let (mut received, mut sent) = (0, 0);
        for wanted in &candidate.wanted {
            if !state.homes.contains_key(&wanted.value) && self.model.value(wanted.value).source == Source::Input {
                self.place_input(state, wanted, first);
            }
            if !state.is_local(wanted, first) {
                received += wanted.words;
                sent += state.homes.get(&wanted.value).map_or(0, |home| home.words);
                // What comes in pieces is not there as a whole.
                if candidate.pieces == 1 {
                    state.gathered.push((wanted.value, wanted.order, wanted.rows, wanted.columns, first));
                }
            }
        }
        (received + candidate.staged_words).max(sent)
    }

    /// Puts an input where its first reader wants it; when several positions want the same part, its panels are dealt out
    /// among tiles, so that every piece is one run of bytes on both sides.
    fn place_input(&self, state: &mut State, wanted: &Wanted, first: u32) {
        let demand = self.demands[wanted.value.index()];
        let order = if demand.by_column { Order::ByColumn } else { Order::ByRow };
        let dealt = |cuts: Cuts, others: Cuts| Cuts::new(cuts.extent, self.layout.tiles / others.parts, PANEL);
        let (rows, columns) = match order {
            _ if wanted.spread && wanted.order == order => (wanted.rows, wanted.columns),
            Order::ByColumn => (wanted.rows, dealt(wanted.columns, wanted.rows)),
            Order::ByRow => (dealt(wanted.rows, wanted.columns), wanted.columns),
        };
        let words = u64::from(rows.largest()) * u64::from(columns.largest()) / 2;
        state.inputs.insert(wanted.value, InputPlan { value: wanted.value, order, rows, columns, first });
        state.homes.insert(
            wanted.value,
            Home { orders: vec![order], grid: Some((rows, columns, first)), on: (first, rows.parts * columns.parts), words },
        );
    }

    fn home(&self, plan: &OperationPlan, first: u32, result: ValueId) -> Home {
        let axis = self.axes[result.index()];
        let width = axis.parts * axis.padded;
        match plan {
            OperationPlan::View => Home { orders: Vec::new(), grid: None, on: (0, 0), words: 0 },
            OperationPlan::Product(product) => Home {
                orders: product.forms.iter().map(|form| form.order()).collect(),
                on: (first, product.positions()),
                grid: (product.inner.parts == 1).then_some((product.rows, product.columns, first)),
                words: u64::from(product.rows.largest().div_ceil(product.inner.parts)) * u64::from(product.columns.largest()) / 2,
            },
            OperationPlan::Attention(attention) => {
                let columns = Cuts::new(width, attention.heads.parts, width / attention.heads.extent);
                let rows = attention.queries.largest().div_ceil(attention.keys.parts);
                let is_grid = attention.keys.parts == 1 && (attention.heads.parts == 1 || attention.queries.parts == 1);
                Home {
                    orders: vec![Order::ByColumn],
                    on: (first, attention.heads.parts * attention.queries.parts * attention.keys.parts),
                    grid: is_grid.then_some((attention.queries, columns, first)),
                    words: u64::from(rows) * u64::from(columns.largest()) / 2,
                }
            }
        }
    }
}

fn scaled(plan: &OperationPlan, queries_scaled: bool) -> OperationPlan {
    match plan.clone() {
        OperationPlan::Attention(attention) => OperationPlan::Attention(AttentionPlan { queries_scaled, ..attention }),
        other => other,
    }
}

fn placed(plan: &OperationPlan, first: u32) -> OperationPlan {
    match plan.clone() {
        OperationPlan::View => OperationPlan::View,
        OperationPlan::Product(product) => OperationPlan::Product(crate::plan::ProductPlan { first, ..product }),
        OperationPlan::Attention(attention) => OperationPlan::Attention(AttentionPlan { first, ..attention }),
    }
}

/// Prices whole plans exactly and keeps the best that fit.
fn judge(
    plans: Vec<Plan>,
    layout: &Layout,
    threads: &Threads,
    price: impl Fn(Plan) -> Result<Judged, Fault> + Sync,
) -> Result<Vec<Finalist>, Fault> {
    let most = if layout.tiles > 256 { EXPANDED / 2 } else { EXPANDED };
    let mut judged: Vec<(u64, Finalist)> = Vec::new();
    let mut smallest: Option<Peaks> = None;
    let mut refused = None;
    let mut rest = plans;
    let first: Vec<Plan> = rest.drain(..most.min(rest.len())).collect();
    let mut priced = spread(&first, threads, |plan| price(plan.clone())).into_iter();
    let mut rest = rest.into_iter();
    let is_roomy = |judged: &[(u64, Finalist)]| judged.iter().any(|(_, finalist)| finalist.peaks.roomy());
    // Of those behind the first ones as many as it takes to find one that fits, easily.
    while let Some(next) = priced.next().or_else(|| if is_roomy(&judged) { None } else { rest.next().map(&price) }) {
        match next {
            Ok(Judged::Fits { rank, finalist }) => judged.push((rank, finalist)),
            Ok(Judged::TooLarge(peaks)) => {
                let is_smaller = smallest.as_ref().is_none_or(|known| peaks.total < known.total);
                smallest = if is_smaller { Some(peaks) } else { smallest };
            }
            Err(fault) => refused = Some(fault),
        }
    }
    judged.sort_by(|(a, one), (b, other)| (a, &one.plan).cmp(&(b, &other.plan)));
    let mut shapes = BTreeSet::new();
    judged.retain(|(_, finalist)| shapes.insert(shape(&finalist.plan)));
    let count = layout.finalists as usize;
    // Tight ones may all fail at placement.
    if count > 1 && judged.len() > count && !is_roomy(&judged[..count]) {
        let roomy = judged.iter().position(|(_, finalist)| finalist.peaks.roomy());
        let smallest = || (0..judged.len()).min_by_key(|index| judged[*index].1.peaks.total).unwrap_or(0);
        let spare = roomy.unwrap_or_else(smallest);
        if spare >= count {
            judged.swap(count - 1, spare);
        }
    }
    keep_varied(&mut judged, count);
    match (judged.is_empty(), smallest, refused) {
        (false, ..) => Ok(judged.into_iter().map(|(_, finalist)| finalist).collect()),
        (true, Some(peaks), _) => Err(does_not_fit(&peaks)),
        (true, None, Some(fault)) => Err(fault),
        (true, None, None) => unreachable!("the search gives at least one plan"),
    }
}

/// The first `count`, and of those behind them the first of every other structure, unless one plan alone is wanted.
fn keep_varied(judged: &mut Vec<(u64, Finalist)>, count: usize) {
    let rest = judged.split_off(count.min(judged.len()));
    let most = if count > 1 { judged.len() + OTHER_STRUCTURES } else { judged.len() };
    for candidate in rest {
        let structure = structure(&candidate.1.plan);
        if judged.len() < most && judged.iter().all(|(_, kept)| self::structure(&kept.plan) != structure) {
            judged.push(candidate);
        }
    }
}

/// How a plan goes about its operations, whatever the grids: the forms of results, what is merged, staged and taken in pieces.
fn structure(plan: &Plan) -> Vec<(Vec<Form>, [bool; 3])> {
    let of = |operation: &OperationPlan| match operation {
        OperationPlan::View => (Vec::new(), [false; 3]),
        OperationPlan::Product(product) => (product.forms.clone(), [product.inner.parts > 1, product.pieces > 1, product.staged]),
        OperationPlan::Attention(attention) => {
            (Vec::new(), [attention.keys.parts > 1, attention.queries.parts > 1, attention.values_transposed])
        }
    };
    plan.operations.iter().map(of).collect()
}

fn does_not_fit(peaks: &Peaks) -> Fault {
    Fault::DoesNotFit(Box::new(DoesNotFit { peaks: peaks.clone(), operation: String::new(), nearest: Nearest::default() }))
}

/// The operations of a plan, wherever they start.
fn shape(plan: &Plan) -> Vec<OperationPlan> {
    plan.operations.iter().map(|operation| placed(operation, 0)).collect()
}

enum Judged {
    /// `rank`: estimated clocks and the weight of the transfers.
    Fits {
        rank: u64,
        finalist: Finalist,
    },
    TooLarge(Peaks),
}

/// Expands a plan; one that does not fit is tried again with its stationary operands anywhere. Phases are merged unless memory becomes
/// scarce by that.
fn judged_plan(model: &Model, layout: &Layout, kernels: &KernelTable, costs: &Costs, plan: Plan) -> Result<Judged, Fault> {
    let mut program = expand(model, &plan, &identity(layout.tiles), kernels, &[])?;
    let mut plan = plan;
    let mut peak = peaks(&program);
    if !peak.fit() {
        plan = anywhere(model, layout, plan);
        program = expand(model, &plan, &identity(layout.tiles), kernels, &[])?;
        peak = peaks(&program);
    }
    if !peak.fit() {
        return Ok(Judged::TooLarge(peak));
    }
    if let Some(merged) = merged(&program, kernels)? {
        let peak_merged = peaks(&merged);
        if peak_merged.roomy() || (peak_merged.fit() && !peak.roomy()) {
            (program, peak, plan.merged) = (merged, peak_merged, true);
        }
    }
    let clocks = modelled(&program, kernels, costs)?;
    let transfers: u64 = program.phases.iter().map(|phase| phase.transfers.len() as u64).sum();
    let finalist = Finalist {
        active_tiles: active_tiles(&plan),
        plan,
        estimated_cycles: clocks.total,
        estimated_exchange_cycles: clocks.exchange,
        peaks: peak,
        row_bytes: program.phases.iter().map(row_bytes).sum(),
    };
    Ok(Judged::Fits { rank: clocks.total + transfers / TRANSFERS_A_CLOCK, finalist })
}

/// Bytes of the largest row of a phase: about two words a send, four a receipt, eight besides.
fn row_bytes(phase: &Problem) -> u64 {
    let mut words = BTreeMap::<TileId, u64>::new();
    for transfer in &phase.transfers {
        *words.entry(transfer.source.tile).or_insert(8) += 2;
        for place in &transfer.destinations {
            *words.entry(place.tile).or_insert(8) += 4;
        }
    }
    4 * words.into_values().max().unwrap_or(0)
}

/// The plan with stationary operands anywhere, where the layout leaves that open.
fn anywhere(model: &Model, layout: &Layout, mut plan: Plan) -> Plan {
    let is_open = |name: &str| layout.grid(name).weights_memory == Some(WeightsMemory::Auto);
    for (_, planned) in model.operations.iter().zip(&mut plan.operations).filter(|(operation, _)| is_open(&operation.name)) {
        match planned {
            OperationPlan::View => {}
            OperationPlan::Product(product) => product.interleaved = false,
            OperationPlan::Attention(attention) => attention.interleaved = false,
        }
    }
    plan
}

fn active_tiles(plan: &Plan) -> Vec<u32> {
    let positions = |operation: &OperationPlan| match operation {
        OperationPlan::View => 0,
        OperationPlan::Product(product) => product.positions(),
        OperationPlan::Attention(attention) => attention.heads.parts * attention.queries.parts * attention.keys.parts,
    };
    plan.operations.iter().map(positions).collect()
}
