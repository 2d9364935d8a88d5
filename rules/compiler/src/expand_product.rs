//! Expands a product: gather x, multiply, add the bias, transpose.

use std::collections::BTreeMap;

use ipu21::tile::TileId;

use crate::expanding::{Calls, ELEMENT, Expanding, Need, Panels, ROW};
use crate::layout::Partials;
use crate::model::ValueId;
use crate::plan::{Orientation, PANEL, ProductPlan, Rectangle};
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
}

/// Bytes of f32 partial sums for a product that streams `rows` rows.
pub(crate) fn partials_bytes(rows: u32) -> u32 {
    rows * PANEL * 4
}

/// The kernel call of a matrix product.
pub(crate) fn multiply(state: &mut Expanding, product: &Multiply) -> Result<Call, Fault> {
    let parameters = [
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
        None => state.call("gemm", &parameters, &operands),
        Some(partials) => {
            let [x, w, out] = operands;
            state.call("gemm_f32", &parameters, &[x, w, out, partials])
        }
    }
}

/// Appends the steps of a product and keeps its result, once in every order planned.
pub(crate) fn expand(state: &mut Expanding, work: &Work, plan: &ProductPlan) -> Result<(), Fault> {
    let result = state.model.operations[work.number as usize].result;
    let name = state.model.operations[work.number as usize].name.clone();
    let parts = state.home_rectangles(result);
    let inner = state.plan.padded_columns(work.x);
    let inputs: Vec<_> = parts.iter().map(|(tile, part)| (*tile, Rectangle { rows: part.rows, columns: (0, inner) })).collect();
    let need = Need { name: format!("{name}.x"), value: work.x, order: Order::ByColumn, rectangles: inputs.clone() };
    let operands = Operands { weights: weights(state, work, &name, &parts, inner)?, bias: bias(state, work, &name, &parts)? };
    state.gather(work.number, &[need])?;
    for form in &plan.forms {
        let order = form.order();
        let suffix = if form == &plan.forms[0] { String::new() } else { ".second".to_owned() };
        let streamed = |part: &Rectangle| match form.orientation {
            Orientation::Straight => part.rows.1 - part.rows.0,
            Orientation::Swapped => part.columns.1 - part.columns.0,
        };
        let raw = if form.transposed { format!("{name}.raw{suffix}") } else { format!("{name}{suffix}") };
        let produced = state.pieces(raw, Region::Any, form.orientation.order(), &parts);
        let partials = (plan.partials == Partials::F32).then(|| {
            let sizes: Vec<_> = parts.iter().map(|(tile, part)| (*tile, partials_bytes(streamed(part)))).collect();
            Operand { buffer: state.buffer(format!("{name}.partials{suffix}"), Region::One, &sizes), offset: 0 }
        });
        let mut calls = Calls::new();
        for ((tile, part), (input, out)) in parts.iter().zip(inputs.iter().zip(&produced)) {
            let Some(x) = state.located(work.x, Order::ByColumn, *tile, &input.1) else {
                return Err(Fault::PlanMismatch { operation: name });
            };
            let (weights, out) = (operands.weights[tile], panels(out));
            let (rows, columns) = (part.rows.1 - part.rows.0, part.columns.1 - part.columns.0);
            let product = match form.orientation {
                Orientation::Straight => Multiply { rows, inner, columns, x, w: weights, out, interleaved: plan.interleaved, partials },
                Orientation::Swapped => {
                    Multiply { rows: columns, inner, columns: rows, x: weights, w: x, out, interleaved: plan.interleaved, partials }
                }
            };
            calls.entry(*tile).or_default().push(multiply(state, &product)?);
            if let Some(bias) = operands.bias {
                let kernel = match form.orientation {
                    Orientation::Straight => "bias_columns",
                    Orientation::Swapped => "bias_rows",
                };
                let parameters =
                    [("ROWS", i64::from(product.rows)), ("CG", i64::from(product.columns / PANEL)), ("OUT_PANEL", i64::from(out.stride))];
                calls.entry(*tile).or_default().push(state.call(kernel, &parameters, &[bias, out.operand])?);
            }
        }
        state.compute(work.number, "product", calls);
        let kept = if form.transposed {
            let turned = state.pieces(format!("{name}{suffix}"), Region::Any, order, &parts);
            transpose(state, work.number, &produced, &turned)?;
            turned
        } else {
            produced
        };
        state.keep(result, kept);
    }
    Ok(())
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
        let call = state.call("transpose", &parameters, &[panels(source).operand, panels(destination).operand])?;
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

struct Operands {
    weights: BTreeMap<TileId, Panels>,
    bias: Option<Operand>,
}

/// The weights of every tile, `P(out, in)` whichever way the parameter is given.
fn weights(
    state: &mut Expanding,
    work: &Work,
    name: &str,
    parts: &[(TileId, Rectangle)],
    inner: u32,
) -> Result<BTreeMap<TileId, Panels>, Fault> {
    let order = if work.given_transposed { Order::ByColumn } else { Order::ByRow };
    let rectangle = |part: &Rectangle| match order {
        Order::ByColumn => Rectangle { rows: part.columns, columns: (0, inner) },
        Order::ByRow => Rectangle { rows: (0, inner), columns: part.columns },
    };
    let rectangles: Vec<_> = parts.iter().map(|(tile, part)| (*tile, rectangle(part))).collect();
    let pieces = state.pieces(format!("{name}.weights"), Region::Any, order, &rectangles);
    let found = pieces.iter().map(|piece| (piece.tile, panels(piece))).collect();
    let (into, out) = (state.plan.axes[work.x.index()], result_axis(state, work));
    let (row_axis, columns) = if work.given_transposed { (out, into) } else { (into, out) };
    bind(state, work.weight, name, row_axis, columns, pieces)?;
    Ok(found)
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
