//! What of a worker outlives its exit, as parameters.toml `[state]` says.

mod support;

use ipu21::parameters::Parameters;
use simulator::{Cause, Place, SingleTile};
use support::{KERNEL, OUT, WORKER, segment, word};

/// Where the second generation of workers starts.
const SECOND: u32 = WORKER + 0x100;

/// Runs one worker code, then the other on the same workers.
fn cause_of(first: &[u32], second: &[u32], parameters: &Parameters) -> Option<Cause> {
    let exit = word("exitz.m", &[15]);
    let launch = |entry| [word("setzi.m_zi20", &[1, entry]), word("runall.mm_zi16", &[1, 15, 0]), word("sync.zi4", &[2])];
    let kernel = [launch(WORKER).as_slice(), &launch(SECOND), &[word("br.m", &[10])]].concat();
    let ended = |code: &[u32]| [code, &[exit]].concat();
    let mut tile = SingleTile::new(parameters, 3);
    tile.load(&[segment(KERNEL, &kernel), segment(WORKER, &ended(first)), segment(SECOND, &ended(second))]).unwrap();
    tile.run_call(KERNEL, 0).err().map(|fault| fault.cause)
}

fn surviving(registers: bool, accumulators: bool) -> Parameters {
    let mut parameters = Parameters::shipped();
    parameters.state.registers_survive_exit_and_run = registers;
    parameters.state.accumulators_survive_exit_and_run = accumulators;
    parameters
}

fn store(form: &str) -> [u32; 2] {
    [word("setzi.m_zi20", &[3, OUT]), word(form, &[4, 3, 15, 0])]
}

#[test]
fn registers_outlive_an_exit_if_the_parameter_says_so() {
    let sets = [("setzi.m_zi20", "st32.m_rri", Place::Main(4)), ("setzi.a_zi20", "st32.a_rri", Place::Aux(4))];
    for (set, stored, from) in sets {
        let outcome = |registers| cause_of(&[word(set, &[4, 7])], &store(stored), &surviving(registers, true));
        assert_eq!(outcome(true), None);
        assert_eq!(outcome(false), Some(Cause::PoisonStored { from, address: OUT }));
    }
}

#[test]
fn accumulators_outlive_an_exit_if_the_parameter_says_so() {
    let clear = [word("setzi.a_zi20", &[7, 8]), word("uput.zi8_a", &[1, 7])];
    let read = [[word("f16v4gacc.p", &[4])].as_slice(), &store("st32.a_rri")].concat();
    let outcome = |accumulators| cause_of(&clear, &read, &surviving(true, accumulators));
    assert_eq!(outcome(true), None);
    assert_eq!(outcome(false), Some(Cause::PoisonStored { from: Place::Aux(4), address: OUT }));
}

#[test]
fn the_scale_is_a_register() {
    let set = [word("setzi.a_zi20", &[7, 8]), word("uput.zi8_a", &[8, 7])];
    let used = [word("or64.ppp", &[0, 14, 14]), word("f32v2axpy.ppp", &[2, 0, 0])];
    let form = "f32v2axpy.ppp";
    assert_eq!(cause_of(&set, &used, &surviving(true, true)), None);
    assert_eq!(cause_of(&set, &used, &surviving(false, true)), Some(Cause::PoisonUsed { place: Place::Scale, form }));
}
