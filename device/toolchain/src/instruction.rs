//! One instruction as written: which form it is, and its words.

use std::collections::BTreeMap;

use ipu21::isa::{self, Form, FormId, Lane, Mode, Modifier, OperandKind, form};
use ipu21::relocation::Relocation;

use crate::expression::{Expression, Value};
use crate::operand::{File, Written, read, split_list};

/// An instruction with its operands read but its form not yet chosen: immediates may still be unknown.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    mnemonic: String,
    operands: Vec<Written>,
    candidates: Vec<FormId>,
}

/// A relocation of an encoded word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fixup {
    pub(crate) kind: Relocation,
    pub(crate) symbol: String,
    pub(crate) addend: i64,
}

/// An encoded instruction.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) form: FormId,
    pub(crate) words: Vec<u32>,
    pub(crate) fixup: Option<Fixup>,
    /// Registers written, the zero registers too.
    pub(crate) written: Vec<(Lane, u32)>,
}

/// Mnemonics that stand for another one with the same operands.
#[rustfmt::skip]
const RENAMED: [(&str, &str); 3] = [
    ("movnz", "movz"), ("f16v4sisov2amp", "f16v4sisoamp"), ("f16v4sisov2slic", "f16v4sisoslic"),
];

impl Instruction {
    /// Reads an instruction; all its forms of matching shape stay candidates.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (mnemonic, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let operands = split_list(rest).into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let (mnemonic, operands, only) = expand_alias(mnemonic, operands)?;
        let mut forms: Vec<FormId> = isa::forms_of(&mnemonic).collect();
        if forms.is_empty() {
            return Err(format!("unknown instruction `{mnemonic}`{}", nearest(&mnemonic)));
        }
        if let Some(id) = only {
            forms.retain(|form| isa::form(*form).id.ends_with(id));
        }
        let shaped = |operands: &[Written]| -> Vec<FormId> { forms.iter().copied().filter(|form| fits(isa::form(*form), operands)).collect() };
        let mut candidates = shaped(&operands);
        let mut operands = operands;
        if candidates.is_empty() && operands.len() == 3 && (mnemonic.starts_with("ld") || mnemonic.starts_with("st")) {
            // The shorthand `ld32 $mD, $mB, off` leaves out a delta of zero.
            operands.insert(2, zero(File::Main, 1));
            candidates = shaped(&operands);
        }
        if candidates.is_empty() {
            let expected: Vec<&str> = forms.iter().map(|form| isa::form(*form).syntax).collect();
            return Err(format!("expected {}, found `{text}`", expected.join(" or ")));
        }
        candidates.sort_by_key(|form| preference(isa::form(*form)));
        Ok(Self { mnemonic, operands, candidates })
    }

    /// Bytes of the encoding, the same for all candidates.
    pub(crate) fn bytes(&self) -> u32 {
        4 * u32::from(isa::form(self.candidates[0]).words)
    }

    /// Whether this is the exchange instruction that must lie at an 8-byte boundary.
    pub(crate) fn is_two_words(&self) -> bool {
        self.bytes() == 8
    }

    /// Encodes with all symbols known. `mode`: who will execute it; `coissue`: as a member of a bundle.
    pub(crate) fn encode(&self, mode: Mode, coissue: bool, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<Word, String> {
        let mut fault = None;
        for id in &self.candidates {
            let form = isa::form(*id);
            let mut values = Vec::new();
            let mut fixup = None;
            let mut failed = None;
            for (written, operand) in self.operands.iter().zip(form.operands) {
                match value_of(form, operand, written, lookup) {
                    Ok((value, relocation)) => {
                        values.push(value);
                        fixup = fixup.or(relocation);
                    }
                    Err(message) => {
                        failed = Some(message);
                        break;
                    }
                }
            }
            if let Some(message) = failed {
                fault.get_or_insert(message);
                continue;
            }
            match isa::encode(*id, &values, coissue) {
                Ok(encoded) => {
                    allowed(form, mode)?;
                    return Ok(Word { form: *id, words: encoded.words().to_vec(), fixup, written: written_registers(form, &values) });
                }
                Err(found) => {
                    fault.get_or_insert(found.to_string());
                }
            }
        }
        Err(fault.unwrap_or_else(|| format!("`{}` has no form", self.mnemonic)))
    }

    /// `ldconst`: not one instruction but one or two.
    pub(crate) fn constant(text: &str) -> Option<(String, Expression)> {
        let rest = text.strip_prefix("ldconst")?.strip_prefix(char::is_whitespace)?;
        let [register, value] = split_list(rest)[..] else { return None };
        Expression::parse(value).ok().map(|value| (register.to_owned(), value))
    }
}

/// The instructions `ldconst` stands for: the low 20 bits, then the high 12 if there are any.
pub(crate) fn load_constant(register: &str, value: i64) -> Result<Vec<String>, String> {
    let bits = u32::try_from(value).or_else(|_| i32::try_from(value).map(|value| value as u32));
    let bits = bits.map_err(|_| format!("expected a 32-bit value, found {value}"))?;
    let mut instructions = vec![format!("setzi {register}, {}", bits & 0xf_ffff)];
    if bits >> 20 != 0 {
        instructions.push(format!("or {register}, {register}, {:#x}", bits & 0xfff0_0000));
    }
    Ok(instructions)
}

fn allowed(form: &Form, mode: Mode) -> Result<(), String> {
    match (form.mode, mode) {
        (Mode::Both, _) | (Mode::Worker, Mode::Worker) | (Mode::Supervisor, Mode::Supervisor) => Ok(()),
        (Mode::Worker, _) => Err(format!("`{}` is for workers only; this is supervisor code", form.mnemonic)),
        (Mode::Supervisor, _) => Err(format!("`{}` is for the supervisor only; this is worker code", form.mnemonic)),
    }
}

fn zero(file: File, count: u32) -> Written {
    Written::Register { file, first: 16 - count, count, modifier: Modifier::None }
}

fn number(value: i64) -> Written {
    Written::Value(Expression::number(value))
}

type Expanded = (String, Vec<Written>, Option<&'static str>);

/// Replaces an alias of `isa.toml` by what it stands for; the third part restricts the forms.
fn expand_alias(mnemonic: &str, operands: Vec<Written>) -> Result<Expanded, String> {
    use File::{Aux, Main};
    use Written::{Register, Value};
    let same = |name: &str, operands| Ok((name.to_owned(), operands, None));
    if let Some((_, name)) = RENAMED.iter().find(|(alias, _)| *alias == mnemonic) {
        return same(name, operands);
    }
    if let Some((name, form)) = forced(mnemonic) {
        return Ok((name.to_owned(), operands, Some(form)));
    }
    match (mnemonic, &operands[..]) {
        ("nop", []) => same("setzi", vec![Register { file: Main, first: 14, count: 1, modifier: Modifier::None }, number(0)]),
        ("fnop", []) => same("setzi", vec![Register { file: Aux, first: 13, count: 1, modifier: Modifier::None }, number(0)]),
        ("strap", []) => same("put", vec![number(255), zero(Main, 1)]),
        ("zero", [target @ Register { file, count: 1, .. }]) => same("or", vec![target.clone(), zero(*file, 1), zero(*file, 1)]),
        ("zero", [target @ Register { file: Aux, count: 2, .. }]) => same("or64", vec![target.clone(), zero(Aux, 2), zero(Aux, 2)]),
        ("mov", [target @ Register { file: Main, count: 1, .. }, source @ Register { file: Aux, count: 1, .. }]) => {
            same("atom", vec![target.clone(), source.clone()])
        }
        ("mov", [target @ Register { file: Aux, count: 2, .. }, source @ Register { file: Aux, count: 2, .. }]) => {
            same("or64", vec![target.clone(), source.clone(), zero(Aux, 2)])
        }
        ("mov", [target @ Register { file: one, count: 1, .. }, source @ Register { file: other, count: 1, .. }]) if one == other => {
            Ok(("or".to_owned(), vec![target.clone(), source.clone(), number(0)], Some("_zi12")))
        }
        ("mov", _) => Err("expected registers of one file, or an MRF register and an ARF register".to_owned()),
        ("swap16", [target, source]) => same("roll16", vec![target.clone(), source.clone(), source.clone()]),
        ("get", [Register { file: Aux, .. }, _]) => same("uget", operands),
        ("put", [_, Register { file: Aux, .. }]) => same("uput", operands),
        ("sub", [target @ Register { file: Main, .. }, source @ Register { file: Main, .. }, Value(amount)]) => {
            let negated = Expression::parse(&format!("-({})", amount.text())).map_err(|fault| fault.message)?;
            Ok(("add".to_owned(), vec![target.clone(), source.clone(), Value(negated)], Some("_si16")))
        }
        _ => same(mnemonic, operands),
    }
}

/// `adds`, `addz` and the like: the sign-extended or the zero-extended form.
fn forced(mnemonic: &str) -> Option<(&'static str, &'static str)> {
    #[rustfmt::skip]
    const FORCED: [(&str, &str, &str); 10] = [
        ("adds", "add", "_si16"), ("cmpeqs", "cmpeq", "_si16"), ("maxs", "max", "_si16"), ("mins", "min", "_si16"), ("subs", "sub", "_si16_m"),
        ("addz", "add", "_zi16"), ("cmpeqz", "cmpeq", "_zi16"), ("maxz", "max", "_zi16"), ("minz", "min", "_zi16"), ("subz", "sub", "_zi16_m"),
    ];
    FORCED.iter().find(|(alias, ..)| *alias == mnemonic).map(|(_, name, form)| (*name, *form))
}

fn fits(form: &Form, operands: &[Written]) -> bool {
    form.words > 0 && form.operands.len() == operands.len() && form.operands.iter().zip(operands).all(|(operand, written)| shape(operand, written))
}

fn shape(operand: &isa::Operand, written: &Written) -> bool {
    let wanted = match operand.kind {
        OperandKind::Main => (File::Main, 1),
        OperandKind::MainPair => (File::Main, 2),
        OperandKind::Aux => (File::Aux, 1),
        OperandKind::AuxPair => (File::Aux, 2),
        OperandKind::AuxQuad => (File::Aux, 4),
        OperandKind::Unsigned(_) => return matches!(written, Written::Value(_)) || operand.name == "csr" && matches!(written, Written::Control { .. }),
        OperandKind::Signed(_) | OperandKind::Named(_) | OperandKind::High12 => return matches!(written, Written::Value(_)),
    };
    matches!(written, Written::Register { file, count, modifier, .. } if (*file, *count) == wanted && *modifier == operand.modifier)
}

/// Forms are tried in this order: sign-extended immediates, then others, then those for the high bits.
fn preference(form: &Form) -> u32 {
    let of = |kind| match kind {
        OperandKind::High12 => 2,
        OperandKind::Unsigned(_) => 1,
        _ => 0,
    };
    form.operands.iter().map(|operand| of(operand.kind)).max().unwrap_or(0)
}

/// The value to encode, and the relocation if it depends on an address.
fn value_of(form: &Form, operand: &isa::Operand, written: &Written, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<(u32, Option<Fixup>), String> {
    match written {
        Written::Register { first, .. } => Ok((*first, None)),
        Written::Control { index } => {
            let upper = matches!(form.mnemonic, "uget" | "uput");
            let field = if upper { index.checked_sub(0x100) } else { Some(*index) };
            let field = field.filter(|field| *field < 256).ok_or_else(|| format!("`{}` does not reach control register {index:#x}", form.mnemonic))?;
            Ok((field, None))
        }
        Written::Value(expression) => {
            let value = expression.evaluate_with(lookup).map_err(|fault| fault.message)?;
            match value.symbol {
                Some(symbol) => Ok((0, Some(Fixup { kind: relocation_of(form, operand)?, symbol, addend: value.number }))),
                None => immediate(form, operand, value.number).map(|value| (value, None)),
            }
        }
    }
}

fn relocation_of(form: &Form, operand: &isa::Operand) -> Result<Relocation, String> {
    match (form.mnemonic, operand.name, operand.kind) {
        (_, "target", _) => Ok(Relocation::Word19Words),
        ("run", "imm", _) => Ok(Relocation::Run),
        (_, "imm", OperandKind::Unsigned(20)) => Ok(Relocation::Word20),
        _ => Err(format!("`{}`: operand `{}` cannot hold an address", form.mnemonic, operand.name)),
    }
}

/// A number as the form's operand value.
fn immediate(form: &Form, operand: &isa::Operand, number: i64) -> Result<u32, String> {
    let range = || format!("`{}`: operand `{}`: expected {}, found {number}", form.mnemonic, operand.name, operand.kind);
    if operand.name == "target" {
        // Branches are written with byte addresses.
        let words = u32::try_from(number).ok().filter(|address| address.is_multiple_of(4)).map(|address| address / 4);
        return words.ok_or_else(|| format!("`{}`: expected a byte address that is a multiple of 4, found {number}", form.mnemonic));
    }
    match operand.kind {
        OperandKind::Signed(bits) => {
            let limit = 1_i64 << (bits - 1);
            (-limit..limit).contains(&number).then_some(number as u32).ok_or_else(range)
        }
        OperandKind::High12 => {
            let bits = u32::try_from(number).or_else(|_| i32::try_from(number).map(|number| number as u32)).map_err(|_| range())?;
            bits.is_multiple_of(1 << 20).then_some(bits).ok_or_else(range)
        }
        _ => u32::try_from(number).map_err(|_| range()),
    }
}

fn written_registers(form: &Form, values: &[u32]) -> Vec<(Lane, u32)> {
    let mut written = Vec::new();
    for (operand, value) in form.operands.iter().zip(values) {
        let incremented = matches!(operand.modifier, Modifier::PostIncrement | Modifier::PostIncrementFixed | Modifier::Shifted | Modifier::Reloaded);
        if !incremented && !operand.name.starts_with("dst") && operand.name != "srcDst" {
            continue;
        }
        let (lane, count) = match operand.kind {
            OperandKind::Main => (Lane::Main, 1),
            OperandKind::MainPair => (Lane::Main, 2),
            OperandKind::Aux => (Lane::Aux, 1),
            OperandKind::AuxPair => (Lane::Aux, 2),
            OperandKind::AuxQuad => (Lane::Aux, 4),
            _ => continue,
        };
        written.extend((*value..value + count).map(|register| (lane, register)));
    }
    written
}

/// Whether a form may stand in a repeat body.
pub(crate) fn may_repeat(id: FormId) -> bool {
    !matches!(isa::form(id).class, isa::Class::Control | isa::Class::System)
}

/// The number of bundles of the body, when this is a repeat.
pub(crate) fn repeat_bundles(id: FormId, words: &[u32]) -> Option<u32> {
    matches!(id, form::RPT_M_ZI8 | form::RPT_ZI12_ZI8).then(|| isa::decode(words).map_or(0, |decoded| decoded.operands()[1]) + 1)
}

fn nearest(mnemonic: &str) -> String {
    let mut known = BTreeMap::new();
    for (_, form) in isa::forms() {
        known.insert(distance(mnemonic, form.mnemonic), form.mnemonic);
    }
    match known.first_key_value() {
        Some((distance, name)) if *distance <= 2 => format!("; nearest is `{name}`"),
        _ => String::new(),
    }
}

/// Edit distance.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, character) in one.chars().take(32).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for column in 0..other.len() {
            let replaced = diagonal + usize::from(character != other[column]);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
