//! Gives every value its column axis: how many blocks, and how each is padded to sixteen.
//!
//! Heads are padded one by one, so that a head starts at a panel and projections, attention and the following projection
//! need no repacking. A value has one axis; two splits that would pad it differently are refused.

use crate::model::{Kind, Model, ValueId};
use crate::plan::PANEL;
use crate::plan_fault::Fault;
use crate::program::ColumnAxis;

/// The axis of every value, index = [`ValueId`].
///
/// # Errors
/// Every value whose splits contradict each other.
pub fn axes(model: &Model) -> Result<Vec<ColumnAxis>, Vec<Fault>> {
    let mut demands: Vec<Option<(u32, u32)>> = vec![None; model.values.len()];
    let mut faults = Vec::new();
    for operation in &model.operations {
        let (value, heads) = match operation.kind {
            Kind::Product { .. } => continue,
            Kind::Split { value, heads } => (value, heads),
            Kind::Attention { heads, .. } => (operation.result, heads),
        };
        let wanted = (heads, model.value(value).columns() / heads);
        match demands[value.index()] {
            None => demands[value.index()] = Some(wanted),
            Some(first) if same_padding(first, wanted) => {}
            Some(first) => faults.push(Fault::SplitConflict {
                value: model.value(value).name.clone(),
                operation: operation.name.clone(),
                first,
                second: wanted,
            }),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let ids = (0u32..).map(ValueId).zip(&demands);
    Ok(ids.take(model.values.len()).map(|(id, demand)| padded(demand.unwrap_or((1, model.value(id).columns())))).collect())
}

/// Both splits put every element at the same padded index.
fn same_padding(one: (u32, u32), other: (u32, u32)) -> bool {
    let is_dense = |(_, width): (u32, u32)| width.is_multiple_of(PANEL);
    one == other || (is_dense(one) && is_dense(other))
}

fn padded((parts, width): (u32, u32)) -> ColumnAxis {
    ColumnAxis { parts, width, padded: width.next_multiple_of(PANEL) }
}
