//! The second pass: items become words and relocations; what needs final values is judged here.

use ipu21::isa::{self, Class, FormId, Lane, form};
use ipu21::relocation::Relocation;

use crate::diagnostic::{Diagnostic, Place};
use crate::expression::{Expression, Value, section_of};
use crate::instruction::{Fixup, Instruction, Word};
use crate::layout::{Content, Item, Layout, SymbolTraits, key_of};
use crate::object_file::{Binding, LineRow, Location, ObjectFile, Section, SectionRelocation, Symbol, Target};
use crate::section::SectionLayout;

/// The words of one item that is executed.
struct Executed {
    offset: u32,
    words: Vec<Word>,
    /// The rules of `rpt` do not hold.
    is_free: bool,
}

struct Emission<'a> {
    layout: &'a Layout,
    section: Section,
    executed: Vec<Executed>,
    faults: Vec<Diagnostic>,
    sources: Vec<String>,
}

/// The object of a layout, and what is wrong with it.
pub(crate) fn emit(layout: &Layout, source_name: &str) -> (ObjectFile, Vec<Diagnostic>) {
    let (mut sections, mut faults) = (Vec::new(), Vec::new());
    let mut sources = vec![source_name.to_owned()];
    for planned in &layout.sections {
        let mut emission = Emission { layout, section: started(planned), executed: Vec::new(), faults: Vec::new(), sources };
        planned.items.iter().for_each(|item| emission.item(item));
        emission.finish();
        emission.faults.extend(repeat_faults(&emission.executed));
        faults.append(&mut emission.faults);
        sources = emission.sources;
        sections.push(emission.section);
    }
    let symbols = layout.symbols.iter().filter_map(|(name, traits)| symbol(layout, name, traits, &mut faults)).collect();
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
        ..Section::default()
    }
}

impl Emission<'_> {
    fn item(&mut self, item: &Item) {
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
            Content::Bundle(members) => self.instructions(item, members),
        }
        self.section.bytes.resize((item.offset + item.content.bytes()) as usize, 0);
        if matches!(item.content, Content::Single(_) | Content::Bundle(_) | Content::Data { .. } | Content::Bytes(_)) {
            let file = self.source(item.at.file());
            self.section.lines.push(LineRow { offset: item.offset, file, line: item.at.line });
        }
    }

    /// The index of a file among the sources; most lines are of the first.
    fn source(&mut self, name: &str) -> u32 {
        let found = self.sources.iter().position(|known| known == name);
        let index = found.unwrap_or_else(|| {
            self.sources.push(name.to_owned());
            self.sources.len() - 1
        });
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

    fn instructions(&mut self, item: &Item, members: &[Instruction]) {
        let lookup = |name: &str| lookup(self.layout, name);
        let encode = |member: &Instruction| {
            if !item.rules.any_mode {
                member.check_mode(item.mode)?;
            }
            member.encode(item.mode, members.len() > 1, &lookup)
        };
        let encoded: Vec<_> = members.iter().map(encode).collect();
        let mut words = Vec::new();
        for word in encoded {
            match word {
                Ok(word) => words.push(word),
                Err(fault) => self.faults.push(fault),
            }
        }
        if words.len() < members.len() {
            return;
        }
        if let ([main, aux], false) = (&words[..], item.rules.any_operands) {
            self.faults.extend(overlap_fault(item, main, aux));
        }
        for word in &words {
            if let Some(fixup) = &word.fixup {
                self.relocate(&word.at, self.section.bytes.len() as u32, fixup);
            }
            word.words.iter().for_each(|word| self.section.bytes.extend(word.to_le_bytes()));
        }
        self.executed.push(Executed { offset: item.offset, words, is_free: item.rules.any_repeat });
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
        _ if traits.binding == Binding::Weak => Location::Elsewhere,
        _ => return None,
    };
    Some(Symbol { name: name.to_owned(), binding: traits.binding, kind: traits.kind, location, size })
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
    let (lane, register) = main.written.iter().find(|register| lanes_differ && aux.written.contains(register))?;
    let file = if *lane == Lane::Main { 'm' } else { 'a' };
    Some(item.at.fault(0, format!("both instructions of this bundle write `${file}{register}`")))
}

/// The rules of `rpt` (isa-notes.md 5): its body starts at a multiple of 8 and has only bundles, none with a control or system instruction.
fn repeat_faults(executed: &[Executed]) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    for (index, item) in executed.iter().enumerate().filter(|(_, item)| !item.is_free) {
        let Some((rpt, bundles)) = item.words.iter().find_map(|word| bundles_of(word).map(|bundles| (word, bundles))) else { continue };
        let start = item.offset + 4 * item.words.len() as u32;
        if !start.is_multiple_of(8) {
            if executed.get(index + 1).is_some_and(|next| next.words.len() == 2) {
                // The bundle itself was reported as misplaced.
                continue;
            }
            let message = format!("the body of `rpt` must start at a multiple of 8, found offset {start:#x}; put a `nop` before `rpt`");
            faults.push(rpt.at.fault(0, message));
            continue;
        }
        for number in 0..bundles {
            let body = executed.get(index + 1 + number as usize).filter(|body| body.offset == start + 8 * number);
            let Some(body) = body else {
                faults.push(rpt.at.fault(0, format!("expected {bundles} bundles behind `rpt`, found {number}")));
                break;
            };
            if body.words.len() != 2 {
                let message = format!("expected bundle {} of {bundles} of a body of `rpt`, found an instruction alone", number + 1);
                faults.push(body.words[0].at.fault(0, message));
                break;
            }
            for word in body.words.iter().filter(|word| !may_repeat(word.form)) {
                faults.push(word.at.fault(0, format!("`{}` cannot stand in a body of `rpt`", isa::form(word.form).mnemonic)));
            }
        }
    }
    faults
}

fn may_repeat(id: FormId) -> bool {
    !matches!(isa::form(id).class, Class::Control | Class::System)
}

/// The number of bundles of the body, when this is a repeat.
fn bundles_of(word: &Word) -> Option<u32> {
    let size = || isa::decode(&word.words).map_or(0, |decoded| decoded.operands()[1]);
    matches!(word.form, form::RPT_M_ZI8 | form::RPT_ZI12_ZI8).then(|| size() + 1)
}
