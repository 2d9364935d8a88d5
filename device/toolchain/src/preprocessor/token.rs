//! Tokens of the C preprocessor, and lines without their comments.

use std::rc::Rc;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name: letters, digits and `_`.
    Name,
    /// A number and what sticks to it: `1`, `0x1f`, `1.0h`, `1b`.
    Number,
    /// A text in quotes.
    Quoted,
    /// Anything else; operators of C are one token.
    Mark,
}

/// A token.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: Rc<str>,
    /// Whether blanks stand before it.
    pub(super) spaced: bool,
    /// Column on the line of the source, characters from 1; of the use for what came out of a macro.
    pub(super) column: u32,
    /// Macros it came out of, which it does not use again.
    pub(super) hidden: Vec<Rc<str>>,
}

/// Operators of more than one character, longer ones first.
const OPERATORS: [&str; 9] = ["...", "##", "||", "&&", "==", "!=", "<=", ">=", "<<"];

impl Token {
    pub(super) fn is(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && &*self.text == mark
    }

    pub(super) fn is_name(&self) -> bool {
        self.kind == Kind::Name
    }
}

/// Cuts a text without comments; `column` is that of its first character.
pub(super) fn tokens(text: &str, column: u32) -> Vec<Token> {
    let (mut found, mut rest, mut column, mut spaced) = (Vec::new(), text, column, false);
    while let Some(first) = rest.chars().next() {
        let (kind, bytes) = match first {
            _ if first.is_whitespace() => (None, first.len_utf8()),
            _ if is_name_start(first) => (Some(Kind::Name), length(rest, is_name)),
            _ if starts_number(rest) => (Some(Kind::Number), length(rest, |character| is_name(character) || character == '.')),
            '"' => (Some(Kind::Quoted), quoted_bytes(rest)),
            _ => (Some(Kind::Mark), operator_bytes(rest, first)),
        };
        let (text, behind) = rest.split_at(bytes);
        if let Some(kind) = kind {
            found.push(Token { kind, text: Rc::from(text), spaced, column, hidden: Vec::new() });
        }
        spaced = kind.is_none();
        column += text.chars().count() as u32;
        rest = behind;
    }
    found
}

pub(super) const fn is_name_start(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}

pub(super) const fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

fn starts_number(text: &str) -> bool {
    let digits = text.strip_prefix('.').unwrap_or(text);
    digits.starts_with(|character: char| character.is_ascii_digit())
}

fn length(text: &str, inside: impl Fn(char) -> bool) -> usize {
    text.find(|character| !inside(character)).unwrap_or(text.len())
}

fn operator_bytes(text: &str, first: char) -> usize {
    if text.starts_with(">>") {
        return 2;
    }
    OPERATORS.iter().find(|operator| text.starts_with(**operator)).map_or(first.len_utf8(), |operator| operator.len())
}

/// Bytes of the text in quotes a text starts with; without an end it reaches to the end of the line.
pub(crate) fn quoted_bytes(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    while let Some((index, character)) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// A line whose comments are blanks of the same width, and whether one is still open at its end.
/// `hash`: `#` starts a comment too, as on all lines that are no directives.
pub(super) fn without_comments(line: &str, mut open: bool, hash: bool) -> (String, bool) {
    let (mut text, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(first) = rest.chars().next() {
        let mut bytes = first.len_utf8();
        if open {
            let end = rest.find("*/");
            bytes = end.map_or(rest.len(), |end| end + 2);
            open = end.is_none();
            text.extend(rest[..bytes].chars().map(|_| ' '));
        } else if rest.starts_with("/*") {
            bytes = 2;
            open = true;
            text.push_str("  ");
        } else if rest.starts_with("//") || hash && first == '#' {
            break;
        } else {
            bytes = if first == '"' { quoted_bytes(rest) } else { bytes };
            text.push_str(&rest[..bytes]);
        }
        rest = &rest[bytes..];
    }
    (text, open)
}
