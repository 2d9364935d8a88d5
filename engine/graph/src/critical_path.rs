//! The chain of stages, each needing the one before, that took longest: no number of threads makes a run shorter.

use std::collections::BTreeMap;

use store::{Digest, Store, StoreFault};

use crate::{RunRecord, StageEnd, StageFacts, StageRun};

/// The executed stages of the longest chain, first to last; a stage needs another when it read its artifact.
pub fn critical_path<'a>(store: &Store, run: &'a RunRecord) -> Result<Vec<&'a StageRun>, StoreFault> {
    let executed: Vec<&StageRun> = run.stages.iter().filter(|stage| stage.end == StageEnd::Executed).collect();
    // A stage ends after those that it needs, so one pass in the order of the ends sees them first.
    let mut producer: BTreeMap<Digest, usize> = BTreeMap::new();
    let mut best: Vec<(f64, Option<usize>)> = Vec::with_capacity(executed.len());
    for (index, stage) in executed.iter().enumerate() {
        let facts = StageFacts::read(store, &stage.key)?;
        let inputs = facts.iter().flat_map(|facts| &facts.inputs);
        let before = inputs.filter_map(|(_, digest)| producer.get(digest)).max_by(|a, b| best[**a].0.total_cmp(&best[**b].0));
        best.push((stage.elapsed_ms + before.map_or(0.0, |before| best[*before].0), before.copied()));
        if let Some(digest) = stage.digest {
            producer.insert(digest, index);
        }
    }
    let mut path = Vec::new();
    let mut at = (0..executed.len()).max_by(|a, b| best[*a].0.total_cmp(&best[*b].0));
    while let Some(index) = at {
        path.push(executed[index]);
        at = best[index].1;
    }
    path.reverse();
    Ok(path)
}
