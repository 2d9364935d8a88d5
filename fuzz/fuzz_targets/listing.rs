//! Words: their listing assembles to the same words.
#![no_main]

use std::collections::BTreeMap;

use ipu21::parameters::Parameters;
use libfuzzer_sys::fuzz_target;
use toolchain::disassembler::disassemble;
use toolchain::listing::PREAMBLE;
use toolchain::object::Object;
use toolchain::{Source, assemble};

fuzz_target!(|bytes: &[u8]| {
    let words = &bytes[..bytes.len() / 4 * 4];
    if words.is_empty() || words.len() > 4096 {
        return;
    }
    let lines: Vec<String> = disassemble(words, 0).into_iter().map(|line| line.text).collect();
    let source = Source { name: "listing.S".to_owned(), text: format!("{PREAMBLE}{}", lines.join("\n")) };
    let assembled = assemble(&source, &BTreeMap::new(), &Parameters::shipped()).unwrap_or_else(|faults| panic!("{faults:?}"));
    assert_eq!(Object::parse(&assembled).expect("the assembler's object").text(), words);
});
