//! Digests of source files without reading files that have not changed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use crate::{Digest, StoreFault, disk};

/// What the file system says of a file without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

    /// The stamp of what is at `path`, links followed; `None` when there is nothing or it cannot be looked at.
    pub fn at(path: &Utf8Path) -> Option<FileStamp> {
        fs::metadata(path).ok().map(|metadata| FileStamp::of(&metadata))
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

/// What is known of a file that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Its stamp when it was read.
    pub stamp: FileStamp,
    /// Digest of its bytes.
    pub digest: Digest,
    /// When it was read, in nanoseconds since 1970 by this machine's clock.
    pub recorded_ns: i128,
}

impl FileState {
    /// Bytes of [`FileState::to_bytes`].
    pub const BYTES: usize = 80;

    /// Whether a file with `stamp` has the digest of this state for certain.
    pub fn proves(&self, stamp: &FileStamp) -> bool {
        let newest = self.stamp.modified_ns.max(self.stamp.changed_ns);
        self.stamp == *stamp && self.recorded_ns - newest > DISTRUSTED_NS
    }

    /// The same digest, which no stamp proves: the file is read again.
    #[must_use]
    pub fn distrusted(self) -> FileState {
        FileState { recorded_ns: i128::from(i64::MIN), ..self }
    }

    /// A fixed number of bytes, for tables of many files. Times beyond the years 1678 to 2262 are not kept exactly.
    pub fn to_bytes(&self) -> [u8; FileState::BYTES] {
        let nanoseconds = |time: i128| i64::try_from(time).unwrap_or(i64::MIN).to_le_bytes();
        let mut bytes = [0; FileState::BYTES];
        let fields = [
            self.stamp.bytes.to_le_bytes(),
            nanoseconds(self.stamp.modified_ns),
            nanoseconds(self.stamp.changed_ns),
            self.stamp.inode.to_le_bytes(),
            self.stamp.device.to_le_bytes(),
            nanoseconds(self.recorded_ns),
        ];
        for (place, field) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(fields) {
            *place = field;
        }
        bytes[48..].copy_from_slice(self.digest.as_bytes());
        bytes
    }

    /// Reads [`FileState::to_bytes`].
    pub fn from_bytes(bytes: &[u8; FileState::BYTES]) -> FileState {
        let (numbers, digest) = bytes.split_at(48);
        let number = |index: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&numbers[8 * index..8 * index + 8]);
            field
        };
        let signed = |index: usize| i128::from(i64::from_le_bytes(number(index)));
        let unsigned = |index: usize| u64::from_le_bytes(number(index));
        let mut last = [0; 32];
        last.copy_from_slice(digest);
        let stamp =
            FileStamp { bytes: unsigned(0), modified_ns: signed(1), changed_ns: signed(2), inode: unsigned(3), device: unsigned(4) };
        FileState { stamp, digest: Digest::from_bytes(last), recorded_ns: signed(5) }
    }
}

pub(crate) struct StatEntry {
    pub(crate) path: String,
    pub(crate) row: FileState,
}

/// A second write within the clock's grain leaves the stamp as it was, so a stamp this close to the reading is not
/// trusted; neither is one from the future, where a clock was set back.
const DISTRUSTED_NS: i128 = 2_000_000_000;

/// Metadata of the file at `path`; `None` when there is nothing.
pub(crate) fn metadata_of(path: &Utf8Path) -> Result<Option<fs::Metadata>, StoreFault> {
    match disk::call(|| fs::metadata(path)) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(StoreFault::file("read", path, &error)),
    }
}

/// Reads and hashes; the time of the row is taken before reading, the stamp after, and both stamps must agree.
pub(crate) fn measure(path: &Utf8Path) -> Result<Option<FileState>, StoreFault> {
    const ATTEMPTS: usize = 5;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let recorded_ns = now_ns();
        let Some(before) = metadata_of(path)? else { return Ok(None) };
        let digest = hash_file(path)?;
        let Some(after) = metadata_of(path)? else { return Ok(None) };
        let stamp = FileStamp::of(&after);
        let row = FileState { stamp, digest, recorded_ns };
        if stamp == FileStamp::of(&before) {
            return Ok(Some(row));
        }
        last = Some(row);
    }
    // A file that never stands still: its last digest is as good as any, and its stamp must not be trusted.
    Ok(last.map(FileState::distrusted))
}

fn hash_file(path: &Utf8Path) -> Result<Digest, StoreFault> {
    let mut hasher = blake3::Hasher::new();
    disk::open(path).and_then(|file| hasher.update_reader(file).map(|_| ())).map_err(|error| StoreFault::file("read", path, &error))?;
    Ok(Digest::from_bytes(*hasher.finalize().as_bytes()))
}

/// Now, in milliseconds since 1970.
pub fn now_ms() -> i64 {
    i64::try_from(now_ns() / 1_000_000).unwrap_or(i64::MAX)
}

/// Now, in nanoseconds since 1970, for [`FileState::recorded_ns`].
pub fn now_ns() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128)
}
