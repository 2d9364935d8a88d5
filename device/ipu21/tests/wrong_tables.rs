//! The build refuses a wrong instruction table and says what is wrong.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "the module belongs to the build script, whose writer uses all of it")]

#[path = "../build/isa.rs"]
mod isa;

use ipu21::data::ISA;

/// The faults after one change of the text, which must occur.
fn faults(from: &str, to: &str) -> Vec<String> {
    assert!(ISA.contains(from), "the table has no {from:?}");
    isa::read(&ISA.replacen(from, to, 1)).err().unwrap_or_default()
}

#[test]
fn the_shipped_table_is_right_and_has_all_its_forms() {
    let table = isa::read(ISA).unwrap_or_else(|faults| panic!("{faults:?}"));
    assert_eq!((table.forms.len(), table.csrs.len()), (370, 59));
}

#[test]
fn fields_that_overlap_or_leave_a_hole_are_refused() {
    let abs = r#""19:16" = 0x0, "15:12" = 0x7, "11:8" = 0x0, "7:4" = "dst", "3:0" = 0x0 } }"#;
    let overlapping = abs.replacen("19:16", "20:16", 1);
    assert_eq!(faults(abs, &overlapping), ["abs.mm: field 23:20 lies outside its word or overlaps another field"]);
    let holed = abs.replacen(r#""19:16" = 0x0, "#, "", 1);
    assert_eq!(faults(abs, &holed), ["abs.mm: the fields do not fill the word"]);
}

#[test]
fn constants_and_matches_that_disagree_are_refused() {
    assert_eq!(
        faults("match = 0x42007000, mask = 0x7f0fff0f", "match = 0x42007010, mask = 0x7f0fff0f"),
        ["abs.mm: match 0x42007010 has bits outside mask 0x7f0fff0f"]
    );
    let faults = faults("match = 0x42007000, mask = 0x7f0fff0f", "match = 0x42006000, mask = 0x7f0fff0f");
    assert_eq!(faults, ["abs.mm: match and mask disagree with the constant fields 0x42007000/0x7f0fff0f"]);
}

#[test]
fn two_forms_with_one_word_are_refused() {
    let zi = r#"match = 0x20000000, mask = 0x7f000000, fields = { "31" = "coissue", "30:24" = 0x20"#;
    let si = r#"match = 0x22000000, mask = 0x7f000000, fields = { "31" = "coissue", "30:24" = 0x22"#;
    assert_eq!(faults(zi, si), ["add.mm_si16 and add.mm_zi16: a word can be both"]);
}

#[test]
fn operands_without_bits_and_kinds_without_width_are_refused() {
    assert_eq!(
        faults(r#"operands = ["dst:m", "src0:m", "imm:simm16"]"#, r#"operands = ["dst:m", "src0:m", "imm:simm17"]"#),
        ["add.mm_si16: operand imm (simm17): encoded bits 0xffff of 0x1ffff"]
    );
    assert_eq!(
        faults(r#"operands = ["dst:m", "src0:m", "imm:simm16"]"#, r#"operands = ["dst:m", "src0:x", "imm:simm16"]"#),
        ["add.mm_si16: unknown operand kind `x`"]
    );
}

#[test]
fn counts_that_the_table_does_not_have_are_refused() {
    assert_eq!(faults("mnemonics = 253", "mnemonics = 254"), ["[meta] names 254 mnemonics, the table has 253"]);
    assert_eq!(faults("forms = 370", "forms = 371").len(), 2);
}
