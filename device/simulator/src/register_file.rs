//! Registers of all workers side by side: a row for each register, a lane for each worker.
//!
//! While workers run together their registers live here, so that one operation on a row serves them all; compilers turn loops
//! over lanes into vector code. Lanes that belong to no member hold anything and are never looked at.
#![expect(clippy::needless_range_loop, reason = "one lane of several rows at a time")]

use crate::context::Worker;
use crate::crew::WORKERS;

/// Lanes of a row: the workers, and room to fill a vector register.
pub(crate) const LANES: usize = 8;
/// A value for each worker.
pub(crate) type Row = [u32; LANES];
/// A bit for each lane. Wider than need be: a narrow store that a wider load reads back stalls the host.
pub(crate) type Set = u32;
/// All lanes.
pub(crate) const ALL: Set = 0xff;

/// Rows behind the registers that take what is written to fixed ones lane by lane.
const SINKS: usize = 4;

/// One of the two register files of all workers.
#[derive(Clone, Debug)]
pub(crate) struct RegisterFile {
    rows: [Row; 16 + SINKS],
    /// A bit for each lane whose register was written.
    written: [Set; 16],
    /// A bit for each register that was written in the lanes of all members.
    complete: u32,
    members: Set,
    /// Registers from this one on ignore writes.
    fixed_from: u8,
}

/// Both register files of some workers.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) main: RegisterFile,
    pub(crate) aux: RegisterFile,
    /// All bits in the lanes of members.
    members: Row,
}

impl RegisterFile {
    fn new(members: Set, fixed_from: u8) -> RegisterFile {
        RegisterFile { rows: [[0; LANES]; 16 + SINKS], written: [0; 16], complete: 0, members, fixed_from }
    }

    fn enter(&mut self, lane: usize, values: &[u32; 16], written: u16) {
        for (register, &value) in values.iter().enumerate() {
            self.rows[register][lane] = value;
            self.written[register] |= Set::from(written >> register & 1) << lane;
        }
    }

    fn count_complete(&mut self) {
        let members = self.members;
        let bit = |register: usize, lanes: Set| u32::from(lanes & members == members) << register;
        self.complete = self.written.iter().enumerate().fold(0, |mask, (register, &lanes)| mask | bit(register, lanes));
    }

    /// The registers of a lane, and a bit for each that was written.
    #[inline]
    pub(crate) fn lane(&self, lane: usize) -> ([u32; 16], u16) {
        let written = self.written.iter().enumerate().fold(0, |mask, (register, &lanes)| mask | ((lanes >> lane & 1) as u16) << register);
        (std::array::from_fn(|register| self.rows[register][lane]), written)
    }

    /// A register of all workers.
    #[inline(always)]
    pub(crate) fn get(&self, register: u8) -> Row {
        self.rows[register as usize & 15]
    }

    /// A pair of registers of all workers.
    #[inline(always)]
    pub(crate) fn pair(&self, register: u8) -> &[Row; 2] {
        &self.rows.as_chunks::<2>().0[(register as usize / 2) & 7]
    }

    /// A bit for each lane whose register was written.
    #[inline(always)]
    pub(crate) fn written(&self, register: u8) -> Set {
        self.written[register as usize & 15]
    }

    /// Whether all members wrote all registers of a set.
    #[inline(always)]
    pub(crate) fn has(&self, registers: u16) -> bool {
        u32::from(registers) & !self.complete == 0
    }

    /// Whether all members wrote both registers of a pair.
    #[inline(always)]
    pub(crate) fn has_pair(&self, register: u8) -> bool {
        self.complete >> (register & 14) & 3 == 3
    }

    /// A pair of registers of one worker, the first in the low half.
    #[inline(always)]
    pub(crate) fn double(&self, register: u8, lane: usize) -> u64 {
        let at = register as usize & 14;
        u64::from(self.rows[at][lane]) | u64::from(self.rows[at + 1][lane]) << 32
    }

    /// Where [`RegisterFile::put_double`] finds the rows of a pair. Pairs that one instruction writes have different `number`s.
    #[inline(always)]
    pub(crate) fn pair_place(&self, register: u8, number: usize) -> usize {
        if register < self.fixed_from { register as usize & 14 } else { 16 + 2 * (number & 1) }
    }

    /// Writes a pair of registers of one worker; [`RegisterFile::note_pair`] follows. Lane by lane, since a row put together in
    /// between would be read back before its parts reach the cache.
    #[inline(always)]
    pub(crate) fn put_double(&mut self, place: usize, lane: usize, value: u64) {
        self.rows[place][lane] = value as u32;
        self.rows[place + 1][lane] = (value >> 32) as u32;
    }

    /// Says where a pair of registers that was written lane by lane is no poison.
    #[inline(always)]
    pub(crate) fn note_pair(&mut self, register: u8, written: [Set; 2], lanes: Set) {
        self.note(register, written[0], lanes);
        self.note(register + 1, written[1], lanes);
    }

    #[inline(always)]
    fn note(&mut self, register: u8, written: Set, lanes: Set) {
        if register >= self.fixed_from {
            return;
        }
        let known = &mut self.written[register as usize & 15];
        *known = *known & !lanes | written & lanes;
        let bit = 1 << register;
        self.complete = if *known & self.members == self.members { self.complete | bit } else { self.complete & !bit };
    }

    /// Writes a register in some lanes; `written` says where the value is no poison. Fixed registers ignore it.
    #[inline(always)]
    pub(crate) fn set(&mut self, register: u8, values: Row, written: Set, lanes: Set) {
        if register >= self.fixed_from {
            return;
        }
        let row = &mut self.rows[register as usize & 15];
        if lanes == ALL {
            *row = values;
        } else {
            for (lane, value) in values.into_iter().enumerate().filter(|(lane, _)| lanes >> lane & 1 == 1) {
                row[lane] = value;
            }
        }
        self.note(register, written, lanes);
    }
}

impl Files {
    /// The registers of the members.
    pub(crate) fn gather(workers: &[Worker; WORKERS], members: u8) -> Files {
        let set = Set::from(members);
        let row = std::array::from_fn(|lane| (set >> lane & 1).wrapping_neg());
        let mut files = Files { main: RegisterFile::new(set, 12), aux: RegisterFile::new(set, 8), members: row };
        for (lane, worker) in workers.iter().enumerate().filter(|(lane, _)| members >> lane & 1 == 1) {
            files.main.enter(lane, worker.main.values(), worker.main.written());
            files.aux.enter(lane, &worker.aux, worker.aux_written);
        }
        files.main.count_complete();
        files.aux.count_complete();
        files
    }

    /// Whether a row is 0 for all members.
    #[inline(always)]
    pub(crate) fn is_nowhere(&self, row: &Row) -> bool {
        let mut any = 0;
        for lane in 0..LANES {
            any |= row[lane] & self.members[lane];
        }
        any == 0
    }

    /// Gives the members their registers back.
    pub(crate) fn scatter(&self, workers: &mut [Worker; WORKERS]) {
        for (lane, worker) in workers.iter_mut().enumerate().filter(|(lane, _)| self.main.members >> lane & 1 == 1) {
            let (values, written) = self.main.lane(lane);
            worker.main.replace(values, written);
            self.give_aux(lane, worker);
        }
    }

    /// Gives a member its aux registers.
    #[inline]
    pub(crate) fn give_aux(&self, lane: usize, worker: &mut Worker) {
        (worker.aux, worker.aux_written) = self.aux.lane(lane);
    }
}
