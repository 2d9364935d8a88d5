//! Words back to text, for listings.

use std::fmt::Write;

use ipu21::isa::{self, Decoded, Modifier, OperandKind};
use serde::Serialize;

/// A line of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Byte address.
    pub address: u32,
    /// The words, one or two.
    pub words: Vec<u32>,
    /// The instruction, a bundle `{ a ; b }`, or `.int` for what is none.
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
    let Some(first) = isa::decode(words) else { return plain() };
    if !first.coissue {
        return (usize::from(first.words), instruction(&first));
    }
    match words.get(1..).and_then(isa::decode) {
        Some(second) if second.coissue && address.is_multiple_of(8) => (2, format!("{{ {} ; {} }}", instruction(&first), instruction(&second))),
        _ => plain(),
    }
}

/// An instruction alone as text, with the field values of `encodings.tsv`: branches as byte addresses.
#[must_use]
pub fn instruction(decoded: &Decoded) -> String {
    match decoded.form {
        isa::form::SETZI_M_ZI20 if decoded.operands() == [14, 0] => return "nop".to_owned(),
        isa::form::SETZI_A_ZI20 if decoded.operands() == [13, 0] => return "fnop".to_owned(),
        _ => {}
    }
    let form = isa::form(decoded.form);
    let mut text = form.mnemonic.to_owned();
    for (index, (operand, value)) in form.operands.iter().zip(decoded.operands()).enumerate() {
        text.push_str(if index == 0 { " " } else { ", " });
        let value = *value;
        let _ = match operand.kind {
            OperandKind::Main => write!(text, "$m{value}"),
            OperandKind::MainPair => write!(text, "$m{value}:{}", value + 1),
            OperandKind::Aux => write!(text, "$a{value}"),
            OperandKind::AuxPair => write!(text, "$a{value}:{}", value + 1),
            OperandKind::AuxQuad => write!(text, "$a{value}:{}", value + 3),
            OperandKind::Signed(_) => write!(text, "{}", value as i32),
            _ if operand.name == "target" => write!(text, "{:#x}", value.wrapping_mul(4)),
            _ => write!(text, "{value}"),
        };
        text.push_str(match operand.modifier {
            Modifier::None => "",
            Modifier::PostIncrement => "+=",
            Modifier::PostIncrementFixed => "++",
            Modifier::Shifted => ">>",
            Modifier::Reloaded => "@",
            Modifier::Broadcast => ":B",
            Modifier::BroadcastLower => ":BL",
            Modifier::BroadcastUpper => ":BU",
        });
    }
    text
}
