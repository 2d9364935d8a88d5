//! The first pass: labels, directives and instructions become items with offsets; symbols get their values.
//!
//! The size of an item never depends on an address, so offsets are final here. A constant that is set again keeps the value it had
//! for what was written before.

use std::collections::BTreeMap;
use std::rc::Rc;

use ipu21::isa::{Lane, Mode};
use ipu21::relocation::Relocation;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::diagnostic::{Diagnostic, Place};
use crate::expression::{Expression, Meaning, Value};
use crate::instruction::{Instruction, Setting, load_constant};
use crate::object_file::{Binding, SymbolKind, Visibility};
use crate::operand::{read_register, split_list};
use crate::section::{SectionLayout, Traits};
use crate::statement::{Piece, is_symbol};

/// Largest text section, bytes: region 0.
pub(crate) const TEXT_MAX: u32 = 0x34000;
/// Largest alignment, bytes.
pub(crate) const ALIGN_MAX: u32 = 0x4000;

/// Something with a place in the section.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) offset: u32,
    pub(crate) at: Place,
    pub(crate) mode: Mode,
    pub(crate) rules: Rules,
    pub(crate) content: Content,
}

/// Rules that directives lift for what follows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// The members of a bundle in the wrong order are exchanged, and a `fnop` beside `rpt` goes when that puts the body in its place.
    pub(crate) may_optimize: bool,
    /// Anything may follow `rpt`.
    pub(crate) any_repeat: bool,
    /// Both members of a bundle may write a register.
    pub(crate) any_operands: bool,
    /// Workers may execute the supervisor's instructions, and it theirs.
    pub(crate) any_mode: bool,
    /// Lanes of a bundle are only warned about.
    pub(crate) any_bundle: bool,
}

/// What an item is.
#[derive(Debug)]
pub(crate) enum Content {
    /// An instruction issued alone.
    Single(Instruction),
    /// Main lane, aux lane.
    Bundle(Box<[Instruction; 2]>),
    /// A number, or an address through a relocation.
    Data { bytes: u32, relocation: Relocation, value: Expression },
    /// Alignment.
    Padding { bytes: u32 },
    /// The low `width` bytes of a value again and again.
    Fill { bytes: u32, value: u64, width: u32 },
    /// These bytes.
    Bytes(Vec<u8>),
    /// In place of an instruction that could not be read.
    Lost { bytes: u32 },
}

impl Content {
    pub(crate) fn bytes(&self) -> u32 {
        match self {
            Self::Single(instruction) => 4 * u32::from(instruction.form().words),
            Self::Bundle(_) => 8,
            Self::Bytes(bytes) => bytes.len() as u32,
            Self::Data { bytes, .. } | Self::Padding { bytes } | Self::Fill { bytes, .. } | Self::Lost { bytes } => *bytes,
        }
    }
}

/// What directives say of a symbol.
#[derive(Debug)]
pub(crate) struct SymbolTraits {
    pub(crate) at: Place,
    pub(crate) binding: Binding,
    pub(crate) kind: SymbolKind,
    pub(crate) visibility: Visibility,
    pub(crate) size: Option<Expression>,
    /// Size and alignment of zeros that several objects share.
    pub(crate) common: Option<(u32, u32)>,
}

impl SymbolTraits {
    pub(crate) fn new(at: Place) -> Self {
        let (binding, kind, visibility) = (Binding::Local, SymbolKind::Untyped, Visibility::Default);
        Self { at, binding, kind, visibility, size: None, common: None }
    }
}

/// The sections being laid out.
pub(crate) struct Layout {
    pub(crate) constants: FxHashMap<String, Value>,
    /// Constants that came from outside.
    fixed: FxHashSet<String>,
    /// Section and offset of each label.
    pub(crate) labels: FxHashMap<String, (usize, u32)>,
    pub(crate) symbols: BTreeMap<String, SymbolTraits>,
    pub(crate) sections: Vec<SectionLayout>,
    pub(crate) current: usize,
    pub(crate) previous: usize,
    /// Sections left by `.pushsection`, with those before them.
    pub(crate) opened: Vec<(usize, usize)>,
    pub(crate) faults: Vec<Diagnostic>,
    pub(crate) warnings: Vec<Diagnostic>,
    pub(crate) mode: Mode,
    pub(crate) rules: Rules,
    /// Name of the compiled source: `.file "name"`.
    pub(crate) file_name: Option<String>,
    /// Names of files by number: `.file 1 "name"`.
    pub(crate) file_numbers: FxHashMap<i64, Rc<str>>,
    /// Bytes of all sections.
    total: u32,
    /// Numbered labels so far: how many of each number.
    numbered: FxHashMap<u32, u32>,
}

impl Layout {
    pub(crate) fn new(constants: &BTreeMap<String, i64>) -> Self {
        let text = SectionLayout { name: ".text".to_owned(), traits: Traits::usual(".text"), align: 8, ..SectionLayout::default() };
        Self {
            fixed: constants.keys().cloned().collect(),
            constants: constants.iter().map(|(name, value)| (name.clone(), Value::from(*value))).collect(),
            labels: FxHashMap::default(),
            symbols: BTreeMap::new(),
            sections: vec![text],
            current: 0,
            previous: 0,
            opened: Vec::new(),
            faults: Vec::new(),
            warnings: Vec::new(),
            mode: Mode::Both,
            rules: Rules::default(),
            file_name: None,
            file_numbers: FxHashMap::default(),
            total: 0,
            numbered: FxHashMap::default(),
        }
    }

    pub(crate) fn section_mut(&mut self) -> &mut SectionLayout {
        &mut self.sections[self.current]
    }

    pub(crate) fn offset(&self) -> u32 {
        self.sections[self.current].offset
    }

    /// What follows goes into the section of this name; the first time says what it is for.
    pub(crate) fn enter(&mut self, name: &str, traits: Traits) {
        self.previous = self.current;
        let found = self.sections.iter().position(|section| section.name == name && section.traits.group == traits.group);
        self.current = found.unwrap_or_else(|| {
            let align = if traits.is_code { 8 } else { 1 };
            self.sections.push(SectionLayout { name: name.to_owned(), traits, align, ..SectionLayout::default() });
            self.sections.len() - 1
        });
    }

    /// Whether the sections have exceeded their limit; what follows is left out.
    pub(crate) fn is_full(&self) -> bool {
        self.total > TEXT_MAX
    }

    /// Keeps the fault of a result.
    fn keep<T>(&mut self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|fault| self.faults.push(fault)).ok()
    }

    /// Whether there is a constant or a label of this name.
    pub(crate) fn is_defined(&self, name: &str) -> bool {
        self.constants.contains_key(name) || self.labels.contains_key(name)
    }

    /// What a symbol means at this place.
    fn bind(&self, name: &str) -> Option<Meaning> {
        if let Some(value) = self.constants.get(name) {
            return Some(Meaning::Value(value.clone()));
        }
        if name == "." {
            return Some(Meaning::Value(Value::in_section(self.current, self.offset())));
        }
        if !name.as_bytes()[0].is_ascii_digit() {
            return None;
        }
        let (digits, direction) = name.split_at_checked(name.len().checked_sub(1)?)?;
        let number: u32 = digits.parse().ok()?;
        let seen = self.numbered.get(&number).copied().unwrap_or(0);
        let count = if direction == "f" { seen.saturating_add(1) } else { seen };
        Some(Meaning::Name(numbered_name(name, number, count)))
    }

    /// The expression in `part` with the meaning its symbols have here.
    pub(crate) fn expression(&mut self, piece: &Piece<'_>, part: &str) -> Option<Expression> {
        let value = piece.expression(part).map(|value| value.bound(&|name| self.bind(name)));
        self.keep(value)
    }

    /// A value that must be known now, an address in a section at most.
    fn value(&mut self, piece: &Piece<'_>, part: &str) -> Option<Value> {
        let expression = self.expression(piece, part)?;
        let label = |name: &str| self.labels.get(key_of(name)).map(|(section, offset)| Value::in_section(*section, *offset));
        let value = expression.evaluate_with(&label).map_err(|fault| piece.fault(part, fault.message));
        self.keep(value)
    }

    /// A number that must be known now: constants, and distances between labels already seen.
    pub(crate) fn evaluate(&mut self, piece: &Piece<'_>, part: &str) -> Option<i64> {
        let value = self.value(piece, part)?;
        if value.symbol.is_some() {
            self.faults.push(piece.fault(part, format!("expected a number, found the address `{part}`")));
            return None;
        }
        Some(value.number)
    }

    /// A label, the colon included.
    pub(crate) fn label(&mut self, piece: &Piece<'_>) {
        let name = piece.text.trim_end_matches(':');
        if let Ok(number) = name.parse::<u32>() {
            let count = self.numbered.entry(number).or_insert(0);
            *count += 1;
            let name = numbered_name("", number, *count);
            self.labels.insert(name, (self.current, self.offset()));
        } else if !is_symbol(name) {
            self.faults.push(piece.at.fault(0, format!("expected a label, found `{name}`")));
        } else if self.is_defined(name) {
            self.faults.push(piece.at.fault(0, format!("`{name}` is defined twice")));
        } else {
            self.labels.insert(name.to_owned(), (self.current, self.offset()));
        }
    }

    /// Sets a constant.
    pub(crate) fn constant(&mut self, piece: &Piece<'_>, name: &str, value: &str) {
        // A constant may look like a register that there is not, as in the vendor's assembler.
        let plain = name.strip_prefix('$').filter(|register| read_register(register).is_err()).unwrap_or(name);
        if !is_symbol(plain) {
            self.faults.push(piece.fault(name, format!("expected a name, found `{name}`")));
        } else if self.fixed.contains(name) {
            self.faults.push(piece.fault(name, format!("`{name}` is set by the caller and cannot be set here")));
        } else if self.labels.contains_key(name) {
            self.faults.push(piece.fault(name, format!("`{name}` is a label and cannot be set")));
        } else if let Some(value) = self.value(piece, value) {
            self.constants.insert(name.to_owned(), value);
        }
    }

    pub(crate) fn place(&mut self, at: Place, content: Content) {
        let bytes = content.bytes();
        let was_full = self.is_full();
        self.total = self.total.saturating_add(bytes);
        if self.is_full() {
            if !was_full {
                self.faults.push(at.fault(0, format!("the sections exceed {TEXT_MAX} bytes")));
            }
            return;
        }
        let (mode, rules) = (self.mode, self.rules);
        let section = self.section_mut();
        section.items.push(Item { offset: section.offset, at, mode, rules, content });
        section.offset += bytes;
    }

    fn read(&mut self, piece: &Piece<'_>, coissue: bool) -> Option<Instruction> {
        let setting = Setting { mode: self.mode, any_mode: self.rules.any_mode, coissue };
        let instruction = Instruction::read(piece, setting, &|name| self.bind(name));
        self.keep(instruction)
    }

    /// An instruction alone.
    pub(crate) fn instruction(&mut self, piece: &Piece<'_>) {
        if piece.split().0 == "ldconst" {
            return self.load_constant(piece);
        }
        let content = self.read(piece, false).map_or(Content::Lost { bytes: 4 }, Content::Single);
        // `sendpicp` is two words and lies like a bundle (machine.md c.4).
        let boundary = content.bytes().max(4);
        self.require_alignment(&piece.at, boundary, if boundary == 8 { "an instruction of two words" } else { "an instruction" });
        self.place(piece.at.clone(), content);
    }

    fn require_alignment(&mut self, at: &Place, boundary: u32, what: &str) {
        let offset = self.offset();
        if !offset.is_multiple_of(boundary) && !self.is_full() {
            let message =
                format!("{what} must lie at a multiple of {boundary}, found offset {offset:#x}; put `.align {boundary}` before it");
            self.faults.push(at.fault(0, message));
            // What follows is judged as if this had been done.
            self.place(at.clone(), Content::Padding { bytes: offset.next_multiple_of(boundary) - offset });
        }
    }

    fn load_constant(&mut self, piece: &Piece<'_>) {
        let (_, rest) = piece.split();
        let [register, value] = split_list(rest)[..] else {
            self.faults.push(piece.fault(rest, format!("expected `ldconst $register, value`, found `{}`", piece.text)));
            return;
        };
        let Some(number) = self.evaluate(piece, value) else { return };
        match load_constant(register, number) {
            Ok(texts) => texts.into_iter().for_each(|text| self.instruction(&Piece { text: text.into(), at: piece.at.clone() })),
            Err(message) => self.faults.push(piece.fault(value, message)),
        }
    }

    /// A bundle: exactly two instructions, main lane then aux lane, of a worker.
    pub(crate) fn bundle(&mut self, at: &Place, members: &[Piece<'_>]) {
        if let Some(repeat) = self.repeat_alone(members) {
            return self.instruction(repeat);
        }
        self.require_alignment(at, 8, "a bundle");
        if self.mode == Mode::Supervisor && !self.rules.any_mode {
            self.faults.push(at.fault(0, "bundles are for workers only; this is supervisor code"));
        }
        let instructions: Vec<Instruction> = members.iter().filter_map(|member| self.member(member)).collect();
        match <[Instruction; 2]>::try_from(instructions) {
            Ok([first, second]) => {
                let is_reversed = first.form().lane == Lane::Aux && second.form().lane == Lane::Main;
                let [main, aux] = if is_reversed && self.rules.may_optimize { [second, first] } else { [first, second] };
                let fault = lane_fault(at, &main, &aux);
                if self.rules.any_bundle {
                    self.warnings.extend(fault)
                } else {
                    self.faults.extend(fault)
                }
                self.place(at.clone(), Content::Bundle(Box::new([main, aux])));
            }
            Err(_) => {
                if members.len() != 2 {
                    self.faults.push(at.fault(0, format!("expected two instructions in a bundle, found {}", members.len())));
                }
                self.place(at.clone(), Content::Lost { bytes: 8 });
            }
        }
    }

    /// The `rpt` of a bundle with nothing else but a `fnop`, when it has to stand alone to put its body at a multiple of 8.
    fn repeat_alone<'p, 'a>(&self, members: &'p [Piece<'a>]) -> Option<&'p Piece<'a>> {
        let [first, second] = members else { return None };
        let (repeat, other) = if first.split().0 == "rpt" { (first, second) } else { (second, first) };
        let is_wanted = self.rules.may_optimize && self.offset() % 8 == 4;
        (is_wanted && repeat.split().0 == "rpt" && other.text == "fnop").then_some(repeat)
    }

    fn member(&mut self, member: &Piece<'_>) -> Option<Instruction> {
        if member.split().0 == "ldconst" {
            self.faults.push(member.at.fault(0, "`ldconst` may be two instructions and cannot be in a bundle"));
            return None;
        }
        let instruction = self.read(member, true)?;
        if !instruction.form().coissue {
            self.faults.push(member.at.fault(0, format!("`{}` cannot be in a bundle", instruction.form().mnemonic)));
            return None;
        }
        Some(instruction)
    }
}

fn lane_fault(at: &Place, main: &Instruction, aux: &Instruction) -> Option<Diagnostic> {
    let name = |instruction: &Instruction| instruction.form().mnemonic;
    match (main.form().lane, aux.form().lane) {
        (Lane::Main, Lane::Aux) => None,
        (Lane::Aux, Lane::Main) => Some(at.fault(0, format!("the main lane comes first: expected {{ {} ; {} }}", name(aux), name(main)))),
        (Lane::Main, Lane::Main) => {
            Some(aux.at().fault(0, format!("expected an aux-lane instruction, found `{}` of the main lane", name(aux))))
        }
        (Lane::Aux, Lane::Aux) => {
            Some(main.at().fault(0, format!("expected a main-lane instruction, found `{}` of the aux lane", name(main))))
        }
    }
}

/// The symbol of a numbered label: how it is written, then which one is meant.
fn numbered_name(written: &str, number: u32, count: u32) -> String {
    format!("{written}#{number}#{count}")
}

/// The key of a symbol among the labels.
pub(crate) fn key_of(name: &str) -> &str {
    name.find('#').map_or(name, |start| &name[start..])
}
