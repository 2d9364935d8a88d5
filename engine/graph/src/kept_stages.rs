//! The stages that a target is made of, as the store remembers them.

use std::collections::BTreeSet;

use store::{Digest, RecordKind, Store, StoreFault};

use crate::{RunRecord, StageEntry, TargetInputs, TargetRecord};

/// The stages of a target under its shallow key; `None` when it was never built as it is now.
///
/// Targets that are only read have no record of their own: their stages are those that the runs of the store tell of, of
/// runs in which the target had this key.
pub fn kept_stages(store: &Store, label: &str, key: Digest) -> Result<Option<Vec<StageEntry>>, StoreFault> {
    if let Some(record) = store.record::<TargetRecord>(RecordKind::Target, &key)? {
        return Ok(Some(record.stages));
    }
    let mut found: Vec<StageEntry> = Vec::new();
    for (_, run) in RunRecord::newest(store, u32::MAX)? {
        let of_target = || run.stages.iter().filter(|stage| stage.label == label);
        if of_target().next().is_none() || !had_key(store, &run, label, key)? {
            continue;
        }
        for stage in of_target() {
            let Some(digest) = stage.digest else { continue };
            if found.iter().all(|entry| entry.name != stage.name) {
                found.push(StageEntry { name: stage.name.clone(), key: stage.key, digest });
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// Whether a target had this key anywhere below the targets of a run.
fn had_key(store: &Store, run: &RunRecord, label: &str, key: Digest) -> Result<bool, StoreFault> {
    let mut queue: Vec<Digest> = run.targets.iter().map(|target| target.key).collect();
    let mut seen = BTreeSet::new();
    while let Some(next) = queue.pop() {
        if !seen.insert(next) {
            continue;
        }
        let Some(inputs) = store.record::<TargetInputs>(RecordKind::Inputs, &next)? else { continue };
        if inputs.dependencies.iter().any(|(_, known, found)| known == label && *found == key) {
            return Ok(true);
        }
        queue.extend(inputs.dependencies.into_iter().map(|(.., key)| key));
    }
    Ok(false)
}
