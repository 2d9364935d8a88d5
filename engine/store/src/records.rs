//! The database of records: small values under digests, the index of packs, the stat cache's rows, the runs.
//!
//! Every value carries a version byte and a checksum of all that is kept with it, so that a damaged or foreign row is a miss. A damaged database
//! file is set aside and replaced by an empty one: records can all be made again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::census::{BlobRow, RecordRow, RunRow};
use crate::entries::Entry;
use crate::stat_cache::StatEntry;
use crate::{Digest, FileState, KeyBuilder, StoreFault, disk, entries, key_lock};

/// The families of records; each has its own keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// What a stage gave, by its deep key.
    Action,
    /// What a target gave, by its shallow key.
    Target,
    /// What a target was made from, by its shallow key.
    Inputs,
    /// The loaded graph of one request and everything a build without changes looks at, by the request's key.
    Graph,
}

impl RecordKind {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            RecordKind::Action => "stage",
            RecordKind::Target => "target",
            RecordKind::Inputs => "inputs",
            RecordKind::Graph => "graph",
        }
    }

    /// All families.
    pub const ALL: [RecordKind; 4] = [RecordKind::Action, RecordKind::Target, RecordKind::Inputs, RecordKind::Graph];

    pub(crate) fn number(self) -> u8 {
        match self {
            RecordKind::Action => 1,
            RecordKind::Target => 2,
            RecordKind::Inputs => 3,
            RecordKind::Graph => 4,
        }
    }

    pub(crate) fn of_number(number: u8) -> Option<RecordKind> {
        RecordKind::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// What a record needs to be of use; what is referred to is kept as long as the record is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Blobs, stored before the record.
    pub blobs: Vec<Digest>,
    /// Other records.
    pub records: Vec<(RecordKind, Digest)>,
}

impl References {
    /// Needs nothing.
    pub fn none() -> References {
        References::default()
    }

    /// Needs these blobs.
    pub fn blobs(blobs: impl IntoIterator<Item = Digest>) -> References {
        References { blobs: blobs.into_iter().collect(), records: Vec::new() }
    }
}

/// One past run, newest runs having the highest number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEntry {
    /// The run's number, counted from 1 in this store.
    pub number: i64,
    /// What the run's writer stored.
    pub value: Vec<u8>,
}

/// A record as it is kept: its value and what it needs, both covered by the checksum in the value.
#[derive(Clone)]
pub(crate) struct KeptRecord {
    pub(crate) value: Vec<u8>,
    /// A list of [`entries`].
    pub(crate) refers: Vec<u8>,
}

impl KeptRecord {
    pub(crate) fn of<T: Serialize>(kind: RecordKind, key: &Digest, value: &T, references: &References) -> Result<KeptRecord, StoreFault> {
        let refers = encode_references(references);
        Ok(KeptRecord { value: encode(&[&[kind.number()], key.as_bytes(), &refers], value)?, refers })
    }

    /// The value, or `None` when the record is damaged or of another version.
    pub(crate) fn decode<T: DeserializeOwned>(&self, kind: RecordKind, key: &Digest) -> Option<T> {
        decode(&[&[kind.number()], key.as_bytes(), &self.refers], &self.value)
    }

    /// The record and what it needs, as a lease names them.
    pub(crate) fn entries(&self, kind: RecordKind, key: &Digest) -> impl Iterator<Item = Entry> {
        std::iter::once((kind.number(), *key)).chain(entries::decode(&self.refers))
    }

    /// What it needs, or `None` when the record is damaged.
    pub(crate) fn references(&self, kind: RecordKind, key: &Digest) -> Option<References> {
        payload(&[&[kind.number()], key.as_bytes(), &self.refers], &self.value)?;
        Some(decode_references(&self.refers))
    }
}

/// Where a blob kept inside the database or a pack lies.
pub(crate) enum SmallBlob {
    Inline(Vec<u8>),
    Packed { pack: Digest, offset: u64, length: usize },
}

/// Where one blob lies in a pack.
pub(crate) struct PackedRow {
    pub(crate) digest: Digest,
    pub(crate) offset: u64,
    pub(crate) length: usize,
}

/// Everything one transaction adds.
#[derive(Default)]
pub(crate) struct Additions<'a> {
    pub(crate) inline: Vec<(Digest, &'a [u8])>,
    pub(crate) packed: Vec<(Digest, Vec<PackedRow>)>,
    pub(crate) records: Vec<((RecordKind, Digest), &'a KeptRecord)>,
    pub(crate) stats: Vec<StatEntry>,
    /// Now, in milliseconds since 1970.
    pub(crate) written_ms: i64,
}

/// What is forgotten together.
pub(crate) struct Eviction<'a> {
    pub(crate) records: &'a [(RecordKind, Digest)],
    pub(crate) runs: &'a [i64],
}

/// How long a statement waits for other processes.
const BUSY: Duration = Duration::from_secs(30);

pub(crate) struct Records {
    path: Utf8PathBuf,
    locks: Utf8PathBuf,
    /// The file that `connection` uses; another one lies at `path` when another process replaced it.
    file: Mutex<Option<FileId>>,
    connection: Mutex<Connection>,
    set_aside: Mutex<Vec<Utf8PathBuf>>,
}

const SCHEMA_VERSION: i64 = 4;
/// `written` is in milliseconds since 1970; `refers` is a list of [`entries`], `used` another after a checksum. Keys are random: with rows in
/// their order a transaction writes most pages of the database. So rows lie in the order they came, and what is in the order of
/// keys is narrow: `place`, see [`place_of`]. 100,000 small targets took 57 µs each with it and 84 µs without.
const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    CREATE TABLE IF NOT EXISTS record (number INTEGER PRIMARY KEY, place INTEGER, kind INTEGER, key BLOB, value BLOB, refers BLOB,
        written INTEGER);
    CREATE UNIQUE INDEX IF NOT EXISTS record_place ON record (place);
    CREATE TABLE IF NOT EXISTS small_blob (digest BLOB PRIMARY KEY, bytes BLOB);
    CREATE TABLE IF NOT EXISTS packed_blob (number INTEGER PRIMARY KEY, place INTEGER, digest BLOB, pack BLOB, offset INTEGER,
        length INTEGER);
    CREATE UNIQUE INDEX IF NOT EXISTS packed_blob_place ON packed_blob (place);
    CREATE TABLE IF NOT EXISTS stat (path TEXT PRIMARY KEY, entry BLOB) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS run (number INTEGER PRIMARY KEY AUTOINCREMENT, value BLOB, used BLOB, written INTEGER);
    PRAGMA user_version = 4;
";
/// Tables of version 1 had no references, those of version 2 no checksum over them, and those of version 3 no places: what they hold is made
/// again.
const DROP_OLD: &str = "DROP TABLE IF EXISTS record; DROP TABLE IF EXISTS run; DROP TABLE IF EXISTS packed_blob;";

/// The first process that opens the database reads its whole log: 8,000 pages took 30 ms of a build that changed nothing.
const LONG_LOG_BYTES: u64 = 4 << 20;

impl Drop for Records {
    /// Moves a long log into the database. When others use it, the last of them does.
    fn drop(&mut self) {
        let log = fs::metadata(format!("{}-wal", self.path)).map_or(0, |metadata| metadata.len());
        if log > LONG_LOG_BYTES {
            let connection = lock(&self.connection);
            let moved = connection
                .busy_timeout(Duration::ZERO)
                .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
            if let Err(error) = moved {
                tracing::debug!(%error, "the log of the records stays long");
            }
        }
    }
}

impl Records {
    pub(crate) fn open(path: &Utf8Path, locks: &Utf8Path) -> Result<Records, StoreFault> {
        let (connection, set_aside) = match connect(path, locks) {
            Err(Refusal::Sqlite(error)) if is_damage(&error, path) => replace(path, locks, None)?,
            other => (other.map_err(|refusal| refusal.into_fault("open the records", path))?, None),
        };
        Ok(Records {
            path: path.to_owned(),
            locks: locks.to_owned(),
            file: Mutex::new(file_of(path)),
            connection: Mutex::new(connection),
            set_aside: Mutex::new(set_aside.into_iter().collect()),
        })
    }

    /// The damaged database files that were replaced since the last call.
    pub(crate) fn take_set_aside(&self) -> Vec<Utf8PathBuf> {
        std::mem::take(&mut lock(&self.set_aside))
    }

    pub(crate) fn get(&self, kind: RecordKind, key: &Digest) -> Result<Option<KeptRecord>, StoreFault> {
        self.with("read a record", |connection| {
            connection
                .prepare_cached("SELECT value, refers FROM record WHERE place = ?1 AND kind = ?2 AND key = ?3")?
                .query_row(by_key(kind, key), |row| Ok(KeptRecord { value: row.get(0)?, refers: row.get(1)? }))
                .optional()
        })
    }

    pub(crate) fn lists(&self, kind: RecordKind, key: &Digest) -> Result<bool, StoreFault> {
        self.with("look up a record", |connection| connection.prepare_cached(IS_LISTED)?.query_row(by_key(kind, key), |row| row.get(0)))
    }

    /// Those of `keys` under which there are records.
    pub(crate) fn listed(&self, kind: RecordKind, keys: &[Digest]) -> Result<BTreeSet<Digest>, StoreFault> {
        self.with("look up records", |connection| {
            let transaction = connection.transaction()?;
            let mut statement = transaction.prepare_cached(IS_LISTED)?;
            let is_listed = |key: &Digest| statement.query_row(by_key(kind, key), |row| row.get(0));
            filter_listed(keys.iter(), is_listed)
        })
    }

    pub(crate) fn remove(&self, kind: RecordKind, key: &Digest) -> Result<(), StoreFault> {
        self.with("remove a record", |connection| delete_record(connection, kind, key))
    }

    pub(crate) fn small_blob(&self, digest: &Digest) -> Result<Option<SmallBlob>, StoreFault> {
        self.with("read a small blob", |connection| {
            let inline = connection
                .prepare_cached("SELECT bytes FROM small_blob WHERE digest = ?1")?
                .query_row(params![digest.as_bytes()], |row| Ok(SmallBlob::Inline(row.get(0)?)))
                .optional()?;
            if inline.is_some() {
                return Ok(inline);
            }
            connection
                .prepare_cached("SELECT pack, offset, length FROM packed_blob WHERE place = ?1 AND digest = ?2")?
                .query_row(params![place_of(0, digest), digest.as_bytes()], |row| {
                    Ok(SmallBlob::Packed {
                        pack: Digest::from_bytes(row.get(0)?),
                        offset: row.get::<_, i64>(1)? as u64,
                        length: row.get::<_, i64>(2)? as usize,
                    })
                })
                .optional()
        })
    }

    /// Those of `digests` that are listed as small blobs; says nothing about their bytes.
    pub(crate) fn listed_small_blobs<'a>(&self, digests: impl Iterator<Item = &'a Digest> + Clone) -> Result<BTreeSet<Digest>, StoreFault> {
        self.with("look up small blobs", |connection| {
            let transaction = connection.transaction()?;
            let mut statement = transaction.prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM small_blob WHERE digest = ?2)
                     OR EXISTS (SELECT 1 FROM packed_blob WHERE place = ?1 AND digest = ?2)",
            )?;
            filter_listed(digests.clone(), |digest| statement.query_row(params![place_of(0, digest), digest.as_bytes()], |row| row.get(0)))
        })
    }

    pub(crate) fn remove_small_blob(&self, digest: &Digest) -> Result<(), StoreFault> {
        self.with("remove a small blob", |connection| delete_small_blob(connection, digest))
    }

    /// Forgets that a small blob lies in `pack`, or with `None` in the database.
    pub(crate) fn remove_small_blob_in(&self, digest: &Digest, pack: Option<&Digest>) -> Result<(), StoreFault> {
        self.with("remove a small blob", |connection| {
            match pack {
                Some(pack) => connection
                    .prepare_cached("DELETE FROM packed_blob WHERE place = ?1 AND digest = ?2 AND pack = ?3")?
                    .execute(params![place_of(0, digest), digest.as_bytes(), pack.as_bytes()]),
                None => connection.prepare_cached("DELETE FROM small_blob WHERE digest = ?1")?.execute(params![digest.as_bytes()]),
            }
            .map(|_| ())
        })
    }

    pub(crate) fn stat(&self, path: &str) -> Result<Option<FileState>, StoreFault> {
        let entry: Option<Vec<u8>> = self.with("read the stat cache", |connection| {
            connection.prepare_cached("SELECT entry FROM stat WHERE path = ?1")?.query_row(params![path], |row| row.get(0)).optional()
        })?;
        Ok(entry.and_then(|entry| decode(&[path.as_bytes()], &entry)))
    }

    pub(crate) fn add(&self, additions: &Additions<'_>) -> Result<(), StoreFault> {
        let stats = additions
            .stats
            .iter()
            .map(|entry| Ok((entry.path.as_str(), encode_stat(&entry.path, &entry.row)?)))
            .collect::<Result<Vec<_>, StoreFault>>()?;
        self.with("write records", |connection| {
            let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            insert(&transaction, additions, &stats)?;
            transaction.commit()
        })
    }

    pub(crate) fn add_run(&self, value: &[u8], used: &[(RecordKind, Digest)], written_ms: i64) -> Result<i64, StoreFault> {
        let used = encode_references(&References { blobs: Vec::new(), records: used.to_vec() });
        let used = [&run_checksum(value, &used, written_ms), &used[..]].concat();
        self.with("write a run record", |connection| {
            connection
                .prepare_cached("INSERT INTO run (value, used, written) VALUES (?1, ?2, ?3)")?
                .execute(params![value, used, written_ms])?;
            Ok(connection.last_insert_rowid())
        })
    }

    /// The newest `limit` runs, without those that are damaged.
    pub(crate) fn runs(&self, limit: u32) -> Result<Vec<RunEntry>, StoreFault> {
        let runs: Vec<Option<RunEntry>> = self.with("read the run records", |connection| {
            connection
                .prepare_cached("SELECT number, value, used, written FROM run ORDER BY number DESC LIMIT ?1")?
                .query_map(params![limit], |row| {
                    let (number, value): (_, Vec<u8>) = (row.get(0)?, row.get(1)?);
                    let is_intact = used_of_run(&value, row.get_ref(2)?.as_blob()?, row.get(3)?).is_some();
                    Ok(is_intact.then_some(RunEntry { number, value }))
                })?
                .collect()
        })?;
        Ok(runs.into_iter().flatten().collect())
    }

    /// What all records need; nothing of those that are damaged.
    pub(crate) fn record_rows(&self) -> Result<BTreeMap<(RecordKind, Digest), RecordRow>, StoreFault> {
        self.with("list the records", |connection| {
            let mut statement = connection.prepare("SELECT kind, key, value, refers, written FROM record")?;
            let rows = statement.query_map([], |row| {
                let key = Digest::from_bytes(row.get(1)?);
                let Some(kind) = RecordKind::of_number(row.get(0)?) else { return Ok(None) };
                let record = KeptRecord { value: row.get(2)?, refers: row.get(3)? };
                let bytes = (record.value.len() + record.refers.len()) as u64;
                let references = record.references(kind, &key);
                let is_damaged = references.is_none();
                let row = RecordRow { references: references.unwrap_or_default(), is_damaged, bytes, written_ms: row.get(4)? };
                Ok(Some(((kind, key), row)))
            })?;
            rows.filter_map(rusqlite::Result::transpose).collect()
        })
    }

    pub(crate) fn blob_rows(&self) -> Result<BTreeMap<Digest, BlobRow>, StoreFault> {
        self.with("list the small blobs", |connection| {
            let mut statement =
                connection.prepare("SELECT digest, length(bytes) FROM small_blob UNION ALL SELECT digest, length FROM packed_blob")?;
            let rows = statement.query_map([], |row| {
                Ok((Digest::from_bytes(row.get(0)?), BlobRow { bytes: row.get::<_, i64>(1)? as u64, is_file: false }))
            })?;
            rows.collect()
        })
    }

    pub(crate) fn run_rows(&self) -> Result<Vec<RunRow>, StoreFault> {
        self.with("list the runs", |connection| {
            let mut statement = connection.prepare("SELECT number, value, used, written FROM run ORDER BY number DESC")?;
            let rows = statement.query_map([], |row| {
                let written_ms = row.get(3)?;
                let used = used_of_run(row.get_ref(1)?.as_blob()?, row.get_ref(2)?.as_blob()?, written_ms);
                Ok(RunRow { number: row.get(0)?, used, written_ms })
            })?;
            rows.collect()
        })
    }

    /// Forgets records and runs, in one transaction.
    pub(crate) fn evict(&self, eviction: &Eviction<'_>) -> Result<(), StoreFault> {
        self.with("evict records", |connection| {
            let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            for (kind, key) in eviction.records {
                delete_record(&transaction, *kind, key)?;
            }
            for number in eviction.runs {
                transaction.prepare_cached("DELETE FROM run WHERE number = ?1")?.execute(params![number])?;
            }
            transaction.commit()
        })
    }

    pub(crate) fn delete_blobs(&self, digests: &[Digest]) -> Result<(), StoreFault> {
        self.with("delete small blobs", |connection| {
            let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            digests.iter().try_for_each(|digest| delete_small_blob(&transaction, digest))?;
            transaction.commit()
        })
    }

    /// The packs, and the bytes of what is listed in each.
    pub(crate) fn packs(&self) -> Result<BTreeMap<Digest, u64>, StoreFault> {
        self.with("list the packs", |connection| {
            let mut statement = connection.prepare("SELECT pack, sum(length) FROM packed_blob GROUP BY pack")?;
            let rows = statement.query_map([], |row| Ok((Digest::from_bytes(row.get(0)?), row.get::<_, i64>(1)? as u64)))?;
            rows.collect()
        })
    }

    /// What is listed in a pack.
    pub(crate) fn rows_of_pack(&self, pack: &Digest) -> Result<Vec<PackedRow>, StoreFault> {
        self.with("list a pack", |connection| {
            let mut statement = connection.prepare("SELECT digest, offset, length FROM packed_blob WHERE pack = ?1 ORDER BY digest")?;
            let rows = statement.query_map(params![pack.as_bytes()], |row| {
                let (offset, length) = (row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as usize);
                Ok(PackedRow { digest: Digest::from_bytes(row.get(0)?), offset, length })
            })?;
            rows.collect()
        })
    }

    /// Lists another pack in place of `old`.
    pub(crate) fn replace_pack(&self, old: &Digest, new: (Digest, Vec<PackedRow>)) -> Result<(), StoreFault> {
        let additions = Additions { packed: vec![new], ..Additions::default() };
        self.with("list a pack", |connection| {
            let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            transaction.execute("DELETE FROM packed_blob WHERE pack = ?1", params![old.as_bytes()])?;
            insert(&transaction, &additions, &[])?;
            transaction.commit()
        })
    }

    pub(crate) fn count_stats(&self) -> Result<u64, StoreFault> {
        self.with("count the stat cache", |connection| {
            connection.query_row("SELECT count(*) FROM stat", [], |row| row.get::<_, i64>(0)).map(|count| count as u64)
        })
    }

    /// Forgets the stat cache's files for which `is_gone` holds.
    pub(crate) fn forget_stats(&self, is_gone: impl Fn(&str) -> bool) -> Result<(), StoreFault> {
        self.with("clean the stat cache", |connection| {
            let paths: Vec<String> =
                connection.prepare("SELECT path FROM stat")?.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            for path in paths.iter().filter(|path| is_gone(path)) {
                transaction.prepare_cached("DELETE FROM stat WHERE path = ?1")?.execute(params![path])?;
            }
            transaction.commit()
        })
    }

    /// Bytes of the pages that are in use.
    pub(crate) fn used_bytes(&self) -> Result<u64, StoreFault> {
        self.with("count the pages", |connection| {
            let [pages, unused, size] = page_counts(connection)?;
            Ok((pages - unused) * size)
        })
    }

    /// Gives the file's unused pages back when they are many or `is_needed`. It writes all others anew, so it fails on a full
    /// disk and beside readers; then the next eviction does it.
    pub(crate) fn shrink(&self, is_needed: bool) {
        const PATIENCE: Duration = Duration::from_millis(200);
        let connection = lock(&self.connection);
        let shrunk = connection.busy_timeout(PATIENCE).and_then(|()| {
            let [pages, unused, _] = page_counts(&connection)?;
            if unused > pages / 4 || (is_needed && unused > 0) {
                connection.execute_batch("VACUUM")?;
            }
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        });
        if let Err(error) = shrunk.and(connection.busy_timeout(BUSY)) {
            tracing::debug!(%error, "the records keep their unused pages");
        }
    }

    /// Whether the database that is used is still the one at its path.
    pub(crate) fn is_in_place(&self) -> bool {
        file_of(&self.path) == *lock(&self.file)
    }

    /// Runs `operation`; when it finds the database damaged, replaces the database and runs it once more.
    fn with<T>(&self, name: &'static str, operation: impl Fn(&mut Connection) -> rusqlite::Result<T>) -> Result<T, StoreFault> {
        let mut connection = lock(&self.connection);
        disk::call(|| Ok(())).map_err(|error| StoreFault::Records {
            operation: name,
            path: self.path.clone(),
            message: error.to_string(),
        })?;
        match operation(&mut connection) {
            Err(error) if is_damage(&error, &self.path) => {
                self.replace_under(&mut connection)?;
                operation(&mut connection)
            }
            other => other,
        }
        .map_err(|error| fault(name, &self.path, &error))
    }

    /// Sets the database aside for an empty one.
    pub(crate) fn replace(&self) -> Result<(), StoreFault> {
        self.replace_under(&mut lock(&self.connection))
    }

    fn replace_under(&self, connection: &mut Connection) -> Result<(), StoreFault> {
        let mut file = lock(&self.file);
        let (new, aside) = replace(&self.path, &self.locks, *file)?;
        *connection = new;
        *file = file_of(&self.path);
        lock(&self.set_aside).extend(aside);
        Ok(())
    }

    /// What SQLite finds wrong with the database itself.
    pub(crate) fn damage(&self) -> Result<Option<String>, StoreFault> {
        let found: String =
            self.with("check the records", |connection| connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)))?;
        Ok((found != "ok").then_some(found))
    }
}

/// Device and inode.
type FileId = (u64, u64);

fn file_of(path: &Utf8Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// A sound database, and where the damaged one lies now; unless another process has replaced the damaged one, which is `known`,
/// already.
fn replace(path: &Utf8Path, locks: &Utf8Path, known: Option<FileId>) -> Result<(Connection, Option<Utf8PathBuf>), StoreFault> {
    let _guard = key_lock::lock_file(locks, "open")?;
    let fault = |refusal: Refusal| refusal.into_fault("create the records", path);
    if known.is_none() || known != file_of(path) {
        match create(path) {
            Err(Refusal::Sqlite(error)) if is_damage(&error, path) => {}
            other => return other.map(|connection| (connection, None)).map_err(fault),
        }
    }
    let aside = move_aside(path)?;
    Ok((create(path).map_err(fault)?, Some(aside)))
}

/// Pages, unused pages, and bytes of a page.
fn page_counts(connection: &Connection) -> rusqlite::Result<[u64; 3]> {
    let count = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map(|count| count as u64);
    Ok([count("page_count")?, count("freelist_count")?, count("page_size")?])
}

fn insert(connection: &Connection, additions: &Additions<'_>, stats: &[(&str, Vec<u8>)]) -> rusqlite::Result<()> {
    for (digest, bytes) in &additions.inline {
        // It may lie in a pack that cannot be read.
        delete_small_blob(connection, digest)?;
        connection.prepare_cached("INSERT INTO small_blob (digest, bytes) VALUES (?1, ?2)")?.execute(params![digest.as_bytes(), bytes])?;
    }
    for (pack, rows) in &additions.packed {
        for PackedRow { digest, offset, length } in rows {
            connection
                .prepare_cached("INSERT OR REPLACE INTO packed_blob (place, digest, pack, offset, length) VALUES (?1, ?2, ?3, ?4, ?5)")?
                .execute(params![place_of(0, digest), digest.as_bytes(), pack.as_bytes(), *offset as i64, *length as i64])?;
        }
    }
    for ((kind, key), record) in &additions.records {
        let row = params![place_of(kind.number(), key), kind.number(), key.as_bytes(), record.value, record.refers, additions.written_ms];
        connection
            .prepare_cached("INSERT OR REPLACE INTO record (place, kind, key, value, refers, written) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute(row)?;
    }
    for (path, entry) in stats {
        connection.prepare_cached("INSERT OR REPLACE INTO stat (path, entry) VALUES (?1, ?2)")?.execute(params![path, entry])?;
    }
    Ok(())
}

const IS_LISTED: &str = "SELECT EXISTS (SELECT 1 FROM record WHERE place = ?1 AND kind = ?2 AND key = ?3)";

fn filter_listed<'a>(
    keys: impl Iterator<Item = &'a Digest>,
    mut is_listed: impl FnMut(&Digest) -> rusqlite::Result<bool>,
) -> rusqlite::Result<BTreeSet<Digest>> {
    let mut listed = BTreeSet::new();
    for key in keys {
        if is_listed(key)? {
            listed.insert(*key);
        }
    }
    Ok(listed)
}

fn delete_record(connection: &Connection, kind: RecordKind, key: &Digest) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("DELETE FROM record WHERE place = ?1 AND kind = ?2 AND key = ?3")?;
    statement.execute(by_key(kind, key)).map(|_| ())
}

fn delete_small_blob(connection: &Connection, digest: &Digest) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM small_blob WHERE digest = ?1")?.execute(params![digest.as_bytes()])?;
    let mut statement = connection.prepare_cached("DELETE FROM packed_blob WHERE place = ?1 AND digest = ?2")?;
    statement.execute(params![place_of(0, digest), digest.as_bytes()]).map(|_| ())
}

/// What finds a record: its place, kind and key.
fn by_key(kind: RecordKind, key: &Digest) -> (i64, u8, &[u8; 32]) {
    (place_of(kind.number(), key), kind.number(), key.as_bytes())
}

/// 8 bytes of a key as a number, for an index of 13 bytes a row. Should two keys share it, they take turns: the older row is a miss, as is one
/// of a damaged index.
fn place_of(family: u8, key: &Digest) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&key.as_bytes()[..8]);
    i64::from_be_bytes(first).wrapping_add(family.into())
}

/// Why a database was not opened.
enum Refusal {
    Sqlite(rusqlite::Error),
    /// It has this version, which a newer program made.
    Newer(i64),
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Refusal {
        Refusal::Sqlite(error)
    }
}

impl Refusal {
    fn into_fault(self, operation: &'static str, path: &Utf8Path) -> StoreFault {
        let version = |number: i64| format!("version {number} of the records");
        match self {
            Refusal::Sqlite(error) => fault(operation, path, &error),
            Refusal::Newer(found) => {
                StoreFault::Version { path: path.to_owned(), found: version(found), expected: version(SCHEMA_VERSION) }
            }
        }
    }
}

fn connect(path: &Utf8Path, locks: &Utf8Path) -> Result<Connection, Refusal> {
    if path.exists() {
        let connection = open_file(path)?;
        if version_of(&connection)? == SCHEMA_VERSION {
            return Ok(connection);
        }
    }
    // Two processes that both find no database create it one after the other; without the lock, switching to WAL
    // fails in one of them. An error here shows up again in `create`, with SQLite's words.
    let _guard = key_lock::lock_file(locks, "open").ok();
    create(path)
}

fn create(path: &Utf8Path) -> Result<Connection, Refusal> {
    let connection = open_file(path)?;
    // Another process may have created it while this one waited.
    match version_of(&connection)? {
        SCHEMA_VERSION => {}
        newer if newer > SCHEMA_VERSION => return Err(Refusal::Newer(newer)),
        0 => connection.execute_batch(SCHEMA)?,
        _ => {
            connection.execute_batch(DROP_OLD)?;
            connection.execute_batch(SCHEMA)?;
        }
    }
    Ok(connection)
}

fn version_of(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn open_file(path: &Utf8Path) -> rusqlite::Result<Connection> {
    // An empty file is an empty database; SQLite gives its log the same mode. What cannot be made, it says itself.
    let _ = disk::open_or_create(path);
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(32);
    // Without a checkpoint at every exit a build that wrote little ends at once; the next writers do it.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Checkpoints write random pages and wait for the disk: at the default of 1,000 pages they took a quarter of a build of
    // 10,000 small stages.
    connection.pragma_update(None, "wal_autocheckpoint", 8000)?;
    connection.pragma_update(None, "cache_size", -4_000)?;
    // In WAL mode NORMAL can lose the last transactions at a power cut, never at a kill, and never damages the file.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(connection)
}

/// Whether an error can only come from bytes that were damaged: those that SQLite calls so; statements that worked and do not
/// any more, or values of another type; and a file that may be written and says that it may not.
fn is_damage(error: &rusqlite::Error, path: &Utf8Path) -> bool {
    use rusqlite::Error;
    let may_write = || nix::unistd::access(path.as_std_path(), nix::unistd::AccessFlags::W_OK).is_ok();
    match error {
        Error::FromSqlConversionFailure(..) | Error::IntegralValueOutOfRange(..) | Error::InvalidColumnType(..) => true,
        Error::SqlInputError { .. } => true,
        error => match error.sqlite_error() {
            Some(sqlite) => match sqlite.code {
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => true,
                ErrorCode::ReadOnly => may_write(),
                ErrorCode::Unknown => sqlite.extended_code == rusqlite::ffi::SQLITE_ERROR,
                _ => false,
            },
            None => false,
        },
    }
}

/// Renames the database away. The database goes first: what remains of it is then no valid log of a new one.
fn move_aside(path: &Utf8Path) -> Result<Utf8PathBuf, StoreFault> {
    let aside = (1..)
        .map(|number| Utf8PathBuf::from(format!("{path}.damaged-{number}")))
        .find(|candidate| !candidate.exists())
        .unwrap_or_else(|| Utf8PathBuf::from(format!("{path}.damaged")));
    disk::call(|| fs::rename(path, &aside)).map_err(|error| StoreFault::file("set aside", path, &error))?;
    for suffix in ["-wal", "-shm"] {
        let extra = Utf8PathBuf::from(format!("{path}{suffix}"));
        if let Err(error) = disk::remove_file(&extra)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(StoreFault::file("remove", &extra, &error));
        }
    }
    Ok(aside)
}

fn fault(operation: &'static str, path: &Utf8Path, error: &rusqlite::Error) -> StoreFault {
    StoreFault::Records { operation, path: path.to_owned(), message: error.to_string() }
}

/// See [`SCHEMA`].
fn encode_references(references: &References) -> Vec<u8> {
    let blobs = references.blobs.iter().map(|digest| (0, *digest));
    let records = references.records.iter().map(|(kind, digest)| (kind.number(), *digest));
    entries::encode(blobs.chain(records))
}

/// The references in `bytes`; what cannot be read is left out.
pub(crate) fn decode_references(bytes: &[u8]) -> References {
    let mut references = References::default();
    for (family, digest) in entries::decode(bytes) {
        match (family, RecordKind::of_number(family)) {
            (0, _) => references.blobs.push(digest),
            (_, Some(kind)) => references.records.push((kind, digest)),
            (_, None) => {}
        }
    }
    references
}

/// A panic of another thread leaves no half-made state behind these locks, so poisoning is ignored.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const VALUE_VERSION: u8 = 2;
const CHECKSUM_BYTES: usize = 8;

/// Version byte, checksum, payload (postcard). The checksum covers the payload and `with`: the row's key and what else is
/// kept in it.
fn encode<T: Serialize>(with: &[&[u8]], value: &T) -> Result<Vec<u8>, StoreFault> {
    let payload = postcard::to_stdvec(value).map_err(|error| StoreFault::Encoding { what: "a record", message: error.to_string() })?;
    let mut bytes = Vec::with_capacity(1 + CHECKSUM_BYTES + payload.len());
    bytes.push(VALUE_VERSION);
    bytes.extend_from_slice(&checksum(with, &payload));
    bytes.extend_from_slice(&payload);
    Ok(bytes)
}

fn encode_stat(path: &str, state: &FileState) -> Result<Vec<u8>, StoreFault> {
    encode(&[path.as_bytes()], state)
}

/// The value, or `None` when the bytes are damaged or of another version.
fn decode<T: DeserializeOwned>(with: &[&[u8]], bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(payload(with, bytes)?).ok()
}

/// The payload of undamaged bytes.
fn payload<'a>(with: &[&[u8]], bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (version, rest) = bytes.split_first()?;
    let (found, payload) = rest.split_at_checked(CHECKSUM_BYTES)?;
    (*version == VALUE_VERSION && found == checksum(with, payload)).then_some(payload)
}

fn checksum(with: &[&[u8]], payload: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut all = KeyBuilder::new("row");
    with.iter().chain([&payload]).for_each(|part| {
        all.bytes(part);
    });
    let mut first = [0; CHECKSUM_BYTES];
    first.copy_from_slice(&all.finish().as_bytes()[..CHECKSUM_BYTES]);
    first
}

fn run_checksum(value: &[u8], used: &[u8], written_ms: i64) -> [u8; CHECKSUM_BYTES] {
    checksum(&[value, &written_ms.to_le_bytes()], used)
}

/// What a run used, of the column `used`; `None` when the row is damaged.
fn used_of_run(value: &[u8], used: &[u8], written_ms: i64) -> Option<Vec<(RecordKind, Digest)>> {
    let (found, used) = used.split_at_checked(CHECKSUM_BYTES)?;
    (found == run_checksum(value, used, written_ms)).then(|| decode_references(used).records)
}
