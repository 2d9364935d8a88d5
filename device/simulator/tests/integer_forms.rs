//! Every integer form of two or one main registers on chosen operands, against rules in wide arithmetic and lists of bytes.

mod support;

use ipu21::isa::{self, FormId};
use support::{DATA, OUT, on_workers, run, segment, word, words_at};

/// Operands at the ends of the ranges and between, and shift amounts.
const EDGES: [u32; 18] =
    [0, 1, 2, 7, 15, 16, 30, 31, 32, 33, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_ffff, 0xa3a2_a1a0, 0x0180_00f1, 0xe000_0000, 12345];

/// What a result is made of, independent of how the simulator makes it.
enum Rule {
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

/// Bits below the highest that equal it, counted one by one.
fn run_of_sign_bits(a: i128) -> i128 {
    (0..31).rev().take_while(|&bit| (a >> bit) & 1 == (a >> 31) & 1).count() as i128
}

/// The bits of every byte in reverse order.
fn mirrored(a: i128) -> i128 {
    (0..32).map(|bit| ((a >> bit) & 1) << (bit / 8 * 8 + 7 - bit % 8)).sum()
}

const RULES: [(&str, Rule); 33] = [
    ("abs.mm", Rule::Signed(|a, _| if a < 0 { -a } else { a })),
    ("add.mmm", Rule::Unsigned(|a, b| a + b)),
    ("and.mmm", Rule::Bits(|a, b| a && b)),
    ("andc.mmm", Rule::Bits(|a, b| a && !b)),
    ("bitrev8.mm", Rule::Unsigned(|a, _| mirrored(a))),
    ("clz.mm", Rule::Unsigned(|a, _| (0..32).rev().take_while(|&bit| (a >> bit) & 1 == 0).count() as i128)),
    ("cmpeq.mmm", Rule::Unsigned(|a, b| i128::from(a == b))),
    ("cmpne.mmm", Rule::Unsigned(|a, b| i128::from(a != b))),
    ("cmpslt.mmm", Rule::Signed(|a, b| i128::from(a < b))),
    ("cmpult.mmm", Rule::Unsigned(|a, b| i128::from(a < b))),
    ("cms.mm", Rule::Unsigned(|a, _| run_of_sign_bits(a))),
    ("max.mmm", Rule::Signed(|a, b| if a > b { a } else { b })),
    ("min.mmm", Rule::Signed(|a, b| if a < b { a } else { b })),
    ("mul.mmm", Rule::Unsigned(|a, b| a * b)),
    ("or.mmm", Rule::Bits(|a, b| a || b)),
    ("popc.mm", Rule::Unsigned(|a, _| (0..32).map(|bit| (a >> bit) & 1).sum())),
    ("roll16.mmm", Rule::Bytes("a2 a3 b0 b1")),
    ("roll8l.mmm", Rule::Bytes("a3 b0 b1 b2")),
    ("roll8r.mmm", Rule::Bytes("a1 a2 a3 b0")),
    ("shl.mmm", Rule::Unsigned(|a, b| a * power(b))),
    ("shr.mmm", Rule::Unsigned(|a, b| if b > 31 { 0 } else { a / power(b) })),
    ("shrs.mmm", Rule::Unsigned(|a, b| (if a >> 31 == 1 { a - (1 << 32) } else { a }).div_euclid(power(if b > 31 { 31 } else { b })))),
    ("shuf8x8hi.mmm", Rule::Bytes("a2 b2 a3 b3")),
    ("shuf8x8lo.mmm", Rule::Bytes("a0 b0 a1 b1")),
    ("sort4x16hi.mmm", Rule::Bytes("a2 a3 b2 b3")),
    ("sort4x16lo.mmm", Rule::Bytes("a0 a1 b0 b1")),
    ("sort8.mm", Rule::Bytes("a0 a2 a1 a3")),
    ("sort8x8hi.mmm", Rule::Bytes("a1 a3 b1 b3")),
    ("sort8x8lo.mmm", Rule::Bytes("a0 a2 b0 b2")),
    ("sub.mmm", Rule::Unsigned(|a, b| a - b)),
    ("swap8.mm", Rule::Bytes("a1 a0 a3 a2")),
    ("xnor.mmm", Rule::Bits(|a, b| a == b)),
    ("xor.mmm", Rule::Bits(|a, b| a != b)),
];

fn expected(rule: &Rule, a: u32, b: u32) -> u32 {
    let signed = |word: u32| i128::from(word.cast_signed());
    match rule {
        Rule::Unsigned(of) => of(a.into(), b.into()).rem_euclid(1 << 32) as u32,
        Rule::Signed(of) => of(signed(a), signed(b)).rem_euclid(1 << 32) as u32,
        Rule::Bits(of) => (0..32).map(|bit| u32::from(of((a >> bit) & 1 == 1, (b >> bit) & 1 == 1)) << bit).sum(),
        Rule::Bytes(picks) => {
            let byte = |pick: &str| if pick.starts_with('a') { a } else { b }.to_le_bytes()[usize::from(pick.as_bytes()[1] - b'0')];
            let bytes: Vec<u8> = picks.split(' ').map(byte).collect();
            u32::from_le_bytes(bytes.try_into().unwrap())
        }
    }
}

fn pairs() -> Vec<[u32; 2]> {
    EDGES.iter().flat_map(|&a| EDGES.iter().map(move |&b| [a, b])).collect()
}

/// `$m8 <- $m6, $m7` over all pairs.
fn results(id: &str, pairs: &[[u32; 2]]) -> Vec<u32> {
    let operands: &[u32] = if id.ends_with(".mmm") { &[8, 6, 7] } else { &[8, 6] };
    let mut code =
        vec![word("setzi.m_zi20", &[2, DATA]), word("setzi.m_zi20", &[4, OUT]), word("setzi.m_zi20", &[5, pairs.len() as u32 - 1])];
    let start = support::WORKER + 4 * code.len() as u32;
    code.extend([word("ld32step.m_imm", &[6, 15, 2, 1]), word("ld32step.m_imm", &[7, 15, 2, 1]), word(id, operands)]);
    code.extend([word("st32step.m_imm", &[8, 15, 4, 1]), word("brnzdec.m_zi19", &[5, start / 4])]);
    let mut segments = on_workers(&code);
    segments.push(segment(DATA, pairs.as_flattened()));
    let (tile, result) = run(&segments);
    result.unwrap();
    words_at(&tile, OUT, pairs.len())
}

#[test]
fn integer_forms_compute_what_their_rules_say() {
    let pairs = pairs();
    for (id, rule) in &RULES {
        for (&[a, b], found) in pairs.iter().zip(results(id, &pairs)) {
            assert_eq!(found, expected(rule, a, b), "{id} {a:#x} {b:#x}");
        }
    }
}

#[test]
fn every_integer_form_of_registers_has_a_rule() {
    let others = ["movz.mmm", "stm32.mmm", "stm32step.mmm"];
    let of_registers = |id: &str| (id.ends_with(".mmm") || id.ends_with(".mm")) && FormId::named(id).is_some();
    let forms: Vec<&str> = isa::forms().map(|(_, form)| form.id).filter(|id| of_registers(id) && !others.contains(id)).collect();
    let ruled: Vec<&str> = RULES.iter().map(|(id, _)| *id).collect();
    let missing: Vec<&&str> = forms.iter().filter(|id| !ruled.contains(id)).collect();
    assert_eq!(missing, Vec::<&&str>::new());
}
