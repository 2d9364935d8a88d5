//! The few supervisor instructions that tile programs consist of, with the places that wait for an address.

use ipu21::isa::{self, FormId, form};
use serde::{Deserialize, Serialize};

use crate::{placement::Block, program::Operand};

/// What a word of a tile program refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Target {
    /// A routine of the runtime.
    Routine(Routine),
    /// First byte of a block (for a kernel: its entry symbol).
    Block(Block),
    /// Instruction row of a host phase, behind its packet words.
    HostRow(u32),
    /// An argument block: byte offset from the program's first word.
    Arguments(u32),
    /// A place in a buffer.
    Place(Operand),
}

/// Routines of the runtime that programs call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Routine {
    /// Starts a trivial worker on all six contexts and waits for them.
    Join,
    /// Copies a table of packet words to the staging window.
    Stage,
    /// The row of an idle tile: only a return.
    Idle,
    /// Stops at the trap of a checkpoint.
    Checkpoint(u32),
    /// Sets the completion word and ends.
    Finish,
}

impl Routine {
    /// Symbol in the runtime's source.
    pub fn symbol(self) -> String {
        match self {
            Self::Join => "join".to_owned(),
            Self::Stage => "stage".to_owned(),
            Self::Idle => "idle".to_owned(),
            Self::Checkpoint(number) => format!("checkpoint_{number}"),
            Self::Finish => "finish".to_owned(),
        }
    }
}

/// How an address goes into a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Field {
    /// Bits 18:0 hold the address divided by four (`call`, `bri`).
    Branch,
    /// Bits 19:0 hold the address (`setzi`).
    Immediate,
    /// The whole word is the address.
    Word,
}

/// A word that waits for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Relocation {
    /// Index of the word.
    pub word: u32,
    /// Where the address goes.
    pub field: Field,
    /// What it is the address of.
    pub target: Target,
}

impl Relocation {
    /// Puts `address` into `words`.
    pub(crate) fn apply(&self, words: &mut [u32], address: u32) {
        let word = &mut words[self.word as usize];
        match self.field {
            Field::Branch => *word = *word & !0x7_ffff | (address / 4),
            Field::Immediate => *word = *word & !0xf_ffff | address,
            Field::Word => *word = address,
        }
    }
}

/// Return register of every call (machine.md c.5).
const LINK: u32 = 10;
/// Argument register.
pub(crate) const ARGUMENT: u32 = 0;
/// The register that reads as zero.
pub(crate) const ZERO: u32 = 15;

/// Instructions in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) words: Vec<u32>,
    pub(crate) relocations: Vec<Relocation>,
}

impl Listing {
    /// Bytes so far; the offset of the next word.
    pub(crate) fn bytes(&self) -> u32 {
        self.words.len() as u32 * 4
    }

    pub(crate) fn call(&mut self, target: Target) {
        self.waiting(Field::Branch, target);
        self.push(form::CALL_M_ZI20, &[LINK, 0]);
    }

    /// `call` with the address of `argument` in the argument register.
    pub(crate) fn call_with(&mut self, argument: Target, target: Target) {
        self.waiting(Field::Immediate, argument);
        self.set(ARGUMENT, 0);
        self.call(target);
    }

    pub(crate) fn jump(&mut self, target: Target) {
        self.waiting(Field::Branch, target);
        self.push(form::BRI_ZI19, &[0]);
    }

    pub(crate) fn set(&mut self, register: u32, value: u32) {
        self.push(form::SETZI_M_ZI20, &[register, value]);
    }

    /// Writes a register to a control register.
    pub(crate) fn put(&mut self, control: u32, register: u32) {
        self.push(form::PUT_ZI8_M, &[control, register]);
    }

    pub(crate) fn sync(&mut self, zone: u32) {
        self.push(form::SYNC_ZI4, &[zone]);
    }

    pub(crate) fn announce(&mut self, operand: u32) {
        self.push(form::SANS_ZI19, &[operand]);
    }

    pub(crate) fn return_(&mut self) {
        self.push(form::BR_M, &[LINK]);
    }

    /// Pads with instructions that do nothing so that the word `ahead` words from here is 8-byte aligned.
    pub(crate) fn align_ahead(&mut self, ahead: usize) {
        if !(self.words.len() + ahead).is_multiple_of(2) {
            self.words.push(ipu21::isa::NOP);
        }
    }

    pub(crate) fn data(&mut self, word: u32) {
        self.words.push(word);
    }

    pub(crate) fn data_at(&mut self, target: Target) {
        self.waiting(Field::Word, target);
        self.words.push(0);
    }

    fn waiting(&mut self, field: Field, target: Target) {
        self.relocations.push(Relocation { word: self.words.len() as u32, field, target });
    }

    fn push(&mut self, form: FormId, operands: &[u32]) {
        let encoded = isa::encode(form, operands, false).expect("fields of tile code are in range");
        self.words.extend(encoded.words());
    }
}
