//! Object files as text: sources that assemble to the same bytes, tables of sections and symbols.

use std::collections::BTreeMap;

use crate::disassembler::disassemble;
use crate::object_file::{Binding, Location, ObjectFile, Section, Symbol, SymbolKind, Target};

/// What a listing begins with, so that the assembler takes words that no assembler would have made.
pub const PREAMBLE: &str = ".allow_invalid_execution_mode\n.allow_invalid_operands\n.allow_invalid_repeat\n";

/// The loaded sections as a source; it assembles to their bytes, relocations not applied.
#[must_use]
pub fn source(file: &ObjectFile) -> String {
    let mut text = String::from(PREAMBLE);
    for (index, section) in file.sections.iter().enumerate().filter(|(_, section)| section.is_loaded && section.size > 0) {
        text.push_str(&format!(
            "\n.section {}, \"{}\", {}\n",
            section.name,
            flags(section),
            if section.is_zeros { "@nobits" } else { "@progbits" }
        ));
        if section.align > 1 {
            text.push_str(&format!(".balign {}\n", section.align));
        }
        contents(file, index, section, &mut text);
    }
    text
}

fn flags(section: &Section) -> String {
    let all = [(section.is_loaded, 'a'), (section.is_code, 'x'), (section.is_writable, 'w'), (section.is_kept, 'R')];
    all.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).collect()
}

fn contents(file: &ObjectFile, index: usize, section: &Section, text: &mut String) {
    let notes = notes(file, index);
    let mut told = 0;
    let mut note_until = |end: u32, text: &mut String| {
        for (_, note) in notes.range(told..end).flat_map(|(offset, notes)| notes.iter().map(move |note| (offset, note))) {
            text.push_str(&format!("# {note}\n"));
        }
        told = end;
    };
    if section.is_zeros {
        note_until(section.size, text);
        text.push_str(&format!("    .zero {}\n", section.size));
        return;
    }
    let whole = section.bytes.len() - section.bytes.len() % 4;
    if section.is_code {
        for line in disassemble(&section.bytes[..whole], section.address) {
            let offset = line.address.wrapping_sub(section.address);
            note_until(offset + 4 * line.words.len() as u32, text);
            let words: Vec<String> = line.words.iter().map(|word| format!("{word:08x}")).collect();
            text.push_str(&format!("    {:<60} # {:#x}: {}\n", line.text, line.address, words.join(" ")));
        }
    }
    let start = if section.is_code { whole } else { 0 };
    for (row, bytes) in section.bytes[start..].chunks(8).enumerate() {
        let offset = (start + 8 * row) as u32;
        note_until(offset + bytes.len() as u32, text);
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
        text.push_str(&format!("    {:<60} # {:#x}\n", format!(".byte {}", bytes.join(", ")), section.address.wrapping_add(offset)));
    }
}

/// What is said about offsets of a section: symbols, lines and relocations.
fn notes(file: &ObjectFile, index: usize) -> BTreeMap<u32, Vec<String>> {
    let mut notes: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for symbol in &file.symbols {
        if let Location::Section(section, offset) = symbol.location
            && section == index
        {
            notes.entry(offset).or_default().push(format!("{}:", symbol.name));
        }
    }
    for relocation in &file.sections[index].relocations {
        let target = match &relocation.target {
            Target::Section(section) => file.sections.get(*section).map_or("", |section| section.name.as_str()),
            Target::Symbol(name) => name,
        };
        let note = format!("{} {target} + {:#x}", relocation.kind.name(), relocation.addend);
        notes.entry(relocation.offset).or_default().push(note);
    }
    notes
}

/// Sections, symbols and code.
#[must_use]
pub fn object(file: &ObjectFile) -> String {
    let mut text = format!("sources: {}\n\n", file.sources.join(", "));
    text.push_str(&format!("{:>10} {:>10} {:>6} {:>6}  section\n", "address", "bytes", "align", "flags"));
    for section in &file.sections {
        let group = section.group.as_ref().map_or(String::new(), |group| format!(" (group {group})"));
        let (address, size, align) = (section.address, section.size, section.align);
        text.push_str(&format!("{address:#10x} {size:>10} {align:>6} {:>6}  {}{group}\n", flags(section), section.name));
    }
    format!("{text}\n{}\n{}", symbols(file), source(file))
}

/// Symbols by name: address, size, what and where it is, name. Letters as in `nm`: `T` code, `D` data, `R` constants, `B` zeros, `A` a
/// number, `C` common, `W` weak, `U` elsewhere, small when local.
#[must_use]
pub fn symbols(file: &ObjectFile) -> String {
    let mut symbols: Vec<&Symbol> = file.symbols.iter().collect();
    symbols.sort_by(|one, other| one.name.cmp(&other.name));
    let line = |symbol: &&Symbol| {
        let address = match symbol.location {
            Location::Section(section, offset) => file.sections.get(section).map(|section| section.address.wrapping_add(offset)),
            Location::Absolute(value) => Some(value),
            Location::Common { .. } | Location::Elsewhere => None,
        };
        let address = address.map_or(String::new(), |address| format!("{address:08x}"));
        let kind = match symbol.kind {
            SymbolKind::Function => " function",
            SymbolKind::Data => " data",
            SymbolKind::File => " file",
            SymbolKind::Untyped => "",
        };
        format!("{address:8} {:>6} {} {}{kind}\n", symbol.size, letter(file, symbol), symbol.name)
    };
    symbols.iter().map(line).collect()
}

fn letter(file: &ObjectFile, symbol: &Symbol) -> char {
    let letter = match symbol.location {
        Location::Elsewhere if symbol.binding == Binding::Weak => return 'w',
        Location::Elsewhere => return 'U',
        _ if symbol.binding == Binding::Weak => return 'W',
        Location::Common { .. } => 'C',
        Location::Absolute(_) => 'A',
        Location::Section(section, _) => match file.sections.get(section) {
            Some(section) if section.is_code => 'T',
            Some(section) if section.is_zeros => 'B',
            Some(section) if section.is_writable => 'D',
            _ => 'R',
        },
    };
    if symbol.binding == Binding::Local { letter.to_ascii_lowercase() } else { letter }
}

/// Bytes of code, constants, data and zeros, and their sum, for each file.
#[must_use]
pub fn sizes(files: &[(String, ObjectFile)]) -> String {
    let mut text = format!("{:>8} {:>9} {:>8} {:>8} {:>8}  file\n", "code", "constants", "data", "zeros", "all");
    for (name, file) in files {
        let sum = |wanted: fn(&Section) -> bool| -> u32 {
            let sections = file.sections.iter().filter(|section| section.is_loaded && wanted(section));
            sections.fold(0, |sum, section| sum.saturating_add(section.size))
        };
        let code = sum(|section| section.is_code);
        let zeros = sum(|section| !section.is_code && section.is_zeros);
        let data = sum(|section| !section.is_code && !section.is_zeros && section.is_writable);
        let all = sum(|_| true);
        let constants = all.saturating_sub(code).saturating_sub(zeros).saturating_sub(data);
        text.push_str(&format!("{code:>8} {constants:>9} {data:>8} {zeros:>8} {all:>8}  {name}\n"));
    }
    text
}
