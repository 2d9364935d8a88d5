//! Conversions, functions of one argument, classes, and random numbers.

use half::f16;
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Status, StatusAnd};

use crate::Entry;
use crate::float::{DIVIDE_BY_ZERO, INVALID, OVERFLOW, half_of, pick, rounding, rule_with, settled, single, single_of};
use crate::machine::{Case, Machine, Rule};

/// A number rounded once to binary16.
fn to_half(machine: &mut Machine, value: f64) -> u64 {
    let result: StatusAnd<Half> = Double::from_bits(value.to_bits().into()).convert_r(rounding(machine), &mut false);
    settled(machine, value, result).into()
}

fn lane(value: u64, i: u32) -> u64 {
    value >> (16 * i) & 0xffff
}

fn wide(half: u64) -> f64 {
    f16::from_bits(half as u16).to_f64()
}

fn singles_to_halves(case: &mut Case<'_>) {
    let sources: Vec<u64> = match case.entry.mnemonic {
        "f32tof16" => vec![case.read("src0")],
        "f32v2tof16" => vec![case.read("src0"), case.read("src0") >> 32],
        _ => case.quad("src0").map(u64::from).to_vec(),
    };
    let mut halves = Vec::new();
    for source in sources {
        let result: StatusAnd<Half> = single_of(source).convert_r(rounding(&case.machine), &mut false);
        let exact = f64::from(f32::from_bits(source as u32));
        halves.push(u64::from(settled(&mut case.machine, exact, result)));
    }
    if halves.len() == 1 {
        halves.push(halves[0]);
    }
    case.write("dst", halves.iter().rev().fold(0, |word, half| word << 16 | half));
}

fn halves_to_singles(case: &mut Case<'_>) {
    let source = case.read("src0");
    let widened = |i: u32| {
        let value: Single = half_of(lane(source, i)).convert(&mut false).value;
        value.to_bits() as u64
    };
    case.write("dst", widened(0) | if case.entry.mnemonic == "f16v2tof32" { widened(1) << 32 } else { 0 });
}

fn integers_to_singles(case: &mut Case<'_>) {
    let (source, round) = (case.read("src0") as u32, rounding(&case.machine));
    let value = if case.entry.mnemonic == "f32fromi32" { i128::from(source.cast_signed()) } else { i128::from(source) };
    let bits = single(&mut case.machine, value as f64, Single::from_i128_r(value, round));
    case.write("dst", bits.into());
}

/// Out of range gives the nearest end and INV, NaN gives 0 and INV (parameters.toml `f32toi32_out_of_range`).
fn singles_to_integers(case: &mut Case<'_>) {
    let (source, round) = (single_of(case.read("src0")), rounding(&case.machine));
    let (bits, invalid) = if case.entry.mnemonic == "f32toi32" {
        let result = source.to_i128_r(32, round, &mut false);
        (result.value as u32, result.status.intersects(Status::INVALID_OP))
    } else {
        let result = source.to_u128_r(32, round, &mut false);
        (result.value as u32, result.status.intersects(Status::INVALID_OP))
    };
    case.machine.status |= if invalid { INVALID } else { 0 };
    case.write("dst", bits.into());
}

fn whole(case: &mut Case<'_>) {
    let source = case.read("src0");
    let result = single_of(source).round_to_integral(crate::float::ROUNDINGS[case.read("rnd") as usize]);
    let bits = if result.value.is_finite() { result.value.to_bits() as u64 } else { source };
    case.write("dst", bits);
}

/// Fraction bits, bias and largest value of the FP8 format that a state selects (isa-notes 8).
fn format_of(machine: &Machine) -> (i32, i32, f64) {
    if machine.byte_format == 1 { (3, 8, 240.0) } else { (2, 16, 57344.0) }
}

fn scale_of(machine: &Machine) -> f64 {
    2f64.powi((machine.byte_scale as i32) << 26 >> 26)
}

/// The code of a value, and whether it lies beyond the range by half a step or more.
fn byte_of(value: f64, (fraction, bias, largest): (i32, i32, f64)) -> (u64, bool) {
    if value.is_nan() {
        return (0x80, false);
    }
    let step = 2f64.powi(largest.log2().floor() as i32 - fraction);
    let magnitude = value.abs().min(largest);
    let exponent = if magnitude == 0.0 { 1 - bias } else { (magnitude.log2().floor() as i32).max(1 - bias) };
    let count = (magnitude / 2f64.powi(exponent - fraction)).round_ties_even();
    let code = ((exponent + bias - 1) << fraction) as u64 + count as u64;
    (if value < 0.0 && code != 0 { code | 0x80 } else { code }, value.abs() >= largest + step / 2.0)
}

fn value_of(code: u64, (fraction, bias, _): (i32, i32, f64)) -> f64 {
    let (exponent, low) = ((code as i32 & 0x7f) >> fraction, code as i32 & ((1 << fraction) - 1));
    let hidden = if exponent > 0 { 1 << fraction } else { 0 };
    let magnitude = f64::from(hidden + low) * 2f64.powi(exponent.max(1) - bias - fraction);
    match code {
        0x80 => f64::NAN,
        0x81.. => -magnitude,
        _ => magnitude,
    }
}

fn halves_to_bytes(case: &mut Case<'_>) {
    let eight = case.entry.mnemonic == "f16v8tof8";
    let words: Vec<u32> = if eight { case.quad("src0").to_vec() } else { vec![case.read("src0") as u32] };
    let (format, scale) = (format_of(&case.machine), scale_of(&case.machine));
    let codes: Vec<(u64, bool)> =
        words.iter().flat_map(|&word| [word & 0xffff, word >> 16]).map(|half| byte_of(wide(half.into()) * scale, format)).collect();
    case.machine.status |= if codes.iter().any(|(_, beyond)| *beyond) { OVERFLOW } else { 0 };
    case.write("dst", codes.iter().rev().fold(0, |word, (code, _)| word << 8 | code));
}

fn bytes_to_halves(case: &mut Case<'_>) {
    let (source, count) = (case.read("src0"), if case.entry.mnemonic == "f8v4tof16" { 4 } else { 2 });
    let (format, scale) = (format_of(&case.machine), scale_of(&case.machine));
    let out =
        (0..count).fold(0, |word, i| word | to_half(&mut case.machine, value_of(source >> (8 * i) & 0xff, format) * scale) << (16 * i));
    case.write("dst", out);
}

/// A function of one argument.
type Function = fn(f64) -> f64;

/// The function of a name, and whether it has a pole at zero.
fn function(name: &str) -> Option<(Function, bool)> {
    Some(match name {
        "exp" => (f64::exp, false),
        "exp2" => (f64::exp2, false),
        "ln" => (f64::ln, true),
        "log2" => (f64::log2, true),
        "tanh" => (f64::tanh, false),
        "sigm" => (|x| 1.0 / (1.0 + (-x).exp()), false),
        "sqrt" => (f64::sqrt, false),
        "oox" => (|x| 1.0 / x, true),
        "oorx" => (|x| 1.0 / x.sqrt(), true),
        _ => return None,
    })
}

/// Nearest only: the host's functions may miss the last bit of an f64, which directed roundings would show.
fn to_nearest(case: &mut Case<'_>, number: u64) {
    crate::float::without_signalling(case, number);
    case.machine.control &= !(7 << 16);
}

fn half_function(case: &mut Case<'_>) {
    let (function, pole) = function(&case.entry.mnemonic[5..]).unwrap();
    let source = case.read("src0");
    let mut out = 0;
    for i in 0..2 {
        let x = wide(lane(source, i));
        let value = function(x);
        case.machine.status |= if pole && x == 0.0 { DIVIDE_BY_ZERO } else { 0 };
        case.machine.status |= if value.is_nan() && !x.is_nan() { INVALID } else { 0 };
        out |= to_half(&mut case.machine, value) << (16 * i);
    }
    case.write("dst", out);
}

fn single_function(case: &mut Case<'_>) {
    let (function, pole) = function(&case.entry.mnemonic[3..]).unwrap();
    let x = f64::from(f32::from_bits(case.read("src0") as u32));
    let value = function(x);
    case.machine.status |= if pole && x == 0.0 { DIVIDE_BY_ZERO } else { 0 };
    case.machine.status |= if value.is_nan() && !x.is_nan() { INVALID } else { 0 };
    case.machine.status |= if (value as f32).is_infinite() && value.is_finite() { OVERFLOW } else { 0 };
    let bits = if value.is_nan() { 0x7fc0_0000 } else { (value as f32).to_bits() };
    case.write("dst", bits.into());
}

fn uniform_halves(case: &mut Case<'_>) {
    let (source, count) = (case.read("src0"), if case.entry.mnemonic == "f16v4sufromui" { 4 } else { 2 });
    let out = (0..count).fold(0, |word, i| word | to_half(&mut case.machine, (lane(source, i) as f64 + 0.5) / 65536.0 - 0.5) << (16 * i));
    case.write("dst", out);
}

fn uniform_singles(case: &mut Case<'_>) {
    let (source, count) = (case.read("src0"), if case.entry.mnemonic == "f32v2sufromui" { 2 } else { 1 });
    let mut out = 0;
    for i in 0..count {
        let exact = (f64::from((source >> (32 * i)) as u32) + 0.5) / 4_294_967_296.0 - 0.5;
        let result: StatusAnd<Single> = Double::from_bits(exact.to_bits().into()).convert_r(rounding(&case.machine), &mut false);
        out |= u64::from(single(&mut case.machine, exact, result)) << (32 * i);
    }
    case.write("dst", out);
}

fn lateral_sums(case: &mut Case<'_>) {
    let (source, count) = (case.read("src0"), if case.entry.mnemonic == "f16v4sum" { 2 } else { 1 });
    let mut out = 0;
    for i in 0..count {
        let widened = |at: u32| -> Single { half_of(lane(source, at)).convert(&mut false).value };
        let result = widened(2 * i).add_r(widened(2 * i + 1), rounding(&case.machine));
        out |= u64::from(single(&mut case.machine, 0.0, result)) << (32 * i);
    }
    case.write("dst", out);
}

fn lateral_maxima(case: &mut Case<'_>) {
    let source = case.read("src0");
    let top = |i: u32| pick(true, [lane(source, 2 * i), lane(source, 2 * i + 1)], half_of);
    let upper = if case.entry.mnemonic == "f16v4maxc" { top(1) } else { top(0) };
    case.write("dst", top(0) | upper << 16);
}

/// parameters.toml `class_codes`, in the words of IEEE 754.
fn class<F: Float>(value: F, quiet: bool) -> u64 {
    let signed = |positive: u64| positive + u64::from(value.is_negative());
    match value.category() {
        rustc_apfloat::Category::NaN => 1 + u64::from(quiet),
        rustc_apfloat::Category::Zero => signed(4),
        rustc_apfloat::Category::Normal if value.is_denormal() => signed(6),
        rustc_apfloat::Category::Normal => signed(8),
        rustc_apfloat::Category::Infinity => signed(10),
    }
}

fn classes(case: &mut Case<'_>) {
    let source = case.read("src0");
    let half = |i: u32| class(half_of(lane(source, i)), lane(source, i) & 0x200 != 0);
    let one = |i: u32| class(single_of(source >> (32 * i)), source >> (32 * i) & 0x40_0000 != 0);
    let (fraction, ..) = format_of(&case.machine);
    let byte = |i: u32| match source >> (8 * i) & 0xff {
        0x80 => 2,
        0 => 4,
        code => (if (code & 0x7f) >> fraction == 0 { 6 } else { 8 }) + (code >> 7),
    };
    let codes: Vec<u64> = match case.entry.mnemonic {
        "f16v2class" => (0..2).map(half).collect(),
        "f16v4class" => (0..4).map(half).collect(),
        "f32class" => vec![one(0)],
        "f32v2class" => (0..2).map(one).collect(),
        _ => (0..4).map(byte).collect(),
    };
    case.write("dst", codes.iter().rev().fold(0, |word, code| word << 8 | code));
}

fn any(_: &mut Case<'_>, _: u64) {}

/// xoroshiro128+ as its authors publish it: the simulator's own generator (parameters.toml `prng`).
fn draw(state: &mut [u64; 2]) -> u64 {
    let [s0, mut s1] = *state;
    let result = s0.wrapping_add(s1);
    s1 ^= s0;
    *state = [s0.rotate_left(24) ^ s1 ^ s1 << 16, s1.rotate_left(37)];
    result
}

/// A sum of twelve uniform numbers, less six.
fn gaussian(state: &mut [u64; 2]) -> f64 {
    (0..12).map(|_| (draw(state) >> 11) as f64 / 2f64.powi(53)).sum::<f64>() - 6.0
}

fn random(case: &mut Case<'_>) {
    let state = &mut case.machine.random;
    let value = match case.entry.mnemonic {
        "urand64" => draw(state),
        "urand32" => draw(state) >> 32,
        "f32v2grand" => [gaussian(state), gaussian(state)].iter().rev().fold(0, |w, v| w << 32 | u64::from((*v as f32).to_bits())),
        "f16v2grand" => {
            let pair = [gaussian(state), gaussian(state)];
            let low = to_half(&mut case.machine, pair[0]);
            low | to_half(&mut case.machine, pair[1]) << 16
        }
        name => {
            let (lanes, width) = if name == "f16v4rmask" { (4, 16) } else { (2, 32) };
            let chance = draw(state);
            let (keep, source) = (case.read("src1"), case.read("src0"));
            (0..lanes).fold(0, |word, i| {
                let kept = keep & 0x1_0000 != 0 || (chance >> (16 * i) & 0xffff) < (keep & 0xffff);
                word | if kept { source & ((1 << width) - 1) << (width * i) } else { 0 }
            })
        }
    };
    case.write("dst", value);
}

pub(crate) fn rule(entry: &Entry) -> Option<Rule> {
    let halves = entry.mnemonic.starts_with("f16");
    let bare = |effect: fn(&mut Case<'_>)| Some(Rule { prepare: any, ..rule_with(effect, halves) });
    let nearest = |effect: fn(&mut Case<'_>)| Some(Rule { prepare: to_nearest, ..rule_with(effect, halves) });
    match entry.mnemonic {
        "f32tof16" | "f32v2tof16" | "f32v4tof16" => Some(rule_with(singles_to_halves, false)),
        "f16tof32" | "f16v2tof32" => Some(rule_with(halves_to_singles, true)),
        "f32fromi32" | "f32fromui32" => bare(integers_to_singles),
        "f32toi32" | "f32toui32" => Some(rule_with(singles_to_integers, false)),
        "f32int" => Some(rule_with(whole, false)),
        "f16v2tof8" | "f16v8tof8" => Some(rule_with(halves_to_bytes, true)),
        "f8v2tof16" | "f8v4tof16" => bare(bytes_to_halves),
        "f16v2sufromui" | "f16v4sufromui" => bare(uniform_halves),
        "f32sufromui" | "f32v2sufromui" => bare(uniform_singles),
        "f16v2sum" | "f16v4sum" => Some(rule_with(lateral_sums, true)),
        "f16v2maxc" | "f16v4maxc" => Some(rule_with(lateral_maxima, true)),
        "f16v2class" | "f16v4class" | "f32class" | "f32v2class" | "f8v4class" => bare(classes),
        "urand32" | "urand64" | "f16v2grand" | "f32v2grand" | "f16v4rmask" | "f32v2rmask" => bare(random),
        name if name.starts_with("f16v2") && function(&name[5..]).is_some() => nearest(half_function),
        name if name.starts_with("f32") && function(&name[3..]).is_some() => nearest(single_function),
        _ => None,
    }
}
