//! An operator plan: how every operation is cut over a grid of positions, and in which form every value is kept.
//!
//! A plan speaks of *positions* 0..tiles, not of tiles; the mapping gives each position its tile. Plans are made by
//! `finalists` and read by `mapping` and `expand`. [`Plan::pieces`] is the one place that knows which position holds which
//! rectangle of a value.

use serde::{Deserialize, Serialize};

use crate::layout::Partials;
use crate::model::{Kind, Model, Source, ValueId};
use crate::program::{ColumnAxis, Order};

/// Elements of a panel row: the padding of both axes.
pub const PANEL: u32 = 16;

/// An axis of `extent` elements cut evenly into `parts` ranges whose borders are multiples of `unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cuts {
    /// Elements, a multiple of `unit`.
    pub extent: u32,
    /// Ranges, 1..=extent/unit.
    pub parts: u32,
    /// Granularity in elements.
    pub unit: u32,
}

impl Cuts {
    /// At most `parts` ranges; fewer when there are not enough units.
    #[must_use]
    pub fn new(extent: u32, parts: u32, unit: u32) -> Self {
        Self { extent, unit, parts: parts.clamp(1, (extent / unit).max(1)) }
    }

    /// Range number `index`.
    #[must_use]
    pub fn part(&self, index: u32) -> (u32, u32) {
        (self.border(index), self.border(index + 1))
    }

    /// Elements of the largest range.
    #[must_use]
    pub fn largest(&self) -> u32 {
        (self.extent / self.unit).div_ceil(self.parts) * self.unit
    }

    fn border(&self, index: u32) -> u32 {
        let units = u64::from(self.extent / self.unit);
        let border = u64::from(index) * units / u64::from(self.parts);
        u32::try_from(border).unwrap_or(u32::MAX) * self.unit
    }
}

/// A rectangle of a value in padded index space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rectangle {
    /// Rows `[start, end)`.
    pub rows: (u32, u32),
    /// Columns `[start, end)`.
    pub columns: (u32, u32),
}

impl Rectangle {
    /// The common part, if any.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let rows = (self.rows.0.max(other.rows.0), self.rows.1.min(other.rows.1));
        let columns = (self.columns.0.max(other.columns.0), self.columns.1.min(other.columns.1));
        (rows.0 < rows.1 && columns.0 < columns.1).then_some(Self { rows, columns })
    }

    /// `other` lies inside.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        self.intersection(other) == Some(*other)
    }

    /// Elements.
    #[must_use]
    pub fn area(&self) -> u64 {
        u64::from(self.rows.1 - self.rows.0) * u64::from(self.columns.1 - self.columns.0)
    }

    /// Extent along the axis that is not cut into panels: rows when `ByColumn`.
    #[must_use]
    pub fn panel_rows(&self, order: Order) -> (u32, u32) {
        match order {
            Order::ByColumn => self.rows,
            Order::ByRow => self.columns,
        }
    }

    /// Extent along the axis that is cut into panels of sixteen: columns when `ByColumn`.
    #[must_use]
    pub fn panel_columns(&self, order: Order) -> (u32, u32) {
        match order {
            Order::ByColumn => self.columns,
            Order::ByRow => self.rows,
        }
    }

    /// Bytes from one panel to the next when stored densely.
    #[must_use]
    pub fn dense_panel_bytes(&self, order: Order) -> u32 {
        let (start, end) = self.panel_rows(order);
        (end - start) * 2 * PANEL
    }

    /// Bytes when stored densely.
    #[must_use]
    pub fn dense_bytes(&self, order: Order) -> u32 {
        let (start, end) = self.panel_columns(order);
        (end - start) / PANEL * self.dense_panel_bytes(order)
    }
}

/// A rectangle of a value and the position that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Holding {
    /// Position in the mapping.
    pub position: u32,
    /// What it holds.
    pub rectangle: Rectangle,
}

/// Which operand of a product is streamed and which is stationary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Orientation {
    /// The rows of x are streamed past the weights; the result comes `ByColumn`.
    Straight,
    /// The weights are streamed past the rows of x; the result comes `ByRow`.
    Swapped,
}

impl Orientation {
    /// The order in which the product leaves its result.
    #[must_use]
    pub fn order(self) -> Order {
        match self {
            Self::Straight => Order::ByColumn,
            Self::Swapped => Order::ByRow,
        }
    }
}

/// One way in which a product makes its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Form {
    /// Streamed operand.
    pub orientation: Orientation,
    /// The result is transposed in place of production, sixteen by sixteen.
    pub transposed: bool,
}

impl Form {
    /// The order of the result after the transposition, if any.
    #[must_use]
    pub fn order(self) -> Order {
        match (self.orientation.order(), self.transposed) {
            (order, false) => order,
            (Order::ByColumn, true) => Order::ByRow,
            (Order::ByRow, true) => Order::ByColumn,
        }
    }
}

/// Where the host puts a graph input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InputPlan {
    /// The input.
    pub value: ValueId,
    /// Order of the pieces.
    pub order: Order,
    /// Cuts of the rows.
    pub rows: Cuts,
    /// Cuts of the columns.
    pub columns: Cuts,
    /// Position of the first piece; pieces go on row-major, around the end.
    pub first: u32,
}

/// A product on a grid of rows × columns × groups of inner channels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProductPlan {
    /// Cuts of the rows of the result.
    pub rows: Cuts,
    /// Cuts of the columns of the result.
    pub columns: Cuts,
    /// Cuts of the inner channels; the sums of several groups are added at last, each position taking a share of the rows.
    pub inner: Cuts,
    /// Pieces of a group's inner channels that are gathered and multiplied one after another.
    pub pieces: u32,
    /// The weights are dealt out among all positions and gathered as the other operand is; else they lie where they are used.
    pub staged: bool,
    /// Position of the first piece; pieces go on row-major (groups fastest), around the end.
    pub first: u32,
    /// How the result is made: once, or once for each order wanted.
    pub forms: Vec<Form>,
    /// Width of partial sums.
    pub partials: Partials,
    /// The stationary operand lies in region 1 and is fetched 16 bytes a clock.
    pub interleaved: bool,
}

/// Attention on a grid of head groups × query groups × key groups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttentionPlan {
    /// Cuts of the heads, in heads.
    pub heads: Cuts,
    /// Cuts of the query rows.
    pub queries: Cuts,
    /// Cuts of the key rows, in sixteens.
    pub keys: Cuts,
    /// Position of the first piece; pieces go on row-major (keys fastest), around the end.
    pub first: u32,
    /// Values arrive `ByColumn` and are transposed where they are used.
    pub values_transposed: bool,
    /// Queries are scaled where they are made, before they are gathered; else scores are scaled in the softmax.
    pub queries_scaled: bool,
    /// Width of partial sums of Q·Kᵀ.
    pub score_partials: Partials,
    /// Width of partial sums of P·V.
    pub output_partials: Partials,
    /// The stationary operands lie in region 1 and are fetched 16 bytes a clock.
    pub interleaved: bool,
}

/// The plan of one operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OperationPlan {
    /// Nothing moves.
    View,
    /// A product.
    Product(ProductPlan),
    /// Attention.
    Attention(AttentionPlan),
}

/// How a whole model is computed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Plan {
    /// Positions, at least 1.
    pub tiles: u32,
    /// Column axis of every value, index = [`ValueId`]; of a parameter: its second axis.
    pub axes: Vec<ColumnAxis>,
    /// Inputs that are read, ascending by value.
    pub inputs: Vec<InputPlan>,
    /// Plan of every operation, by number.
    pub operations: Vec<OperationPlan>,
    /// Phases of different operations that are due together are one (the module `merging`).
    pub merged: bool,
    /// Whole pairs of tiles may be sent 64-bit items.
    pub pairs: bool,
}

impl Plan {
    /// Padded rows of a value.
    #[must_use]
    pub fn padded_rows(model: &Model, value: ValueId) -> u32 {
        model.value(value).rows().next_multiple_of(PANEL)
    }

    /// Padded columns of a value.
    #[must_use]
    pub fn padded_columns(&self, value: ValueId) -> u32 {
        let axis = self.axes[value.index()];
        axis.parts * axis.padded
    }

    /// The position `offset` places behind `first`, around the end.
    #[must_use]
    pub fn position(&self, first: u32, offset: u32) -> u32 {
        (first + offset) % self.tiles
    }

    /// The orders in which a stored value is kept, the order of production first.
    #[must_use]
    pub fn orders(&self, model: &Model, value: ValueId) -> Vec<Order> {
        match model.value(value).source {
            Source::Parameter => Vec::new(),
            Source::Input => self.inputs.iter().filter(|input| input.value == value).map(|input| input.order).collect(),
            Source::Result(operation) => match &self.operations[operation as usize] {
                OperationPlan::View => Vec::new(),
                OperationPlan::Product(product) => product.forms.iter().map(|form| form.order()).collect(),
                OperationPlan::Attention(_) => vec![Order::ByColumn],
            },
        }
    }

    /// Which position holds which rectangle of a stored value. Positions ascend by part; every element is held once.
    #[must_use]
    pub fn pieces(&self, model: &Model, value: ValueId) -> Vec<Holding> {
        match model.value(value).source {
            Source::Parameter => Vec::new(),
            Source::Input => self
                .inputs
                .iter()
                .find(|input| input.value == value)
                .map_or_else(Vec::new, |input| self.grid(input.first, input.rows, input.columns)),
            Source::Result(operation) => match (&self.operations[operation as usize], &model.operations[operation as usize].kind) {
                (OperationPlan::Product(product), _) => {
                    let parts = product.parts(self).into_iter();
                    let share = |part: Part| Holding { position: part.position, rectangle: part.share() };
                    parts.map(share).filter(|holding| holding.rectangle.area() > 0).collect()
                }
                (OperationPlan::Attention(attention), Kind::Attention { .. }) => self.attention_pieces(value, attention),
                _ => Vec::new(),
            },
        }
    }

    /// The rectangles of a grid of rows × columns, row-major from `first` on.
    #[must_use]
    pub fn grid(&self, first: u32, rows: Cuts, columns: Cuts) -> Vec<Holding> {
        let mut pieces = Vec::new();
        for row in 0..rows.parts {
            for column in 0..columns.parts {
                let position = self.position(first, row * columns.parts + column);
                let rectangle = Rectangle { rows: rows.part(row), columns: columns.part(column) };
                pieces.push(Holding { position, rectangle });
            }
        }
        pieces
    }

    fn attention_pieces(&self, value: ValueId, attention: &AttentionPlan) -> Vec<Holding> {
        let width = self.padded_columns(value) / attention.heads.extent;
        let mut pieces = Vec::new();
        for task in attention.tasks(self) {
            let rows = task.merged_rows(task.key_group);
            if rows.0 < rows.1 {
                let columns = (task.heads.0 * width, task.heads.1 * width);
                pieces.push(Holding { position: task.position, rectangle: Rectangle { rows, columns } });
            }
        }
        pieces
    }
}

/// What one position does of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The position.
    pub position: u32,
    /// What it computes, or sums over its inner channels.
    pub rectangle: Rectangle,
    /// Inner channels `[start, end)`.
    pub inner: (u32, u32),
    /// Number of its group of inner channels.
    pub group: u32,
    /// Groups altogether.
    pub groups: u32,
    /// Number of the first part of the same rectangle.
    pub team: u32,
}

impl Part {
    /// What it holds of the result in the end: its rectangle, or with several groups its share of the rows; may be empty.
    #[must_use]
    pub fn share(&self) -> Rectangle {
        let (start, end) = self.rectangle.rows;
        let border = |index: u32| start + shared(end - start, index, self.groups);
        Rectangle { rows: (border(self.group), border(self.group + 1)), ..self.rectangle }
    }
}

impl ProductPlan {
    /// What every position does: rows slowest, groups of inner channels fastest.
    #[must_use]
    pub fn parts(&self, plan: &Plan) -> Vec<Part> {
        let mut parts = Vec::new();
        for row in 0..self.rows.parts {
            for column in 0..self.columns.parts {
                let team = (row * self.columns.parts + column) * self.inner.parts;
                let rectangle = Rectangle { rows: self.rows.part(row), columns: self.columns.part(column) };
                parts.extend((0..self.inner.parts).map(|group| Part {
                    position: plan.position(self.first, team + group),
                    rectangle,
                    inner: self.inner.part(group),
                    group,
                    groups: self.inner.parts,
                    team,
                }));
            }
        }
        parts
    }

    /// How the inner channels of a column's weights are dealt out among `tiles` when they are staged.
    #[must_use]
    pub fn dealt(&self, tiles: u32) -> Cuts {
        Cuts::new(self.inner.extent, tiles / self.columns.parts, PANEL)
    }

    /// Positions used.
    #[must_use]
    pub fn positions(&self) -> u32 {
        self.rows.parts * self.columns.parts * self.inner.parts
    }
}

/// The even share of `count` that ends before member `index` of `members`.
fn shared(count: u32, index: u32, members: u32) -> u32 {
    u32::try_from(u64::from(index) * u64::from(count) / u64::from(members)).unwrap_or(0)
}

/// What one position does of an attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The position.
    pub position: u32,
    /// Heads `[start, end)`.
    pub heads: (u32, u32),
    /// Query rows `[start, end)`.
    pub queries: (u32, u32),
    /// Key rows `[start, end)`.
    pub keys: (u32, u32),
    /// Number of the key group.
    pub key_group: u32,
    /// Key groups altogether.
    pub key_groups: u32,
    /// Number of the first task of the same heads and queries.
    pub team: u32,
}

impl Task {
    /// The query rows that the member `key_group` of the team merges (all of them without key groups); may be empty.
    #[must_use]
    pub fn merged_rows(&self, key_group: u32) -> (u32, u32) {
        let (start, end) = self.queries;
        let border = |index: u32| start + shared(end - start, index, self.key_groups);
        (border(key_group), border(key_group + 1))
    }
}

impl AttentionPlan {
    /// What every position does, heads slowest, keys fastest.
    #[must_use]
    pub fn tasks(&self, plan: &Plan) -> Vec<Task> {
        let mut tasks = Vec::new();
        for head in 0..self.heads.parts {
            for query in 0..self.queries.parts {
                let team = (head * self.queries.parts + query) * self.keys.parts;
                for key in 0..self.keys.parts {
                    tasks.push(Task {
                        position: plan.position(self.first, team + key),
                        heads: self.heads.part(head),
                        queries: self.queries.part(query),
                        keys: self.keys.part(key),
                        key_group: key,
                        key_groups: self.keys.parts,
                        team,
                    });
                }
            }
        }
        tasks
    }
}

#[cfg(test)]
mod tests {
    use super::Cuts;

    #[test]
    fn cuts_are_even_in_units_and_cover_the_axis() {
        let cuts = Cuts::new(736, 8, 16);
        let parts: Vec<_> = (0..8).map(|part| cuts.part(part)).collect();
        assert_eq!(parts, [(0, 80), (80, 176), (176, 272), (272, 368), (368, 448), (448, 544), (544, 640), (640, 736)]);
        assert_eq!((cuts.largest(), Cuts::new(32, 9, 16).parts), (96, 2));
    }
}
