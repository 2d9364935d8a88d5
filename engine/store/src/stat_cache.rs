//! Digests of source files without reading files that have not changed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use crate::{Digest, StoreFault};

/// What the file system says of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// Size in bytes.
    pub bytes: u64,
    /// Modification time in nanoseconds since 1970.
    pub modified_ns: i128,
    /// Change time of the inode in nanoseconds since 1970.
    pub changed_ns: i128,
    /// Inode number.
    pub inode: u64,
    /// Device number.
    pub device: u64,
}

impl FileStamp {
    /// The stamp in `metadata`.
    pub fn of(metadata: &fs::Metadata) -> FileStamp {
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        FileStamp {
            bytes: metadata.len(),
            modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            device: metadata.dev(),
        }
    }
}

/// The answer to "what is in this file".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceRead {
    /// The file's digest.
    Found(Digest),
    /// There is no such file.
    Absent,
    /// It is there and is not a file.
    NotAFile,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct StatRow {
    pub(crate) stamp: FileStamp,
    pub(crate) digest: Digest,
    /// When the file had been read, by this machine's clock.
    pub(crate) recorded_ns: i128,
}

pub(crate) struct StatEntry {
    pub(crate) path: String,
    pub(crate) row: StatRow,
}

/// A second write within the clock's grain leaves the stamp as it was, so a stamp this close to the reading is not
/// trusted; neither is one from the future, where a clock was set back.
const DISTRUSTED_NS: i128 = 2_000_000_000;

/// Whether `row` proves that a file with `stamp` still has the row's digest.
pub(crate) fn is_trusted(row: &StatRow, stamp: &FileStamp) -> bool {
    let newest = row.stamp.modified_ns.max(row.stamp.changed_ns);
    row.stamp == *stamp && row.recorded_ns - newest > DISTRUSTED_NS
}

/// Stamp of the file at `path`; `None` when there is nothing.
pub(crate) fn stamp_of(path: &Utf8Path) -> Result<Option<fs::Metadata>, StoreFault> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(StoreFault::file("read", path, &error)),
    }
}

/// Reads and hashes; the time of the row is taken before reading, the stamp after, and both stamps must agree.
pub(crate) fn measure(path: &Utf8Path) -> Result<Option<StatRow>, StoreFault> {
    const ATTEMPTS: usize = 5;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let recorded_ns = now_ns();
        let Some(before) = stamp_of(path)? else { return Ok(None) };
        let digest = hash_file(path)?;
        let Some(after) = stamp_of(path)? else { return Ok(None) };
        let stamp = FileStamp::of(&after);
        let row = StatRow { stamp, digest, recorded_ns };
        if stamp == FileStamp::of(&before) {
            return Ok(Some(row));
        }
        last = Some(row);
    }
    // A file that never stands still: its last digest is as good as any, and its stamp must not be trusted.
    Ok(last.map(|row| StatRow { recorded_ns: i128::MIN / 2, ..row }))
}

fn hash_file(path: &Utf8Path) -> Result<Digest, StoreFault> {
    let mut hasher = blake3::Hasher::new();
    fs::File::open(path).and_then(|file| hasher.update_reader(file).map(|_| ())).map_err(|error| StoreFault::file("read", path, &error))?;
    Ok(Digest::from_bytes(*hasher.finalize().as_bytes()))
}

/// Now, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    i64::try_from(now_ns() / 1_000_000).unwrap_or(i64::MAX)
}

fn now_ns() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128)
}
