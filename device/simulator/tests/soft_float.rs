//! Arithmetic against LLVM's soft-float (`rustc_apfloat`), which shares no code with the simulator, and FP8 against its definition.

mod support;

use half::f16;
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};
use support::{on_workers, run, segment, word, words_at};

/// Words of a batch.
const BATCH: usize = 1 << 14;
const CONTROL: u32 = 0x60000;
const FIRST: u32 = 0x80000;
const SECOND: u32 = FIRST + 4 * BATCH as u32;
const RESULT: u32 = SECOND + 4 * BATCH as u32;

/// The roundings of `$FP_CTL.RND` in the order of their codes (isa-notes 8).
const ROUNDINGS: [Round; 5] =
    [Round::NearestTiesToEven, Round::TowardPositive, Round::TowardNegative, Round::TowardZero, Round::NearestTiesToAway];

/// What a form of `$a4 <- $a0, $a1` makes of a batch of words under a control word.
fn batch(form: &str, control: u32, first: &[u32], second: &[u32]) -> Vec<u32> {
    let sources = if form.ends_with(".aaa") { vec![4, 0, 1] } else { vec![4, 0] };
    let mut code = vec![
        word("setzi.m_zi20", &[1, CONTROL]),
        word("setzi.m_zi20", &[2, FIRST]),
        word("setzi.m_zi20", &[3, SECOND]),
        word("setzi.m_zi20", &[4, RESULT]),
        word("setzi.m_zi20", &[5, first.len() as u32 - 1]),
        word("ld32.a_rri", &[5, 1, 15, 0]),
        word("uput.zi8_a", &[2, 5]),
        word("ld32.a_rri", &[5, 1, 15, 1]),
        word("uput.zi8_a", &[9, 5]),
        word("uput.zi8_a", &[10, 15]),
    ];
    let start = support::WORKER + 4 * code.len() as u32;
    code.extend([
        word("ld32step.a_imm", &[0, 15, 2, 1]),
        word("ld32step.a_imm", &[1, 15, 3, 1]),
        word(form, &sources),
        word("st32step.a_imm", &[4, 15, 4, 1]),
        word("brnzdec.m_zi19", &[5, start / 4]),
    ]);
    let mut segments = on_workers(&code);
    segments.extend([segment(CONTROL, &[control, control >> 31]), segment(FIRST, first), segment(SECOND, second)]);
    let (tile, result) = run(&segments);
    result.unwrap();
    words_at(&tile, RESULT, first.len())
}

/// Numbers without a pattern: splitmix64.
fn scramble(value: u64) -> u64 {
    let x = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 31)
}

/// Bit patterns of zeros, denormals, ones, ends of the range, infinities and NaN, and whatever comes else.
fn samples(edges: &[u32], width: u32, seed: u64) -> Vec<u32> {
    let edge = |i: usize, step: usize| edges[i / step % edges.len()];
    let count = edges.len();
    (0..BATCH)
        .map(|i| {
            let random = scramble(seed + i as u64) as u32;
            let near = if i < count * count { edge(i, if seed == 0 { 1 } else { count }) } else { random };
            if width == 16 { near & 0xffff | random & 0xffff_0000 } else { near }
        })
        .collect()
}

const HALF_EDGES: [u32; 16] =
    [0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x3c01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x6400, 0x0401];
const SINGLE_EDGES: [u32; 16] = [
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
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x3380_0000,
    0x4b80_0000,
];

fn operate<F: Float>(name: &str, a: F, b: F, round: Round) -> F {
    match name {
        "add" => a.add_r(b, round).value,
        "sub" => a.sub_r(b, round).value,
        "mul" => a.mul_r(b, round).value,
        "absadd" => a.abs().add_r(b.abs(), round).value,
        _ => a.div_r(b, round).value,
    }
}

/// A binary16 result: no infinities leave an instruction (isa-notes 8).
fn settled(value: Half) -> u32 {
    if value.is_nan() {
        return 0x7e00;
    }
    let bits = value.to_bits() as u32;
    if value.is_infinite() { bits & 0x8000 | 0x7bff } else { bits }
}

fn lanes(word: u32) -> [u32; 2] {
    [word & 0xffff, word >> 16]
}

#[test]
fn half_arithmetic_is_that_of_a_soft_float_in_every_rounding() {
    let (first, second) = (samples(&HALF_EDGES, 16, 0), samples(&HALF_EDGES, 16, 1 << 40));
    for name in ["add", "sub", "mul", "absadd"] {
        for (code, round) in ROUNDINGS.into_iter().enumerate() {
            let found = batch(&format!("f16v2{name}.aaa"), (code as u32) << 16, &first, &second);
            for ((&a, &b), &found) in first.iter().zip(&second).zip(&found) {
                for lane in 0..2 {
                    let of = |word: u32| Half::from_bits(lanes(word)[lane].into());
                    let expected = settled(operate(name, of(a), of(b), round));
                    assert_eq!(lanes(found)[lane], expected, "{name} {a:#x} {b:#x} lane {lane} rounding {code}");
                }
            }
        }
    }
}

#[test]
fn single_arithmetic_is_that_of_a_soft_float_in_every_rounding() {
    let (first, second) = (samples(&SINGLE_EDGES, 32, 0), samples(&SINGLE_EDGES, 32, 1 << 40));
    let close: Vec<u32> = first.iter().zip(&second).map(|(a, b)| a & 0x7f80_0000 | b & 0x807f_ffff).collect();
    for second in [&second, &close] {
        for name in ["add", "sub", "mul", "absadd", "div"] {
            for (code, round) in ROUNDINGS.into_iter().enumerate() {
                let found = batch(&format!("f32{name}.aaa"), (code as u32) << 16, &first, second);
                for ((&a, &b), &found) in first.iter().zip(second).zip(&found) {
                    let expected = operate(name, Single::from_bits(a.into()), Single::from_bits(b.into()), round);
                    let expected = if expected.is_nan() { 0x7fc0_0000 } else { expected.to_bits() as u32 };
                    assert_eq!(found, expected, "{name} {a:#x} {b:#x} rounding {code}");
                }
            }
        }
    }
}

#[test]
fn singles_become_halves_as_in_a_soft_float() {
    let mut values = samples(&SINGLE_EDGES, 32, 0);
    for (i, value) in values.iter_mut().enumerate().skip(BATCH / 2) {
        *value = *value & 0x807f_ffff | (96 + i as u32 % 52) << 23;
    }
    for (code, round) in ROUNDINGS.into_iter().enumerate() {
        let found = batch("f32tof16.aa", (code as u32) << 16, &values, &values);
        for (&value, &found) in values.iter().zip(&found) {
            let converted: Half = Single::from_bits(value.into()).convert_r(round, &mut false).value;
            assert_eq!(found, settled(converted) * 0x1_0001, "{value:#x} rounding {code}");
        }
    }
}

/// All binary16 values in two batches.
fn all_halves() -> [Vec<u32>; 2] {
    let from = |start: u32| (0..BATCH as u32).map(|i| (start + 2 * i) | (start + 2 * i + 1) << 16).collect();
    [from(0), from(0x8000)]
}

#[test]
fn every_half_widens_exactly() {
    for values in all_halves() {
        let found = batch("f16tof32.aa", 0, &values, &values);
        for (&value, &found) in values.iter().zip(&found) {
            let wide = f16::from_bits(value as u16).to_f32();
            assert!(found == wide.to_bits() || wide.is_nan() && f32::from_bits(found).is_nan(), "{value:#x}");
        }
    }
}

type Function = fn(f64) -> f64;

/// The host's functions may miss the last bit of an f64, which moves a binary16 at most if the value is all but a tie.
#[test]
fn functions_of_every_half_are_rounded_once() {
    let functions: [(&str, Function); 6] = [
        ("exp", f64::exp),
        ("exp2", f64::exp2),
        ("ln", f64::ln),
        ("log2", f64::log2),
        ("tanh", f64::tanh),
        ("sigm", |x| 1.0 / (1.0 + (-x).exp())),
    ];
    for (name, function) in functions {
        for values in all_halves() {
            let found = batch(&format!("f16v2{name}.aa"), 0, &values, &values);
            for (&value, &found) in values.iter().zip(&found) {
                for lane in 0..2 {
                    let exact = function(f16::from_bits(lanes(value)[lane] as u16).to_f64());
                    let expected = settled(Double::from_bits(exact.to_bits().into()).convert(&mut false).value);
                    assert_eq!(lanes(found)[lane], expected, "{name} {value:#x} lane {lane}");
                }
            }
        }
    }
}

/// Fraction bits, bias and largest value of an FP8 format; bit 0 of `$FP_NFMT` set means the first (isa-notes 8).
const F143: (i32, i32, f64) = (3, 8, 240.0);
const F152: (i32, i32, f64) = (2, 16, 57344.0);

/// The code of a value: a multiple of the last place at the value's exponent, ties to even, the range closed by its ends.
fn byte_of(value: f64, (fraction, bias, largest): (i32, i32, f64)) -> u32 {
    if value.is_nan() {
        return 0x80;
    }
    let magnitude = value.abs().min(largest);
    let exponent = if magnitude == 0.0 { 1 - bias } else { (magnitude.log2().floor() as i32).max(1 - bias) };
    let count = (magnitude / 2f64.powi(exponent - fraction)).round_ties_even().min(2f64.powi(fraction + 1));
    let code = ((exponent + bias - 1) << fraction) as u32 + count as u32;
    if value < 0.0 && code != 0 { code | 0x80 } else { code }
}

fn value_of(code: u32, (fraction, bias, _): (i32, i32, f64)) -> f64 {
    let (exponent, low) = ((code as i32 & 0x7f) >> fraction, code as i32 & ((1 << fraction) - 1));
    let hidden = if exponent > 0 { 1 << fraction } else { 0 };
    let magnitude = f64::from(hidden + low) * 2f64.powi(exponent.max(1) - bias - fraction);
    if code == 0x80 {
        f64::NAN
    } else if code > 0x80 {
        -magnitude
    } else {
        magnitude
    }
}

#[test]
fn every_half_becomes_the_nearest_byte() {
    for (format, control) in [(F143, 1 << 31), (F152, 0)] {
        for values in all_halves() {
            let found = batch("f16v2tof8.aa", control, &values, &values);
            for (&value, &found) in values.iter().zip(&found) {
                let expected = lanes(value).map(|lane| byte_of(f16::from_bits(lane as u16).to_f64(), format));
                assert_eq!(found, expected[0] | expected[1] << 8, "{value:#x} {format:?}");
            }
        }
    }
}

#[test]
fn every_byte_has_the_value_of_its_format() {
    for (format, control) in [(F143, 1 << 31), (F152, 0)] {
        let codes: Vec<u32> = (0..256).collect();
        let found = batch("f8v2tof16.aa", control, &codes, &codes);
        for (&code, &found) in codes.iter().zip(&found) {
            let expected = f16::from_f64(value_of(code, format));
            let expected = if expected.is_nan() { 0x7e00 } else { expected.to_bits() };
            assert_eq!(lanes(found)[0], expected.into(), "{code:#x} {format:?}");
        }
    }
}
