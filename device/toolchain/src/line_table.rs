//! Line tables in the form of DWARF 4: which line of which file the code at an address came from.

use crate::object_file::{ObjectFile, Section, SectionRelocation, Target};
use ipu21::relocation::Relocation;

// Numbers of DWARF 4: standard operations 6.2.5.2, extended ones 6.2.5.3, tags and attributes 7.5.
const COPY: u8 = 1;
const ADVANCE_PC: u8 = 2;
const ADVANCE_LINE: u8 = 3;
const SET_FILE: u8 = 4;
const END_SEQUENCE: u8 = 1;
const SET_ADDRESS: u8 = 2;
/// Operands of the standard operations 1 to 12.
const OPERANDS: [u8; 12] = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
/// First operation that stands for a step of address and line; none is used.
const OPCODE_BASE: u8 = OPERANDS.len() as u8 + 1;
/// One abbreviation: a compile unit without children with a line table (sec_offset) and a name (string).
const ABBREVIATIONS: [u8; 10] = [1, 0x11, 0, 0x10, 0x17, 0x03, 0x08, 0, 0, 0];

/// `.debug_line` with what tools need to find it; nothing when there is no code with lines.
pub(crate) fn sections(object: &ObjectFile) -> Vec<Section> {
    if object.sections.iter().all(|section| section.lines.is_empty() || !section.is_code) {
        return Vec::new();
    }
    let (lines, relocations) = table(object);
    let name = object.sources.first().map_or("", String::as_str);
    let section = |name: &str, bytes: Vec<u8>, relocations| Section {
        name: name.to_owned(),
        align: 1,
        size: bytes.len() as u32,
        bytes,
        relocations,
        ..Section::default()
    };
    vec![
        section(".debug_line", lines, relocations),
        section(".debug_abbrev", ABBREVIATIONS.to_vec(), Vec::new()),
        section(".debug_info", unit(name), Vec::new()),
    ]
}

/// A compile unit: version 4, abbreviations at 0, addresses of 4 bytes, the line table at 0, the name.
fn unit(name: &str) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(4_u16.to_le_bytes());
    body.extend(0_u32.to_le_bytes());
    body.extend([4, 1]);
    body.extend(0_u32.to_le_bytes());
    body.extend(text(name));
    with_length(body)
}

fn with_length(body: Vec<u8>) -> Vec<u8> {
    (body.len() as u32).to_le_bytes().into_iter().chain(body).collect()
}

fn text(name: &str) -> Vec<u8> {
    name.bytes().filter(|byte| *byte != 0).chain([0]).collect()
}

fn table(object: &ObjectFile) -> (Vec<u8>, Vec<SectionRelocation>) {
    // Addresses count bytes: data has lines too. One operation an instruction, every row a statement.
    let mut header = vec![1, 1, 1, 0, 1, OPCODE_BASE];
    header.extend(OPERANDS);
    // No directories but the present one.
    header.push(0);
    for source in &object.sources {
        header.extend(text(source));
        header.extend([0, 0, 0]);
    }
    header.push(0);
    let mut body = 4_u16.to_le_bytes().to_vec();
    body.extend((header.len() as u32).to_le_bytes());
    body.extend(header);
    let mut relocations = Vec::new();
    for (index, section) in object.sections.iter().enumerate().filter(|(_, section)| section.is_code && !section.lines.is_empty()) {
        // Operation, length and number stand before the address, the length of the whole before everything.
        let offset = body.len() as u32 + 3 + 4;
        relocations.push(SectionRelocation { offset, kind: Relocation::Word32, target: Target::Section(index), addend: 0 });
        body.extend([0, 5, SET_ADDRESS, 0, 0, 0, 0]);
        sequence(section, &mut body);
    }
    (with_length(body), relocations)
}

fn sequence(section: &Section, out: &mut Vec<u8>) {
    let (mut address, mut file, mut line) = (0, 0, 1_u32);
    for row in &section.lines {
        if row.file != file {
            out.push(SET_FILE);
            unsigned(u64::from(row.file) + 1, out);
        }
        if row.offset != address {
            out.push(ADVANCE_PC);
            unsigned(u64::from(row.offset.saturating_sub(address)), out);
        }
        if row.line != line {
            out.push(ADVANCE_LINE);
            signed(i64::from(row.line) - i64::from(line), out);
        }
        out.push(COPY);
        (address, file, line) = (row.offset, row.file, row.line);
    }
    out.push(ADVANCE_PC);
    unsigned(u64::from(section.size.saturating_sub(address)), out);
    out.extend([0, 1, END_SEQUENCE]);
}

/// Seven bits a byte, the low ones first.
fn unsigned(mut value: u64, out: &mut Vec<u8>) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

fn signed(mut value: i64, out: &mut Vec<u8>) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        let is_last = value == 0 && byte & 0x40 == 0 || value == -1 && byte & 0x40 != 0;
        if is_last {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::sequence;
    use crate::object_file::{LineRow, Section};

    #[test]
    fn the_largest_numbers_of_files_lines_and_offsets_are_written() {
        let row = |offset, file| LineRow { offset, file, line: u32::MAX };
        let section = Section { size: 4, lines: vec![row(0, u32::MAX), row(u32::MAX, u32::MAX)], ..Section::default() };
        let mut bytes = Vec::new();
        sequence(&section, &mut bytes);
        // File 2^32, line +(2^32 - 2), copied; address +(2^32 - 1), copied; then nothing is left up to the end of the section.
        let expected =
            [4, 0x80, 0x80, 0x80, 0x80, 0x10, 3, 0xfe, 0xff, 0xff, 0xff, 0x0f, 1, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 0, 0, 1, 1];
        assert_eq!(bytes, expected);
    }
}
