//! Content-addressed blobs and the records about them, in one directory shared by workspaces and processes.
//!
//! A blob is found by the BLAKE3 digest of its bytes, a record by a digest that its writer computed. Blobs are
//! verified on every read; a record may be lost but never lies, because the blobs a record names are stored before
//! it. The store knows nothing of targets, stages or tiles, and it never reads the clock except to judge whether a
//! file's modification time can be trusted.
//!
//! ```text
//! VERSION                 format of this directory, one line
//! records.sqlite          action, target, run records, small blobs, pack index, stat cache (SQLite in WAL mode)
//! cas/ab/cdef…            one large blob a file, read-only, named by its digest
//! packs/ab/cdef…          many small blobs end to end, indexed by records.sqlite
//! locks/keys              advisory locks of action keys: one byte of the file for the first 16 bits of a key
//! locks/NAME              advisory locks of other things, as a device; `sweep` is shared by writers, alone for eviction
//! leases/build-…          for each process that builds, what it may still need
//! ```

mod blob_file;
mod census;
mod check;
mod collect;
mod digest;
mod disk;
mod entries;
mod fault;
#[cfg(feature = "faults")]
#[doc(hidden)]
pub mod faults;
mod key_lock;
mod lease;
mod pack;
mod records;
mod stat_cache;
mod store_directory;

pub use check::{Amount, CheckReport, Defect, Statistics};
pub use collect::{GcPolicy, GcReport};
pub use digest::{Digest, DigestFault, KeyBuilder};
pub use fault::{BlobMiss, StoreFault};
pub use key_lock::KeyLock;
pub use records::{RecordKind, References, RunEntry};
pub use stat_cache::{FileStamp, FileState, SourceRead, now_ms, now_ns};
pub use store_directory::{Batch, Store, StoreReport};
