//! Random programs by the fast path, by the reference interpreter and by a debugger's steps: everything a tile is made of comes
//! out the same.
//!
//! `PROPTEST_CASES=1000000 cargo test -p simulator --release --test two_ways` runs for hours.

#[path = "support/random_program.rs"]
mod random_program;

use ipu21::parameters::Parameters;
use proptest::prelude::*;
use random_program::{ENTRY, program};
use simulator::{CallMeasurement, Fault, SingleTile};

/// How a tile is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    FastPath,
    Reference,
    Steps,
}

fn run(bytes: &[u8], parameters: &Parameters, by: By) -> (SingleTile, Result<CallMeasurement, Fault>) {
    let mut tile = SingleTile::new(parameters, 5);
    match by {
        By::FastPath => {}
        By::Reference => tile.use_reference_interpreter(),
        By::Steps => tile.use_debugger_steps(),
    }
    tile.load(&program(bytes)).expect("the segments are apart");
    let result = tile.run_call(ENTRY, 0);
    (tile, result)
}

proptest! {
    #[test]
    fn the_fast_path_and_steps_equal_the_reference_interpreter(bytes in prop::collection::vec(any::<u8>(), 0..1200), survive in any::<bool>()) {
        let mut parameters = Parameters::shipped();
        parameters.state.registers_survive_exit_and_run = survive;
        let (reference, expected) = run(&bytes, &parameters, By::Reference);
        for by in [By::FastPath, By::Steps] {
            let (tile, result) = run(&bytes, &parameters, by);
            prop_assert_eq!(&result, &expected);
            prop_assert_eq!(tile.first_difference(&reference), None);
        }
    }
}

/// The programs would prove little if they stopped at once.
#[test]
fn random_programs_mostly_run_for_long_and_often_to_their_end() {
    let parameters = Parameters::shipped();
    let (mut turns, mut returned) = (0, 0);
    for seed in 0..200u32 {
        let bytes: Vec<u8> = (0..800u32)
            .map(|i| (seed.wrapping_mul(0x9e37_79b9) ^ i.wrapping_mul(0x85eb_ca6b)).wrapping_mul(0xc2b2_ae35).to_be_bytes()[0])
            .collect();
        let (tile, result) = run(&bytes, &parameters, By::FastPath);
        turns += tile.worker_turns();
        returned += usize::from(result.is_ok());
    }
    assert!(turns > 200 * 300 && returned > 40, "{turns} turns, {returned} of 200 returned");
}
