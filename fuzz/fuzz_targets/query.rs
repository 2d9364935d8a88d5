//! Queries: any text is a query or is explained with a column inside of it.
#![no_main]

use graph::{PackageName, Query};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Query::parse(text, &PackageName::in_workspace("some/package")) {
        Ok(query) => drop(query.patterns()),
        Err(fault) => assert!(fault.to_string().contains(" is not a query: expected ")),
    }
});
