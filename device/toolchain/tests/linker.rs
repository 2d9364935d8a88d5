//! Objects linked to images, and object files nobody vouches for.

use std::collections::BTreeMap;

use ipu21::parameters::Parameters;
use ipu21::relocation::{Relocation, TABLE};
use proptest::prelude::*;
use toolchain::archive;
use toolchain::linker::{Image, LinkSetting, link_files};
use toolchain::object::Object;
use toolchain::object_file::{Binding, Location, ObjectFile, Section, SectionRelocation, Symbol, SymbolKind, Target, Visibility};
use toolchain::preprocessor::Include;
use toolchain::{Setting, Source, assemble, assemble_with};

const BASE: u32 = 0x4c100;

fn file(name: &str, text: &str) -> ObjectFile {
    let source = Source { name: name.to_owned(), text: text.to_owned() };
    ObjectFile::parse(&assemble(&source, &BTreeMap::new(), &Parameters::shipped()).unwrap()).unwrap()
}

fn setting(entry: Option<&str>, keep_all: bool) -> LinkSetting {
    LinkSetting { base: BASE, entry: entry.map(str::to_owned), roots: Vec::new(), keep_all }
}

fn linked(texts: &[&str], entry: Option<&str>) -> Result<Image, Vec<String>> {
    let files: Vec<ObjectFile> = texts.iter().zip(["a.S", "b.S", "c.S"]).map(|(text, name)| file(name, text)).collect();
    link_files(&files, &setting(entry, entry.is_none())).map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn words(image: &Image, section: usize) -> Vec<u32> {
    image.file.sections[section].bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

#[test]
fn each_of_the_relocations_writes_what_the_table_of_the_isa_says() {
    // The symbol lies at 0x4c120 = base + 0x120; the word below it has all bits set where they must stay.
    #[rustfmt::skip]
    let expected: [(&str, u64, u32, u64); 14] = [
        ("R_COLOSSUS_NONE",           0x4c120, 4, 0xffff_ffff),
        ("R_COLOSSUS_8",              0x7f,    4, 0xffff_ff7f),
        ("R_COLOSSUS_16",             0x1234,  4, 0xffff_1234),
        ("R_COLOSSUS_20",             0x4c120, 4, 0xfff4_c120),
        ("R_COLOSSUS_32",             0x4c120, 4, 0x0004_c120),
        ("R_COLOSSUS_64",             0x4c120, 8, 0x0004_c120),
        ("R_COLOSSUS_RELATIVE_16_S2", 0x4c120, 4, 0xffff_0048),
        ("R_COLOSSUS_18_S2",          0x4c120, 4, 0xfffd_3048),
        ("R_COLOSSUS_19_S2",          0x4c120, 4, 0xfff9_3048),
        ("R_COLOSSUS_RUN",            0x4c120, 4, 0xfff0_f048),
        ("R_COLOSSUS_16_S3",          0x4c120, 4, 0xffff_9824),
        ("R_COLOSSUS_16_S4",          0x4c120, 4, 0xffff_4c12),
        ("R_COLOSSUS_16_S5",          0x4c120, 4, 0xffff_2609),
        ("R_COLOSSUS_21",             0x4c120, 4, 0xffe4_c120),
    ];
    for ((number, name, kind), (wanted, address, size, word)) in TABLE.into_iter().zip(expected) {
        assert_eq!((name, Relocation::numbered(number)), (wanted, Some(kind)));
        let relocation = SectionRelocation { offset: 0, kind, target: Target::Symbol("s".to_owned()), addend: 0 };
        let bytes = vec![0xff; size as usize];
        let section = Section {
            name: ".data".to_owned(),
            is_loaded: true,
            align: 8,
            bytes,
            size,
            relocations: vec![relocation],
            ..Section::default()
        };
        let location = Location::Absolute(address as u32);
        let (name_of, kind_of, visibility) = ("s".to_owned(), SymbolKind::Untyped, Visibility::Default);
        let symbol = Symbol { name: name_of, binding: Binding::Global, kind: kind_of, visibility, location, size: 0 };
        let object = ObjectFile { sources: vec!["x".to_owned()], sections: vec![section], symbols: vec![symbol] };
        // Through the bytes of a file as well.
        let read = ObjectFile::parse(&object.write(0)).unwrap();
        let image = link_files(&[read], &setting(None, true)).unwrap();
        let mut found = image.file.sections[0].bytes.clone();
        found.resize(8, 0);
        assert_eq!(u64::from_le_bytes(found.try_into().unwrap()), word, "{name}");
    }
}

#[test]
fn code_comes_first_and_gaps_in_it_are_nops() {
    let one = ".data\n.byte 1\n.text\nnop\n.section .rodata\n.align 4\n.long f, .Lbss\n.bss\n.zero 4\n.Lbss: .zero 4";
    let two = ".globl f\n.align 16\nf: br $m10\n.data\n.align 4\n.long 9";
    let image = linked(&[one, two], None).unwrap();
    let shown: Vec<(&str, u32, u32)> =
        image.file.sections.iter().map(|section| (section.name.as_str(), section.address, section.size)).collect();
    assert_eq!(shown, [(".text", BASE, 20), (".rodata", 0x4c114, 8), (".data", 0x4c11c, 8), (".bss", 0x4c124, 8)]);
    assert_eq!(words(&image, 0), [0x19e0_0000, 0x19e0_0000, 0x19e0_0000, 0x19e0_0000, 0x43a0_0000]);
    assert_eq!(words(&image, 1), [0x4c110, 0x4c128]);
    assert_eq!(image.symbols, BTreeMap::from([("f".to_owned(), 0x4c110)]));
}

#[test]
fn strong_symbols_go_before_weak_ones_and_absent_weak_ones_are_zero() {
    let weak = ".weak f, none\n.section .text.f, \"ax\"\nf: nop\n.data\n.long f, none";
    let strong = ".globl f\nnop\nf: br $m10";
    let value = |texts: &[&str]| {
        let image = linked(texts, None).unwrap();
        let data = image.file.sections.iter().position(|section| section.name == ".data").unwrap();
        words(&image, data)
    };
    assert_eq!(value(&[weak]), [BASE, 0]);
    assert_eq!(value(&[weak, weak]), [BASE, 0, BASE, 0]);
    assert_eq!(value(&[weak, strong]), [BASE + 12, 0]);
    assert_eq!(value(&[strong, weak]), [BASE + 4, 0]);
    assert_eq!(linked(&[strong, strong], None).unwrap_err(), ["symbol `f` is defined in a.S and in b.S"]);
    assert_eq!(linked(&[".long g\nnop\n.half h"], None).unwrap_err(), ["a.S:1: undefined symbol `g`", "a.S:3: undefined symbol `h`"]);
}

#[test]
fn common_symbols_of_one_name_share_the_largest_room() {
    let image = linked(&[".comm c, 4, 4\n.long c", ".comm c, 32, 16\n.long c"], None).unwrap();
    let common = image.file.sections.last().unwrap();
    assert_eq!((common.name.as_str(), common.address % 16, common.size), (".common", 0, 32));
    // The second text begins at the next multiple of 8.
    assert_eq!(words(&image, 0), [common.address, 0x19e0_0000, common.address]);
}

#[test]
fn one_of_each_group_stays() {
    let with =
        |value: u32| format!(".weak f\n.section .text.f, \"axG\", @progbits, f, comdat\nf: setzi $m0, {value}\nbr $m10\n.text\nbri f");
    let image = linked(&[&with(1), &with(2)], None).unwrap();
    assert_eq!(words(&image, 0)[2..4], [0x1900_0001, 0x43a0_0000]);
    assert_eq!(image.dropped, [(1, 1)]);
    assert_eq!(words(&image, 0)[0], words(&image, 0)[4]);
}

#[test]
fn what_nothing_reaches_is_left_out() {
    let text = ".globl main, unused\n.section .text.main, \"ax\"\nmain: call $m10, .Lhelp\nbr $m10\n.section .text.help, \"ax\"\n\
                .Lhelp: setzi $m0, table\nbr $m10\n.section .text.unused, \"ax\"\nunused: call $m10, missing\n.data\n.align 4\ntable: .long 1\n\
                .section .keep, \"aR\"\n.byte 7\n.section .rodata.other, \"a\"\n.byte 8";
    let image = linked(&[text], Some("main")).unwrap();
    let names: Vec<(&str, u32)> = image.file.sections.iter().map(|section| (section.name.as_str(), section.size)).collect();
    assert_eq!(names, [(".text", 16), (".rodata", 1), (".data", 4)]);
    assert_eq!((image.entry, image.symbols.contains_key("unused")), (BASE, false));
    let map = image.map(&[file("a.S", text)]).unwrap();
    let expected = "   address      bytes  section\n   0x4c100          8  .text.main of a.S\n   0x4c108          8  .text.help of a.S\n   \
                    0x4c110          1  .keep of a.S\n   0x4c114          4  .data of a.S\n\n   address  symbol\n   0x4c100  main\n\n     \
                    bytes  left out\n         4  .text.unused of a.S\n         1  .rodata.other of a.S\n";
    assert_eq!(map, expected);
    assert_eq!(linked(&[text], None).unwrap_err(), ["a.S:9: undefined symbol `missing`"]);
    assert_eq!(linked(&[text], Some("start")).unwrap_err(), ["entry:0: undefined symbol `start`"]);
}

#[test]
fn code_outside_region_0_is_refused() {
    let object = [file("a.S", "nop")];
    let errors = link_files(&object, &LinkSetting { base: 0x7_fffc, ..setting(None, true) });
    assert!(errors.is_err());
    let errors = link_files(&object, &LinkSetting { base: u32::MAX, ..setting(None, true) }).unwrap_err();
    assert_eq!(errors[0].to_string(), "the code would end at 0x100000003, expected at most 0x80000");
}

#[test]
fn an_executable_is_read_back_with_its_addresses_and_lines() {
    let image = linked(&["nop\n.globl f\n\nf: br $m10", ".data\n.globl d\n.long f\nd: .long 2"], None).unwrap();
    let read = ObjectFile::parse(&image.write(5)).unwrap();
    assert_eq!(read.sections[..2].iter().map(|section| section.address).collect::<Vec<_>>(), [BASE, BASE + 8]);
    let of = |name: &str| read.symbols.iter().find(|symbol| symbol.name == name).unwrap().location;
    assert_eq!((of("f"), of("d")), (Location::Section(0, 4), Location::Section(1, 4)));
    assert_eq!(read.line_of(0, 4), Some(("a.S", 4)));
    assert_eq!(read.line_of(1, 4), Some(("b.S", 4)));
}

/// In a linked file they would be lines of the section behind it.
#[test]
fn lines_behind_their_section_are_refused() {
    let mut object = file("a.S", ".text\n.globl f\nf: nop\n nop\n");
    let code = object.sections.iter_mut().find(|section| !section.lines.is_empty()).unwrap();
    code.lines.last_mut().unwrap().offset = code.size + 4;
    let fault = ObjectFile::parse(&object.write(0)).unwrap_err();
    assert_eq!(fault.to_string(), ".ipubuild.lines: offset 0xc is outside .text");
}

#[test]
fn members_of_archives_come_as_they_are_asked_for() {
    let sources = ["a: bri b", ".globl b\nb: bri c", ".globl c\nc: nop", ".globl c\nc: nop\nnop", ".globl d\nd: nop"];
    let mut members: Vec<ObjectFile> = sources.iter().map(|text| file(text, text)).collect();
    let mut objects = vec![members.remove(0)];
    archive::add_needed(&mut objects, members.clone(), &[]);
    let names = |objects: &[ObjectFile]| -> Vec<String> { objects.iter().map(|object| object.sources[0].clone()).collect() };
    assert_eq!(names(&objects), sources[..3]);
    archive::add_needed(&mut objects, members.clone(), &["d".to_owned(), "nobody".to_owned()]);
    assert_eq!(names(&objects)[3..], sources[4..]);
    let mut weak = vec![file("weak", ".weak d\nbri d")];
    archive::add_needed(&mut weak, members, &[]);
    assert_eq!(names(&weak), ["weak"]);
}

#[test]
fn hidden_symbols_are_found_by_other_objects_and_local_in_the_image() {
    let image = linked(&[".hidden g\nbri g\nbri h", ".globl g, h\n.hidden h\n.protected g\ng: nop\nh: nop"], None).unwrap();
    assert_eq!(image.symbols, BTreeMap::from([("g".to_owned(), BASE + 8), ("h".to_owned(), BASE + 12)]));
    let written = ObjectFile::parse(&image.write(0)).unwrap();
    let seen: Vec<(&str, Binding, Visibility)> =
        written.symbols.iter().map(|symbol| (symbol.name.as_str(), symbol.binding, symbol.visibility)).collect();
    assert_eq!(seen, [("g", Binding::Local, Visibility::Hidden), ("h", Binding::Local, Visibility::Hidden)]);
}

#[test]
fn line_tables_name_included_files() {
    let find = |include: &Include<'_>| Some(Source { name: include.name.to_owned(), text: "\n.macro m\nnop\n.endm\nnop".to_owned() });
    let (none, macros, parameters) = (BTreeMap::new(), BTreeMap::new(), Parameters::shipped());
    let setting = Setting { defines: &none, macros: &macros, parameters: &parameters, find_header: &find, vendor_names: None };
    let source = Source { name: "a.S".to_owned(), text: "nop\n#include \"b.inc\"\nm\nbri missing".to_owned() };
    let bytes = assemble_with(&source, &setting).unwrap().bytes;
    // What a macro brings counts where its text stands, as in messages.
    let expected = [("a.S", 1), ("b.inc", 5), ("b.inc", 3), ("a.S", 4)];
    let read = ObjectFile::parse(&bytes).unwrap();
    assert_eq!([0, 4, 8, 12].map(|offset| read.line_of(0, offset).unwrap()), expected);
    let object = Object::parse(&bytes).unwrap();
    assert_eq!([0, 4, 8, 12].map(|offset| object.line_of(offset).unwrap()), expected);
    assert_eq!(object.link_at(BASE, &BTreeMap::new()).unwrap_err().to_string(), "a.S:4: undefined symbol `missing`");
    let table = &read.sections.iter().find(|section| section.name == ".debug_line").unwrap().bytes;
    let program = 10 + u32::from_le_bytes(table[6..10].try_into().unwrap()) as usize;
    assert_eq!(&table[program - 18..program], b"\0a.S\0\0\0\0b.inc\0\0\0\0\0"[..].get(..18).unwrap());
    // Address, row; file 2, 4 bytes and 4 lines on, row; 4 on, 2 lines back, row; file 1, 4 on, 1 line on, row; 4 on, end.
    let rows: &[u8] = &[0, 5, 2, 0, 0, 0, 0, 1, 4, 2, 2, 4, 3, 4, 1, 2, 4, 3, 0x7e, 1, 4, 1, 2, 4, 3, 1, 1, 2, 4, 0, 1, 1];
    assert_eq!(&table[program..], rows);
}

#[test]
fn line_tables_say_where_each_instruction_was_written() {
    let object = file("a.S", "nop\nnop\n\n.rept 2\nnop\n.endr");
    let table = object.sections.iter().find(|section| section.name == ".debug_line").unwrap();
    // Read by hand after DWARF 4, 6.2.4 and 6.2.5: version 4, header, address 0 (relocated), then rows.
    let bytes = &table.bytes;
    assert_eq!(u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len() - 4);
    assert_eq!(bytes[4..6], [4, 0]);
    let program = 10 + u32::from_le_bytes(bytes[6..10].try_into().unwrap()) as usize;
    assert_eq!(bytes[10..16], [1, 1, 1, 0, 1, 13]);
    assert_eq!(&bytes[program - 9..program], b"\0a.S\0\0\0\0\0");
    let rows: &[u8] = &[0, 5, 2, 0, 0, 0, 0, 1, 2, 4, 3, 1, 1, 2, 4, 3, 3, 1, 2, 4, 1, 2, 4, 0, 1, 1];
    assert_eq!(&bytes[program..], rows);
    assert_eq!(
        table.relocations.iter().map(|entry| (entry.offset as usize, entry.kind)).collect::<Vec<_>>(),
        [(program + 3, Relocation::Word32)]
    );
}

fn sample() -> Vec<u8> {
    let text = ".globl f\n.weak w\n.comm c, 8\nf: call $m10, g\n.section .text.w, \"axG\", @progbits, w, comdat\nw: br $m10\n.data\n.long f, .Lx\n.Lx: .byte 1\n.bss\n.zero 8";
    let source = Source { name: "a.S".to_owned(), text: text.to_owned() };
    assemble(&source, &BTreeMap::new(), &Parameters::shipped()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn changed_object_files_are_read_or_refused_and_linked_or_refused(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        end in proptest::option::of(any::<proptest::sample::Index>()),
        base in any::<u32>(),
    ) {
        let mut bytes = sample();
        for (at, value) in changes {
            let index = at.index(bytes.len());
            bytes[index] = value;
        }
        if let Some(end) = end {
            bytes.truncate(end.index(bytes.len()));
        }
        if let Ok(object) = ObjectFile::parse(&bytes) {
            for keep_all in [true, false] {
                let setting = LinkSetting { base, entry: (!keep_all).then(|| "f".to_owned()), roots: vec!["w".to_owned()], keep_all };
                if let Ok(image) = link_files(std::slice::from_ref(&object), &setting) {
                    let _ = image.map(std::slice::from_ref(&object));
                    let _ = ObjectFile::parse(&image.write(0));
                }
            }
        }
    }

    #[test]
    fn changed_archives_are_read_or_refused(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        end in any::<proptest::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let object = sample();
        let mut bytes = format!("!<arch>\n{:<16}{:<32}{:<10}`\n", "a.o/", 0, object.len()).into_bytes();
        bytes.extend(object);
        let members = archive::read(&bytes).unwrap();
        prop_assert_eq!(members[0].name.as_str(), "a.o");
        for (at, value) in changes {
            let index = at.index(bytes.len());
            bytes[index] = value;
        }
        if is_cut {
            bytes.truncate(end.index(bytes.len()));
        }
        if let Ok(members) = archive::read(&bytes) {
            let mut objects = Vec::new();
            archive::add_needed(&mut objects, members.into_iter().map(|member| member.object).collect(), &["f".to_owned()]);
            let _ = link_files(&objects, &setting(None, true));
        }
    }

    #[test]
    fn any_bytes_are_no_object_or_one(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = ObjectFile::parse(&bytes);
        let _ = archive::read(&bytes);
        let _ = archive::read(&[b"!<arch>\n", &bytes[..]].concat());
    }
}
