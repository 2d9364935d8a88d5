//! Writing an object as an ELF file (isa-notes.md 12).

use object::Endianness;
use object::elf;
use object::write::StringId;
use object::write::elf::{FileHeader, Rel, SectionHeader, SectionIndex, Sym, SymbolIndex, Writer};

use crate::object::Object;

/// EM_GRAPHCORE_IPU.
pub(crate) const MACHINE: u16 = 248;
/// OSABI of freestanding objects.
const OSABI_STANDALONE: u8 = 255;
/// Code and constants.
pub(crate) const TEXT: &str = ".text";
/// Pairs of u32: offset, source line.
pub(crate) const LINES: &str = ".ipubuild.lines";
/// Name of the source file.
pub(crate) const SOURCE: &str = ".ipubuild.source";

/// A section with contents of its own, before it has a place.
struct Contents {
    name: StringId,
    bytes: Vec<u8>,
    align: u32,
    offset: u64,
}

/// A named symbol: defined at an offset of the text, or elsewhere.
struct Named<'a> {
    name: &'a str,
    string: StringId,
    index: SymbolIndex,
    offset: Option<u32>,
}

/// Sections: `.text`, its relocations, lines, source name, then the tables ELF needs. Symbol 1 is the text section, then come the symbols
/// defined here, then those defined elsewhere, each group by name.
pub(crate) fn write(object: &Object, flags: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, false, &mut bytes);
    writer.reserve_file_header();
    let _ = writer.reserve_null_section_index();
    let text_index = writer.reserve_section_index();
    let relocation_name = writer.add_section_name(b".rela.text");
    for _ in 0..3 {
        let _ = writer.reserve_section_index();
    }
    let symtab_index = writer.reserve_symtab_section_index();
    let _ = writer.reserve_strtab_section_index();
    let _ = writer.reserve_shstrtab_section_index();
    let _ = writer.reserve_null_symbol_index();
    let section_symbol = writer.reserve_symbol_index(Some(text_index));
    let named = named_symbols(object, &mut writer, text_index);

    let lines: Vec<u8> = object.lines.iter().flat_map(|(offset, line)| [offset.to_le_bytes(), line.to_le_bytes()]).flatten().collect();
    let text = reserve(&mut writer, TEXT, object.text.clone(), object.align);
    let relocation_offset = writer.reserve_relocations(object.relocations.len(), true);
    let lines = reserve(&mut writer, LINES, lines, 4);
    let source = reserve(&mut writer, SOURCE, object.source_name.clone().into_bytes(), 1);
    writer.reserve_symtab();
    // Names have no zero bytes: they are assembly symbols and the constants above.
    writer.reserve_strtab().expect("symbols have no zero bytes");
    writer.reserve_shstrtab().expect("section names have no zero bytes");
    writer.reserve_section_headers();

    write_header(&mut writer, flags);
    put(&mut writer, &text);
    write_relocations(&mut writer, object, &named, section_symbol);
    put(&mut writer, &lines);
    put(&mut writer, &source);
    write_symbols(&mut writer, &named, text_index);
    writer.write_strtab();
    writer.write_shstrtab();
    writer.write_null_section_header();
    describe(&mut writer, &text, elf::SHF_ALLOC | elf::SHF_EXECINSTR);
    writer.write_relocation_section_header(relocation_name, text_index, symtab_index, relocation_offset, object.relocations.len(), true);
    describe(&mut writer, &lines, elf::SectionFlags(0));
    describe(&mut writer, &source, elf::SectionFlags(0));
    // The null symbol and the section symbol are local.
    writer.write_symtab_section_header(2);
    writer.write_strtab_section_header();
    writer.write_shstrtab_section_header();
    bytes
}

fn named_symbols<'a>(object: &'a Object, writer: &mut Writer<'a>, text: SectionIndex) -> Vec<Named<'a>> {
    let mut elsewhere: Vec<&str> = object.relocations.iter().filter_map(|relocation| relocation.symbol.as_deref()).collect();
    elsewhere.retain(|name| !object.symbols.contains_key(*name));
    elsewhere.sort_unstable();
    elsewhere.dedup();
    let here = object.symbols.iter().map(|(name, offset)| (name.as_str(), Some(*offset)));
    let mut named = Vec::new();
    for (name, offset) in here.chain(elsewhere.into_iter().map(|name| (name, None))) {
        let string = writer.add_string(name.as_bytes());
        named.push(Named { name, string, index: writer.reserve_symbol_index(offset.map(|_| text)), offset });
    }
    named
}

fn reserve(writer: &mut Writer<'_>, name: &'static str, bytes: Vec<u8>, align: u32) -> Contents {
    let name = writer.add_section_name(name.as_bytes());
    let offset = writer.reserve(bytes.len() as u64, u64::from(align));
    Contents { name, bytes, align, offset }
}

fn write_header(writer: &mut Writer<'_>, flags: u32) {
    let header = FileHeader {
        os_abi: elf::OsAbi(OSABI_STANDALONE),
        abi_version: 0,
        e_type: elf::ET_REL,
        e_machine: elf::Machine(MACHINE),
        e_entry: 0,
        e_flags: elf::FileFlags(flags),
    };
    writer.write_file_header(&header).expect("a text of at most 208 KiB keeps all offsets below 2^32");
}

fn put(writer: &mut Writer<'_>, contents: &Contents) {
    writer.pad_until(contents.offset);
    writer.write(&contents.bytes);
}

fn write_relocations(writer: &mut Writer<'_>, object: &Object, named: &[Named<'_>], section: SymbolIndex) {
    writer.write_align_relocation();
    for relocation in &object.relocations {
        let symbol = named.iter().find(|named| Some(named.name) == relocation.symbol.as_deref()).map_or(section, |named| named.index);
        writer.write_relocation(
            true,
            &Rel {
                r_offset: u64::from(relocation.offset),
                r_sym: symbol.0,
                r_type: elf::RelocationType(relocation.kind.number()),
                r_addend: relocation.addend,
            },
        );
    }
}

fn write_symbols(writer: &mut Writer<'_>, named: &[Named<'_>], text: SectionIndex) {
    let symbol = |st_name, binding, kind, section: Option<SectionIndex>, offset: u32| Sym {
        st_name,
        section: section.map(|index| index.0),
        st_info: elf::SymbolInfo::new(binding, kind),
        st_other: elf::SymbolOther(0),
        st_shndx: elf::SHN_UNDEF,
        st_value: u64::from(offset),
        st_size: 0,
    };
    writer.write_null_symbol();
    writer.write_symbol(&symbol(0, elf::STB_LOCAL, elf::STT_SECTION, Some(text), 0));
    for named in named {
        let name = writer.string_offset(Some(named.string));
        writer.write_symbol(&symbol(name, elf::STB_GLOBAL, elf::STT_NOTYPE, named.offset.map(|_| text), named.offset.unwrap_or(0)));
    }
}

fn describe(writer: &mut Writer<'_>, contents: &Contents, sh_flags: elf::SectionFlags) {
    let sh_name = writer.section_name_offset(Some(contents.name));
    writer.write_section_header(&SectionHeader {
        sh_name,
        sh_type: elf::SHT_PROGBITS,
        sh_flags,
        sh_addr: 0,
        sh_offset: contents.offset,
        sh_size: contents.bytes.len() as u64,
        sh_link: 0,
        sh_info: 0,
        sh_addralign: u64::from(contents.align),
        sh_entsize: 0,
    });
}
