//! Operands as written: registers, control registers, expressions.

use ipu21::isa::Modifier;

use crate::expression::Expression;
use crate::preprocessor::quoted_bytes;

/// A register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    Main,
    Aux,
}

/// An operand as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// `$m2`, `$a0:1+=`.
    Register { file: File, first: u32, count: u32, modifier: Modifier },
    /// `$WSR`.
    Control { name: String },
    /// Anything else.
    Value(Expression),
}

/// Registers with names of their own.
#[rustfmt::skip]
const NAMES: [(&str, File, u32, u32); 9] = [
    ("mzero",        File::Main, 15, 1), ("mworker_base", File::Main, 12, 1), ("mvertex_base", File::Main, 13, 1),
    ("bp",           File::Main,  8, 1), ("fp",           File::Main,  9, 1), ("lr",           File::Main, 10, 1),
    ("sp",           File::Main, 11, 1), ("azero",        File::Aux,  15, 1), ("azeros",       File::Aux,  14, 2),
];

/// Decorations, longer ones first.
const MODIFIERS: [(&str, Modifier); 7] = [
    ("+=", Modifier::PostIncrement),
    ("++", Modifier::PostIncrementFixed),
    (">>", Modifier::Shifted),
    (":BL", Modifier::BroadcastLower),
    (":BU", Modifier::BroadcastUpper),
    (":B", Modifier::Broadcast),
    ("@", Modifier::Reloaded),
];

/// Reads a register, the text behind its `$`.
pub(crate) fn read_register(text: &str) -> Result<Written, String> {
    // Most registers: a number at the end, nothing behind it.
    if let Some((file, first, count)) = text.as_bytes().last().filter(|last| last.is_ascii_digit()).and_then(|_| numbered(text)) {
        return Ok(Written::Register { file, first, count, modifier: Modifier::None });
    }
    let (name, modifier) = MODIFIERS
        .iter()
        .find_map(|(suffix, modifier)| text.strip_suffix(suffix).map(|name| (name, *modifier)))
        .unwrap_or((text, Modifier::None));
    if let Some((_, file, first, count)) = NAMES.iter().find(|(known, ..)| *known == name) {
        return Ok(Written::Register { file: *file, first: *first, count: *count, modifier });
    }
    if let Some((file, first, count)) = numbered(name) {
        return Ok(Written::Register { file, first, count, modifier });
    }
    if ipu21::csr::index_of(text).is_some() {
        return Ok(Written::Control { name: text.to_owned() });
    }
    Err(format!("unknown register `${text}`"))
}

/// `m2`, `a0:1`, `a4:7`.
fn numbered(name: &str) -> Option<(File, u32, u32)> {
    let (file, numbers) = match (name.strip_prefix('m'), name.strip_prefix('a')) {
        (Some(numbers), _) => (File::Main, numbers),
        (_, Some(numbers)) => (File::Aux, numbers),
        _ => return None,
    };
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number < 16 && text.len() <= 2);
    let (first, last) = match numbers.split_once(':') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(numbers)?, number(numbers)?),
    };
    last.checked_sub(first).map(|more| (file, first, more + 1))
}

/// Cuts a list at commas outside parentheses and quotes; an empty text has no members.
pub(crate) fn split_list(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let (mut members, mut depth, mut start, mut index) = (Vec::with_capacity(4), 0_i32, 0, 0);
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'"' => index += quoted_bytes(&text[index..]) - 1,
            b',' if depth <= 0 => {
                members.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
        index += 1;
    }
    members.push(text[start..].trim());
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_groups_names_and_decorations_are_read() {
        let read = |text: &str| read_register(text.strip_prefix('$').unwrap());
        let register = |file, first, count, modifier| Ok(Written::Register { file, first, count, modifier });
        assert_eq!(read("$m2:3+="), register(File::Main, 2, 2, Modifier::PostIncrement));
        assert_eq!(read("$a4:7"), register(File::Aux, 4, 4, Modifier::None));
        assert_eq!(read("$a2:BL"), register(File::Aux, 2, 1, Modifier::BroadcastLower));
        assert_eq!(read("$azeros"), register(File::Aux, 14, 2, Modifier::None));
        assert_eq!(read("$lr"), register(File::Main, 10, 1, Modifier::None));
        assert_eq!(read("$INCOMING_MUX"), Ok(Written::Control { name: "INCOMING_MUX".to_owned() }));
        assert_eq!(read("$m16"), Err("unknown register `$m16`".to_owned()));
        assert_eq!(read("$a3:2"), Err("unknown register `$a3:2`".to_owned()));
    }

    #[test]
    fn commas_inside_parentheses_do_not_separate() {
        assert_eq!(split_list("$m0, max(1, 2) , 3"), ["$m0", "max(1, 2)", "3"]);
        assert_eq!(split_list("  "), Vec::<&str>::new());
    }
}
