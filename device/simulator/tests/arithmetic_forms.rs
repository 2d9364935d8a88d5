//! Forms of the aux lane outside the library's kernels: f32 matrix steps, scaled sums, random numbers and directed rounding.

mod support;

use half::f16;
use ipu21::parameters::Parameters;
use simulator::{Cause, Place, Segment};
use support::{DATA, KERNEL, OUT, WORKER, launcher, on_workers, run, segment, word, words_at};

/// `$m2` of a worker points to the input, `$m3` to the output.
fn pointers() -> Vec<u32> {
    vec![word("setzi.m_zi20", &[2, DATA]), word("setzi.m_zi20", &[3, OUT])]
}

/// Loads a word of the input into an aux register.
fn load(register: u32, index: u32) -> u32 {
    word("ld32.a_rri", &[register, 2, 15, index])
}

/// Loads an aligned pair of words of the input into two aux registers.
fn load_pair(register: u32, pair: u32) -> u32 {
    word("ld64.p_rri", &[register, 2, 15, pair])
}

fn store(register: u32, index: u32) -> u32 {
    word("st32.a_rri", &[register, 3, 15, index])
}

fn store_pair(register: u32, pair: u32) -> u32 {
    word("st64.p_rri", &[register, 3, 15, pair])
}

/// Zeroes the accumulators; `$a7` is lost.
fn zero_accumulators() -> [u32; 2] {
    [word("setzi.a_zi20", &[7, 8]), word("uput.zi8_a", &[1, 7])]
}

/// What worker code leaves in the first words of the output.
fn outputs(code: &[u32], input: &[u32], count: usize) -> Vec<u32> {
    let mut segments = on_workers(&[pointers(), code.to_vec()].concat());
    segments.push(segment(DATA, input));
    let (tile, result) = run(&segments);
    result.unwrap();
    words_at(&tile, OUT, count)
}

fn halves(low: f64, high: f64) -> u32 {
    u32::from(f16::from_f64(low).to_bits()) | u32::from(f16::from_f64(high).to_bits()) << 16
}

#[test]
fn mix_returns_what_the_mix_before_it_left() {
    let mut code = zero_accumulators().to_vec();
    code.extend([load_pair(0, 0), load_pair(2, 1), load(4, 4), word("uput.zi8_a", &[8, 4])]);
    for pair in 0..2 {
        code.extend([word("f16v4mix.ppp", &[6, 0, 2]), store_pair(6, pair)]);
    }
    let (x, y, a, b) = ([1.0, -2.0, 3.0, 4.5], [0.5, 8.0, -6.0, 1.0], 3.0, -0.25);
    let input = [halves(x[0], x[1]), halves(x[2], x[3]), halves(y[0], y[1]), halves(y[2], y[3]), halves(a, b)];
    let mixed = |i: usize| a * x[i] + b * y[i];
    assert_eq!(outputs(&code, &input, 4), [0, 0, halves(mixed(0), mixed(1)), halves(mixed(2), mixed(3))]);
}

#[test]
fn axpy_returns_what_the_axpy_before_it_left() {
    let mut code = zero_accumulators().to_vec();
    code.extend([load_pair(0, 0), load_pair(2, 1), load(4, 4), word("uput.zi8_a", &[8, 4])]);
    for pair in 0..2 {
        code.extend([word("f32v2axpy.ppp", &[6, 0, 2]), store_pair(6, pair)]);
    }
    let input = [1.5f32, -2.0, 0.25, 8.0, 3.0].map(f32::to_bits);
    let expected = [0.0f32, 0.0, 3.0 * 1.5 + 0.25, 3.0 * -2.0 + 8.0].map(f32::to_bits);
    assert_eq!(outputs(&code, &input, 4), expected);
}

#[test]
fn scaled_sums_need_their_scale() {
    let zero = word("or64.ppp", &[0, 14, 14]);
    for form in ["f16v4mix.ppp", "f32v2axpy.ppp"] {
        let cause = run(&on_workers(&[zero, word(form, &[2, 0, 0])])).1.expect_err("no scale").cause;
        assert_eq!(cause, Cause::PoisonUsed { place: Place::Scale, form });
    }
}

const COEFFICIENTS: u32 = 0x80000;
const LOADER: u32 = 0x50000;
/// Rows streamed through the matrix unit.
const ROWS: usize = 3;
/// Steps of a row in f32.
const STEPS: usize = 8;
/// One block of steps enters partials, the next multiplies, the last returns: rows overlap.
const CALLS: usize = (ROWS + 2) * STEPS;

/// A kernel that loads all coefficients before its workers start.
fn with_coefficients(worker: &[u32], coefficients: &[u32]) -> Vec<Segment> {
    let mut loads = vec![word("setzi.m_zi20", &[1, COEFFICIENTS]), word("put.zi8_m", &[0x50, 1])];
    loads.extend((0..64).map(|entry| word("ld64putcs.zi8", &[entry])));
    loads.extend(launcher());
    let mut code = worker.to_vec();
    code.push(word("exitz.m", &[15]));
    let jump = [word("bri.zi19", &[LOADER / 4])];
    vec![segment(KERNEL, &jump), segment(WORKER, &code), segment(LOADER, &loads), segment(COEFFICIENTS, coefficients)]
}

/// Small whole numbers: their sums are exact in any order.
fn weight(unit: usize, channel: usize) -> f32 {
    ((unit * 7 + channel * 3) % 11) as f32 - 5.0
}

fn input(row: usize, channel: usize) -> f32 {
    ((row * 5 + channel * 2) % 9) as f32 - 4.0
}

fn partial(row: usize, unit: usize) -> f32 {
    (row * 100 + unit) as f32
}

/// Streams the rows through steps of an f32 form; `moved` gives the first unit of the couple that a phase moves.
fn streamed(form: &str, moved: impl Fn(usize) -> Option<usize>) -> Vec<(usize, usize, f32)> {
    let phases = Parameters::shipped().immediate.tamp_f32_e4.p;
    let mut worker = [pointers(), zero_accumulators().to_vec()].concat();
    let (mut data, mut expected_places) = (Vec::new(), Vec::new());
    for call in 0..CALLS {
        let (block, phase) = (call / STEPS, call % STEPS);
        let x = if (1..=ROWS).contains(&block) { input(block - 1, phase) } else { 0.0 };
        let unit = moved(phase);
        let entering = |offset: usize| unit.filter(|_| block < ROWS).map_or(0.0, |unit| partial(block, unit + offset));
        data.extend([entering(0), entering(1), x, 0.0].map(f32::to_bits));
        let index = call as u32;
        worker.extend([load_pair(2, 2 * index), load(0, 4 * index + 2)]);
        worker.push(word(form, &[4, 0, 2, phases[phase]]));
        if let Some(unit) = unit {
            worker.push(store_pair(4, index));
            expected_places.push((block, unit, 2 * call));
        }
    }
    let coefficients: Vec<u32> = (0..64).flat_map(|entry| [0, 1].map(|half| weight(entry / 4, 2 * (entry % 4) + half).to_bits())).collect();
    let mut segments = with_coefficients(&worker, &coefficients);
    segments.push(segment(DATA, &data));
    let (tile, result) = run(&segments);
    result.unwrap();
    let results = expected_places.into_iter().filter(|(block, ..)| *block >= 2);
    results
        .flat_map(|(block, unit, at)| {
            let values = words_at(&tile, OUT + 4 * at as u32, 2);
            [0, 1].map(|offset| (block - 2, unit + offset, f32::from_bits(values[offset])))
        })
        .collect()
}

fn check_products(results: &[(usize, usize, f32)], units: usize) {
    assert_eq!(results.len(), ROWS * units);
    for &(row, unit, found) in results {
        let products: f32 = (0..STEPS).map(|channel| input(row, channel) * weight(unit, channel)).sum();
        assert_eq!(found, products + partial(row, unit), "row {row} unit {unit}");
    }
}

#[test]
fn single_precision_rows_come_out_multiplied_by_eight_units() {
    let results = streamed("f32sisoamp.pap_ef6", |phase| (phase % 2 == 0).then_some(phase));
    check_products(&results, 8);
}

#[test]
fn single_precision_rows_come_out_multiplied_by_sixteen_units() {
    let results = streamed("f32sisov2amp.pap_ef6", |phase| Some(if phase % 2 == 0 { phase } else { 8 + phase - 1 }));
    check_products(&results, 16);
}

#[test]
fn a_single_precision_step_loses_the_scale() {
    let mut worker = zero_accumulators().to_vec();
    worker.extend([word("uput.zi8_a", &[8, 7]), word("or64.ppp", &[0, 14, 14])]);
    worker.push(word("f32sisoamp.pap_ef6", &[2, 0, 0, Parameters::shipped().immediate.tamp_f32_e4.p[0]]));
    worker.push(word("f32v2axpy.ppp", &[2, 0, 0]));
    let cause = run(&with_coefficients(&worker, &[0; 128])).1.expect_err("the scale is lost").cause;
    assert_eq!(cause, Cause::PoisonUsed { place: Place::Scale, form: "f32v2axpy.ppp" });
}

/// Every form that draws random numbers, after the seed in the first word of the input; 12 words of output.
fn random_code() -> Vec<u32> {
    let mut code = vec![load(0, 0), word("uput.zi8_a", &[7, 0])];
    code.extend([word("urand32.a", &[4]), store(4, 0), word("f16v2grand.a", &[4]), store(4, 1)]);
    code.extend([word("urand64.p", &[4]), store_pair(4, 1), word("f32v2grand.p", &[4]), store_pair(4, 2)]);
    code.extend([load(1, 1), load_pair(2, 1)]);
    code.extend([word("f16v4rmask.ppa", &[4, 2, 1]), store_pair(4, 3)]);
    code.extend([word("f32v2rmask.ppa", &[4, 2, 1]), store_pair(4, 4)]);
    let stochastic = 1 << 19;
    code.extend([word("setzi.a_zi20", &[6, stochastic]), word("uput.zi8_a", &[2, 6])]);
    code.extend([load(2, 4), word("f32tof16.aa", &[4, 2]), store(4, 10)]);
    code.extend([word("f32tof16.aa", &[4, 2]), store(4, 11)]);
    code
}

/// 1 plus a quarter of the last place of a binary16.
const BETWEEN: f32 = 1.0 + 0.25 / 1024.0;
const LANES: [u32; 2] = [0x3c01_3c02, 0x3c03_3c04];

fn random(seed: u32, keep: u32) -> Vec<u32> {
    outputs(&random_code(), &[seed, keep, LANES[0], LANES[1], BETWEEN.to_bits()], 12)
}

#[test]
fn random_numbers_are_defined_by_the_seed() {
    let first = random(12345, 0x8000);
    assert_eq!(first, random(12345, 0x8000));
    assert_ne!(first[..6], random(54321, 0x8000)[..6]);
    for (lane, found) in (0..4).map(|lane| (lane, first[6 + lane / 2] >> (16 * (lane % 2)) & 0xffff)) {
        let value = LANES[lane / 2] >> (16 * (lane % 2)) & 0xffff;
        assert!(found == 0 || found == value, "lane {lane}: {found:#x}");
    }
    for rounded in &first[10..] {
        assert!([0x3c00_3c00, 0x3c01_3c01].contains(rounded), "{rounded:#x}");
    }
}

#[test]
fn masks_keep_everything_or_nothing_at_the_ends_of_their_range() {
    assert_eq!(random(7, 0x1_0000)[6..10], [LANES, LANES].concat());
    assert_eq!(random(7, 0)[6..10], [0; 4]);
}

#[test]
fn the_seed_fills_the_generator_as_the_register_table_says() {
    let mut code = vec![load(0, 0), word("uput.zi8_a", &[7, 0])];
    for index in 0..4 {
        code.extend([word("uget.a_zi8", &[1, 3 + index]), store(1, index)]);
    }
    code.extend([word("uget.a_zi8", &[1, 7]), store(1, 4)]);
    let seed = 0x89ab_cdefu32;
    let expected = [seed, !seed, seed << 13 | !seed >> 19, !seed << 13 | seed >> 19, 0];
    assert_eq!(outputs(&code, &[seed], 5), expected);
}

/// Results under the roundings 0 nearest even, 1 up, 2 down, 3 to zero, 4 nearest away from zero.
fn rounded(id: &str, operands: &[u32], values: [u32; 2]) -> [u32; 5] {
    [0, 1, 2, 3, 4].map(|mode| {
        let control = [word("setzi.a_zi20", &[5, mode << 16]), word("uput.zi8_a", &[2, 5])];
        let code = [load(0, 0), load(1, 1), word(id, operands), store(4, 0)];
        outputs(&[control.to_vec(), code.to_vec()].concat(), &values, 1)[0]
    })
}

#[test]
fn single_sums_round_in_the_chosen_direction() {
    let sums = |sign: f32| rounded("f32add.aaa", &[4, 0, 1], [sign, sign * 1e-9].map(f32::to_bits)).map(f32::from_bits);
    let next = 1.0f32.next_up();
    assert_eq!(sums(1.0), [1.0, next, 1.0, 1.0, 1.0]);
    assert_eq!(sums(-1.0), [-1.0, -1.0, -next, -1.0, -1.0]);
}

#[test]
fn half_sums_and_conversions_round_in_the_chosen_direction() {
    let half_step = 0.5 / 1024.0;
    let sums = |sign: f64| rounded("f16v2add.aaa", &[4, 0, 1], [halves(sign, sign), halves(sign * half_step, sign * half_step)]);
    assert_eq!(sums(1.0), [0x3c00_3c00, 0x3c01_3c01, 0x3c00_3c00, 0x3c00_3c00, 0x3c01_3c01]);
    assert_eq!(sums(-1.0), [0xbc00_bc00, 0xbc00_bc00, 0xbc01_bc01, 0xbc00_bc00, 0xbc01_bc01]);
    let converted = rounded("f32tof16.aa", &[4, 0], [BETWEEN.to_bits(), 0]);
    assert_eq!(converted, [0x3c00_3c00, 0x3c01_3c01, 0x3c00_3c00, 0x3c00_3c00, 0x3c00_3c00]);
}

#[test]
fn whole_numbers_round_in_the_chosen_direction() {
    for (value, expected) in [(2.5f32, [2, 3, 2, 2, 3]), (-2.5, [-2, -2, -3, -2, -3])] {
        let integers = rounded("f32toi32.aa", &[4, 0], [value.to_bits(), 0]).map(|bits| bits as i32);
        assert_eq!(integers, expected);
        for (mode, wanted) in (0..5).zip(expected) {
            let code = [load(0, 0), word("f32int.aa_ef4", &[4, 0, mode]), store(4, 0)];
            let found = f32::from_bits(outputs(&code, &[value.to_bits()], 1)[0]);
            assert_eq!(found, wanted as f32);
        }
    }
}

/// Stops the worker when a flag is raised that `$FP_CTL` enables: the raised and enabled flags, if any.
fn trapped(enabled: u32, form: &str, operands: &[u32], values: [u32; 2]) -> Option<u32> {
    let control = [word("setzi.a_zi20", &[5, enabled]), word("uput.zi8_a", &[2, 5])];
    let code = [pointers(), control.to_vec(), vec![load(0, 0), load(1, 1), word(form, operands)]].concat();
    let mut segments = on_workers(&code);
    segments.push(segment(DATA, &values));
    match run(&segments).1.map_err(|fault| fault.cause) {
        Ok(_) => None,
        Err(Cause::FloatingPoint { flags }) => Some(flags),
        Err(cause) => panic!("{cause}"),
    }
}

#[test]
fn a_flag_stops_the_worker_only_if_it_is_enabled() {
    let infinity = f32::INFINITY.to_bits();
    let cases: [(u32, &str, &[u32], [u32; 2]); 5] = [
        (1, "f32sub.aaa", &[4, 0, 1], [infinity, infinity]),
        (1, "f32sqrt.aa", &[4, 0], [(-1.0f32).to_bits(), 0]),
        (2, "f32div.aaa", &[4, 0, 1], [1.0f32.to_bits(), 0]),
        (4, "f32mul.aaa", &[4, 0, 1], [f32::MAX.to_bits(); 2]),
        (4, "f16v2add.aaa", &[4, 0, 1], [halves(65504.0, 0.0); 2]),
    ];
    for (flag, form, operands, values) in cases {
        assert_eq!(trapped(flag, form, operands, values), Some(flag), "{form}");
        assert_eq!(trapped(7 & !flag, form, operands, values), None, "{form}");
    }
}

#[test]
fn an_f16_beyond_the_range_saturates_or_becomes_nan() {
    let sum = |control: u32| {
        let code = [load(5, 2), word("uput.zi8_a", &[2, 5]), load(0, 0), load(1, 1), word("f16v2add.aaa", &[4, 0, 1]), store(4, 0)];
        let status = [word("uget.a_zi8", &[4, 0]), store(4, 1)];
        outputs(&[code.as_slice(), &status].concat(), &[halves(65504.0, -65504.0), halves(32.0, -32.0), control], 2)
    };
    assert_eq!(sum(0), [halves(65504.0, -65504.0), 4]);
    assert_eq!(sum(1 << 20), [0x7e00_7e00, 4]);
}
