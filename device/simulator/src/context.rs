//! State of one worker context: registers with written bits, repeat state, floating point, accumulators.

use crate::arithmetic::FloatState;
use crate::code::Operation;
use crate::fault::{Cause, Place, Step, fail};
use crate::matrix_unit::{Accumulators, Sorter};
use crate::memory::scramble;
use crate::tile::Survival;

/// Main registers 12..15: read-only, always defined.
pub(crate) const MAIN_FIXED: u16 = 0xf000;
/// Aux registers 8..15: read zero, always defined.
pub(crate) const AUX_FIXED: u16 = 0xff00;

/// `$m0..$m15` of a context, with written bits.
#[derive(Clone, Debug)]
pub(crate) struct MainRegisters {
    values: [u32; 16],
    written: u16,
}

impl MainRegisters {
    /// Poison, except for the fixed registers 12..15.
    pub(crate) fn new(salt: u64) -> MainRegisters {
        let mut values: [u32; 16] = std::array::from_fn(|i| scramble(salt ^ i as u64) as u32);
        values[12..].fill(0);
        MainRegisters { values, written: MAIN_FIXED }
    }

    /// A register.
    #[inline]
    pub(crate) fn get(&self, register: u8) -> u32 {
        self.values[register as usize & 15]
    }

    /// All registers.
    pub(crate) fn values(&self) -> &[u32; 16] {
        &self.values
    }

    /// A bit for each register that somebody wrote.
    pub(crate) fn written(&self) -> u16 {
        self.written
    }

    /// Takes over all registers.
    pub(crate) fn replace(&mut self, values: [u32; 16], written: u16) {
        (self.values, self.written) = (values, written);
    }

    /// Whether somebody wrote a register.
    #[inline]
    pub(crate) fn is_written(&self, register: u8) -> bool {
        self.written >> (register & 15) & 1 == 1
    }

    /// Writes a register; the fixed ones ignore it.
    #[inline]
    pub(crate) fn set(&mut self, register: u8, value: u32, written: bool) {
        if register < 12 {
            self.values[register as usize] = value;
            self.written = self.written & !(1 << register) | u16::from(written) << register;
        }
    }

    /// Gives one of the fixed registers 12..14 its value.
    pub(crate) fn fix(&mut self, register: u8, value: u32) {
        self.values[register as usize & 15] = value;
    }

    /// Makes poison of all registers but the fixed ones.
    fn forget(&mut self) {
        self.written = MAIN_FIXED;
    }

    /// Refuses to address, branch or launch with registers that nobody wrote.
    #[inline]
    pub(crate) fn need(&self, operation: &Operation) -> Step {
        let missing = operation.needs_main & !self.written;
        if missing != 0 {
            return poison(Place::Main(missing.trailing_zeros() as u8), operation);
        }
        Ok(())
    }
}

/// `$REPEAT_FIRST`, `$REPEAT_END`, `$REPEAT_COUNT`; count 0 means that no repeat runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Repeat {
    /// First byte of the body.
    pub(crate) first: u32,
    /// First byte behind the body.
    pub(crate) end: u32,
    /// Passes left, the running one included.
    pub(crate) count: u32,
}

impl Repeat {
    /// Whether a repeat runs.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.count > 0
    }
}

/// A worker. Registers, accumulators and the random source survive exit and launch (parameters.toml `[state]`).
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    /// 0..5.
    pub(crate) number: u8,
    /// Whether it runs.
    pub(crate) active: bool,
    /// Program counter.
    pub(crate) pc: u32,
    /// Clock of its next issue.
    pub(crate) next: u64,
    /// `$m0..$m15`.
    pub(crate) main: MainRegisters,
    /// `$a0..$a15`; 8..15 stay 0.
    pub(crate) aux: [u32; 16],
    /// A bit for each aux register that was written.
    pub(crate) aux_written: u16,
    /// Hardware loop.
    pub(crate) repeat: Repeat,
    /// Floating point.
    pub(crate) float: FloatState,
    /// `$AACC`.
    pub(crate) accumulators: Accumulators,
    /// The transpose.
    pub(crate) sorter: Sorter,
    /// `$TAS`.
    pub(crate) scale: u32,
    /// Whether `$TAS` was written.
    pub(crate) scale_written: bool,
    /// `$FP_NFMT`.
    pub(crate) byte_format: u32,
    /// `$FP_SCL`, raw 6 bits.
    pub(crate) byte_scale: u32,
}

impl Worker {
    /// A worker full of poison.
    pub(crate) fn new(number: u8, salt: u64) -> Worker {
        let salt = scramble(salt ^ (0x77 + u64::from(number)));
        let mut aux: [u32; 16] = std::array::from_fn(|i| scramble(salt ^ (32 + i as u64)) as u32);
        aux[8..].fill(0);
        Worker {
            number,
            active: false,
            pc: 0,
            next: 0,
            main: MainRegisters::new(salt),
            aux,
            aux_written: AUX_FIXED,
            repeat: Repeat::default(),
            float: FloatState { random: [scramble(salt ^ 64), scramble(salt ^ 65)], ..FloatState::default() },
            accumulators: Accumulators::new(scramble(salt ^ 66)),
            sorter: Sorter::default(),
            scale: scramble(salt ^ 67) as u32,
            scale_written: false,
            byte_format: 0,
            byte_scale: 0,
        }
    }

    /// Starts the worker (isa-notes 6).
    pub(crate) fn launch(&mut self, entry: u32, vertex_base: u32, worker_base: u32, control: u32, clock: u64) {
        self.active = true;
        self.pc = entry;
        self.next = clock;
        self.main.fix(12, worker_base);
        self.main.fix(13, vertex_base);
        self.float.control = control;
        self.float.status = 0;
    }

    /// Clock of worker 0's slot in the round of this worker's next turn.
    #[inline]
    pub(crate) fn round(&self) -> u64 {
        self.next.saturating_sub(u64::from(self.number))
    }

    /// Whether this worker's next turn is in the same round, at the same instruction and of the same repeat as another's.
    #[inline]
    pub(crate) fn stands_with(&self, other: &Worker) -> bool {
        let repeats = (self.repeat.is_running(), other.repeat.is_running());
        let same_repeat = repeats == (false, false)
            || repeats == (true, true) && self.repeat.first == other.repeat.first && self.repeat.end == other.repeat.end;
        self.pc == other.pc && self.round() == other.round() && same_repeat
    }

    /// Goes on to `next` behind an instruction that was no branch; at the end of a repeat body that may be its start.
    pub(crate) fn go_on(&mut self, next: u32) {
        self.pc = next;
        if self.repeat.is_running() && next == self.repeat.end {
            self.repeat.count -= 1;
            if self.repeat.is_running() {
                self.pc = self.repeat.first;
            }
        }
    }

    /// Makes poison of what does not outlive an exit.
    pub(crate) fn forget(&mut self, survival: Survival) {
        if !survival.registers {
            self.main.forget();
            self.aux_written = AUX_FIXED;
            self.scale_written = false;
        }
        if !survival.accumulators {
            self.accumulators.forget();
        }
    }

    /// All state, bit by bit.
    pub(crate) fn in_words(&self) -> String {
        let place = (self.number, self.active, self.pc, self.next, self.repeat);
        let registers = (&self.main, self.aux, self.aux_written, self.scale, self.scale_written, self.byte_format, self.byte_scale);
        format!("worker {place:x?} {registers:x?} {:x?} {:x?} {:x?}", self.float, self.accumulators.contents(), self.sorter)
    }

    /// Writes an aux register; the fixed ones ignore it.
    #[inline]
    pub(crate) fn set_aux(&mut self, register: u8, value: u32, written: u32) {
        if register < 8 {
            self.aux[register as usize] = value;
            let bit = 1 << register;
            self.aux_written = self.aux_written & !bit | ((written & 1) as u16) << register;
        }
    }

    /// Writes an aux pair; `written` has a bit for each register.
    #[inline]
    pub(crate) fn set_aux_pair(&mut self, register: u8, value: u64, written: u32) {
        if register < 8 {
            let at = register as usize & 6;
            self.aux[at] = value as u32;
            self.aux[at + 1] = (value >> 32) as u32;
            self.aux_written = self.aux_written & !(3 << at) | ((written & 3) as u16) << at;
        }
    }

    /// An aux register.
    #[inline]
    pub(crate) fn aux(&self, register: u8) -> u32 {
        self.aux[register as usize & 15]
    }

    /// An aux pair, element 0 in the low half.
    #[inline]
    pub(crate) fn aux_pair(&self, register: u8) -> u64 {
        let at = register as usize & 14;
        u64::from(self.aux[at]) | u64::from(self.aux[at + 1]) << 32
    }

    /// Written bits of an aux pair.
    #[inline]
    pub(crate) fn aux_pair_written(&self, register: u8) -> u32 {
        u32::from(self.aux_written >> (register & 14)) & 3
    }

    /// Refuses to compute with aux registers that nobody wrote.
    #[inline]
    pub(crate) fn need_aux(&self, operation: &Operation) -> Step {
        let missing = operation.needs_aux & !self.aux_written;
        if missing != 0 {
            return poison(Place::Aux(missing.trailing_zeros() as u8), operation);
        }
        Ok(())
    }
}

/// The fault of using poison.
#[cold]
pub(crate) fn poison<T>(place: Place, operation: &Operation) -> Step<T> {
    fail(Cause::PoisonUsed { place, form: operation.name() })
}
