//! One instruction as written: which form it is, and its words.

use std::collections::HashMap;
use std::sync::OnceLock;

use ipu21::csr;
use ipu21::isa::{self, Form, FormId, Lane, Mode, Modifier, OperandKind};
use ipu21::relocation::Relocation;

use crate::diagnostic::{Diagnostic, Place};
use crate::expression::{Bind, Expression, Value, section_of};
use crate::operand::{File, Written, read_register, split_list};
use crate::statement::Piece;

/// An instruction with its operands read but its form not yet chosen: immediates may still be unknown.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub(crate) at: Place,
    arguments: Vec<Argument>,
    /// The forms of the right shape, the preferred one first. All have the same lane, class, mode and size.
    candidates: Vec<FormId>,
}

/// An operand with its text and place.
#[derive(Clone, Debug)]
struct Argument {
    written: Written,
    text: String,
    at: Place,
}

/// A relocation of an encoded word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fixup {
    pub(crate) kind: Relocation,
    /// Empty: the start of this object's text.
    pub(crate) symbol: String,
    pub(crate) addend: i64,
}

/// An encoded instruction.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) at: Place,
    pub(crate) form: FormId,
    pub(crate) words: Vec<u32>,
    pub(crate) fixup: Option<Fixup>,
    /// Registers written, the zero registers too.
    pub(crate) written: Vec<(Lane, u32)>,
}

/// Finds the value of a symbol.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<Value>;

/// Mnemonics that stand for another one with the same operands.
#[rustfmt::skip]
const RENAMED: [(&str, &str); 3] = [
    ("movnz", "movz"), ("f16v4sisov2amp", "f16v4sisoamp"), ("f16v4sisov2slic", "f16v4sisoslic"),
];

/// Forms by mnemonic.
fn forms_of(mnemonic: &str) -> &'static [FormId] {
    static FORMS: OnceLock<HashMap<&'static str, Vec<FormId>>> = OnceLock::new();
    let forms = FORMS.get_or_init(|| {
        let mut forms: HashMap<&'static str, Vec<FormId>> = HashMap::new();
        for (id, form) in isa::forms() {
            forms.entry(form.mnemonic).or_default().push(id);
        }
        forms
    });
    forms.get(mnemonic).map_or(&[], Vec::as_slice)
}

impl Instruction {
    /// Reads an instruction; all its forms of matching shape stay candidates.
    pub(crate) fn read(piece: &Piece, bind: Bind<'_>) -> Result<Self, Diagnostic> {
        let (mnemonic, rest) = piece.split();
        let written = split_list(rest).into_iter().map(|part| Argument::read(piece, part, bind)).collect::<Result<Vec<_>, _>>()?;
        let (name, mut arguments, suffix) = expand_alias(mnemonic, written, &piece.at).map_err(|message| piece.at.fault(0, message))?;
        let forms = || forms_of(name).iter().copied().filter(|id| suffix.is_empty() || isa::form(*id).id.ends_with(suffix));
        if forms().next().is_none() {
            return Err(piece.at.fault(0, format!("unknown instruction `{mnemonic}`{}", nearest(mnemonic))));
        }
        if forms().all(|id| isa::form(id).words == 0) {
            return Err(piece.at.fault(0, format!("the encoding of `{mnemonic}` is not public")));
        }
        let shaped = |arguments: &[Argument]| -> Vec<FormId> { forms().filter(|id| fits(isa::form(*id), arguments)).collect() };
        let mut candidates = shaped(&arguments);
        if candidates.is_empty() && arguments.len() == 3 && (name.starts_with("ld") || name.starts_with("st")) {
            // The shorthand `ld32 $mD, $mB, off` leaves out a delta of zero.
            arguments.insert(2, zero(&piece.at, File::Main, 1));
            candidates = shaped(&arguments);
        }
        if candidates.is_empty() {
            let expected: Vec<String> = forms().map(|id| format!("`{}`", isa::form(id).syntax)).collect();
            return Err(piece.at.fault(0, format!("expected {}, found `{}`", expected.join(" or "), piece.text)));
        }
        candidates.sort_by_key(|id| preference(isa::form(*id)));
        Ok(Self { at: piece.at.clone(), arguments, candidates })
    }

    /// The form, as far as it does not depend on the values of immediates.
    pub(crate) fn form(&self) -> &'static Form {
        isa::form(self.candidates[0])
    }

    /// Whether who executes it may do so.
    pub(crate) fn check_mode(&self, mode: Mode) -> Result<(), Diagnostic> {
        allowed(self.form(), mode).map_err(|message| self.at.fault(0, message))
    }

    /// Encodes with all symbols known. `mode`: who will execute it; `coissue`: as a member of a bundle.
    pub(crate) fn encode(&self, mode: Mode, coissue: bool, lookup: Lookup<'_>) -> Result<Word, Diagnostic> {
        let mut ranges: Vec<String> = Vec::new();
        let mut outside = None;
        for id in &self.candidates {
            match self.encode_as(*id, mode, coissue, lookup) {
                Ok(word) => return Ok(word),
                Err(Refusal::Other(fault)) => return Err(fault),
                Err(Refusal::Range { argument, expected, found }) => {
                    ranges.push(expected);
                    outside = Some((argument, found));
                }
            }
        }
        ranges.dedup();
        let (argument, found) = outside.unwrap_or_default();
        let place = self.arguments.get(argument).map_or(&self.at, |argument| &argument.at);
        Err(place.fault(0, format!("`{}`: expected {}, found {found}", self.form().mnemonic, ranges.join(" or "))))
    }

    fn encode_as(&self, id: FormId, mode: Mode, coissue: bool, lookup: Lookup<'_>) -> Result<Word, Refusal> {
        let form = isa::form(id);
        let (mut values, mut fixup) = (Vec::new(), None);
        for (index, (argument, operand)) in self.arguments.iter().zip(form.operands).enumerate() {
            let (value, relocation) = argument.value(form, operand, mode, lookup).map_err(|refusal| refusal.of(index, argument))?;
            values.push(value);
            fixup = fixup.or(relocation);
        }
        let encoded = isa::encode(id, &values, coissue).map_err(|fault| Refusal::Other(self.at.fault(0, fault)))?;
        let written = written_registers(form, &values);
        Ok(Word { at: self.at.clone(), form: id, words: encoded.words().to_vec(), fixup, written })
    }
}

/// Why a candidate cannot be the form.
enum Refusal {
    /// The number of an argument is outside its range; another form may hold it.
    Range { argument: usize, expected: String, found: String },
    /// Nothing another form would cure.
    Other(Diagnostic),
}

/// Why an argument has no value.
enum ValueFault {
    Range { expected: String, found: String },
    Other(String),
}

impl ValueFault {
    fn of(self, index: usize, argument: &Argument) -> Refusal {
        match self {
            Self::Range { expected, found } => Refusal::Range { argument: index, expected, found },
            Self::Other(message) => Refusal::Other(argument.at.fault(0, message)),
        }
    }
}

impl Argument {
    fn read(piece: &Piece, part: &str, bind: Bind<'_>) -> Result<Self, Diagnostic> {
        let written = match part.strip_prefix('$') {
            Some(register) => read_register(register).map_err(|message| piece.fault(part, message))?,
            None => Written::Value(match Expression::plain(part) {
                Some(number) => number,
                None => piece.expression(part)?.bound(bind),
            }),
        };
        Ok(Self { written, text: part.to_owned(), at: piece.place_of(part) })
    }

    /// The value to encode, and the relocation if it depends on an address.
    fn value(&self, form: &Form, operand: &isa::Operand, mode: Mode, lookup: Lookup<'_>) -> Result<(u32, Option<Fixup>), ValueFault> {
        match &self.written {
            Written::Register { first, count, .. } if first.is_multiple_of(*count) => Ok((*first, None)),
            Written::Register { .. } => Err(ValueFault::Range { expected: operand.kind.to_string(), found: format!("`{}`", self.text) }),
            Written::Control { name } => control_register(form, name, mode).map(|index| (index, None)).map_err(ValueFault::Other),
            Written::Value(expression) => self.number(expression, form, operand, mode, lookup),
        }
    }

    fn number(
        &self,
        expression: &Expression,
        form: &Form,
        operand: &isa::Operand,
        mode: Mode,
        lookup: Lookup<'_>,
    ) -> Result<(u32, Option<Fixup>), ValueFault> {
        let value = expression.evaluate_with(lookup).map_err(|fault| ValueFault::Other(fault.message))?;
        let Some(symbol) = value.symbol else {
            return immediate(operand, value.number).map(|value| (value, None));
        };
        if operand.name == "csr" && expression.as_symbol().is_some_and(|name| csr::index_of(name).is_some()) {
            return control_register(form, &symbol, mode).map(|index| (index, None)).map_err(ValueFault::Other);
        }
        match relocation_of(form, operand) {
            Some(kind) => Ok((0, Some(Fixup { kind, symbol, addend: value.number }))),
            None if section_of(&symbol).is_some() => {
                Err(ValueFault::Other(format!("`{}`: expected a number, found the address `{}`", form.mnemonic, self.text)))
            }
            None => Err(ValueFault::Other(format!("unknown symbol `{symbol}`"))),
        }
    }
}

/// The instructions `ldconst` stands for: the low 20 bits, then the high 12 if there are any.
pub(crate) fn load_constant(register: &str, value: i64) -> Result<Vec<String>, String> {
    let bits = u32::try_from(value).or_else(|_| i32::try_from(value).map(i32::cast_unsigned));
    let bits = bits.map_err(|_| format!("expected a 32-bit value, found {value}"))?;
    let mut instructions = vec![format!("setzi {register}, {}", bits & 0xf_ffff)];
    if bits >> 20 != 0 {
        instructions.push(format!("or {register}, {register}, {:#x}", bits & 0xfff0_0000));
    }
    Ok(instructions)
}

fn allowed(form: &Form, mode: Mode) -> Result<(), String> {
    match (form.mode, mode) {
        (Mode::Worker, Mode::Supervisor) => Err(format!("`{}` is for workers only; this is supervisor code", form.mnemonic)),
        (Mode::Supervisor, Mode::Worker) => Err(format!("`{}` is for the supervisor only; this is worker code", form.mnemonic)),
        _ => Ok(()),
    }
}

fn zero(at: &Place, file: File, count: u32) -> Argument {
    Argument {
        written: Written::Register { file, first: 16 - count, count, modifier: Modifier::None },
        text: String::new(),
        at: at.clone(),
    }
}

fn plain(at: &Place, value: i64) -> Argument {
    Argument { written: Written::Value(Expression::number(value)), text: value.to_string(), at: at.clone() }
}

/// Mnemonic, operands, and the end of the ids of the forms that are meant.
type Expanded<'a> = (&'a str, Vec<Argument>, &'static str);

/// Replaces an alias of `isa.toml` by what it stands for.
fn expand_alias<'a>(mnemonic: &'a str, arguments: Vec<Argument>, at: &Place) -> Result<Expanded<'a>, String> {
    use File::{Aux, Main};
    use Written::{Register, Value};
    if let Some((_, name)) = RENAMED.iter().find(|(alias, _)| *alias == mnemonic) {
        return Ok((name, arguments, ""));
    }
    if let Some((name, suffix)) = forced(mnemonic) {
        return Ok((name, arguments, suffix));
    }
    if !matches!(mnemonic, "nop" | "fnop" | "strap" | "zero" | "mov" | "swap16" | "get" | "put" | "sub") {
        return Ok((mnemonic, arguments, ""));
    }
    if arguments.is_empty() {
        return without_operands(mnemonic, at);
    }
    let written: Vec<&Written> = arguments.iter().map(|argument| &argument.written).collect();
    let (name, tail, suffix) = match (mnemonic, &written[..]) {
        ("zero", [Register { file, count: 1, .. }]) => ("or", vec![zero(at, *file, 1), zero(at, *file, 1)], ""),
        ("zero", [Register { file: Aux, count: 2, .. }]) => ("or64", vec![zero(at, Aux, 2), zero(at, Aux, 2)], ""),
        ("mov", [Register { file: Main, count: 1, .. }, Register { file: Aux, count: 1, .. }]) => ("atom", vec![], ""),
        ("mov", [Register { file: Aux, count: 2, .. }, Register { file: Aux, count: 2, .. }]) => ("or64", vec![zero(at, Aux, 2)], ""),
        ("mov", [Register { file: one, count: 1, .. }, Register { file: other, count: 1, .. }]) if one == other => {
            ("or", vec![plain(at, 0)], "_zi12")
        }
        ("swap16", [_, _]) => ("roll16", vec![arguments[1].clone()], ""),
        ("get", [Register { file: Aux, .. }, _]) => ("uget", vec![], ""),
        ("put", [_, Register { file: Aux, .. }]) => ("uput", vec![], ""),
        ("sub", [Register { file: Main, .. }, Register { file: Main, .. }, Value(amount)]) => {
            let amount = Argument { written: Value(amount.negated()), ..arguments[2].clone() };
            return Ok(("add", vec![arguments[0].clone(), arguments[1].clone(), amount], "_si16"));
        }
        ("zero", _) => return Err("`zero`: expected a register or an ARF register pair".to_owned()),
        ("mov", _) => return Err("`mov`: expected two registers or pairs of one file, or an MRF and an ARF register".to_owned()),
        _ => (mnemonic, vec![], ""),
    };
    Ok((name, arguments.into_iter().chain(tail).collect(), suffix))
}

fn without_operands(mnemonic: &str, at: &Place) -> Result<Expanded<'static>, String> {
    let register = |file, first| Written::Register { file, first, count: 1, modifier: Modifier::None };
    let (name, first, second) = match mnemonic {
        "nop" => ("setzi", register(File::Main, 14), Written::Value(Expression::number(0))),
        "fnop" => ("setzi", register(File::Aux, 13), Written::Value(Expression::number(0))),
        "strap" => ("put", Written::Value(Expression::number(255)), register(File::Main, 15)),
        _ => return Err(format!("`{mnemonic}`: expected operands, found none")),
    };
    let argument = |written| Argument { written, text: String::new(), at: at.clone() };
    Ok((name, vec![argument(first), argument(second)], ""))
}

/// `adds`, `addz` and the like: the sign-extended or the zero-extended form.
fn forced(mnemonic: &str) -> Option<(&'static str, &'static str)> {
    #[rustfmt::skip]
    const FORCED: [(&str, &str, &str); 10] = [
        ("adds", "add", "_si16"), ("cmpeqs", "cmpeq", "_si16"), ("maxs", "max", "_si16"), ("mins", "min", "_si16"), ("subs", "sub", "_si16_m"),
        ("addz", "add", "_zi16"), ("cmpeqz", "cmpeq", "_zi16"), ("maxz", "max", "_zi16"), ("minz", "min", "_zi16"), ("subz", "sub", "_zi16_m"),
    ];
    let may_be = mnemonic.len() <= 6 && mnemonic.ends_with(['s', 'z']);
    FORCED.iter().filter(|_| may_be).find(|(alias, ..)| *alias == mnemonic).map(|(_, name, form)| (*name, *form))
}

fn fits(form: &Form, arguments: &[Argument]) -> bool {
    let same_count = form.operands.len() == arguments.len();
    form.words > 0 && same_count && form.operands.iter().zip(arguments).all(|(operand, argument)| shape(operand, &argument.written))
}

fn shape(operand: &isa::Operand, written: &Written) -> bool {
    let wanted = match operand.kind {
        OperandKind::Main => (File::Main, 1),
        OperandKind::MainPair => (File::Main, 2),
        OperandKind::Aux => (File::Aux, 1),
        OperandKind::AuxPair => (File::Aux, 2),
        OperandKind::AuxQuad => (File::Aux, 4),
        OperandKind::Unsigned(_) => {
            return matches!(written, Written::Value(_)) || operand.name == "csr" && matches!(written, Written::Control { .. });
        }
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

/// The index of a control register as the form encodes it.
fn control_register(form: &Form, name: &str, mode: Mode) -> Result<u32, String> {
    let register = csr::all().iter().find(|csr| csr.name == name).ok_or_else(|| format!("unknown register `${name}`"))?;
    match (register.mode, mode) {
        ("worker", Mode::Supervisor) => return Err(format!("`${name}` is a register of workers; this is supervisor code")),
        ("supervisor", Mode::Worker) => return Err(format!("`${name}` is a register of the supervisor; this is worker code")),
        _ => {}
    }
    // Upper registers have an instruction space of their own (isa-notes.md 7).
    let upper = matches!(form.mnemonic, "uget" | "uput");
    match (register.index.checked_sub(0x100), upper) {
        (Some(index), true) => Ok(index),
        (None, false) => Ok(register.index),
        (Some(_), false) => Err(format!("`${name}` is reached by `uget` and `uput`, not by `{}`", form.mnemonic)),
        (None, true) => Err(format!("`${name}` is reached by `get` and `put`, not by `{}`", form.mnemonic)),
    }
}

fn relocation_of(form: &Form, operand: &isa::Operand) -> Option<Relocation> {
    match (form.mnemonic, operand.name, operand.kind) {
        (_, "target", _) => Some(Relocation::Word19Words),
        ("run", "imm", _) => Some(Relocation::Run),
        (_, "imm", OperandKind::Unsigned(20)) => Some(Relocation::Word20),
        _ => None,
    }
}

/// A number as the form's operand value.
fn immediate(operand: &isa::Operand, number: i64) -> Result<u32, ValueFault> {
    let unsigned = |bits: u32| u32::try_from(number).ok().filter(|value| u64::from(*value) < 1 << bits);
    let (value, expected) = match operand.kind {
        OperandKind::Unsigned(bits) if operand.name == "target" => {
            // Branches are written with byte addresses.
            let words = u32::try_from(number).ok().filter(|address| address.is_multiple_of(4)).map(|address| address / 4);
            (
                words.filter(|words| u64::from(*words) < 1 << bits),
                format!("a byte address in 0..={:#x}, a multiple of 4", (1_u64 << bits) * 4 - 4),
            )
        }
        OperandKind::Signed(bits) => {
            let limit = 1_i64 << (bits - 1);
            ((-limit..limit).contains(&number).then_some(number as u32), operand.kind.to_string())
        }
        OperandKind::High12 => {
            let bits = u32::try_from(number).ok().or_else(|| i32::try_from(number).ok().map(i32::cast_unsigned));
            (bits.filter(|bits| bits.is_multiple_of(1 << 20)), operand.kind.to_string())
        }
        OperandKind::Unsigned(bits) | OperandKind::Named(bits) => (unsigned(bits), operand.kind.to_string()),
        _ => (None, operand.kind.to_string()),
    };
    value.ok_or(ValueFault::Range { expected, found: number.to_string() })
}

fn written_registers(form: &Form, values: &[u32]) -> Vec<(Lane, u32)> {
    let mut written = Vec::new();
    for (operand, value) in form.operands.iter().zip(values) {
        let incremented =
            matches!(operand.modifier, Modifier::PostIncrement | Modifier::PostIncrementFixed | Modifier::Shifted | Modifier::Reloaded);
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

fn nearest(mnemonic: &str) -> String {
    let near = isa::forms().map(|(_, form)| (distance(mnemonic, form.mnemonic), form.mnemonic)).min();
    match near {
        Some((distance, name)) if distance <= 2 => format!("; nearest is `{name}`"),
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
