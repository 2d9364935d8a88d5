//! One BUILD.toml: its text, and where a byte of it stands.

use std::ops::Range;
use std::sync::Arc;

use crate::Place;
use crate::toml_tree::Span;

/// The text of a file and its name for messages.
#[derive(Clone, Debug)]
pub(crate) struct BuildFile {
    pub(crate) name: String,
    pub(crate) text: Arc<str>,
    /// The command-line changes, as the user wrote them.
    pub(crate) overrides: Arc<[String]>,
}

impl BuildFile {
    pub(crate) fn place(&self, span: &Span) -> Place {
        match span {
            Span::Text(range) => self.place_of_bytes(range),
            Span::Override(number) => {
                let text = self.overrides.get(*number).map_or("", String::as_str);
                Place { file: format!("--set {text}"), line: 0, column: 0 }
            }
            Span::Elsewhere(place) => Place::clone(place),
        }
    }

    fn place_of_bytes(&self, range: &Range<usize>) -> Place {
        let mut end = range.start.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &self.text[..end];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place { file: self.name.clone(), line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}
