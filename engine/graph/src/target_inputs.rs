//! What a target was made from, kept under its shallow key, so that two builds can be compared later.

use serde::{Deserialize, Serialize};
use store::{Digest, RecordKind, References};

use crate::shared::Shared;
use crate::target_table::TargetTable;
use crate::{Failure, LoadedTarget};

/// Everything that a shallow key is made of, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetInputs {
    /// The rule's name.
    pub rule: String,
    /// The code that its stages are made of: name of each part and its digest.
    pub code: Vec<(String, Digest)>,
    /// Declared values by field, as in `layout.tiles`, in TOML.
    pub fields: Vec<(String, String)>,
    /// Field, path and digest of each source.
    pub sources: Vec<(String, String, Digest)>,
    /// Field, label and shallow key of each target named.
    pub dependencies: Vec<(String, String, Digest)>,
}

impl TargetInputs {
    /// Those of a target whose dependencies have their keys.
    pub(crate) fn of(table: &TargetTable, number: usize, target: &LoadedTarget) -> TargetInputs {
        let sources = target.sources().iter().zip(table.sources(number));
        let dependencies = target.dependencies().iter().zip(table.dependencies(number));
        let mut fields = target.leaves();
        fields.sort();
        TargetInputs {
            rule: target.rule().name().to_owned(),
            code: target.rule().code().into_iter().map(|(name, digest)| (name.to_owned(), digest)).collect(),
            fields,
            sources: sources.map(|(used, file)| (used.field.clone(), used.path.to_string(), table.file_digest(file))).collect(),
            dependencies: dependencies.map(|(used, number)| (used.field.clone(), used.label.to_string(), table.key(number))).collect(),
        }
    }

    /// Keeps them, once.
    pub(crate) fn keep(shared: &Shared, table: &TargetTable, number: usize, target: &LoadedTarget) -> Result<(), Failure> {
        let inputs = TargetInputs::of(table, number, target);
        // What it depends on explains it as well, and is needed to build it again after a small edit.
        let below = inputs.dependencies.iter().map(|(_, _, key)| *key);
        let mut records: Vec<(RecordKind, Digest)> = below.flat_map(|key| [(RecordKind::Inputs, key), (RecordKind::Target, key)]).collect();
        records.push((RecordKind::Target, table.key(number)));
        shared.add_record(RecordKind::Inputs, table.key(number), &inputs, References { blobs: Vec::new(), records })?;
        Ok(())
    }
}
