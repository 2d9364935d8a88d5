//! What is wrong with a source text, and where.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// One error of a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Where.
    pub at: Position,
    /// What was expected and what was found; text that came out of a macro names it and the line of its use.
    pub message: String,
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.at, self.message)
    }
}

impl std::error::Error for Diagnostic {}

/// Where a piece of text is written, and which use of a macro brought it here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    file: Arc<str>,
    pub(crate) line: u32,
    column: u32,
    /// The outermost use of a macro; columns behind the first are those of the text after substitution and say nothing.
    used: Option<Arc<str>>,
}

impl Place {
    pub(crate) fn new(file: &Arc<str>, line: u32, column: u32) -> Self {
        Self { file: file.clone(), line, column, used: None }
    }

    /// The place `characters` further on the line; text that came out of a macro stays at its start.
    pub(crate) fn further(&self, characters: usize) -> Self {
        let skipped = if self.used.is_none() { characters as u32 } else { 0 };
        Self { column: self.column + skipped, ..self.clone() }
    }

    /// The same place when a macro used at `user` put its text there.
    pub(crate) fn expanded(&self, name: &str, user: &Self) -> Self {
        let here = || Arc::from(format!("in macro `{name}`, used at line {}", user.line));
        Self { used: Some(user.used.clone().unwrap_or_else(here)), ..self.clone() }
    }

    /// An error `characters` behind this place.
    pub(crate) fn fault(&self, characters: usize, message: impl fmt::Display) -> Diagnostic {
        let message = match &self.used {
            None => message.to_string(),
            Some(used) => format!("{message} ({used})"),
        };
        let column = self.further(characters).column;
        Diagnostic { at: Position { file: self.file.to_string(), line: self.line, column }, message }
    }
}
