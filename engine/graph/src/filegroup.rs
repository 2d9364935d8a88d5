//! The rule `filegroup`: files and targets under one name.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::Digest;

use crate::stage::stage;
use crate::{
    Artifact, Db, Declaration, Engine, Failure, Field, Input, Label, Made, Outcome, Rule, RuleData, RuleKind, StageInput, StageNote,
    StageSpec, Target, data_of,
};

/// The fields of a `filegroup`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FileGroup {
    /// Files of the package, or labels of targets that give something.
    pub srcs: Vec<Input>,
}

/// What a `filegroup` stands for: each entry's name and the digest of the file or of what the target gave, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest(pub Vec<(String, Digest)>);

/// Raised when the stage gives something else for the same sources.
const FINGERPRINT: &[u8] = b"filegroup 1";

/// The manifest. Key: names and digests of its entries; a target inside that gives the same as before changes nothing.
#[salsa::tracked(returns(clone))]
fn manifest(db: &dyn Db, target: Target) -> Result<Artifact<Manifest>, Failure> {
    let label = target.label(db);
    let group = data_of::<FileGroup>(db, label)?;
    let mut entries = Vec::with_capacity(group.srcs.len());
    for source in &group.srcs {
        entries.push(match source {
            Input::File(path) => (path.to_string(), db.source(path).digest(db)),
            Input::Target(used) => {
                let outcome = db.target(used).outcome(db);
                (used.to_string(), outcome.ok_or_else(|| Failure::build(format!("{used} was not built before it")).at_label(label))?)
            }
        });
    }
    let names: Vec<Digest> = entries.iter().map(|(name, _)| Digest::of(name.as_bytes())).collect();
    let inputs = names.iter().zip(&entries).flat_map(|(name, (_, digest))| [("name", *name), ("content", *digest)]);
    let inputs: Vec<StageInput> = inputs.collect();
    stage(db, &StageSpec::new("manifest", Digest::of(FINGERPRINT), label), &inputs, || Ok(Made::new(Manifest(entries))))
}

pub(crate) struct FileGroupRule;

impl Rule for FileGroupRule {
    fn name(&self) -> &'static str {
        "filegroup"
    }

    fn summary(&self) -> &'static str {
        "Files and targets under one name."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] =
            &[Field::required("srcs", "list of files and labels", "The files, in this order; a label stands for what its target gives.")];
        FIELDS
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Built
    }

    fn exports_files(&self) -> bool {
        false
    }

    fn fingerprint(&self) -> Digest {
        Digest::of(FINGERPRINT)
    }

    fn reads_outcomes(&self) -> bool {
        true
    }

    fn stages(&self, engine: &Engine, label: &Label) -> Vec<StageNote> {
        manifest::accumulated::<StageNote>(engine, engine.target(label)).into_iter().cloned().collect()
    }

    /// Its manifest's digest, so that its users see what it stands for.
    fn finish(&self, engine: &Engine, label: &Label) -> Result<Outcome, Failure> {
        let manifest = manifest(engine, engine.target(label))?;
        Ok(Outcome { data: manifest.digest().as_bytes().to_vec(), ..Outcome::default() })
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        Some(Arc::new(declaration.read::<FileGroup>()?))
    }
}
