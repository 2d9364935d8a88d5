//! A source text cut into statements: comments gone, separators applied, bundles gathered.

use crate::diagnostic::{Diagnostic, Position};

/// A piece of text that is one label, directive or instruction, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) at: Position,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// A label, directive or instruction alone.
    Single(Piece),
    /// `{ .. }`: its members in order.
    Bundle { at: Position, members: Vec<Piece> },
}

impl Statement {
    pub(crate) fn at(&self) -> &Position {
        match self {
            Self::Single(piece) => &piece.at,
            Self::Bundle { at, .. } => at,
        }
    }

    /// The word a directive starts with, if this is one: `.if`.
    pub(crate) fn directive(&self) -> Option<&str> {
        match self {
            Self::Single(piece) if piece.text.starts_with('.') => piece.text.split_whitespace().next().filter(|word| !word.ends_with(':')),
            _ => None,
        }
    }
}

struct Cutter<'a> {
    file: &'a str,
    statements: Vec<Statement>,
    faults: Vec<Diagnostic>,
    /// The members of the open bundle, and where it began.
    bundle: Option<(Position, Vec<Piece>)>,
    text: String,
    start: Position,
}

/// Cuts a text; what cannot be understood is reported and left out.
pub(crate) fn cut(file: &str, text: &str) -> (Vec<Statement>, Vec<Diagnostic>) {
    let start = Position { file: file.to_owned(), line: 1, column: 1 };
    let mut cutter = Cutter { file, statements: Vec::new(), faults: Vec::new(), bundle: None, text: String::new(), start };
    let mut comment: Option<Position> = None;
    for (line, content) in (1_u32..).zip(text.lines()) {
        cutter.line(line, content, &mut comment);
    }
    if let Some(at) = comment {
        cutter.faults.push(Diagnostic { at, message: "this comment has no end `*/`".to_owned() });
    }
    cutter.flush();
    if let Some((at, _)) = cutter.bundle.take() {
        cutter.faults.push(Diagnostic { at, message: "this bundle has no end `}`".to_owned() });
    }
    (cutter.statements, cutter.faults)
}

impl Cutter<'_> {
    fn line(&mut self, line: u32, content: &str, comment: &mut Option<Position>) {
        let characters: Vec<char> = content.chars().collect();
        let mut index = 0;
        let mut quoted = false;
        while index < characters.len() {
            let at = Position { file: self.file.to_owned(), line, column: index as u32 + 1 };
            let pair = (characters[index], characters.get(index + 1).copied());
            if comment.is_some() {
                if pair == ('*', Some('/')) {
                    *comment = None;
                    index += 1;
                }
                index += 1;
                continue;
            }
            match pair {
                ('"', _) => {
                    quoted = !quoted;
                    self.push('"', at);
                }
                (character, _) if quoted => self.push(character, at),
                ('#', _) | ('/', Some('/')) => break,
                ('/', Some('*')) => {
                    *comment = Some(at);
                    index += 1;
                }
                (';', _) => self.flush(),
                ('{', _) => self.open(at),
                ('}', _) => self.close(at),
                (character, _) => self.push(character, at),
            }
            index += 1;
        }
        self.flush();
    }

    fn push(&mut self, character: char, at: Position) {
        if self.text.is_empty() {
            if character.is_whitespace() {
                return;
            }
            self.start = at;
        }
        self.text.push(character);
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        let piece = Piece { text: text.to_owned(), at: self.start.clone() };
        match &mut self.bundle {
            Some((_, members)) => members.push(piece),
            None => self.label_and_rest(piece),
        }
    }

    /// Labels in front of an instruction become statements of their own.
    fn label_and_rest(&mut self, mut piece: Piece) {
        while let Some(end) = label_end(&piece.text) {
            let rest = &piece.text[end..];
            let skipped = end + (rest.len() - rest.trim_start().len());
            let column = piece.at.column + piece.text[..skipped].chars().count() as u32;
            let label = Piece { text: piece.text[..end].to_owned(), at: piece.at.clone() };
            piece = Piece { text: rest.trim_start().to_owned(), at: Position { column, ..piece.at } };
            self.statements.push(Statement::Single(label));
            if piece.text.is_empty() {
                return;
            }
        }
        self.statements.push(Statement::Single(piece));
    }

    fn open(&mut self, at: Position) {
        self.flush();
        if self.bundle.is_some() {
            self.faults.push(Diagnostic { at, message: "a bundle inside a bundle".to_owned() });
        } else {
            self.bundle = Some((at, Vec::new()));
        }
    }

    fn close(&mut self, at: Position) {
        self.flush();
        match self.bundle.take() {
            Some((at, members)) => self.statements.push(Statement::Bundle { at, members }),
            None => self.faults.push(Diagnostic { at, message: "a `}` without `{`".to_owned() }),
        }
    }
}

/// The byte behind the colon of a leading label.
fn label_end(text: &str) -> Option<usize> {
    let end = text.find(|character: char| !is_name(character) && character != '\\' && character != '@')?;
    (end > 0 && text[end..].starts_with(':')).then_some(end + 1)
}

/// Characters of names.
pub(crate) fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '.' || character == '$'
}

#[cfg(test)]
mod tests {
    use super::{Statement, cut};

    fn shown(text: &str) -> Vec<String> {
        let (statements, faults) = cut("a.S", text);
        let shown = statements.iter().map(|statement| match statement {
            Statement::Single(piece) => format!("{}:{} {}", piece.at.line, piece.at.column, piece.text),
            Statement::Bundle { members, .. } => format!("{{{}}}", members.iter().map(|piece| piece.text.clone()).collect::<Vec<_>>().join("|")),
        });
        shown.chain(faults.iter().map(ToString::to_string)).collect()
    }

    #[test]
    fn statements_keep_their_places() {
        assert_eq!(shown("a: nop ; nop # x\n  { nop // y\n fnop } /* z\n z */ br $m10"), ["1:1 a:", "1:4 nop", "1:10 nop", "{nop|fnop}", "4:7 br $m10"]);
    }

    #[test]
    fn what_is_not_closed_is_reported_where_it_opened() {
        assert_eq!(shown("nop\n { fnop"), ["1:1 nop", "a.S:2:2: this bundle has no end `}`"]);
        assert_eq!(shown("}\n/*"), ["a.S:1:1: a `}` without `{`", "a.S:2:1: this comment has no end `*/`"]);
    }
}
