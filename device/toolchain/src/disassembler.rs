//! Words back to text, for listings.

use ipu21::isa::{self, Decoded, Form, Lane, Modifier, Operand, OperandKind};
use serde::Serialize;

/// A line of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Byte address.
    pub address: u32,
    /// The words, one or two.
    pub words: Vec<u32>,
    /// The instruction, a bundle `{ a ; b }`, or `.int` for a word that is none.
    pub text: String,
}

/// A listing of little-endian words from `base` on; bytes beyond whole words are left out.
#[must_use]
pub fn disassemble(bytes: &[u8], base: u32) -> Vec<Line> {
    let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let mut lines = Vec::new();
    let mut index = 0;
    while index < words.len() {
        let (count, text) = line(&words[index..], base.wrapping_add(4 * index as u32));
        lines.push(Line { address: base.wrapping_add(4 * index as u32), words: words[index..index + count].to_vec(), text });
        index += count;
    }
    lines
}

fn line(words: &[u32], address: u32) -> (usize, String) {
    let plain = || (1, format!(".int {:#x}", words[0]));
    let Some(first) = isa::decode(words).filter(is_writable) else { return plain() };
    if !first.coissue {
        let count = usize::from(first.words);
        // An instruction of two words lies like a bundle.
        return if count == 2 && !address.is_multiple_of(8) { plain() } else { (count, instruction(&first)) };
    }
    match words.get(1..).and_then(isa::decode).filter(is_writable) {
        Some(second) if is_bundle(&first, &second) && address.is_multiple_of(8) => {
            (2, format!("{{ {} ; {} }}", instruction(&first), instruction(&second)))
        }
        _ => plain(),
    }
}

/// Whether a bundle of these can be written: a main-lane and an aux-lane instruction that both may be in one.
fn is_bundle(first: &Decoded, second: &Decoded) -> bool {
    let (main, aux) = (isa::form(first.form), isa::form(second.form));
    second.coissue && main.coissue && aux.coissue && main.lane == Lane::Main && aux.lane == Lane::Aux && second.words == 1
}

/// Whether there is a text for it: a high immediate of 0 is written like a low one, which is another word.
fn is_writable(decoded: &Decoded) -> bool {
    let form = isa::form(decoded.form);
    let is_lost = |(operand, value): (&Operand, &u32)| operand.kind == OperandKind::High12 && *value == 0;
    !(form.operands.iter().zip(decoded.operands()).any(is_lost) && isa::forms_of(form.mnemonic).count() > 1)
}

/// An instruction alone as text: branches as byte addresses, `nop`, `fnop`, `zero` and `mov` by their names. It reassembles to the same
/// word, but for `or` and its like with the high immediate 0, which is written as the low one; [`disassemble`] lists those as data.
#[must_use]
pub fn instruction(decoded: &Decoded) -> String {
    let form = isa::form(decoded.form);
    let (name, operands) = alias_of(decoded).unwrap_or((form.mnemonic, form.operands.len()));
    let mut text = name.to_owned();
    if is_ambiguous(form, decoded.operands()) {
        text.push('z');
    }
    for (index, (operand, value)) in form.operands.iter().zip(decoded.operands()).take(operands).enumerate() {
        text.push_str(if index == 0 { " " } else { ", " });
        text.push_str(&shown(operand, *value));
    }
    text
}

/// The name an alias of `isa.toml` gives an instruction, and how many of its operands are written.
fn alias_of(decoded: &Decoded) -> Option<(&'static str, usize)> {
    use isa::form::{OR_AA_ZI12, OR_AAA, OR_MM_ZI12, OR_MMM, OR64_PPP, SETZI_A_ZI20, SETZI_M_ZI20};
    match (decoded.form, decoded.operands()) {
        (SETZI_M_ZI20, [14, 0]) => Some(("nop", 0)),
        (SETZI_A_ZI20, [13, 0]) => Some(("fnop", 0)),
        (OR_MMM | OR_AAA, [_, 15, 15]) | (OR64_PPP, [_, 14, 14]) => Some(("zero", 1)),
        (OR_MM_ZI12 | OR_AA_ZI12, [_, _, 0]) | (OR64_PPP, [_, _, 14]) => Some(("mov", 2)),
        _ => None,
    }
}

/// The zero-extended form of a value that the assembler would give the sign-extended form.
fn is_ambiguous(form: &Form, operands: &[u32]) -> bool {
    let has_twin = matches!(form.mnemonic, "add" | "cmpeq" | "max" | "min" | "sub");
    has_twin && form.operands.iter().zip(operands).any(|(operand, value)| operand.kind == OperandKind::Unsigned(16) && *value < 0x8000)
}

fn shown(operand: &Operand, value: u32) -> String {
    let decoration = match operand.modifier {
        Modifier::None => "",
        Modifier::PostIncrement => "+=",
        Modifier::PostIncrementFixed => "++",
        Modifier::Shifted => ">>",
        Modifier::Reloaded => "@",
        Modifier::Broadcast => ":B",
        Modifier::BroadcastLower => ":BL",
        Modifier::BroadcastUpper => ":BU",
    };
    match operand.kind {
        OperandKind::Main => format!("$m{value}{decoration}"),
        OperandKind::MainPair => format!("$m{value}:{}{decoration}", value + 1),
        OperandKind::Aux => format!("$a{value}{decoration}"),
        OperandKind::AuxPair => format!("$a{value}:{}{decoration}", value + 1),
        OperandKind::AuxQuad => format!("$a{value}:{}{decoration}", value + 3),
        OperandKind::Signed(_) => value.cast_signed().to_string(),
        OperandKind::High12 => format!("{value:#x}"),
        _ if operand.name == "target" => format!("{:#x}", value.wrapping_mul(4)),
        // Values of 20 bits are mostly addresses.
        OperandKind::Unsigned(20) if value >= 0x4c000 => format!("{value:#x}"),
        OperandKind::Unsigned(_) | OperandKind::Named(_) => value.to_string(),
    }
}
