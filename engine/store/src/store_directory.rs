//! The store: a directory opened by this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::entries::Entry;
use crate::key_lock::KeyFiles;
use crate::lease::{self, Lease};
use crate::records::{Additions, KeptRecord, Records, SmallBlob, lock};
use crate::stat_cache::{self, StatEntry};
use crate::{
    BlobMiss, CheckReport, Digest, FileStamp, FileState, GcPolicy, GcReport, KeyLock, RecordKind, References, RunEntry, SourceRead,
    Statistics, StoreFault, blob_file, check, collect, disk, key_lock, pack,
};

/// The text of the version file. A change of the directory's format changes it.
const VERSION: &str = "ipubuild store 1\n";
/// Blobs of at least this many bytes are files of their own; smaller ones cost less in a pack or in the database.
const LARGE_BYTES: usize = 64 * 1024;
/// At least this many small blobs written together become one pack.
const PACK_BLOBS: usize = 16;

/// An open store; shared by threads, and its directory by processes.
pub struct Store {
    root: Utf8PathBuf,
    records: Records,
    stats: Mutex<BTreeMap<String, FileState>>,
    reports: Mutex<Vec<StoreReport>>,
    /// Blobs that could not be read: they are written again although they seem to be there.
    unreadable: Mutex<BTreeSet<Digest>>,
    lease: OnceLock<Lease>,
    key_files: KeyFiles,
}

/// Something the user should hear although the build goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreReport {
    /// A blob was damaged or could not be read; its producer runs again.
    Blob(BlobMiss),
    /// The database was damaged and replaced by an empty one; the old file lies here.
    RecordsSetAside(Utf8PathBuf),
    /// A record was damaged and counts as missing.
    Record {
        /// Which family.
        kind: RecordKind,
        /// The record's key.
        key: Digest,
    },
}

impl std::fmt::Display for StoreReport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoreReport::Blob(miss) => write!(formatter, "{miss}; it is made again"),
            StoreReport::RecordsSetAside(path) => {
                write!(formatter, "the store's records were damaged and start empty; the old file is {path}")
            }
            StoreReport::Record { key, .. } => {
                write!(formatter, "record {} is damaged; it is made again", key.short())
            }
        }
    }
}

/// Blobs and records written together: the blobs first, then all records in one transaction.
#[derive(Clone, Default)]
pub struct Batch {
    blobs: BTreeMap<Digest, Arc<[u8]>>,
    records: BTreeMap<(RecordKind, Digest), KeptRecord>,
    bytes: usize,
}

impl Batch {
    /// Adds a blob and returns its digest.
    pub fn blob(&mut self, bytes: Arc<[u8]>) -> Digest {
        let digest = Digest::of(&bytes);
        self.blob_with_digest(digest, bytes);
        digest
    }

    /// Adds a blob whose digest the caller has just computed.
    pub fn blob_with_digest(&mut self, digest: Digest, bytes: Arc<[u8]>) {
        self.bytes += bytes.len();
        self.blobs.insert(digest, bytes);
    }

    /// Adds a record, which needs `references`.
    pub fn record<T: Serialize>(&mut self, kind: RecordKind, key: Digest, value: &T, references: References) -> Result<(), StoreFault> {
        self.records.insert((kind, key), KeptRecord::of(kind, &key, value, &references)?);
        Ok(())
    }

    /// The bytes of a blob in this batch.
    pub fn find_blob(&self, digest: &Digest) -> Option<Arc<[u8]>> {
        self.blobs.get(digest).cloned()
    }

    /// A record in this batch.
    pub fn find_record<T: DeserializeOwned>(&self, kind: RecordKind, key: &Digest) -> Option<T> {
        self.records.get(&(kind, *key))?.decode(kind, key)
    }

    /// Forgets a record; whether it was there.
    pub fn remove_record(&mut self, kind: RecordKind, key: &Digest) -> bool {
        self.records.remove(&(kind, *key)).is_some()
    }

    /// Adds what `other` has and this has not.
    pub fn add_missing(&mut self, other: Batch) {
        for (digest, bytes) in other.blobs {
            self.bytes += bytes.len();
            self.blobs.entry(digest).or_insert(bytes);
        }
        for (id, record) in other.records {
            self.records.entry(id).or_insert(record);
        }
    }

    /// Number of blobs and records.
    pub fn len(&self) -> usize {
        self.blobs.len() + self.records.len()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all blobs added.
    pub fn blob_bytes(&self) -> usize {
        self.bytes
    }
}

impl Store {
    /// Opens the store in `root`, creating it when there is none.
    pub fn open(root: &Utf8Path) -> Result<Store, StoreFault> {
        // Who shares it is said by the mode of this folder alone, so that is not taken from the one around it.
        disk::call(|| std::fs::create_dir_all(root)).map_err(|error| StoreFault::file("create the store", root, &error))?;
        check_version(root)?;
        let records = Records::open(&root.join("records.sqlite"), &root.join("locks"))?;
        Ok(Store {
            root: root.to_owned(),
            records,
            stats: Mutex::default(),
            reports: Mutex::default(),
            unreadable: Mutex::default(),
            lease: OnceLock::new(),
            key_files: KeyFiles::default(),
        })
    }

    /// The store's directory.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// Whether its directory still holds what this process opened; not when somebody deleted or replaced it since.
    pub fn is_in_place(&self) -> bool {
        self.records.is_in_place()
    }

    /// Stores one blob.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<Digest, StoreFault> {
        let mut batch = Batch::default();
        let digest = batch.blob(Arc::from(bytes));
        self.commit(&batch)?;
        Ok(digest)
    }

    /// Stores many blobs, the small ones as one pack; digests in the order of `blobs`.
    pub fn put_pack(&self, blobs: Vec<Arc<[u8]>>) -> Result<Vec<Digest>, StoreFault> {
        let mut batch = Batch::default();
        let digests = blobs.into_iter().map(|bytes| batch.blob(bytes)).collect();
        self.commit(&batch)?;
        Ok(digests)
    }

    /// Writes `batch`: blobs, then records. A process killed in between leaves blobs that nothing names.
    pub fn commit(&self, batch: &Batch) -> Result<(), StoreFault> {
        if batch.blobs.is_empty() && batch.records.is_empty() && lock(&self.stats).is_empty() {
            return Ok(());
        }
        let blobs = batch.blobs.keys().map(|digest| (0, *digest));
        let records = batch.records.keys().map(|(kind, key)| (kind.number(), *key));
        let _shared = self.announce_while_shared(|| Ok(((), blobs.chain(records).collect())))?.1;
        let mut additions = Additions { written_ms: stat_cache::now_ms(), ..Additions::default() };
        let small = self.write_large(batch)?;
        if small.len() >= PACK_BLOBS {
            additions.packed.push(pack::write(self, &small)?);
        } else {
            additions.inline.extend(small);
        }
        additions.records.extend(batch.records.iter().map(|(id, record)| (*id, record)));
        let stats = std::mem::take(&mut *lock(&self.stats));
        additions.stats.extend(stats.into_iter().map(|(path, row)| StatEntry { path, row }));
        self.records.add(&additions)?;
        lock(&self.unreadable).retain(|digest| !batch.blobs.contains_key(digest));
        Ok(())
    }

    /// The bytes of `digest`, verified. A damaged blob is removed and reported, so that its producer can replace it; one
    /// that cannot be read is reported and stays until it is written again.
    pub fn blob(&self, digest: &Digest) -> Result<Vec<u8>, BlobMiss> {
        self.find_blob(digest).inspect_err(|miss| {
            if !matches!(miss, BlobMiss::Absent { .. }) {
                lock(&self.reports).push(StoreReport::Blob(miss.clone()));
            }
        })
    }

    /// Whether the store lists `digest`, without reading its bytes.
    pub fn lists_blob(&self, digest: &Digest) -> Result<bool, StoreFault> {
        Ok(self.large_place(digest).exists() || !self.records.listed_small_blobs([digest].into_iter())?.is_empty())
    }

    /// The record under `key`, `None` when there is none, it is damaged or it has another version.
    pub fn record<T: DeserializeOwned>(&self, kind: RecordKind, key: &Digest) -> Result<Option<T>, StoreFault> {
        // What is not there needs no lock; a stage that executes has looked up two such records.
        if !self.records.lists(kind, key)? {
            return Ok(None);
        }
        let (record, _) = self.announce_while_shared(|| {
            let record = self.records.get(kind, key)?;
            let entries = record.iter().flat_map(|record| record.entries(kind, key)).collect();
            Ok((record, entries))
        })?;
        let Some(record) = record else { return Ok(None) };
        let value = record.decode(kind, key);
        if value.is_none() {
            lock(&self.reports).push(StoreReport::Record { kind, key: *key });
        }
        Ok(value)
    }

    /// Those of `keys` under which there are records at the moment, damaged or not.
    pub fn listed_records(&self, kind: RecordKind, keys: &[Digest]) -> Result<BTreeSet<Digest>, StoreFault> {
        self.records.listed(kind, keys)
    }

    /// What the record under `key` needs, `None` when there is no such record or it is damaged.
    pub fn references(&self, kind: RecordKind, key: &Digest) -> Result<Option<References>, StoreFault> {
        Ok(self.records.get(kind, key)?.and_then(|record| record.references(kind, key)))
    }

    /// Stores one record; the blobs it needs must be stored before.
    pub fn put_record<T: Serialize>(&self, kind: RecordKind, key: Digest, value: &T, references: References) -> Result<(), StoreFault> {
        let mut batch = Batch::default();
        batch.record(kind, key, value, references)?;
        self.commit(&batch)
    }

    /// Forgets a record.
    pub fn remove_record(&self, kind: RecordKind, key: &Digest) -> Result<(), StoreFault> {
        self.records.remove(kind, key)
    }

    /// Adds a run record and returns its number. `used` are the records that the run read or wrote, without those that
    /// these refer to.
    pub fn add_run(&self, value: &[u8], used: &[(RecordKind, Digest)]) -> Result<i64, StoreFault> {
        self.records.add_run(value, used, stat_cache::now_ms())
    }

    /// The newest `limit` runs, newest first.
    pub fn runs(&self, limit: u32) -> Result<Vec<RunEntry>, StoreFault> {
        self.records.runs(limit)
    }

    /// Digest of the file at the absolute `path`, read only when its stamp is new or cannot be trusted. What is learnt
    /// is written by the next [`Store::commit`].
    pub fn source_digest(&self, path: &Utf8Path) -> Result<SourceRead, StoreFault> {
        let Some(metadata) = stat_cache::metadata_of(path)? else { return Ok(SourceRead::Absent) };
        if !metadata.is_file() {
            return Ok(SourceRead::NotAFile);
        }
        let state = self.state_of(path, &FileStamp::of(&metadata))?;
        Ok(state.map_or(SourceRead::Absent, |state| SourceRead::Found(state.digest)))
    }

    /// As [`Store::source_digest`], with what proves it; `None` when there is no file at `path`.
    pub fn source_state(&self, path: &Utf8Path) -> Result<Option<FileState>, StoreFault> {
        match stat_cache::metadata_of(path)? {
            Some(metadata) if metadata.is_file() => self.state_of(path, &FileStamp::of(&metadata)),
            _ => Ok(None),
        }
    }

    fn state_of(&self, path: &Utf8Path, stamp: &FileStamp) -> Result<Option<FileState>, StoreFault> {
        if let Some(state) = self.known_state(path)?
            && state.proves(stamp)
        {
            return Ok(Some(state));
        }
        let state = stat_cache::measure(path)?;
        if let Some(state) = state {
            lock(&self.stats).insert(path.to_string(), state);
        }
        Ok(state)
    }

    /// Evicts records and deletes what nothing needs any more. Builds may run meanwhile, and lose nothing they need.
    pub fn gc(&self, policy: &GcPolicy) -> Result<GcReport, StoreFault> {
        collect::collect(self, policy)
    }

    /// Counts what is there.
    pub fn statistics(&self) -> Result<Statistics, StoreFault> {
        check::statistics(self)
    }

    /// Reads every record and blob; with `repair`, forgets what is damaged, so that it is made again.
    pub fn check(&self, repair: bool) -> Result<CheckReport, StoreFault> {
        check::check(self, repair)
    }

    /// Number of other processes that build with this store now.
    pub fn processes(&self) -> Result<usize, StoreFault> {
        Ok(lease::read(&self.leases(), self.lease())?.processes)
    }

    /// Whether the blob is there and whole; a damaged one stays.
    pub(crate) fn peek(&self, digest: &Digest) -> Result<(), BlobMiss> {
        self.stored(digest)?.verified(digest).map(|_| ())
    }

    /// Makes the store a place without this blob, so that it is written again.
    pub(crate) fn forget_blob(&self, digest: &Digest) -> Result<(), StoreFault> {
        self.records.remove_small_blob(digest)?;
        blob_file::discard(&self.large_place(digest));
        Ok(())
    }

    /// Does `work` and announces the entries it gives, all while nothing is evicted; see [`crate::lease`]. Nothing is evicted
    /// as long as the lock is kept, too.
    ///
    /// A lookup took 5 µs with the lock and 10 µs when it was announced as well (benches/store.rs, 2 cores).
    fn announce_while_shared<T>(&self, work: impl FnOnce() -> Result<(T, Vec<Entry>), StoreFault>) -> Result<(T, KeyLock), StoreFault> {
        let shared = key_lock::share_file(&self.locks(), "sweep")?;
        let (value, entries) = work()?;
        if !entries.is_empty() {
            self.own_lease()?.announce(entries)?;
        }
        Ok((value, shared))
    }

    fn own_lease(&self) -> Result<&Lease, StoreFault> {
        if let Some(lease) = self.lease.get() {
            return Ok(lease);
        }
        let lease = Lease::take(&self.leases())?;
        Ok(self.lease.get_or_init(|| lease))
    }

    pub(crate) fn records(&self) -> &Records {
        &self.records
    }

    pub(crate) fn lease(&self) -> Option<&Lease> {
        self.lease.get()
    }

    pub(crate) fn locks(&self) -> Utf8PathBuf {
        self.root.join("locks")
    }

    pub(crate) fn leases(&self) -> Utf8PathBuf {
        self.root.join("leases")
    }

    /// Waits until no other holder works on `key`.
    pub fn lock_key(&self, key: &Digest) -> Result<KeyLock, StoreFault> {
        key_lock::lock(&self.locks(), &self.key_files, key)
    }

    /// Waits for the named lock of this store, as for a device.
    pub fn lock_name(&self, name: &str) -> Result<KeyLock, StoreFault> {
        key_lock::lock_file(&self.locks(), &format!("name-{name}"))
    }

    /// What happened since the last call that the user should hear.
    pub fn take_reports(&self) -> Vec<StoreReport> {
        let set_aside = self.records.take_set_aside().into_iter().map(StoreReport::RecordsSetAside);
        set_aside.chain(std::mem::take(&mut *lock(&self.reports))).collect()
    }

    fn known_state(&self, path: &Utf8Path) -> Result<Option<FileState>, StoreFault> {
        if let Some(row) = lock(&self.stats).get(path.as_str()) {
            return Ok(Some(*row));
        }
        self.records.stat(path.as_str())
    }

    pub(crate) fn large_place(&self, digest: &Digest) -> Utf8PathBuf {
        blob_file::place_of(&self.root.join("cas"), digest)
    }

    pub(crate) fn pack_place(&self, digest: &Digest) -> Utf8PathBuf {
        blob_file::place_of(&self.root.join("packs"), digest)
    }

    /// Writes the large blobs that are not there and returns the small ones that are not there.
    fn write_large<'a>(&self, batch: &'a Batch) -> Result<Vec<(Digest, &'a [u8])>, StoreFault> {
        let mut small = Vec::new();
        let unreadable = lock(&self.unreadable).clone();
        let is_small = |bytes: &[u8]| bytes.len() < LARGE_BYTES;
        let listed = self.records.listed_small_blobs(batch.blobs.iter().filter(|(_, bytes)| is_small(bytes)).map(|(digest, _)| digest))?;
        for (digest, bytes) in &batch.blobs {
            let is_unreadable = unreadable.contains(digest);
            if is_small(bytes) {
                if is_unreadable || !listed.contains(digest) {
                    small.push((*digest, &bytes[..]));
                }
                continue;
            }
            let place = self.large_place(digest);
            if is_unreadable || !blob_file::has_size(&place, bytes.len()) {
                blob_file::write_whole(&place, &[bytes])?;
            }
        }
        Ok(small)
    }

    fn find_blob(&self, digest: &Digest) -> Result<Vec<u8>, BlobMiss> {
        let stored = self.stored(digest).inspect_err(|miss| {
            if matches!(miss, BlobMiss::Unreadable { fault, .. } if !fault.may_pass()) {
                lock(&self.unreadable).insert(*digest);
            }
        })?;
        let home = stored.home.clone();
        stored.verified(digest).or_else(|miss| {
            self.forget_at(digest, &home).map_err(|fault| BlobMiss::Unreadable { digest: *digest, fault })?;
            Err(miss)
        })
    }

    /// Removes the bytes of a blob from where they were read, and those that another process wrote elsewhere meanwhile not.
    fn forget_at(&self, digest: &Digest, home: &Home) -> Result<(), StoreFault> {
        match home {
            Home::Database => self.records.remove_small_blob_in(digest, None),
            Home::Pack(pack) => self.records.remove_small_blob_in(digest, Some(pack)),
            Home::File => {
                blob_file::discard(&self.large_place(digest));
                Ok(())
            }
        }
    }

    /// The bytes that are stored for a digest, whatever they are.
    fn stored(&self, digest: &Digest) -> Result<Stored, BlobMiss> {
        let found = self.find_stored(digest).map_err(|fault| BlobMiss::Unreadable { digest: *digest, fault })?;
        found.ok_or(BlobMiss::Absent { digest: *digest })
    }

    fn find_stored(&self, digest: &Digest) -> Result<Option<Stored>, StoreFault> {
        match self.records.small_blob(digest)? {
            Some(SmallBlob::Inline(bytes)) => Ok(Some(Stored { bytes, home: Home::Database, place: "the database".to_owned() })),
            Some(SmallBlob::Packed { pack, offset, length }) => {
                let place = self.pack_place(&pack);
                let bytes = blob_file::read_range(&place, offset, length)?;
                let is_there = |now: Option<SmallBlob>| matches!(now, Some(SmallBlob::Packed { pack: now, .. }) if now == pack);
                if bytes.len() < length && !is_there(self.records.small_blob(digest)?) {
                    // The pack was written anew meanwhile.
                    return self.find_stored(digest);
                }
                Ok(Some(Stored { bytes, home: Home::Pack(pack), place: place.into_string() }))
            }
            None => {
                let place = self.large_place(digest);
                let bytes = blob_file::read_whole(&place)?;
                Ok(bytes.map(|bytes| Stored { bytes, home: Home::File, place: place.into_string() }))
            }
        }
    }
}

/// Where a blob lies.
#[derive(Clone)]
enum Home {
    Database,
    Pack(Digest),
    File,
}

/// Bytes of a blob, not verified yet.
struct Stored {
    bytes: Vec<u8>,
    home: Home,
    /// The home, for messages.
    place: String,
}

impl Stored {
    fn verified(self, digest: &Digest) -> Result<Vec<u8>, BlobMiss> {
        let found = Digest::of(&self.bytes);
        if found == *digest { Ok(self.bytes) } else { Err(BlobMiss::Corrupt { digest: *digest, place: self.place, found }) }
    }
}

/// A file that a power cut left short, or damage made no version at all, is written again: the database has a version of its own.
fn check_version(root: &Utf8Path) -> Result<(), StoreFault> {
    let path = root.join("VERSION");
    let found = blob_file::read_whole(&path)?.unwrap_or_default();
    if found == VERSION.as_bytes() {
        return Ok(());
    }
    if VERSION.as_bytes().starts_with(&found) || (!is_version(&found) && root.join("records.sqlite").is_file()) {
        let _no_eviction = key_lock::share_file(&root.join("locks"), "sweep")?;
        return blob_file::write_whole(&path, &[VERSION.as_bytes()]);
    }
    Err(StoreFault::Version {
        path: root.to_owned(),
        found: String::from_utf8_lossy(&found).trim_end().escape_debug().to_string(),
        expected: VERSION.trim_end().to_owned(),
    })
}

/// Whether the bytes are what some version of this program writes.
fn is_version(found: &[u8]) -> bool {
    let number = found.strip_prefix(b"ipubuild store ").and_then(|rest| rest.strip_suffix(b"\n"));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}
