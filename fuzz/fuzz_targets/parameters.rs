//! Tables of machine parameters: what parses is complete enough to assemble with.
#![no_main]

use ipu21::parameters::Parameters;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(parameters) = Parameters::parse(text) {
        let _ = parameters.symbols();
    }
});
