//! Everything a store holds, counted.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use crate::{Digest, RecordKind, References, Store, StoreFault, disk};

/// A record, without its value.
pub(crate) struct RecordRow {
    /// None of a damaged record.
    pub(crate) references: References,
    pub(crate) is_damaged: bool,
    pub(crate) bytes: u64,
    pub(crate) written_ms: i64,
}

/// A blob, wherever it lies.
#[derive(Clone, Copy)]
pub(crate) struct BlobRow {
    pub(crate) bytes: u64,
    /// Whether it is a file of its own.
    pub(crate) is_file: bool,
}

/// A run, without its value.
pub(crate) struct RunRow {
    pub(crate) number: i64,
    /// `None` of a damaged run.
    pub(crate) used: Option<Vec<(RecordKind, Digest)>>,
    pub(crate) written_ms: i64,
}

pub(crate) struct Census {
    pub(crate) records: BTreeMap<(RecordKind, Digest), RecordRow>,
    pub(crate) blobs: BTreeMap<Digest, BlobRow>,
    /// Newest first.
    pub(crate) runs: Vec<RunRow>,
}

impl Census {
    /// Records first: the blobs that they need were stored before them.
    pub(crate) fn take(store: &Store) -> Result<Census, StoreFault> {
        let runs = store.records().run_rows()?;
        let records = store.records().record_rows()?;
        let mut blobs = store.records().blob_rows()?;
        for (digest, bytes) in large_blobs(store)? {
            blobs.insert(digest, BlobRow { bytes, is_file: true });
        }
        Ok(Census { records, blobs, runs })
    }

    /// These records and all that they refer to, as far as they are there.
    pub(crate) fn reached_from(&self, records: impl IntoIterator<Item = (RecordKind, Digest)>) -> BTreeSet<(RecordKind, Digest)> {
        let mut queue: Vec<_> = records.into_iter().collect();
        let mut reached = BTreeSet::new();
        while let Some(id) = queue.pop() {
            if let Some(record) = self.records.get(&id)
                && reached.insert(id)
            {
                queue.extend(&record.references.records);
            }
        }
        reached
    }

    /// Bytes of records and of the blobs they need.
    pub(crate) fn bytes_of(&self, records: &BTreeSet<(RecordKind, Digest)>) -> u64 {
        let own: u64 = records.iter().filter_map(|id| self.records.get(id)).map(|record| record.bytes).sum();
        let blobs: BTreeSet<&Digest> =
            records.iter().filter_map(|id| self.records.get(id)).flat_map(|record| &record.references.blobs).collect();
        own + blobs.into_iter().filter_map(|digest| self.blobs.get(digest)).map(|blob| blob.bytes).sum::<u64>()
    }
}

/// Digests and sizes of the blobs that are files.
fn large_blobs(store: &Store) -> Result<Vec<(Digest, u64)>, StoreFault> {
    let files = files_in(&store.root().join("cas"))?;
    Ok(files.iter().filter_map(|path| Some((digest_of_place(path)?, path.metadata().ok()?.len()))).collect())
}

/// The digest that a file's place says.
pub(crate) fn digest_of_place(path: &Utf8Path) -> Option<Digest> {
    format!("{}{}", path.parent()?.file_name()?, path.file_name()?).parse().ok()
}

/// Files two levels down, in order.
pub(crate) fn files_in(directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, StoreFault> {
    let folders = entries(directory)?;
    let mut files = folders.iter().map(|folder| entries(folder)).collect::<Result<Vec<_>, StoreFault>>()?.concat();
    files.sort();
    Ok(files)
}

fn entries(directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, StoreFault> {
    let paths = disk::call(|| directory.read_dir_utf8()?.map(|entry| entry.map(|entry| entry.path().to_owned())).collect());
    match paths {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        paths => paths.map_err(|error: io::Error| StoreFault::file("list", directory, &error)),
    }
}
