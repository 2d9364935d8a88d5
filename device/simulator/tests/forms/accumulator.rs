//! Accumulating forms: sums in f64, one rounding to f32 a call (parameters.toml `amp_sum`), AACC[2i] for element i (isa-notes 9).

use half::f16;

use crate::Entry;
use crate::float::rule_with;
use crate::machine::{Case, Machine, Rule};

/// An f16 element; infinities count as NaN in accumulating instructions (isa-notes 8).
fn half(bits: u32) -> f64 {
    let value = f16::from_bits(bits as u16).to_f64();
    if value.is_infinite() { f64::NAN } else { value }
}

fn single(bits: u32) -> f64 {
    f32::from_bits(bits).into()
}

/// Adds to AACC[2 * element].
fn add(machine: &mut Machine, element: usize, value: f64) {
    let sum = (value + single(machine.sums[element])) as f32;
    machine.sums[element] = sum.to_bits();
}

fn add_all(case: &mut Case<'_>) {
    let words: Vec<u32> = if case.entry.variant == "q" {
        case.quad("src0").to_vec()
    } else {
        [case.read("src0") as u32, (case.read("src0") >> 32) as u32].to_vec()
    };
    let elements: Vec<f64> = if case.entry.mnemonic.starts_with("f16") {
        words.iter().flat_map(|&word| [half(word), half(word >> 16)]).collect()
    } else {
        words.iter().map(|&word| single(word)).collect()
    };
    let (square, absolute) = (case.entry.mnemonic.ends_with("sqacc"), case.entry.mnemonic.ends_with("absacc"));
    for (element, value) in elements.into_iter().enumerate() {
        let value = if square { value * value } else { value };
        add(&mut case.machine, element, if absolute { value.abs() } else { value });
    }
}

fn multiply_add(case: &mut Case<'_>) {
    let (a, b) = (case.read("src0"), case.read("src1"));
    let halves = |i: u32| half((a >> (16 * i)) as u32) * half((b >> (16 * i)) as u32);
    let singles = |i: u32, j: u32| single((a >> (32 * i)) as u32) * single((b >> (32 * j)) as u32);
    let sums = match case.entry.mnemonic {
        "f16v2cmac" => vec![halves(0) + halves(1)],
        "f16v4cmac" => vec![halves(0) + halves(1), halves(2) + halves(3)],
        "f32mac" => vec![singles(0, 0)],
        "f32v2mac" => vec![singles(0, 0), singles(1, 1)],
        // parameters.toml `aop_accumulators`.
        _ => vec![singles(0, 0), singles(1, 0), singles(0, 1), singles(1, 1)],
    };
    for (element, sum) in sums.into_iter().enumerate() {
        add(&mut case.machine, element, sum);
    }
}

fn rounded(machine: &mut Machine, bits: u32) -> u64 {
    let round = crate::float::rounding(machine);
    let result = rustc_apfloat::FloatConvert::convert_r(crate::float::single_of(bits.into()), round, &mut false);
    crate::float::settled(machine, single(bits), result).into()
}

/// `gacc` reads four sums; `gina` takes two out of the chain and lets two in.
fn get(case: &mut Case<'_>) {
    if case.entry.mnemonic == "f16v4gacc" {
        let sums = case.machine.sums;
        let out = (0..4).rev().fold(0, |word, i| word << 16 | rounded(&mut case.machine, sums[i]));
        return case.write("dst", out);
    }
    let (entering, leaving) = (case.read("src0"), [case.machine.sums[0], case.machine.sums[1]]);
    case.machine.sums.copy_within(2.., 0);
    if case.entry.mnemonic == "f32v2gina" {
        case.machine.sums[6..].copy_from_slice(&[entering as u32, (entering >> 32) as u32]);
        return case.write("dst", u64::from(leaving[0]) | u64::from(leaving[1]) << 32);
    }
    let widened = |bits: u64| f16::from_bits(bits as u16).to_f32().to_bits();
    case.machine.sums[6..].copy_from_slice(&[widened(entering), widened(entering >> 16)]);
    let low = rounded(&mut case.machine, leaving[0]);
    let out = low | rounded(&mut case.machine, leaving[1]) << 16;
    case.write("dst", out);
}

/// What the last call left comes out, and a scaled sum takes its place.
fn scaled(case: &mut Case<'_>) {
    let (a, b, scale) = (case.read("src0"), case.read("src1"), case.machine.scale);
    let old = case.machine.sums;
    if case.entry.mnemonic == "f16v4mix" {
        let out = (0..4).rev().fold(0, |word, i| word << 16 | rounded(&mut case.machine, old[i]));
        for i in 0..4 {
            let term = |lanes: u64, factor: u32| f16::from_bits(factor as u16).to_f64() * half((lanes >> (16 * i)) as u32);
            case.machine.sums[i] = ((term(a, scale) + term(b, scale >> 16)) as f32).to_bits();
        }
        return case.write("dst", out);
    }
    for i in 0..2 {
        let lane = |pair: u64| single((pair >> (32 * i)) as u32);
        case.machine.sums[i] = ((single(scale) * lane(a) + lane(b)) as f32).to_bits();
    }
    case.write("dst", u64::from(old[0]) | u64::from(old[1]) << 32);
}

/// Finite numbers: how the payload of a NaN travels through a sum is no fact.
fn finite(case: &mut Case<'_>, _: u64) {
    for word in &mut case.machine.aux {
        if *word & 0x7c00 == 0x7c00 {
            *word &= !0x4000;
        }
        if *word & 0x7c00_0000 == 0x7c00_0000 {
            *word &= !0x4000_0000;
        }
    }
}

pub(crate) fn rule(entry: &Entry) -> Option<Rule> {
    let halves = entry.mnemonic.starts_with("f16");
    let effect = match entry.mnemonic {
        "f16v4gacc" | "f16v2gina" | "f32v2gina" => get,
        "f16v4mix" | "f32v2axpy" => scaled,
        "f16v2cmac" | "f16v4cmac" | "f32mac" | "f32v2mac" | "f32v2aop" => multiply_add,
        name if ["absacc", "sqacc", "acc"].iter().any(|end| name.ends_with(end)) && !name.ends_with("stacc") => add_all,
        _ => return None,
    };
    Some(Rule { prepare: finite, ..rule_with(effect, halves) })
}
