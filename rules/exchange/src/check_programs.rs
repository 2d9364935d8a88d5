//! Judges what surrounds the rows of a phase on all tiles of the chip (machine.md c.8).
//!
//! Rules: I20 a tile contributes to the barrier exactly once: by one `sync 3`, or, if it takes no part, by one `sans` credit that
//! one `sync 1` waits for; I22 the words behind the barrier are equal on all participants but for the target of the call, at
//! equal alignment; I21 the fabric's registers are as rows assume; I19 no worker runs from the barrier on.

use ipu21::csr;
use ipu21::exchange_word::NEUTRAL;
use ipu21::isa::{self, FormId, form};
use ipu21::tile::TileId;

use crate::violation::{Findings, Invariant, Violation};

/// Registers of the exchange when a row starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricState {
    /// Source select; neutral is 0x640.
    pub mux: u32,
    /// Incoming format, 0.
    pub format: u32,
    /// Base of incoming pointers, 0.
    pub incoming_base: u32,
    /// Base of outgoing addresses, 0.
    pub outgoing_base: u32,
    /// Countdown of incoming words, 1.
    pub countdown: u32,
    /// Exchange control, 0 when idle.
    pub control: u32,
}

impl FabricState {
    /// What rows assume (machine.md c.8, I21).
    pub const EXPECTED: Self = Self { mux: NEUTRAL, format: 0, incoming_base: 0, outgoing_base: 0, countdown: 1, control: 0 };

    /// The state after a `put` of `value` to a register.
    #[must_use]
    pub const fn after_put(mut self, register: u32, value: u32) -> Self {
        match register {
            csr::INCOMING_MUX => self.mux = value,
            csr::INCOMING_FORMAT => self.format = value,
            csr::INCOMING_BASE => self.incoming_base = value,
            csr::OUTGOING_BASE => self.outgoing_base = value,
            csr::INCOMING_DCOUNT => self.countdown = value,
            csr::EXCHANGE_CTL => self.control = value,
            _ => {}
        }
        self
    }
}

/// What a tile does around its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileProgram {
    /// The tile.
    pub tile: TileId,
    /// Whether it sends or receives in the phase.
    pub participates: bool,
    /// Byte address of the first word of `entry`.
    pub entry_address: u32,
    /// The words executed from the first barrier instruction to the call of the row.
    pub entry: Vec<u32>,
    /// Registers when the barrier releases the tile.
    pub state: FabricState,
    /// Workers still running when the barrier releases the tile.
    pub active_workers: u32,
}

/// Judges the surroundings of a phase's rows; `programs` holds all tiles that meet at the barrier.
///
/// # Errors
/// Every violation found of I19 to I22.
pub fn validate_programs(programs: &[TileProgram]) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    let mut common: Option<Path> = None;
    for program in programs {
        let path = read_path(program);
        let tile = Some(program.tile);
        let once = if program.participates { path.arrivals == (1, 0, 0) } else { path.arrivals == (1, 0, 0) || path.arrivals == (0, 1, 1) };
        findings.expect(once, Invariant::I20, tile, None, None);
        if !program.participates {
            continue;
        }
        findings.expect(program.active_workers == 0 && !path.starts_workers, Invariant::I19, tile, None, None);
        findings.expect(program.state == FabricState::EXPECTED && !path.sets_registers, Invariant::I21, tile, None, None);
        let ends_in_call = path.behind.last().is_some_and(|step| step.form == Some(form::CALL_M_ZI20));
        let first = common.get_or_insert_with(|| path.clone());
        let equal = first.behind == path.behind && first.alignment == path.alignment;
        findings.expect(equal && ends_in_call, Invariant::I22, tile, None, None);
    }
    findings.result()
}

/// An instruction of a path, without the target of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    form: Option<FormId>,
    operands: Vec<u32>,
}

#[derive(Clone)]
struct Path {
    /// `sync 3`, `sans` credits, `sync 1`.
    arrivals: (u32, u32, u32),
    /// Instructions behind the last barrier.
    behind: Vec<Step>,
    /// Address of the first of them, modulo a bundle of 8 bytes.
    alignment: u32,
    starts_workers: bool,
    sets_registers: bool,
}

fn read_path(program: &TileProgram) -> Path {
    let mut path = Path { arrivals: (0, 0, 0), behind: Vec::new(), alignment: 0, starts_workers: false, sets_registers: false };
    for (at, word) in (1..).zip(&program.entry) {
        let decoded = isa::decode(std::slice::from_ref(word));
        let step = Step {
            form: decoded.as_ref().map(|decoded| decoded.form),
            operands: decoded.as_ref().map_or_else(|| vec![*word], |decoded| decoded.operands().to_vec()),
        };
        let is_barrier = path.count(&step);
        if is_barrier {
            path.behind.clear();
            path.alignment = (program.entry_address + 4 * at) % 8;
            continue;
        }
        let mnemonic = step.form.map_or("", |id| form(id).mnemonic);
        path.starts_workers |= matches!(mnemonic, "run" | "runall");
        path.sets_registers |= mnemonic == "put";
        path.behind.push(without_target(step));
    }
    path
}

impl Path {
    /// Counts a barrier instruction.
    fn count(&mut self, step: &Step) -> bool {
        match (step.form.map(|id| form(id).mnemonic), step.operands.first()) {
            (Some("sync"), Some(3)) => self.arrivals.0 += 1,
            (Some("sync"), Some(1)) => self.arrivals.2 += 1,
            (Some("sans"), Some(credits)) => self.arrivals.1 += credits + 1,
            _ => return false,
        }
        true
    }
}

fn without_target(mut step: Step) -> Step {
    if step.form == Some(form::CALL_M_ZI20) {
        step.operands.truncate(1);
    }
    step
}
