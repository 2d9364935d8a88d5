//! Kernel sources: what assembles is an object that can be read.
#![no_main]

use std::collections::BTreeMap;

use ipu21::parameters::Parameters;
use libfuzzer_sys::fuzz_target;
use toolchain::object::Object;
use toolchain::preprocessor::Include;
use toolchain::{Setting, Source, assemble_with};

fuzz_target!(|text: &str| {
    let (none, macros, parameters) = (BTreeMap::new(), BTreeMap::new(), Parameters::shipped());
    // Files in quotes are the source itself, others those that are shipped.
    let find = |include: &Include<'_>| include.is_quoted.then(|| Source { name: include.name.to_owned(), text: text.to_owned() });
    let setting = Setting { defines: &none, macros: &macros, parameters: &parameters, find_header: &find, vendor_names: None };
    match assemble_with(&Source { name: "fuzz.S".to_owned(), text: text.to_owned() }, &setting) {
        Ok(assembled) => assert!(Object::parse(&assembled.bytes).is_ok(), "the assembler's object is not readable"),
        Err(diagnostics) => assert!(!diagnostics.is_empty(), "refused without a reason"),
    }
});
