//! Loads, stores and integer arithmetic of the main lane: the part that workers and the supervisor share, and the
//! worker's aux loads.

use crate::choice::delta_steps;
use crate::code::Operation;
use crate::context::{MainRegisters, Worker};
use crate::fault::{Cause, Place, Step, fail};
use crate::memory::{REGION_1, TileMemory, element};
use crate::operation::{Integer, Transfer};

/// Integer arithmetic: poison in, poison out.
#[inline]
pub(crate) fn integer(file: &mut MainRegisters, operation: &Operation, integer: Integer) {
    let a = file.get(operation.x);
    let (b, b_written) =
        if operation.uses_immediate { (operation.immediate, true) } else { (file.get(operation.y), file.is_written(operation.y)) };
    let written = file.is_written(operation.x) && b_written;
    file.set(operation.d, integer.apply(a, b), written);
}

/// `movz`: moves when the condition is not zero.
pub(crate) fn move_if(file: &mut MainRegisters, operation: &Operation) {
    if file.get(operation.y) != 0 {
        file.set(operation.d, file.get(operation.x), file.is_written(operation.x));
    }
}

/// The effective address; step forms also move their pointer.
#[inline]
pub(crate) fn address(file: &mut MainRegisters, operation: &Operation, transfer: Transfer, step: bool) -> Step<u32> {
    file.need(operation)?;
    let count = if operation.uses_immediate { operation.immediate } else { file.get(operation.z) };
    let distance = count.wrapping_mul(transfer.bytes());
    let start = file.get(operation.x).wrapping_add(file.get(operation.y));
    if step {
        file.set(operation.y, file.get(operation.y).wrapping_add(distance), true);
        Ok(start)
    } else {
        Ok(start.wrapping_add(distance))
    }
}

/// The effective address, without moving anything.
pub(crate) fn peek(file: &MainRegisters, operation: &Operation, transfer: Transfer, step: bool) -> u32 {
    let start = file.get(operation.x).wrapping_add(file.get(operation.y));
    let count = if operation.uses_immediate { operation.immediate } else { file.get(operation.z) };
    if step { start } else { start.wrapping_add(count.wrapping_mul(transfer.bytes())) }
}

/// A load into a main register.
pub(crate) fn load_main(file: &mut MainRegisters, operation: &Operation, transfer: Transfer, step: bool, memory: &TileMemory) -> Step {
    let address = address(file, operation, transfer, step)?;
    let (value, written) = match transfer {
        Transfer::SignedHalf => memory.load_half(address).map(|(v, w)| (v as i16 as u32, w)),
        Transfer::SignedByte => memory.load_byte(address).map(|(v, w)| (v as i8 as u32, w)),
        Transfer::ZeroHalf => memory.load_half(address),
        Transfer::ZeroByte => memory.load_byte(address),
        _ => memory.load_word(address),
    }?;
    file.set(operation.d, value, written == 1);
    Ok(())
}

/// A store of a main register.
pub(crate) fn store_main(file: &mut MainRegisters, operation: &Operation, step: bool, memory: &mut TileMemory) -> Step {
    let (value, written) = (file.get(operation.d), file.is_written(operation.d));
    let address = address(file, operation, Transfer::Word, step)?;
    if !written {
        return fail(Cause::PoisonStored { from: Place::Main(operation.d), address });
    }
    memory.store_word(address, value)
}

/// Any load of a worker.
#[inline]
pub(crate) fn load(worker: &mut Worker, operation: &Operation, transfer: Transfer, step: bool, memory: &TileMemory) -> Step {
    match transfer {
        Transfer::AuxPair => {
            let address = address(&mut worker.main, operation, transfer, step)?;
            let (value, written) = memory.load_double(address)?;
            worker.set_aux_pair(operation.d, value, written);
        }
        Transfer::AuxWord => {
            let address = address(&mut worker.main, operation, transfer, step)?;
            let (value, written) = memory.load_word(address)?;
            worker.set_aux(operation.d, value, written);
        }
        Transfer::AuxHalf => {
            let address = address(&mut worker.main, operation, transfer, step)?;
            let (value, written) = memory.load_half(address)?;
            worker.set_aux(operation.d, value * 0x1_0001, written);
        }
        Transfer::AuxByte => {
            let address = address(&mut worker.main, operation, transfer, step)?;
            let (value, written) = memory.load_byte(address)?;
            worker.set_aux(operation.d, value * 0x0101_0101, written);
        }
        Transfer::AuxQuad => {
            let address = address(&mut worker.main, operation, transfer, step)?;
            let [low, high] = load_quad(memory, address)?;
            worker.set_aux_pair(operation.d, low.0, low.1);
            worker.set_aux_pair(operation.d + 2, high.0, high.1);
        }
        _ => load_main(&mut worker.main, operation, transfer, step, memory)?,
    }
    Ok(())
}

/// 128 bits: 16-byte aligned and in region 1 only.
pub(crate) fn load_quad(memory: &TileMemory, address: u32) -> Step<[(u64, u32); 2]> {
    if address < REGION_1 {
        return fail(Cause::NotInterleaved { address });
    }
    if !address.is_multiple_of(16) {
        return fail(Cause::Misaligned { address, alignment: 16, access: crate::fault::Access::Load });
    }
    Ok([memory.load_double(address)?, memory.load_double(address + 8)?])
}

/// Any store of a worker.
#[inline]
pub(crate) fn store(worker: &mut Worker, operation: &Operation, transfer: Transfer, step: bool, memory: &mut TileMemory) -> Step {
    match transfer {
        Transfer::AuxPair => {
            let address = address(&mut worker.main, operation, transfer, step)?;
            store_pair(worker, operation.d, address, memory)
        }
        Transfer::AuxWord => {
            let address = address(&mut worker.main, operation, transfer, step)?;
            if worker.aux_written >> operation.d & 1 == 0 {
                return fail(Cause::PoisonStored { from: Place::Aux(operation.d), address });
            }
            memory.store_word(address, worker.aux(operation.d))
        }
        _ => store_main(&mut worker.main, operation, step, memory),
    }
}

/// Stores an aux pair that must have been written.
#[inline]
pub(crate) fn store_pair(worker: &Worker, register: u8, address: u32, memory: &mut TileMemory) -> Step {
    let written = worker.aux_pair_written(register);
    if written != 3 {
        let from = Place::Aux(register + u8::from(written & 1 == 1));
        return fail(Cause::PoisonStored { from, address });
    }
    memory.store_double(address, worker.aux_pair(register))
}

/// Two accesses of one instruction must touch two memory elements.
#[inline]
pub(crate) fn apart(first: u32, second: u32) -> Step {
    if element(first) == element(second) {
        return fail(Cause::AccessClash { first, second });
    }
    Ok(())
}

/// `ld64a32`: 64 bits at the moving pointer into words 2 and 3, 32 bits at base + delta[15:0] into word 1.
pub(crate) fn load_quad_word(worker: &mut Worker, operation: &Operation, memory: &TileMemory) -> Step {
    worker.main.need(operation)?;
    let pointer = worker.main.get(operation.x);
    let other = worker.main.get(operation.y).wrapping_add(worker.main.get(operation.z) & 0xffff);
    let (value, written) = memory.load_double(pointer)?;
    let (word, word_written) = memory.load_word(other)?;
    apart(pointer, other)?;
    worker.set_aux_pair(operation.d + 2, value, written);
    worker.set_aux(operation.d + 1, word, word_written);
    worker.main.set(operation.x, pointer.wrapping_add(8), true);
    Ok(())
}

/// `ldd16*`: loads at base + delta[15:0] and replaces delta by 16 bits at the moving pointer.
pub(crate) fn load_delta(worker: &mut Worker, operation: &Operation, transfer: Transfer, memory: &TileMemory) -> Step {
    worker.main.need(operation)?;
    let pointer = worker.main.get(operation.x);
    let target = worker.main.get(operation.y).wrapping_add(worker.main.get(operation.z) & 0xffff);
    match transfer {
        Transfer::AuxPair => {
            let (value, written) = memory.load_double(target)?;
            worker.set_aux_pair(operation.d, value, written);
        }
        Transfer::AuxHalf => {
            let (value, written) = memory.load_half(target)?;
            worker.set_aux(operation.d, value * 0x1_0001, written);
        }
        _ => {
            let (value, written) = memory.load_word(target)?;
            worker.set_aux(operation.d, value, written);
        }
    }
    let (delta, written) = memory.load_half(pointer)?;
    apart(pointer, target)?;
    worker.main.set(operation.z, delta, written == 1);
    worker.main.set(operation.x, pointer.wrapping_add(2), true);
    Ok(())
}

/// `ldd16v2a32`: loads at base + delta[31:16] and replaces delta by two 16-bit deltas at the moving pointer.
pub(crate) fn load_delta_pair(worker: &mut Worker, operation: &Operation, memory: &TileMemory) -> Step {
    worker.main.need(operation)?;
    let pointer = worker.main.get(operation.x);
    let target = worker.main.get(operation.y).wrapping_add(worker.main.get(operation.z) >> 16);
    let (value, value_written) = memory.load_word(target)?;
    let (deltas, written) = memory.load_word(pointer)?;
    apart(pointer, target)?;
    worker.set_aux(operation.d, value, value_written);
    worker.main.set(operation.z, deltas, written == 1);
    worker.main.set(operation.x, pointer.wrapping_add(4), true);
    Ok(())
}

/// `ldb16b16`: 16 bits at base + delta[15:0] and at base + delta[31:16], each in both halves of its register. The deltas move as
/// `[choice]` says, and the last operand loses its lowest four bits.
pub(crate) fn load_two_halves(worker: &mut Worker, operation: &Operation, memory: &TileMemory) -> Step {
    worker.main.need(operation)?;
    let (base, deltas, mini) = (worker.main.get(operation.x), worker.main.get(operation.y), worker.main.get(operation.z));
    let (first, second) = (base.wrapping_add(deltas & 0xffff), base.wrapping_add(deltas >> 16));
    let (low, low_written) = memory.load_half(first)?;
    let (high, high_written) = memory.load_half(second)?;
    apart(first, second)?;
    worker.set_aux(operation.d, low * 0x1_0001, low_written);
    worker.set_aux(operation.d + 1, high * 0x1_0001, high_written);
    let [by_low, by_high] = delta_steps(operation, mini);
    let moved = deltas.wrapping_add(by_low) & 0xffff | (deltas >> 16).wrapping_add(by_high) << 16;
    worker.main.set(operation.y, moved, true);
    worker.main.set(operation.z, mini >> 4, true);
    Ok(())
}
