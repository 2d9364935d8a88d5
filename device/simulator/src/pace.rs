//! Instructions with triple-packed addresses (isa-notes 4): up to two loads and a store in one slot.
//!
//! `tapack` puts addr0 into bits 20:0 of the lower register, addr1 into bits 20:0 of the upper one, and addr2 as parameters.toml
//! `tapack_addr2_split` says: [10:0] into bits 31:21 of the lower, [20:11] into bits 30:21 of the upper register.

use crate::code::Operation;
use crate::context::{MainRegisters, Worker};
use crate::fault::{Cause, Step, fail};
use crate::load_store::{apart, store_pair};
use crate::memory::{BASE, END, TileMemory, meet};
use crate::operation::Pace;
use crate::register_file::{LANES, Row};

const ADDRESS: u32 = 0x1f_ffff;

/// Three byte addresses of 21 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Triple([u32; 3]);

impl Triple {
    /// Takes a register pair apart.
    #[inline(always)]
    fn unpack(lower: u32, upper: u32) -> Triple {
        Triple([lower & ADDRESS, upper & ADDRESS, (lower >> 21) | (upper >> 21 & 0x3ff) << 11])
    }

    /// The register pair.
    #[inline(always)]
    fn pack(self) -> (u32, u32) {
        let [first, second, third] = self.0;
        (first & ADDRESS | (third & 0x7ff) << 21, second & ADDRESS | (third >> 11 & 0x3ff) << 21)
    }

    /// Moves address `which` by its stride code: 0 = 8 bytes, k = 8 * signed field k of the stride register.
    #[inline(always)]
    fn advance(&mut self, which: usize, code: u32, strides: u32) {
        self.advance_or(which, code, strides, 8);
    }

    /// The same with another number of bytes for stride code 0.
    #[inline]
    fn advance_or(&mut self, which: usize, code: u32, strides: u32, default: u32) {
        let bytes = if code == 0 { default as i32 } else { field(strides, code) << 3 };
        self.0[which] = self.0[which].wrapping_add(bytes as u32) & ADDRESS;
    }
}

/// Signed 10-bit field k (1..3) of a stride register.
#[inline(always)]
fn field(strides: u32, code: u32) -> i32 {
    ((strides << (32 - 10 * code)) as i32) >> 22
}

/// The accesses of a paced instruction: which of the three addresses it uses, and their stride codes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accesses {
    pub(crate) used: [bool; 3],
    pub(crate) codes: [u32; 3],
}

/// What a paced instruction does, by worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paced {
    /// Byte addresses of the three accesses.
    pub(crate) at: [Row; 3],
    /// The register pair afterwards.
    pub(crate) next: [Row; 2],
    /// Not 0 in lanes where an access faults.
    pub(crate) wrong: Row,
}

/// Where the workers access memory and what their addresses become: [`execute`] for all lanes at once.
#[inline(always)]
pub(crate) fn plan(lower: Row, upper: Row, strides: Row, accesses: Accesses) -> Paced {
    let mut at = [[0; LANES]; 3];
    for lane in 0..LANES {
        let Triple(addresses) = Triple::unpack(lower[lane], upper[lane]);
        for which in 0..3 {
            at[which][lane] = addresses[which];
        }
    }
    let mut wrong = [0; LANES];
    let mut moved = at;
    for which in 0..3 {
        if !accesses.used[which] {
            continue;
        }
        let code = accesses.codes[which];
        for lane in 0..LANES {
            let address = at[which][lane];
            wrong[lane] |= address & 7 | u32::from(address.wrapping_sub(BASE) >= END - BASE);
            let bytes = if code == 0 { 8 } else { field(strides[lane], code) << 3 };
            moved[which][lane] = address.wrapping_add(bytes as u32) & ADDRESS;
        }
    }
    for (first, second) in [(0, 1), (0, 2), (1, 2)] {
        if accesses.used[first] && accesses.used[second] {
            for lane in 0..LANES {
                wrong[lane] |= u32::from(meet(at[first][lane], at[second][lane]));
            }
        }
    }
    let mut next = [[0; LANES]; 2];
    for lane in 0..LANES {
        (next[0][lane], next[1][lane]) = Triple([moved[0][lane], moved[1][lane], moved[2][lane]]).pack();
    }
    Paced { at, next, wrong }
}

/// The register pair of `tapack` for all lanes at once.
#[inline(always)]
pub(crate) fn pack_rows(addresses: [Row; 3]) -> [Row; 2] {
    let mut pair = [[0; LANES]; 2];
    for lane in 0..LANES {
        let third = addresses[2][lane] & ADDRESS;
        (pair[0][lane], pair[1][lane]) = Triple([addresses[0][lane], addresses[1][lane], third]).pack();
    }
    pair
}

/// `tapack`.
pub(crate) fn pack(worker: &mut Worker, operation: &Operation) {
    let source = |register| worker.main.get(register);
    let triple = Triple([source(operation.x), source(operation.y), source(operation.z) & ADDRESS]);
    let written = [operation.x, operation.y, operation.z].iter().all(|&r| worker.main.is_written(r));
    let (lower, upper) = triple.pack();
    worker.main.set(operation.d, lower, written);
    worker.main.set(operation.d + 1, upper, written);
}

/// Where a paced store stores.
pub(crate) fn store_address(main: &MainRegisters, operation: &Operation) -> u32 {
    Triple::unpack(main.get(operation.x), main.get(operation.x + 1)).0[2]
}

/// One paced instruction.
#[inline]
pub(crate) fn execute(worker: &mut Worker, operation: &Operation, pace: Pace, memory: &mut TileMemory) -> Step {
    worker.main.need(operation)?;
    let mut triple = Triple::unpack(worker.main.get(operation.x), worker.main.get(operation.x + 1));
    let [first, second, third] = triple.0;
    let strides = worker.main.get(operation.y);
    let codes = operation.immediate;
    match pace {
        Pace::Load2Store => {
            apart(first, second)?;
            apart(first, third)?;
            apart(second, third)?;
            let (low, low_written) = memory.load_double(first)?;
            let (high, high_written) = memory.load_double(second)?;
            store_pair(worker, operation.e, third, memory)?;
            worker.set_aux_pair(operation.d, low, low_written);
            worker.set_aux_pair(operation.d + 2, high, high_written);
            triple.advance(0, codes & 3, strides);
            triple.advance(1, codes >> 2 & 3, strides);
            triple.advance(2, codes >> 4 & 3, strides);
        }
        Pace::LoadStore => {
            apart(first, third)?;
            let (value, written) = memory.load_double(first)?;
            store_pair(worker, operation.e, third, memory)?;
            worker.set_aux_pair(operation.d, value, written);
            triple.advance(0, codes & 3, strides);
            triple.advance(2, codes >> 2 & 3, strides);
        }
        Pace::Store => {
            store_pair(worker, operation.e, third, memory)?;
            triple.advance(2, codes & 3, strides);
        }
        Pace::Load2 | Pace::LoadPairWord | Pace::LoadPairHalf => {
            load_two(worker, operation, pace, memory, [first, second])?;
            triple.advance(0, codes & 3, strides);
            let default = if pace == Pace::Load2 { 8 } else { operation.second };
            triple.advance_or(1, codes >> 2 & 3, strides, default);
        }
    }
    let (lower, upper) = triple.pack();
    worker.main.set(operation.x, lower, true);
    worker.main.set(operation.x + 1, upper, true);
    Ok(())
}

fn load_two(worker: &mut Worker, operation: &Operation, pace: Pace, memory: &TileMemory, [first, second]: [u32; 2]) -> Step {
    let overlap = operation.d == operation.e || (pace != Pace::Load2 && operation.d == operation.e & !1);
    if overlap && operation.d < 8 {
        return fail(Cause::SameDestination { form: operation.name() });
    }
    apart(first, second)?;
    let (value, written) = memory.load_double(first)?;
    match pace {
        Pace::Load2 => {
            let (other, other_written) = memory.load_double(second)?;
            worker.set_aux_pair(operation.e, other, other_written);
        }
        Pace::LoadPairWord => {
            let (other, other_written) = memory.load_word(second)?;
            worker.set_aux(operation.e, other, other_written);
        }
        _ => {
            let (other, other_written) = memory.load_half(second)?;
            worker.set_aux(operation.e, other * 0x1_0001, other_written);
        }
    }
    worker.set_aux_pair(operation.d, value, written);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_addresses_survive_packing() {
        for triple in [Triple([0x4c000, 0xe7ff8, 0x8abc8]), Triple([0x1f_ffff, 0, 0x1f_fffe])] {
            let (lower, upper) = triple.pack();
            assert_eq!(Triple::unpack(lower, upper), triple);
        }
    }

    #[test]
    fn stride_codes_choose_signed_fields_in_units_of_eight_bytes() {
        let strides = (0x3ff << 20) | (5 << 10) | 0x200;
        let mut triple = Triple([0x80000; 3]);
        triple.advance(0, 0, strides);
        triple.advance(1, 3, strides);
        triple.advance(2, 2, strides);
        assert_eq!(triple, Triple([0x80008, 0x7fff8, 0x80028]));
        assert_eq!(field(strides, 1), -512);
    }
}
