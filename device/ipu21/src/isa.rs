//! The instruction set: every encoding form of `data/isa.toml`, encode and decode.
//!
//! The table is read, checked and written as Rust by the build script: field widths, overlaps, operand completeness, masks
//! disjoint between all forms, counts. A wrong table fails the build.
//!
//! Operand values are `u32` in assembly order: a register number (the lowest of a pair or quad), an immediate as the
//! instruction uses it (sign-extended for `simm`, shifted into bits 31:20 for `immz12`).

use std::fmt;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::csr::Csr;

include!(concat!(env!("OUT_DIR"), "/isa.rs"));

/// The main-lane filler and alignment padding, `setzi $m14, 0`.
pub const NOP: u32 = 0x19e0_0000;
/// The aux-lane filler, `setzi $a13, 0`.
pub const FNOP: u32 = 0x1ad0_0000;
/// The bit set in both words of a bundle.
pub const COISSUE: u32 = 1 << 31;
/// Most operands of any form.
pub const MAX_OPERANDS: usize = 6;

/// Index of a form in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FormId(u16);

/// Which contexts may execute a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Workers only.
    Worker,
    /// The supervisor only.
    Supervisor,
    /// All contexts.
    Both,
}

/// The half of a bundle a form belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Load, store, integer, control.
    Main,
    /// Floating point and ARF.
    Aux,
}

/// What a form may be next to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Anything else.
    Normal,
    /// Branches, exits, `rpt`: not inside a repeat body.
    Control,
    /// CSR access, traps, launches, exchange: not inside a repeat body.
    System,
    /// Reads memory.
    Load,
    /// Writes memory.
    Store,
    /// Reads and writes memory.
    LoadStore,
}

/// How sure an encoding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Vendor tables and an independent machine word.
    Verified,
    /// Vendor tables alone.
    Table,
    /// From example words.
    Derived,
    /// No public encoding; the form cannot be encoded.
    Unknown,
}

/// What an operand is; numbers are bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandKind {
    /// MRF register 0..16.
    Main,
    /// Even MRF register of a pair.
    MainPair,
    /// ARF register 0..16.
    Aux,
    /// Even ARF register of a pair.
    AuxPair,
    /// First ARF register of a quad, a multiple of 4.
    AuxQuad,
    /// Zero-extended immediate.
    Unsigned(u32),
    /// Sign-extended immediate.
    Signed(u32),
    /// Named constant.
    Named(u32),
    /// Immediate whose 12-bit field supplies bits 31:20.
    High12,
}

/// Decoration of an operand in assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modifier {
    /// Plain.
    None,
    /// `+=`: incremented after use.
    PostIncrement,
    /// `++`: incremented after use by a fixed size.
    PostIncrementFixed,
    /// `>>`: shifted after use.
    Shifted,
    /// `@`: overwritten with a loaded value.
    Reloaded,
    /// `:B`: one element for all lanes.
    Broadcast,
    /// `:BL`: the lower half for all lanes.
    BroadcastLower,
    /// `:BU`: the upper half for all lanes.
    BroadcastUpper,
}

/// Bits of an operand: `width` bits from bit `from` of the operand at bit `low` of word `word`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Word of the instruction, 0 or 1.
    pub word: u8,
    /// Lowest bit in the word.
    pub low: u8,
    /// Number of bits.
    pub width: u8,
    /// Lowest bit in the operand.
    pub from: u8,
}

/// An operand of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Name in the semantics.
    pub name: &'static str,
    /// What it is.
    pub kind: OperandKind,
    /// Its decoration.
    pub modifier: Modifier,
    /// Where its bits are.
    pub slices: &'static [Slice],
}

/// One encoding form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Unique id: `add.mm_si16`.
    pub id: &'static str,
    /// Mnemonic: `add`.
    pub mnemonic: &'static str,
    /// Assembly syntax.
    pub syntax: &'static str,
    /// What it does, in a sentence.
    pub semantics: &'static str,
    /// Whether isa.toml says how sure the semantics are, because they are not plainly documented.
    pub is_doubtful: bool,
    /// Who may execute it.
    pub mode: Mode,
    /// Half of a bundle.
    pub lane: Lane,
    /// What it may be next to.
    pub class: Class,
    /// May be a member of a bundle.
    pub coissue: bool,
    /// Words of the encoding; 0 when it is unknown.
    pub words: u8,
    /// `word & mask == matches` recognises the form.
    pub matches: u32,
    /// See [`Form::matches`].
    pub mask: u32,
    /// How sure the encoding is.
    pub status: Status,
    /// In assembly order.
    pub operands: &'static [Operand],
}

/// An encoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    words: [u32; 2],
    count: u8,
}

impl Encoded {
    /// The words, one or two.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words[..usize::from(self.count)]
    }

    /// The first word.
    #[must_use]
    pub fn word(&self) -> u32 {
        self.words[0]
    }
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Its form.
    pub form: FormId,
    /// Member of a bundle.
    pub coissue: bool,
    /// Words taken, 1 or 2.
    pub words: u8,
    values: [u32; MAX_OPERANDS],
}

impl Decoded {
    /// Operand values in assembly order.
    #[must_use]
    pub fn operands(&self) -> &[u32] {
        &self.values[..form(self.form).operands.len()]
    }
}

/// Why an instruction cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeFault {
    /// The form has no public encoding.
    NoEncoding {
        /// Its id.
        form: &'static str,
    },
    /// Too few or too many operands.
    OperandCount {
        /// Id of the form.
        form: &'static str,
        /// Operands it has.
        expected: usize,
        /// Operands given.
        found: usize,
    },
    /// An operand beyond its range, or a register that cannot begin a group.
    Operand {
        /// Id of the form.
        form: &'static str,
        /// Operand.
        operand: &'static str,
        /// What it must be.
        kind: OperandKind,
        /// Value given.
        found: u32,
    },
    /// A bundle member was asked for and the form cannot be one.
    NotCoissuable {
        /// Id of the form.
        form: &'static str,
    },
}

impl fmt::Display for OperandKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main => write!(out, "an MRF register $m0..$m15"),
            Self::MainPair => write!(out, "an even MRF register pair"),
            Self::Aux => write!(out, "an ARF register $a0..$a15"),
            Self::AuxPair => write!(out, "an even ARF register pair"),
            Self::AuxQuad => write!(out, "an ARF register quad starting at a multiple of 4"),
            Self::Unsigned(bits) | Self::Named(bits) => write!(out, "a value in 0..={}", (1_u64 << bits) - 1),
            Self::Signed(bits) => write!(out, "a value in {}..={}", -(1_i64 << (bits - 1)), (1_i64 << (bits - 1)) - 1),
            Self::High12 => write!(out, "a 32-bit value whose low 20 bits are zero"),
        }
    }
}

impl fmt::Display for EncodeFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEncoding { form } => write!(out, "{form}: the encoding is not public"),
            Self::OperandCount { form, expected, found } => write!(out, "{form}: expected {expected} operands, found {found}"),
            Self::Operand { form, operand, kind, found } => write!(out, "{form}: operand `{operand}`: expected {kind}, found {found:#x}"),
            Self::NotCoissuable { form } => write!(out, "{form}: cannot be a member of a bundle"),
        }
    }
}

impl std::error::Error for EncodeFault {}

/// All forms; the index is the [`FormId`].
pub fn forms() -> impl ExactSizeIterator<Item = (FormId, &'static Form)> {
    TABLE.iter().enumerate().map(|(index, form)| (FormId(index as u16), form))
}

/// The form with this id.
#[must_use]
pub fn form(id: FormId) -> &'static Form {
    &TABLE[usize::from(id.0)]
}

impl FormId {
    /// Position in the table, dense from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The form with a textual id such as `add.mm_si16`.
    #[must_use]
    pub fn named(id: &str) -> Option<Self> {
        forms().find(|(_, form)| form.id == id).map(|(number, _)| number)
    }
}

/// The forms of a mnemonic, in table order.
pub fn forms_of(mnemonic: &str) -> impl Iterator<Item = FormId> {
    forms().filter(move |(_, form)| form.mnemonic == mnemonic).map(|(id, _)| id)
}

/// All control and status registers.
#[must_use]
pub(crate) fn csrs() -> &'static [Csr] {
    &CSRS
}

/// Encodes a form with its operands in assembly order; `coissue` sets the bundle bit.
///
/// # Errors
/// [`EncodeFault`] when an operand does not fit.
pub fn encode(id: FormId, operands: &[u32], coissue: bool) -> Result<Encoded, EncodeFault> {
    let form = form(id);
    if form.words == 0 {
        return Err(EncodeFault::NoEncoding { form: form.id });
    }
    if operands.len() != form.operands.len() {
        return Err(EncodeFault::OperandCount { form: form.id, expected: form.operands.len(), found: operands.len() });
    }
    if coissue && !form.coissue {
        return Err(EncodeFault::NotCoissuable { form: form.id });
    }
    let mut words = [form.matches, 0];
    for (operand, value) in form.operands.iter().zip(operands) {
        let field = field_of(operand.kind, *value).ok_or(EncodeFault::Operand {
            form: form.id,
            operand: operand.name,
            kind: operand.kind,
            found: *value,
        })?;
        for slice in operand.slices {
            words[usize::from(slice.word)] |= (field >> slice.from & mask(slice.width)) << slice.low;
        }
    }
    if coissue {
        words[0] |= COISSUE;
    }
    Ok(Encoded { words, count: form.words })
}

const fn mask(width: u8) -> u32 {
    ((1_u64 << width) - 1) as u32
}

/// The field that encodes a value, or `None` when it does not fit.
fn field_of(kind: OperandKind, value: u32) -> Option<u32> {
    match kind {
        OperandKind::Main | OperandKind::Aux => (value < 16).then_some(value),
        OperandKind::MainPair | OperandKind::AuxPair => (value < 16 && value.is_multiple_of(2)).then_some(value),
        OperandKind::AuxQuad => (value < 16 && value.is_multiple_of(4)).then_some(value),
        OperandKind::Unsigned(bits) | OperandKind::Named(bits) => (u64::from(value) < 1 << bits).then_some(value),
        OperandKind::Signed(bits) => {
            let (signed, limit) = (i64::from(value as i32), 1_i64 << (bits - 1));
            (-limit..limit).contains(&signed).then_some(value & mask(bits as u8))
        }
        OperandKind::High12 => value.is_multiple_of(1 << 20).then_some(value >> 20),
    }
}

/// The value a field stands for.
const fn value_of(kind: OperandKind, field: u32) -> u32 {
    match kind {
        OperandKind::Signed(bits) => ((field << (32 - bits)) as i32 >> (32 - bits)) as u32,
        OperandKind::High12 => field << 20,
        _ => field,
    }
}

/// Forms by bits 30:24 of their first word.
fn buckets() -> &'static [Vec<FormId>; 128] {
    static BUCKETS: OnceLock<[Vec<FormId>; 128]> = OnceLock::new();
    BUCKETS.get_or_init(|| {
        let mut buckets = [const { Vec::new() }; 128];
        for (id, form) in forms().filter(|(_, form)| form.words > 0) {
            for (index, bucket) in buckets.iter_mut().enumerate() {
                if (index as u32) << 24 & form.mask & !COISSUE == form.matches & 0x7f00_0000 & form.mask {
                    bucket.push(id);
                }
            }
        }
        buckets
    })
}

/// Decodes the instruction at the start of `words`; `None` when no form matches or the second word of a two-word form is missing.
#[must_use]
pub fn decode(words: &[u32]) -> Option<Decoded> {
    let word = *words.first()?;
    let id = *buckets()[(word >> 24 & 127) as usize].iter().find(|id| word & form(**id).mask == form(**id).matches)?;
    let form = form(id);
    if words.len() < usize::from(form.words) {
        return None;
    }
    let mut values = [0; MAX_OPERANDS];
    for (value, operand) in values.iter_mut().zip(form.operands) {
        let field = operand
            .slices
            .iter()
            .fold(0, |field, slice| field | (words[usize::from(slice.word)] >> slice.low & mask(slice.width)) << slice.from);
        *value = value_of(operand.kind, field);
    }
    Some(Decoded { form: id, coissue: form.coissue && word & COISSUE != 0, words: form.words, values })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{COISSUE, decode, encode, form, forms};
    use crate::data;

    /// Rows of `encodings.tsv`: words, form id. Most are independent evidence (vendor tables, boot loader listing, real images).
    fn recorded() -> impl Iterator<Item = (Vec<u32>, &'static str)> {
        data::table_rows(data::ENCODINGS).map(|row| {
            let words = row[0].split(' ').map(|word| u32::from_str_radix(word.trim_start_matches("0x"), 16).unwrap()).collect();
            (words, row[3])
        })
    }

    #[test]
    fn every_recorded_word_decodes_to_its_form_and_encodes_back() {
        let mut seen = 0;
        for (words, id) in recorded() {
            // Rows that name no form are words the instruction set does not have.
            if id == "-" {
                assert_eq!(decode(&words), None, "{words:x?}");
                continue;
            }
            let mut rest = &words[..];
            while !rest.is_empty() {
                let decoded = decode(rest).unwrap_or_else(|| panic!("{words:x?} does not decode, expected {id}"));
                // Three rows are bundles of two instructions; all others name their form.
                assert!(form(decoded.form).id == id || id == "bundle" && decoded.coissue, "{words:x?}: {}", form(decoded.form).id);
                let encoded = encode(decoded.form, decoded.operands(), decoded.coissue).unwrap();
                assert_eq!(encoded.words(), &rest[..usize::from(decoded.words)], "{id}");
                rest = &rest[usize::from(decoded.words)..];
            }
            seen += 1;
        }
        assert!(seen > 600, "{seen} rows");
    }

    #[test]
    fn no_word_is_two_forms() {
        for (_, one) in forms().filter(|(_, form)| form.words > 0) {
            let twins = forms().filter(|(_, other)| other.words > 0 && one.matches & other.mask == other.matches).count();
            assert_eq!(twins, 1, "{}", one.id);
        }
    }

    proptest! {
        #[test]
        fn what_decodes_encodes_to_the_same_words(first in any::<u32>(), second in any::<u32>()) {
            if let Some(decoded) = decode(&[first, second]) {
                let encoded = encode(decoded.form, decoded.operands(), decoded.coissue).unwrap();
                prop_assert_eq!(encoded.words(), &[first, second][..usize::from(decoded.words)]);
            }
        }

        #[test]
        fn a_bundle_bit_changes_no_operand(index in 0_usize..360, second in any::<u32>()) {
            let (_, shape) = forms().nth(index).unwrap();
            if shape.words == 1 && shape.coissue {
                let alone = decode(&[shape.matches | second & !shape.mask & !COISSUE]).unwrap();
                let bundled = decode(&[shape.matches | second & !shape.mask | COISSUE]).unwrap();
                prop_assert_eq!(alone.operands(), bundled.operands());
                prop_assert!(bundled.coissue && !alone.coissue);
            }
        }
    }
}
