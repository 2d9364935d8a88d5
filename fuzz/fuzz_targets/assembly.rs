//! Kernel sources: what assembles is an object that can be read.
#![no_main]

use std::collections::BTreeMap;

use ipu21::parameters::Parameters;
use libfuzzer_sys::fuzz_target;
use toolchain::object::Object;

fuzz_target!(|text: &str| {
    let source = toolchain::Source { name: "fuzz.S".to_owned(), text: text.to_owned() };
    match toolchain::assemble(&source, &BTreeMap::new(), &Parameters::shipped()) {
        Ok(file) => assert!(Object::parse(&file).is_ok(), "the assembler's object is not readable"),
        Err(diagnostics) => assert!(!diagnostics.is_empty(), "refused without a reason"),
    }
});
