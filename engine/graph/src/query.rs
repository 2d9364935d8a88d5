//! Questions about the target graph: `deps(PATTERN)`, `rdeps(PATTERN, PATTERN)`, or a pattern.

use std::collections::BTreeSet;
use std::fmt;

use crate::{Label, LabelFault, PackageName, Pattern, Workspace};

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// The targets themselves.
    Targets(Pattern),
    /// The targets and all they depend on.
    Dependencies(Pattern),
    /// Of the targets in `universe` and all they depend on, those that depend on one of `targets`, and these.
    Users {
        /// Where to look.
        universe: Pattern,
        /// What is used.
        targets: Pattern,
    },
}

/// Text that is not a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryFault {
    /// A function nobody knows, or one with the wrong number of arguments.
    Form {
        /// The text.
        text: String,
    },
    /// An argument that is not a pattern.
    Pattern(LabelFault),
}

impl fmt::Display for QueryFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryFault::Form { text } => {
                write!(formatter, "`{text}` is not a query: expected PATTERN, deps(PATTERN) or rdeps(UNIVERSE, PATTERN)")
            }
            QueryFault::Pattern(fault) => fault.fmt(formatter),
        }
    }
}

impl std::error::Error for QueryFault {}

impl Query {
    /// Parses a question whose relative labels are those of `package`.
    pub fn parse(text: &str, package: &PackageName) -> Result<Query, QueryFault> {
        let form = || QueryFault::Form { text: text.to_owned() };
        let pattern = |text: &str| Pattern::parse(text.trim(), package).map_err(QueryFault::Pattern);
        let trimmed = text.trim();
        let Some((function, rest)) = trimmed.split_once('(') else {
            return pattern(trimmed).map(Query::Targets);
        };
        let arguments = rest.strip_suffix(')').ok_or_else(form)?;
        let arguments = split_arguments(arguments);
        match (function.trim(), arguments.as_slice()) {
            ("deps", [targets]) => pattern(targets).map(Query::Dependencies),
            ("rdeps", [universe, targets]) => Ok(Query::Users { universe: pattern(universe)?, targets: pattern(targets)? }),
            _ => Err(form()),
        }
    }

    /// What must be loaded to answer.
    pub fn patterns(&self) -> Vec<Pattern> {
        match self {
            Query::Targets(pattern) | Query::Dependencies(pattern) => vec![pattern.clone()],
            Query::Users { universe, targets } => vec![universe.clone(), targets.clone()],
        }
    }

    /// The answer, in label order.
    pub fn answer(&self, workspace: &Workspace) -> Vec<Label> {
        match self {
            Query::Targets(pattern) => workspace.expand(pattern),
            Query::Dependencies(pattern) => labels_sorted(workspace, &workspace.expand(pattern)),
            Query::Users { universe, targets } => {
                let found: BTreeSet<Label> = workspace.expand(targets).into_iter().collect();
                users(workspace, &workspace.expand(universe), found)
            }
        }
    }
}

/// Commas inside the brackets of a label do not separate arguments.
fn split_arguments(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let is_separator = |character: char| {
        depth += i32::from(character == '[') - i32::from(character == ']');
        character == ',' && depth == 0
    };
    text.split(is_separator).collect()
}

fn labels_sorted(workspace: &Workspace, labels: &[Label]) -> Vec<Label> {
    let found: BTreeSet<Label> = workspace.closure(labels).into_iter().map(|target| target.label().clone()).collect();
    found.into_iter().collect()
}

/// Dependencies come before their users in a closure, so one pass finds every user.
fn users(workspace: &Workspace, universe: &[Label], wanted: BTreeSet<Label>) -> Vec<Label> {
    let closure = workspace.closure(universe);
    let mut found: BTreeSet<Label> = BTreeSet::new();
    for target in closure {
        let uses = target.dependencies().iter().any(|dependency| found.contains(&dependency.label.target()));
        if uses || wanted.contains(target.label()) {
            found.insert(target.label().clone());
        }
    }
    found.into_iter().collect()
}
