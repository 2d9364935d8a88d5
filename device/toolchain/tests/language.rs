//! The language of real kernels: macros, conditions, data, sections and symbols.

use std::collections::BTreeMap;

use ipu21::parameters::Parameters;
use toolchain::disassembler::disassemble;
use toolchain::object::Object;
use toolchain::object_file::{Binding, Location, ObjectFile, SymbolKind, Visibility};
use toolchain::{Assembled, Setting, Source, assemble_with};

fn assembled(text: &str) -> Result<Assembled, Vec<String>> {
    let source = Source { name: "a.S".to_owned(), text: text.to_owned() };
    let (defines, macros, parameters) = (BTreeMap::new(), BTreeMap::new(), Parameters::shipped());
    let setting = Setting { defines: &defines, macros: &macros, parameters: &parameters, find_header: &|_| None, vendor_names: None };
    assemble_with(&source, &setting).map_err(|faults| faults.iter().map(ToString::to_string).collect())
}

fn file(text: &str) -> ObjectFile {
    ObjectFile::parse(&assembled(text).unwrap().bytes).unwrap()
}

/// The bytes of the text section.
fn bytes(text: &str) -> Vec<u8> {
    file(text).sections[0].bytes.clone()
}

/// Each source gives these bytes in its text section.
fn check(cases: &[(&str, &[u8])]) {
    for (text, expected) in cases {
        assert_eq!(bytes(text), *expected, "{text}");
    }
}

#[test]
fn data_directives_give_their_bytes() {
    check(&[
        (".byte 1, -1, 0xff, 'a', ';'", &[1, 255, 255, 97, 59]),
        (".short 1 ; .hword 2 ; .2byte 3 ; .half 1.5h", &[1, 0, 2, 0, 3, 0, 0, 0x3e]),
        (".int 1, 2\n.4byte -1", &[1, 0, 0, 0, 2, 0, 0, 0, 255, 255, 255, 255]),
        (".quad 0x0102030405060708", &[8, 7, 6, 5, 4, 3, 2, 1]),
        (".float 1.0, -2", &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]),
        (".double 1", &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
        (r#".ascii "a\n\"\\\x41\101;", "b""#, b"a\n\"\\AA;b"),
        (".asciz \"a, b\" ; .string \"\"", b"a, b\0\0"),
        (".fill 2, 2, 0x1234 ; .fill 2 ; .space 2, 7 ; .zero 1", &[0x34, 0x12, 0x34, 0x12, 0, 0, 7, 7, 0]),
        (".byte 1 ; .p2align 2, 9 ; .balign 16, 0, 3 ; .byte 2", &[1, 9, 9, 9, 2]),
        (".byte 1 ; .align 4 ; .byte 2 ; .align 8", &[1, 0, 0, 0, 2, 0, 0, 0]),
        ("nop ; .align 8", &[0, 0, 0xe0, 0x19, 0, 0, 0xe0, 0x19]),
    ]);
}

#[test]
fn macros_take_arguments_in_every_way() {
    check(&[
        (".macro m a, b=2, c:req\n.byte \\a, \\b, \\c\n.endm\nm 1,,3\nm 4 5 6\nm c=9, a=7, b=8", &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (".macro m a:req b:vararg\n.byte \\a\n.ifnb \\b\nm \\b\n.endif\n.endm\nm 1, 2, 3", &[1, 2, 3]),
        (".macro m a b\n.byte \\a, \\b\n.endm\nm 1 + 1 (2 + 1)", &[2, 3]),
        (".macro m t\n.ascii \"\\t\"\n.endm\nm \"x, y\"", b"x, y"),
        (".macro m n\nx\\@_\\n\\()_y = \\n\n.byte x\\@_\\n\\()_y\n.endm\nm 1\nm 2", &[1, 2]),
        (".macro outer\n.macro inner a\n.byte \\a\n.endm\n.endm\nouter\ninner 5", &[5]),
        (".macro m\n.byte 1\n.exitm\n.byte 2\n.endm\nm\n.purgem m\n.macro m\n.byte 3\n.endm\nm", &[1, 3]),
        (".macro m\n.rept 3\n.byte 1\n.exitm\n.endr\n.byte 2\n.endm\nm", &[1, 2]),
        (".irp x, 1, 2, 3\n.byte \\x\n.endr\n.irpc c, 45\n.byte \\c\n.endr\n.irp x 6 7\n.byte \\x\n.endr", &[1, 2, 3, 4, 5, 6, 7]),
        (".rept 2\n.irp x, 1, 2\n.byte \\x\n.endr\n.endr", &[1, 2, 1, 2]),
    ]);
}

#[test]
fn every_condition_chooses() {
    #[rustfmt::skip]
    let cases = [
        (".if 1", true), (".if 0", false), (".ifeq 0", true), (".ifne 0", false), (".ifgt 1", true), (".ifgt 0", false),
        (".ifge 0", true), (".iflt -1", true), (".ifle 1", false), (".ifdef X", true), (".ifndef X", false), (".ifnotdef Y", true),
        (".ifb", true), (".ifnb x", true), (".ifb x", false), (".ifc a, a", true), (".ifnc a, a", false), (".ifc a b, a c", false),
        (".ifeqs \"a,b\", \"a,b\"", true), (".ifnes \"a\", \"b\"", true), (".if X == 3 && !(X & 4)", true), (".if X >= 4 || X != 3", false),
    ];
    for (condition, taken) in cases {
        assert_eq!(bytes(&format!("X = 3\n{condition}\n.byte 1\n.else\n.byte 0\n.endif")), [u8::from(taken)], "{condition}");
    }
    check(&[(".if 0\n.byte 1\n.elseif 1\n.if 0\n.byte 2\n.else\n.byte 3\n.endif\n.elseif 1\n.byte 4\n.endif", &[3])]);
}

#[test]
fn sections_have_flags_and_hold_what_is_put_there() {
    let text = "nop\n.data\n.byte 1\n.section .rodata.x, \"a\", @progbits\n.align 4\n.long 7\n.previous\n.byte 2\n.pushsection .bss\n.zero 12\n\
                .popsection\n.byte 3\n.section .text.f, \"axG\", @progbits, f, comdat\nf: nop\n.section .note, \"\"\n.byte 9\n.text\nnop";
    let file = file(text);
    let shown: Vec<String> = file
        .sections
        .iter()
        .filter(|section| !section.name.starts_with(".debug"))
        .map(|section| {
            let flags = [(section.is_loaded, 'a'), (section.is_code, 'x'), (section.is_writable, 'w'), (section.is_zeros, 'z')];
            let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).collect();
            format!("{} {flags} {} {} {}", section.name, section.align, section.size, section.group.as_deref().unwrap_or("-"))
        })
        .collect();
    #[rustfmt::skip]
    assert_eq!(shown, [
        ".text ax 8 8 -", ".data aw 1 3 -", ".rodata.x a 4 4 -", ".bss awz 1 12 -", ".text.f ax 8 4 f", ".note  1 1 -",
    ]);
    assert_eq!(file.sections[1].bytes, [1, 2, 3]);
}

#[test]
fn symbols_have_bindings_types_sizes_and_addresses() {
    let text = ".globl f, size, alias\n.weak w, elsewhere\n.type f, @function\n.type w, STT_OBJECT\n\
                nop\nf: nop\nnop\n.Lend:\n.size f, .Lend - f\n.data\nw: .long 1\n.size w, 4\n.set size, 12\n.equ alias, f + 4\n.comm shared, 24, 8\n.local l\nl: .byte 0\n.weak elsewhere";
    let file = file(text);
    let of = |name: &str| {
        let symbol = file.symbols.iter().find(|symbol| symbol.name == name).unwrap();
        (symbol.binding, symbol.kind, symbol.location, symbol.size)
    };
    assert_eq!(of("f"), (Binding::Global, SymbolKind::Function, Location::Section(0, 4), 8));
    assert_eq!(of("w"), (Binding::Weak, SymbolKind::Data, Location::Section(1, 0), 4));
    assert_eq!(of("size"), (Binding::Global, SymbolKind::Untyped, Location::Absolute(12), 0));
    assert_eq!(of("alias"), (Binding::Global, SymbolKind::Untyped, Location::Section(0, 8), 0));
    assert_eq!(of("shared"), (Binding::Global, SymbolKind::Untyped, Location::Common { align: 8 }, 24));
    assert_eq!(of("l"), (Binding::Local, SymbolKind::Untyped, Location::Section(1, 4), 0));
    assert_eq!(of("elsewhere"), (Binding::Weak, SymbolKind::Untyped, Location::Elsewhere, 0));
}

#[test]
fn references_between_sections_are_relocated() {
    let text = ".section .text.a, \"ax\"\n.globl f\nf: call $m10, .Lg\nbr $m10\n.section .text.b, \"ax\"\nnop\n.Lg: setzi $m0, value\nbr $m10\n\
                .data\n.align 4\nvalue: .long .Lg, value - 4";
    let object = Object::parse(&assembled(text).unwrap().bytes).unwrap();
    let linked = object.link_at(0x50000, &BTreeMap::new()).unwrap();
    let words: Vec<u32> = linked.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    // The first section is empty; f at 0, .Lg at 8 + 4, value behind it at 20.
    assert_eq!(words, [0x18a1_4003, 0x43a0_0000, 0x19e0_0000, 0x1905_0014, 0x43a0_0000, 0x5_000c, 0x5_0010]);
}

#[test]
fn directives_of_the_machine_lift_rules() {
    let refused = |text: &str| assembled(text).unwrap_err().len();
    let rpt = ".worker\nrpt 3, 0\nnop";
    assert_eq!((refused(rpt), assembled(&format!(".allow_invalid_repeat\n{rpt}")).unwrap().warnings.len()), (1, 0));
    let mode = ".supervisor\nexitz $m15";
    assert_eq!(refused(mode), 1);
    assert!(assembled(&format!(".allow_invalid_execution_mode\n{mode}")).is_ok());
    assert_eq!(refused(&format!(".allow_invalid_execution_mode\n.error_on_invalid_execution_mode\n{mode}")), 1);
    let overlap = ".worker\n{ ld64step $a0:1, $m15, $m2+=, 1 ; zero $a1 }";
    assert_eq!(refused(overlap), 1);
    assert!(assembled(&format!(".allow_invalid_operands\n{overlap}")).is_ok());
    let lanes = ".worker\n{ nop ; nop }";
    assert_eq!(refused(lanes), 1);
    let allowed = assembled(&format!(".warn_on_invalid_bundles\n{lanes}")).unwrap();
    let warning = "a.S:3:9: expected an aux-lane instruction, found `setzi` of the main lane";
    assert_eq!(allowed.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), [warning]);
    let order = ".worker\n{ f32add $a0, $a1, $a2 ; add $m0, $m1, 1 }";
    let straight = ".worker\n{ add $m0, $m1, 1 ; f32add $a0, $a1, $a2 }";
    assert_eq!(refused(order), 1);
    assert_eq!(bytes(&format!(".allow_optimizations\n{order}")), bytes(straight));
}

#[test]
fn messages_name_every_macro_on_the_way() {
    let text = ".macro inner a\n setzi $m0, \\a\n.endm\n.macro outer b\n inner \\b\n.endm\n.irp x, 1<<20\n outer \\x\n.endr";
    let place = "in macro `inner`, used at line 5; in macro `outer`, used at line 8; in `.irp`, used at line 7";
    let message = format!("a.S:2:2: `setzi`: expected a value in 0..=1048575, found 1048576 ({place})");
    assert_eq!(assembled(text).unwrap_err(), [message]);
    assert_eq!(assembled(".warning \"slow\"").unwrap().warnings[0].to_string(), "a.S:1:1: slow");
}

#[test]
fn a_vertex_in_the_vendors_manner_assembles_unchanged() {
    let file = file(include_str!("data/vertex.S"));
    let (index, section) = file.sections.iter().enumerate().find(|(_, section)| section.name.contains("scale")).unwrap();
    assert_eq!(section.name, ".text.__runCodelet_scale");
    let symbol = file.symbols.iter().find(|symbol| symbol.name == "__runCodelet_scale").unwrap();
    assert_eq!((symbol.kind, symbol.location, symbol.size), (SymbolKind::Function, Location::Section(index, 0), section.size));
    let usage = file.sections.iter().find(|section| section.name == ".ipubuild.stack_usage").unwrap();
    assert_eq!((usage.is_loaded, usage.size, usage.relocations.len()), (false, 8, 1));
    let lines: Vec<String> = disassemble(&section.bytes, 0).into_iter().map(|line| line.text).collect();
    #[rustfmt::skip]
    assert_eq!(lines, [
        "setzi $m2, 0", "runall $m2, $m0, 0", "sync 2", "br $m10",
        "get $m1, 1", "and $m1, $m1, 7", "ld32 $m0, $m13, $m15, 0", "ld32 $m3, $m13, $m15, 1", "setzi $a0, 8", "uput 1, $a0",
        "shl $m4, $m1, 3", "cmpslt $m5, $m4, 48", "brz $m5, 0x0", "nop",
        "{ rpt $m3, 0 ; fnop }", "{ ld64step $a0:1, $m15, $m0+=, 6 ; f16v4add $a2:3, $a0:1, $a2:3 }", "exitz $m15",
    ]);
}

/// The instructions of the text section.
fn listing(text: &str) -> Vec<String> {
    disassemble(&bytes(text), 0).into_iter().map(|line| line.text).collect()
}

#[test]
fn a_repeat_stands_alone_where_optimizations_put_its_body_in_place() {
    let body = "{ add $m1, $m0, 5 ; fnop }";
    for repeat in ["{ rpt $m5, 0 ; fnop }", "{ fnop ; rpt $m5, 0 }"] {
        let optimized = format!(".allow_optimizations\n.worker\nnop\n{repeat}\n{body}");
        assert_eq!(listing(&optimized), ["nop", "rpt $m5, 0", body]);
        assert_eq!(listing(&optimized.replace("nop\n{", "{")), ["{ rpt $m5, 0 ; fnop }", body]);
        assert!(assembled(&optimized.replace(".allow_optimizations", "")).is_err());
    }
    // Nothing that does something goes.
    let fault = "a.S:4:1: a bundle must lie at a multiple of 8, found offset 0x4; put `.align 8` before it";
    let busy = format!(".allow_optimizations\n.worker\nnop\n{{ rpt $m5, 0 ; zero $a0 }}\n{body}");
    assert_eq!(assembled(&busy).unwrap_err(), [fault]);
}

#[test]
fn modes_are_checked_once_one_is_said() {
    assert_eq!(listing("f32add $a0, $a1, $a2 ; sync 2"), ["f32add $a0, $a1, $a2", "sync 2"]);
    let fault = "a.S:1:14: `f32add` is for workers only; this is supervisor code";
    assert_eq!(assembled(".supervisor; f32add $a0, $a1, $a2").unwrap_err(), [fault]);
}

#[test]
fn constants_may_begin_with_a_dollar() {
    assert_eq!(listing(".set $index, 12\nget $m1, $index"), ["get $m1, 12"]);
}

#[test]
fn compilers_say_where_code_was_written() {
    let read = file(".file \"a.cpp\"\n.file 1 \"src\" \"a.cpp\"\nnop\n.loc 1 7 3\nnop\nnop\n.data\n.int 1\n.ident \"popc\"");
    assert_eq!([0, 4, 8].map(|offset| read.line_of(0, offset).unwrap()), [("a.S", 3), ("src/a.cpp", 7), ("src/a.cpp", 7)]);
    assert_eq!(read.line_of(1, 0), Some(("a.S", 8)));
    let symbol = &read.symbols[0];
    assert_eq!((symbol.name.as_str(), symbol.kind, symbol.location), ("a.cpp", SymbolKind::File, Location::Absolute(0)));
    let comment = read.sections.iter().find(|section| section.name == ".comment").unwrap();
    assert_eq!((comment.bytes.as_slice(), comment.is_loaded), (&b"popc\0"[..], false));
}

#[test]
fn symbols_are_shown_as_far_as_is_said() {
    let read = file(".globl a, b, c\n.hidden a, d\n.protected b\n.internal c\n.protected c\n.file \"b\"\na: b: c: bri d");
    let seen: Vec<_> = read.symbols.iter().map(|symbol| (symbol.name.as_str(), symbol.kind, symbol.binding, symbol.visibility)).collect();
    let plain = SymbolKind::Untyped;
    let expected = [
        ("b", SymbolKind::File, Binding::Local, Visibility::Default),
        ("a", plain, Binding::Global, Visibility::Hidden),
        ("b", plain, Binding::Global, Visibility::Protected),
        ("c", plain, Binding::Global, Visibility::Internal),
        ("d", plain, Binding::Global, Visibility::Hidden),
    ];
    assert_eq!(seen, expected);
}
