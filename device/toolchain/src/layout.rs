//! The first pass: labels, directives and instructions become items with offsets; symbols get their values.
//!
//! The size of an item never depends on an address, so offsets are final here. A constant that is set again keeps the value it had
//! for what was written before.

use std::collections::{BTreeMap, BTreeSet};

use ipu21::isa::{Lane, Mode};
use ipu21::relocation::Relocation;

use crate::diagnostic::{Diagnostic, Place};
use crate::expression::{Binding, Expression, Value};
use crate::instruction::{Instruction, load_constant};
use crate::operand::split_list;
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
    pub(crate) content: Content,
}

/// What an item is.
#[derive(Debug)]
pub(crate) enum Content {
    /// An instruction issued alone.
    Single(Instruction),
    /// Main lane, aux lane.
    Bundle([Instruction; 2]),
    /// A number, or an address through a relocation.
    Data { bytes: u32, relocation: Relocation, value: Expression },
    /// Alignment.
    Padding { bytes: u32 },
    /// Zeros.
    Zeros { bytes: u32 },
    /// In place of an instruction that could not be read.
    Lost { bytes: u32 },
}

impl Content {
    pub(crate) fn bytes(&self) -> u32 {
        match self {
            Self::Single(instruction) => 4 * u32::from(instruction.form().words),
            Self::Bundle(_) => 8,
            Self::Data { bytes, .. } | Self::Padding { bytes } | Self::Zeros { bytes } | Self::Lost { bytes } => *bytes,
        }
    }
}

/// Relocations of data by the decoration of their symbol (isa-notes.md 11): name, bytes.
#[rustfmt::skip]
const DECORATIONS: [(&str, u32, Relocation); 4] = [
    ("relative@16@s2", 2, Relocation::Relative16Words), ("abs18@s2", 4, Relocation::Word18Words),
    ("abs19@s2",       4, Relocation::Word19Words),     ("abs@21",   4, Relocation::Word21),
];

/// The section being laid out.
pub(crate) struct Layout {
    pub(crate) constants: BTreeMap<String, i64>,
    /// Constants that came from outside.
    fixed: BTreeSet<String>,
    pub(crate) labels: BTreeMap<String, u32>,
    pub(crate) globals: Vec<(String, Place)>,
    pub(crate) items: Vec<Item>,
    pub(crate) faults: Vec<Diagnostic>,
    pub(crate) align: u32,
    offset: u32,
    mode: Mode,
    /// Numbered labels so far: how many of each number.
    numbered: BTreeMap<u32, u32>,
}

impl Layout {
    pub(crate) fn new(constants: BTreeMap<String, i64>) -> Self {
        Self {
            fixed: constants.keys().cloned().collect(),
            constants,
            labels: BTreeMap::new(),
            globals: Vec::new(),
            items: Vec::new(),
            faults: Vec::new(),
            align: 8,
            offset: 0,
            mode: Mode::Supervisor,
            numbered: BTreeMap::new(),
        }
    }

    /// Whether the section has exceeded its limit; what follows is left out.
    pub(crate) fn is_full(&self) -> bool {
        self.offset > TEXT_MAX
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
    fn bind(&self, name: &str) -> Option<Binding> {
        if let Some(value) = self.constants.get(name) {
            return Some(Binding::Value(Value::from(*value)));
        }
        if name == "." {
            return Some(Binding::Value(Value { symbol: Some(String::new()), number: i64::from(self.offset) }));
        }
        let (digits, direction) = name.split_at_checked(name.len().checked_sub(1)?)?;
        let number: u32 = digits.parse().ok()?;
        let seen = self.numbered.get(&number).copied().unwrap_or(0);
        let count = if direction == "f" { seen.saturating_add(1) } else { seen };
        Some(Binding::Name(numbered_name(name, number, count)))
    }

    /// A value that must be known now: constants, and distances between labels already seen.
    pub(crate) fn evaluate(&mut self, piece: &Piece, part: &str) -> Option<i64> {
        let value = piece.expression(part).and_then(|expression| {
            let label = |name: &str| Some(Value { symbol: Some(String::new()), number: i64::from(*self.labels.get(key_of(name))?) });
            let value = expression.bound(&|name| self.bind(name)).evaluate_with(&label);
            value.map_err(|fault| piece.fault(part, fault.message))
        });
        let value = self.keep(value)?;
        if value.symbol.is_some() {
            self.faults.push(piece.fault(part, format!("expected a number, found the address `{part}`")));
            return None;
        }
        Some(value.number)
    }

    /// A label, the colon included.
    pub(crate) fn label(&mut self, piece: &Piece) {
        let name = piece.text.trim_end_matches(':');
        if let Ok(number) = name.parse::<u32>() {
            let count = self.numbered.entry(number).or_insert(0);
            *count += 1;
            self.labels.insert(numbered_name("", number, *count), self.offset);
        } else if !is_symbol(name) {
            self.faults.push(piece.at.fault(0, format!("expected a label, found `{name}`")));
        } else if self.is_defined(name) {
            self.faults.push(piece.at.fault(0, format!("`{name}` is defined twice")));
        } else {
            self.labels.insert(name.to_owned(), self.offset);
        }
    }

    /// A directive that is not about macros, conditions or repetitions.
    pub(crate) fn directive(&mut self, piece: &Piece) {
        let (word, rest) = piece.split();
        match word {
            ".equ" | ".set" => match rest.split_once(',') {
                Some((name, value)) => self.constant(piece, name.trim_end(), value.trim_start()),
                None => self.faults.push(piece.fault(rest, format!("expected `name, value`, found `{rest}`"))),
            },
            ".text" | ".type" | ".size" | ".extern" => {}
            ".section" => self.section(piece, rest),
            ".globl" | ".global" => {
                let names = split_list(rest).into_iter().map(|name| (name.to_owned(), piece.place_of(name)));
                self.globals.extend(names);
            }
            ".worker" => self.mode = Mode::Worker,
            ".supervisor" => self.mode = Mode::Supervisor,
            ".align" | ".balign" => self.pad(piece, rest, false),
            ".p2align" => self.pad(piece, rest, true),
            ".int" | ".long" | ".word" => self.data(piece, rest, 4, Relocation::Word32),
            ".half" | ".short" => self.data(piece, rest, 2, Relocation::Half),
            ".byte" => self.data(piece, rest, 1, Relocation::Byte),
            ".zero" | ".space" | ".skip" => self.zeros(piece, rest),
            ".error" => self.faults.push(piece.at.fault(0, rest.trim_matches('"'))),
            _ => self.faults.push(piece.at.fault(0, format!("unknown directive `{word}`"))),
        }
    }

    /// `.text` and its subsections are one section here.
    fn section(&mut self, piece: &Piece, rest: &str) {
        let name = split_list(rest).first().copied().unwrap_or("");
        if name != ".text" && !name.starts_with(".text.") {
            self.faults.push(piece.fault(rest, format!("expected section `.text`, the only one that is loaded, found `{name}`")));
        }
    }

    /// Sets a constant.
    pub(crate) fn constant(&mut self, piece: &Piece, name: &str, value: &str) {
        if !is_symbol(name) {
            self.faults.push(piece.fault(name, format!("expected a name, found `{name}`")));
        } else if self.fixed.contains(name) {
            self.faults.push(piece.fault(name, format!("`{name}` is set by the caller and cannot be set here")));
        } else if self.labels.contains_key(name) {
            self.faults.push(piece.fault(name, format!("`{name}` is a label and cannot be set")));
        } else if let Some(value) = self.evaluate(piece, value) {
            self.constants.insert(name.to_owned(), value);
        }
    }

    fn pad(&mut self, piece: &Piece, rest: &str, is_power: bool) {
        let part = split_list(rest).first().copied().unwrap_or(rest);
        let Some(value) = self.evaluate(piece, part) else { return };
        let boundary = if is_power { 1_i64.checked_shl(u32::try_from(value).unwrap_or(64)).unwrap_or(0) } else { value };
        let boundary = u32::try_from(boundary).ok().filter(|boundary| boundary.is_power_of_two() && (2..=ALIGN_MAX).contains(boundary));
        let Some(boundary) = boundary else {
            let limits = if is_power { "1..=14".to_owned() } else { format!("a power of two in 2..={ALIGN_MAX}") };
            self.faults.push(piece.fault(part, format!("expected {limits}, found {value}")));
            return;
        };
        self.align = self.align.max(boundary);
        let bytes = self.offset.next_multiple_of(boundary) - self.offset;
        if bytes > 0 {
            self.place(piece.at.clone(), Content::Padding { bytes });
        }
    }

    fn data(&mut self, piece: &Piece, rest: &str, bytes: u32, relocation: Relocation) {
        for part in split_list(rest) {
            let (text, decoration) = part.split_once('@').map_or((part, None), |(text, decoration)| (text, Some(decoration)));
            let relocation = match decoration {
                None => relocation,
                Some(decoration) => match DECORATIONS.iter().find(|(name, size, _)| *name == decoration && *size == bytes) {
                    Some((_, _, relocation)) => *relocation,
                    None => {
                        self.faults.push(piece.fault(part, format!("unknown relocation `@{decoration}` of {bytes} bytes")));
                        continue;
                    }
                },
            };
            let value = piece.expression(text).map(|value| value.bound(&|name| self.bind(name)));
            if let Some(value) = self.keep(value) {
                self.place(piece.place_of(part), Content::Data { bytes, relocation, value });
            }
        }
    }

    fn zeros(&mut self, piece: &Piece, rest: &str) {
        let Some(value) = self.evaluate(piece, rest) else { return };
        match u32::try_from(value).ok().filter(|bytes| *bytes <= TEXT_MAX) {
            Some(bytes) => self.place(piece.at.clone(), Content::Zeros { bytes }),
            None => self.faults.push(piece.fault(rest, format!("expected a size in 0..={TEXT_MAX}, found {value}"))),
        }
    }

    fn place(&mut self, at: Place, content: Content) {
        let end = self.offset.saturating_add(content.bytes());
        if end > TEXT_MAX {
            if !self.is_full() {
                self.faults.push(at.fault(0, format!("the section exceeds {TEXT_MAX} bytes")));
            }
            self.offset = TEXT_MAX + 1;
            return;
        }
        self.items.push(Item { offset: self.offset, at, mode: self.mode, content });
        self.offset = end;
    }

    fn read(&mut self, piece: &Piece) -> Option<Instruction> {
        let instruction = Instruction::read(piece, &|name| self.bind(name));
        self.keep(instruction)
    }

    /// An instruction alone.
    pub(crate) fn instruction(&mut self, piece: &Piece) {
        if piece.split().0 == "ldconst" {
            return self.load_constant(piece);
        }
        let content = self.read(piece).map_or(Content::Lost { bytes: 4 }, Content::Single);
        // `sendpicp` is two words and lies like a bundle (machine.md c.4).
        let boundary = content.bytes().max(4);
        self.require_alignment(&piece.at, boundary, if boundary == 8 { "an instruction of two words" } else { "an instruction" });
        self.place(piece.at.clone(), content);
    }

    fn require_alignment(&mut self, at: &Place, boundary: u32, what: &str) {
        if !self.offset.is_multiple_of(boundary) && !self.is_full() {
            let message =
                format!("{what} must lie at a multiple of {boundary}, found offset {:#x}; put `.align {boundary}` before it", self.offset);
            self.faults.push(at.fault(0, message));
            // What follows is judged as if this had been done.
            self.place(at.clone(), Content::Padding { bytes: self.offset.next_multiple_of(boundary) - self.offset });
        }
    }

    fn load_constant(&mut self, piece: &Piece) {
        let (_, rest) = piece.split();
        let [register, value] = split_list(rest)[..] else {
            self.faults.push(piece.fault(rest, format!("expected `ldconst $register, value`, found `{}`", piece.text)));
            return;
        };
        let Some(number) = self.evaluate(piece, value) else { return };
        match load_constant(register, number) {
            Ok(texts) => texts.into_iter().for_each(|text| self.instruction(&Piece { text, at: piece.at.clone() })),
            Err(message) => self.faults.push(piece.fault(value, message)),
        }
    }

    /// A bundle: exactly two instructions, main lane then aux lane, of a worker.
    pub(crate) fn bundle(&mut self, at: &Place, members: &[Piece]) {
        self.require_alignment(at, 8, "a bundle");
        if self.mode != Mode::Worker {
            self.faults.push(at.fault(0, "bundles are for workers only; this is supervisor code"));
        }
        let instructions: Vec<Instruction> = members.iter().filter_map(|member| self.member(member)).collect();
        match <[Instruction; 2]>::try_from(instructions) {
            Ok([main, aux]) => {
                let fault = lane_fault(at, &main, &aux);
                self.faults.extend(fault);
                self.place(at.clone(), Content::Bundle([main, aux]));
            }
            Err(_) => {
                if members.len() != 2 {
                    self.faults.push(at.fault(0, format!("expected two instructions in a bundle, found {}", members.len())));
                }
                self.place(at.clone(), Content::Lost { bytes: 8 });
            }
        }
    }

    fn member(&mut self, member: &Piece) -> Option<Instruction> {
        if member.split().0 == "ldconst" {
            self.faults.push(member.at.fault(0, "`ldconst` may be two instructions and cannot be in a bundle"));
            return None;
        }
        let instruction = self.read(member)?;
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
            Some(aux.at.fault(0, format!("expected an aux-lane instruction, found `{}` of the main lane", name(aux))))
        }
        (Lane::Aux, Lane::Aux) => {
            Some(main.at.fault(0, format!("expected a main-lane instruction, found `{}` of the aux lane", name(main))))
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
