//! One instruction as written: which form it is, and its words.

use std::ops::Range;
use std::sync::OnceLock;

use arrayvec::ArrayVec;
use ipu21::csr;
use ipu21::isa::{self, Encoded, Form, FormId, MAX_OPERANDS, Mode, Modifier, OperandKind};
use ipu21::relocation::Relocation;
use rustc_hash::FxHashMap;

use crate::diagnostic::{Diagnostic, Place};
use crate::expression::{Bind, Expression, Meaning, Value, section_of};
use crate::operand::{File, Written, list_members, read_register};
use crate::statement::Piece;

/// The operands of an instruction.
type Arguments = ArrayVec<Argument, MAX_OPERANDS>;

/// An instruction of the source.
#[derive(Clone, Debug)]
pub(crate) enum Instruction {
    /// With its words.
    Encoded(Word),
    /// One that needs addresses, or that cannot be encoded: the second pass does it, or says why not.
    Open(Box<Open>),
}

/// An instruction with its operands read but its form not yet chosen.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    piece: Piece<'static>,
    arguments: Arguments,
    /// The forms of the right shape, the preferred one first. All have the same lane, class, mode and size.
    candidates: Vec<FormId>,
}

/// An operand, and which bytes of the instruction's text it is; none when it is not written.
#[derive(Clone, Debug)]
struct Argument {
    written: Written,
    text: Range<u32>,
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
    encoded: Encoded,
}

impl Word {
    /// Its words, one or two.
    pub(crate) fn words(&self) -> &[u32] {
        self.encoded.words()
    }

    /// Registers it writes, the zero registers too: those of the main lane in the low half, those of the aux lane in the high half.
    pub(crate) fn written(&self) -> u32 {
        isa::decode(self.words()).map_or(0, |decoded| written_registers(isa::form(self.form), decoded.operands()))
    }
}

/// Who executes an instruction, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) mode: Mode,
    /// The mode is not checked.
    pub(crate) any_mode: bool,
    /// It is a member of a bundle.
    pub(crate) coissue: bool,
}

/// Finds the value of a symbol.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<Value>;

/// Mnemonics that stand for another one with the same operands.
#[rustfmt::skip]
const RENAMED: [(&str, &str); 3] = [
    ("movnz", "movz"), ("f16v4sisov2amp", "f16v4sisoamp"), ("f16v4sisov2slic", "f16v4sisoslic"),
];
/// Mnemonics that stand for others when their operands ask for it.
const ALIASES: [&str; 9] = ["nop", "fnop", "strap", "zero", "mov", "swap16", "get", "put", "sub"];

/// What a mnemonic may be.
#[derive(Debug, Default)]
struct Mnemonic {
    /// Forms that can be encoded, the preferred one first.
    forms: Vec<FormId>,
    /// It is one of [`ALIASES`].
    is_alias: bool,
}

/// The mnemonics of the table and [`ALIASES`].
fn mnemonics() -> &'static FxHashMap<&'static str, Mnemonic> {
    static KNOWN: OnceLock<FxHashMap<&'static str, Mnemonic>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut known: FxHashMap<&'static str, Mnemonic> = FxHashMap::default();
        for (id, form) in isa::forms() {
            known.entry(form.mnemonic).or_default().forms.extend((form.words > 0).then_some(id));
        }
        for alias in ALIASES {
            known.entry(alias).or_default().is_alias = true;
        }
        for (id, form) in isa::forms() {
            let forms = &mut known.entry(form.mnemonic).or_default().forms;
            if forms.first() == Some(&id) {
                forms.sort_by_key(|id| preference(isa::form(*id)));
            }
        }
        known
    })
}

/// The forms of a mnemonic whose ids end like this and that have operands of these shapes, the preferred one first.
fn fitting(forms: &'static [FormId], suffix: &'static str, arguments: &Arguments) -> impl Iterator<Item = FormId> {
    let fits = move |id: &FormId| {
        let form = isa::form(*id);
        let mut pairs = form.operands.iter().zip(arguments);
        let has_shape = form.operands.len() == arguments.len() && pairs.all(|(operand, argument)| shape(operand, &argument.written));
        has_shape && (suffix.is_empty() || form.id.ends_with(suffix))
    };
    forms.iter().copied().filter(fits)
}

impl Instruction {
    /// Reads an instruction. It is encoded at once when nothing is missing.
    pub(crate) fn read(piece: &Piece<'_>, setting: Setting, bind: Bind<'_>) -> Result<Self, Diagnostic> {
        let (written, rest) = piece.split();
        let mut arguments = Arguments::new();
        for part in list_members(rest) {
            let argument = Argument::read(piece, part, bind)?;
            if arguments.try_push(argument).is_err() {
                return Err(piece.at.fault(0, unfitting(piece, written, "")));
            }
        }
        let mut known = mnemonics().get(written);
        let (mut name, mut suffix) = (written, "");
        if known.is_none_or(|known| known.is_alias) {
            (name, arguments, suffix) = expand_alias(written, arguments).map_err(|message| piece.at.fault(0, message))?;
            known = mnemonics().get(name);
        }
        let forms = known.map_or(&[][..], |known| &known.forms);
        if fitting(forms, suffix, &arguments).next().is_none() && arguments.len() == 3 && (name.starts_with("ld") || name.starts_with("st"))
        {
            // The shorthand `ld32 $mD, $mB, off` leaves out a delta of zero.
            arguments.insert(2, Argument::zero(File::Main, 1));
        }
        let Some(first) = fitting(forms, suffix, &arguments).next() else {
            return Err(piece.at.fault(0, unfitting(piece, name, suffix)));
        };
        let is_closed = arguments.iter().all(|argument| !matches!(argument.written, Written::Expression(_)));
        if is_closed && (setting.any_mode || allowed(isa::form(first), setting.mode).is_ok()) {
            let encoding = Encoding { arguments: &arguments, text: &piece.text, setting, lookup: &|_| None };
            // The forms for larger immediates come behind those for smaller ones.
            for form in fitting(forms, suffix, &arguments) {
                if let Ok((encoded, None)) = encoding.of(form) {
                    return Ok(Self::Encoded(Word { at: piece.at.clone(), form, encoded }));
                }
            }
        }
        let candidates = fitting(forms, suffix, &arguments).collect();
        Ok(Self::Open(Box::new(Open { piece: piece.clone().into_owned(), arguments, candidates })))
    }

    /// The form, as far as it does not depend on the values of immediates.
    pub(crate) fn form(&self) -> &'static Form {
        match self {
            Self::Encoded(word) => isa::form(word.form),
            Self::Open(open) => open.form(),
        }
    }

    pub(crate) fn at(&self) -> &Place {
        match self {
            Self::Encoded(word) => &word.at,
            Self::Open(open) => &open.piece.at,
        }
    }
}

impl Open {
    fn form(&self) -> &'static Form {
        isa::form(self.candidates[0])
    }

    /// Encodes with all symbols known.
    pub(crate) fn encode(&self, setting: Setting, lookup: Lookup<'_>) -> Result<(Word, Option<Fixup>), Diagnostic> {
        if !setting.any_mode {
            allowed(self.form(), setting.mode).map_err(|message| self.piece.at.fault(0, message))?;
        }
        let encoding = Encoding { arguments: &self.arguments, text: &self.piece.text, setting, lookup };
        let mut ranges: Vec<String> = Vec::new();
        let mut outside = (self.piece.at.clone(), String::new());
        for form in &self.candidates {
            match encoding.of(*form) {
                Ok((encoded, fixup)) => return Ok((Word { at: self.piece.at.clone(), form: *form, encoded }, fixup)),
                Err(Refusal::Other { argument, message }) => return Err(self.place_of(argument).fault(0, message)),
                Err(Refusal::Range { argument, operand, found }) => {
                    let text = || format!("`{}`", self.arguments[argument].of(&self.piece.text));
                    ranges.push(expected(operand));
                    outside = (self.place_of(Some(argument)), found.map_or_else(text, |number| number.to_string()));
                }
            }
        }
        ranges.dedup();
        let (place, found) = outside;
        Err(place.fault(0, format!("`{}`: expected {}, found {found}", self.form().mnemonic, ranges.join(" or "))))
    }

    /// The place of an operand that is written, else that of the instruction.
    fn place_of(&self, argument: Option<usize>) -> Place {
        let text = argument.map_or("", |index| self.arguments[index].of(&self.piece.text));
        if text.is_empty() { self.piece.at.clone() } else { self.piece.place_of(text) }
    }
}

/// Why a form cannot be the one.
enum Refusal {
    /// The value of an operand is outside its range, a register when there is no number; another form may hold it.
    Range { argument: usize, operand: &'static isa::Operand, found: Option<i64> },
    /// Nothing another form would cure, at an operand or the instruction.
    Other { argument: Option<usize>, message: String },
}

/// What an instruction is encoded from.
struct Encoding<'a> {
    arguments: &'a Arguments,
    /// The text of the instruction.
    text: &'a str,
    setting: Setting,
    lookup: Lookup<'a>,
}

impl Encoding<'_> {
    fn of(&self, id: FormId) -> Result<(Encoded, Option<Fixup>), Refusal> {
        let form = isa::form(id);
        let (mut values, mut fixup) = (ArrayVec::<u32, MAX_OPERANDS>::new(), None);
        for (argument, operand) in form.operands.iter().enumerate() {
            let (value, relocation) = self.value(form, operand, argument)?;
            values.push(value);
            fixup = fixup.or(relocation);
        }
        let encoded = isa::encode(id, &values, self.setting.coissue);
        encoded.map(|encoded| (encoded, fixup)).map_err(|fault| Refusal::Other { argument: None, message: fault.to_string() })
    }

    /// The value to encode, and the relocation if it depends on an address.
    fn value(&self, form: &Form, operand: &'static isa::Operand, argument: usize) -> Result<(u32, Option<Fixup>), Refusal> {
        let other = |message: String| Refusal::Other { argument: Some(argument), message };
        match &self.arguments[argument].written {
            Written::Register { first, count, .. } if first.is_multiple_of(*count) => Ok((*first, None)),
            Written::Register { .. } => Err(Refusal::Range { argument, operand, found: None }),
            Written::Control(name) => control_register(form, name, self.setting.mode).map(|index| (index, None)).map_err(other),
            Written::Number(number) => self.immediate(operand, argument, *number),
            Written::Expression(expression) => self.expression(expression, form, operand, argument),
        }
    }

    fn immediate(&self, operand: &'static isa::Operand, argument: usize, number: i64) -> Result<(u32, Option<Fixup>), Refusal> {
        let value = immediate(operand, number).ok_or(Refusal::Range { argument, operand, found: Some(number) })?;
        Ok((value, None))
    }

    fn expression(
        &self,
        expression: &Expression,
        form: &Form,
        operand: &'static isa::Operand,
        argument: usize,
    ) -> Result<(u32, Option<Fixup>), Refusal> {
        let other = |message: String| Refusal::Other { argument: Some(argument), message };
        let value = expression.evaluate_with(self.lookup).map_err(|fault| other(fault.message))?;
        let Some(symbol) = value.symbol else { return self.immediate(operand, argument, value.number) };
        if operand.name == "csr" && expression.as_symbol().is_some_and(|name| csr::index_of(name).is_some()) {
            return control_register(form, &symbol, self.setting.mode).map(|index| (index, None)).map_err(other);
        }
        match relocation_of(form, operand) {
            Some(kind) => Ok((0, Some(Fixup { kind, symbol, addend: value.number }))),
            None if section_of(&symbol).is_some() => {
                let text = self.arguments[argument].of(self.text);
                Err(other(format!("`{}`: expected a number, found the address `{text}`", form.mnemonic)))
            }
            None => Err(other(format!("unknown symbol `{symbol}`"))),
        }
    }
}

impl Argument {
    fn read(piece: &Piece<'_>, part: &str, bind: Bind<'_>) -> Result<Self, Diagnostic> {
        let written = match part.strip_prefix('$') {
            Some(register) => read_register(register).or_else(|message| match bind(part) {
                Some(Meaning::Value(Value { symbol: None, number })) => Ok(Written::Number(number)),
                _ => Err(piece.fault(part, message)),
            })?,
            None => match Expression::plain(part) {
                Some(number) => Written::Number(number),
                None => {
                    let expression = piece.expression(part)?.bound(bind);
                    expression.known().map_or_else(|| Written::Expression(Box::new(expression)), Written::Number)
                }
            },
        };
        let start = (part.as_ptr() as usize).wrapping_sub(piece.text.as_ptr() as usize);
        Ok(Self { written, text: start as u32..(start + part.len()) as u32 })
    }

    /// One that is not written.
    const fn implied(written: Written) -> Self {
        Self { written, text: 0..0 }
    }

    const fn zero(file: File, count: u32) -> Self {
        Self::implied(Written::Register { file, first: 16 - count, count, modifier: Modifier::None })
    }

    /// Its text in that of the instruction.
    fn of<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.text.start as usize..self.text.end as usize).unwrap_or("")
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

/// Mnemonic, operands, and the end of the ids of the forms that are meant.
type Expanded<'a> = (&'a str, Arguments, &'static str);

/// Replaces an alias of `isa.toml` by what it stands for.
fn expand_alias(mnemonic: &str, mut arguments: Arguments) -> Result<Expanded<'_>, String> {
    use File::{Aux, Main};
    use Written::Register;
    if let Some((_, name)) = RENAMED.iter().find(|(alias, _)| *alias == mnemonic) {
        return Ok((name, arguments, ""));
    }
    if let Some((name, suffix)) = forced(mnemonic) {
        return Ok((name, arguments, suffix));
    }
    if !ALIASES.contains(&mnemonic) {
        return Ok((mnemonic, arguments, ""));
    }
    if arguments.is_empty() {
        return without_operands(mnemonic);
    }
    if let ("sub", [a, b, amount]) = (mnemonic, &mut arguments[..])
        && let (Register { file: Main, .. }, Register { file: Main, .. }) = (&a.written, &b.written)
        && let Some(negated) = amount.written.negated()
    {
        amount.written = negated;
        return Ok(("add", arguments, "_si16"));
    }
    let written: Vec<&Written> = arguments.iter().map(|argument| &argument.written).collect();
    let (name, tail, suffix) = match (mnemonic, &written[..]) {
        ("zero", [Register { file, count: 1, .. }]) => ("or", vec![Argument::zero(*file, 1), Argument::zero(*file, 1)], ""),
        ("zero", [Register { file: Aux, count: 2, .. }]) => ("or64", vec![Argument::zero(Aux, 2), Argument::zero(Aux, 2)], ""),
        ("mov", [Register { file: Main, count: 1, .. }, Register { file: Aux, count: 1, .. }]) => ("atom", vec![], ""),
        ("mov", [Register { file: Aux, count: 2, .. }, Register { file: Aux, count: 2, .. }]) => ("or64", vec![Argument::zero(Aux, 2)], ""),
        ("mov", [Register { file: one, count: 1, .. }, Register { file: other, count: 1, .. }]) if one == other => {
            ("or", vec![Argument::implied(Written::Number(0))], "_zi12")
        }
        ("swap16", [_, _]) => ("roll16", vec![arguments[1].clone()], ""),
        ("get", [Register { file: Aux, .. }, _]) => ("uget", vec![], ""),
        ("put", [_, Register { file: Aux, .. }]) => ("uput", vec![], ""),
        ("zero", _) => return Err("`zero`: expected a register or an ARF register pair".to_owned()),
        ("mov", _) => return Err("`mov`: expected two registers or pairs of one file, or an MRF and an ARF register".to_owned()),
        _ => (mnemonic, vec![], ""),
    };
    arguments.extend(tail);
    Ok((name, arguments, suffix))
}

fn without_operands(mnemonic: &str) -> Result<Expanded<'static>, String> {
    let register = |file, first| Argument::implied(Written::Register { file, first, count: 1, modifier: Modifier::None });
    let number = |number| Argument::implied(Written::Number(number));
    let (name, first, second) = match mnemonic {
        "nop" => ("setzi", register(File::Main, 14), number(0)),
        "fnop" => ("setzi", register(File::Aux, 13), number(0)),
        "strap" => ("put", number(255), register(File::Main, 15)),
        _ => return Err(format!("`{mnemonic}`: expected operands, found none")),
    };
    Ok((name, [first, second].into_iter().collect(), ""))
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

fn shape(operand: &isa::Operand, written: &Written) -> bool {
    let wanted = match operand.kind {
        OperandKind::Main => (File::Main, 1),
        OperandKind::MainPair => (File::Main, 2),
        OperandKind::Aux => (File::Aux, 1),
        OperandKind::AuxPair => (File::Aux, 2),
        OperandKind::AuxQuad => (File::Aux, 4),
        OperandKind::Unsigned(_) => {
            return matches!(written, Written::Number(_) | Written::Expression(_))
                || operand.name == "csr" && matches!(written, Written::Control(_));
        }
        OperandKind::Signed(_) | OperandKind::Named(_) | OperandKind::High12 => {
            return matches!(written, Written::Number(_) | Written::Expression(_));
        }
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

/// What an operand must be, for messages.
fn expected(operand: &isa::Operand) -> String {
    match operand.kind {
        OperandKind::Unsigned(bits) if operand.name == "target" => {
            format!("a byte address in 0..={:#x}, a multiple of 4", (1_u64 << bits) * 4 - 4)
        }
        kind => kind.to_string(),
    }
}

/// A number as the form's operand value, if it is one.
fn immediate(operand: &isa::Operand, number: i64) -> Option<u32> {
    let unsigned = u32::try_from(number).ok();
    let signed = i32::try_from(number).ok().map(i32::cast_unsigned);
    match operand.kind {
        // Branches are written with byte addresses.
        OperandKind::Unsigned(bits) if operand.name == "target" => {
            unsigned.filter(|address| address.is_multiple_of(4)).map(|address| address / 4).filter(|words| u64::from(*words) < 1 << bits)
        }
        OperandKind::Signed(bits) => signed.filter(|_| (-(1_i64 << (bits - 1))..1 << (bits - 1)).contains(&number)),
        OperandKind::High12 => unsigned.or(signed).filter(|bits| bits.is_multiple_of(1 << 20)),
        OperandKind::Unsigned(bits) | OperandKind::Named(bits) => unsigned.filter(|value| u64::from(*value) < 1 << bits),
        _ => None,
    }
}

/// The registers an instruction writes, as [`Word::written`] gives them.
fn written_registers(form: &Form, values: &[u32]) -> u32 {
    let mut written = 0;
    for (operand, value) in form.operands.iter().zip(values) {
        let incremented =
            matches!(operand.modifier, Modifier::PostIncrement | Modifier::PostIncrementFixed | Modifier::Shifted | Modifier::Reloaded);
        if !incremented && !operand.name.starts_with("dst") && operand.name != "srcDst" {
            continue;
        }
        let (first, mask) = match operand.kind {
            OperandKind::Main => (0, 1),
            OperandKind::MainPair => (0, 3),
            OperandKind::Aux => (16, 1),
            OperandKind::AuxPair => (16, 3),
            OperandKind::AuxQuad => (16, 15),
            _ => continue,
        };
        written |= mask << (first + value);
    }
    written
}

/// Why no form is meant by a mnemonic with these operands.
fn unfitting(piece: &Piece<'_>, name: &str, suffix: &str) -> String {
    let (written, _) = piece.split();
    let forms = || isa::forms_of(name).map(isa::form).filter(|form| form.id.ends_with(suffix));
    if forms().next().is_none() {
        return format!("unknown instruction `{written}`{}", nearest(written));
    }
    if forms().all(|form| form.words == 0) {
        return format!("the encoding of `{written}` is not public");
    }
    let expected: Vec<String> = forms().map(|form| format!("`{}`", form.syntax)).collect();
    format!("expected {}, found `{}`", expected.join(" or "), piece.text)
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
