//! The stages that a target is made of, as the store remembers them.

use std::collections::{BTreeMap, BTreeSet};

use store::{Digest, RecordKind, Store, StoreFault};

use crate::keys_below::KeysBelow;
use crate::{Runs, StageEntry, StageName, TargetRecord};

/// The stages of a target under its shallow key; `None` when it was never built as it is now.
///
/// Targets that are only read have no record of their own: their stages stand in the records of the targets that used them, as
/// far as these did.
pub fn kept_stages(store: &Store, label: &str, key: Digest) -> Result<Option<Vec<StageEntry>>, StoreFault> {
    if let Some(record) = store.record::<TargetRecord>(RecordKind::Target, &key)? {
        return Ok(Some(record.stages));
    }
    let mut found: BTreeMap<StageName, StageEntry> = BTreeMap::new();
    let mut looked_at = BTreeSet::new();
    let mut keys = KeysBelow::of(label);
    for target in Runs::newest(store, u32::MAX)?.newest_first.into_iter().flat_map(|(_, run)| run.targets) {
        if !looked_at.insert(target.key) {
            continue;
        }
        let Some(record) = store.record::<TargetRecord>(RecordKind::Target, &target.key)? else { continue };
        let mut below = record.below.into_iter().filter(|(known, _)| known == label).map(|(_, stage)| stage).peekable();
        if below.peek().is_some() && keys.below(store, target.key)? == Some(key) {
            below.for_each(|stage| _ = found.entry(stage.name.clone()).or_insert(stage));
        }
    }
    Ok(Some(found.into_values().collect::<Vec<_>>()).filter(|found| !found.is_empty()))
}
