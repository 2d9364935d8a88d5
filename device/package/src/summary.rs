//! The facts about a package that a listing shows; plain data, no text layout.

use serde::Serialize;

use crate::binding::{Element, Group};
use crate::call::CallKind;
use crate::image::Segment;
use crate::package::Package;
use crate::profile::StepKind;
use crate::target::Target;

/// A tensor of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SummaryBinding {
    /// Name.
    pub name: String,
    /// Direction.
    pub group: Group,
    /// Element type.
    pub element: Element,
    /// Logical shape.
    pub shape: Vec<u32>,
    /// Bytes of the host file, padding and copies included.
    pub file_bytes: u64,
    /// Slices.
    pub slices: usize,
    /// Tiles that hold some of it.
    pub tiles: usize,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SummaryCall {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: CallKind,
    /// Host phases.
    pub phases: u32,
    /// Batches to the tiles.
    pub input_batches: usize,
    /// Batches to the host.
    pub output_batches: usize,
    /// Bytes moved in both directions.
    pub bytes: u64,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SummaryStep {
    /// What it does.
    pub name: String,
    /// Name of the operation.
    pub operation: Option<String>,
    /// Kind.
    pub kind: StepKind,
    /// Planned clocks.
    pub planned_clocks: u64,
}

/// A package at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// What it was built for.
    pub target: Target,
    /// Tile records.
    pub tiles: usize,
    /// Segments of all tiles.
    pub segments: usize,
    /// Distinct contents stored.
    pub blobs: usize,
    /// Bytes of those contents.
    pub blob_bytes: u64,
    /// Bytes of all segments of all tiles.
    pub memory_bytes: u64,
    /// Bytes of the fullest tile's segments.
    pub largest_tile_bytes: u64,
    /// Tensors of the host.
    pub bindings: Vec<SummaryBinding>,
    /// Sizes of the pages by number.
    pub pages: Vec<(u32, u32)>,
    /// Calls.
    pub calls: Vec<SummaryCall>,
    /// Operations with a checkpoint: number, name and tensors.
    pub checkpoints: Vec<(u32, String, usize)>,
    /// Steps.
    pub steps: Vec<SummaryStep>,
    /// Planned clocks of all steps.
    pub planned_clocks: u64,
    /// Kernels and runtime in it, by listing.
    pub code: Vec<String>,
    /// Symbols.
    pub symbols: usize,
    /// Unknown parameters that its words depend on.
    pub code_parameters: Vec<String>,
}

impl Package {
    /// The facts to show.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let tile_bytes = |segments: &[Segment]| segments.iter().map(|segment| u64::from(segment.memory_bytes)).sum::<u64>();
        Summary {
            target: self.target.clone(),
            tiles: self.tiles.len(),
            segments: self.tiles.iter().map(|tile| tile.segments.len()).sum(),
            blobs: self.blobs.contents().len(),
            blob_bytes: self.blobs.contents().iter().map(|blob| blob.len() as u64).sum(),
            memory_bytes: self.tiles.iter().map(|tile| tile_bytes(&tile.segments)).sum(),
            largest_tile_bytes: self.tiles.iter().map(|tile| tile_bytes(&tile.segments)).max().unwrap_or(0),
            bindings: self.summary_bindings(),
            pages: self.pages.iter().map(|page| (page.index, page.bytes)).collect(),
            calls: self.summary_calls(),
            checkpoints: self.checkpoints.iter().map(|stop| (stop.operation, stop.name.clone(), stop.tensors.len())).collect(),
            steps: self.summary_steps(),
            planned_clocks: self.profile.steps.iter().fold(0, |sum, step| u64::saturating_add(sum, step.planned_clocks)),
            code: self.listings.iter().map(|listing| listing.name.clone()).collect(),
            symbols: self.symbols.len(),
            code_parameters: self.code_parameters.clone(),
        }
    }

    fn summary_bindings(&self) -> Vec<SummaryBinding> {
        let tiles = |slices: &[crate::Slice]| crate::TileSet::new(slices.iter().map(|slice| slice.tile)).0.len();
        let bindings = self.bindings.iter().map(|binding| SummaryBinding {
            name: binding.name.clone(),
            group: binding.group,
            element: binding.element,
            shape: binding.shape.clone(),
            file_bytes: binding.file_bytes,
            slices: binding.slices.len(),
            tiles: tiles(&binding.slices),
        });
        bindings.collect()
    }

    fn summary_calls(&self) -> Vec<SummaryCall> {
        let calls = self.calls.iter().map(|call| SummaryCall {
            name: call.name.clone(),
            kind: call.kind,
            phases: call.phases,
            input_batches: call.inputs.batch_ends.len(),
            output_batches: call.outputs.batch_ends.len(),
            bytes: call.inputs.slices.iter().chain(&call.outputs.slices).map(|slice| u64::from(slice.bytes)).sum(),
        });
        calls.collect()
    }

    fn summary_steps(&self) -> Vec<SummaryStep> {
        let operation = |index: u32| self.profile.operations.get(index as usize).cloned();
        let steps = self.profile.steps.iter().map(|step| SummaryStep {
            name: step.name.clone(),
            operation: step.operation.and_then(operation),
            kind: step.kind,
            planned_clocks: step.planned_clocks,
        });
        steps.collect()
    }
}
