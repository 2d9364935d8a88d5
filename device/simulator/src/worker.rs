//! One turn of a worker: execute a bundle or a solo instruction.

use crate::code::{Fetched, Operation};
use crate::coefficients::Coefficients;
use crate::context::Worker;
use crate::fault::{Cause, Step, fail};
use crate::load_store;
use crate::memory::TileMemory;
use crate::operation::{Kind, Test};
use crate::pace;
use crate::vector_unit;

/// What the workers of a tile share.
pub(crate) struct Shared<'a> {
    /// Tile memory.
    pub(crate) memory: &'a mut TileMemory,
    /// Coefficients.
    pub(crate) coefficients: &'a Coefficients,
}

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Slots that the instruction took.
    Took(u8),
    /// The worker ended with this status.
    Exited(bool),
}

impl Worker {
    /// Executes the bundle or instruction at its program counter.
    #[inline]
    pub(crate) fn turn(&mut self, (operation, partner): Fetched<'_>, shared: &mut Shared<'_>) -> Step<Turn> {
        if let Some(aux) = partner {
            return self.bundle(operation, aux, shared);
        }
        if self.repeat.count > 0 {
            return fail(Cause::IllegalRepeat { rule: "a repeat body holds bundles only" });
        }
        if operation.is_aux {
            let result = vector_unit::execute(self, operation, shared.coefficients)?;
            result.commit(self);
            self.pc += 4;
            return Ok(Turn::Took(operation.slots));
        }
        let next = self.pc + 4;
        self.main_lane(operation, next, shared)
    }

    #[inline]
    fn bundle(&mut self, operation: &Operation, aux: &Operation, shared: &mut Shared<'_>) -> Step<Turn> {
        let result = vector_unit::execute(self, aux, shared.coefficients)?;
        let repeating = self.repeat.count > 0;
        if repeating && (operation.is_barred_from_repeat || aux.is_barred_from_repeat) {
            return fail(Cause::IllegalRepeat { rule: "a repeat body holds no control or system instruction" });
        }
        let next = self.pc + 8;
        let turn = self.main_lane(operation, next, shared)?;
        result.commit(self);
        if repeating && self.pc == self.repeat.end {
            self.repeat.count -= 1;
            if self.repeat.count > 0 {
                self.pc = self.repeat.first;
            }
        }
        Ok(match turn {
            Turn::Took(slots) => Turn::Took(slots.max(aux.slots)),
            Turn::Exited(status) => Turn::Exited(status),
        })
    }

    #[inline]
    fn main_lane(&mut self, operation: &Operation, next: u32, shared: &mut Shared<'_>) -> Step<Turn> {
        self.pc = match operation.kind {
            Kind::SetMain => {
                self.main.set(operation.d, operation.immediate, true);
                next
            }
            Kind::Pace(pace) => {
                pace::execute(self, operation, pace, shared.memory)?;
                next
            }
            Kind::Load { transfer, step } => {
                load_store::load(self, operation, transfer, step, shared.memory)?;
                next
            }
            Kind::Store { transfer, step } => {
                load_store::store(self, operation, transfer, step, shared.memory)?;
                next
            }
            Kind::Integer(integer) => {
                load_store::integer(&mut self.main, operation, integer);
                next
            }
            Kind::Exit(test) => return self.exit(operation, test),
            _ => self.other(operation, next, shared)?,
        };
        Ok(Turn::Took(operation.slots))
    }

    fn exit(&mut self, operation: &Operation, test: Test) -> Step<Turn> {
        self.main.need(operation)?;
        self.active = false;
        Ok(Turn::Exited(test.passes(self.main.get(operation.x))))
    }

    /// The rarer instructions; returns the next program counter.
    fn other(&mut self, operation: &Operation, next: u32, shared: &mut Shared<'_>) -> Step<u32> {
        if let Some(target) = branch(&mut self.main, operation, next)? {
            return Ok(target);
        }
        match operation.kind {
            Kind::MoveIf => {
                self.main.need(operation)?;
                load_store::move_if(&mut self.main, operation);
            }
            Kind::AuxToMain => {
                let written = self.aux_written >> operation.x & 1 == 1;
                self.main.set(operation.d, self.aux(operation.x), written);
            }
            Kind::Repeat => return self.start_repeat(operation, next),
            Kind::LoadQuadWord => load_store::load_quad_word(self, operation, shared.memory)?,
            Kind::LoadDelta(transfer) => load_store::load_delta(self, operation, transfer, shared.memory)?,
            Kind::LoadDeltaPair => load_store::load_delta_pair(self, operation, shared.memory)?,
            Kind::LoadTwoHalves => load_store::load_two_halves(self, operation, shared.memory)?,
            Kind::PackAddresses => pace::pack(self, operation),
            Kind::Get => self.get(operation)?,
            Kind::Put => self.put(operation)?,
            Kind::Trap => return fail(Cause::Breakpoint { number: operation.immediate }),
            _ => return refuse(operation, false),
        }
        Ok(next)
    }

    fn start_repeat(&mut self, operation: &Operation, next: u32) -> Step<u32> {
        self.main.need(operation)?;
        if !next.is_multiple_of(8) {
            return fail(Cause::IllegalRepeat { rule: "the body starts at a multiple of 8" });
        }
        if self.repeat.count > 0 {
            return fail(Cause::IllegalRepeat { rule: "repeats do not nest" });
        }
        let count = if operation.uses_immediate { operation.immediate } else { self.main.get(operation.x) & 0xffff };
        let end = next + 8 * (operation.second + 1);
        if count == 0 {
            return Ok(end);
        }
        self.repeat = crate::context::Repeat { first: next, end, count };
        Ok(next)
    }

    fn get(&mut self, operation: &Operation) -> Step {
        let value = match operation.immediate {
            0 => self.pc,
            1 => u32::from(self.number),
            2 => self.main.get(13),
            3 => self.main.get(12),
            4 => self.repeat.count,
            5 => self.repeat.first,
            6 => self.repeat.end,
            0x60 => self.next as u32,
            0x61 => (self.next >> 32) as u32,
            other => return fail(Cause::NotSimulated { form: "control register of a worker", value: other }),
        };
        self.main.set(operation.d, value, true);
        Ok(())
    }

    /// Worker control registers that a program may write: none that the simulator keeps.
    fn put(&mut self, operation: &Operation) -> Step {
        fail(Cause::NotSimulated { form: "control register of a worker", value: operation.immediate })
    }
}

/// Executes a branch or call: the next program counter, or nothing if the operation is none.
#[inline]
pub(crate) fn branch(main: &mut crate::context::MainRegisters, operation: &Operation, next: u32) -> Step<Option<u32>> {
    Ok(Some(match operation.kind {
        Kind::BranchTo => operation.immediate,
        Kind::BranchRegister => {
            main.need(operation)?;
            main.get(operation.x)
        }
        Kind::BranchIf(test) => {
            main.need(operation)?;
            if test.passes(main.get(operation.x)) { operation.immediate } else { next }
        }
        Kind::BranchDecrement => {
            main.need(operation)?;
            let count = main.get(operation.d);
            if count == 0 {
                next
            } else {
                main.set(operation.d, count - 1, true);
                operation.immediate
            }
        }
        Kind::Call => {
            main.set(operation.d, next, true);
            operation.immediate
        }
        _ => return Ok(None),
    }))
}

/// The fault of an operation that this context does not execute.
#[cold]
pub(crate) fn refuse<T>(operation: &Operation, supervisor: bool) -> Step<T> {
    match operation.kind {
        Kind::Illegal | Kind::SecondWord => fail(Cause::IllegalInstruction { word: operation.immediate }),
        Kind::Poison => fail(Cause::PoisonExecuted { address: 0 }),
        Kind::NotSimulated => fail(Cause::NotSimulated { form: operation.name(), value: operation.immediate }),
        kind if kind.is_supervisor_only() || (supervisor && kind.is_aux()) || kind == Kind::Trap => {
            fail(Cause::WrongMode { form: operation.name() })
        }
        _ if supervisor => fail(Cause::WrongMode { form: operation.name() }),
        _ => fail(Cause::NotSimulated { form: operation.name(), value: operation.immediate }),
    }
}
