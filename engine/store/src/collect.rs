//! Eviction: which records go, and which blobs nothing needs any more. See [`crate::lease`] for why builds may run meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::Utf8Path;

use crate::census::{Census, RecordRow};
use crate::records::Eviction;
use crate::{Digest, RecordKind, Store, StoreFault, blob_file, key_lock, lease, stat_cache};

/// What may go. Without any bound nothing does, but what no record needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcPolicy {
    /// The least recently used goes until the store is this small.
    pub max_bytes: Option<u64>,
    /// What no run used for so long goes.
    pub older_than: Option<Duration>,
    /// What the newest runs used stays; without another bound everything else goes.
    pub keep_runs: Option<u32>,
    /// Only says what would be done.
    pub dry_run: bool,
}

/// What was done, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcReport {
    /// Bytes of records and blobs before.
    pub bytes_before: u64,
    /// Bytes after.
    pub bytes_after: u64,
    /// Records evicted.
    pub records: usize,
    /// Blobs deleted.
    pub blobs: usize,
    /// Runs forgotten.
    pub runs: usize,
    /// Records that stay because a process that builds now may need them.
    pub in_use: usize,
    /// Processes that build now.
    pub processes: usize,
    /// Bytes of what the newest run used.
    pub working_set: u64,
}

type RecordId = (RecordKind, Digest);

/// Records by when a run used them last.
struct Uses {
    /// Milliseconds since 1970: what was used before may go.
    oldest: Option<i64>,
    /// Milliseconds since 1970, and the run's number, since several may end in one millisecond; for records that no run
    /// reaches, when they were written.
    last: BTreeMap<RecordId, (i64, i64)>,
    newest_run: BTreeSet<RecordId>,
    protected: BTreeSet<RecordId>,
    /// Runs that go.
    old_runs: Vec<i64>,
}

pub(crate) fn collect(store: &Store, policy: &GcPolicy) -> Result<GcReport, StoreFault> {
    let _one = key_lock::lock_file(&store.locks(), "gc")?;
    let alone = key_lock::lock_file(&store.locks(), "sweep")?;
    let leases = lease::read(&store.leases(), store.lease())?;
    let census = Census::take(store)?;
    let uses = uses(&census, policy);
    let mut victims = victims(&census, &uses, policy);
    let before = victims.len();
    let in_use = census.reached_from(leases.records());
    victims.retain(|id| !in_use.contains(id));
    let mut needed = census.blobs_of(&census.others(&victims));
    needed.extend(leases.blobs());
    let gone: Vec<Digest> = census.blobs.keys().filter(|digest| !needed.contains(*digest)).copied().collect();
    let mut report = GcReport {
        bytes_before: census.bytes(),
        in_use: before - victims.len(),
        processes: leases.processes,
        working_set: census.bytes_of(&uses.newest_run),
        records: victims.len(),
        blobs: gone.len(),
        runs: uses.old_runs.len(),
        ..GcReport::default()
    };
    if policy.dry_run {
        report.bytes_after = census.bytes_of(&census.others(&victims));
        return Ok(report);
    }
    store.records().evict(&Eviction { records: &victims.iter().copied().collect::<Vec<_>>(), runs: &uses.old_runs })?;
    sweep(store, &census, &gone)?;
    drop(alone);
    store.records().forget_stats(|path| !Utf8Path::new(path).exists())?;
    store.records().shrink()?;
    report.bytes_after = Census::take(store)?.bytes();
    Ok(report)
}

fn uses(census: &Census, policy: &GcPolicy) -> Uses {
    let oldest = policy.older_than.map(|age| stat_cache::now_ms() - i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    let mut uses = Uses { oldest, last: BTreeMap::new(), newest_run: BTreeSet::new(), protected: BTreeSet::new(), old_runs: Vec::new() };
    // Newest first: the first run that reaches a record is the last that used it.
    for (place, run) in census.runs.iter().enumerate() {
        let Some(used) = &run.used else {
            uses.old_runs.push(run.number);
            continue;
        };
        let reached = census.reached_from(used.iter().copied());
        reached.iter().for_each(|id| {
            uses.last.entry(*id).or_insert((run.written_ms, run.number));
        });
        let is_kept = policy.keep_runs.is_some_and(|keep| place < keep as usize);
        let is_old = oldest.is_some_and(|oldest| run.written_ms < oldest) || (policy.keep_runs.is_some() && oldest.is_none());
        if is_kept {
            uses.protected.extend(&reached);
        } else if is_old {
            uses.old_runs.push(run.number);
        }
        if place == 0 {
            uses.newest_run = reached;
        }
    }
    for (id, record) in &census.records {
        uses.last.entry(*id).or_insert((record.written_ms, 0));
    }
    uses
}

fn victims(census: &Census, uses: &Uses, policy: &GcPolicy) -> BTreeSet<RecordId> {
    let is_damaged = |(_, record): &(&RecordId, &RecordRow)| record.is_damaged;
    let mut victims: BTreeSet<RecordId> = census.records.iter().filter(is_damaged).map(|(id, _)| *id).collect();
    let may_go = |id: &RecordId| !uses.protected.contains(id);
    if let Some(oldest) = uses.oldest {
        victims.extend(uses.last.iter().filter(|(id, last)| may_go(id) && last.0 < oldest).map(|(id, _)| *id));
    } else if policy.keep_runs.is_some() && policy.max_bytes.is_none() {
        victims.extend(uses.last.keys().filter(|id| may_go(id)));
    }
    if let Some(max_bytes) = policy.max_bytes {
        evict_to(census, uses, max_bytes, &mut victims);
    }
    victims
}

/// Adds the least recently used records until what stays is small enough.
fn evict_to(census: &Census, uses: &Uses, max_bytes: u64, victims: &mut BTreeSet<RecordId>) {
    let stay = census.others(victims);
    let mut users: BTreeMap<Digest, usize> = BTreeMap::new();
    for id in &stay {
        census.records[id].references.blobs.iter().for_each(|blob| *users.entry(*blob).or_default() += 1);
    }
    let mut bytes = census.bytes_of(&stay);
    let mut candidates: Vec<((i64, i64), RecordId)> =
        uses.last.iter().filter(|(id, _)| stay.contains(*id) && !uses.protected.contains(*id)).map(|(id, last)| (*last, *id)).collect();
    candidates.sort_unstable();
    for (_, id) in candidates {
        if bytes <= max_bytes {
            return;
        }
        let RecordRow { references, bytes: own, .. } = &census.records[&id];
        bytes -= own;
        for blob in &references.blobs {
            let Some(count) = users.get_mut(blob) else { continue };
            *count -= 1;
            if *count == 0 {
                bytes -= census.blobs.get(blob).map_or(0, |row| row.bytes);
            }
        }
        victims.insert(id);
    }
}

/// Deletes blobs that nothing needs.
fn sweep(store: &Store, census: &Census, gone: &[Digest]) -> Result<(), StoreFault> {
    for pack in store.records().delete_blobs(gone)? {
        blob_file::discard(&store.pack_place(&pack));
    }
    for digest in gone.iter().filter(|digest| census.blobs[*digest].is_file) {
        blob_file::discard(&store.large_place(digest));
    }
    Ok(())
}
