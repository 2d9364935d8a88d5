//! What a process that builds may still need: the records it looked up and the blobs it stored.
//!
//! A lease is a file in `leases`, locked as long as its process lives, to which keys and digests are only added. A process
//! looks a record up and announces it with what it needs while it *shares* the lock `sweep`; it announces what it stores and
//! stores it while it shares that lock. Eviction holds the lock *alone* from reading the leases to its last deletion. So
//! whatever a living process has found or stored was announced before any later eviction reads the leases, and stays
//! as long as the process lives; what was evicted before was not found. No clock takes part.
//!
//! An entry is written at the end of the whole entries before it: one that was cut short by a full disk is no entry to a
//! reader and is overwritten by the next. What cannot be announced is not looked up.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};

use crate::entries::{self, Entry};
use crate::records::lock;
use crate::{Digest, RecordKind, StoreFault};

/// A locked file of entries.
pub(crate) struct Lease {
    path: Utf8PathBuf,
    file: File,
    announced: Mutex<HashSet<Entry>>,
}

impl Lease {
    /// A new lease in `directory`.
    pub(crate) fn take(directory: &Utf8Path) -> Result<Lease, StoreFault> {
        let fault = |error: &std::io::Error| StoreFault::file("create a lease in", directory, error);
        std::fs::create_dir_all(directory).map_err(|error| fault(&error))?;
        loop {
            let (file, path) = tempfile::Builder::new()
                .prefix("build-")
                .tempfile_in(directory)
                .and_then(|file| file.keep().map_err(|error| error.error))
                .map_err(|error| fault(&error))?;
            let path = Utf8PathBuf::from_path_buf(path).map_err(|_| fault(&std::io::ErrorKind::InvalidFilename.into()))?;
            file.lock().map_err(|error| fault(&error))?;
            // Someone who found the new file unlocked may have taken it for one that was left behind.
            if path.exists() {
                return Ok(Lease { path, file, announced: Mutex::default() });
            }
        }
    }

    /// Adds those of `entries` that are not there yet. The caller shares the lock `sweep`.
    pub(crate) fn announce(&self, entries: impl IntoIterator<Item = Entry>) -> Result<(), StoreFault> {
        let mut announced = lock(&self.announced);
        let new: BTreeSet<Entry> = entries.into_iter().filter(|entry| !announced.contains(entry)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let end = (announced.len() * entries::BYTES) as u64;
        let bytes = entries::encode(new.iter().copied());
        self.file.write_all_at(&bytes, end).map_err(|error| StoreFault::file("write", &self.path, &error))?;
        announced.extend(new);
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A file that stays is unlocked, and removed by the next one who reads the leases.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The leases of living processes.
pub(crate) struct Leases {
    pub(crate) entries: BTreeSet<Entry>,
    pub(crate) processes: usize,
}

impl Leases {
    pub(crate) fn records(&self) -> impl Iterator<Item = (RecordKind, Digest)> {
        self.entries.iter().filter_map(|(family, key)| Some((RecordKind::of_number(*family)?, *key)))
    }

    pub(crate) fn blobs(&self) -> impl Iterator<Item = Digest> {
        self.entries.iter().filter(|(family, _)| *family == 0).map(|(_, digest)| *digest)
    }
}

/// Reads the leases of `directory` but that of this process; those left behind by killed processes are removed.
pub(crate) fn read(directory: &Utf8Path, own: Option<&Lease>) -> Result<Leases, StoreFault> {
    let mut leases = Leases { entries: BTreeSet::new(), processes: 0 };
    let Ok(files) = directory.read_dir_utf8() else { return Ok(leases) };
    for entry in files.filter_map(Result::ok) {
        let path = entry.path();
        if own.is_some_and(|own| own.path == path) {
            continue;
        }
        let Ok(mut file) = File::open(path) else { continue };
        if file.try_lock().is_ok() {
            let _ = std::fs::remove_file(path);
            continue;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| StoreFault::file("read", path, &error))?;
        leases.processes += 1;
        leases.entries.extend(entries::decode(&bytes));
    }
    Ok(leases)
}
