//! Writes the checked table as Rust source.

use std::fmt::Write;

use crate::isa::{Form, Operand, Table};

pub fn tables(table: &Table) -> String {
    let mut out = String::new();
    writeln!(out, "static TABLE: [Form; {}] = [", table.forms.len()).unwrap();
    for form in &table.forms {
        write_form(&mut out, form);
    }
    writeln!(out, "];").unwrap();
    writeln!(out, "/// One constant per encoding form, named by its id.\npub mod form {{\n    use super::FormId;").unwrap();
    for (index, form) in table.forms.iter().enumerate() {
        writeln!(out, "    #[doc = {:?}]", format!("`{}`: {}", form.syntax, form.semantics.replace('[', "(").replace(']', ")"))).unwrap();
        writeln!(out, "    pub const {}: FormId = FormId({index});", constant(&form.id)).unwrap();
    }
    writeln!(out, "}}").unwrap();
    writeln!(out, "static CSRS: [Csr; {}] = [", table.csrs.len()).unwrap();
    for csr in &table.csrs {
        let fields: Vec<String> = csr.fields.iter().map(|(name, bits)| format!("({name:?}, {bits:?})")).collect();
        writeln!(out, "    Csr {{ name: {:?}, index: {}, mode: {:?}, fields: &[{}] }},", csr.name, csr.index, csr.mode, fields.join(", "))
            .unwrap();
    }
    writeln!(out, "];").unwrap();
    out
}

fn write_form(out: &mut String, form: &Form) {
    let operands: Vec<String> = form.operands.iter().map(operand).collect();
    writeln!(
        out,
        "    Form {{ id: {:?}, mnemonic: {:?}, syntax: {:?}, semantics: {:?}, is_doubtful: {}, mode: Mode::{}, lane: Lane::{}, class: Class::{}, coissue: {}, words: {}, matches: {:#x}, mask: {:#x}, status: Status::{}, operands: &[{}] }},",
        form.id, form.mnemonic, form.syntax, form.semantics, form.is_doubtful, form.mode, form.lane, form.class, form.coissue, form.words, form.matches, form.mask, form.status, operands.join(", ")
    )
    .unwrap();
}

fn operand(operand: &Operand) -> String {
    let slices: Vec<String> = operand
        .slices
        .iter()
        .map(|slice| format!("Slice {{ word: {}, low: {}, width: {}, from: {} }}", slice.word, slice.low, slice.width, slice.from))
        .collect();
    format!(
        "Operand {{ name: {:?}, kind: {}, modifier: Modifier::{}, slices: &[{}] }}",
        operand.name,
        kind(&operand.kind),
        operand.modifier,
        slices.join(", ")
    )
}

fn kind(text: &str) -> String {
    let digits = text.trim_start_matches(char::is_alphabetic);
    match &text[..text.len() - digits.len()] {
        "m" => "OperandKind::Main".to_owned(),
        "mp" => "OperandKind::MainPair".to_owned(),
        "a" => "OperandKind::Aux".to_owned(),
        "ap" => "OperandKind::AuxPair".to_owned(),
        "aq" => "OperandKind::AuxQuad".to_owned(),
        "zimm" => format!("OperandKind::Unsigned({digits})"),
        "simm" => format!("OperandKind::Signed({digits})"),
        "enum" => format!("OperandKind::Named({digits})"),
        _ => "OperandKind::High12".to_owned(),
    }
}

fn constant(id: &str) -> String {
    id.replace('.', "_").to_uppercase()
}
