//! Programs of one tile: the fast path of the simulator and its reference interpreter do the same.
#![no_main]

#[path = "../../device/simulator/tests/support/random_program.rs"]
mod random_program;

use ipu21::parameters::Parameters;
use libfuzzer_sys::fuzz_target;
use random_program::{ENTRY, program};
use simulator::SingleTile;

fuzz_target!(|bytes: &[u8]| {
    let [mut fast, mut reference] = [5; 2].map(|seed| SingleTile::new(&Parameters::shipped(), seed));
    reference.use_reference_interpreter();
    let [result, expected] = [&mut fast, &mut reference].map(|tile| {
        tile.load(&program(bytes)).expect("the segments are apart");
        tile.run_call(ENTRY, 0)
    });
    assert_eq!(result, expected);
    assert_eq!(fast.first_difference(&reference), None);
});
