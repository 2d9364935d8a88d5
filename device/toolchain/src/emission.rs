//! The second pass: items become words and relocations; what needs final values is judged here.

use ipu21::isa::{self, Class, FormId, Lane, form};
use ipu21::relocation::Relocation;

use crate::diagnostic::{Diagnostic, Place};
use crate::expression::{Expression, Value};
use crate::instruction::{Fixup, Instruction, Word};
use crate::layout::{Content, Item, Layout, key_of};
use crate::object::{Object, RelocationEntry};

/// The words of one item that is executed.
struct Executed {
    offset: u32,
    words: Vec<Word>,
}

struct Emission<'a> {
    layout: &'a Layout,
    object: Object,
    executed: Vec<Executed>,
    faults: Vec<Diagnostic>,
}

/// The object of a layout, and what is wrong with it.
pub(crate) fn emit(layout: &Layout, source_name: &str) -> (Object, Vec<Diagnostic>) {
    let object = Object::empty(source_name.to_owned(), layout.align);
    let mut emission = Emission { layout, object, executed: Vec::new(), faults: Vec::new() };
    for item in &layout.items {
        emission.item(item);
    }
    emission.export();
    emission.faults.extend(repeat_faults(&emission.executed));
    (emission.object, emission.faults)
}

impl Emission<'_> {
    fn item(&mut self, item: &Item) {
        match &item.content {
            Content::Padding { bytes } => {
                self.object.text.resize((item.offset + bytes % 4) as usize, 0);
                (0..bytes / 4).for_each(|_| self.object.text.extend(isa::NOP.to_le_bytes()));
            }
            Content::Zeros { .. } | Content::Lost { .. } => {}
            Content::Data { bytes, relocation, value } => self.data(item, *bytes, *relocation, value),
            Content::Single(instruction) => self.instructions(item, std::slice::from_ref(instruction)),
            Content::Bundle(members) => self.instructions(item, members),
        }
        self.object.text.resize((item.offset + item.content.bytes()) as usize, 0);
        if matches!(item.content, Content::Single(_) | Content::Bundle(_) | Content::Data { .. }) {
            self.object.lines.push((item.offset, item.at.line));
        }
    }

    fn instructions(&mut self, item: &Item, members: &[Instruction]) {
        let lookup = |name: &str| lookup(self.layout, name);
        let encoded: Vec<_> = members.iter().map(|member| member.encode(item.mode, members.len() > 1, &lookup)).collect();
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
        if let [main, aux] = &words[..] {
            self.faults.extend(overlap_fault(item, main, aux));
        }
        for word in &words {
            if let Some(fixup) = &word.fixup {
                self.relocate(&word.at, self.object.text.len() as u32, fixup);
            }
            word.words.iter().for_each(|word| self.object.text.extend(word.to_le_bytes()));
        }
        self.executed.push(Executed { offset: item.offset, words });
    }

    fn data(&mut self, item: &Item, bytes: u32, relocation: Relocation, expression: &Expression) {
        match expression.evaluate_with(&|name| lookup(self.layout, name)) {
            Ok(Value { symbol: None, number }) => {
                let limit = 1_i64 << (8 * bytes);
                if !(-limit / 2..limit).contains(&number) {
                    self.faults.push(item.at.fault(0, format!("expected a value of {bytes} bytes, found {number}")));
                }
                self.object.text.extend(&number.to_le_bytes()[..bytes as usize]);
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
        let symbol = (!fixup.symbol.is_empty()).then(|| fixup.symbol.clone());
        self.object.relocations.push(RelocationEntry { offset, kind: fixup.kind, symbol, addend: fixup.addend });
    }

    fn export(&mut self) {
        for (name, at) in &self.layout.globals {
            match self.layout.labels.get(name) {
                Some(offset) => {
                    self.object.symbols.insert(name.clone(), *offset);
                }
                None => self.faults.push(at.fault(0, format!("`{name}` is global and not defined"))),
            }
        }
    }
}

/// A symbol at the end: a constant, a label of this object (relative to its start), or one of another object.
fn lookup(layout: &Layout, name: &str) -> Option<Value> {
    if let Some(value) = layout.constants.get(name) {
        return Some(Value::from(*value));
    }
    let own = layout.labels.get(key_of(name)).map(|offset| Value { symbol: Some(String::new()), number: i64::from(*offset) });
    let is_local = name.starts_with('.') || name.contains('#');
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
    for (index, item) in executed.iter().enumerate() {
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
