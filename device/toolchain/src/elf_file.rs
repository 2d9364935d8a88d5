//! Objects as ELF files (isa-notes.md 12), written and read. What is read is not trusted.

use std::collections::BTreeMap;

use ipu21::relocation::Relocation;
use object::elf;
use object::read::elf::{ElfFile32, ElfSection32};
use object::write::StringId;
use object::write::elf::{FileHeader, ProgramHeader, Rel, SectionHeader, SectionIndex, Sym, SymbolIndex, Writer};
use object::{
    Endianness, Object as _, ObjectComdat as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget, SectionFlags,
    SymbolSection,
};

use crate::line_table;
use crate::object::{ObjectError, apply};
use crate::object_file::{Binding, LineRow, Location, ObjectFile, Section, SectionRelocation, Symbol, SymbolKind, Target, Visibility};

/// EM_GRAPHCORE_IPU.
pub(crate) const MACHINE: u16 = 248;
/// OSABI of freestanding objects.
pub(crate) const OSABI_STANDALONE: u8 = 255;
/// Code and constants.
pub(crate) const TEXT: &str = ".text";
/// Rows of four u32: section, offset, file, line.
const LINES: &str = ".ipubuild.lines";
/// Names of the source files, each ended by a zero byte.
const SOURCE: &str = ".ipubuild.source";
/// The linker keeps the section (SHF_GNU_RETAIN).
const RETAIN: u64 = 1 << 21;
/// Most bytes of a section that is read: the memory of a tile, and more for what is not loaded.
const SECTION_BYTES_MAX: u64 = 1 << 24;
/// Largest alignment that is read, bytes.
const ALIGN_MAX: u64 = 0x4000;

/// A section before it has a place in the file.
struct Contents<'a> {
    name: StringId,
    index: SectionIndex,
    section: &'a Section,
    offset: u64,
    relocations: u64,
    relocation_name: Option<StringId>,
}

/// The group a section belongs to, before it has a place.
struct Group<'a> {
    name: &'a str,
    index: SectionIndex,
    members: Vec<SectionIndex>,
    offset: u64,
    string: StringId,
}

/// The sections of an object and those that say where its lines come from.
fn with_lines(object: &ObjectFile) -> Vec<Section> {
    let mut sections = object.sections.clone();
    let count: usize = object.sections.iter().map(|section| section.lines.len()).sum();
    let mut rows: Vec<u8> = Vec::with_capacity(16 * count);
    for (index, section) in object.sections.iter().enumerate() {
        for row in &section.lines {
            let words = [index as u32, row.offset, row.file, row.line];
            words.iter().for_each(|word| rows.extend(word.to_le_bytes()));
        }
    }
    let names = object.sources.iter().flat_map(|name| name.bytes().filter(|byte| *byte != 0).chain([0]));
    let extra =
        |name: &str, bytes: Vec<u8>, align| Section { name: name.to_owned(), size: bytes.len() as u32, bytes, align, ..Section::default() };
    sections.push(extra(LINES, rows, 4));
    sections.push(extra(SOURCE, names.collect(), 1));
    sections.extend(line_table::sections(object));
    sections
}

/// Writes an object. Order: its sections, each with its relocations behind, groups, then the tables ELF needs. Symbols: one for each
/// section, then the local ones, then the others, each by name.
pub(crate) fn write(object: &ObjectFile, flags: u32) -> Vec<u8> {
    write_as(object, flags, None)
}

/// Writes a linked image: as an object, with addresses and a segment for each loaded section.
pub(crate) fn write_executable(object: &ObjectFile, flags: u32, entry: u32) -> Vec<u8> {
    write_as(object, flags, Some(entry))
}

fn write_as(object: &ObjectFile, flags: u32, entry: Option<u32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, false, &mut bytes);
    writer.reserve_file_header();
    let _ = writer.reserve_null_section_index();
    let mut sections = with_lines(object);
    if entry.is_some() {
        sections.iter_mut().for_each(|section| settle(section, object));
    }
    let mut contents: Vec<Contents<'_>> = sections.iter().map(|section| indexed(&mut writer, section)).collect();
    let mut groups = groups_of(&mut writer, &contents);
    let symtab = writer.reserve_symtab_section_index();
    let _ = writer.reserve_strtab_section_index();
    let _ = writer.reserve_shstrtab_section_index();
    let _ = writer.reserve_null_symbol_index();
    let section_symbols: Vec<SymbolIndex> = contents.iter().map(|one| writer.reserve_symbol_index(Some(one.index))).collect();
    let symbols = sorted_symbols(object);
    let names: Vec<StringId> = symbols.iter().map(|symbol| writer.add_string(symbol.name.as_bytes())).collect();
    let indices: Vec<SymbolIndex> = symbols.iter().map(|_| writer.reserve_symbol_index(None)).collect();

    let segments = contents.iter().filter(|one| entry.is_some() && one.section.is_loaded).count();
    if segments > 0 {
        writer.reserve_program_headers(segments as u32);
    }
    for one in &mut contents {
        one.offset =
            if one.section.is_zeros { 0 } else { writer.reserve(one.section.bytes.len() as u64, u64::from(one.section.align.max(1))) };
        one.relocations = if one.relocation_name.is_some() { writer.reserve_relocations(one.section.relocations.len(), true) } else { 0 };
    }
    for group in &mut groups {
        group.offset = writer.reserve(4 * (group.members.len() as u64 + 1), 4);
    }
    writer.reserve_symtab();
    // Names have no zero bytes: they are assembly symbols, names of sections and the constants above.
    writer.reserve_strtab().expect("symbols have no zero bytes");
    writer.reserve_shstrtab().expect("section names have no zero bytes");
    writer.reserve_section_headers();

    let header = FileHeader {
        os_abi: elf::OsAbi(OSABI_STANDALONE),
        abi_version: 0,
        e_type: if entry.is_some() { elf::ET_EXEC } else { elf::ET_REL },
        e_machine: elf::Machine(MACHINE),
        e_entry: u64::from(entry.unwrap_or(0)),
        e_flags: elf::FileFlags(flags),
    };
    writer.write_file_header(&header).expect("a text of at most 208 KiB keeps all offsets below 2^32");
    if segments > 0 {
        writer.write_align_program_headers();
        contents.iter().filter(|one| one.section.is_loaded).for_each(|one| write_segment(&mut writer, one));
    }
    let named = symbols.iter().zip(&indices).filter(|(symbol, _)| symbol.kind != SymbolKind::File);
    let index_of: BTreeMap<&str, SymbolIndex> = named.map(|(symbol, index)| (symbol.name.as_str(), *index)).collect();
    for one in &contents {
        write_contents(&mut writer, one, &section_symbols, &index_of);
    }
    for group in &groups {
        writer.pad_until(group.offset);
        let words = std::iter::once(elf::GRP_COMDAT.0).chain(group.members.iter().map(|member| member.0));
        writer.write(&words.flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    }
    write_symbols(&mut writer, &contents, &symbols, &names, entry.is_some());
    writer.write_strtab();
    writer.write_shstrtab();
    writer.write_null_section_header();
    for one in &contents {
        describe(&mut writer, one, symtab);
    }
    for group in &groups {
        let signature = index_of.get(group.name).map_or(0, |index| index.0);
        describe_group(&mut writer, group, symtab, signature);
    }
    // The null symbol, those of the sections and the local ones.
    let local = 1 + section_symbols.len() + symbols.iter().filter(|symbol| symbol.binding == Binding::Local).count();
    writer.write_symtab_section_header(local as u32);
    writer.write_strtab_section_header();
    writer.write_shstrtab_section_header();
    bytes
}

/// Puts the addresses of a linked image in place of relocations.
fn settle(section: &mut Section, object: &ObjectFile) {
    for relocation in std::mem::take(&mut section.relocations) {
        if let Target::Section(index) = relocation.target {
            let value = i64::from(object.sections[index].address).saturating_add(relocation.addend);
            // An address of 32 bits in a field of 32 bits.
            let _ = apply(relocation.kind, value, &mut section.bytes, relocation.offset as usize);
        }
    }
}

fn write_segment(writer: &mut Writer<'_>, one: &Contents<'_>) {
    let section = one.section;
    let flags = [(true, elf::PF_R), (section.is_code, elf::PF_X), (section.is_writable, elf::PF_W)];
    writer.write_program_header(&ProgramHeader {
        p_type: elf::PT_LOAD,
        p_flags: elf::ProgramFlags(flags.iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag.0)),
        p_offset: one.offset,
        p_vaddr: u64::from(section.address),
        p_paddr: u64::from(section.address),
        p_filesz: section.bytes.len() as u64,
        p_memsz: u64::from(section.size),
        p_align: u64::from(section.align.max(1)),
    });
}

fn indexed<'a>(writer: &mut Writer<'a>, section: &'a Section) -> Contents<'a> {
    let name = writer.add_section_name(section.name.as_bytes());
    let index = writer.reserve_section_index();
    let relocation_name = (!section.relocations.is_empty()).then(|| {
        let _ = writer.reserve_section_index();
        writer.add_section_name(if section.name == TEXT { b".rela.text" } else { b".rela" })
    });
    Contents { name, index, section, offset: 0, relocations: 0, relocation_name }
}

fn groups_of<'a>(writer: &mut Writer<'a>, contents: &[Contents<'a>]) -> Vec<Group<'a>> {
    let mut members: BTreeMap<&'a str, Vec<SectionIndex>> = BTreeMap::new();
    for one in contents {
        if let Some(group) = &one.section.group {
            members.entry(group).or_default().push(one.index);
        }
    }
    let group = |(name, members)| Group {
        name,
        index: writer.reserve_section_index(),
        members,
        offset: 0,
        string: writer.add_section_name(b".group"),
    };
    members.into_iter().map(group).collect()
}

/// The symbols with those that only relocations or groups name, local ones first, each kind by name.
fn sorted_symbols(object: &ObjectFile) -> Vec<Symbol> {
    let (files, others): (Vec<&Symbol>, Vec<&Symbol>) = object.symbols.iter().partition(|symbol| symbol.kind == SymbolKind::File);
    let mut symbols: BTreeMap<&str, Symbol> = others.into_iter().map(|symbol| (symbol.name.as_str(), symbol.clone())).collect();
    let elsewhere = |name: &str| Symbol {
        name: name.to_owned(),
        binding: Binding::Global,
        kind: SymbolKind::Untyped,
        visibility: Visibility::Default,
        location: Location::Elsewhere,
        size: 0,
    };
    for relocation in object.sections.iter().flat_map(|section| &section.relocations) {
        if let Target::Symbol(name) = &relocation.target {
            symbols.entry(name).or_insert_with(|| elsewhere(name));
        }
    }
    for (index, section) in object.sections.iter().enumerate() {
        if let Some(name) = &section.group {
            let signature = Symbol { binding: Binding::Local, location: Location::Section(index, 0), ..elsewhere(name) };
            symbols.entry(name).or_insert(signature);
        }
    }
    // A file may have the name of a function.
    let mut symbols: Vec<Symbol> = files.into_iter().cloned().chain(symbols.into_values()).collect();
    symbols.sort_by_key(|symbol| symbol.binding != Binding::Local);
    symbols
}

fn write_contents(writer: &mut Writer<'_>, one: &Contents<'_>, sections: &[SymbolIndex], symbols: &BTreeMap<&str, SymbolIndex>) {
    if !one.section.is_zeros {
        writer.pad_until(one.offset);
        writer.write(&one.section.bytes);
    }
    if one.relocation_name.is_none() {
        return;
    }
    writer.write_align_relocation();
    for relocation in &one.section.relocations {
        let symbol = match &relocation.target {
            Target::Section(index) => sections[*index],
            Target::Symbol(name) => symbols[name.as_str()],
        };
        let written = Rel {
            r_offset: u64::from(relocation.offset),
            r_sym: symbol.0,
            r_type: elf::RelocationType(relocation.kind.number()),
            r_addend: relocation.addend,
        };
        writer.write_relocation(true, &written);
    }
}

fn write_symbols(writer: &mut Writer<'_>, contents: &[Contents<'_>], symbols: &[Symbol], names: &[StringId], linked: bool) {
    let plain = Sym {
        st_name: 0,
        section: None,
        st_info: elf::SymbolInfo::new(elf::STB_LOCAL, elf::STT_SECTION),
        st_other: elf::SymbolOther(0),
        st_shndx: elf::SHN_UNDEF,
        st_value: 0,
        st_size: 0,
    };
    writer.write_null_symbol();
    for one in contents {
        writer.write_symbol(&Sym { section: Some(one.index.0), ..plain.clone() });
    }
    for (symbol, name) in symbols.iter().zip(names) {
        let binding = match symbol.binding {
            Binding::Local => elf::STB_LOCAL,
            Binding::Weak => elf::STB_WEAK,
            Binding::Global => elf::STB_GLOBAL,
        };
        let kind = match symbol.kind {
            SymbolKind::Untyped => elf::STT_NOTYPE,
            SymbolKind::Function => elf::STT_FUNC,
            SymbolKind::Data => elf::STT_OBJECT,
            SymbolKind::File => elf::STT_FILE,
        };
        let visibility = match symbol.visibility {
            Visibility::Default => elf::STV_DEFAULT,
            Visibility::Protected => elf::STV_PROTECTED,
            Visibility::Hidden => elf::STV_HIDDEN,
            Visibility::Internal => elf::STV_INTERNAL,
        };
        let (section, st_shndx, value) = match symbol.location {
            Location::Section(index, offset) => {
                let start = if linked { contents[index].section.address } else { 0 };
                (Some(contents[index].index.0), elf::SHN_UNDEF, start.wrapping_add(offset))
            }
            Location::Absolute(value) => (None, elf::SHN_ABS, value),
            Location::Common { align } => (None, elf::SHN_COMMON, align),
            Location::Elsewhere => (None, elf::SHN_UNDEF, 0),
        };
        let st_name = writer.string_offset(Some(*name));
        let st_info = elf::SymbolInfo::new(binding, kind);
        writer.write_symbol(&Sym {
            st_name,
            section,
            st_info,
            st_other: elf::SymbolOther(visibility.0),
            st_shndx,
            st_value: u64::from(value),
            st_size: u64::from(symbol.size),
        });
    }
}

fn describe(writer: &mut Writer<'_>, one: &Contents<'_>, symtab: SectionIndex) {
    let section = one.section;
    let flags = [
        (section.is_loaded, elf::SHF_ALLOC.0),
        (section.is_code, elf::SHF_EXECINSTR.0),
        (section.is_writable, elf::SHF_WRITE.0),
        (section.group.is_some(), elf::SHF_GROUP.0),
        (section.is_kept, RETAIN),
    ];
    let flags = flags.iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag);
    let sh_name = writer.section_name_offset(Some(one.name));
    writer.write_section_header(&SectionHeader {
        sh_name,
        sh_type: if section.is_zeros { elf::SHT_NOBITS } else { elf::SHT_PROGBITS },
        sh_flags: elf::SectionFlags(flags),
        sh_addr: u64::from(section.address),
        sh_offset: one.offset,
        sh_size: u64::from(section.size),
        sh_link: 0,
        sh_info: 0,
        sh_addralign: u64::from(section.align.max(1)),
        sh_entsize: 0,
    });
    if let Some(name) = one.relocation_name {
        writer.write_relocation_section_header(name, one.index, symtab, one.relocations, section.relocations.len(), true);
    }
}

fn describe_group(writer: &mut Writer<'_>, group: &Group<'_>, symtab: SectionIndex, signature: u32) {
    let sh_name = writer.section_name_offset(Some(group.string));
    writer.write_section_header(&SectionHeader {
        sh_name,
        sh_type: elf::SHT_GROUP,
        sh_flags: elf::SectionFlags(0),
        sh_addr: 0,
        sh_offset: group.offset,
        sh_size: 4 * (group.members.len() as u64 + 1),
        sh_link: symtab.0,
        sh_info: signature,
        sh_addralign: 4,
        sh_entsize: 4,
    });
    let _ = group.index;
}

type File<'d> = ElfFile32<'d, Endianness>;
type Read<'d, 'f> = ElfSection32<'d, 'f, Endianness>;

pub(crate) const fn fault(message: String) -> ObjectError {
    ObjectError { message }
}

/// Reads an object.
pub(crate) fn read(bytes: &[u8]) -> Result<ObjectFile, ObjectError> {
    let file = File::parse(bytes).map_err(|cause| fault(format!("expected an ELF32 object, found none: {cause}")))?;
    let machine = file.elf_header().e_machine.get(file.endian()).0;
    if file.endian() != Endianness::Little || machine != MACHINE {
        return Err(fault(format!("expected a little-endian object for machine {MACHINE}, found {:?} and {machine}", file.endian())));
    }
    let mut object = ObjectFile { sources: names_of(contents(&file, SOURCE)), ..ObjectFile::default() };
    // Where each section of the file went.
    let mut places: BTreeMap<usize, usize> = BTreeMap::new();
    let mut kept = Vec::new();
    for section in file.sections() {
        let name = section.name().map_err(|cause| fault(format!("a section has no name: {cause}")))?;
        let kind = section.elf_section_header().sh_type.get(file.endian());
        let is_content = [elf::SHT_PROGBITS, elf::SHT_NOBITS, elf::SHT_INIT_ARRAY, elf::SHT_FINI_ARRAY, elf::SHT_NOTE].contains(&kind);
        if is_content && name != LINES && name != SOURCE {
            places.insert(section.index().0, object.sections.len());
            object.sections.push(section_of(&section, name, kind == elf::SHT_NOBITS)?);
            kept.push(section);
        }
    }
    for (index, section) in kept.iter().enumerate() {
        for (offset, relocation) in section.relocations() {
            let relocation = relocation_of(&file, &places, offset, &relocation, &object.sections[index])?;
            object.sections[index].relocations.push(relocation);
        }
        object.sections[index].relocations.sort_by_key(|relocation| relocation.offset);
    }
    for comdat in file.comdats() {
        let Ok(name) = comdat.name() else { return Err(fault("a group has no name".to_owned())) };
        for member in comdat.sections().filter_map(|member| places.get(&member.0)) {
            object.sections[*member].group = Some(name.to_owned());
        }
    }
    object.symbols = symbols_of(&file, &places, &object.sections)?;
    read_lines(&mut object, contents(&file, LINES))?;
    Ok(object)
}

/// The bytes of a section that may be missing.
fn contents<'d>(file: &File<'d>, name: &str) -> &'d [u8] {
    file.section_by_name(name).and_then(|section| section.data().ok()).unwrap_or(&[])
}

fn names_of(bytes: &[u8]) -> Vec<String> {
    let ended = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    if ended.is_empty() {
        Vec::new()
    } else {
        ended.split(|byte| *byte == 0).map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }
}

fn section_of(section: &Read<'_, '_>, name: &str, is_zeros: bool) -> Result<Section, ObjectError> {
    let fault = |message: String| fault(format!("{name}: {message}"));
    if section.size() > SECTION_BYTES_MAX {
        return Err(fault(format!("expected at most {SECTION_BYTES_MAX} bytes, found {}", section.size())));
    }
    let align = section.align().max(1);
    if !align.is_power_of_two() || align > ALIGN_MAX {
        return Err(fault(format!("expected an alignment up to {ALIGN_MAX}, found {}", section.align())));
    }
    let SectionFlags::Elf { sh_flags: flags, .. } = section.flags() else { return Err(fault("expected flags of ELF".to_owned())) };
    let has = |flag: u64| flags.0 & flag != 0;
    let bytes = if is_zeros { Vec::new() } else { section.data().map_err(|cause| fault(cause.to_string()))?.to_vec() };
    Ok(Section {
        name: name.to_owned(),
        is_loaded: has(elf::SHF_ALLOC.0),
        is_code: has(elf::SHF_EXECINSTR.0),
        is_writable: has(elf::SHF_WRITE.0),
        is_zeros,
        is_kept: has(RETAIN),
        address: u32::try_from(section.address()).map_err(|_| fault("expected an address of 32 bits".to_owned()))?,
        align: align as u32,
        size: if is_zeros { section.size() as u32 } else { bytes.len() as u32 },
        bytes,
        ..Section::default()
    })
}

fn relocation_of(
    file: &File<'_>,
    places: &BTreeMap<usize, usize>,
    offset: u64,
    relocation: &object::Relocation,
    section: &Section,
) -> Result<SectionRelocation, ObjectError> {
    let fault = |message: String| fault(format!("{}: relocation at {offset:#x}: {message}", section.name));
    let place = u32::try_from(offset).ok().filter(|place| *place < section.size && !section.is_zeros);
    let place = place.ok_or_else(|| fault("outside the section".to_owned()))?;
    let RelocationFlags::Elf { r_type } = relocation.flags() else { return Err(fault("expected an ELF relocation".to_owned())) };
    let kind = Relocation::numbered(r_type.0).ok_or_else(|| fault(format!("unknown type {}", r_type.0)))?;
    let addend = relocation.addend();
    let RelocationTarget::Symbol(index) = relocation.target() else {
        return if kind == Relocation::None {
            Ok(SectionRelocation { offset: place, kind, target: Target::Section(0), addend })
        } else {
            Err(fault("expected a symbol".to_owned()))
        };
    };
    let symbol = file.symbol_by_index(index).map_err(|cause| fault(cause.to_string()))?;
    let is_local = !symbol.is_global() && !symbol.is_weak();
    if let (true, SymbolSection::Section(index)) = (is_local, symbol.section()) {
        let section = places.get(&index.0).ok_or_else(|| fault("it refers to a section that is not read".to_owned()))?;
        let addend = addend.saturating_add_unsigned(symbol.address());
        return Ok(SectionRelocation { offset: place, kind, target: Target::Section(*section), addend });
    }
    let name = symbol.name().map_err(|cause| fault(cause.to_string()))?;
    Ok(SectionRelocation { offset: place, kind, target: Target::Symbol(name.to_owned()), addend })
}

fn symbols_of(file: &File<'_>, places: &BTreeMap<usize, usize>, sections: &[Section]) -> Result<Vec<Symbol>, ObjectError> {
    let is_linked = file.elf_header().e_type.get(file.endian()) == elf::ET_EXEC;
    let mut symbols: Vec<Symbol> = Vec::new();
    let mut defined: BTreeMap<String, ()> = BTreeMap::new();
    for symbol in file.symbols() {
        let name = symbol.name().map_err(|cause| fault(format!("symbol: {cause}")))?;
        let kind = symbol.elf_symbol().st_type();
        if name.is_empty() || kind == elf::STT_SECTION {
            continue;
        }
        let value = u32::try_from(symbol.address()).unwrap_or(u32::MAX);
        let location = match symbol.section() {
            SymbolSection::Section(index) => {
                let Some(section) = places.get(&index.0) else { continue };
                let value = if is_linked { value.wrapping_sub(sections[*section].address) } else { value };
                if value > sections[*section].size {
                    return Err(fault(format!("symbol {name}: offset {value:#x} is outside {}", sections[*section].name)));
                }
                Location::Section(*section, value)
            }
            SymbolSection::Absolute => Location::Absolute(value),
            _ if kind == elf::STT_FILE => Location::Absolute(0),
            SymbolSection::Common => {
                Location::Common { align: (symbol.elf_symbol().st_value.get(file.endian())).clamp(1, ALIGN_MAX as u32).next_power_of_two() }
            }
            _ => Location::Elsewhere,
        };
        let binding = match (symbol.is_weak(), symbol.is_global()) {
            (true, _) => Binding::Weak,
            (_, true) => Binding::Global,
            _ => Binding::Local,
        };
        if binding != Binding::Local && defined.insert(name.to_owned(), ()).is_some() {
            return Err(fault(format!("symbol {name} is defined twice")));
        }
        let kind = match kind {
            elf::STT_FUNC => SymbolKind::Function,
            elf::STT_OBJECT => SymbolKind::Data,
            elf::STT_FILE => SymbolKind::File,
            _ => SymbolKind::Untyped,
        };
        let visibility = match symbol.elf_symbol().st_visibility() {
            elf::STV_PROTECTED => Visibility::Protected,
            elf::STV_HIDDEN => Visibility::Hidden,
            elf::STV_INTERNAL => Visibility::Internal,
            _ => Visibility::Default,
        };
        let size = u32::try_from(symbol.size()).unwrap_or(u32::MAX);
        symbols.push(Symbol { name: name.to_owned(), binding, kind, visibility, location, size });
    }
    Ok(symbols)
}

fn read_lines(object: &mut ObjectFile, bytes: &[u8]) -> Result<(), ObjectError> {
    let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    for [section, offset, file, line] in words.as_chunks::<4>().0 {
        if let Some(section) = object.sections.get_mut(*section as usize) {
            section.lines.push(LineRow { offset: *offset, file: *file, line: *line });
        }
    }
    for section in &object.sections {
        if !section.lines.is_sorted_by_key(|row| row.offset) {
            return Err(fault(format!("{LINES}: expected ascending offsets")));
        }
        // Behind the section lie the lines of the next one in a linked file.
        if let Some(row) = section.lines.last().filter(|row| row.offset > section.size) {
            return Err(fault(format!("{LINES}: offset {:#x} is outside {}", row.offset, section.name)));
        }
    }
    Ok(())
}
