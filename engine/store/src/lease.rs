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
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};

use crate::entries::{self, Entry};
use crate::records::lock;
use crate::{Digest, RecordKind, StoreFault, disk};

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
        disk::create_dir_all(directory).map_err(|error| fault(&error))?;
        loop {
            let create = || tempfile::Builder::new().prefix("build-").tempfile_in(directory);
            let (file, path) =
                disk::call(create).and_then(|file| file.keep().map_err(|error| error.error)).map_err(|error| fault(&error))?;
            let path = Utf8PathBuf::from_path_buf(path).map_err(|_| fault(&std::io::ErrorKind::InvalidFilename.into()))?;
            disk::call(|| file.lock()).map_err(|error| fault(&error))?;
            // Others read it when they collect; one of them may have removed it by now.
            let _ = disk::inherit_mode(&path);
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
        disk::call(|| self.file.write_all_at(&bytes, end)).map_err(|error| StoreFault::file("write", &self.path, &error))?;
        announced.extend(new);
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A file that stays is unlocked, and removed by the next one who reads the leases.
        let _ = disk::remove_file(&self.path);
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
    let fault = |path: &Utf8Path, error: &io::Error| StoreFault::file("read", path, error);
    let files = match disk::call(|| directory.read_dir_utf8()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(leases),
        files => files.map_err(|error| fault(directory, &error))?,
    };
    for entry in files {
        let entry = entry.map_err(|error| fault(directory, &error))?;
        let path = entry.path();
        if own.is_some_and(|own| own.path == path) {
            continue;
        }
        let mut file = match disk::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file.map_err(|error| fault(path, &error))?,
        };
        if file.try_lock().is_ok() {
            let _ = disk::remove_file(path);
            continue;
        }
        let mut bytes = Vec::new();
        disk::call(|| file.read_to_end(&mut bytes)).map_err(|error| fault(path, &error))?;
        leases.processes += 1;
        leases.entries.extend(entries::decode(&bytes));
    }
    Ok(leases)
}
