//! A source text cut into statements: comments gone, separators applied, bundles gathered.

use std::borrow::Cow;

use crate::diagnostic::{Diagnostic, Place};
use crate::expression::{Expression, ExpressionFault};
use crate::preprocessor::{Line, quoted_bytes};

/// A piece of text that is one label, directive or instruction, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// A slice of its line, or what came out of a macro of the assembler.
    pub(crate) text: Cow<'a, str>,
    pub(crate) at: Place,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement<'a> {
    /// A label, directive or instruction alone.
    Single(Piece<'a>),
    /// `{ .. }`: its members in order.
    Bundle { at: Place, members: Vec<Piece<'a>> },
}

impl Piece<'_> {
    /// The first word and the rest without the blanks around it.
    pub(crate) fn split(&self) -> (&str, &str) {
        let end = self.text.bytes().position(|byte| byte.is_ascii_whitespace()).unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at(end);
        (word, rest.trim_ascii())
    }

    /// The same on its own.
    pub(crate) fn into_owned(self) -> Piece<'static> {
        Piece { text: Cow::Owned(self.text.into_owned()), at: self.at }
    }

    /// Where `part` stands, a slice of this text.
    pub(crate) fn place_of(&self, part: &str) -> Place {
        let bytes = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        self.at.further(self.text.get(..bytes).map_or(0, |before| before.chars().count()))
    }

    /// An error at `part`, a slice of this text.
    pub(crate) fn fault(&self, part: &str, message: impl std::fmt::Display) -> Diagnostic {
        self.place_of(part).fault(0, message)
    }

    /// The expression in `part`, a slice of this text.
    pub(crate) fn expression(&self, part: &str) -> Result<Expression, Diagnostic> {
        let characters = |fault: &ExpressionFault| fault.column.saturating_sub(1) as usize;
        Expression::parse_source(part).map_err(|fault| self.place_of(part).fault(characters(&fault), &fault.message))
    }
}

impl<'a> Statement<'a> {
    pub(crate) fn at(&self) -> &Place {
        match self {
            Self::Single(piece) => &piece.at,
            Self::Bundle { at, .. } => at,
        }
    }

    /// The piece and its first word, if this is a directive: `.if`.
    pub(crate) fn directive(&self) -> Option<(&Piece<'a>, &str)> {
        match self {
            Self::Single(piece) if piece.text.starts_with('.') => Some((piece, piece.split().0)).filter(|(_, word)| !word.ends_with(':')),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Cutter<'a> {
    statements: Vec<Statement<'a>>,
    faults: Vec<Diagnostic>,
    /// The members of the open bundle, and where it began.
    bundle: Option<(Place, Vec<Piece<'a>>)>,
}

/// Cuts lines without block comments; what cannot be understood is reported and left out.
pub(crate) fn cut<'a>(lines: &'a [Line<'_>]) -> (Vec<Statement<'a>>, Vec<Diagnostic>) {
    let mut cutter = Cutter { statements: Vec::with_capacity(lines.len()), ..Cutter::default() };
    for line in lines {
        cutter.line(line);
    }
    if let Some((at, _)) = cutter.bundle.take() {
        cutter.faults.push(at.fault(0, "this bundle has no end `}`"));
    }
    (cutter.statements, cutter.faults)
}

impl<'a> Cutter<'a> {
    fn line(&mut self, line: &'a Line<'_>) {
        let text: &str = &line.text;
        let bytes = text.as_bytes();
        let (mut start, mut at) = (0, 0);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    at += quoted_bytes(&text[at..]);
                    continue;
                }
                b'\'' if is_character(&bytes[at..]) => at += 2,
                b'#' => break,
                b'/' if bytes.get(at + 1) == Some(&b'/') => break,
                b';' | b'{' | b'}' => {
                    self.piece(line, start, at);
                    start = at + 1;
                    match byte {
                        b'{' => self.open(place(line, at)),
                        b'}' => self.close(&place(line, at)),
                        _ => {}
                    }
                }
                _ => {}
            }
            at += 1;
        }
        self.piece(line, start, at);
    }

    /// What stands between two separators.
    fn piece(&mut self, line: &'a Line<'_>, start: usize, end: usize) {
        let part = &line.text[start..end];
        let text = part.trim_ascii_start();
        let start = start + (part.len() - text.len());
        let text = text.trim_ascii_end();
        if text.is_empty() {
            return;
        }
        let at = place(line, start);
        match &mut self.bundle {
            Some((_, members)) => members.push(Piece { text: Cow::Borrowed(text), at }),
            None => self.label_and_rest(text, at),
        }
    }

    /// Labels in front of an instruction become statements of their own.
    fn label_and_rest(&mut self, mut text: &'a str, mut at: Place) {
        while let Some(end) = label_end(text) {
            let (label, rest) = text.split_at(end);
            let rest = rest.trim_ascii_start();
            let after = at.further(text[..text.len() - rest.len()].chars().count());
            self.statements.push(Statement::Single(Piece { text: Cow::Borrowed(label), at }));
            if rest.is_empty() {
                return;
            }
            (text, at) = (rest, after);
        }
        self.statements.push(Statement::Single(Piece { text: Cow::Borrowed(text), at }));
    }

    fn open(&mut self, at: Place) {
        if self.bundle.is_some() {
            self.faults.push(at.fault(0, "a bundle inside a bundle"));
        } else {
            self.bundle = Some((at, Vec::new()));
        }
    }

    fn close(&mut self, at: &Place) {
        match self.bundle.take() {
            Some((at, members)) => self.statements.push(Statement::Bundle { at, members }),
            None => self.faults.push(at.fault(0, "a `}` without `{`")),
        }
    }
}

/// The place of a byte of a line.
fn place(line: &Line<'_>, byte: usize) -> Place {
    let before = &line.text.as_bytes()[..byte];
    line.place(if before.is_ascii() { byte } else { line.text[..byte].chars().count() })
}

/// Whether a text starts with a character in quotes that could pass for a separator or a comment.
const fn is_character(bytes: &[u8]) -> bool {
    matches!(bytes, [b'\'', b';' | b'{' | b'}' | b'#' | b'"' | b'/', b'\'', ..])
}

/// The byte behind the colon of a leading label; in a macro body its name may contain `\argument`, `\@` and `\()`.
fn label_end(text: &str) -> Option<usize> {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'\\' | b'@' | b'(' | b')');
    let end = text.as_bytes().iter().position(|byte| !inside(byte))?;
    (end > 0 && text.as_bytes()[end] == b':').then_some(end + 1)
}

/// Whether a text is a name: letters, digits, `_`, `.`, not starting with a digit.
pub(crate) fn is_symbol(text: &str) -> bool {
    text.chars().all(is_name) && text.chars().next().is_some_and(|first| !first.is_ascii_digit()) && text != "."
}

const fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '.'
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Statement, cut};
    use crate::assembler::Source;
    use crate::preprocessor::preprocess;

    fn shown(text: &str) -> Vec<String> {
        let source = Source { name: "a.S".to_owned(), text: text.to_owned() };
        let preprocessed = preprocess(&source, &BTreeMap::new(), &BTreeMap::new(), &|_| None);
        let (statements, mut faults) = cut(&preprocessed.lines);
        faults.extend(preprocessed.faults);
        let shown = statements.iter().map(|statement| match statement {
            Statement::Single(piece) => piece.at.fault(0, &piece.text).to_string(),
            Statement::Bundle { members, .. } => {
                format!("{{{}}}", members.iter().map(|piece| piece.text.clone()).collect::<Vec<_>>().join("|"))
            }
        });
        shown.chain(faults.iter().map(ToString::to_string)).collect()
    }

    #[test]
    fn statements_keep_their_places() {
        let text = "a: nop ; nop # x\n  { nop // y\n fnop } /* z\n z */ br $m10";
        assert_eq!(shown(text), ["a.S:1:1: a:", "a.S:1:4: nop", "a.S:1:10: nop", "{nop|fnop}", "a.S:4:7: br $m10"]);
    }

    #[test]
    fn registers_with_colons_are_no_labels() {
        assert_eq!(shown("zero $a0:1\n.Lx\\@: 1: nop"), ["a.S:1:1: zero $a0:1", "a.S:2:1: .Lx\\@:", "a.S:2:8: 1:", "a.S:2:11: nop"]);
    }

    #[test]
    fn what_is_not_closed_is_reported_where_it_opened() {
        assert_eq!(shown("nop\n { fnop"), ["a.S:1:1: nop", "a.S:2:2: this bundle has no end `}`"]);
        assert_eq!(shown("}\n/*"), ["a.S:1:1: a `}` without `{`", "a.S:2:1: this comment has no end `*/`"]);
    }

    #[test]
    fn separators_in_quotes_do_not_separate() {
        assert_eq!(shown(".ascii \"a;\\\"#{\" ; .byte ';' # x"), ["a.S:1:1: .ascii \"a;\\\"#{\"", "a.S:1:19: .byte ';'"]);
    }
}
