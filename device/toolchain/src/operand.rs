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
    /// `$WSR`, by its name without the `$`.
    Control(&'static str),
    /// A value that is known.
    Number(i64),
    /// Anything else.
    Expression(Box<Expression>),
}

impl Written {
    /// The negated value; of a register there is none.
    pub(crate) fn negated(&self) -> Option<Self> {
        match self {
            Self::Number(number) => number.checked_neg().map(Self::Number),
            Self::Expression(expression) => Some(Self::Expression(Box::new(expression.negated()))),
            Self::Register { .. } | Self::Control(_) => None,
        }
    }
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
    let control = ipu21::csr::all().iter().find(|register| register.name == text);
    control.map(|register| Written::Control(register.name)).ok_or_else(|| format!("unknown register `${text}`"))
}

/// `m2`, `a0:1`, `a4:7`.
fn numbered(name: &str) -> Option<(File, u32, u32)> {
    let (file, numbers) = match name.as_bytes().split_first()? {
        (b'm', numbers) => (File::Main, numbers),
        (b'a', numbers) => (File::Aux, numbers),
        _ => return None,
    };
    let (first, rest) = register_number(numbers)?;
    let last = match rest.split_first() {
        None => first,
        Some((b':', rest)) => register_number(rest).filter(|(_, behind)| behind.is_empty())?.0,
        Some(_) => return None,
    };
    last.checked_sub(first).map(|more| (file, first, more + 1))
}

/// The number of a register of one or two digits, and what stands behind it.
fn register_number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(digits).filter(|(digits, _)| matches!(digits.len(), 1 | 2))?;
    let number = digits.iter().fold(0, |number, digit| 10 * number + u32::from(digit - b'0'));
    (number < 16).then_some((number, rest))
}

/// Cuts a list at commas outside parentheses and quotes; an empty text has no members.
pub(crate) fn split_list(text: &str) -> Vec<&str> {
    list_members(text).collect()
}

/// The members of a list, as [`split_list`] gives them.
pub(crate) fn list_members(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.trim_ascii().is_empty());
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let end = member_end(text);
        rest = text.get(end + 1..);
        Some(text[..end].trim_ascii())
    })
}

/// Bytes before the first comma outside parentheses and quotes.
fn member_end(text: &str) -> usize {
    let (mut depth, mut index) = (0_i32, 0);
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'"' => index += quoted_bytes(&text[index..]) - 1,
            b',' if depth <= 0 => return index,
            _ => {}
        }
        index += 1;
    }
    text.len()
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
        assert_eq!(read("$INCOMING_MUX"), Ok(Written::Control("INCOMING_MUX")));
        assert_eq!(read("$m16"), Err("unknown register `$m16`".to_owned()));
        assert_eq!(read("$a3:2"), Err("unknown register `$a3:2`".to_owned()));
    }

    #[test]
    fn commas_inside_parentheses_do_not_separate() {
        assert_eq!(split_list("$m0, max(1, 2) , 3"), ["$m0", "max(1, 2)", "3"]);
        assert_eq!(split_list("  "), Vec::<&str>::new());
    }
}
