//! What can go wrong between the store and the disk.

use std::fmt;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use nix::errno::Errno;

use crate::Digest;

/// The store could not do what was asked. A miss is not a fault: see [`BlobMiss`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// A file operation failed: full disk, permission, too many open files.
    File {
        /// What was being done, as in "write".
        operation: &'static str,
        /// The file or directory.
        path: Utf8PathBuf,
        /// The operating system's class of the error.
        kind: io::ErrorKind,
        /// The operating system's words.
        message: String,
        /// Whether it says nothing of the file itself: too many open files, no memory, no permission, a full disk.
        may_pass: bool,
    },
    /// The database of records refused an operation.
    Records {
        /// What was being done, as in "read an action record".
        operation: &'static str,
        /// The database file.
        path: Utf8PathBuf,
        /// SQLite's words.
        message: String,
    },
    /// The store was written by another version of its format.
    Version {
        /// The store's directory, or its database.
        path: Utf8PathBuf,
        /// The version it has.
        found: String,
        /// The version this program writes.
        expected: String,
    },
    /// A value could not be encoded for a record.
    Encoding {
        /// What was being encoded.
        what: &'static str,
        /// The encoder's words.
        message: String,
    },
}

/// Errors that say nothing of the file they were met at.
const MAY_PASS: [Errno; 10] = [
    Errno::EMFILE,
    Errno::ENFILE,
    Errno::ENOMEM,
    Errno::EACCES,
    Errno::EPERM,
    Errno::EAGAIN,
    Errno::EINTR,
    Errno::ENOSPC,
    Errno::EDQUOT,
    Errno::EFBIG,
];

impl StoreFault {
    pub(crate) fn file(operation: &'static str, path: &Utf8Path, error: &io::Error) -> StoreFault {
        let raw = error.raw_os_error().map(Errno::from_raw);
        let may_pass = raw.is_some_and(|error| MAY_PASS.contains(&error));
        StoreFault::File { operation, path: path.to_owned(), kind: error.kind(), message: error.to_string(), may_pass }
    }

    /// Whether the same operation may succeed when it is tried again, without anything in the store having changed.
    pub fn may_pass(&self) -> bool {
        matches!(self, StoreFault::File { may_pass: true, .. } | StoreFault::Records { .. })
    }
}

impl fmt::Display for StoreFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreFault::File { operation, path, message, .. } => {
                write!(formatter, "cannot {operation} {path}: {message}")
            }
            StoreFault::Records { operation, path, message } => {
                write!(formatter, "cannot {operation} in {path}: {message}")
            }
            StoreFault::Version { path, found, expected } => {
                write!(formatter, "{path} has format `{found}`, this program needs `{expected}`; use another --store directory")
            }
            StoreFault::Encoding { what, message } => {
                write!(formatter, "cannot encode {what}: {message}")
            }
        }
    }
}

impl std::error::Error for StoreFault {}

/// Why a blob could not be had; the remedy is always to run its producer again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobMiss {
    /// The store has no such blob.
    Absent {
        /// The blob asked for.
        digest: Digest,
    },
    /// The stored bytes are not those of the digest; they were removed.
    Corrupt {
        /// The blob asked for.
        digest: Digest,
        /// Where the wrong bytes were.
        place: String,
        /// The digest of the bytes found.
        found: Digest,
    },
    /// The bytes may be there, but could not be read; they were left alone.
    Unreadable {
        /// The blob asked for.
        digest: Digest,
        /// Why.
        fault: StoreFault,
    },
}

impl BlobMiss {
    /// The blob asked for.
    pub fn digest(&self) -> Digest {
        match self {
            BlobMiss::Absent { digest } | BlobMiss::Corrupt { digest, .. } | BlobMiss::Unreadable { digest, .. } => *digest,
        }
    }
}

impl fmt::Display for BlobMiss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlobMiss::Absent { digest } => {
                write!(formatter, "blob {} is missing from the store", digest.short())
            }
            BlobMiss::Corrupt { digest, place, found } => {
                write!(formatter, "blob {} is corrupt in {place}: its bytes have digest {}", digest.short(), found.short())
            }
            BlobMiss::Unreadable { digest, fault } => {
                write!(formatter, "blob {} cannot be read: {fault}", digest.short())
            }
        }
    }
}

impl std::error::Error for BlobMiss {}
