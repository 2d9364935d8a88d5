//! The state of an expansion: buffers, steps and where every value lies so far.
//!
//! Private convenience of `expand` and its operator files; nothing outside sees it.

use std::collections::BTreeMap;

use exchange::{BufferId, Place, Problem, Transfer};
use ipu21::tile::TileId;

use crate::mapping::Mapping;
use crate::model::{Kind, Model, ValueId};
use crate::plan::{InputPlan, PANEL, Plan, Rectangle};
use crate::plan_fault::Fault;
use crate::program::{
    Binding, Buffer, Call, CallGroup, Checkpoint, ColumnAxis, Expanded, Group, Operand, Order, Piece, Region, Step, Variant, VariantId,
};

/// Bytes of an f16 element.
pub(crate) const ELEMENT: u32 = 2;
/// Bytes of a row of a panel.
pub(crate) const ROW: u32 = PANEL * ELEMENT;
/// Alignment of panels (machine.md b.4).
const PANEL_ALIGN: u32 = 32;

/// Calls of a compute step, by tile.
pub(crate) type Calls = BTreeMap<TileId, Vec<Call>>;

/// A rectangle of a value that tiles need before they can compute.
pub(crate) struct Need {
    /// Name of the buffer made when it must be gathered.
    pub(crate) name: String,
    /// The value.
    pub(crate) value: ValueId,
    /// Order wanted; one the value is kept in.
    pub(crate) order: Order,
    /// Who needs what; tiles are distinct.
    pub(crate) rectangles: Vec<(TileId, Rectangle)>,
}

/// A panel matrix on the calling tile.
#[derive(Clone, Copy)]
pub(crate) struct Panels {
    /// First element.
    pub(crate) operand: Operand,
    /// Bytes from panel to panel.
    pub(crate) stride: u32,
}

impl Panels {
    /// The same matrix from row `rows` of panel `panels` on.
    pub(crate) fn at(self, panels: u32, rows: u32) -> Self {
        let offset = self.operand.offset + panels * self.stride + rows * ROW;
        Self { operand: Operand { offset, ..self.operand }, ..self }
    }
}

/// See the module.
pub(crate) struct Expanding<'a> {
    pub(crate) model: &'a Model,
    pub(crate) plan: &'a Plan,
    mapping: &'a Mapping,
    buffers: Vec<Buffer>,
    steps: Vec<Step>,
    phases: Vec<Problem>,
    variants: BTreeMap<Variant, VariantId>,
    /// Pieces that cover a value exactly once, by value and order.
    homes: BTreeMap<(ValueId, Order), Vec<Piece>>,
    /// Every piece known to be on a tile, homes and gathered ones.
    local: BTreeMap<(ValueId, Order, TileId), Vec<Piece>>,
    bindings: BTreeMap<(Group, String), Binding>,
    checkpoints: Vec<Checkpoint>,
}

impl<'a> Expanding<'a> {
    pub(crate) fn new(model: &'a Model, plan: &'a Plan, mapping: &'a Mapping) -> Self {
        Self {
            model,
            plan,
            mapping,
            buffers: Vec::new(),
            steps: Vec::new(),
            phases: Vec::new(),
            variants: BTreeMap::new(),
            homes: BTreeMap::new(),
            local: BTreeMap::new(),
            bindings: BTreeMap::new(),
            checkpoints: Vec::new(),
        }
    }

    /// The tile of a position.
    pub(crate) fn tile(&self, position: u32) -> TileId {
        self.mapping.tiles[position as usize]
    }

    /// A new buffer, large enough for the largest of the sizes given.
    pub(crate) fn buffer(&mut self, name: String, region: Region, sizes: &[(TileId, u32)]) -> BufferId {
        let id = BufferId(u32::try_from(self.buffers.len()).unwrap_or(u32::MAX));
        let mut tiles: Vec<_> = sizes.iter().map(|(tile, _)| *tile).collect();
        tiles.sort_unstable();
        let bytes = sizes.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0).next_multiple_of(8);
        self.buffers.push(Buffer { name, bytes, tiles, region, align: PANEL_ALIGN, readable_tail: 0, first_step: None, last_step: None });
        id
    }

    /// A new buffer that holds one dense rectangle on each tile.
    pub(crate) fn pieces(&mut self, name: String, region: Region, order: Order, rectangles: &[(TileId, Rectangle)]) -> Vec<Piece> {
        let sizes: Vec<_> = rectangles.iter().map(|(tile, rectangle)| (*tile, rectangle.dense_bytes(order))).collect();
        let buffer = self.buffer(name, region, &sizes);
        let piece = |(tile, rectangle): &(TileId, Rectangle)| Piece {
            tile: *tile,
            buffer,
            offset: 0,
            order,
            rows: rectangle.rows,
            columns: rectangle.columns,
            panel_bytes: rectangle.dense_panel_bytes(order),
        };
        rectangles.iter().map(piece).collect()
    }

    /// The rectangles of a value's home, with tiles instead of positions.
    pub(crate) fn home_rectangles(&self, value: ValueId) -> Vec<(TileId, Rectangle)> {
        let pieces = self.plan.pieces(self.model, value);
        pieces.iter().map(|holding| (self.tile(holding.position), holding.rectangle)).collect()
    }

    /// Records pieces that cover a value exactly once.
    pub(crate) fn keep(&mut self, value: ValueId, pieces: Vec<Piece>) {
        let Some(order) = pieces.first().map(|piece| piece.order) else { return };
        for piece in &pieces {
            self.remember(value, piece.clone());
        }
        self.homes.insert((value, order), pieces);
    }

    /// The pieces that cover a value in an order.
    pub(crate) fn home(&self, value: ValueId, order: Order) -> &[Piece] {
        self.homes.get(&(value, order)).map_or(&[], Vec::as_slice)
    }

    /// A value that the model does not have, of an operation's own.
    pub(crate) fn own_value(&self, operation: u32) -> ValueId {
        ValueId(u32::try_from(self.model.values.len()).unwrap_or(u32::MAX) + operation)
    }

    /// Records that a tile has a piece of a value, wherever it came from.
    pub(crate) fn remember(&mut self, value: ValueId, piece: Piece) {
        self.local.entry((value, piece.order, piece.tile)).or_default().push(piece);
    }

    /// The place of a rectangle that the tile holds.
    pub(crate) fn located(&self, value: ValueId, order: Order, tile: TileId, wanted: &Rectangle) -> Option<Panels> {
        let pieces = self.local.get(&(value, order, tile))?;
        let piece = pieces.iter().find(|piece| rectangle_of(piece).contains(wanted))?;
        let whole = Panels { operand: Operand { buffer: piece.buffer, offset: piece.offset }, stride: piece.panel_bytes };
        let held = rectangle_of(piece);
        let panels = (wanted.panel_columns(order).0 - held.panel_columns(order).0) / PANEL;
        Some(whole.at(panels, wanted.panel_rows(order).0 - held.panel_rows(order).0))
    }

    /// Brings every needed rectangle that is not on its tile already there: copies of own parts, then one phase.
    pub(crate) fn gather(&mut self, operation: u32, needs: &[Need]) -> Result<(), Fault> {
        let mut copies = Calls::new();
        let mut traffic = Traffic::default();
        for need in needs {
            let missing: Vec<_> = need
                .rectangles
                .iter()
                .filter(|(tile, rectangle)| self.located(need.value, need.order, *tile, rectangle).is_none())
                .copied()
                .collect();
            if missing.is_empty() {
                continue;
            }
            let gathered = self.pieces(need.name.clone(), Region::Any, need.order, &missing);
            self.collect(need, &gathered, &mut traffic, &mut copies)?;
            for piece in gathered {
                self.remember(need.value, piece);
            }
        }
        self.compute(operation, "copy", copies);
        self.exchange(operation, traffic);
        Ok(())
    }

    /// The transfers and own copies that fill `gathered` from the home of the value.
    fn collect(&mut self, need: &Need, gathered: &[Piece], traffic: &mut Traffic, copies: &mut Calls) -> Result<(), Fault> {
        let home = self.homes.get(&(need.value, need.order)).cloned().unwrap_or_default();
        let mut wanted: BTreeMap<Rectangle, Vec<&Piece>> = BTreeMap::new();
        for piece in gathered {
            wanted.entry(rectangle_of(piece)).or_default().push(piece);
        }
        for (rectangle, receivers) in wanted {
            for source in &home {
                let Some(common) = rectangle_of(source).intersection(&rectangle) else { continue };
                for receiver in &receivers {
                    let runs = Runs::between(source, receiver, &common);
                    self.bring((source.tile, receiver.tile), &runs, traffic, copies)?;
                }
            }
        }
        Ok(())
    }

    /// Runs from one tile to another or itself: traffic, or a copy.
    pub(crate) fn bring(
        &mut self,
        (from, to): (TileId, TileId),
        runs: &Runs,
        traffic: &mut Traffic,
        copies: &mut Calls,
    ) -> Result<(), Fault> {
        if from == to {
            let call = self.copy(runs);
            copies.entry(to).or_default().push(call);
        } else {
            traffic.add(from, to, runs);
        }
        Ok(())
    }

    /// A call that copies runs inside a tile.
    fn copy(&mut self, runs: &Runs) -> Call {
        let parameters = [
            ("G", i64::from(runs.count)),
            ("BYTES", i64::from(runs.bytes)),
            ("SRC_PANEL", i64::from(runs.source_stride)),
            ("DST_PANEL", i64::from(runs.destination_stride)),
        ];
        self.call("copy_panels", &parameters, &[runs.source, runs.destination])
    }

    /// A call of a kernel variant; whether it is within the kernel's limits is asked of a program that fits ([`crate::check_expanded`]).
    pub(crate) fn call(&mut self, kernel: &str, parameters: &[(&str, i64)], operands: &[Operand]) -> Call {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let variant = Variant { kernel: kernel.to_owned(), parameters };
        let next = VariantId(u32::try_from(self.variants.len()).unwrap_or(u32::MAX));
        let kernel = *self.variants.entry(variant).or_insert(next);
        Call { kernel, operands: operands.to_vec(), values: Vec::new() }
    }

    /// Adds a compute step; tiles with the same calls share a group.
    pub(crate) fn compute(&mut self, operation: u32, what: &str, calls: Calls) {
        let mut groups: BTreeMap<Vec<Call>, Vec<TileId>> = BTreeMap::new();
        for (tile, calls) in calls {
            if !calls.is_empty() {
                groups.entry(calls).or_default().push(tile);
            }
        }
        if groups.is_empty() {
            return;
        }
        let mut groups: Vec<_> = groups.into_iter().map(|(calls, tiles)| CallGroup { tiles, calls }).collect();
        groups.sort_by(|a, b| a.tiles.cmp(&b.tiles));
        self.steps.push(Step::Compute { operation, what: what.to_owned(), groups });
    }

    /// Adds an exchange step, if there is anything to send.
    pub(crate) fn exchange(&mut self, operation: u32, traffic: Traffic) {
        if traffic.sends.is_empty() {
            return;
        }
        let phase = u32::try_from(self.phases.len()).unwrap_or(u32::MAX);
        self.phases.push(traffic.problem());
        self.steps.push(Step::Exchange { phase, operation });
    }

    /// The home of a graph input, filled by the host.
    pub(crate) fn input(&mut self, input: &InputPlan) -> Result<(), Fault> {
        let value = self.model.value(input.value);
        let rectangles = self.home_rectangles(input.value);
        let pieces = self.pieces(value.name.clone(), Region::Any, input.order, &rectangles);
        self.keep(input.value, pieces.clone());
        let binding = self.binding(input.value, Group::Input, pieces);
        self.bind(binding, "")
    }

    /// Adds a binding, or the pieces of one whose name is there already.
    pub(crate) fn bind(&mut self, binding: Binding, operation: &str) -> Result<(), Fault> {
        let key = (binding.group, binding.name.clone());
        let Some(known) = self.bindings.get_mut(&key) else {
            self.bindings.insert(key, binding);
            return Ok(());
        };
        if (known.columns, known.row_axis) != (binding.columns, binding.row_axis) {
            return Err(Fault::ParameterConflict { parameter: binding.name, operation: operation.to_owned() });
        }
        known.pieces.extend(binding.pieces);
        Ok(())
    }

    /// The binding of an activation.
    fn binding(&self, id: ValueId, group: Group, pieces: Vec<Piece>) -> Binding {
        let value = self.model.value(id);
        Binding {
            name: value.name.clone(),
            group,
            shape: value.shape.clone(),
            rows: value.rows(),
            columns: self.plan.axes[id.index()],
            row_axis: ColumnAxis { parts: 1, width: value.rows(), padded: Plan::padded_rows(self.model, id) },
            swapped: false,
            pieces,
        }
    }

    fn any_home(&self, id: ValueId) -> Option<Vec<Piece>> {
        let orders = self.plan.orders(self.model, id);
        orders.iter().find_map(|order| self.homes.get(&(id, *order))).cloned()
    }

    /// Stops behind an operation with its result readable.
    pub(crate) fn checkpoint(&mut self, number: u32) -> Result<(), Fault> {
        let operation = &self.model.operations[number as usize];
        let Some(pieces) = self.any_home(operation.result).filter(|_| !matches!(operation.kind, Kind::Split { .. })) else {
            return Err(Fault::Checkpoint { operation: number, possible: self.model.computed().collect() });
        };
        let tensor = self.binding(operation.result, Group::Output, pieces);
        let checkpoint = u32::try_from(self.checkpoints.len()).unwrap_or(u32::MAX);
        self.checkpoints.push(Checkpoint { operation: number, name: operation.name.clone(), tensor });
        self.steps.push(Step::Checkpoint { checkpoint });
        Ok(())
    }

    /// Gives a result back.
    pub(crate) fn output(&mut self, id: ValueId) -> Result<(), Fault> {
        let pieces = self.any_home(id).unwrap_or_default();
        let binding = self.binding(id, Group::Output, pieces);
        self.bind(binding, "")
    }

    /// The program, its variants sorted; what follows from the calls is still to be derived.
    pub(crate) fn finish(self) -> Expanded {
        let mut renumbered = vec![VariantId(0); self.variants.len()];
        for (new, old) in (0u32..).zip(self.variants.values()) {
            renumbered[old.0 as usize] = VariantId(new);
        }
        let mut steps = self.steps;
        for step in &mut steps {
            let Step::Compute { groups, .. } = step else { continue };
            for call in groups.iter_mut().flat_map(|group| &mut group.calls) {
                call.kernel = renumbered[call.kernel.0 as usize];
            }
        }
        Expanded {
            buffers: self.buffers,
            steps,
            phases: self.phases,
            variants: self.variants.into_keys().collect(),
            bindings: self.bindings.into_values().collect(),
            checkpoints: self.checkpoints,
            operations: self.model.operations.iter().map(|operation| operation.name.clone()).collect(),
            pairs: self.plan.pairs,
        }
    }
}

/// The rectangle a piece holds.
pub(crate) fn rectangle_of(piece: &Piece) -> Rectangle {
    Rectangle { rows: piece.rows, columns: piece.columns }
}

/// Equal runs of bytes from one place to another, each a panel's worth of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runs {
    pub(crate) source: Operand,
    pub(crate) destination: Operand,
    pub(crate) count: u32,
    pub(crate) bytes: u32,
    pub(crate) source_stride: u32,
    pub(crate) destination_stride: u32,
}

impl Runs {
    /// One run.
    pub(crate) fn single(source: Operand, destination: Operand, bytes: u32) -> Self {
        Self { source, destination, count: 1, bytes, source_stride: bytes, destination_stride: bytes }
    }

    /// The part `common` of a piece to its place in another piece of the same order. Runs that touch are one.
    pub(crate) fn between(source: &Piece, destination: &Piece, common: &Rectangle) -> Self {
        let order = source.order;
        let (rows, columns) = (common.panel_rows(order), common.panel_columns(order));
        let place = |piece: &Piece| {
            let held = rectangle_of(piece);
            let panels = (columns.0 - held.panel_columns(order).0) / PANEL;
            let offset = piece.offset + panels * piece.panel_bytes + (rows.0 - held.panel_rows(order).0) * ROW;
            Operand { buffer: piece.buffer, offset }
        };
        let runs = Self {
            source: place(source),
            destination: place(destination),
            count: (columns.1 - columns.0) / PANEL,
            bytes: (rows.1 - rows.0) * ROW,
            source_stride: source.panel_bytes,
            destination_stride: destination.panel_bytes,
        };
        runs.joined()
    }

    fn joined(self) -> Self {
        if self.source_stride == self.bytes && self.destination_stride == self.bytes {
            return Self::single(self.source, self.destination, self.bytes * self.count);
        }
        self
    }
}

/// Transfers of one phase, multicasts joined.
#[derive(Default)]
pub(crate) struct Traffic {
    /// Source tile, buffer, offset and bytes; then the receivers.
    sends: BTreeMap<(TileId, BufferId, u32, u32), Vec<Place>>,
}

impl Traffic {
    /// Adds runs from tile to tile; equal runs of one source become one send.
    pub(crate) fn add(&mut self, source: TileId, destination: TileId, runs: &Runs) {
        for run in 0..runs.count {
            let from = runs.source.offset + run * runs.source_stride;
            let to = runs.destination.offset + run * runs.destination_stride;
            let place = Place { tile: destination, buffer: runs.destination.buffer, offset: to };
            self.sends.entry((source, runs.source.buffer, from, runs.bytes)).or_default().push(place);
        }
    }

    fn problem(self) -> Problem {
        let transfer = |((tile, buffer, offset, bytes), destinations)| Transfer {
            source: Place { tile, buffer, offset },
            words: bytes / 4,
            destinations,
        };
        Problem { transfers: self.sends.into_iter().map(transfer).collect(), serial: Vec::new() }
    }
}
