//! What a process that builds may still need: the records it looked up and the blobs it stored.
//!
//! A lease is a file in `leases`, locked as long as its process lives. A key is appended to it *before* its record is looked up, and a
//! blob's digest before it is looked for or written. Eviction deletes records first, then reads the leases, then deletes
//! blobs. So of a record that is evicted, either its reader was announced, and its blobs stay, or the reader finds no record
//! any more: in both cases nobody holds a digest whose blob is gone. No clock takes part.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};

use crate::StoreFault;
use crate::entries::{self, Entry};
use crate::records::lock;

/// A locked file of entries.
pub(crate) struct Lease {
    path: Utf8PathBuf,
    file: Mutex<File>,
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
                return Ok(Lease { path, file: Mutex::new(file) });
            }
        }
    }

    pub(crate) fn announce(&self, entries: &[Entry]) -> Result<(), StoreFault> {
        let bytes = entries::encode(entries.iter().copied());
        lock(&self.file).write_all(&bytes).map_err(|error| StoreFault::file("write", &self.path, &error))
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
