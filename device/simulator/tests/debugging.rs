//! A chip under a debugger: where it stops, what it tells, and that it does what it does without one.

mod support;

use ipu21::tile::PhysTile;
use simulator::debug::{Debugger, Executed, Halt, Hit, Observer, StepRequest, TileSelection, TraceFilter, Trigger, Why, Writer};
use simulator::{Cause, Chip, Context, Segment, Stop};
use support::{DATA, ENTRY, OUT, WORKER, bystander, chip, load_all, program, segment, word};

/// What was told of instructions.
#[derive(Default)]
struct Told(Vec<Executed>);

impl Observer for Told {
    fn executed(&mut self, instruction: &Executed) {
        self.0.push(*instruction);
    }
}

fn tile(number: u16) -> PhysTile {
    PhysTile::new(number).unwrap()
}

fn only(number: u16) -> TileSelection {
    [tile(number)].into_iter().collect()
}

/// Six workers store `7` to `OUT`; behind them the supervisor stores it to `DATA`.
fn busy() -> Vec<Segment> {
    let supervisor = vec![
        word("setzi.m_zi20", &[1, WORKER]),
        word("runall.mm_zi16", &[1, 15, 0]),
        word("sync.zi4", &[2]),
        word("setzi.m_zi20", &[2, DATA]),
        word("setzi.m_zi20", &[3, 7]),
        word("st32.m_rri", &[3, 2, 15, 0]),
    ];
    let worker =
        [word("setzi.m_zi20", &[2, OUT]), word("setzi.m_zi20", &[3, 7]), word("st32.m_rri", &[3, 2, 15, 0]), word("exitz.m", &[15])];
    vec![program(supervisor), segment(WORKER, &worker)]
}

/// A chip whose tile 5 has the busy program; the others stop at once.
fn started() -> Chip {
    let mut chip = chip(1);
    load_all(&mut chip, &[(tile(5), busy())], &program(Vec::new()));
    chip.start();
    chip
}

fn hits(debugger: &mut Debugger, chip: &mut Chip) -> Vec<Hit> {
    let mut hits = Vec::new();
    loop {
        match debugger.run(chip, &mut Told::default()) {
            Halt::Hit(hit) => hits.push(hit),
            Halt::Stopped(stop) => {
                assert_eq!(stop, Stop::Finished);
                return hits;
            }
        }
    }
}

fn same_as_without(chip: &Chip) {
    let mut plain = started();
    assert_eq!(plain.run(), Stop::Finished);
    assert_eq!(chip.counters(), plain.counters());
    for tile in PhysTile::all() {
        assert_eq!(chip.clock(tile), plain.clock(tile), "clock of tile {tile}");
        for context in [Context::Supervisor, Context::Worker(0), Context::Worker(5)] {
            assert_eq!(chip.registers(tile, context), plain.registers(tile, context), "{context} of tile {tile}");
        }
    }
    for address in [OUT, DATA] {
        assert_eq!(chip.read_raw(tile(5), address, 64), plain.read_raw(tile(5), address, 64));
    }
}

#[test]
fn breakpoint_stops_before_its_instruction_and_the_run_goes_on_as_without() {
    let (mut debugger, mut chip) = (Debugger::default(), started());
    debugger.add(Trigger::Address(vec![(ENTRY + 16, TileSelection::all())]), TileSelection::all(), None, false);
    let Halt::Hit(hit) = debugger.run(&mut chip, &mut Told::default()) else { panic!("no stop") };
    assert_eq!((hit.tile, hit.context, hit.pc, hit.why), (tile(5), Context::Supervisor, ENTRY + 16, Why::Breakpoint { id: 1 }));
    let registers = chip.registers(tile(5), Context::Supervisor).unwrap();
    assert_eq!((registers.pc, registers.main[2], registers.main_written >> 3 & 1), (ENTRY + 16, DATA, 0));
    assert_eq!(hits(&mut debugger, &mut chip), []);
    assert_eq!(debugger.breakpoints()[0].hits, 1);
    same_as_without(&chip);
}

#[test]
fn breakpoint_in_worker_code_stops_every_worker_in_the_order_of_their_slots() {
    let (mut debugger, mut chip) = (Debugger::default(), started());
    debugger.add(Trigger::Address(vec![(WORKER + 4, only(5))]), TileSelection::all(), None, false);
    let hits = hits(&mut debugger, &mut chip);
    let contexts: Vec<Context> = hits.iter().map(|hit| hit.context).collect();
    assert_eq!(contexts, (0..6).map(Context::Worker).collect::<Vec<_>>());
    assert!(hits.windows(2).all(|pair| pair[1].clock == pair[0].clock + 1), "{hits:?}");
    same_as_without(&chip);
}

#[test]
fn breakpoint_of_a_context_a_tile_or_a_mnemonic_stops_nobody_else() {
    let cases: [(Trigger, TileSelection, Option<Context>, usize); 6] = [
        (Trigger::Mnemonic("st32".to_owned()), TileSelection::all(), None, 7),
        (Trigger::Mnemonic("st32".to_owned()), only(5), Some(Context::Worker(3)), 1),
        (Trigger::Mnemonic("st32".to_owned()), only(5), Some(Context::Supervisor), 1),
        (Trigger::Mnemonic("st32".to_owned()), only(6), None, 0),
        (Trigger::Mnemonic("st64".to_owned()), TileSelection::all(), None, 0),
        (Trigger::Address(vec![(WORKER, only(4))]), TileSelection::all(), None, 0),
    ];
    for (trigger, tiles, context, expected) in cases {
        let (mut debugger, mut chip) = (Debugger::default(), started());
        debugger.add(trigger.clone(), tiles, context, false);
        assert_eq!(hits(&mut debugger, &mut chip).len(), expected, "{trigger:?} {context:?}");
        same_as_without(&chip);
    }
}

#[test]
fn breakpoint_that_holds_once_is_gone_behind_its_first_hit() {
    let (mut debugger, mut chip) = (Debugger::default(), started());
    debugger.add(Trigger::Address(vec![(WORKER, only(5))]), TileSelection::all(), None, true);
    assert_eq!(hits(&mut debugger, &mut chip).len(), 1);
    assert_eq!(debugger.breakpoints(), []);
}

#[test]
fn watchpoint_stops_behind_each_store_to_its_bytes() {
    let (mut debugger, mut chip) = (Debugger::default(), started());
    debugger.add(Trigger::Write { address: OUT + 3, bytes: 2 }, TileSelection::all(), None, false);
    debugger.add(Trigger::Write { address: DATA + 4, bytes: 4 }, TileSelection::all(), None, false);
    let hits = hits(&mut debugger, &mut chip);
    assert_eq!(hits.len(), 6);
    for (number, hit) in hits.iter().enumerate() {
        let why = Why::Write { id: 1, address: OUT, bytes: 4, writer: Writer::Instruction };
        assert_eq!((hit.tile, hit.context, hit.pc, hit.why), (tile(5), Context::Worker(number as u8), WORKER + 8, why));
    }
    same_as_without(&chip);
}

#[test]
fn steps_of_a_context_let_the_others_run() {
    let (mut debugger, mut chip) = (Debugger::default(), started());
    let places = [(Context::Supervisor, 2, ENTRY + 8), (Context::Worker(2), 2, WORKER + 8), (Context::Worker(2), 1, WORKER + 12)];
    for (context, left, pc) in places {
        debugger.step(Some(StepRequest { tile: tile(5), context: Some(context), left }));
        let Halt::Hit(hit) = debugger.run(&mut chip, &mut Told::default()) else { panic!("no stop") };
        assert_eq!((hit.context, hit.why), (context, Why::Stepped));
        assert_eq!(chip.registers(tile(5), context).unwrap().pc, pc);
    }
    assert_eq!(hits(&mut debugger, &mut chip), []);
    same_as_without(&chip);
}

#[test]
fn counts_are_those_of_the_run() {
    let (mut debugger, mut chip) = (Debugger::default(), started());
    debugger.profiled = only(5);
    assert_eq!(hits(&mut debugger, &mut chip), []);
    let [supervisor, workers] = debugger.profile(tile(5));
    let executed = |pc: u32| (supervisor.get(&pc).map(|count| count.executed), workers.get(&pc).map(|count| count.executed));
    assert_eq!(executed(ENTRY + 4), (Some(1), None));
    assert_eq!([executed(WORKER), executed(WORKER + 12)], [(None, Some(6)); 2]);
    assert_eq!(workers[&(WORKER + 8)].clocks, 36);
    // The clock of a tile is what its supervisor spent and waited.
    let spent: u64 = supervisor.values().map(|count| count.clocks + count.waited).sum();
    assert_eq!(spent, chip.clock(tile(5)));
    assert!(debugger.profile(tile(6)).iter().all(|counts| counts.is_empty()));
    same_as_without(&chip);
}

#[test]
fn traced_instructions_are_those_that_pass_the_filter() {
    let (mut debugger, mut chip, mut told) = (Debugger::default(), started(), Told::default());
    let filter = |context, mnemonic: Option<&str>, addresses| TraceFilter {
        tiles: only(5),
        context,
        mnemonic: mnemonic.map(str::to_owned),
        addresses,
    };
    debugger.traces.push(filter(Some(Context::Worker(1)), None, (WORKER, WORKER + 8)));
    debugger.traces.push(filter(None, Some("sync"), (0, u32::MAX)));
    assert_eq!(debugger.run(&mut chip, &mut told), Halt::Stopped(Stop::Finished));
    let places: Vec<(Context, u32)> = told.0.iter().map(|told| (told.context, told.pc)).collect();
    let worker = Context::Worker(1);
    // With six workers running the supervisor's `sync` waits for the end of one.
    assert_eq!(places, [(worker, WORKER), (worker, WORKER + 4), (Context::Supervisor, ENTRY + 8)]);
    assert_eq!(told.0[0].words, [Some(word("setzi.m_zi20", &[2, OUT])), Some(word("setzi.m_zi20", &[3, 7]))]);
    same_as_without(&chip);
}

#[test]
fn worker_that_stopped_at_a_trap_goes_on_behind_it_and_no_other_failure_does() {
    for by_steps in [false, true] {
        let mut chip = chip(1);
        let code = [word("trap.zi4", &[3]), word("exitz.m", &[15])];
        load_all(&mut chip, &[(tile(5), vec![busy().remove(0), segment(WORKER, &code)])], &program(Vec::new()));
        chip.start();
        let mut debugger = Debugger::default();
        if by_steps {
            debugger.profiled = TileSelection::all();
        }
        for number in 0..6 {
            let Halt::Stopped(Stop::Fault(fault)) = debugger.run(&mut chip, &mut Told::default()) else { panic!("no fault") };
            assert_eq!((fault.context, fault.pc, fault.cause), (Context::Worker(number), WORKER, Cause::Breakpoint { number: 3 }));
            assert!(debugger.resume_worker_trap(&mut chip));
        }
        assert_eq!(debugger.run(&mut chip, &mut Told::default()), Halt::Stopped(Stop::Finished));
        assert!(!debugger.resume_worker_trap(&mut chip));
        assert_eq!(chip.words(tile(5), DATA, 1), Ok(vec![Some(7)]));
    }
    let mut chip = chip(1);
    load_all(&mut chip, &[(tile(5), vec![segment(ENTRY, &[0xffff_ffff])])], &program(Vec::new()));
    chip.start();
    let mut debugger = Debugger::default();
    assert!(matches!(debugger.run(&mut chip, &mut Told::default()), Halt::Stopped(Stop::Fault(_))));
    assert!(!debugger.resume_worker_trap(&mut chip));
    assert!(matches!(debugger.run(&mut chip, &mut Told::default()), Halt::Stopped(Stop::Fault(_))));
}

#[test]
fn barriers_tell_who_waited_and_until_when() {
    let mut chip = chip(1);
    let late = program(vec![word("setzi.m_zi20", &[1, 0]), word("sync.zi4", &[3])]);
    load_all(&mut chip, &[(tile(7), vec![late])], &bystander());
    chip.start();
    let mut debugger = Debugger::default();
    assert_eq!(debugger.run(&mut chip, &mut Told::default()), Halt::Stopped(Stop::Finished));
    let [barrier] = chip.barriers() else { panic!("{} barriers", chip.barriers().len()) };
    assert!(barrier.internal && barrier.arrivals.iter().all(Option::is_some));
    let latest = barrier.arrivals.iter().flatten().max().unwrap();
    assert_eq!(barrier.arrivals[7].as_ref(), Some(latest));
    assert!(barrier.release > *latest);
    assert!(chip.messages(tile(7)).is_empty());
}
