//! Pages and calls of the host exchange (package.md 4, machine.md e.6).

use serde::{Deserialize, Serialize};

/// A pinned host buffer; attached in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Number given to the driver.
    pub index: u32,
    /// Size, a multiple of 4096.
    pub bytes: u32,
}

/// Where the host writes the number of the command it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Page index.
    pub page: u32,
    /// Byte offset in the page, a multiple of 4.
    pub offset: u32,
}

/// What a call moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CallKind {
    /// Weights to the tiles: twice as many host phases as batches.
    Initialize,
    /// Inputs to the tiles, outputs back: twice as many host phases as batches, less one.
    Run,
}

/// A stretch of a page that holds a stretch of a binding's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallSlice {
    /// Index of the binding.
    pub binding: u32,
    /// Page index.
    pub page: u32,
    /// Byte offset in the page, a multiple of 4.
    pub page_offset: u32,
    /// Byte offset in the binding's file.
    pub file_offset: u64,
    /// Size, a multiple of 4.
    pub bytes: u32,
}

/// Slices by batch: one batch is what one load of the rolling data page holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfers {
    /// Of all batches, batch after batch.
    pub slices: Vec<CallSlice>,
    /// Exclusive end of every batch in `slices`, strictly increasing.
    pub batch_ends: Vec<u32>,
}

/// Something the host can make the program do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Unique: `initialize`, `run`.
    pub name: String,
    /// Value for the command word.
    pub command: u32,
    /// What it moves.
    pub kind: CallKind,
    /// Host phases: marks the host writes until the call is over.
    pub phases: u32,
    /// To the tiles.
    pub inputs: Transfers,
    /// To the host.
    pub outputs: Transfers,
    /// The tiles stop behind it: closing mark and completion wait.
    pub ends_program: bool,
    /// How often it may be called after a load; `None`: without limit.
    pub invocations: Option<u32>,
}

impl Transfers {
    /// Adds a batch.
    ///
    /// # Panics
    /// With 2^32 slices or more.
    pub fn push_batch(&mut self, slices: impl IntoIterator<Item = CallSlice>) {
        self.slices.extend(slices);
        self.batch_ends.push(u32::try_from(self.slices.len()).expect("fewer than 2^32 slices"));
    }

    /// The slices of each batch; ends outside the list give what is there.
    pub fn batches(&self) -> impl ExactSizeIterator<Item = &[CallSlice]> {
        (0..self.batch_ends.len()).map(|batch| {
            let at = |index: usize| (self.batch_ends[index] as usize).min(self.slices.len());
            let start = if batch == 0 { 0 } else { at(batch - 1) };
            self.slices.get(start..at(batch)).unwrap_or_default()
        })
    }
}

impl Call {
    /// Host phases that the batches need (machine.md e.6).
    #[must_use]
    pub fn expected_phases(&self) -> u64 {
        let batches = (self.inputs.batch_ends.len() + self.outputs.batch_ends.len()) as u64;
        match self.kind {
            CallKind::Initialize => 2 * batches,
            CallKind::Run => (2 * batches).saturating_sub(1),
        }
    }
}
