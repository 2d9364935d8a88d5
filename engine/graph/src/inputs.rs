//! What enters the database from outside.

#![allow(missing_docs, reason = "salsa's macro generates constructors and setters without documentation")]

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use store::Digest;

use crate::{Label, SourcePath};

/// A rule's parsed fields; the rule knows the type.
pub type RuleData = Arc<dyn Any + Send + Sync>;

/// What a target is declared to be, without any position in a file.
#[derive(Clone)]
pub struct Declared {
    /// The rule's name.
    pub rule: &'static str,
    /// Digest of the normalised declaration: comments, order and formatting do not reach it.
    pub digest: Digest,
    /// The rule's parsed fields; a function of the digest, the rule and the package.
    pub data: RuleData,
}

impl PartialEq for Declared {
    fn eq(&self, other: &Declared) -> bool {
        self.rule == other.rule && self.digest == other.digest
    }
}

impl fmt::Debug for Declared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Declared({}, {})", self.rule, self.digest.short())
    }
}

/// Input: the declaration of one target.
#[salsa::input(debug)]
pub struct Target {
    /// The target's label, without point and artifact.
    pub label: Label,
    /// What it is declared to be; `None` when it is not declared (any more).
    pub declared: Option<Declared>,
    /// What it gave when it was built last: [`crate::TargetRecord::outcome_digest`], or its shallow key when it is only
    /// read. Targets are built before those that
    /// use them, so a rule that reads its dependencies' outcomes finds them here.
    #[returns(copy)]
    pub outcome: Option<Digest>,
}

/// Input: one source file.
#[salsa::input(debug)]
pub struct SourceFile {
    /// Where it is.
    pub path: SourcePath,
    /// Digest of its bytes; [`Digest::ABSENT`] when there is no such file.
    #[returns(copy)]
    pub digest: Digest,
}

/// Input: numbers that make queries run again although no source changed.
#[salsa::input]
pub(crate) struct Revisit {
    /// Read by every stage; raised when a stored body was lost or a stage failed for a reason that may pass.
    #[returns(copy)]
    pub(crate) epoch: u64,
    /// Read by stages that are never answered from a record; raised by every build after one ran.
    #[returns(copy)]
    pub(crate) build: u64,
}
