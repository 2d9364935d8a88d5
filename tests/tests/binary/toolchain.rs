//! The commands of the toolchain: what they refuse, with one clear error and no file, and archives.

use crate::good;
use crate::place::Place;

/// Sources of the cases, by name.
const SOURCES: &[(&str, &str)] = &[
    ("good.S", ".globl f\nf: br $lr\n"),
    ("needs.S", ".globl start\nstart: nop\n\ncall $lr, f\n"),
    ("bad.S", "nop\n  ad $m0, $m1, 1\n  bri .Lnowhere\n"),
    ("header.S", "#include \"none.h\"\n"),
    ("names.toml", "[define]\n1X = 2\n[vector]\navailable = []\n[stack]\nsection = \".x\"\n"),
    ("text.o", "no object at all\n"),
    ("cut.a", "!<arch>\ngood.o/         0  "),
];

/// Arguments, exit code, what is said.
const REFUSED: &[(&[&str], i32, &str)] = &[
    (&["asm", "none.S"], 2, "error: none.S: No such file or directory (os error 2)"),
    (&["asm", "bad.S"], 2, "error: bad.S:2:3: unknown instruction `ad`; nearest is `add`\nerror: bad.S:3:7: unknown symbol `.Lnowhere`"),
    (&["asm", "header.S"], 2, "error: header.S:1:1: no file `none.h` to include"),
    (&["asm", "good.S", "--vendor-names", "names.toml"], 2, "error: names.toml: expected a name, found `1X`"),
    (&["asm", "good.S", "-o", "none/good.o"], 1, "error: cannot write none/good.o: No such file or directory (os error 2)"),
    (&["link", "needs.o", "-o", "out.elf"], 2, "error: needs.S:4: undefined symbol `f`"),
    (&["link", "good.o", "good.o", "-o", "out.elf"], 2, "error: symbol `f` is defined in good.S and in good.S"),
    (&["link", "good.o", "-o", "out.elf", "--entry", "g"], 2, "error: entry:0: undefined symbol `g`"),
    (&["link", "good.o", "-o", "out.elf", "--base", "here"], 2, "error: --base here: expected an address, as in 0x4c010"),
    (&["link", "good.o", "-o", "out.elf", "--base", "0x80000"], 2, "error: the code would end at 0x80004, expected at most 0x80000"),
    (&["link", "text.o", "-o", "out.elf"], 2, "error: text.o: expected an ELF32 object, found none: Invalid ELF header size or alignment"),
    (&["link", "cut.a", "-o", "out.elf"], 2, "error: cut.a: expected an archive: Invalid archive member header"),
    (&["disasm", "text.o"], 2, "error: text.o: expected an ELF32 object, found none: Invalid ELF header size or alignment"),
    (&["objdump", "cut.a"], 2, "error: cut.a: expected an archive: Invalid archive member header"),
    (&["nm", "none.o"], 2, "error: none.o: No such file or directory (os error 2)"),
    (&["size", "good.o", "text.o"], 2, "error: text.o: expected an ELF32 object, found none: Invalid ELF header size or alignment"),
];

fn sources() -> Place {
    let place = Place::new();
    for (name, text) in SOURCES {
        place.write(name, text.as_bytes());
    }
    for source in ["good.S", "needs.S"] {
        good(place.run(&["asm", source]));
    }
    place
}

#[test]
fn what_is_refused_is_said_once_and_leaves_no_file() {
    let place = sources();
    let files = || {
        let mut names: Vec<_> =
            std::fs::read_dir(place.root()).expect("the folder").map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    // An older result stays as it was.
    place.write("bad.o", b"older");
    let before = files();
    for (arguments, code, message) in REFUSED {
        let ran = place.run(arguments);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.trim_end()), (Some(*code), "", *message), "{arguments:?}");
    }
    assert_eq!(files(), before);
    assert_eq!(place.read("bad.o"), b"older");
}

/// An archive as `ar` writes it: a header of 60 characters before each member, members at even offsets.
fn archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, contents) in members {
        bytes.extend(format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", format!("{name}/"), 0, 0, 0, 644, contents.len()).bytes());
        bytes.extend(contents);
        bytes.extend((contents.len() % 2 == 1).then_some(b'\n'));
    }
    bytes
}

#[test]
fn members_of_an_archive_are_linked_when_they_are_needed() {
    let place = sources();
    place.write("more.S", b".globl unneeded\nunneeded: nop\nnop\n");
    good(place.run(&["asm", "more.S"]));
    place.write("lib.a", &archive(&[("more.o", place.read("more.o")), ("good.o", place.read("good.o"))]));
    good(place.run(&["link", "needs.o", "lib.a", "-o", "out.elf", "--map", "out.map"]));
    let symbols = "0004c010      0 T start\n0004c018      0 T f\n";
    let mut listed: Vec<String> = good(place.run(&["nm", "out.elf"])).out.lines().map(|line| format!("{line}\n")).collect();
    listed.sort();
    assert_eq!(listed.concat(), symbols);
    let map = String::from_utf8(place.read("out.map")).expect("text");
    let expected = "   address      bytes  section\n   0x4c010          8  .text of needs.S\n   0x4c018          4  .text of good.S\n\n   \
                    address  symbol\n   0x4c010  start\n   0x4c018  f\n";
    assert_eq!(map, expected);
    let sizes = "    code constants     data    zeros      all  file\n       8         0        0        0        8  lib.a(more.o)\n       \
                 4         0        0        0        4  lib.a(good.o)\n";
    assert_eq!(good(place.run(&["size", "lib.a"])).out, sizes);
    let listed = good(place.run(&["nm", "lib.a"])).out;
    assert_eq!(listed, "# lib.a(more.o)\n00000000      0 T unneeded\n# lib.a(good.o)\n00000000      0 T f\n");
}
