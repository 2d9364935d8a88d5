//! Eviction: which records go, and which blobs nothing needs any more. See [`crate::lease`] for why builds may run meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use crate::census::{Census, RecordRow, digest_of_place, files_in};
use crate::records::Eviction;
use crate::{Digest, RecordKind, Store, StoreFault, blob_file, check, key_lock, lease, pack, stat_cache};

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
    /// Bytes on disk before.
    pub bytes_before: u64,
    /// Bytes on disk after.
    pub bytes_after: u64,
    /// Records evicted.
    pub records: usize,
    /// Blobs deleted.
    pub blobs: usize,
    /// Runs forgotten.
    pub runs: usize,
    /// Records that stay in any case because a process that builds now may need them.
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
    // Builds wait meanwhile: half of 100,000 packed blobs went in 0.65 s, 1,000 files in 60 ms (benches/store.rs, 2 cores).
    let alone = key_lock::lock_file(&store.locks(), "sweep")?;
    let mut report = GcReport { bytes_before: disk_bytes(store)?, ..GcReport::default() };
    let most = policy.max_bytes.unwrap_or(u64::MAX);
    if policy.dry_run {
        let needed = needed_bytes(store)?;
        report.bytes_after = needed.saturating_sub(plan(store, policy, needed.saturating_sub(most), &mut report)?.freed);
        return Ok(report);
    }
    remove_rests(store)?;
    // What a row or a pack costs on disk is known when it is gone: what is still too much is evicted in further rounds.
    loop {
        let excess = needed_bytes(store)?.saturating_sub(most);
        let plan = plan(store, policy, excess, &mut report)?;
        let eviction = Eviction { records: &plan.victims, runs: &plan.old_runs };
        if store.records().evict(&eviction).is_err() {
            // The database grows before it shrinks. On a full disk files make room for that: a record whose blob is gone is made again.
            discard_large(store, &plan.gone);
            store.records().evict(&eviction)?;
        }
        sweep(store, &plan.gone)?;
        pack::compact_all(store, needed_bytes(store)? > most)?;
        if plan.victims.is_empty() || needed_bytes(store)? <= most {
            break;
        }
    }
    drop(alone);
    store.records().forget_stats(|path| !Utf8Path::new(path).exists())?;
    store.records().shrink(disk_bytes(store)? > most);
    report.bytes_after = disk_bytes(store)?;
    Ok(report)
}

/// What goes.
struct Plan {
    victims: Vec<RecordId>,
    old_runs: Vec<i64>,
    gone: Vec<Digest>,
    /// Bytes of all that goes.
    freed: u64,
}

/// What goes so that `excess` bytes do, if so many may; counted in `report`.
fn plan(store: &Store, policy: &GcPolicy, excess: u64, report: &mut GcReport) -> Result<Plan, StoreFault> {
    let leases = lease::read(&store.leases(), store.lease())?;
    let census = Census::take(store)?;
    let in_use = census.reached_from(leases.records());
    let uses = uses(&census, policy);
    let mut eviction = Choice::among(&census, leases.blobs());
    let may_go = |id: &RecordId| !in_use.contains(id);
    victims(&census, &uses, policy).iter().filter(|id| may_go(id)).for_each(|id| eviction.evict(id));
    if policy.max_bytes.is_some() {
        eviction.freed += pack::dead_bytes(store)?;
        for id in least_recently_used(&uses, may_go) {
            if eviction.freed >= excess {
                break;
            }
            eviction.evict(&id);
        }
    }
    let plan = eviction.into_plan(uses.old_runs);
    report.records += plan.victims.len();
    report.blobs += plan.gone.len();
    report.runs += plan.old_runs.len();
    (report.in_use, report.processes) = (in_use.len(), leases.processes);
    report.working_set = report.working_set.max(census.bytes_of(&uses.newest_run));
    Ok(plan)
}

/// Records chosen one after the other, and what goes with them.
struct Choice<'a> {
    census: &'a Census,
    /// Of each blob that is there, how many need it.
    users: BTreeMap<Digest, usize>,
    victims: BTreeSet<RecordId>,
    freed: u64,
}

impl<'a> Choice<'a> {
    /// Nothing yet, but the blobs that neither a record nor one of `kept` names.
    fn among(census: &'a Census, kept: impl Iterator<Item = Digest>) -> Choice<'a> {
        let mut users: BTreeMap<Digest, usize> = census.blobs.keys().map(|digest| (*digest, 0)).collect();
        let named = census.records.values().flat_map(|record| &record.references.blobs).copied();
        named.chain(kept).for_each(|digest| {
            users.entry(digest).and_modify(|count| *count += 1);
        });
        let freed = census.blobs.iter().filter(|(digest, _)| users[*digest] == 0).map(|(_, blob)| blob.bytes).sum();
        Choice { census, users, victims: BTreeSet::new(), freed }
    }

    fn evict(&mut self, id: &RecordId) {
        if !self.victims.insert(*id) {
            return;
        }
        let record = &self.census.records[id];
        self.freed += record.bytes;
        for digest in &record.references.blobs {
            let (Some(count), Some(blob)) = (self.users.get_mut(digest), self.census.blobs.get(digest)) else { continue };
            *count -= 1;
            self.freed += if *count == 0 { blob.bytes } else { 0 };
        }
    }

    fn into_plan(self, old_runs: Vec<i64>) -> Plan {
        let unused = |digest: &&Digest| self.users[*digest] == 0;
        let gone = self.census.blobs.keys().filter(unused).copied().collect();
        Plan { victims: self.victims.into_iter().collect(), old_runs, gone, freed: self.freed }
    }
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

/// What goes whatever the size of the store is.
fn victims(census: &Census, uses: &Uses, policy: &GcPolicy) -> BTreeSet<RecordId> {
    let is_damaged = |(_, record): &(&RecordId, &RecordRow)| record.is_damaged;
    let mut victims: BTreeSet<RecordId> = census.records.iter().filter(is_damaged).map(|(id, _)| *id).collect();
    let may_go = |id: &RecordId| !uses.protected.contains(id);
    if let Some(oldest) = uses.oldest {
        victims.extend(uses.last.iter().filter(|(id, last)| may_go(id) && last.0 < oldest).map(|(id, _)| *id));
    } else if policy.keep_runs.is_some() && policy.max_bytes.is_none() {
        victims.extend(uses.last.keys().filter(|id| may_go(id)));
    }
    victims
}

/// The records that may go, those first that were used longest ago.
fn least_recently_used(uses: &Uses, may_go: impl Fn(&RecordId) -> bool) -> Vec<RecordId> {
    let candidates = uses.last.iter().filter(|(id, _)| may_go(id) && !uses.protected.contains(*id));
    let mut candidates: Vec<((i64, i64), RecordId)> = candidates.map(|(id, last)| (*last, *id)).collect();
    candidates.sort_unstable();
    candidates.into_iter().map(|(_, id)| id).collect()
}

/// Deletes blobs that nothing needs, and packs in which nothing is left.
fn sweep(store: &Store, gone: &[Digest]) -> Result<(), StoreFault> {
    store.records().delete_blobs(gone)?;
    discard_large(store, gone);
    let listed = store.records().packs()?;
    let is_unlisted = |path: &&Utf8PathBuf| digest_of_place(path).is_some_and(|pack| !listed.contains_key(&pack));
    files_in(&store.root().join("packs"))?.iter().filter(is_unlisted).for_each(|path| blob_file::discard(path));
    Ok(())
}

fn discard_large(store: &Store, blobs: &[Digest]) {
    blobs.iter().for_each(|digest| blob_file::discard(&store.large_place(digest)));
}

/// Removes what killed processes and repairs left behind. Nobody writes now, so nothing half written is being written.
fn remove_rests(store: &Store) -> Result<(), StoreFault> {
    check::strays(store)?.iter().for_each(|path| blob_file::discard(path));
    let is_rest = |name: &str| name.starts_with(".writing-") || name.starts_with("records.sqlite.damaged");
    let entries = store.root().read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    entries.filter(|entry| is_rest(entry.file_name())).for_each(|entry| blob_file::discard(entry.path()));
    Ok(())
}

/// Bytes of the store on disk.
pub(crate) fn disk_bytes(store: &Store) -> Result<u64, StoreFault> {
    Ok(blob_bytes(store)? + database_bytes(store))
}

/// Bytes of the database and its log.
pub(crate) fn database_bytes(store: &Store) -> u64 {
    let bytes_of = |name: &str| store.root().join(name).metadata().map_or(0, |metadata| metadata.len());
    bytes_of("records.sqlite") + bytes_of("records.sqlite-wal")
}

/// Bytes on disk without the database's unused pages and its log, which go when nobody uses it.
fn needed_bytes(store: &Store) -> Result<u64, StoreFault> {
    Ok(blob_bytes(store)? + store.records().used_bytes()?)
}

fn blob_bytes(store: &Store) -> Result<u64, StoreFault> {
    let files = [files_in(&store.root().join("cas"))?, files_in(&store.root().join("packs"))?].concat();
    Ok(files.iter().map(|path| path.metadata().map_or(0, |metadata| metadata.len())).sum())
}
