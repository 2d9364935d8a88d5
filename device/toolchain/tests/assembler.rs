//! What the assembler accepts, what it refuses, and how it says so.

use std::collections::BTreeMap;

use ipu21::parameters::Parameters;
use proptest::prelude::*;
use toolchain::disassembler::disassemble;
use toolchain::object::{Object, link};
use toolchain::preprocessor::Include;
use toolchain::{Setting, Source, assemble, assemble_with};

const SAMPLE: &str = include_str!("data/sample.S");
const BASE: u32 = 0x54000;

fn object(text: &str) -> Result<Object, Vec<String>> {
    let source = Source { name: "a.S".to_owned(), text: text.to_owned() };
    let defines = BTreeMap::from([("ROWS".to_owned(), 32)]);
    let bytes = assemble(&source, &defines, &Parameters::shipped());
    let bytes = bytes.map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    Ok(Object::parse(&bytes).unwrap())
}

fn listing(text: &str) -> Vec<String> {
    let object = object(text).unwrap();
    let externals = BTreeMap::from([("elsewhere".to_owned(), 0x60000)]);
    disassemble(&object.link_at(BASE, &externals).unwrap(), BASE).into_iter().map(|line| line.text).collect()
}

/// Each source gives exactly these errors.
fn refused(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(object(text).map(|_| ()).unwrap_err().join("\n"), *expected, "{text}");
    }
}

#[test]
fn the_sample_assembles_to_the_words_it_says() {
    #[rustfmt::skip]
    let expected = [
        "setzi $m1, 0x54040", "runall $m1, $m0, 0", "sync 2", "brnzdec $m2, 0x5400c", "bri 0x54018", "nop", "call $m10, 0x60004", "br $m10",
        // Data: an address, a distance, all ones; halves; bytes; zeros; an address of 21 bits.
        ".int 0x54000", ".int 0x68", ".int 0xffffffff", ".int 0x3c001234", ".int 0xff030201", ".int 0x0", ".int 0x60000",
    ];
    let lines = listing(SAMPLE);
    let code = lines.iter().position(|line| line.starts_with("get")).unwrap();
    assert_eq!(lines[..8], expected[..8]);
    // Data words may look like instructions, so they are compared as bytes.
    let bytes = object(SAMPLE).unwrap().link_at(BASE, &BTreeMap::from([("elsewhere".to_owned(), 0x60000)])).unwrap();
    let data: Vec<String> = bytes.as_chunks::<4>().0[8..15].iter().map(|word| format!(".int {:#x}", u32::from_le_bytes(*word))).collect();
    let worker = u32::from_le_bytes(bytes[..4].try_into().unwrap()) & 0xf_ffff;
    assert_eq!(worker, BASE + 64);
    assert_eq!(data, expected[8..]);
    #[rustfmt::skip]
    assert_eq!(lines[code..], [
        "get $m0, 1", "and $m0, $m0, 7", "ld32 $m2, $m13, $m15, 0", "setzi $m3, 284280", "or $m3, $m3, 0x12300000", "setzi $a4, 48640",
        "uput 1, $a4", "add $m3, $m3, -1", "add $m3, $m3, -1", "addz $m3, $m3, 32767", "brz $m0, 0x54070", "mov $m1, $m0", "brz $m0, 0x54078",
        "mov $m1, $m0", "cmpslt $m4, $m0, 2", "nop",
        "{ rpt $m4, 3 ; zero $a0:1 }",
        "{ ld64step $a0:1, $m15, $m2+=, 1 ; f16v4add $a2:3, $a0:1, $a2:3 }",
        "{ ld64step $a6:7, $m15, $m2+=, -2 ; f16v4mul $a2:3, $a4:BL, $a6:7 }",
        "{ st32 $a0, $m12, $m15, 1 ; fnop }", "{ st32 $a0, $m12, $m15, 2 ; fnop }",
        "exitz $m15",
    ]);
}

#[test]
fn symbols_lines_and_the_source_are_in_the_object() {
    let object = object(SAMPLE).unwrap();
    assert_eq!(object.source_name(), "a.S");
    assert_eq!(object.symbols().iter().map(|(name, offset)| (name.as_str(), *offset)).collect::<Vec<_>>(), [("sample", 0), ("table", 32)]);
    assert_eq!([0, 8, 12].map(|offset| object.line_of(offset).unwrap()), [("a.S", 12), ("a.S", 13), ("a.S", 14)]);
}

#[test]
fn faults_of_operands_name_what_was_expected_and_found() {
    refused(&[
        (".worker; ad $m0, $m1, 1", "a.S:1:10: unknown instruction `ad`; nearest is `add`"),
        (" add $m0, $m1, 70000", "a.S:1:16: `add`: expected a value in -32768..=32767 or a value in 0..=65535, found 70000"),
        (" add $m0, $q1, 7", "a.S:1:11: unknown register `$q1`"),
        (" add $m0, $m1, 7+", "a.S:1:18: expected a value, found the end"),
        (" add $m0, $m1, ROWZ", "a.S:1:16: unknown symbol `ROWZ`"),
        (" add $m0, $m1, 1/0", "a.S:1:16: division by zero"),
        ("x: add $m0, $m1, x", "a.S:1:18: `add`: expected a number, found the address `x`"),
        (" bri 6", "a.S:1:6: `bri`: expected a byte address in 0..=0x1ffffc, a multiple of 4, found 6"),
        (" abs $m0", "a.S:1:2: expected `abs $mDst, $mSrc0`, found `abs $m0`"),
        (".worker; zero $a1:2", "a.S:1:15: `or64`: expected an even ARF register pair, found `$a1:2`"),
        (".worker; get $m0, $SSR", "a.S:1:19: `$SSR` is a register of the supervisor; this is worker code"),
        (".worker; put $FP_CLR, $m0", "a.S:1:14: `$FP_CLR` is reached by `uget` and `uput`, not by `put`"),
        (".worker; f16v8topk", "a.S:1:10: the encoding of `f16v8topk` is not public"),
        (" bri .Lnowhere", "a.S:1:6: unknown symbol `.Lnowhere`"),
        ("1: bri 2b", "a.S:1:8: unknown symbol `2b`"),
    ]);
}

#[test]
fn control_registers_need_no_dollar() {
    assert_eq!(listing(".worker; get $m0, WSR; uput FP_CLR, $a0"), ["get $m0, 1", "uput 1, $a0"]);
}

#[test]
fn bundles_are_judged() {
    refused(&[
        (".worker\n{ nop }", "a.S:2:1: expected two instructions in a bundle, found 1"),
        (
            ".supervisor\n{ nop ; nop }",
            "a.S:2:1: bundles are for workers only; this is supervisor code\na.S:2:9: expected an aux-lane instruction, found `setzi` of the main lane",
        ),
        (".worker\n{ fnop ; nop }", "a.S:2:1: the main lane comes first: expected { setzi ; setzi }"),
        (".worker\n{ f32add $a0, $a1, $a2 ; add $m0, $m1, 1 }", "a.S:2:1: the main lane comes first: expected { add ; f32add }"),
        (".worker\n{ exitz $m15 ; fnop }", "a.S:2:3: `exitz` cannot be in a bundle"),
        (".worker\n{ ld64step $a0:1, $m15, $m2+=, 1 ; zero $a1 }", "a.S:2:1: both instructions of this bundle write `$a1`"),
        (".worker\n{ ld64 $azeros, $m2, 1 ; zero $a15 }", "a.S:2:1: both instructions of this bundle write `$a15`"),
        (".worker\nnop\n{ nop ; fnop }", "a.S:3:1: a bundle must lie at a multiple of 8, found offset 0x4; put `.align 8` before it"),
        (".worker\n{ ldconst $m0, 1 ; fnop }", "a.S:2:3: `ldconst` may be two instructions and cannot be in a bundle"),
        (".worker\n{ nop ; abss $a0 }", "a.S:2:9: unknown instruction `abss`; nearest is `abs`"),
    ]);
}

#[test]
fn modes_are_judged() {
    refused(&[
        (".worker\nsync 2", "a.S:2:1: `sync` is for the supervisor only; this is worker code"),
        (".supervisor\nexitz $m15", "a.S:2:1: `exitz` is for workers only; this is supervisor code"),
        (".supervisor\nf32add $a0, $a1, $a2", "a.S:2:1: `f32add` is for workers only; this is supervisor code"),
    ]);
}

#[test]
fn repeat_bodies_are_judged() {
    refused(&[
        (".worker\nrpt 3, 0\n{ nop ; fnop }", "a.S:3:1: a bundle must lie at a multiple of 8, found offset 0x4; put `.align 8` before it"),
        (
            ".worker\n{ rpt 3, 1 ; fnop }\n{ nop ; fnop }\nnop",
            "a.S:4:1: expected bundle 2 of 2 of a body of `rpt`, found an instruction alone",
        ),
        (".worker\n{ rpt 3, 1 ; fnop }\n{ nop ; fnop }", "a.S:2:3: expected 2 bundles behind `rpt`, found 1"),
        (".worker\n{ rpt 3, 0 ; fnop }\n{ nop ; uput $FP_CLR, $a0 }", "a.S:3:9: `uput` cannot stand in a body of `rpt`"),
        (".worker\n{ rpt 3, 0 ; fnop }\n{ rpt 3, 0 ; fnop }\n{ nop ; fnop }", "a.S:3:3: `rpt` cannot stand in a body of `rpt`"),
        (
            ".worker\nrpt 3, 0\n.align 4\n.long 1\n",
            "a.S:2:1: the body of `rpt` must start at a multiple of 8, found offset 0x4; put a `nop` before `rpt`",
        ),
    ]);
}

#[test]
fn directives_are_judged() {
    refused(&[
        (".cfi_startproc", "a.S:1:1: `.cfi_startproc` is not supported: call frame information is not written; compile without it"),
        (".include \"a.inc\"", "a.S:1:1: `.include` is not supported: write `#include`"),
        (".sleb128 1", "a.S:1:1: unknown directive `.sleb128`"),
        (".loc 1 2", "a.S:1:6: no `.file 1` says which file this is"),
        (".loc one", "a.S:1:6: expected the number of a file and a line, found `one`"),
        (".file 1", "a.S:1:7: expected the name of a file in quotes, found `1`"),
        (".set $m0, 1", "a.S:1:6: expected a name, found `$m0`"),
        ("get $m0, $index", "a.S:1:10: unknown register `$index`"),
        (".section .x, \"q\"", "a.S:1:10: expected section flags of `awxMSGR`, found `q`"),
        (".section .x, \"a\", @strange", "a.S:1:10: expected `@progbits` or `@nobits`, found `strange`"),
        (".bss\n.byte 1", "a.S:2:7: section `.bss` can hold nothing but zeros"),
        (".popsection", "a.S:1:1: `.popsection` without `.pushsection`"),
        (".equiv X, 1\n.equiv X, 1", "a.S:2:8: `X` is defined twice"),
        (".type f, @thing", "a.S:1:7: expected `@function` or `@object`, found `thing`"),
        (".ascii \"a\\q\"", "a.S:1:8: unknown escape `\\q`"),
        (".ascii a", "a.S:1:8: expected a text in quotes, found `a`"),
        (".float x", "a.S:1:8: expected a floating-point number, found `x`"),
        (".fill 3, 9", "a.S:1:7: expected at most 212992 bytes in parts of 1..=8, found 3 of 9"),
        (".size f, g", "a.S:1:1: the size of `f` is no number"),
        (".exitm", "a.S:1:1: `.exitm` outside a macro"),
        (".purgem m", "a.S:1:9: macro `m` is not defined"),
        (".macro m a:vararg b\n.endm", "a.S:1:8: macro `m`: no argument can follow one with `:vararg`"),
        (".globl f", "a.S:1:8: `f` is global and not defined"),
        ("a: nop\na: nop", "a.S:2:1: `a` is defined twice"),
        (".equ ROWS, 3", "a.S:1:6: `ROWS` is set by the caller and cannot be set here"),
        (".equ TISTACC_P0, 3", "a.S:1:6: `TISTACC_P0` is set by the caller and cannot be set here"),
        (".equ X", "a.S:1:6: expected `name, value`, found `X`"),
        (".align 3", "a.S:1:8: expected a power of two in 2..=16384, found 3"),
        (".half 65536", "a.S:1:7: expected a value of 2 bytes, found 65536"),
        (".byte 1\nnop", "a.S:2:1: an instruction must lie at a multiple of 4, found offset 0x1; put `.align 4` before it"),
        (".zero 300000", "a.S:1:7: expected a size in 0..=212992, found 300000"),
        (".zero 212992\nnop\nnop", "a.S:2:1: the sections exceed 212992 bytes"),
        (".error \"no such shape\"", "a.S:1:1: no such shape"),
        ("#include <x.h>", "a.S:1:1: no file `x.h` to include"),
    ]);
}

#[test]
fn conditions_and_bodies_are_judged() {
    refused(&[
        (".if 1\nnop", "a.S:1:1: expected `.endif`, found the end"),
        (".else", "a.S:1:1: `.else` without `.if`"),
        (".if 0\n.else\n.else\n.endif", "a.S:3:1: `.else` behind `.else`"),
        (".if ROWZ\n.endif", "a.S:1:5: unknown symbol `ROWZ`"),
        (".macro m", "a.S:1:1: expected `.endm`, found the end"),
        (".rept 2\n.endm", "a.S:2:1: expected `.endr`, found `.endm`"),
        (".endm", "a.S:1:1: `.endm` without `.macro`"),
        (".rept 100000\n.endr", "a.S:1:7: expected a count in 0..=65536, found 100000"),
        (".macro m a\nnop\n.endm\nm", "a.S:4:1: macro `m`: argument `a` is missing"),
        (".macro m a\nnop\n.endm\nm 1, 2", "a.S:4:6: macro `m`: expected at most 1 arguments, found 2"),
        (
            ".macro m a\n add $m0, $m0, \\a\n.endm\nm 1\nm 70000",
            "a.S:2:2: `add`: expected a value in -32768..=32767 or a value in 0..=65535, found 70000 (in macro `m`, used at line 5)",
        ),
        (
            ".macro m\nm\n.endm\nm",
            "a.S:2:1: macros and repetitions nest deeper than 40 (in macro `m`, used at line 2, 40 deep; in macro `m`, used at line 4)",
        ),
    ]);
}

#[test]
fn macros_of_the_preprocessor_reach_instructions_and_errors() {
    let text = "#define COUNT (ROWS/8)\n#ifdef __IPU__\n#define LOAD(r, n) setzi r, n; nop\n#endif\nLOAD($m0, COUNT)\n LOAD($m1, 1<<20)";
    let fault = "a.S:6:2: `setzi`: expected a value in 0..=1048575, found 1048576 (with `LOAD` of a.S:3:1)";
    assert_eq!(object(text).unwrap_err(), [fault]);
    assert_eq!(listing(&text.replace("1<<20", "5")), ["setzi $m0, 4", "nop", "setzi $m1, 5", "nop"]);
}

#[test]
fn included_sources_are_reported_under_their_names() {
    let find = |include: &Include<'_>| {
        let text = ".macro both a\n nop\n add $m0, $m0, \\a\n.endm";
        (include.name == "both.S" && include.from == "a.S").then(|| Source { name: "lib/both.S".to_owned(), text: text.to_owned() })
    };
    let (defines, macros, parameters) = (BTreeMap::new(), BTreeMap::from([("BIG".to_owned(), "70000".to_owned())]), Parameters::shipped());
    let setting = Setting { defines: &defines, macros: &macros, parameters: &parameters, find_header: &find, vendor_names: None };
    let source = Source { name: "a.S".to_owned(), text: "#include \"both.S\"\n both 3\n both BIG\n#warning done".to_owned() };
    let faults = assemble_with(&source, &setting).unwrap_err();
    let range = "expected a value in -32768..=32767 or a value in 0..=65535, found 70000";
    assert_eq!(faults[0].to_string(), format!("lib/both.S:3:2: `add`: {range} (in macro `both`, used at a.S:3; with `BIG`)"));
    let source = Source { text: source.text.replace("BIG", "7"), ..source };
    let assembled = assemble_with(&source, &setting).unwrap();
    assert_eq!(assembled.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a.S:4:1: done"]);
}

#[test]
fn runaway_sources_end_with_one_error() {
    for text in [
        ".macro m\nm\nm\n.endm\nm",
        ".rept 65536\n.rept 65536\n.rept 65536\nnop\n.endr\n.endr\n.endr",
        ".macro m a\nm \\a\\a\n.endm\nm 1",
        ".rept 65536\n.zero 4096\n.endr",
    ] {
        assert_eq!(object(text).unwrap_err().len(), 1, "{text}");
    }
}

#[test]
fn all_independent_errors_are_reported_in_source_order() {
    let text = ".worker\n ad $m0\n nop\n exitz\n { nop }\n sync 2\n .globl f\n bri .Lx";
    let faults = object(text).unwrap_err();
    let lines: Vec<&str> = faults.iter().map(|fault| fault.split(':').nth(1).unwrap()).collect();
    // The third instruction is at offset 12: its bundle is off as well as short.
    assert_eq!(lines, ["2", "4", "5", "5", "6", "7", "8"]);
}

#[test]
fn a_constant_set_again_keeps_what_was_written_before() {
    assert_eq!(listing(".set X, 1\nsetzi $m0, X\n.set X, 2\nsetzi $m0, X"), ["setzi $m0, 1", "setzi $m0, 2"]);
    assert_eq!(listing("setzi $m0, X\n.set X, 2"), ["setzi $m0, 2"]);
}

#[test]
fn two_word_instructions_lie_at_even_words() {
    assert_eq!(listing("sendpicp 42, 81953, 1, 0, 86016, 1600"), ["sendpicp 42, 81953, 1, 0, 86016, 1600"]);
    refused(&[(
        "nop\nsendpicp 42, 81953, 1, 0, 86016, 1600",
        "a.S:2:1: an instruction of two words must lie at a multiple of 8, found offset 0x4; put `.align 8` before it",
    )]);
}

#[test]
fn a_listing_assembles_to_the_same_words() {
    let text = object(SAMPLE).unwrap().link_at(BASE, &BTreeMap::from([("elsewhere".to_owned(), 0x60000)])).unwrap();
    let lines: Vec<String> = disassemble(&text, BASE).into_iter().map(|line| line.text).collect();
    // Data before the workers' code; what precedes is the supervisor's.
    let worker = lines.iter().position(|line| line.starts_with("get")).unwrap();
    let source = format!("{}\n.worker\n{}", lines[..worker].join("\n"), lines[worker..].join("\n"));
    assert_eq!(object(&source).unwrap().text(), text);
}

#[test]
fn objects_link_by_their_global_symbols() {
    let one = object(".globl f\nnop\nf: call $m10, g").unwrap();
    let two = object(".globl g\n.Lx: nop\ng: bri f\n.long .Lx").unwrap();
    let texts = link(&[(&one, 0x54000), (&two, 0x55000)]).unwrap();
    let shown = |text: &[u8], base| disassemble(text, base).into_iter().map(|line| line.text).collect::<Vec<_>>();
    assert_eq!(shown(&texts[0], 0x54000), ["nop", "call $m10, 0x55004"]);
    assert_eq!(shown(&texts[1][..8], 0x55000), ["nop", "bri 0x54004"]);
    assert_eq!(texts[1][8..], 0x55000_u32.to_le_bytes());
}

#[test]
fn links_that_cannot_be_made_say_why() {
    let caller = object("nop\ncall $m10, g\nsetzi $m0, h+0x80000").unwrap();
    let one = object(".globl g\ng: nop").unwrap();
    let errors = link(&[(&caller, 0x54000), (&one, 0x55000), (&one, 0x56004)]).unwrap_err();
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "symbol `g` is defined in a.S and in a.S",
            "a.S:3: undefined symbol `h`",
            "a.S: expected an address that is a multiple of 8, found 0x56004",
        ]
    );
    let externals = BTreeMap::from([("g".to_owned(), 0x55002), ("h".to_owned(), 0x90000)]);
    let errors = caller.link_errors_at(0x54000, &externals);
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "a.S:2: R_COLOSSUS_19_S2: 0x55002 does not fit or is not aligned",
            "a.S:3: R_COLOSSUS_20: 0x110000 does not fit or is not aligned",
        ]
    );
}

/// Words of the vendor's linker tests (`encodings.tsv`, tag llvm-tests) for symbols at the addresses they name.
#[test]
fn relocations_give_the_words_of_the_vendor_tests() {
    let linked = |text: &str, address: u32| {
        let bytes = object(text).unwrap().link_at(0, &BTreeMap::from([("s".to_owned(), address)])).unwrap();
        u32::from_le_bytes(bytes[..4].try_into().unwrap())
    };
    for (address, word) in [(0, 0x4080_0000), (4, 0x4080_0001), (0x42000, 0x4081_0800), (0xf_fff4, 0x4083_fffd), (0x1f_fffc, 0x4087_ffff)] {
        assert_eq!(linked("bri s", address), word);
    }
    for (address, word) in [(0, 0x1900_0000), (0x42000, 0x1904_2000), (0xf_ffff, 0x190f_ffff)] {
        assert_eq!(linked("setzi $m0, s", address), word);
    }
    for (words, word) in
        [(0, 0x1400_0000), (1, 0x1400_0001), (4096, 0x1401_0000), (4660, 0x1401_0234), (61680, 0x140f_00f0), (65535, 0x140f_0fff)]
    {
        assert_eq!(linked("run $m0, $m0, s", 0x4c000 + 4 * words), word);
    }
    for (text, word) in
        [(".half s@relative@16@s2", 0x40), (".long s@abs18@s2", 0x1_3040), (".long s@abs19@s2", 0x1_3040), (".long s@abs@21", 0x4_c100)]
    {
        assert_eq!(linked(&format!("{text}\n.zero 4"), 0x4c100), word, "{text}");
    }
}

#[test]
fn foreign_bytes_are_refused_as_objects() {
    assert_eq!(Object::parse(b"no").unwrap_err().to_string().split(':').next(), Some("expected an ELF32 object, found none"));
}

fn sample_bytes() -> Vec<u8> {
    let source = Source { name: "a.S".to_owned(), text: SAMPLE.to_owned() };
    assemble(&source, &BTreeMap::from([("ROWS".to_owned(), 32)]), &Parameters::shipped()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_text_assembles_or_is_refused(text in "[-+*/%<>=&|!~(){}:;,.#\\\\@$ \"\n0-9a-fmrxROWS]{0,80}") {
        let _ = object(&text);
    }

    #[test]
    fn any_directives_of_the_preprocessor_are_read_or_refused(lines in proptest::collection::vec("#?(define|if|ifdef|elif|else|endif|include|undef)? ?[-A-C_(),.#<>=&|!?:\"/*\\\\ 0-9]{0,16}", 0..12)) {
        let _ = object(&lines.join("\n"));
    }

    #[test]
    fn changed_sources_assemble_or_are_refused(from in 0..SAMPLE.len(), removed in 0_usize..12, text in "[-+({}:;,.\\\\@$\n 0-9amx]{0,4}") {
        let to = (from + removed).min(SAMPLE.len());
        let _ = object(&format!("{}{text}{}", &SAMPLE[..from], &SAMPLE[to..]));
    }

    #[test]
    fn lines_in_any_order_assemble_or_are_refused(order in proptest::collection::vec(any::<proptest::sample::Index>(), 1..40)) {
        let lines: Vec<&str> = SAMPLE.lines().collect();
        let text: Vec<&str> = order.iter().map(|index| *index.get(&lines)).collect();
        let _ = object(&text.join("\n"));
    }

    #[test]
    fn cut_and_changed_objects_are_read_or_refused(end in any::<proptest::sample::Index>(), at in any::<proptest::sample::Index>(), bits in 1_u8..) {
        let mut bytes = sample_bytes();
        prop_assert!(Object::parse(&bytes[..end.index(bytes.len())]).is_err());
        let index = at.index(bytes.len());
        bytes[index] ^= bits;
        if let Ok(object) = Object::parse(&bytes) {
            let _ = object.link_at(0xffff_fff8, &BTreeMap::from([("elsewhere".to_owned(), u32::MAX)]));
            let _ = object.line_of(20);
        }
    }

    #[test]
    fn any_words_are_listed_completely(words in proptest::collection::vec(any::<u32>(), 0..20), base in any::<u32>()) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let listed: Vec<u32> = disassemble(&bytes, base & !7).into_iter().flat_map(|line| line.words).collect();
        prop_assert_eq!(listed, words);
    }
}
