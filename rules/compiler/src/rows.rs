//! Exchange rows at their addresses, judged again with the tile programs around them.
//!
//! In: the schedule of a phase, the placement. Out: the words of every participating tile. [`check`] judges them by the rules of
//! machine.md c.10 on placed rows, [`check_entries`] judges how the tile programs enter them.

use std::collections::BTreeMap;

use exchange::{FabricState, PlacedRow, RowFault, Schedule, TileProgram, Violation};
use ipu21::{
    isa::{self, form},
    tile::{TileId, WORKERS},
};

use crate::{
    placement::{Block, Placement},
    program::{Expanded, Step},
    supervisor::{Routine, Target},
    tile_code::{ClassCode, TileCode},
};

/// Rows of a phase by tile.
pub type PhaseRows = BTreeMap<TileId, Vec<u32>>;

/// Size of the largest row of a phase, which is known before placement.
pub fn row_bytes(schedule: &Schedule) -> u32 {
    schedule.tiles.iter().map(|plan| plan.row_words * 4).max().unwrap_or(0)
}

/// The rows of a phase.
pub fn relocate(schedule: &Schedule, placement: &Placement) -> Result<PhaseRows, Vec<RowFault>> {
    let rows = exchange::rows(schedule, |_, buffer| placement.buffer(buffer))?;
    Ok(rows.into_iter().map(|row| (row.tile, row.words)).collect())
}

/// Judges the placed rows of phase `phase` against its messages.
pub fn check(schedule: &Schedule, placement: &Placement, phase: u32, rows: &PhaseRows) -> Result<(), Vec<Violation>> {
    let Some(address) = placement.blocks.get(&Block::Row(phase)).copied() else { return Ok(()) };
    let placed: Vec<PlacedRow> = rows.iter().map(|(tile, words)| PlacedRow { tile: *tile, address, words: words.clone() }).collect();
    exchange::validate_rows(&schedule.timed(|_, buffer| placement.buffer(buffer)), &placed)
}

/// Judges the way of every class into every phase: one barrier each, equal paths to the rows, registers as rows assume, no worker.
pub fn check_entries(expanded: &Expanded, code: &TileCode) -> Result<(), Vec<Violation>> {
    let entries: Vec<Vec<TileProgram>> = code.classes.iter().map(entries).collect();
    let phases = expanded.steps.iter().filter(|step| matches!(step, Step::Exchange { .. })).count();
    let mut violations = Vec::new();
    for number in 0..phases {
        // A class with too few entries shows as a tile that meets no barrier.
        let programs: Vec<TileProgram> = entries.iter().zip(&code.classes).map(|(entries, class)| entry(entries, class, number)).collect();
        violations.extend(exchange::validate_programs(&programs).err().into_iter().flatten());
    }
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

fn entry(entries: &[TileProgram], class: &ClassCode, number: usize) -> TileProgram {
    entries.get(number).cloned().unwrap_or(TileProgram {
        tile: class.tiles[0],
        participates: false,
        entry_address: 0,
        entry: Vec::new(),
        state: FabricState::EXPECTED,
        active_workers: 0,
    })
}

/// Walks a class's instructions and cuts out what lies from each internal barrier to the next call.
fn entries(class: &ClassCode) -> Vec<TileProgram> {
    let targets: BTreeMap<u32, Target> = class.relocations.iter().map(|relocation| (relocation.word, relocation.target)).collect();
    let mut walk = Walk::default();
    let mut entries = Vec::new();
    for (index, word) in (0u32..).zip(&class.words) {
        let target = targets.get(&index).copied();
        if target == Some(Target::Routine(Routine::Finish)) {
            break;
        }
        if let Some((start, words)) = walk.step(index, *word, target) {
            entries.push(TileProgram {
                tile: class.tiles[0],
                participates: matches!(target, Some(Target::Block(Block::Row(_)))),
                entry_address: start * 4,
                entry: words,
                state: walk.state,
                active_workers: walk.workers,
            });
        }
    }
    entries
}

/// Registers, workers and the open entry while a program is read.
struct Walk {
    registers: [u32; 16],
    state: FabricState,
    workers: u32,
    open: Option<(u32, Vec<u32>)>,
}

impl Default for Walk {
    /// Nothing is known but what the runtime leaves: neutral source, format 0, idle exchange.
    fn default() -> Self {
        let state = FabricState { incoming_base: u32::MAX, outgoing_base: u32::MAX, countdown: u32::MAX, ..FabricState::EXPECTED };
        Self { registers: [0; 16], state, workers: 0, open: None }
    }
}

impl Walk {
    /// Takes a word; gives the entry that it closes.
    fn step(&mut self, index: u32, word: u32, target: Option<Target>) -> Option<(u32, Vec<u32>)> {
        let decoded = isa::decode(std::slice::from_ref(&word))?;
        let operands = decoded.operands();
        if opens(decoded.form, operands) {
            self.open = Some((index, Vec::new()));
        }
        if let Some((_, words)) = &mut self.open {
            words.push(word);
        }
        match (decoded.form, operands) {
            (form::SETZI_M_ZI20, [register, value]) => self.registers[*register as usize & 15] = *value,
            (form::PUT_ZI8_M, [control, register]) => {
                self.state = self.state.after_put(*control, self.registers[*register as usize & 15]);
            }
            (form::CALL_M_ZI20, _) => {
                let closed = self.open.take();
                if closed.is_none() {
                    self.called(target);
                }
                return closed;
            }
            _ => {}
        }
        None
    }

    /// Kernels are taken to leave workers in any state until they are joined; a host row counts its words down to other values.
    fn called(&mut self, target: Option<Target>) {
        match target {
            Some(Target::Routine(Routine::Join)) => self.workers = 0,
            Some(Target::HostRow(_)) => self.state.countdown = u32::MAX,
            _ => self.workers = WORKERS,
        }
    }
}

/// `sync 3`, or `sans 0`: the two ways to an internal barrier.
fn opens(form: isa::FormId, operands: &[u32]) -> bool {
    matches!((form, operands), (form::SYNC_ZI4, [3]) | (form::SANS_ZI19, [0]))
}
