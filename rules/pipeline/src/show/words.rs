//! Instruction words as text.

use graph::{Cell, Document};
use toolchain::disassembler::disassemble;

/// Adds the instructions of `words` from an address on as a table.
pub(super) fn with_listing(document: Document, title: &str, words: &[u32], address: u32) -> Document {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let rows = disassemble(&bytes, address).into_iter();
    let rows = rows.map(|line| vec![Cell::Address(line.address), digits(&line.words).into(), line.text.into()]);
    document.table(title, &["address", "words", "instruction"], rows)
}

/// One or two words.
pub(super) fn digits(words: &[u32]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:08x}")).collect();
    words.join(" ")
}
