//! Object files: parsing, linking at an address and listing never panic.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use toolchain::object::Object;

const BASE: u32 = 0x4c100;

fuzz_target!(|bytes: &[u8]| {
    let Ok(object) = Object::parse(bytes) else { return };
    if let Ok(text) = object.link_at(BASE, &BTreeMap::new()) {
        let _ = toolchain::disassembler::disassemble(&text, BASE);
    }
});
