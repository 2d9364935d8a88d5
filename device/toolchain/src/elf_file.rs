//! Writing an object as an ELF file.

use object::elf;
use object::write::elf::{FileHeader, Rel, SectionHeader, SectionIndex, Sym, Writer};
use object::Endianness;

use crate::object::Object;

/// OSABI of freestanding objects (isa-notes.md 12).
const OSABI_STANDALONE: u8 = 255;

/// Sections: `.text`, its relocations, lines and source name, then the tables ELF needs. Symbol 1 is the text section, then the
/// symbols defined here, then those defined elsewhere.
pub(crate) fn write(object: &Object, machine: u16, flags: u32, lines_name: &str, source_name: &str) -> Vec<u8> {
    let lines: Vec<u8> = object.lines.iter().flat_map(|(offset, line)| [offset.to_le_bytes(), line.to_le_bytes()].concat()).collect();
    let mut externals: Vec<&str> = object.relocations.iter().filter_map(|relocation| relocation.symbol.as_deref()).collect();
    externals.retain(|name| !object.symbols.contains_key(*name));
    externals.sort_unstable();
    externals.dedup();
    let names: Vec<&str> = object.symbols.keys().map(String::as_str).chain(externals.iter().copied()).collect();

    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, false, &mut bytes);
    writer.reserve_file_header();
    let _ = writer.reserve_null_section_index();
    let text_name = writer.add_section_name(b".text");
    let text_index = writer.reserve_section_index();
    let relocation_name = writer.add_section_name(b".rela.text");
    let _ = writer.reserve_section_index();
    let lines_name = writer.add_section_name(lines_name.as_bytes());
    let _ = writer.reserve_section_index();
    let source_section_name = writer.add_section_name(source_name.as_bytes());
    let _ = writer.reserve_section_index();
    let symtab_index = writer.reserve_symtab_section_index();
    let _ = writer.reserve_strtab_section_index();
    let _ = writer.reserve_shstrtab_section_index();
    let _ = writer.reserve_null_symbol_index();
    let section_symbol = writer.reserve_symbol_index(Some(text_index));
    let mut symbols = Vec::new();
    for name in &names {
        let defined = object.symbols.get(*name).copied();
        symbols.push((writer.add_string(name.as_bytes()), defined, writer.reserve_symbol_index(defined.map(|_| text_index))));
    }
    let text_offset = writer.reserve(object.text.len() as u64, u64::from(object.align));
    let relocation_offset = writer.reserve(12 * object.relocations.len() as u64, 4);
    let lines_offset = writer.reserve(lines.len() as u64, 4);
    let source_offset = writer.reserve(object.source_name.len() as u64, 1);
    writer.reserve_symtab();
    let _ = writer.reserve_strtab();
    let _ = writer.reserve_shstrtab();
    writer.reserve_section_headers();

    let header = FileHeader {
        os_abi: elf::OsAbi(OSABI_STANDALONE),
        abi_version: 0,
        e_type: elf::ET_REL,
        e_machine: elf::Machine(machine),
        e_entry: 0,
        e_flags: elf::FileFlags(flags),
    };
    writer.write_file_header(&header).expect("the header of a small file fits");
    writer.pad_until(text_offset);
    writer.write(&object.text);
    writer.pad_until(relocation_offset);
    for relocation in &object.relocations {
        let symbol = match &relocation.symbol {
            None => section_symbol,
            Some(name) => symbols[names.iter().position(|known| known == name).expect("every symbol is listed")].2,
        };
        let entry = Rel { r_offset: u64::from(relocation.offset), r_sym: symbol.0, r_type: elf::RelocationType(relocation.kind.number()), r_addend: relocation.addend };
        writer.write_relocation(true, &entry);
    }
    writer.pad_until(lines_offset);
    writer.write(&lines);
    writer.pad_until(source_offset);
    writer.write(object.source_name.as_bytes());
    writer.write_null_symbol();
    let symbol = |st_name, st_info, section: Option<SectionIndex>, st_value| Sym { st_name, section: section.map(|index| index.0), st_info, st_other: elf::SymbolOther(0), st_shndx: elf::SHN_UNDEF, st_value, st_size: 0 };
    let local = elf::SymbolInfo::new(elf::STB_LOCAL, elf::STT_SECTION);
    let global = elf::SymbolInfo::new(elf::STB_GLOBAL, elf::STT_NOTYPE);
    writer.write_symbol(&symbol(0, local, Some(text_index), 0));
    for (name, defined, _) in &symbols {
        let name = writer.string_offset(Some(*name));
        writer.write_symbol(&symbol(name, global, defined.map(|_| text_index), defined.map_or(0, u64::from)));
    }
    writer.write_strtab();
    writer.write_shstrtab();
    writer.write_null_section_header();
    writer.write_section_header(&SectionHeader {
        sh_name: writer.section_name_offset(Some(text_name)),
        sh_type: elf::SHT_PROGBITS,
        sh_flags: elf::SHF_ALLOC | elf::SHF_EXECINSTR,
        sh_addr: 0,
        sh_offset: text_offset,
        sh_size: object.text.len() as u64,
        sh_link: 0,
        sh_info: 0,
        sh_addralign: u64::from(object.align),
        sh_entsize: 0,
    });
    writer.write_relocation_section_header(relocation_name, text_index, symtab_index, relocation_offset, object.relocations.len(), true);
    for (name, offset, size, align) in [(lines_name, lines_offset, lines.len(), 4), (source_section_name, source_offset, object.source_name.len(), 1)] {
        writer.write_section_header(&SectionHeader {
            sh_name: writer.section_name_offset(Some(name)),
            sh_type: elf::SHT_PROGBITS,
            sh_flags: elf::SectionFlags(0),
            sh_addr: 0,
            sh_offset: offset,
            sh_size: size as u64,
            sh_link: 0,
            sh_info: 0,
            sh_addralign: align,
            sh_entsize: 0,
        });
    }
    writer.write_symtab_section_header(2);
    writer.write_strtab_section_header();
    writer.write_shstrtab_section_header();
    bytes
}
