//! A compiled program on the whole chip: the fast path of the simulator and its reference interpreter, and any number of threads, give
//! the same tensors, clocks, counts and memory.

use compiler::layout::Layout;
use compiler::program::Group;
use driver::Session;
use ipu21::tile::PhysTile;
use simulator::Counters;
use tests::compiled::{self, Results, Unchanged};

/// Everything that can be seen of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    results: Results,
    counters: Counters,
    /// By tile.
    clocks: Vec<u64>,
    /// All memory of some tiles that work and of one that does not.
    memory: Vec<Vec<u8>>,
}

#[test]
fn threads_and_interpreters_do_not_matter() {
    let task = compiled::attention(100, 40, 2, Layout::on(24));
    let compiled = compiled::compile(&task, &Unchanged).unwrap_or_else(|refusal| panic!("{refusal}"));
    let tensors = compiled::drawn(&compiled::model(&task).expect("the task compiled"), 3);
    let weights = compiled::files(&compiled.expanded, Group::Weight, &tensors, &Unchanged);
    let run = |threads: usize, reference: bool| {
        let mut options = compiled::options(1);
        options.chip.threads = threads;
        let mut session = Session::open(&compiled.package, &options).expect("the package opens");
        if reference {
            session.use_reference_interpreter();
        }
        session.initialize(&weights).expect("the weights are taken");
        let results = compiled::run_from(&mut session, &compiled, &tensors, &Unchanged).expect("the program runs");
        let chip = session.chip();
        let some = PhysTile::all().step_by(97);
        let memory = some.map(|tile| chip.read_raw(tile, ipu21::memory::BASE, ipu21::memory::SIZE).expect("all of memory")).collect();
        let clocks = PhysTile::all().map(|tile| chip.clock(tile)).collect();
        Seen { results, counters: chip.counters(), clocks, memory }
    };
    let expected = run(1, true);
    assert!(expected.counters.worker_turns > 10_000, "{:?}", expected.counters);
    for (threads, reference) in [(1, false), (2, false), (5, false), (2, true)] {
        assert!(run(threads, reference) == expected, "{threads} threads, reference {reference}");
    }
}
