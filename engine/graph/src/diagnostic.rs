//! What is wrong with a workspace, and where.

use std::fmt;

use crate::{Label, LabelFault};

/// A place in a file, or on the command line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file as the user knows it, below the workspace root; or `--set layout.tiles=32`.
    pub file: String,
    /// 1-based line; 0 when `file` is not a file.
    pub line: usize,
    /// 1-based column in characters; 0 when `file` is not a file.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => formatter.write_str(&self.file),
            line => write!(formatter, "{}:{line}:{}", self.file, self.column),
        }
    }
}

/// What is wrong. Every variant carries what was found and what would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no WORKSPACE.toml here or above.
    NoWorkspace {
        /// Where the search began.
        directory: String,
    },
    /// A file could not be read.
    Unreadable {
        /// The operating system's words.
        message: String,
    },
    /// The text is not TOML.
    Syntax {
        /// The parser's words.
        message: String,
    },
    /// A top-level entry of BUILD.toml is not a table.
    NotATarget {
        /// The entry's name.
        name: String,
    },
    /// A target's name has characters that no label can hold.
    TargetName {
        /// The name.
        name: String,
    },
    /// A target without `rule = "…"`.
    NoRule,
    /// A rule nobody knows.
    UnknownRule {
        /// The rule named.
        found: String,
        /// Known names like it.
        nearest: Vec<String>,
        /// All known names.
        known: Vec<String>,
    },
    /// A field the rule or table does not have.
    UnknownField {
        /// The key found.
        found: String,
        /// Known names like it.
        nearest: Vec<String>,
        /// All names allowed there.
        known: Vec<String>,
    },
    /// A field that must be given.
    MissingField {
        /// The field.
        name: String,
        /// The type in words, when known.
        value: Option<String>,
    },
    /// A value that does not fit its field.
    Value {
        /// The value found.
        found: String,
        /// What fits.
        expected: String,
        /// Valid words like it.
        nearest: Vec<String>,
    },
    /// Text that should be a label.
    Label(LabelFault),
    /// A path that is not that of a source.
    SourcePath {
        /// The text.
        found: String,
        /// What would do.
        expected: &'static str,
    },
    /// A source file that is not there, or is none.
    NoSource {
        /// The file.
        path: String,
        /// Whether there is something else, as a folder.
        exists: bool,
        /// Files like it in the same directory.
        nearest: Vec<String>,
    },
    /// A repository nobody provides.
    UnknownRepository {
        /// The name after `@`.
        found: String,
        /// All known names.
        known: Vec<String>,
    },
    /// A package without BUILD.toml.
    UnknownPackage {
        /// The package.
        found: String,
        /// Packages like it.
        nearest: Vec<String>,
    },
    /// A target that its package does not declare.
    UnknownTarget {
        /// The label.
        found: Label,
        /// Targets like it.
        nearest: Vec<String>,
        /// All targets of the package.
        known: Vec<String>,
    },
    /// A point that its sweep does not have.
    UnknownPoint {
        /// The label.
        found: Label,
        /// Points like it.
        nearest: Vec<String>,
        /// A point that it has.
        first: Option<String>,
    },
    /// A label that names a target of another kind.
    WrongKind {
        /// The label.
        found: Label,
        /// Its rule.
        rule: String,
        /// Rules that are allowed there.
        accepts: Vec<String>,
    },
    /// Targets that depend on each other in a circle.
    Cycle {
        /// The targets in order of dependency; the last depends on the first.
        members: Vec<Label>,
    },
    /// A pattern that names no target.
    EmptyPattern {
        /// The pattern.
        pattern: String,
    },
    /// A fault that a rule found.
    Rule {
        /// What is wrong, as in "1000 is not a multiple of 64".
        message: String,
        /// What would do.
        expected: String,
    },
}

impl Problem {
    /// The sentence after "error:".
    fn sentence(&self) -> String {
        match self {
            Problem::NoWorkspace { directory } => format!("no WORKSPACE.toml in {directory} or above"),
            Problem::Unreadable { message } => format!("cannot be read: {message}"),
            Problem::Syntax { message } => format!("not TOML: {message}"),
            Problem::NotATarget { name } => format!("`{name}` is not a table"),
            Problem::TargetName { name } => format!("`{name}` cannot be a target's name"),
            Problem::NoRule => "no rule".to_owned(),
            Problem::UnknownRule { found, .. } => format!("unknown rule `{found}`"),
            Problem::UnknownField { found, .. } => format!("unknown field `{found}`"),
            Problem::MissingField { name, .. } => format!("missing field `{name}`"),
            Problem::Value { found, .. } => format!("found {found}"),
            Problem::Label(fault) => format!("`{}` is not a label", fault.text),
            Problem::SourcePath { found, .. } => format!("`{found}` is not a source"),
            Problem::NoSource { path, exists: false, .. } => format!("there is no file `{path}`"),
            Problem::NoSource { path, exists: true, .. } => format!("`{path}` is not a regular file"),
            Problem::UnknownRepository { found, .. } => format!("unknown repository `@{found}`"),
            Problem::UnknownPackage { found, .. } => format!("unknown package `{found}`"),
            Problem::UnknownTarget { found, .. } => format!("unknown target `{found}`"),
            Problem::UnknownPoint { found, .. } => format!("`{}` has no point `{found}`", found.sweep()),
            Problem::WrongKind { found, rule, .. } => format!("`{found}` is a `{rule}`"),
            Problem::Cycle { members } => {
                let names: Vec<String> = members.iter().chain(members.first()).map(ToString::to_string).collect();
                format!("depends on itself: {}", names.join(" -> "))
            }
            Problem::EmptyPattern { pattern } => format!("`{pattern}` names no target"),
            Problem::Rule { message, .. } => message.clone(),
        }
    }

    /// What would do, after "expected"; empty when the sentence says it.
    fn expected(&self) -> String {
        match self {
            Problem::NotATarget { .. } => "a table with `rule = \"…\"`".to_owned(),
            Problem::TargetName { .. } => "letters, digits and `_ - . +`".to_owned(),
            Problem::NoRule => "a field `rule` with the name of a rule".to_owned(),
            Problem::UnknownRule { known, .. } | Problem::UnknownField { known, .. } => one_of(known),
            Problem::MissingField { value, .. } => value.clone().unwrap_or_default(),
            Problem::Value { expected, .. } | Problem::Rule { expected, .. } => expected.clone(),
            Problem::Label(fault) => format!("{} at column {}", fault.expected, fault.column),
            Problem::SourcePath { expected, .. } => (*expected).to_owned(),
            Problem::NoSource { .. } => "a file below the workspace root".to_owned(),
            Problem::UnknownRepository { known, .. } => one_of(&known.iter().map(|name| format!("@{name}")).collect::<Vec<_>>()),
            Problem::UnknownPackage { .. } => "a directory with a BUILD.toml".to_owned(),
            Problem::UnknownTarget { known, .. } => one_of(known),
            Problem::UnknownPoint { first, found, .. } => match first {
                Some(first) => format!("one of its points, as `{first}`"),
                None => format!("a label without point: `{}` is no sweep", found.sweep()),
            },
            Problem::WrongKind { accepts, .. } => {
                let names: Vec<String> = accepts.iter().map(|name| format!("`{name}`")).collect();
                format!("a {}", names.join(" or "))
            }
            Problem::NoWorkspace { .. }
            | Problem::Unreadable { .. }
            | Problem::Syntax { .. }
            | Problem::Cycle { .. }
            | Problem::EmptyPattern { .. } => String::new(),
        }
    }

    fn nearest(&self) -> &[String] {
        match self {
            Problem::UnknownRule { nearest, .. }
            | Problem::UnknownField { nearest, .. }
            | Problem::Value { nearest, .. }
            | Problem::NoSource { nearest, .. }
            | Problem::UnknownPackage { nearest, .. }
            | Problem::UnknownPoint { nearest, .. }
            | Problem::UnknownTarget { nearest, .. } => nearest,
            _ => &[],
        }
    }
}

fn one_of(names: &[String]) -> String {
    match names {
        [] => "nothing here".to_owned(),
        [only] => format!("`{only}`"),
        [first, rest @ ..] => {
            let rest: String = rest.iter().map(|name| format!(", `{name}`")).collect();
            format!("one of `{first}`{rest}")
        }
    }
}

/// One fault of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The target at fault, when it is known.
    pub label: Option<Label>,
    /// The field at fault, as in `op[2].args`; empty for the target itself.
    pub field: String,
    /// Where it stands; `None` for a label given on the command line.
    pub place: Option<Place>,
    /// What is wrong.
    pub problem: Problem,
    /// A second place that belongs to it, and what stands there.
    pub other: Option<(Place, String)>,
}

impl fmt::Display for Diagnostic {
    /// `error: LABEL, FIELD: SENTENCE`, then ` --> PLACE` with what was expected, then the other place.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("error: ")?;
        match (&self.label, self.field.as_str()) {
            (Some(label), "") => write!(formatter, "{label}: ")?,
            (Some(label), field) => write!(formatter, "{label}, {field}: ")?,
            (None, "") => {}
            (None, field) => write!(formatter, "{field}: ")?,
        }
        formatter.write_str(&self.problem.sentence())?;
        let hint = self.hint();
        match &self.place {
            Some(place) if hint.is_empty() => write!(formatter, "\n --> {place}")?,
            Some(place) => write!(formatter, "\n --> {place}     {hint}")?,
            None if hint.is_empty() => {}
            None => write!(formatter, "\n     {hint}")?,
        }
        self.other.iter().try_for_each(|(place, what)| write!(formatter, "\n --> {place}     {what}"))
    }
}

impl Diagnostic {
    fn hint(&self) -> String {
        let expected = self.problem.expected();
        let mut parts = Vec::new();
        if !expected.is_empty() {
            parts.push(format!("expected {expected}"));
        }
        if !self.problem.nearest().is_empty() {
            parts.push(format!("nearest {}", self.problem.nearest().join(", ")));
        }
        parts.join("; ")
    }
}

/// All independent faults of a workspace, in source order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, diagnostic) in self.0.iter().enumerate() {
            write!(formatter, "{}{diagnostic}", if number == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
