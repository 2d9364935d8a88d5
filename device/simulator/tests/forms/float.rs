//! Arithmetic, comparison and selection of f16 and f32 lanes against LLVM's soft-float.

use rustc_apfloat::ieee::{Half, Single};
use rustc_apfloat::{Float, Round, Status, StatusAnd};

use crate::Entry;
use crate::machine::{Case, Machine, Rule};

/// Zeros, denormals, ones, neighbours, ends of the range. Signalling NaN are left out: no source says what they do.
const HALF_EDGES: [u32; 15] = [0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x3c01, 0x7bff, 0xfbff, 0x6400, 0x0401, 0x7e00, 0x3555];
const SINGLE_EDGES: [u32; 15] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x7f_ffff,
    0x80_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x3f80_0001,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x3380_0000,
    0x4b80_0000,
    0x7fc0_0000,
    0x7f80_0000,
];

pub(crate) const INVALID: u32 = 1;
pub(crate) const DIVIDE_BY_ZERO: u32 = 2;
pub(crate) const OVERFLOW: u32 = 4;

/// The roundings of `$FP_CTL.RND` in the order of their codes (isa-notes 8).
pub(crate) const ROUNDINGS: [Round; 5] =
    [Round::NearestTiesToEven, Round::TowardPositive, Round::TowardNegative, Round::TowardZero, Round::NearestTiesToAway];

/// The rounding that a state selects.
pub(crate) fn rounding(machine: &Machine) -> Round {
    ROUNDINGS[(machine.control >> 16 & 7) as usize]
}

/// Raises the flags of a soft-float status.
pub(crate) fn raise(machine: &mut Machine, status: Status) {
    let flags = [(Status::INVALID_OP, INVALID), (Status::DIV_BY_ZERO, DIVIDE_BY_ZERO), (Status::OVERFLOW, OVERFLOW)];
    machine.status |= flags.iter().filter(|(bit, _)| status.intersects(*bit)).map(|(_, flag)| flag).sum::<u32>();
}

/// Whether the exact value, rounded as if exponents had no end, lies beyond `end`, the first power of two without a number; `step` is
/// the last place below it.
fn beyond(exact: f64, round: Round, end: f64, step: f64) -> bool {
    let magnitude = exact.abs();
    match (round, exact > 0.0) {
        (Round::TowardZero, _) | (Round::TowardPositive, false) | (Round::TowardNegative, true) => magnitude >= end,
        (Round::TowardPositive | Round::TowardNegative, _) => magnitude > end - step,
        _ => magnitude >= end - step / 2.0,
    }
}

/// A binary16 result: what overflows is the largest of its sign, or NaN under `$FP_CTL.NANOO`; infinite results count as overflows.
pub(crate) fn settled(machine: &mut Machine, exact: f64, result: StatusAnd<Half>) -> u16 {
    raise(machine, result.status & (Status::INVALID_OP | Status::DIV_BY_ZERO));
    if result.value.is_nan() {
        return 0x7e00;
    }
    let bits = result.value.to_bits() as u16;
    if !beyond(exact, rounding(machine), 65536.0, 32.0) {
        return bits;
    }
    machine.status |= OVERFLOW;
    if machine.control >> 20 & 1 == 1 { 0x7e00 } else { bits & 0x8000 | 0x7bff }
}

/// A binary32 result; every NaN is the quiet one.
pub(crate) fn single(machine: &mut Machine, exact: f64, result: StatusAnd<Single>) -> u32 {
    raise(machine, result.status);
    if exact.is_finite() && beyond(exact, rounding(machine), 2f64.powi(128), 2f64.powi(104)) {
        machine.status |= OVERFLOW;
    }
    if result.value.is_nan() { 0x7fc0_0000 } else { result.value.to_bits() as u32 }
}

pub(crate) fn half_of(bits: u64) -> Half {
    Half::from_bits(u128::from(bits as u16))
}

pub(crate) fn single_of(bits: u64) -> Single {
    Single::from_bits(u128::from(bits as u32))
}

fn arithmetic<F: Float>(name: &str, a: F, b: F, round: Round) -> Option<StatusAnd<F>> {
    Some(match name {
        "add" => a.add_r(b, round),
        "sub" => a.sub_r(b, round),
        "mul" => a.mul_r(b, round),
        "div" => a.div_r(b, round),
        "absadd" => a.abs().add_r(b.abs(), round),
        _ => return None,
    })
}

fn comparison<F: Float>(name: &str, a: F, b: F) -> Option<bool> {
    Some(match name {
        "cmpeq" => a == b,
        "cmpne" => a != b,
        "cmplt" => a < b,
        "cmple" => a <= b,
        "cmpgt" => a > b,
        "cmpge" => a >= b,
        _ => return None,
    })
}

/// Bits of the greater or smaller: a number wins against NaN, the first of equal ones is taken.
pub(crate) fn pick<F: Float>(greatest: bool, [a, b]: [u64; 2], of: fn(u64) -> F) -> u64 {
    let (left, right) = (of(a), of(b));
    let first = if greatest { left >= right } else { left <= right };
    if first || right.is_nan() { a } else { b }
}

fn selection<F: Float>(name: &str, a: u64, b: u64, sign: u64, of: fn(u64) -> F) -> Option<u64> {
    match name {
        "max" => Some(pick(true, [a, b], of)),
        "min" => Some(pick(false, [a, b], of)),
        "absmax" => Some(pick(true, [a & !sign, b & !sign], of)),
        _ => None,
    }
}

/// The result in f64: exact, or with an error that lies below every rounding.
fn in_f64(name: &str, a: f64, b: f64) -> f64 {
    match name {
        "add" => a + b,
        "sub" => a - b,
        "mul" => a * b,
        "div" => a / b,
        _ => a.abs() + b.abs(),
    }
}

/// One lane of f16.
fn half_lane(machine: &mut Machine, name: &str, a: u64, b: u64) -> Option<u64> {
    if let Some(result) = arithmetic(name, half_of(a), half_of(b), rounding(machine)) {
        let wide = |bits: u64| half::f16::from_bits(bits as u16).to_f64();
        return Some(settled(machine, in_f64(name, wide(a), wide(b)), result).into());
    }
    let compared = comparison(name, half_of(a), half_of(b)).map(|holds| if holds { 0xffff } else { 0 });
    compared.or_else(|| selection(name, a & 0xffff, b & 0xffff, 0x8000, half_of))
}

/// One lane of f32.
fn single_lane(machine: &mut Machine, name: &str, a: u64, b: u64) -> Option<u64> {
    if let Some(result) = arithmetic(name, single_of(a), single_of(b), rounding(machine)) {
        let wide = |bits: u64| f64::from(f32::from_bits(bits as u32));
        return Some(single(machine, in_f64(name, wide(a), wide(b)), result).into());
    }
    let (a, b) = (a & 0xffff_ffff, b & 0xffff_ffff);
    let compared = comparison(name, single_of(a), single_of(b)).map(|holds| if holds { 0xffff_ffff } else { 0 });
    compared.or_else(|| selection(name, a, b, 1 << 31, single_of))
}

/// Lanes of a form: how many, how wide, and the operation behind the prefix.
fn parts(mnemonic: &str) -> Option<(u32, u32, &str)> {
    let prefixes = [("f16v2", 2, 16), ("f16v4", 4, 16), ("f32v2", 2, 32), ("f32", 1, 32)];
    prefixes.iter().find_map(|&(prefix, count, width)| mnemonic.strip_prefix(prefix).map(|name| (count, width, name)))
}

fn effect(case: &mut Case<'_>) {
    let (count, width, name) = parts(case.entry.mnemonic).unwrap();
    let (first, second) = (case.read("src0"), case.read("src1"));
    let spread = |i: u32| match case.entry.variant {
        "bl" | "b" => first,
        "bu" => first >> 16,
        _ => first >> (width * i),
    };
    let mut out = 0;
    for i in 0..count {
        let lane = if width == 16 { half_lane } else { single_lane };
        out |= lane(&mut case.machine, name, spread(i), second >> (width * i)).unwrap() << (width * i);
    }
    case.write("dst", out);
}

/// `clamp`: the greater of source and lower bound, of that and the upper bound the smaller.
fn clamp(case: &mut Case<'_>) {
    let (count, width, _) = parts(case.entry.mnemonic).unwrap();
    let (first, bounds) = (case.read("src0"), case.read("src1"));
    let mask = (1_u64 << width) - 1;
    let out = (0..count).fold(0, |out, i| {
        let (value, low, high) = (first >> (width * i) & mask, bounds & mask, bounds >> width & mask);
        let kept = if width == 16 {
            pick(false, [pick(true, [value, low], half_of), high], half_of)
        } else {
            pick(false, [pick(true, [value, low], single_of), high], single_of)
        };
        out | kept << (width * i)
    });
    case.write("dst", out);
}

pub(crate) fn rule(entry: &Entry) -> Option<Rule> {
    let (_, width, name) = parts(entry.mnemonic)?;
    let known = ["add", "sub", "mul", "div", "absadd", "max", "min", "absmax", "cmpeq", "cmpne", "cmplt", "cmple", "cmpgt", "cmpge"];
    let effect = if name == "clamp" {
        clamp
    } else if known.contains(&name) {
        effect
    } else {
        return None;
    };
    Some(rule_with(effect, width == 16))
}

/// A rule on f16 or f32 lanes without preparation.
pub(crate) fn rule_with(effect: fn(&mut Case<'_>), halves: bool) -> Rule {
    Rule { prepare: without_signalling, effect, edges: if halves { &HALF_EDGES } else { &SINGLE_EDGES }, halves }
}

/// Makes every NaN in the aux registers a quiet one and no f16 infinite: no source says what the others do.
pub(crate) fn without_signalling(case: &mut Case<'_>, _: u64) {
    for word in &mut case.machine.aux {
        if *word & 0x7f80_0000 == 0x7f80_0000 && *word & 0x7f_ffff != 0 {
            *word |= 0x40_0000;
        }
        for shift in [0, 16] {
            if *word >> shift & 0x7c00 == 0x7c00 {
                *word |= 0x200 << shift;
            }
        }
    }
}
