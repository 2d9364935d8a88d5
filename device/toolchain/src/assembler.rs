//! The assembler: a source text with defines in, an ELF object out.
//!
//! Two passes. The first walks statements in order, expands macros, conditions and repetitions and lays out items, whose sizes do
//! not depend on addresses. The second encodes, with relocations where an address of the object enters. All independent errors are
//! reported, in source order.

use std::collections::BTreeMap;

use ipu21::isa::{self, Lane, Mode};
use ipu21::parameters::Parameters;
use ipu21::relocation::Relocation;
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, Position};
use crate::expression::{Expression, Value};
use crate::instruction::{Fixup, Instruction, Word, load_constant, may_repeat, repeat_bundles};
use crate::object::{Object, RelocationEntry};
use crate::operand::split_list;
use crate::statement::{Piece, Statement, cut, is_name};

/// A source text with the name it is reported under.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Source {
    /// Name of the file.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Deepest nesting of macros and repetitions.
const DEPTH_MAX: u32 = 40;
/// Most statements after expansion.
const STATEMENTS_MAX: usize = 1 << 20;
/// Largest text section, bytes: region 0.
const TEXT_MAX: u32 = 0x34000;

/// Assembles a source into the bytes of an ELF object. `defines` are symbols the source may use and not change.
///
/// # Errors
/// Every error of the source, in source order.
pub fn assemble(source: &Source, defines: &BTreeMap<String, i64>, parameters: &Parameters) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let mut assembly = Assembly::new(source, defines, parameters);
    let (statements, faults) = cut(&source.name, &source.text);
    assembly.faults = faults;
    assembly.walk(&statements, 0);
    let object = assembly.finish();
    if assembly.faults.is_empty() {
        return Ok(object.write(parameters.immediate.elf_e_flags_ipu21.value));
    }
    assembly.faults.sort();
    assembly.faults.dedup();
    Err(assembly.faults)
}

/// A macro.
struct Macro {
    parameters: Vec<(String, Option<String>)>,
    body: Vec<Statement>,
}

enum Content {
    Single(Instruction),
    Bundle(Instruction, Instruction),
    Data { size: u32, values: Vec<Expression> },
    Padding { bytes: u32 },
}

/// Something with a place in the section.
struct Item {
    offset: u32,
    at: Position,
    mode: Mode,
    content: Content,
    /// Numbered labels defined so far, by number: how many.
    numbered: BTreeMap<u32, u32>,
}

struct Assembly<'a> {
    source: &'a Source,
    constants: BTreeMap<String, i64>,
    fixed: &'a BTreeMap<String, i64>,
    labels: BTreeMap<String, u32>,
    globals: Vec<(String, Position)>,
    macros: BTreeMap<String, Macro>,
    items: Vec<Item>,
    faults: Vec<Diagnostic>,
    offset: u32,
    align: u32,
    mode: Mode,
    numbered: BTreeMap<u32, u32>,
    expansions: u32,
    statements: usize,
}

impl<'a> Assembly<'a> {
    fn new(source: &'a Source, defines: &'a BTreeMap<String, i64>, parameters: &Parameters) -> Self {
        let mut constants: BTreeMap<String, i64> = parameters.symbols().into_iter().map(|(name, value)| (name, i64::from(value))).collect();
        constants.extend(defines.iter().map(|(name, value)| (name.clone(), *value)));
        Self {
            source,
            constants,
            fixed: defines,
            labels: BTreeMap::new(),
            globals: Vec::new(),
            macros: BTreeMap::new(),
            items: Vec::new(),
            faults: Vec::new(),
            offset: 0,
            align: 8,
            mode: Mode::Supervisor,
            numbered: BTreeMap::new(),
            expansions: 0,
            statements: 0,
        }
    }

    fn fault(&mut self, at: &Position, message: impl Into<String>) {
        self.faults.push(Diagnostic { at: at.clone(), message: message.into() });
    }

    /// Walks statements; conditions and bodies must be closed among them.
    fn walk(&mut self, statements: &[Statement], depth: u32) {
        let mut index = 0;
        // One entry per open condition: whether a branch was taken, whether this one is, and where it began.
        let mut conditions: Vec<(bool, bool, Position)> = Vec::new();
        while let Some(statement) = statements.get(index) {
            self.statements += 1;
            if depth > DEPTH_MAX || self.statements > STATEMENTS_MAX {
                let limit = if depth > DEPTH_MAX { format!("expansions deeper than {DEPTH_MAX}") } else { format!("more than {STATEMENTS_MAX} statements") };
                self.fault(statement.at(), limit);
                return;
            }
            index += 1;
            let active = conditions.iter().all(|(_, active, _)| *active);
            match statement.directive() {
                Some(word @ (".if" | ".ifdef" | ".ifndef")) => {
                    let taken = active && self.condition(word, statement);
                    conditions.push((taken || !active, taken, statement.at().clone()));
                }
                Some(word @ (".else" | ".elseif" | ".endif")) => self.change_condition(word, statement, &mut conditions),
                Some(".macro" | ".rept") => match body_end(statements, index) {
                    Some(end) => {
                        if active {
                            self.collect(statement, &statements[index..end], depth);
                        }
                        index = end + 1;
                    }
                    None => {
                        self.fault(statement.at(), "expected `.endm` or `.endr`, found the end");
                        return;
                    }
                },
                _ if active => self.statement(statement, depth),
                _ => {}
            }
        }
        for (_, _, at) in conditions {
            self.fault(&at, "expected `.endif`, found the end");
        }
    }

    fn condition(&mut self, word: &str, statement: &Statement) -> bool {
        let rest = rest_of(statement);
        match word {
            ".ifdef" => self.constants.contains_key(rest),
            ".ifndef" => !self.constants.contains_key(rest),
            _ => self.evaluate(statement.at(), rest).is_some_and(|value| value != 0),
        }
    }

    fn change_condition(&mut self, word: &str, statement: &Statement, conditions: &mut Vec<(bool, bool, Position)>) {
        let Some((seen, _, _)) = conditions.last().cloned() else {
            return self.fault(statement.at(), format!("`{word}` without `.if`"));
        };
        if word == ".endif" {
            conditions.pop();
            return;
        }
        let taken = !seen && (word == ".else" || self.condition(".if", statement));
        if let Some(last) = conditions.last_mut() {
            (last.0, last.1) = (seen || taken, taken);
        }
    }

    fn collect(&mut self, head: &Statement, body: &[Statement], depth: u32) {
        let rest = rest_of(head);
        if head.directive() == Some(".rept") {
            let count = self.evaluate(head.at(), rest).unwrap_or(0);
            if !(0..=65536).contains(&count) {
                return self.fault(head.at(), format!("expected a count in 0..=65536, found {count}"));
            }
            for _ in 0..count {
                if self.statements > STATEMENTS_MAX {
                    return;
                }
                self.walk(body, depth + 1);
            }
            return;
        }
        let (name, parameters) = rest.split_once(|character: char| character.is_whitespace() || character == ',').unwrap_or((rest, ""));
        if name.is_empty() || !name.chars().all(is_name) {
            return self.fault(head.at(), format!("expected a macro name, found `{rest}`"));
        }
        let parameters = split_list(parameters).into_iter().map(|parameter| match parameter.split_once('=') {
            Some((name, default)) => (name.trim().to_owned(), Some(default.trim().to_owned())),
            None => (parameter.to_owned(), None),
        });
        let defined = Macro { parameters: parameters.collect(), body: body.to_vec() };
        if self.macros.insert(name.to_owned(), defined).is_some() {
            self.fault(head.at(), format!("macro `{name}` is defined twice"));
        }
    }

    fn statement(&mut self, statement: &Statement, depth: u32) {
        match statement {
            Statement::Bundle { at, members } => self.bundle(at, members),
            Statement::Single(piece) if piece.text.ends_with(':') => self.label(piece),
            Statement::Single(piece) if piece.text.starts_with('.') => self.directive(piece),
            Statement::Single(piece) => {
                let (word, rest) = piece.text.split_once(char::is_whitespace).unwrap_or((&piece.text, ""));
                if self.macros.contains_key(word) {
                    return self.expand(&piece.at, word, rest, depth);
                }
                self.instruction(piece);
            }
        }
    }

    fn expand(&mut self, at: &Position, name: &str, arguments: &str, depth: u32) {
        self.expansions += 1;
        let known = &self.macros[name];
        let given = split_list(arguments);
        if given.len() > known.parameters.len() {
            let message = format!("macro `{name}`: expected at most {} arguments, found {}", known.parameters.len(), given.len());
            return self.fault(at, message);
        }
        let mut values = vec![("@".to_owned(), self.expansions.to_string())];
        for (index, (parameter, default)) in known.parameters.iter().enumerate() {
            match given.get(index).filter(|text| !text.is_empty()).map(|text| (*text).to_owned()).or_else(|| default.clone()) {
                Some(value) => values.push((parameter.clone(), value)),
                None => {
                    let message = format!("macro `{name}`: argument `{parameter}` is missing");
                    return self.fault(at, message);
                }
            }
        }
        // Longer names first, so that `\first` is not `\f` followed by `irst`.
        values.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let body: Vec<Statement> = known.body.iter().map(|statement| substitute(statement, &values)).collect();
        self.walk(&body, depth + 1);
    }

    fn label(&mut self, piece: &Piece) {
        let name = &piece.text[..piece.text.len() - 1];
        if let Ok(number) = name.parse::<u32>() {
            let count = self.numbered.entry(number).or_insert(0);
            *count += 1;
            self.labels.insert(numbered_name(number, *count), self.offset);
            return;
        }
        if self.labels.insert(name.to_owned(), self.offset).is_some() || self.constants.contains_key(name) {
            self.fault(&piece.at, format!("`{name}` is defined twice"));
        }
    }

    fn directive(&mut self, piece: &Piece) {
        let (word, rest) = piece.text.split_once(char::is_whitespace).unwrap_or((&piece.text, ""));
        let rest = rest.trim();
        match word {
            ".equ" | ".set" => self.constant(piece, rest),
            ".text" => {}
            ".section" if split_list(rest).first() == Some(&".text") => {}
            ".section" => self.fault(&piece.at, format!("expected section `.text`, found `{rest}`")),
            ".globl" | ".global" => self.globals.extend(split_list(rest).into_iter().map(|name| (name.to_owned(), piece.at.clone()))),
            ".type" | ".size" | ".extern" => {}
            ".worker" => self.mode = Mode::Worker,
            ".supervisor" => self.mode = Mode::Supervisor,
            ".align" | ".balign" => self.pad(piece, rest, false),
            ".p2align" => self.pad(piece, rest, true),
            ".int" | ".long" | ".word" => self.data(piece, 4, rest),
            ".half" | ".short" => self.data(piece, 2, rest),
            ".error" => self.fault(&piece.at, rest.trim_matches('"')),
            _ => self.fault(&piece.at, format!("unknown directive `{word}`")),
        }
    }

    fn constant(&mut self, piece: &Piece, rest: &str) {
        let Some((name, value)) = rest.split_once(',') else {
            return self.fault(&piece.at, format!("expected `name, value`, found `{rest}`"));
        };
        let name = name.trim();
        if self.fixed.contains_key(name) || self.labels.contains_key(name) || !name.chars().all(is_name) || name.is_empty() {
            return self.fault(&piece.at, format!("`{name}` cannot be set here"));
        }
        if let Some(value) = self.evaluate(&piece.at, value) {
            self.constants.insert(name.to_owned(), value);
        }
    }

    fn pad(&mut self, piece: &Piece, rest: &str, power: bool) {
        let Some(value) = self.evaluate(&piece.at, split_list(rest).first().copied().unwrap_or("")) else { return };
        let boundary = if power { u32::try_from(value).ok().filter(|power| *power < 16).map(|power| 1 << power) } else { u32::try_from(value).ok() };
        let Some(boundary) = boundary.filter(|boundary| boundary.is_power_of_two() && (4..=4096).contains(boundary)) else {
            return self.fault(&piece.at, format!("expected a power of two in 4..=4096, found {value}"));
        };
        self.align = self.align.max(boundary);
        let bytes = self.offset.next_multiple_of(boundary) - self.offset;
        if bytes > 0 {
            self.place(piece.at.clone(), Content::Padding { bytes }, bytes);
        }
    }

    fn data(&mut self, piece: &Piece, size: u32, rest: &str) {
        let mut values = Vec::new();
        for text in split_list(rest) {
            match Expression::parse(text) {
                Ok(value) => values.push(value),
                Err(fault) => self.fault(&piece.at, fault.message),
            }
        }
        let bytes = size * values.len() as u32;
        self.place(piece.at.clone(), Content::Data { size, values }, bytes);
    }

    fn place(&mut self, at: Position, content: Content, bytes: u32) {
        if self.offset > TEXT_MAX - bytes.min(TEXT_MAX) {
            if self.offset <= TEXT_MAX {
                self.fault(&at, format!("the section exceeds {TEXT_MAX} bytes"));
            }
            self.offset = TEXT_MAX + 1;
            return;
        }
        self.items.push(Item { offset: self.offset, at, mode: self.mode, content, numbered: self.numbered.clone() });
        self.offset += bytes;
    }

    fn read(&mut self, piece: &Piece) -> Option<Instruction> {
        Instruction::read(&piece.text).map_err(|message| self.fault(&piece.at, message)).ok()
    }

    fn instruction(&mut self, piece: &Piece) {
        if let Some((register, value)) = Instruction::constant(&piece.text) {
            let Some(value) = self.evaluate_expression(&piece.at, &value) else { return };
            match load_constant(&register, value) {
                Ok(texts) => texts.into_iter().for_each(|text| self.instruction(&Piece { text, at: piece.at.clone() })),
                Err(message) => self.fault(&piece.at, message),
            }
            return;
        }
        let Some(instruction) = self.read(piece) else { return };
        let bytes = instruction.bytes();
        if instruction.is_two_words() && !self.offset.is_multiple_of(8) {
            self.fault(&piece.at, "this instruction must lie at a multiple of 8; put `.align 8` or a `nop` before it");
        }
        self.place(piece.at.clone(), Content::Single(instruction), bytes);
    }

    fn bundle(&mut self, at: &Position, members: &[Piece]) {
        let [main, aux] = members else {
            return self.fault(at, format!("expected two instructions in a bundle, found {}", members.len()));
        };
        if self.mode != Mode::Worker {
            return self.fault(at, "bundles are for workers only; this is supervisor code");
        }
        let (main, aux) = (self.read(main), self.read(aux));
        if !self.offset.is_multiple_of(8) {
            self.fault(at, "a bundle must lie at a multiple of 8; put `.align 8` or a `nop` before it");
        }
        if let (Some(main), Some(aux)) = (main, aux) {
            self.place(at.clone(), Content::Bundle(main, aux), 8);
        }
    }

    fn evaluate(&mut self, at: &Position, text: &str) -> Option<i64> {
        match Expression::parse(text) {
            Ok(expression) => self.evaluate_expression(at, &expression),
            Err(fault) => {
                self.fault(at, fault.message);
                None
            }
        }
    }

    /// A value that must be known now: constants, and distances between labels already seen.
    fn evaluate_expression(&mut self, at: &Position, expression: &Expression) -> Option<i64> {
        let labels = |name: &str| self.labels.get(name).map(|offset| Value { symbol: Some(String::new()), number: i64::from(*offset) });
        let lookup = |name: &str| self.constants.get(name).copied().map(Value::from).or_else(|| labels(name));
        match expression.evaluate_with(&lookup) {
            Ok(Value { symbol: None, number }) => Some(number),
            Ok(_) => {
                self.fault(at, "expected a number, found an address");
                None
            }
            Err(fault) => {
                self.fault(at, fault.message);
                None
            }
        }
    }

    /// The second pass.
    fn finish(&mut self) -> Object {
        let mut object = Object::empty(self.source.name.clone(), self.align);
        let items = std::mem::take(&mut self.items);
        let mut encoded: Vec<(u32, Position, Vec<Word>)> = Vec::new();
        for item in &items {
            self.emit(item, &mut object, &mut encoded);
        }
        self.check_repeats(&encoded);
        object.lines = items.iter().filter(|item| !matches!(item.content, Content::Padding { .. })).map(|item| (item.offset, item.at.line)).collect();
        for (name, at) in std::mem::take(&mut self.globals) {
            match self.labels.get(&name) {
                Some(offset) => {
                    object.symbols.insert(name, *offset);
                }
                None => self.fault(&at, format!("`{name}` is global but not defined")),
            }
        }
        object
    }

    fn emit(&mut self, item: &Item, object: &mut Object, encoded: &mut Vec<(u32, Position, Vec<Word>)>) {
        match &item.content {
            Content::Padding { bytes } => {
                for _ in 0..bytes / 4 {
                    object.text.extend(isa::NOP.to_le_bytes());
                }
                object.text.resize((item.offset + bytes) as usize, 0);
            }
            Content::Data { size, values } => self.emit_data(item, *size, values, object),
            Content::Single(instruction) => {
                let word = self.encode(item, instruction, false);
                if let Some(word) = word {
                    append(object, item.offset, &word);
                    encoded.push((item.offset, item.at.clone(), vec![word]));
                }
                object.text.resize((item.offset + instruction.bytes()) as usize, 0);
            }
            Content::Bundle(main, aux) => {
                let words = (self.encode(item, main, true), self.encode(item, aux, true));
                if let (Some(main), Some(aux)) = words {
                    self.check_bundle(item, &main, &aux);
                    append(object, item.offset, &main);
                    append(object, item.offset + 4, &aux);
                    encoded.push((item.offset, item.at.clone(), vec![main, aux]));
                }
                object.text.resize(item.offset as usize + 8, 0);
            }
        }
    }

    fn emit_data(&mut self, item: &Item, size: u32, values: &[Expression], object: &mut Object) {
        for expression in values {
            let offset = object.text.len() as u32;
            let value = expression.evaluate_with(&|name| self.lookup(item, name));
            match value {
                Ok(Value { symbol: None, number }) => {
                    let limit = 1_i64 << (8 * size);
                    if !(-limit / 2..limit).contains(&number) {
                        self.fault(&item.at, format!("expected a value of {size} bytes, found {number}"));
                    }
                    object.text.extend(&number.to_le_bytes()[..size as usize]);
                }
                Ok(Value { symbol: Some(symbol), number }) => {
                    let kind = if size == 4 { Relocation::Word32 } else { Relocation::Half };
                    let fixup = Fixup { kind, symbol, addend: number };
                    object.relocations.push(entry(offset, &fixup));
                    object.text.extend(&[0; 4][..size as usize]);
                }
                Err(fault) => {
                    self.fault(&item.at, fault.message);
                    object.text.extend(&[0; 4][..size as usize]);
                }
            }
        }
    }

    fn encode(&mut self, item: &Item, instruction: &Instruction, coissue: bool) -> Option<Word> {
        let encoded = instruction.encode(item.mode, coissue, &|name| self.lookup(item, name));
        encoded.map_err(|message| self.fault(&item.at, message)).ok()
    }

    /// A symbol where an item stands: a constant, a label of this object (relative to its start), or one defined elsewhere.
    fn lookup(&self, item: &Item, name: &str) -> Option<Value> {
        let own = |name: &str| self.labels.get(name).map(|offset| Value { symbol: Some(String::new()), number: i64::from(*offset) });
        if let Some(value) = self.constants.get(name) {
            return Some(Value::from(*value));
        }
        if let Some((digits, forward)) = numbered_reference(name) {
            let seen = item.numbered.get(&digits).copied().unwrap_or(0);
            return own(&numbered_name(digits, if forward { seen + 1 } else { seen }));
        }
        let external = || (!name.starts_with('.')).then(|| Value { symbol: Some(name.to_owned()), number: 0 });
        own(name).or_else(external)
    }

    fn check_bundle(&mut self, item: &Item, main: &Word, aux: &Word) {
        for (word, lane, place) in [(main, Lane::Main, "first"), (aux, Lane::Aux, "second")] {
            let form = isa::form(word.form);
            if form.lane != lane {
                let message = format!("`{}` belongs to the {} lane and cannot be {place} in a bundle", form.mnemonic, if lane == Lane::Main { "aux" } else { "main" });
                self.fault(&item.at, message);
            }
        }
        if let Some((lane, register)) = main.written.iter().find(|register| aux.written.contains(register)) {
            let file = if *lane == Lane::Main { 'm' } else { 'a' };
            self.fault(&item.at, format!("both instructions of this bundle write ${file}{register}"));
        }
    }

    /// Repeat bodies: 8-byte aligned bundles without control and system instructions.
    fn check_repeats(&mut self, encoded: &[(u32, Position, Vec<Word>)]) {
        for (index, (offset, at, words)) in encoded.iter().enumerate() {
            let Some(bundles) = words.iter().find_map(|word| repeat_bundles(word.form, &word.words)) else { continue };
            let start = offset + 4 * words.len() as u32;
            if !start.is_multiple_of(8) {
                self.fault(at, "the body of `rpt` must start at a multiple of 8; put a `nop` before it");
                continue;
            }
            for number in 0..bundles {
                match encoded.get(index + 1 + number as usize) {
                    Some((place, _, body)) if *place == start + 8 * number && body.len() == 2 => {
                        if let Some(word) = body.iter().find(|word| !may_repeat(word.form)) {
                            let message = format!("`{}` cannot stand in the body of `rpt`", isa::form(word.form).mnemonic);
                            self.fault(&encoded[index + 1 + number as usize].1, message);
                        }
                    }
                    Some((_, at, _)) => {
                        self.fault(at, format!("expected bundle {} of {bundles} of the body of `rpt`", number + 1));
                        break;
                    }
                    None => {
                        self.fault(at, format!("the body of `rpt` has {number} of {bundles} bundles"));
                        break;
                    }
                }
            }
        }
    }
}

fn append(object: &mut Object, offset: u32, word: &Word) {
    if let Some(fixup) = &word.fixup {
        object.relocations.push(entry(offset, fixup));
    }
    word.words.iter().for_each(|word| object.text.extend(word.to_le_bytes()));
}

fn entry(offset: u32, fixup: &Fixup) -> RelocationEntry {
    RelocationEntry { offset, kind: fixup.kind, symbol: (!fixup.symbol.is_empty()).then(|| fixup.symbol.clone()), addend: fixup.addend }
}

fn rest_of(statement: &Statement) -> &str {
    match statement {
        Statement::Single(piece) => piece.text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim()),
        Statement::Bundle { .. } => "",
    }
}

/// Index of the `.endm` or `.endr` that closes a body starting at `from`.
fn body_end(statements: &[Statement], from: usize) -> Option<usize> {
    let mut depth = 1;
    for (index, statement) in statements.iter().enumerate().skip(from) {
        match statement.directive() {
            Some(".macro" | ".rept") => depth += 1,
            Some(".endm" | ".endr") => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

fn substitute(statement: &Statement, values: &[(String, String)]) -> Statement {
    let piece = |piece: &Piece| {
        let mut text = piece.text.clone();
        for (name, value) in values {
            text = text.replace(&format!("\\{name}"), value);
        }
        Piece { text, at: piece.at.clone() }
    };
    match statement {
        Statement::Single(single) => Statement::Single(piece(single)),
        Statement::Bundle { at, members } => Statement::Bundle { at: at.clone(), members: members.iter().map(piece).collect() },
    }
}

fn numbered_name(number: u32, count: u32) -> String {
    format!("{number}#{count}")
}

fn numbered_reference(name: &str) -> Option<(u32, bool)> {
    let (digits, direction) = name.split_at_checked(name.len().checked_sub(1)?)?;
    let forward = match direction {
        "f" => true,
        "b" => false,
        _ => return None,
    };
    digits.parse().ok().map(|number| (number, forward))
}
