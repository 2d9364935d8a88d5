//! Expands a product: gather x (and staged weights) and multiply, piece by piece of the inner channels; add up the sums of their
//! groups; add the bias, transpose.

use ipu21::tile::TileId;

use crate::expanding::{Calls, ELEMENT, Expanding, Need, Panels, ROW, Runs, Traffic};
use crate::layout::Partials;
use crate::model::ValueId;
use crate::plan::{Cuts, Form, Orientation, PANEL, Part, ProductPlan, Rectangle};
use crate::plan_fault::Fault;
use crate::program::{Binding, Call, ColumnAxis, Group, Operand, Order, Piece, Region};

/// The operation, free of the model's type.
pub(crate) struct Work {
    pub(crate) number: u32,
    pub(crate) x: ValueId,
    pub(crate) weight: ValueId,
    pub(crate) bias: Option<ValueId>,
    /// The parameter is given as `[out, in]`.
    pub(crate) given_transposed: bool,
}

/// A matrix product on one tile: `out(m, n) = Σ x(m, k)·w(n, k)`.
pub(crate) struct Multiply {
    pub(crate) rows: u32,
    pub(crate) inner: u32,
    pub(crate) columns: u32,
    pub(crate) x: Panels,
    pub(crate) w: Panels,
    pub(crate) out: Panels,
    pub(crate) interleaved: bool,
    /// Scratch for f32 partial sums; none: partial sums are f16.
    pub(crate) partials: Option<Operand>,
    /// It is added to what `out` holds; with f16 partial sums only.
    pub(crate) added: bool,
}

/// Bytes of f32 partial sums for a product that streams `rows` rows.
pub(crate) fn partials_bytes(rows: u32) -> u32 {
    rows * PANEL * 4
}

/// The kernel call of a matrix product.
pub(crate) fn multiply(state: &mut Expanding, product: &Multiply) -> Call {
    let mut parameters = vec![
        ("ROWS", i64::from(product.rows)),
        ("KB", i64::from(product.inner / PANEL)),
        ("CG", i64::from(product.columns / PANEL)),
        ("X_PANEL", i64::from(product.x.stride)),
        ("W_PANEL", i64::from(product.w.stride)),
        ("OUT_PANEL", i64::from(product.out.stride)),
        ("WMEM", i64::from(product.interleaved)),
    ];
    let operands = [product.x.operand, product.w.operand, product.out.operand];
    match product.partials {
        None if product.added => {
            parameters.push(("ADD", 1));
            state.call("gemm_add", &parameters, &operands)
        }
        None => state.call("gemm", &parameters, &operands),
        Some(partials) => {
            let [x, w, out] = operands;
            state.call("gemm_f32", &parameters, &[x, w, out, partials])
        }
    }
}

/// What a tile does of a product.
#[derive(Clone, Copy)]
struct Job {
    tile: TileId,
    part: Part,
}

impl Job {
    /// The inner channels of a piece.
    fn piece(&self, plan: &ProductPlan, piece: u32) -> (u32, u32) {
        let (start, end) = self.part.inner;
        let (from, to) = Cuts::new(end - start, plan.pieces, PANEL).part(piece);
        (start + from, start + to)
    }
}

/// Appends the steps of a product and keeps its result, once in every order planned.
pub(crate) fn expand(state: &mut Expanding, work: &Work, plan: &ProductPlan) -> Result<(), Fault> {
    let result = state.model.operations[work.number as usize].result;
    let name = state.model.operations[work.number as usize].name.clone();
    let jobs: Vec<_> = plan.parts(state.plan).into_iter().map(|part| Job { tile: state.tile(part.position), part }).collect();
    let parts: Vec<_> = jobs.iter().map(|job| (job.tile, job.part.rectangle)).collect();
    let shares: Vec<_> = state.home_rectangles(result);
    place_weights(state, work, plan, &name, &jobs)?;
    let bias = bias(state, work, &name, &shares)?;

    let is_shared = plan.inner.parts > 1;
    let suffixes: Vec<_> = (0..plan.forms.len()).map(|form| if form == 0 { "" } else { ".second" }).collect();
    let mut outs = Vec::new();
    for (form, suffix) in plan.forms.iter().zip(&suffixes) {
        let raw = match (form.transposed, is_shared) {
            (true, _) => format!("{name}.raw{suffix}"),
            (false, true) => format!("{name}.partial{suffix}"),
            (false, false) => format!("{name}{suffix}"),
        };
        let produced = state.pieces(raw, Region::Any, form.orientation.order(), &parts);
        let partials = (plan.partials == Partials::F32).then(|| {
            let sizes: Vec<_> = parts.iter().map(|(tile, part)| (*tile, partials_bytes(streamed(form, part)))).collect();
            Operand { buffer: state.buffer(format!("{name}.partials{suffix}"), Region::One, &sizes), offset: 0 }
        });
        outs.push((produced, partials));
    }
    for piece in 0..plan.pieces {
        gather_piece(state, work, plan, &name, &jobs, piece)?;
        for (form, (produced, partials)) in plan.forms.iter().zip(&outs) {
            let mut calls = Calls::new();
            for (job, out) in jobs.iter().zip(produced) {
                let product = piece_of(state, work, plan, form, job, piece)?;
                let call = multiply(state, &Multiply { out: panels(out), partials: *partials, ..product });
                calls.entry(job.tile).or_default().push(call);
            }
            if !is_shared && piece + 1 == plan.pieces {
                add_bias(state, form, bias, produced, &mut calls)?;
            }
            state.compute(work.number, "product", calls);
        }
    }
    for ((form, suffix), (produced, _)) in plan.forms.iter().zip(&suffixes).zip(outs) {
        let summed = if is_shared { reduce(state, work, &name, &jobs, &produced, (form, bias))? } else { produced };
        let kept = if form.transposed {
            let turned = state.pieces(format!("{name}{suffix}"), Region::Any, form.order(), &shares);
            transpose(state, work.number, &summed, &turned)?;
            turned
        } else {
            summed
        };
        state.keep(result, kept);
    }
    Ok(())
}

/// What the names of a piece's buffers end in.
fn piece_suffix(plan: &ProductPlan, piece: u32) -> String {
    if plan.pieces > 1 { format!(".{piece}") } else { String::new() }
}

fn streamed(form: &Form, part: &Rectangle) -> u32 {
    match form.orientation {
        Orientation::Straight => part.rows.1 - part.rows.0,
        Orientation::Swapped => part.columns.1 - part.columns.0,
    }
}

/// Brings a piece of x, and of the weights when they are staged, to all jobs.
fn gather_piece(state: &mut Expanding, work: &Work, plan: &ProductPlan, name: &str, jobs: &[Job], piece: u32) -> Result<(), Fault> {
    let suffix = piece_suffix(plan, piece);
    let need = |what: &str, value, order, rectangle: &dyn Fn(&Job) -> Rectangle| Need {
        name: format!("{name}.{what}{suffix}"),
        value,
        order,
        rectangles: jobs.iter().map(|job| (job.tile, rectangle(job))).collect(),
    };
    let x = |job: &Job| Rectangle { rows: job.part.rectangle.rows, columns: job.piece(plan, piece) };
    let weights = |job: &Job| work.weights(job.part.rectangle.columns, job.piece(plan, piece));
    let mut needs = vec![need("x", work.x, Order::ByColumn, &x)];
    if plan.staged {
        needs.push(need("w", work.weight, work.weight_order(), &weights));
    }
    state.gather(work.number, &needs)
}

/// The product of a job's piece, without its result.
fn piece_of(state: &Expanding, work: &Work, plan: &ProductPlan, form: &Form, job: &Job, piece: u32) -> Result<Multiply, Fault> {
    let Rectangle { rows, columns } = job.part.rectangle;
    let inner = job.piece(plan, piece);
    let x = state.located(work.x, Order::ByColumn, job.tile, &Rectangle { rows, columns: inner });
    let weights = state.located(work.weight, work.weight_order(), job.tile, &work.weights(columns, inner));
    let (Some(x), Some(weights)) = (x, weights) else {
        return Err(Fault::PlanMismatch { operation: state.model.operations[work.number as usize].name.clone() });
    };
    let [rows, columns, inner] = [rows, columns, inner].map(|(start, end)| end - start);
    let ((rows, x), (columns, w)) = match form.orientation {
        Orientation::Straight => ((rows, x), (columns, weights)),
        Orientation::Swapped => ((columns, weights), (rows, x)),
    };
    Ok(Multiply { rows, inner, columns, x, w, out: x, interleaved: plan.interleaved, partials: None, added: piece > 0 })
}

/// Appends the calls that add the bias to results in the order of a form.
fn add_bias(state: &mut Expanding, form: &Form, bias: Option<Operand>, results: &[Piece], calls: &mut Calls) -> Result<(), Fault> {
    let Some(bias) = bias else { return Ok(()) };
    let kernel = match form.orientation {
        Orientation::Straight => "bias_columns",
        Orientation::Swapped => "bias_rows",
    };
    for result in results {
        let rectangle = crate::expanding::rectangle_of(result);
        let (rows, columns) = (rectangle.panel_rows(result.order), rectangle.panel_columns(result.order));
        let parameters = [
            ("ROWS", i64::from(rows.1 - rows.0)),
            ("CG", i64::from((columns.1 - columns.0) / PANEL)),
            ("OUT_PANEL", i64::from(result.panel_bytes)),
        ];
        let call = state.call(kernel, &parameters, &[bias, panels(result).operand]);
        calls.entry(result.tile).or_default().push(call);
    }
    Ok(())
}

/// Every member of a team, the jobs of one rectangle, receives its share of the rows from all members and adds them up.
fn reduce(
    state: &mut Expanding,
    work: &Work,
    name: &str,
    jobs: &[Job],
    sums: &[Piece],
    (form, bias): (&Form, Option<Operand>),
) -> Result<Vec<Piece>, Fault> {
    let shares: Vec<_> = jobs.iter().map(|job| (job.tile, job.part.share())).filter(|(_, share)| share.area() > 0).collect();
    let bytes = |share: &Rectangle| share.dense_bytes(Order::ByColumn);
    let members = jobs[0].part.groups;
    let sizes: Vec<_> = shares.iter().map(|(tile, share)| (*tile, members * bytes(share))).collect();
    let parts = state.buffer(format!("{name}.parts"), Region::Any, &sizes);
    let (mut copies, mut traffic) = (Calls::new(), Traffic::default());
    for job in jobs.iter().filter(|job| job.part.share().area() > 0) {
        let share = job.part.share();
        let team = &sums[job.part.team as usize..(job.part.team + members) as usize];
        for (member, source) in (0..members).zip(team) {
            let place = Piece {
                tile: job.tile,
                buffer: parts,
                offset: member * bytes(&share),
                order: Order::ByColumn,
                rows: share.rows,
                columns: share.columns,
                panel_bytes: share.dense_panel_bytes(Order::ByColumn),
            };
            let runs = Runs::between(source, &place, &share);
            state.bring((source.tile, job.tile), &runs, &mut traffic, &mut copies)?;
        }
    }
    state.compute(work.number, "copy", copies);
    state.exchange(work.number, traffic);
    let results = state.pieces(name.to_owned(), Region::Any, Order::ByColumn, &shares);
    let mut calls = Calls::new();
    for ((tile, share), result) in shares.iter().zip(&results) {
        let parameters = [("PARTS", i64::from(members)), ("BYTES", i64::from(bytes(share)))];
        let call = state.call("reduce", &parameters, &[Operand { buffer: parts, offset: 0 }, panels(result).operand]);
        calls.entry(*tile).or_default().push(call);
    }
    add_bias(state, form, bias, &results, &mut calls)?;
    state.compute(work.number, "reduce", calls);
    Ok(results)
}

/// A piece as an operand.
pub(crate) fn panels(piece: &Piece) -> Panels {
    Panels { operand: Operand { buffer: piece.buffer, offset: piece.offset }, stride: piece.panel_bytes }
}

/// Adds a step that turns every piece into the piece of the other order at the same place of the list.
pub(crate) fn transpose(state: &mut Expanding, operation: u32, from: &[Piece], to: &[Piece]) -> Result<(), Fault> {
    let mut calls = Calls::new();
    for (source, destination) in from.iter().zip(to) {
        let rectangle = crate::expanding::rectangle_of(source);
        let (rows, columns) = (rectangle.panel_rows(source.order), rectangle.panel_columns(source.order));
        let parameters = [
            ("ROWS", i64::from(rows.1 - rows.0)),
            ("CG", i64::from((columns.1 - columns.0) / PANEL)),
            ("SRC_PANEL", i64::from(source.panel_bytes)),
            ("DST_PANEL", i64::from(destination.panel_bytes)),
        ];
        let call = state.call("transpose", &parameters, &[panels(source).operand, panels(destination).operand]);
        calls.entry(source.tile).or_default().push(call);
    }
    state.compute(operation, "transpose", calls);
    Ok(())
}

/// Columns of the result, which are the output channels of the weights.
fn result_axis(state: &Expanding, work: &Work) -> ColumnAxis {
    let result = state.model.operations[work.number as usize].result;
    state.plan.axes[result.index()]
}

impl Work {
    /// The order in which weights are stationary or streamed: `P(out, in)` whichever way the parameter is given.
    fn weight_order(&self) -> Order {
        if self.given_transposed { Order::ByColumn } else { Order::ByRow }
    }

    /// The part of the parameter for these columns of the result and inner channels.
    fn weights(&self, columns: (u32, u32), inner: (u32, u32)) -> Rectangle {
        match self.weight_order() {
            Order::ByColumn => Rectangle { rows: columns, columns: inner },
            Order::ByRow => Rectangle { rows: inner, columns },
        }
    }
}

/// Gives the weights their places: where they are used, a buffer for each piece; staged ones dealt out among all positions.
fn place_weights(state: &mut Expanding, work: &Work, plan: &ProductPlan, name: &str, jobs: &[Job]) -> Result<(), Fault> {
    let order = work.weight_order();
    let mut pieces = Vec::new();
    if plan.staged {
        let dealt = plan.dealt(state.plan.tiles);
        let mut rectangles = Vec::new();
        for column in 0..plan.columns.parts {
            for part in 0..dealt.parts {
                let position = state.plan.position(plan.first, column * dealt.parts + part);
                rectangles.push((state.tile(position), work.weights(plan.columns.part(column), dealt.part(part))));
            }
        }
        pieces.extend(state.pieces(format!("{name}.weights"), Region::Any, order, &rectangles));
    } else {
        for piece in 0..plan.pieces {
            let suffix = piece_suffix(plan, piece);
            let rectangle = |job: &Job| (job.tile, work.weights(job.part.rectangle.columns, job.piece(plan, piece)));
            let rectangles: Vec<_> = jobs.iter().map(rectangle).collect();
            pieces.extend(state.pieces(format!("{name}.weights{suffix}"), Region::Any, order, &rectangles));
        }
    }
    state.keep(work.weight, pieces.clone());
    let (into, out) = (state.plan.axes[work.x.index()], result_axis(state, work));
    let (row_axis, columns) = if work.given_transposed { (out, into) } else { (into, out) };
    bind(state, work.weight, name, row_axis, columns, pieces)
}

fn bias(state: &mut Expanding, work: &Work, name: &str, parts: &[(TileId, Rectangle)]) -> Result<Option<Operand>, Fault> {
    let Some(bias) = work.bias else { return Ok(None) };
    let sizes: Vec<_> = parts.iter().map(|(tile, part)| (*tile, (part.columns.1 - part.columns.0) * ELEMENT)).collect();
    let buffer = state.buffer(format!("{name}.bias"), Region::Any, &sizes);
    let piece = |(tile, part): &(TileId, Rectangle)| Piece {
        tile: *tile,
        buffer,
        offset: 0,
        order: Order::ByColumn,
        rows: (0, 1),
        columns: part.columns,
        panel_bytes: ROW,
    };
    let pieces = parts.iter().map(piece).collect();
    let columns = result_axis(state, work);
    bind(state, bias, name, ColumnAxis { parts: 1, width: 1, padded: 1 }, columns, pieces)?;
    Ok(Some(Operand { buffer, offset: 0 }))
}

fn bind(
    state: &mut Expanding,
    id: ValueId,
    name: &str,
    row_axis: ColumnAxis,
    columns: ColumnAxis,
    pieces: Vec<Piece>,
) -> Result<(), Fault> {
    let value = state.model.value(id);
    let binding = Binding {
        name: value.name.clone(),
        group: Group::Weight,
        shape: value.shape.clone(),
        rows: row_axis.parts * row_axis.width,
        columns,
        row_axis,
        swapped: false,
        pieces,
    };
    state.bind(binding, name)
}
