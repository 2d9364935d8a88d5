//! The second pass: items become words and relocations; what needs final values is judged here.

use std::borrow::Cow;
use std::rc::Rc;

use arrayvec::ArrayVec;
use ipu21::isa::{self, Class, FormId, form};
use ipu21::relocation::Relocation;

use crate::diagnostic::{Diagnostic, Place};
use crate::expression::{Expression, Value, section_of};
use crate::instruction::{Fixup, Instruction, Setting, Word};
use crate::layout::{Content, Item, Layout, SymbolTraits, key_of};
use crate::object_file::{Binding, LineRow, Location, ObjectFile, Section, SectionRelocation, Symbol, SymbolKind, Target, Visibility};
use crate::section::SectionLayout;

/// An item that is executed, and its forms.
struct Executed<'a> {
    item: &'a Item,
    forms: ArrayVec<FormId, 2>,
}

impl Executed<'_> {
    fn end(&self) -> u32 {
        self.item.offset + self.item.content.bytes()
    }

    fn is_bundle(&self) -> bool {
        self.forms.len() == 2
    }

    /// An error at one of its instructions.
    fn fault(&self, member: usize, message: impl std::fmt::Display) -> Diagnostic {
        let at = match &self.item.content {
            Content::Bundle(members) => members[member].at(),
            _ => &self.item.at,
        };
        at.fault(0, message)
    }
}

struct Emission<'a> {
    layout: &'a Layout,
    planned: &'a SectionLayout,
    section: Section,
    executed: Vec<Executed<'a>>,
    faults: Vec<Diagnostic>,
    sources: Vec<String>,
    /// The last file looked for among the sources, and its index.
    last_source: Option<(Rc<str>, u32)>,
}

/// The object of a layout, and what is wrong with it.
pub(crate) fn emit(layout: &Layout, source_name: &str) -> (ObjectFile, Vec<Diagnostic>) {
    let (mut sections, mut faults) = (Vec::new(), Vec::new());
    let mut sources = vec![source_name.to_owned()];
    for planned in &layout.sections {
        let (section, executed) = (started(planned), Vec::new());
        let mut emission = Emission { layout, planned, section, executed, faults: Vec::new(), sources, last_source: None };
        planned.items.iter().for_each(|item| emission.item(item));
        emission.faults.extend(repeat_faults(&emission.executed, &emission.section.bytes));
        emission.finish();
        faults.append(&mut emission.faults);
        sources = emission.sources;
        sections.push(emission.section);
    }
    let mut symbols: Vec<Symbol> = layout.symbols.iter().filter_map(|(name, traits)| symbol(layout, name, traits, &mut faults)).collect();
    symbols.extend(layout.file_name.as_ref().map(|name| file_symbol(name)));
    (ObjectFile { sources, sections, symbols }, faults)
}

fn started(planned: &SectionLayout) -> Section {
    let traits = planned.traits.clone();
    Section {
        name: planned.name.clone(),
        is_loaded: traits.is_loaded,
        is_code: traits.is_code,
        is_writable: traits.is_writable,
        is_zeros: traits.is_zeros,
        is_kept: traits.is_kept,
        align: planned.align,
        group: traits.group,
        bytes: Vec::with_capacity(planned.offset as usize),
        ..Section::default()
    }
}

impl<'a> Emission<'a> {
    fn item(&mut self, item: &'a Item) {
        match &item.content {
            Content::Padding { bytes } => {
                self.section.bytes.resize((item.offset + bytes % 4) as usize, 0);
                (0..bytes / 4).for_each(|_| self.section.bytes.extend(isa::NOP.to_le_bytes()));
            }
            Content::Lost { .. } => {}
            Content::Fill { bytes, value, width } => {
                let part = &value.to_le_bytes()[..*width as usize];
                self.section.bytes.extend(part.iter().copied().cycle().take(*bytes as usize));
            }
            Content::Bytes(bytes) => self.section.bytes.extend(bytes),
            Content::Data { bytes, relocation, value } => self.data(item, *bytes, *relocation, value),
            Content::Single(instruction) => self.instructions(item, std::slice::from_ref(instruction)),
            Content::Bundle(members) => self.instructions(item, &**members),
        }
        self.section.bytes.resize((item.offset + item.content.bytes()) as usize, 0);
        if matches!(item.content, Content::Single(_) | Content::Bundle(_) | Content::Data { .. } | Content::Bytes(_)) {
            let (file, line) = match self.told_line(item.offset) {
                Some((file, line)) => (self.source(&file), line),
                None => (self.source(item.at.file()), item.at.line),
            };
            self.section.lines.push(LineRow { offset: item.offset, file, line });
        }
    }

    /// The file and line the last `.loc` before an offset tells.
    fn told_line(&self, offset: u32) -> Option<(Rc<str>, u32)> {
        let lines = &self.planned.told_lines;
        let last = lines.partition_point(|(start, ..)| *start <= offset).checked_sub(1)?;
        lines.get(last).map(|(_, file, line)| (file.clone(), *line))
    }

    /// The index of a file among the sources; most lines are of the first.
    fn source(&mut self, name: &Rc<str>) -> u32 {
        if let Some((last, index)) = &self.last_source
            && Rc::ptr_eq(last, name)
        {
            return *index;
        }
        let found = self.sources.iter().position(|known| **known == **name);
        let index = found.unwrap_or_else(|| {
            self.sources.push(name.to_string());
            self.sources.len() - 1
        });
        self.last_source = Some((name.clone(), index as u32));
        index as u32
    }

    /// A section of zeros has a size and no bytes.
    fn finish(&mut self) {
        let section = &mut self.section;
        section.size = section.bytes.len() as u32;
        if section.is_zeros {
            if section.bytes.iter().any(|byte| *byte != 0) || !section.relocations.is_empty() {
                let at = self.layout.sections.iter().find(|planned| planned.name == section.name).and_then(|planned| planned.items.first());
                self.faults.extend(at.map(|item| item.at.fault(0, format!("section `{}` can hold nothing but zeros", section.name))));
            }
            section.bytes = Vec::new();
            section.lines = Vec::new();
        }
    }

    fn instructions(&mut self, item: &'a Item, members: &'a [Instruction]) {
        let setting = Setting { mode: item.mode, any_mode: item.rules.any_mode, coissue: members.len() > 1 };
        let mut encoded: ArrayVec<(Cow<'a, Word>, Option<Fixup>), 2> = ArrayVec::new();
        for member in members {
            match member {
                Instruction::Encoded(word) => encoded.push((Cow::Borrowed(word), None)),
                Instruction::Open(open) => match open.encode(setting, &|name| lookup(self.layout, name)) {
                    Ok((word, fixup)) => encoded.push((Cow::Owned(word), fixup)),
                    Err(fault) => self.faults.push(fault),
                },
            }
        }
        if encoded.len() < members.len() {
            return;
        }
        if let ([(main, _), (aux, _)], false) = (&encoded[..], item.rules.any_operands) {
            self.faults.extend(overlap_fault(item, main, aux));
        }
        for (word, fixup) in &encoded {
            if let Some(fixup) = fixup {
                self.relocate(&word.at, self.section.bytes.len() as u32, fixup);
            }
            word.words().iter().for_each(|word| self.section.bytes.extend(word.to_le_bytes()));
        }
        self.executed.push(Executed { item, forms: encoded.iter().map(|(word, _)| word.form).collect() });
    }

    fn data(&mut self, item: &Item, bytes: u32, relocation: Relocation, expression: &Expression) {
        match expression.evaluate_with(&|name| lookup(self.layout, name)) {
            Ok(Value { symbol: None, number }) => {
                let limit = 1_i128 << (8 * bytes);
                if !(-limit / 2..limit).contains(&i128::from(number)) {
                    self.faults.push(item.at.fault(0, format!("expected a value of {bytes} bytes, found {number}")));
                }
                self.section.bytes.extend(&number.to_le_bytes()[..bytes as usize]);
            }
            Ok(Value { symbol: Some(symbol), number }) => {
                self.relocate(&item.at, item.offset, &Fixup { kind: relocation, symbol, addend: number });
            }
            Err(fault) => self.faults.push(item.at.fault(fault.column.saturating_sub(1) as usize, fault.message)),
        }
    }

    fn relocate(&mut self, at: &Place, offset: u32, fixup: &Fixup) {
        if i32::try_from(fixup.addend).is_err() {
            self.faults.push(at.fault(0, format!("expected a distance from a symbol of at most 32 bits, found {}", fixup.addend)));
        }
        let target = section_of(&fixup.symbol).map_or_else(|| Target::Symbol(fixup.symbol.clone()), Target::Section);
        self.section.relocations.push(SectionRelocation { offset, kind: fixup.kind, target, addend: fixup.addend });
    }
}

/// The symbol of `.file "name"`.
fn file_symbol(name: &str) -> Symbol {
    Symbol {
        name: name.to_owned(),
        binding: Binding::Local,
        kind: SymbolKind::File,
        visibility: Visibility::Default,
        location: Location::Absolute(0),
        size: 0,
    }
}

/// A symbol of the object as directives describe it.
fn symbol(layout: &Layout, name: &str, traits: &SymbolTraits, faults: &mut Vec<Diagnostic>) -> Option<Symbol> {
    let size = traits.size.as_ref().map(|size| size.evaluate_with(&|name| lookup(layout, name)));
    let size = match size {
        None => traits.common.map_or(0, |(size, _)| size),
        Some(Ok(Value { symbol: None, number })) => u32::try_from(number).unwrap_or(0),
        Some(Ok(_)) => {
            faults.push(traits.at.fault(0, format!("the size of `{name}` is no number")));
            0
        }
        Some(Err(fault)) => {
            faults.push(traits.at.fault(0, fault.message));
            0
        }
    };
    let location = match (layout.labels.get(name), layout.constants.get(name), traits.common) {
        (Some((section, offset)), ..) => Location::Section(*section, *offset),
        (_, Some(Value { symbol: None, number }), _) => Location::Absolute(*number as u32),
        (_, Some(Value { symbol: Some(symbol), number }), _) => match section_of(symbol) {
            Some(section) => Location::Section(section, *number as u32),
            None => return None,
        },
        (.., Some((_, align))) => Location::Common { align },
        _ if traits.binding == Binding::Global => {
            faults.push(traits.at.fault(0, format!("`{name}` is global and not defined")));
            return None;
        }
        // A type or a size of what is not here, or a weak symbol another object may define.
        _ if traits.binding == Binding::Weak || traits.visibility != Visibility::Default => Location::Elsewhere,
        _ => return None,
    };
    // What is not here is never local.
    let is_elsewhere = location == Location::Elsewhere && traits.binding == Binding::Local;
    let binding = if is_elsewhere { Binding::Global } else { traits.binding };
    let (name, kind, visibility) = (name.to_owned(), traits.kind, traits.visibility);
    Some(Symbol { name, binding, kind, visibility, location, size })
}

/// A symbol at the end: a constant, a label of this object (relative to its section), or one of another object.
fn lookup(layout: &Layout, name: &str) -> Option<Value> {
    if let Some(value) = layout.constants.get(name) {
        return Some(value.clone());
    }
    let is_weak = layout.symbols.get(name).is_some_and(|traits| traits.binding == Binding::Weak);
    // Another object may define a weak symbol anew.
    let own = layout.labels.get(key_of(name)).filter(|_| !is_weak).map(|(section, offset)| Value::in_section(*section, *offset));
    let is_local = (name.starts_with('.') || name.contains('#')) && !layout.symbols.contains_key(name);
    own.or_else(|| (!is_local).then(|| Value { symbol: Some(name.to_owned()), number: 0 }))
}

/// Both members of a bundle write the same register: not allowed, not even for the zero registers.
fn overlap_fault(item: &Item, main: &Word, aux: &Word) -> Option<Diagnostic> {
    let lanes_differ = isa::form(main.form).lane != isa::form(aux.form).lane;
    let both = if lanes_differ { main.written() & aux.written() } else { 0 };
    let register = both.trailing_zeros();
    let file = if register < 16 { 'm' } else { 'a' };
    (both != 0).then(|| item.at.fault(0, format!("both instructions of this bundle write `${file}{}`", register % 16)))
}

/// The rules of `rpt` (isa-notes.md 5): its body starts at a multiple of 8 and has only bundles, none with a control or system instruction.
fn repeat_faults(executed: &[Executed<'_>], bytes: &[u8]) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    for (index, repeat) in executed.iter().enumerate().filter(|(_, one)| !one.item.rules.any_repeat) {
        let Some(member) = repeat.forms.iter().position(|id| matches!(*id, form::RPT_M_ZI8 | form::RPT_ZI12_ZI8)) else { continue };
        let (start, following) = (repeat.end(), &executed[index + 1..]);
        if !start.is_multiple_of(8) {
            // A bundle there was itself reported as misplaced.
            if !following.first().is_some_and(Executed::is_bundle) {
                let message = format!("the body of `rpt` must start at a multiple of 8, found offset {start:#x}; put a `nop` before `rpt`");
                faults.push(repeat.fault(member, message));
            }
            continue;
        }
        let bundles = bundles_of(bytes, repeat.item.offset as usize + 4 * member);
        for number in 0..bundles {
            let body = following.get(number as usize).filter(|body| body.item.offset == start + 8 * number);
            let Some(body) = body else {
                faults.push(repeat.fault(member, format!("expected {bundles} bundles behind `rpt`, found {number}")));
                break;
            };
            if !body.is_bundle() {
                let message = format!("expected bundle {} of {bundles} of a body of `rpt`, found an instruction alone", number + 1);
                faults.push(body.fault(0, message));
                break;
            }
            for (member, id) in body.forms.iter().enumerate().filter(|(_, id)| !may_repeat(**id)) {
                faults.push(body.fault(member, format!("`{}` cannot stand in a body of `rpt`", isa::form(*id).mnemonic)));
            }
        }
    }
    faults
}

fn may_repeat(id: FormId) -> bool {
    !matches!(isa::form(id).class, Class::Control | Class::System)
}

/// The number of bundles of the body of the repeat whose word stands here.
fn bundles_of(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word));
    isa::decode(&[word]).and_then(|decoded| decoded.operands().get(1).copied()).map_or(0, |size| size + 1)
}
