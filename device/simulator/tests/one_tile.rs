//! One tile: clocks of launches, joins and phases, poison, memory rules, repeats, and the arithmetic families.

mod support;

use half::f16;
use ipu21::isa::{self, FormId};
use ipu21::parameters::Parameters;
use ipu21::tile::PhysTile;
use proptest::prelude::*;
use simulator::{Access, Cause, Context, Latency, Place, Stop};
use support::{DATA, ENTRY, KERNEL, OUT, ROW, WORKER, call, chip, load_all, on_workers, program, run, segment, word, words_at};

fn pair(first: (&str, &[u32]), second: (&str, &[u32])) -> [u32; 2] {
    let encode = |(id, operands): (&str, &[u32])| isa::encode(FormId::named(id).expect(id), operands, true).expect(id).word();
    [encode(first), encode(second)]
}

fn fnop() -> u32 {
    isa::FNOP | isa::COISSUE
}

/// The cause with which worker code fails.
fn failure(code: &[u32]) -> Cause {
    run(&on_workers(code)).1.expect_err("the code fails").cause
}

/// Runs one aux instruction on `$a0..$a5` and returns `$a6:7`.
fn aux(id: &str, operands: &[u32], inputs: [u32; 6]) -> [u32; 2] {
    let mut code = vec![word("setzi.m_zi20", &[2, DATA]), word("setzi.m_zi20", &[3, OUT])];
    for register in 0..6 {
        code.push(word("ld32.a_rri", &[register, 2, 15, register]));
    }
    code.push(word("setzi.a_zi20", &[6, 0]));
    code.push(word("setzi.a_zi20", &[7, 0]));
    code.push(word(id, operands));
    code.push(word("st64.p_rri", &[6, 3, 15, 0]));
    let mut segments = on_workers(&code);
    segments.push(segment(DATA, &inputs));
    let (tile, result) = run(&segments);
    result.unwrap();
    words_at(&tile, OUT, 2).try_into().unwrap()
}

fn halves(value: u32) -> [f64; 2] {
    [value as u16, (value >> 16) as u16].map(|bits| f16::from_bits(bits).to_f64())
}

/// The nearest finite binary16, found by looking at all of them on one side.
fn nearest(value: f64) -> f64 {
    let candidates = (0..=0x7bffu16).map(|bits| (f16::from_bits(bits).to_f64(), bits));
    let distance = |candidate: f64| (candidate - value.abs()).abs();
    let best = candidates.min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)).then((a.1 % 2).cmp(&(b.1 % 2))));
    best.map_or(0.0, |(candidate, _)| candidate.copysign(value))
}

#[test]
fn a_trivial_call_costs_launch_slots_and_join() {
    let (_, result) = run(&on_workers(&[]));
    // setzi 1, call 6, setzi and its latency 6, runall 6, last worker 5 + 6, join 6, branch 6.
    assert_eq!(result.unwrap().clocks, 1 + 6 + 6 + 6 + 11 + 6 + 6);
}

#[test]
fn every_bundle_costs_one_slot_and_a_function_its_own() {
    let base = run(&on_workers(&[])).1.unwrap().clocks;
    let cost = |code: &[u32]| run(&on_workers(code)).1.unwrap().clocks - base;
    let zero = word("setzi.a_zi20", &[0, 0]);
    assert_eq!(cost(&[zero, word("f16v2exp.aa", &[1, 0])]), 6 * (1 + 2));
    assert_eq!(cost(&[zero, word("f32ln.aa", &[1, 0])]), 6 * (1 + 6));
    let bundle = pair(("setzi.m_zi20", &[2, 1]), ("setzi.a_zi20", &[0, 0]));
    assert_eq!(cost(&bundle), 6);
}

#[test]
fn coefficient_loads_cost_a_clock_each_and_wait_for_their_pointer() {
    let mut code = vec![word("setzi.m_zi20", &[1, 0x80000]), word("put.zi8_m", &[0x50, 1])];
    code.extend((0..32).map(|entry| word("ld64putcs.zi8", &[entry])));
    code.push(word("br.m", &[10]));
    let data: Vec<u32> = vec![0; 64];
    let (_, result) = run(&[segment(KERNEL, &code), segment(0x80000, &data)]);
    assert_eq!(result.unwrap().clocks, 7 + 6 + 6 + 32 + 6);
}

#[test]
fn an_empty_phase_costs_the_planning_constant_in_full() {
    let phase = |at: u32| {
        vec![
            word("setzi.m_zi20", &[1, WORKER]),
            word("runall.mm_zi16", &[1, 15, 0]),
            word("sync.zi4", &[2]),
            word("setzi.m_zi20", &[2, 1]),
            word("put.zi8_m", &[0xa6, 2]),
            word("sync.zi4", &[3]),
            call(at),
        ]
    };
    let code = [phase(ROW), phase(ROW)].concat();
    let segments = vec![program(code), segment(WORKER, &[word("exitz.m", &[15])]), segment(ROW, &[word("br.m", &[10])])];
    let mut chip = chip(1);
    let busy: Vec<_> = PhysTile::all().map(|tile| (tile, segments.clone())).collect();
    load_all(&mut chip, &busy, &segments[0]);
    let tile = PhysTile::new(5).unwrap();
    chip.watch(tile, ENTRY);
    chip.watch(tile, ENTRY + 7 * 4);
    chip.start();
    assert_eq!(chip.run(), Stop::Finished);
    let hits = chip.watched();
    let parameters = Parameters::shipped();
    assert_eq!(hits[1].clock - hits[0].clock, u64::from(parameters.barrier.internal_empty_phase));
    assert_eq!(Latency::of(&parameters).internal, 552);
}

#[test]
fn an_idle_tile_costs_the_page_of_its_code() {
    let mut chip = chip(1);
    load_all(&mut chip, &[], &support::bystander());
    chip.start();
    assert_eq!(chip.run(), Stop::Finished);
    assert_eq!(chip.counters().touched_memory_bytes, 1472 * 4096);
}

#[test]
fn a_trap_on_all_tiles_stops_and_resumes() {
    let code = program(vec![word("trap.zi4", &[1]), word("setzi.m_zi20", &[1, 5])]);
    let mut chip = chip(2);
    load_all(&mut chip, &[], &code);
    chip.start();
    assert_eq!(chip.run(), Stop::Trap { number: 1 });
    chip.resume_traps();
    assert_eq!(chip.run(), Stop::Finished);
}

#[test]
fn a_tile_missing_at_a_barrier_is_reported_with_its_place() {
    let mut chip = chip(1);
    let other = PhysTile::new(7).unwrap();
    load_all(&mut chip, &[(other, vec![program(Vec::new())])], &program(vec![word("sync.zi4", &[3])]));
    chip.start();
    let Stop::Stuck(report) = chip.run() else { panic!("not stuck") };
    assert_eq!(report.iter().map(|w| w.what.as_str()).collect::<Vec<_>>(), ["sync 3", "branches to itself"]);
    assert_eq!((report[1].tile, report[1].pc), (other, ENTRY));
}

#[test]
fn a_call_that_loops_for_ever_ends_at_the_limit_where_it_loops() {
    let loop_of = |address| [word("bri.zi19", &[address / 4])];
    let limit = 1 << 26;
    let by_supervisor = run(&[segment(KERNEL, &[word("setzi.m_zi20", &[1, 0]), word("bri.zi19", &[KERNEL / 4])])]).1.unwrap_err();
    assert_eq!((by_supervisor.context, by_supervisor.cause), (Context::Supervisor, Cause::CallTooLong { limit }));
    let by_worker = run(&on_workers(&loop_of(WORKER))).1.unwrap_err();
    assert_eq!((by_worker.context, by_worker.pc, &by_worker.cause), (Context::Worker(0), WORKER, &Cause::CallTooLong { limit }));
    assert!(by_worker.to_string().ends_with("the call did not return in 67108864 clocks, the limit of one call; does it loop for ever?"));
}

#[test]
fn a_call_that_stands_still_says_at_what() {
    let stands = |code: &[u32]| run(&[segment(KERNEL, code)]).1.unwrap_err().to_string();
    assert!(stands(&[word("bri.zi19", &[KERNEL / 4])]).ends_with("the call did not return: branches to itself"));
    assert!(stands(&[word("sync.zi4", &[3])]).ends_with("the call did not return: sync 3"));
}

#[test]
fn a_register_nobody_wrote_can_be_loaded_over_but_not_stored() {
    let load = word("ld32.a_rri", &[0, 2, 15, 0]);
    let base = word("setzi.m_zi20", &[2, DATA]);
    assert!(run(&on_workers(&[base, load])).1.is_ok());
    let cause = failure(&[base, load, word("st32.a_rri", &[0, 2, 15, 1])]);
    assert_eq!(cause, Cause::PoisonStored { from: Place::Aux(0), address: DATA + 4 });
}

#[test]
fn poison_cannot_be_computed_with_branched_on_or_addressed_by() {
    let cause = failure(&[word("f32add.aaa", &[1, 2, 3])]);
    assert_eq!(cause, Cause::PoisonUsed { place: Place::Aux(2), form: "f32add.aaa" });
    let cause = failure(&[word("brz.m_zi19", &[4, WORKER / 4])]);
    assert_eq!(cause, Cause::PoisonUsed { place: Place::Main(4), form: "brz.m_zi19" });
    let cause = failure(&[word("ld32.m_rri", &[1, 3, 15, 0])]);
    assert_eq!(cause, Cause::PoisonUsed { place: Place::Main(3), form: "ld32.m_rri" });
    let zero = word("or64.ppp", &[0, 14, 14]);
    let cause = failure(&[zero, word("f16v4hihov4amp.ppp_ef6", &[2, 0, 0, 0])]);
    assert_eq!(cause, Cause::PoisonUsed { place: Place::Coefficients { entry: 0 }, form: "f16v4hihov4amp.ppp_ef6" });
}

#[test]
fn code_nobody_wrote_is_not_executed_and_region_1_is_not_executable() {
    let mut segments = on_workers(&[word("bri.zi19", &[0x70000 / 4])]);
    assert_eq!(run(&segments).1.unwrap_err().cause, Cause::PoisonExecuted { address: 0x70000 });
    segments = on_workers(&[word("bri.zi19", &[0x80000 / 4])]);
    let fault = run(&segments).1.unwrap_err();
    assert_eq!(fault.cause, Cause::BadProgramCounter { address: 0x80000 });
    assert_eq!((fault.context, fault.pc), (Context::Worker(0), 0x80000));
}

#[test]
fn paired_accesses_to_one_element_are_a_conflict_and_bit_3_keeps_them_apart() {
    let paced = |first: u32, third: u32| {
        let code = [
            word("setzi.m_zi20", &[5, first]),
            word("setzi.m_zi20", &[6, 0x4c000]),
            word("setzi.m_zi20", &[7, third]),
            word("tapack.p_mmm", &[2, 5, 6, 7]),
            word("setzi.a_zi20", &[0, 1]),
            word("setzi.a_zi20", &[1, 2]),
            word("setzi.m_zi20", &[4, 0]),
            word("ldst64pace", &[0, 0, 2, 4, 0]),
        ];
        run(&on_workers(&code)).1.map_err(|fault| fault.cause)
    };
    assert_eq!(paced(0x60000, 0x60008), Err(Cause::AccessClash { first: 0x60000, second: 0x60008 }));
    assert_eq!(paced(0x80000, 0x80010), Err(Cause::AccessClash { first: 0x80000, second: 0x80010 }));
    assert!(paced(0x80000, 0x80018).is_ok());
    assert!(paced(0x60000, 0x64000).is_ok());
}

#[test]
fn wide_loads_need_the_interleaved_region_and_their_alignment() {
    let load = |address: u32| failure(&[word("setzi.m_zi20", &[2, address]), word("ld128.q_rri", &[0, 2, 15, 0])]);
    assert_eq!(load(0x60000), Cause::NotInterleaved { address: 0x60000 });
    assert_eq!(load(0x80008), Cause::Misaligned { address: 0x80008, alignment: 16, access: Access::Load });
}

#[test]
fn a_repeat_runs_its_body_count_times_and_takes_bundles_only() {
    let add = pair(("add.mm_si16", &[2, 2, 1]), ("setzi.a_zi20", &[13, 0]));
    let start = [word("setzi.m_zi20", &[2, 0]), word("setzi.m_zi20", &[3, OUT])];
    let mut code = start.to_vec();
    code.extend([isa::NOP, word("rpt.zi12_zi8", &[7, 0])]);
    code.extend(add);
    code.push(word("st32.m_rri", &[2, 3, 15, 0]));
    let (tile, result) = run(&on_workers(&code));
    result.unwrap();
    assert_eq!(tile.read(OUT, 4).unwrap(), [7, 0, 0, 0]);
    let solo = [isa::NOP, word("rpt.zi12_zi8", &[7, 0]), isa::NOP, isa::NOP];
    assert_eq!(failure(&solo), Cause::IllegalRepeat { rule: "a repeat body holds bundles only" });
    let misaligned = [word("rpt.zi12_zi8", &[7, 0]), fnop(), fnop()];
    assert_eq!(failure(&misaligned), Cause::IllegalRepeat { rule: "the body starts at a multiple of 8" });
}

#[test]
fn a_bundle_reads_registers_as_they_were_before_it() {
    let mut code = vec![word("setzi.m_zi20", &[2, DATA]), word("setzi.m_zi20", &[3, OUT])];
    code.extend([word("ld64.p_rri", &[0, 2, 15, 0]), isa::NOP]);
    code.extend(pair(("st64.p_rri", &[0, 3, 15, 0]), ("not64.pp", &[0, 0])));
    code.extend(pair(("ld64.p_rri", &[2, 2, 15, 1]), ("or64.ppp", &[4, 0, 14])));
    code.push(word("st64.p_rri", &[4, 3, 15, 1]));
    let mut segments = on_workers(&code);
    segments.push(segment(DATA, &[1, 2, 3, 4]));
    let (tile, result) = run(&segments);
    result.unwrap();
    assert_eq!(words_at(&tile, OUT, 4), [1, 2, !1, !2]);
}

#[test]
fn a_stored_instruction_is_executed_as_stored() {
    let patched = KERNEL + 4 * 6;
    let replacement = word("setzi.m_zi20", &[4, 77]);
    let code = [
        word("setzi.m_zi20", &[2, DATA]),
        word("ld32.m_rri", &[3, 2, 15, 0]),
        word("setzi.m_zi20", &[5, patched]),
        word("setzi.m_zi20", &[6, OUT]),
        word("st32.m_rri", &[3, 5, 15, 0]),
        isa::NOP,
        word("setzi.m_zi20", &[4, 1]),
        word("st32.m_rri", &[4, 6, 15, 0]),
        word("br.m", &[10]),
    ];
    let (tile, result) = run(&[segment(KERNEL, &code), segment(DATA, &[replacement])]);
    result.unwrap();
    assert_eq!(tile.read(OUT, 4).unwrap(), [77, 0, 0, 0]);
}

#[test]
fn immediates_without_public_meaning_fault_by_name() {
    let zero = word("or64.ppp", &[0, 14, 14]);
    let cause = failure(&[zero, word("f32v2gina.pp_zi12", &[2, 0, 1])]);
    assert_eq!(cause, Cause::NotSimulated { form: "f32v2gina.pp_zi12", value: 1 });
    assert_eq!(failure(&[word("sync.zi4", &[2])]), Cause::WrongMode { form: "sync.zi4" });
}

#[test]
fn functions_are_the_f64_values_rounded_once() {
    for x in [0.0, 0.5, 1.0, 2.25, 5.0] {
        let bits = u32::from(f16::from_f64(x).to_bits());
        let half = |id: &str| halves(aux(id, &[6, 0], [bits, 0, 0, 0, 0, 0])[0])[0];
        let single = |id: &str| f32::from_bits(aux(id, &[6, 0], [(x as f32).to_bits(), 0, 0, 0, 0, 0])[0]);
        assert_eq!(half("f16v2exp.aa"), nearest(x.exp()));
        assert_eq!(half("f16v2tanh.aa"), nearest(x.tanh()));
        assert_eq!(half("f16v2sigm.aa"), nearest(1.0 / (1.0 + (-x).exp())));
        assert_eq!(single("f32exp.aa"), x.exp() as f32);
        assert_eq!(single("f32sqrt.aa"), (x as f32).sqrt());
        assert_eq!(single("f32oox.aa"), (1.0 / x) as f32);
    }
}

#[test]
fn sums_of_eight_halves_drain_through_gina() {
    let values = [1.5f64, -2.0, 3.25, 4.0, 5.0, 6.0, -7.5, 8.0];
    let packed: Vec<u32> = values
        .chunks(2)
        .map(|pair| u32::from(f16::from_f64(pair[0]).to_bits()) | u32::from(f16::from_f64(pair[1]).to_bits()) << 16)
        .collect();
    let mut code = vec![word("setzi.m_zi20", &[2, DATA]), word("setzi.m_zi20", &[3, OUT])];
    code.extend([word("setzi.a_zi20", &[7, 8]), word("uput.zi8_a", &[1, 7])]);
    code.extend([word("ld64.p_rri", &[0, 2, 15, 0]), word("ld64.p_rri", &[2, 2, 15, 1])]);
    code.extend([word("f16v8acc.q", &[0]), word("f16v8sqacc.q", &[0])]);
    for call in 0..4 {
        code.push(word("f32v2gina.pp_zi12", &[4, 14, 0]));
        code.push(word("st64.p_rri", &[4, 3, 15, call]));
    }
    let mut segments = on_workers(&code);
    segments.push(segment(DATA, &packed));
    let (tile, result) = run(&segments);
    result.unwrap();
    let out: Vec<f64> = words_at(&tile, OUT, 8).into_iter().map(|bits| f64::from(f32::from_bits(bits))).collect();
    let expected: Vec<f64> = values.iter().map(|v| v + v * v).collect();
    assert_eq!(out, expected);
}

#[test]
fn partial_supervisor_slots_let_it_run_beside_one_worker() {
    let spin: Vec<u32> = (0..50).map(|_| isa::NOP).collect();
    let mut code = vec![word("setzi.m_zi20", &[1, WORKER]), word("setzi.m_zi20", &[2, 0]), word("run.mm_zi16", &[1, 2, 0])];
    code.extend((0..30).map(|_| isa::NOP));
    code.extend([word("sync.zi4", &[2]), word("br.m", &[10])]);
    let mut worker = spin;
    worker.push(word("exitz.m", &[15]));
    let clocks = run(&[segment(KERNEL, &code), segment(WORKER, &worker)]).1.unwrap().clocks;
    // The supervisor's instructions hide behind the worker's 51 slots: setzi twice (latency of the second 6), run 6.
    assert_eq!(clocks, 7 + 7 + 6 + 51 * 6 + 6 + 6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn half_arithmetic_is_exact_and_rounded_once(a: u32, b: u32) {
        let finite = |v: u32| v & 0xbbff_bbff;
        let (a, b) = (finite(a), finite(b));
        let inputs = [a, b, 0, 0, 0, 0];
        for (id, operation) in [
            ("f16v2add.aaa", (|x, y| x + y) as fn(f64, f64) -> f64),
            ("f16v2sub.aaa", |x, y| x - y),
            ("f16v2mul.aaa", |x, y| x * y),
            ("f16v2max.aaa", f64::max),
        ] {
            let found = halves(aux(id, &[6, 0, 1], inputs)[0]);
            for (lane, value) in found.into_iter().enumerate() {
                let exact = operation(halves(a)[lane], halves(b)[lane]);
                prop_assert_eq!(value, nearest(exact), "{} lane {}", id, lane);
            }
        }
        let broadcast = halves(aux("f16v2mul.bu", &[6, 0, 1], inputs)[0]);
        prop_assert_eq!(broadcast[0], nearest(halves(a)[1] * halves(b)[0]));
    }

    #[test]
    fn single_arithmetic_is_ieee(a in -1e6f32..1e6, b in 1e-3f32..1e6) {
        let inputs = [a.to_bits(), b.to_bits(), 0, 0, 0, 0];
        let value = |id: &str| f32::from_bits(aux(id, &[6, 0, 1], inputs)[0]);
        prop_assert_eq!(value("f32add.aaa"), a + b);
        prop_assert_eq!(value("f32sub.aaa"), a - b);
        prop_assert_eq!(value("f32mul.aaa"), a * b);
        prop_assert_eq!(value("f32div.aaa"), a / b);
        let whole = aux("f32toi32.aa", &[6, 0], inputs)[0] as i32;
        prop_assert_eq!(f64::from(whole), f64::from(a).round_ties_even());
        let half = halves(aux("f32tof16.aa", &[6, 0], inputs)[0]);
        prop_assert_eq!(half[0], nearest(f64::from(a).clamp(-65504.0, 65504.0)));
        prop_assert_eq!(half[0], half[1]);
    }

    #[test]
    fn random_words_never_panic(words in proptest::collection::vec(any::<u32>(), 1..60)) {
        let _ = run(&on_workers(&words));
        let _ = run(&[segment(KERNEL, &words)]);
    }
}
