//! Manifests of kernel libraries.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(faults) = toolchain::manifest::parse(text) {
        assert!(!faults.is_empty(), "refused without a reason");
    }
});
