//! Integer forms of both register files, from rules in wide arithmetic, on bits, and on lists of bytes.

use crate::Entry;
use crate::machine::{Case, Rule};

/// Ends of the ranges, shift amounts, and bytes that can be told apart.
const EDGES: [u32; 18] =
    [0, 1, 2, 7, 15, 16, 30, 31, 32, 33, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_ffff, 0xa3a2_a1a0, 0x0180_00f1, 0xe000_0000, 12345];

/// What a result is made of.
enum Made {
    /// A function of both operands as unsigned numbers; the result counts modulo 2^32.
    Unsigned(fn(i128, i128) -> i128),
    /// The same of signed numbers.
    Signed(fn(i128, i128) -> i128),
    /// A function of a bit of each operand.
    Bits(fn(bool, bool) -> bool),
    /// Bytes of the result from the lowest on: `a0`..`a3` of the first operand, `b0`..`b3` of the second.
    Bytes(&'static str),
}

/// 2^n, or 0 for shifts that move everything out (parameters.toml `shift_above_31`).
fn power(n: i128) -> i128 {
    if n > 31 { 0 } else { 1 << n }
}

/// The number of leading bits that a predicate holds for, from bit `from` down.
fn leading(value: i128, from: i128, bit: i128) -> i128 {
    (0..=from).rev().take_while(|&at| (value >> at) & 1 == bit).count() as i128
}

/// The bits of every byte in reverse order.
fn mirrored(a: i128) -> i128 {
    (0..32).map(|bit| ((a >> bit) & 1) << (bit / 8 * 8 + 7 - bit % 8)).sum()
}

fn made(mnemonic: &str) -> Option<Made> {
    Some(match mnemonic {
        "abs" => Made::Signed(|a, _| if a < 0 { -a } else { a }),
        "add" => Made::Unsigned(|a, b| a + b),
        "and" | "and64" => Made::Bits(|a, b| a && b),
        "andc" | "andc64" => Made::Bits(|a, b| a && !b),
        "bitrev8" => Made::Unsigned(|a, _| mirrored(a)),
        "clz" => Made::Unsigned(|a, _| leading(a, 31, 0)),
        "cmpeq" => Made::Unsigned(|a, b| i128::from(a == b)),
        "cmpne" => Made::Unsigned(|a, b| i128::from(a != b)),
        "cmpslt" => Made::Signed(|a, b| i128::from(a < b)),
        "cmpult" => Made::Unsigned(|a, b| i128::from(a < b)),
        "cms" => Made::Unsigned(|a, _| leading(a, 30, a >> 31)),
        "max" => Made::Signed(|a, b| if a > b { a } else { b }),
        "min" => Made::Signed(|a, b| if a < b { a } else { b }),
        "mul" => Made::Unsigned(|a, b| a * b),
        "not" | "not64" => Made::Bits(|a, _| !a),
        "or" | "or64" => Made::Bits(|a, b| a || b),
        "popc" => Made::Unsigned(|a, _| (0..32).map(|bit| (a >> bit) & 1).sum()),
        "roll16" => Made::Bytes("a2 a3 b0 b1"),
        "roll8l" => Made::Bytes("a3 b0 b1 b2"),
        "roll8r" => Made::Bytes("a1 a2 a3 b0"),
        "roll32" => Made::Bytes("a4 a5 a6 a7 b0 b1 b2 b3"),
        "sort4x32hi" => Made::Bytes("a4 a5 a6 a7 b4 b5 b6 b7"),
        "sort4x32lo" => Made::Bytes("a0 a1 a2 a3 b0 b1 b2 b3"),
        "shl" => Made::Unsigned(|a, b| a * power(b)),
        "shr" => Made::Unsigned(|a, b| if b > 31 { 0 } else { a / power(b) }),
        "shrs" => Made::Unsigned(|a, b| (if a >> 31 == 1 { a - (1 << 32) } else { a }).div_euclid(power(if b > 31 { 31 } else { b }))),
        "shuf8x8hi" => Made::Bytes("a2 b2 a3 b3"),
        "shuf8x8lo" => Made::Bytes("a0 b0 a1 b1"),
        "sort4x16hi" => Made::Bytes("a2 a3 b2 b3"),
        "sort4x16lo" => Made::Bytes("a0 a1 b0 b1"),
        "sort8" => Made::Bytes("a0 a2 a1 a3"),
        "sort8x8hi" => Made::Bytes("a1 a3 b1 b3"),
        "sort8x8lo" => Made::Bytes("a0 a2 b0 b2"),
        "sub" => Made::Unsigned(|a, b| a - b),
        "swap8" => Made::Bytes("a1 a0 a3 a2"),
        "xnor" => Made::Bits(|a, b| a == b),
        "xor" => Made::Bits(|a, b| a != b),
        _ => return None,
    })
}

fn result(made: &Made, a: u64, b: u64) -> u64 {
    let signed = |word: u64| i128::from((word as u32).cast_signed());
    let word = |value: i128| value.rem_euclid(1 << 32) as u64;
    match made {
        Made::Unsigned(of) => word(of(a.into(), (b as u32).into())),
        Made::Signed(of) => word(of(signed(a), signed(b))),
        Made::Bits(of) => (0..64).map(|bit| u64::from(of((a >> bit) & 1 == 1, (b >> bit) & 1 == 1)) << bit).sum(),
        Made::Bytes(picks) => {
            let byte = |pick: &str| if pick.starts_with('a') { a } else { b }.to_le_bytes()[usize::from(pick.as_bytes()[1] - b'0')];
            picks.split(' ').rev().fold(0, |value, pick| value << 8 | u64::from(byte(pick)))
        }
    }
}

fn effect(case: &mut Case<'_>) {
    let entry = case.entry;
    let made = made(entry.mnemonic).unwrap();
    let first = case.read("src0");
    let first = match entry.variant {
        "bl" => (first & 0xffff) * 0x1_0001,
        "bu" => (first >> 16) * 0x1_0001,
        _ => first,
    };
    let second = if entry.position("src1").is_some() {
        case.read("src1")
    } else if entry.position("imm").is_some() {
        case.read("imm")
    } else {
        0
    };
    // `sub` with an immediate subtracts from it.
    let reversed = entry.mnemonic == "sub" && entry.position("imm").is_some();
    let (a, b) = if reversed { (second, first) } else { (first, second) };
    case.write("dst", result(&made, a & mask(entry), b));
}

fn mask(entry: &Entry) -> u64 {
    if entry.variant.starts_with('p') { u64::MAX } else { u64::from(u32::MAX) }
}

/// Forms that only move or set a register.
fn moved(case: &mut Case<'_>) {
    match case.entry.mnemonic {
        "movz" if case.read("cond") == 0 => {}
        "movz" => case.write("srcDst", case.read("src0")),
        "setzi" => case.write("dst", case.read("imm")),
        _ => case.write("dst", case.read("src0")),
    }
}

/// A condition that is zero in every second case.
fn condition(case: &mut Case<'_>, number: u64) {
    if let Some(register) = case.field("cond")
        && number.is_multiple_of(2)
    {
        case.machine.main[register as usize] = 0;
    }
}

pub(crate) fn rule(entry: &Entry) -> Option<Rule> {
    let effect = match entry.mnemonic {
        "movz" | "setzi" | "atom" => moved,
        name if made(name).is_some() => effect,
        _ => return None,
    };
    Some(Rule { prepare: condition, effect, edges: &EDGES, halves: false })
}
