//! Counting what is there, and reading all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use camino::Utf8PathBuf;

use crate::census::{Census, digest_of_place, files_in};
use crate::records::Eviction;
use crate::{BlobMiss, Digest, RecordKind, Store, StoreFault, blob_file, collect, key_lock};

/// How many of a sort there are, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// What a store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Records of each family.
    pub records: BTreeMap<RecordKind, Amount>,
    /// Blobs in the database and in packs.
    pub small_blobs: Amount,
    /// Pack files.
    pub packs: Amount,
    /// Blobs that are files.
    pub large_blobs: Amount,
    /// Runs.
    pub runs: u64,
    /// Files in the stat cache.
    pub stats: u64,
    /// Bytes of the database with its log.
    pub database_bytes: u64,
    /// Bytes on disk: database, packs and large blobs.
    pub disk_bytes: u64,
}

/// Something wrong in a store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// The database itself is damaged, in SQLite's words.
    Database(String),
    /// A record's bytes are damaged.
    Record(RecordKind, Digest),
    /// The record of a run is damaged.
    Run(i64),
    /// A record is there, and a blob that it needs is not.
    MissingBlob {
        /// The record's family.
        kind: RecordKind,
        /// Its key.
        key: Digest,
        /// The blob.
        blob: Digest,
    },
    /// A blob's bytes are not those of its digest.
    Blob(Digest),
    /// A blob cannot be read.
    Unreadable {
        /// The blob.
        blob: Digest,
        /// The operating system's words.
        reason: String,
    },
    /// A file that a process left half written, or that is no part of a store.
    Stray(Utf8PathBuf),
}

impl Defect {
    fn of_miss(miss: BlobMiss) -> Defect {
        match miss {
            BlobMiss::Unreadable { digest, fault } => Defect::Unreadable { blob: digest, reason: fault.to_string() },
            BlobMiss::Absent { digest } | BlobMiss::Corrupt { digest, .. } => Defect::Blob(digest),
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Defect::Database(found) => write!(formatter, "the database of records is damaged: {found}"),
            Defect::Record(kind, key) => write!(formatter, "{} record {} is damaged", kind.name(), key.short()),
            Defect::Run(number) => write!(formatter, "the record of run {number} is damaged"),
            Defect::MissingBlob { kind, key, blob } => {
                write!(formatter, "{} record {} is there, but blob {} that it needs is missing", kind.name(), key.short(), blob.short())
            }
            Defect::Blob(digest) => write!(formatter, "blob {} is damaged", digest.short()),
            Defect::Unreadable { blob, reason } => write!(formatter, "blob {} cannot be read: {reason}", blob.short()),
            Defect::Stray(path) => write!(formatter, "{path} is no part of a store"),
        }
    }
}

/// What a check read and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Records read.
    pub records: usize,
    /// Blobs read.
    pub blobs: usize,
    /// What is wrong, in order.
    pub defects: Vec<Defect>,
}

pub(crate) fn statistics(store: &Store) -> Result<Statistics, StoreFault> {
    let census = Census::take(store)?;
    let mut statistics = Statistics { runs: census.runs.len() as u64, stats: store.records().count_stats()?, ..Statistics::default() };
    for ((kind, _), record) in &census.records {
        statistics.records.entry(*kind).or_default().add(record.bytes);
    }
    for blob in census.blobs.values() {
        if blob.is_file { &mut statistics.large_blobs } else { &mut statistics.small_blobs }.add(blob.bytes);
    }
    for pack in files_in(&store.root().join("packs"))? {
        statistics.packs.add(pack.metadata().map_or(0, |metadata| metadata.len()));
    }
    statistics.database_bytes = collect::database_bytes(store);
    statistics.disk_bytes = collect::disk_bytes(store)?;
    Ok(statistics)
}

/// Eviction waits for a check, and builds go on beside it. What looks wrong is looked at again while nobody writes, so that
/// it is not just being written, and with `repair` forgotten then.
pub(crate) fn check(store: &Store, repair: bool) -> Result<CheckReport, StoreFault> {
    let _no_eviction = key_lock::lock_file(&store.locks(), "gc")?;
    let census = Census::take(store)?;
    let mut report = CheckReport { records: census.records.len(), blobs: census.blobs.len(), defects: Vec::new() };
    let suspects: BTreeSet<Digest> = census.blobs.keys().filter(|digest| store.peek(digest).is_err()).copied().collect();
    if defects(store, &census, &suspects)?.is_empty() {
        return Ok(report);
    }
    let _no_writers = key_lock::lock_file(&store.locks(), "sweep")?;
    report.defects = defects(store, &Census::take(store)?, &suspects)?;
    if repair {
        report.defects.iter().try_for_each(|defect| mend(store, defect))?;
    }
    Ok(report)
}

/// What is wrong, in order, when only `suspects` among the blobs may be.
fn defects(store: &Store, census: &Census, suspects: &BTreeSet<Digest>) -> Result<Vec<Defect>, StoreFault> {
    let unusable: BTreeMap<Digest, Defect> = suspects
        .iter()
        .filter(|digest| census.blobs.contains_key(*digest))
        .filter_map(|digest| Some((*digest, Defect::of_miss(store.peek(digest).err()?))))
        .collect();
    let mut defects: Vec<Defect> = store.records().damage()?.map(Defect::Database).into_iter().collect();
    defects.extend(unusable.values().cloned());
    for ((kind, key), record) in &census.records {
        if record.is_damaged {
            defects.push(Defect::Record(*kind, *key));
        }
        let is_missing = |blob: &&Digest| !census.blobs.contains_key(*blob) || unusable.contains_key(*blob);
        let missing = record.references.blobs.iter().filter(is_missing);
        defects.extend(missing.map(|blob| Defect::MissingBlob { kind: *kind, key: *key, blob: *blob }));
    }
    defects.extend(census.runs.iter().filter(|run| run.used.is_none()).map(|run| Defect::Run(run.number)));
    defects.extend(strays(store)?.into_iter().map(Defect::Stray));
    defects.sort();
    Ok(defects)
}

/// Files among the blobs that are none. While somebody writes, they may become some.
pub(crate) fn strays(store: &Store) -> Result<Vec<Utf8PathBuf>, StoreFault> {
    let files = [files_in(&store.root().join("cas"))?, files_in(&store.root().join("packs"))?].concat();
    Ok(files.into_iter().filter(|path| digest_of_place(path).is_none()).collect())
}

/// Forgets what is damaged or useless, so that it is made again. What cannot be read at the moment may be sound, and stays.
fn mend(store: &Store, defect: &Defect) -> Result<(), StoreFault> {
    let may_be_sound = |digest: &Digest| matches!(store.peek(digest), Err(BlobMiss::Unreadable { fault, .. }) if fault.may_pass());
    match defect {
        Defect::Database(_) => store.records().replace(),
        Defect::MissingBlob { blob, .. } | Defect::Blob(blob) | Defect::Unreadable { blob, .. } if may_be_sound(blob) => Ok(()),
        Defect::Record(kind, key) | Defect::MissingBlob { kind, key, .. } => store.remove_record(*kind, key),
        Defect::Run(number) => store.records().evict(&Eviction { records: &[], runs: &[*number] }),
        Defect::Blob(digest) | Defect::Unreadable { blob: digest, .. } => store.forget_blob(digest),
        Defect::Stray(path) => {
            blob_file::discard(path);
            Ok(())
        }
    }
}
