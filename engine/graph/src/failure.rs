//! Why a stage gave nothing.

use std::fmt;
use std::sync::Arc;

use store::{BlobMiss, Digest, StoreFault};

use crate::{Label, StageName};

/// The kind of a failure; it decides the exit code and whether trying again can help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Something the user wrote is wrong: exit code 2.
    Input,
    /// The input is right and yet the build or the verdict failed: exit code 1.
    Build,
    /// The store or another file could not be read or written: exit code 1; tried again in the next build.
    Disk,
    /// A blob that a record promised is gone; the engine runs its producer again.
    Lost(Digest),
    /// The user stopped the build: exit code 130.
    Interrupted,
}

/// Why a stage gave nothing. Cheap to clone; compared by content, so that salsa can cut off.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure(Arc<Parts>);

#[derive(Clone, PartialEq, Eq)]
struct Parts {
    cause: Cause,
    label: Option<Label>,
    stage: Option<StageName>,
    field: Option<String>,
    messages: Vec<String>,
}

impl Failure {
    /// A failure of this kind; label and stage are added by [`crate::stage`].
    pub fn new(cause: Cause, message: impl Into<String>) -> Failure {
        Failure::all(cause, vec![message.into()])
    }

    /// Several independent faults, in order.
    pub fn all(cause: Cause, messages: Vec<String>) -> Failure {
        Failure(Arc::new(Parts { cause, label: None, stage: None, field: None, messages }))
    }

    /// Something the user wrote is wrong.
    pub fn input(message: impl Into<String>) -> Failure {
        Failure::new(Cause::Input, message)
    }

    /// The build cannot give what was asked although the input is well formed.
    pub fn build(message: impl Into<String>) -> Failure {
        Failure::new(Cause::Build, message)
    }

    /// The user stopped the build.
    pub fn interrupted() -> Failure {
        Failure::new(Cause::Interrupted, "interrupted")
    }

    /// Names the field of the declaration at fault, as in `layout.tiles` or `op[2].args`.
    #[must_use]
    pub fn at_field(self, field: impl Into<String>) -> Failure {
        self.changed(|parts| parts.field = Some(field.into()))
    }

    /// Names the target, replacing what was named.
    #[must_use]
    pub fn at_label(self, label: &Label) -> Failure {
        self.changed(|parts| parts.label = Some(label.target()))
    }

    /// Names the stage and its target, unless they are named already.
    #[must_use]
    pub(crate) fn or_at(self, label: &Label, stage: &StageName) -> Failure {
        self.changed(|parts| {
            if parts.stage.is_none() {
                parts.label.get_or_insert_with(|| label.target());
                parts.stage = Some(stage.clone());
            }
        })
    }

    fn changed(mut self, change: impl FnOnce(&mut Parts)) -> Failure {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// The kind.
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// The target, when known.
    pub fn label(&self) -> Option<&Label> {
        self.0.label.as_ref()
    }

    /// The stage, when it was one that failed.
    pub fn stage(&self) -> Option<&StageName> {
        self.0.stage.as_ref()
    }

    /// The field of the declaration, when it is one's fault.
    pub fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// The faults, at least one, in order.
    pub fn messages(&self) -> &[String] {
        &self.0.messages
    }

    /// 2 for input, 130 when interrupted, else 1.
    pub fn exit_code(&self) -> u8 {
        match self.0.cause {
            Cause::Input => 2,
            Cause::Interrupted => 130,
            Cause::Build | Cause::Disk | Cause::Lost(_) => 1,
        }
    }
}

impl From<StoreFault> for Failure {
    fn from(fault: StoreFault) -> Failure {
        Failure::new(Cause::Disk, fault.to_string())
    }
}

impl From<BlobMiss> for Failure {
    fn from(miss: BlobMiss) -> Failure {
        match &miss {
            BlobMiss::Unreadable { fault, .. } if fault.may_pass() => Failure::new(Cause::Disk, miss.to_string()),
            _ => Failure::new(Cause::Lost(miss.digest()), miss.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(label) = &self.0.label {
            write!(formatter, "{label}")?;
            self.0.stage.iter().try_for_each(|stage| write!(formatter, "{stage}"))?;
            self.0.field.iter().try_for_each(|field| write!(formatter, ", {field}"))?;
            write!(formatter, ": ")?;
        }
        formatter.write_str(&self.0.messages.join("\n"))
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Failure({:?}, {self})", self.0.cause)
    }
}

impl std::error::Error for Failure {}
