//! What a target gives: a verdict, lines to print, files to export.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::{Digest, KeyBuilder};

use crate::stage::load;
use crate::{Artifact, Bytes, Cause, Db, Engine, Failure, Figure, Label, PackageName, StageName};

/// A file under `artifacts/PACKAGE/TARGET/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// Path below the target's folder, `/` between names.
    pub path: String,
    /// Digest of the file's bytes.
    pub content: Digest,
    /// The blob that holds them.
    pub blob: Digest,
    /// Bytes of the blob before them: the length that the encoding of [`Bytes`] begins with.
    pub skip: u32,
}

impl Export {
    /// A file of these bytes, which are added to the store.
    pub fn of_bytes(engine: &Engine, path: &str, bytes: impl Into<Arc<[u8]>>) -> Export {
        let bytes = bytes.into();
        let content = Digest::of(&bytes);
        engine.shared().add_blob(content, bytes);
        Export { path: path.to_owned(), content, blob: content, skip: 0 }
    }

    /// A file with the bytes of an artifact, which are stored once.
    pub fn of_artifact<F>(engine: &Engine, path: &str, artifact: &Artifact<Bytes, F>) -> Result<Export, Failure> {
        let bytes = load(engine, artifact)?;
        let skip = bytes_of_length(bytes.len());
        Ok(Export { path: path.to_owned(), content: Digest::of(&bytes), blob: artifact.digest(), skip })
    }
}

/// Bytes that the encoding takes for a length: seven bits each.
fn bytes_of_length(length: usize) -> u32 {
    (usize::BITS - length.max(1).leading_zeros()).div_ceil(7)
}

/// What a rule's [`crate::Rule::finish`] gives for a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// False when the verdict is a failure although every stage succeeded.
    pub success: bool,
    /// Lines for standard output, without ends of line.
    pub lines: Vec<String>,
    /// Anything else the command line shows, in the rule's own encoding.
    pub data: Vec<u8>,
    /// What was measured or counted, by name in the rule's order; what sweeps compare.
    pub figures: Vec<(String, Figure)>,
    /// Files.
    pub exports: Vec<Export>,
    /// Whether the next build may answer from the record; false after a run on hardware.
    pub recorded: bool,
}

impl Default for Outcome {
    fn default() -> Outcome {
        Outcome { success: true, lines: Vec::new(), data: Vec::new(), figures: Vec::new(), exports: Vec::new(), recorded: true }
    }
}

/// What is recorded of a target under its shallow key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// See [`Outcome::success`].
    pub success: bool,
    /// See [`Outcome::lines`].
    pub lines: Vec<String>,
    /// See [`Outcome::data`].
    pub data: Vec<u8>,
    /// See [`Outcome::figures`].
    pub figures: Vec<(String, Figure)>,
    /// Why it gives nothing, of a target at a point of a sweep: there that is a result, too.
    pub failure: Option<KeptFailure>,
    /// See [`Outcome::exports`].
    pub exports: Vec<Export>,
    /// The stages of the target, in order; what `show`, `why` and gc read.
    pub stages: Vec<StageEntry>,
    /// Those of the targets below it that are only read, as `tensors`, with their labels: they have no records of their own.
    pub below: Vec<(String, StageEntry)>,
}

/// A [`Failure`] that follows from what the target is made of, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFailure {
    is_input: bool,
    label: String,
    stage: Option<StageName>,
    field: Option<String>,
    messages: Vec<String>,
}

impl KeptFailure {
    /// `None` for a failure that may pass.
    pub(crate) fn of(failure: &Failure) -> Option<KeptFailure> {
        let is_input = match failure.cause() {
            Cause::Input => true,
            Cause::Build => false,
            Cause::Disk | Cause::Lost(_) | Cause::Interrupted => return None,
        };
        Some(KeptFailure {
            is_input,
            label: failure.label().map(ToString::to_string).unwrap_or_default(),
            stage: failure.stage().cloned(),
            field: failure.field().map(str::to_owned),
            messages: failure.messages().to_vec(),
        })
    }

    /// The failure again.
    pub fn failure(&self) -> Failure {
        let cause = if self.is_input { Cause::Input } else { Cause::Build };
        let mut failure = Failure::all(cause, self.messages.clone());
        if let Ok(label) = Label::parse(&self.label, &PackageName::in_workspace("")) {
            failure = match &self.stage {
                Some(stage) => failure.or_at(&label, stage),
                None => failure.at_label(&label),
            };
        }
        match &self.field {
            Some(field) => failure.at_field(field.clone()),
            None => failure,
        }
    }

    /// The faults alone, without the target.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }
}

impl std::fmt::Display for KeptFailure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.failure().fmt(formatter)
    }
}

/// One stage of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageEntry {
    /// Which.
    pub name: StageName,
    /// Its deep key; its record lies under it.
    pub key: Digest,
    /// Digest of its artifact.
    pub digest: Digest,
}

impl TargetRecord {
    /// What users of the target see of it: everything but the stages.
    pub fn outcome_digest(&self) -> Digest {
        let mut key = KeyBuilder::new("outcome");
        key.number(self.success.into()).number(self.lines.len() as u64);
        self.lines.iter().for_each(|line| {
            key.text(line);
        });
        key.bytes(&self.data);
        for (name, figure) in &self.figures {
            key.text(name).text(&figure.to_string());
        }
        if let Some(failure) = &self.failure {
            key.text("failure").text(&failure.to_string());
        }
        for export in &self.exports {
            key.text(&export.path).digest(&export.content);
        }
        key.finish()
    }
}

impl Serialize for StageName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.stage, &self.index).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StageName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<StageName, D::Error> {
        let (stage, index) = Deserialize::deserialize(deserializer)?;
        Ok(StageName { stage, index })
    }
}
