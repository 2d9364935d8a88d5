//! What placement has to find room for besides buffers: code, host rows, exchange rows, with the tiles that have them.

use std::collections::{BTreeMap, BTreeSet};

use exchange::BufferId;
use ipu21::tile::TileId;
use toolchain::manifest::Kernel;

use crate::{
    host_plan::HostPlan,
    host_rows,
    images::Objects,
    placement::{Block, BlockDemand},
    program::{Expanded, Step},
    tile_code::TileCode,
};

/// Every block of a program. `row_bytes` is the largest row of each exchange phase, as its schedule says.
pub fn demands(plan: &HostPlan, code: &TileCode, objects: &Objects, row_bytes: &[u32]) -> Vec<BlockDemand> {
    let all: Vec<TileId> = TileId::all().collect();
    let demand = |block, bytes, align: u32, tiles: Vec<TileId>| BlockDemand { block, bytes, align: align.max(8), tiles };
    let runtime = &objects.runtime;
    let mut demands = vec![
        demand(Block::Runtime, runtime.text().len() as u32, runtime.align(), all.clone()),
        demand(Block::Program, code.program_bytes(), 8, all.clone()),
        demand(Block::Greeting, host_rows::greeting(all[0]).len() as u32 * 4, 8, all),
        demand(Block::Copy, objects.copy.object.text().len() as u32, objects.copy.object.align(), code.tiles_where(|class| class.copies)),
    ];
    for (variant, kernel) in (0u32..).map(crate::program::VariantId).zip(&objects.kernels) {
        let tiles = code.tiles_with(variant);
        demands.push(demand(Block::Kernel(variant), kernel.object.text().len() as u32, kernel.object.align(), tiles));
    }
    for (number, layout) in (0u32..).zip(host_layouts(plan)) {
        let tiles = code.tiles_where(|class| class.host_phases.contains(&number));
        demands.push(demand(Block::Host(number), layout.bytes, 8, tiles));
    }
    for (phase, bytes) in (0u32..).zip(row_bytes) {
        demands.push(demand(Block::Row(phase), *bytes, 8, code.tiles_where(|class| class.phases.contains(&phase))));
    }
    demands.retain(|demand| !demand.tiles.is_empty());
    demands
}

/// Where table and row of a host phase lie inside its block, the same on all tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostLayout {
    /// Offset of the row, behind the largest table.
    pub(crate) row_offset: u32,
    /// Size of the block.
    pub(crate) bytes: u32,
}

/// The layout of each host phase.
pub(crate) fn host_layouts(plan: &HostPlan) -> Vec<HostLayout> {
    let layout = |(way, batch)| {
        let rows = host_rows::participants(batch);
        let sizes = rows.iter().filter_map(|tile| host_rows::host_row(plan, way, batch, tile, |_| 0)).map(|row| {
            // The table starts with the count of its words.
            ((row.staged.len() as u32 + 1) * 4, row.row.len() as u32 * 4)
        });
        let (table, row) = sizes.fold((0, 0), |(table, row), size| (table.max(size.0), row.max(size.1)));
        let row_offset = table.next_multiple_of(8);
        HostLayout { row_offset, bytes: row_offset + row.next_multiple_of(8) }
    };
    plan.batches().map(layout).collect()
}

/// What a call asks of its kernel's manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The manifest has no such kernel.
    UnknownKernel {
        /// Name of the kernel.
        kernel: String,
    },
    /// The call has another number of operands or values than the manifest.
    Arity {
        /// Name of the kernel.
        kernel: String,
        /// Operands found and expected.
        operands: (usize, usize),
        /// Values found and expected.
        values: (usize, usize),
    },
    /// A pair names an operand that the kernel does not have.
    UnknownOperand {
        /// Name of the kernel.
        kernel: String,
        /// Name of the operand.
        operand: String,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownKernel { kernel } => write!(f, "kernel {kernel} is in no kernel library of the program"),
            Self::Arity { kernel, operands, values } => write!(
                f,
                "kernel {kernel}: called with {} operands and {} values, its manifest has {} and {}",
                operands.0, values.0, operands.1, values.1
            ),
            Self::UnknownOperand { kernel, operand } => write!(f, "kernel {kernel}: apart names {operand}, which is no operand"),
        }
    }
}

impl std::error::Error for Fault {}

/// Pairs of buffers that some kernel call wants in different conflict units, ascending.
pub fn kernel_apart(expanded: &Expanded, manifests: &BTreeMap<String, Kernel>) -> Result<Vec<(BufferId, BufferId)>, Fault> {
    let mut pairs = BTreeSet::new();
    let groups = expanded.steps.iter().filter_map(|step| match step {
        Step::Compute { groups, .. } => Some(groups),
        Step::Exchange { .. } | Step::Checkpoint { .. } => None,
    });
    for call in groups.flatten().flat_map(|group| &group.calls) {
        let name = &expanded.variants[call.kernel.0 as usize].kernel;
        let kernel = manifests.get(name).ok_or_else(|| Fault::UnknownKernel { kernel: name.clone() })?;
        let (operands, values) = (kernel.operands.len(), kernel.values.len());
        if (call.operands.len(), call.values.len()) != (operands, values) {
            let (operands, values) = ((call.operands.len(), operands), (call.values.len(), values));
            return Err(Fault::Arity { kernel: name.clone(), operands, values });
        }
        let buffer = |operand: &String| {
            let position = kernel.operands.iter().position(|known| known.name == *operand);
            let unknown = || Fault::UnknownOperand { kernel: name.clone(), operand: operand.clone() };
            position.map(|index| call.operands[index].buffer).ok_or_else(unknown)
        };
        for pair in &kernel.apart {
            let (first, second) = (buffer(&pair[0])?, buffer(&pair[1])?);
            pairs.insert((first.min(second), first.max(second)));
        }
    }
    Ok(pairs.into_iter().collect())
}
