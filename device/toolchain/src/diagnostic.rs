//! What is wrong with a source text, and where.

use std::fmt;
use std::rc::Rc;

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
    file: Rc<str>,
    pub(crate) line: u32,
    column: u32,
    /// The innermost use of a macro; columns behind the first are those of the text after substitution and say nothing.
    used: Option<Rc<Use>>,
}

/// A use of a macro.
#[derive(Debug, PartialEq, Eq)]
struct Use {
    /// `in macro `m`, used at line 3`.
    shown: Rc<str>,
    /// The use of another macro that this one came out of.
    outer: Option<Rc<Use>>,
}

/// Most uses of macros a message names.
const USES_SHOWN: usize = 8;

impl Place {
    pub(crate) fn new(file: &Rc<str>, line: u32, column: u32) -> Self {
        Self { file: file.clone(), line, column, used: None }
    }

    /// The place `characters` further on the line; text that came out of a macro stays at its start.
    pub(crate) fn further(&self, characters: usize) -> Self {
        let skipped = if self.used.is_none() { characters as u32 } else { 0 };
        Self { column: self.column + skipped, ..self.clone() }
    }

    /// The same place on a line with replaced macros of the preprocessor, as messages name them.
    pub(crate) fn with(self, macros: &Rc<str>) -> Self {
        let used = Some(Rc::new(Use { shown: macros.clone(), outer: self.used }));
        Self { used, ..self }
    }

    /// The place of text that a use of a macro brings.
    pub(crate) fn expanded(&self, brought: &Brought) -> Self {
        let used = match &self.used {
            None => brought.0.clone(),
            // Text with replaced macros of the preprocessor: they are named first.
            Some(own) => Rc::new(Use { shown: own.shown.clone(), outer: Some(brought.0.clone()) }),
        };
        Self { used: Some(used), ..self.clone() }
    }

    /// An error `characters` behind this place.
    pub(crate) fn fault(&self, characters: usize, message: impl fmt::Display) -> Diagnostic {
        let message = match &self.used {
            None => message.to_string(),
            Some(used) => format!("{message} ({})", stack(used)),
        };
        let column = self.further(characters).column;
        Diagnostic { at: Position { file: self.file.to_string(), line: self.line, column }, message }
    }
}

impl Place {
    /// The name of the file.
    pub(crate) fn file(&self) -> &Rc<str> {
        &self.file
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A use of a macro of the assembler, to be marked on all the text it brings.
pub(crate) struct Brought(Rc<Use>);

impl Brought {
    /// `what`: `macro `m``; `user`: where it is used; `home`: where the text stands.
    pub(crate) fn new(what: &str, user: &Place, home: Option<&Place>) -> Self {
        let elsewhere = home.is_some_and(|home| home.file != user.file);
        let place = if elsewhere { format!("{}:{}", user.file, user.line) } else { format!("line {}", user.line) };
        Self(Rc::new(Use { shown: Rc::from(format!("in {what}, used at {place}")), outer: user.used.clone() }))
    }
}

/// The uses from the innermost on, the same one again counted.
fn stack(used: &Rc<Use>) -> String {
    let mut groups: Vec<(Rc<str>, u32)> = Vec::new();
    let mut next = Some(used);
    while let Some(one) = next {
        match groups.last_mut() {
            Some((shown, count)) if *shown == one.shown => *count += 1,
            _ => groups.push((one.shown.clone(), 1)),
        }
        next = one.outer.as_ref();
    }
    let left_out = groups.len().saturating_sub(USES_SHOWN);
    let lines =
        groups.iter().take(USES_SHOWN).map(|(shown, count)| if *count > 1 { format!("{shown}, {count} deep") } else { shown.to_string() });
    let mut lines: Vec<String> = lines.collect();
    if left_out > 0 {
        lines.push(format!("and {left_out} more"));
    }
    lines.join("; ")
}
