//! The grids worth considering for one operation, each with its cost taken alone.
//!
//! Every kernel call of the largest piece is priced by the manifest's model, so a candidate's clocks are those of its
//! slowest tile. What the operands cost to gather depends on where they lie and is added by `finalists`.

use crate::kernel_table::KernelTable;
use crate::layout::{GridChoice, Layout, Packing, Partials, Scaling, WeightsMemory};
use crate::model::{Kind, Model, Source, ValueId};
use crate::peaks::{MEMORY, RESERVED};
use crate::plan::{AttentionPlan, Cuts, Form, OperationPlan, Orientation, PANEL, Plan, ProductPlan};
use crate::plan_fault::Fault;
use crate::program::{ColumnAxis, Order, Variant};

/// Candidates kept of one operation.
const KEPT: usize = 40;
/// Rows of a largest part from which on every part has the 25 that `gemm_add` takes at least: borders are multiples of 16 or less.
const ADDED_ROWS: u32 = 25 + PANEL;
/// Groups and pieces of inner channels that are tried.
const GROUPS: [u32; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
const PIECES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Bytes of operands and result of a position that let other ways be tried than having all of it there at once.
const LARGE_OPERANDS: u64 = 128 << 10;
/// Attention grids priced by kernel models, the best by a rough formula.
const PRICED: usize = 96;

/// Transfers that weigh as much as a clock: each takes controls on its tiles, words of their rows and work of the scheduler,
/// none of which the route bound sees.
pub(crate) const TRANSFERS_A_CLOCK: u64 = 16;

/// An operand that every position of a grid needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) value: ValueId,
    pub(crate) order: Order,
    /// Cuts of the rows over the grid.
    pub(crate) rows: Cuts,
    /// Cuts of the columns over the grid.
    pub(crate) columns: Cuts,
    /// Every part is wanted by exactly one position, in row-major order from the first.
    pub(crate) spread: bool,
    /// Words of the largest part.
    pub(crate) words: u64,
}

/// One way to cut an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) plan: OperationPlan,
    /// Positions of the grid.
    pub(crate) positions: u32,
    /// Clocks of the slowest position up to the merge.
    pub(crate) clocks: u64,
    /// Words one member of a team receives for the merge; 0: nothing is merged.
    pub(crate) merge_words: u64,
    /// Transfers of the merge, all teams together.
    pub(crate) merge_transfers: u64,
    /// Clocks of the slowest position from the merge on.
    pub(crate) merge_clocks: u64,
    pub(crate) wanted: Vec<Wanted>,
    /// Pieces in which all that is wanted comes, one phase each.
    pub(crate) pieces: u32,
    /// Words of weights that a position gathers.
    pub(crate) staged_words: u64,
    /// Bytes on a position that live to the end of the program: weights.
    pub(crate) resident_bytes: u64,
    /// Bytes on a position while the operation runs, without gathered operands and weights.
    pub(crate) working_bytes: u64,
    /// Bytes of the result.
    pub(crate) result_bytes: u64,
    /// What scaling queries before the gather takes off `clocks`; 0: nothing.
    pub(crate) scaling: u64,
    /// What the layout asks to be scaled.
    pub(crate) scaling_asked: Option<Scaling>,
}

impl Candidate {
    /// Words a position gathers when nothing is local.
    pub(crate) fn words(&self) -> u64 {
        self.wanted.iter().map(|wanted| wanted.words).sum::<u64>() + self.staged_words
    }

    /// Bytes of them that are there at once.
    pub(crate) fn gathered_bytes(&self) -> u64 {
        2 * self.words() / u64::from(self.pieces)
    }

    /// Words of the merge and the weight of its transfers.
    pub(crate) fn merge_cost(&self) -> u64 {
        self.merge_words + self.merge_transfers / TRANSFERS_A_CLOCK
    }
}

/// What the readers of a result want.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) by_column: bool,
    pub(crate) by_row: bool,
}

/// What the consumers of every value want, index = [`ValueId`].
pub(crate) fn demands(model: &Model) -> Vec<Demand> {
    let mut demands = vec![Demand::default(); model.values.len()];
    for operation in &model.operations {
        match operation.kind {
            Kind::Product { x, .. } => demands[x.index()].by_column = true,
            Kind::Split { .. } => {}
            Kind::Attention { queries, keys, values, .. } => {
                demands[queries.index()].by_column = true;
                demands[keys.index()].by_column = true;
                demands[values.index()].by_row = true;
            }
        }
    }
    demands
}

/// What candidates are made from.
pub(crate) struct Context<'a> {
    pub(crate) model: &'a Model,
    pub(crate) layout: &'a Layout,
    pub(crate) kernels: &'a KernelTable,
    pub(crate) axes: &'a [ColumnAxis],
    pub(crate) demands: &'a [Demand],
    /// Clocks of a phase besides its words.
    pub(crate) phase: u64,
}

impl Context<'_> {
    fn padded_columns(&self, value: ValueId) -> u32 {
        let axis = self.axes[value.index()];
        axis.parts * axis.padded
    }

    /// The width of partial sums of a chain of blocks.
    fn partials(&self, grid: &GridChoice, blocks: u32) -> Partials {
        grid.partials.unwrap_or_default().for_chain(blocks, self.layout.accuracy)
    }

    /// Clocks of a call, if the kernel can do it.
    fn clocks(&self, kernel: &str, parameters: &[(&str, u32)]) -> Result<u64, Fault> {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), i64::from(*value))).collect();
        self.kernels.modelled_clocks(&Variant { kernel: kernel.to_owned(), parameters })
    }

    fn multiply(&self, (partials, is_interleaved): (Partials, bool), sizes: [u32; 3]) -> Result<u64, Fault> {
        let kernel = match partials {
            Partials::F16 => "gemm",
            Partials::F32 => "gemm_f32",
        };
        self.clocks(kernel, &product_parameters(sizes, is_interleaved))
    }

    /// A product in pieces of `inner` channels, each added to those before it.
    fn multiply_pieces(&self, name: &str, plan: &ProductPlan, [rows, inner, columns]: [u32; 3]) -> Result<u64, Fault> {
        let first = self.multiply((plan.partials, plan.interleaved), [rows, inner, columns])?;
        if plan.pieces == 1 {
            return Ok(first);
        }
        if plan.partials == Partials::F32 || rows < ADDED_ROWS {
            let reason = format!("pieces need f16 partial sums and {ADDED_ROWS} streamed rows or more on a tile");
            return Err(Fault::Grid { operation: name.to_owned(), reason });
        }
        let mut parameters = product_parameters([rows, inner, columns], plan.interleaved).to_vec();
        parameters.push(("ADD", 1));
        Ok(first + u64::from(plan.pieces - 1) * self.clocks("gemm_add", &parameters)?)
    }

    fn transpose(&self, rows: u32, columns: u32) -> Result<u64, Fault> {
        let row = 2 * PANEL;
        let parameters = [("ROWS", rows), ("CG", columns / PANEL), ("SRC_PANEL", rows * row), ("DST_PANEL", columns * row)];
        self.clocks("transpose", &parameters)
    }

    /// The candidates of operation `number`, cheapest first.
    pub(crate) fn of(&self, number: u32) -> Result<Vec<Candidate>, Fault> {
        let operation = &self.model.operations[number as usize];
        let grid = self.layout.grid(&operation.name);
        match operation.kind {
            Kind::Split { .. } => Ok(vec![view()]),
            Kind::Product { x, bias, .. } => self.products(&operation.name, grid, x, operation.result, bias.is_some()),
            Kind::Attention { queries, keys, values, heads, scale } => {
                self.attentions(&operation.name, grid, [queries, keys, values], (heads, scale))
            }
        }
    }

    fn products(&self, name: &str, grid: GridChoice, x: ValueId, result: ValueId, bias: bool) -> Result<Vec<Candidate>, Fault> {
        let mut found = Vec::new();
        let mut refused = None;
        let rows = Plan::padded_rows(self.model, result);
        let columns = self.padded_columns(result);
        let is_asked = |forms: &Vec<Form>| grid.orientation.is_none_or(|asked| forms.iter().any(|form| form.orientation == asked));
        for forms in forms(self.demands[result.index()]).into_iter().filter(is_asked) {
            let unit = if forms == [STRAIGHT] { grid.row_unit.unwrap_or(1) } else { PANEL };
            for column_parts in chosen(grid.columns, columns / PANEL, self.layout.tiles) {
                for row_parts in chosen(grid.rows, rows / unit, self.layout.tiles / column_parts) {
                    let cuts = (Cuts::new(rows, row_parts, unit), Cuts::new(columns, column_parts, PANEL));
                    for plan in self.product_plans(grid, x, cuts, &forms) {
                        match self.product(name, plan, x, bias) {
                            Ok(candidate) => found.push(candidate),
                            Err(fault) => refused = Some(fault),
                        }
                    }
                }
            }
        }
        self.kept(name, found, refused)
    }

    /// The ways to take the inner channels on a grid of rows and columns: as a whole with weights where they are used; and where that
    /// is much for a tile, in groups and pieces, weights staged or not.
    fn product_plans(&self, grid: GridChoice, x: ValueId, (rows, columns): (Cuts, Cuts), forms: &[Form]) -> Vec<ProductPlan> {
        let inner = self.padded_columns(x);
        let plan = |groups: u32, pieces: u32, staged: bool| ProductPlan {
            rows,
            columns,
            inner: Cuts::new(inner, groups, PANEL),
            pieces,
            staged,
            first: 0,
            forms: forms.to_vec(),
            partials: self.partials(&grid, (inner / PANEL).div_ceil(groups)),
            interleaved: grid.weights_memory != Some(WeightsMemory::Standard),
        };
        let most = (self.layout.tiles / rows.parts / columns.parts).min(inner / PANEL);
        let is_large = |groups: u32| {
            let each = u64::from(inner / groups) * 2 * u64::from(rows.largest() + columns.largest());
            each + 2 * u64::from(rows.largest()) * u64::from(columns.largest()) > LARGE_OPERANDS
        };
        let mut plans = Vec::new();
        for groups in grid.inner.map_or_else(|| GROUPS.to_vec(), |asked| vec![asked]) {
            if groups > most || (groups > 1 && (forms != [STRAIGHT] || (!is_large(1) && grid.inner.is_none()))) {
                continue;
            }
            let pieces = match grid.pieces {
                Some(asked) => vec![asked],
                None if is_large(groups) => PIECES.to_vec(),
                None => vec![1],
            };
            for pieces in pieces.into_iter().filter(|pieces| *pieces <= inner / PANEL / groups) {
                let ways = match grid.staged {
                    Some(asked) => vec![asked],
                    None if is_large(groups) => vec![false, true],
                    None => vec![false],
                };
                plans.extend(ways.into_iter().map(|staged| plan(groups, pieces, staged)));
            }
        }
        plans
    }

    fn product(&self, name: &str, plan: ProductPlan, x: ValueId, bias: bool) -> Result<Candidate, Fault> {
        let inner = plan.inner.largest();
        let piece = Cuts::new(inner, plan.pieces, PANEL).largest();
        let (rows, columns) = (plan.rows.largest(), plan.columns.largest());
        let share = rows.div_ceil(plan.inner.parts);
        let groups = u64::from(plan.inner.parts);
        let is_shared = groups > 1;
        let (mut merge_words, mut merge_transfers, mut merge_clocks) = (0, 0, 0);
        let mut clocks = 0;
        let mut working = 0;
        let bytes = 2 * u64::from(rows) * u64::from(columns);
        for form in &plan.forms {
            let (streamed, kernel) = match form.orientation {
                Orientation::Straight => ((rows, columns), "bias_columns"),
                Orientation::Swapped => ((columns, rows), "bias_rows"),
            };
            clocks += self.multiply_pieces(name, &plan, [streamed.0, piece, streamed.1])?;
            if bias {
                let summed = if is_shared { share } else { streamed.0 };
                let parameters = [("ROWS", summed), ("CG", streamed.1 / PANEL), ("OUT_PANEL", summed * 2 * PANEL)];
                let adding = self.clocks(kernel, &parameters)?;
                if is_shared { merge_clocks += adding } else { clocks += adding }
            }
            if form.transposed {
                clocks += self.transpose(streamed.0, streamed.1)?;
                working += bytes;
            }
            working += if plan.partials == Partials::F32 { 64 * u64::from(streamed.0) } else { 0 };
        }
        if is_shared {
            let part = share * columns * 2;
            let copy =
                [("G", columns / PANEL), ("BYTES", share * 2 * PANEL), ("SRC_PANEL", rows * 2 * PANEL), ("DST_PANEL", share * 2 * PANEL)];
            clocks += self.clocks("copy_panels", &copy)?;
            merge_clocks += self.clocks("reduce", &[("PARTS", plan.inner.parts), ("BYTES", part)])?;
            merge_words = (groups - 1) * u64::from(part / 4);
            merge_transfers = u64::from(plan.positions()) * (groups - 1) * u64::from(columns / PANEL);
            working += bytes + u64::from(part) * (groups - 1);
        }
        let positions = plan.positions();
        let weights = u64::from(columns) * u64::from(inner);
        let resident = match plan.staged {
            true => 2 * u64::from(columns) * u64::from(plan.dealt(self.layout.tiles).largest()),
            false => 2 * weights,
        };
        let wanted = Wanted {
            value: x,
            order: Order::ByColumn,
            rows: plan.rows,
            columns: plan.inner,
            spread: plan.columns.parts == 1,
            words: u64::from(rows) * u64::from(inner) / 2,
        };
        Ok(Candidate {
            positions,
            clocks,
            merge_words,
            merge_transfers,
            merge_clocks,
            wanted: vec![wanted],
            pieces: plan.pieces,
            staged_words: if plan.staged { weights / 2 } else { 0 },
            resident_bytes: resident + 2 * u64::from(columns) * u64::from(bias),
            working_bytes: working,
            result_bytes: bytes * plan.forms.len() as u64 / groups,
            scaling: 0,
            scaling_asked: None,
            plan: OperationPlan::Product(plan),
        })
    }

    fn attentions(&self, name: &str, grid: GridChoice, values: [ValueId; 3], (heads, scale): (u32, f32)) -> Result<Vec<Candidate>, Fault> {
        let tiles = self.layout.tiles;
        let rows = Plan::padded_rows(self.model, values[0]);
        let keys = Plan::padded_rows(self.model, values[1]);
        let [q, k, v] = values;
        let is_made = self.model.value(q).source != Source::Input && q != k && q != v;
        if grid.scaling == Some(Scaling::Queries) && scale != 1.0 && !is_made {
            let reason = "queries that are an input, or keys or values too, cannot be scaled where they are made".to_owned();
            return Err(Fault::Grid { operation: name.to_owned(), reason });
        }
        let scaling_asked = grid.scaling.filter(|_| scale != 1.0);
        let unit = grid.row_unit.unwrap_or(1);
        let packings = match grid.packing {
            Some(asked) => vec![asked],
            None => vec![Packing::Producer, Packing::Consumer],
        };
        let mut grids = Vec::new();
        for head_parts in chosen(grid.heads, heads, tiles) {
            for query_parts in chosen(grid.queries, rows / unit, tiles / head_parts) {
                for key_parts in chosen(grid.keys, keys / PANEL, tiles / head_parts / query_parts) {
                    let cuts = [Cuts::new(heads, head_parts, 1), Cuts::new(rows, query_parts, unit), Cuts::new(keys, key_parts, PANEL)];
                    grids.push((self.rough(cuts, values), cuts));
                }
            }
        }
        grids.sort_unstable();
        grids.dedup();
        let mut found = Vec::new();
        let mut refused = None;
        for (_, [heads, queries, keys]) in grids.into_iter().take(PRICED) {
            for packing in &packings {
                let plan = AttentionPlan {
                    heads,
                    queries,
                    keys,
                    first: 0,
                    values_transposed: *packing == Packing::Consumer,
                    queries_scaled: false,
                    score_partials: self.partials(&grid, self.padded_columns(values[0]) / heads.extent / PANEL),
                    output_partials: self.partials(&grid, keys.largest() / PANEL),
                    interleaved: grid.weights_memory != Some(WeightsMemory::Standard),
                };
                match self.attention(plan, values, (scale, scaling_asked)) {
                    Ok(candidate) => found.push(candidate),
                    Err(fault) => refused = Some(fault),
                }
            }
        }
        self.kept(name, found, refused)
    }

    /// Clocks by counting slots, without fixed costs of kernels; good enough to leave out most grids.
    fn rough(&self, [heads, queries, keys]: [Cuts; 3], [q, _, v]: [ValueId; 3]) -> u64 {
        let [local, rows, keys_each] = [heads, queries, keys].map(|cuts| u64::from(cuts.largest()));
        let width = u64::from((self.padded_columns(q) + self.padded_columns(v)) / heads.extent);
        let blocks = keys_each / 16 * (width / 16);
        let compute = local * (blocks * (200 + 24 * rows.div_ceil(6)) + rows * keys_each * 13 / 8 + 20 * rows);
        let gather = local * width * (rows / 2 + keys_each) / 2;
        let members = u64::from(keys.parts);
        let transfers = u64::from(heads.extent) * u64::from(queries.parts) * members * members.min(rows) * (width / 32 + 1);
        let merge = if members > 1 { 1000 + local * rows * width / 2 + transfers / TRANSFERS_A_CLOCK } else { 0 };
        compute + gather + merge
    }

    fn attention(
        &self,
        plan: AttentionPlan,
        [q, k, v]: [ValueId; 3],
        (scale, scaling_asked): (f32, Option<Scaling>),
    ) -> Result<Candidate, Fault> {
        let [local, rows, keys] = [plan.heads, plan.queries, plan.keys].map(|cuts| cuts.largest());
        let width = self.padded_columns(q) / plan.heads.extent;
        let value_width = self.padded_columns(v) / plan.heads.extent;
        let panel = rows * 2 * PANEL;
        let mut each = self.multiply((plan.score_partials, plan.interleaved), [rows, width, keys])?;
        each += self.multiply((plan.output_partials, plan.interleaved), [rows, keys, value_width])?;
        let softmax = |scale: f32| {
            let parameters = [("ROWS", rows), ("KG", keys / PANEL), ("TAIL", 1), ("S_PANEL", panel), ("SCALE", scale.to_bits())];
            self.clocks("softmax", &parameters)
        };
        each += softmax(scale)?;
        let is_separate = q != k && q != v;
        let scaling = if is_separate { u64::from(local) * (softmax(scale)? - softmax(1.0)?) } else { 0 };
        let mut clocks = u64::from(local) * each;
        if plan.values_transposed {
            clocks += self.transpose(keys, local * value_width)?;
        }
        let groups = value_width / PANEL;
        let (mut merge_words, mut merge_transfers, mut merge_clocks) = (0, 0, 0);
        if plan.keys.parts > 1 {
            let share = rows.div_ceil(plan.keys.parts);
            let parameters = [("ROWS", share), ("CG", groups), ("PARTS", plan.keys.parts), ("OUT_PANEL", share * 2 * PANEL)];
            merge_clocks = u64::from(local) * self.clocks("merge", &parameters)?;
            let copy = [("G", groups), ("BYTES", share * 2 * PANEL), ("SRC_PANEL", panel), ("DST_PANEL", share * 2 * PANEL)];
            clocks += 2 * u64::from(local) * self.clocks("copy_panels", &copy)?;
            let teams = u64::from(plan.heads.extent) * u64::from(plan.queries.parts);
            merge_transfers = teams * u64::from(plan.keys.parts) * u64::from(plan.keys.parts.min(rows)) * u64::from(groups + 1);
            merge_words = u64::from(local) * u64::from(plan.keys.parts - 1) * u64::from(share) * u64::from(value_width / 2 + 2);
        } else {
            clocks += u64::from(local) * self.clocks("normalise", &[("ROWS", rows), ("CG", groups), ("O_PANEL", panel)])?;
        }
        let value_order = if plan.values_transposed { Order::ByColumn } else { Order::ByRow };
        let want = |value, order, cuts: Cuts, width: u32, spread: bool| Wanted {
            value,
            order,
            rows: cuts,
            columns: Cuts::new(width * plan.heads.extent, plan.heads.parts, width),
            spread,
            words: u64::from(local) * u64::from(cuts.largest()) * u64::from(width) / 2,
        };
        let parts = |cuts: Cuts| cuts.parts == 1;
        let [one_head, one_query, one_key] = [plan.heads, plan.queries, plan.keys].map(parts);
        let (queries_spread, keys_spread) = (one_key && (one_head || one_query), one_query && (one_head || one_key));
        let mut wanted =
            vec![want(q, Order::ByColumn, plan.queries, width, queries_spread), want(k, Order::ByColumn, plan.keys, width, keys_spread)];
        if !(plan.values_transposed && k == v) {
            wanted.push(want(v, value_order, plan.keys, value_width, keys_spread));
        }
        let output = 2 * u64::from(local) * u64::from(rows) * u64::from(value_width);
        let turned = if plan.values_transposed { 2 * u64::from(local) * u64::from(keys) * u64::from(value_width) } else { 0 };
        Ok(Candidate {
            positions: plan.heads.parts * plan.queries.parts * plan.keys.parts,
            clocks,
            merge_words,
            merge_transfers,
            merge_clocks,
            wanted,
            pieces: 1,
            staged_words: 0,
            resident_bytes: 0,
            working_bytes: 2 * u64::from(rows) * u64::from(keys) + turned + u64::from(merge_words > 0) * 2 * output,
            result_bytes: output,
            scaling,
            scaling_asked,
            plan: OperationPlan::Attention(plan),
        })
    }

    /// The cheapest, and of those left out the cheapest of every other demand on the operands' orders (what the operations before
    /// it left behind may serve only that one) and the ones that need least memory.
    fn kept(&self, name: &str, mut found: Vec<Candidate>, refused: Option<Fault>) -> Result<Vec<Candidate>, Fault> {
        let bytes = |candidate: &Candidate| {
            candidate.working_bytes + candidate.result_bytes + candidate.resident_bytes + candidate.gathered_bytes()
        };
        found.sort_by_key(|candidate| {
            let moved = candidate.words() + u64::from(candidate.pieces) * self.phase;
            let is_too_large = bytes(candidate) + RESERVED > MEMORY;
            (is_too_large, candidate.clocks + candidate.merge_clocks + candidate.merge_cost() + moved, candidate.positions)
        });
        if found.len() > KEPT {
            let mut rest = Vec::new();
            for candidate in found.split_off(KEPT - 4) {
                let is_new = found
                    .iter()
                    .all(|other| !other.wanted.iter().map(|wanted| wanted.order).eq(candidate.wanted.iter().map(|wanted| wanted.order)));
                if is_new { found.push(candidate) } else { rest.push(candidate) }
            }
            // The cheapest of those that need little memory, for little and less, and the smallest.
            for part in [2, 4, 8] {
                if let Some(index) = rest.iter().position(|candidate| bytes(candidate) <= MEMORY / part) {
                    found.push(rest.remove(index));
                }
            }
            found.extend(rest.into_iter().min_by_key(bytes));
        }
        if found.is_empty() {
            let reason = "the grid needs more tiles or parts than there are".to_owned();
            return Err(refused.unwrap_or_else(|| Fault::Grid { operation: name.to_owned(), reason }));
        }
        Ok(found)
    }
}

fn view() -> Candidate {
    Candidate {
        plan: OperationPlan::View,
        positions: 0,
        clocks: 0,
        merge_words: 0,
        merge_transfers: 0,
        merge_clocks: 0,
        wanted: Vec::new(),
        pieces: 1,
        staged_words: 0,
        resident_bytes: 0,
        working_bytes: 0,
        result_bytes: 0,
        scaling: 0,
        scaling_asked: None,
    }
}

const STRAIGHT: Form = Form { orientation: Orientation::Straight, transposed: false };
const STRAIGHT_TURNED: Form = Form { orientation: Orientation::Straight, transposed: true };
const SWAPPED: Form = Form { orientation: Orientation::Swapped, transposed: false };
const SWAPPED_TURNED: Form = Form { orientation: Orientation::Swapped, transposed: true };

/// The ways to make a result that its readers can use. A reader by row can turn what is kept by column itself.
fn forms(demand: Demand) -> Vec<Vec<Form>> {
    match (demand.by_column, demand.by_row) {
        (_, false) => vec![vec![STRAIGHT], vec![SWAPPED_TURNED]],
        (false, true) => vec![vec![SWAPPED], vec![STRAIGHT_TURNED], vec![STRAIGHT]],
        (true, true) => vec![vec![STRAIGHT], vec![STRAIGHT, SWAPPED], vec![SWAPPED_TURNED, SWAPPED]],
    }
}

/// Parameters of a product kernel with dense panels, for rows, inner channels and columns.
fn product_parameters([rows, inner, columns]: [u32; 3], is_interleaved: bool) -> [(&'static str, u32); 7] {
    let row = 2 * PANEL;
    [
        ("ROWS", rows),
        ("KB", inner / PANEL),
        ("CG", columns / PANEL),
        ("X_PANEL", rows * row),
        ("W_PANEL", columns * row),
        ("OUT_PANEL", rows * row),
        ("WMEM", u32::from(is_interleaved)),
    ]
}

/// Numbers of parts worth trying: what the layout asks for, else for every size of the largest part the fewest and the
/// most parts of that size.
fn chosen(asked: Option<u32>, units: u32, most: u32) -> Vec<u32> {
    let most = most.min(units);
    match asked {
        Some(parts) if parts <= most => vec![parts],
        Some(_) => Vec::new(),
        None => distinct(units, most),
    }
}

fn distinct(units: u32, most: u32) -> Vec<u32> {
    let most = most.min(units);
    let mut found = Vec::new();
    let mut parts = 1;
    while parts <= most {
        let size = units.div_ceil(parts);
        let last = if size == 1 { units } else { (units - 1) / (size - 1) };
        found.push(parts);
        found.push(last.min(most));
        parts = last + 1;
    }
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::distinct;

    #[test]
    fn parts_are_tried_once_for_every_size_at_both_ends() {
        assert_eq!(distinct(10, 8), [1, 2, 3, 4, 5, 8]);
        assert_eq!(distinct(1, 64), [1]);
        assert_eq!(distinct(46, 64).last(), Some(&46));
    }
}
