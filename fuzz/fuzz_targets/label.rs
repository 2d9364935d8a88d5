//! Labels and patterns: what is accepted prints in a form that means the same.
#![no_main]

use graph::{PackageName, Pattern};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let package = PackageName::in_workspace("some/package");
    match Pattern::parse(text, &package) {
        Ok(pattern) => {
            let printed = pattern.to_string();
            let again = Pattern::parse(&printed, &package);
            assert_eq!(again.ok().map(|pattern| pattern.to_string()), Some(printed));
        }
        Err(fault) => drop(fault.to_string()),
    }
});
