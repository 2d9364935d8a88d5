//! Content-addressed blobs and the records about them, in one directory shared by workspaces and processes.
//!
//! A blob is found by the BLAKE3 digest of its bytes, a record by a digest that its writer computed. Blobs are
//! verified on every read; a record may be lost but never lies, because the blobs a record names are stored before
//! it. The store knows nothing of targets, stages or tiles, and it never reads the clock except to judge whether a
//! file's modification time can be trusted.
//!
//! # Format
//!
//! ```text
//! VERSION                 `ipubuild store 1` and a line feed; what has another number is refused, what was cut short is written again
//! records.sqlite          SQLite in WAL mode, `user_version` 4; a higher one is refused, of a lower one records and runs are dropped
//! cas/ab/cdef…            one blob of at least 64 KiB a file, read-only, named by the BLAKE3 digest of its bytes
//! packs/ab/cdef…          16 or more smaller blobs end to end, named by a digest of their digests
//! locks/keys              advisory locks of action keys: one byte of the file for the first 16 bits of a key
//! locks/NAME              advisory locks of other things: `open` to make or replace the database, `gc` for one eviction or check
//!                         at a time, `sweep` shared by who looks up or writes and alone for who deletes, `name-…` as of a device
//! leases/build-…          for each process that builds, what it may still need: entries, the file locked while the process lives
//! *.writing-*             a file before it has its name
//! records.sqlite.damaged-N  a database that was damaged and replaced
//! ```
//!
//! An *entry* is 33 bytes: a family, 0 for a blob and a [`RecordKind`]'s number (1 stage, 2 target, 3 inputs, 4 graph) for a record,
//! and a digest. The tables:
//!
//! | table | columns |
//! |---|---|
//! | `record` | `number`, `place`: see below, `kind`, `key`; `value`: version byte 2, checksum, postcard; `refers`: entries; `written`: milliseconds since 1970 |
//! | `small_blob` | `digest`, `bytes` |
//! | `packed_blob` | `number`, `place`, `digest`, `pack`: the pack's name; `offset`, `length` |
//! | `stat` | `path`, absolute; `entry`: as `value`, a [`FileState`] |
//! | `run` | `number`, ascending; `value`: its writer's; `used`: checksum, entries; `written` |
//!
//! A place is the first 8 bytes of a key, big-endian, plus the number of its family; two keys of one place replace each other.
//! A checksum is the first 8 bytes of a BLAKE3 digest over everything in its row, each part after its length; of `record` without
//! `number`, `place` and `written`, of `run` without `number`. What a row of `packed_blob` says is proven by the blob's digest.
//!
//! # Order of writes
//!
//! A process may be killed, and every call fail, between any two of these steps; nothing waits for the disk but SQLite, so a power cut
//! may also take the last steps back, in any order.
//!
//! * A commit shares `sweep`, announces blobs and records in its lease, writes large blobs and a pack, each under another name and then
//!   renamed, and then rows of packs, small blobs and records in one transaction. What is left of one that did not end is files that no row
//!   names, which eviction removes. A file that a power cut emptied does not have its digest: it is a miss, and made again.
//! * A record that is there is looked up and announced while `sweep` is shared. What cannot be announced is not found.
//! * Eviction holds `sweep` alone. It removes half-written files, deletes records and runs in one transaction, small blobs and rows of packs in
//!   another, and then files. At every step a record that is there has its blobs; what remains is collected by the next eviction.
//! * A pack is written anew with what is needed of it, its rows are replaced in one transaction, and the old file is deleted: at each
//!   step the rows name a file that has the blobs. Readers of the old one look again.
//! * A damaged database is renamed away under `open`, then its log is deleted, then an empty one is made. Large blobs are found in it
//!   again when their records are made again.
//! * A damaged blob is removed from where it was read; one that cannot be read stays until its producer wrote it again.

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
