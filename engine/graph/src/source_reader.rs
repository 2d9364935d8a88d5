//! The one door through which source files enter.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use store::{Digest, FileState, SourceRead, Store};

use crate::{EmbeddedRepository, Failure, SourcePath};

/// Reads files of the workspace and of the embedded repositories.
#[derive(Clone, Debug)]
pub struct SourceReader {
    root: Utf8PathBuf,
    embedded: BTreeMap<SourcePath, Arc<[u8]>>,
}

impl SourceReader {
    /// Files below `root` (absolute, without symbolic links) and of `repositories`.
    pub fn new(root: &Utf8Path, repositories: &[EmbeddedRepository]) -> SourceReader {
        let embedded = repositories
            .iter()
            .flat_map(|repository| {
                repository
                    .files
                    .iter()
                    .map(|(path, bytes)| (SourcePath { repository: repository.name.clone(), path: path.clone() }, bytes.clone()))
            })
            .collect();
        SourceReader { root: root.to_owned(), embedded }
    }

    /// The workspace's root.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The file's digest by the stat cache; [`Digest::ABSENT`] when there is none. A symbolic link that leaves the
    /// workspace is an input fault.
    pub fn digest(&self, store: &Store, path: &SourcePath) -> Result<Digest, Failure> {
        if !path.repository.is_empty() {
            return Ok(self.embedded.get(path).map_or(Digest::ABSENT, |bytes| Digest::of(bytes)));
        }
        let Some(file) = self.file(path)? else { return Ok(Digest::ABSENT) };
        match store.source_digest(&file)? {
            SourceRead::Found(digest) => Ok(digest),
            SourceRead::Absent => Ok(Digest::ABSENT),
            SourceRead::NotAFile => Err(Failure::input(format!("{path} is not a file"))),
        }
    }

    /// As [`SourceReader::digest`] for a file of the workspace itself, with what proves it; `None` when there is none.
    pub(crate) fn state(&self, store: &Store, path: &SourcePath) -> Result<Option<FileState>, Failure> {
        match self.file(path)? {
            Some(file) => Ok(store.source_state(&file)?),
            None => Ok(None),
        }
    }

    /// The file's bytes; a failure when they are not those of `digest`.
    pub(crate) fn read(&self, path: &SourcePath, digest: Digest) -> Result<Arc<[u8]>, Failure> {
        if digest == Digest::ABSENT {
            return Err(Failure::input(format!("there is no file {path}")));
        }
        let bytes: Option<Arc<[u8]>> = if path.repository.is_empty() {
            match self.file(path)? {
                Some(file) => Some(std::fs::read(&file).map_err(|error| unreadable(path, &error))?.into()),
                None => None,
            }
        } else {
            self.embedded.get(path).cloned()
        };
        match bytes {
            Some(bytes) if Digest::of(&bytes) == digest => Ok(bytes),
            _ => Err(moved(path)),
        }
    }

    /// Where the file of the workspace or of the machine lies; a failure when its bytes are not those of `digest`.
    pub(crate) fn locate(&self, store: &Store, path: &SourcePath, digest: Digest) -> Result<Utf8PathBuf, Failure> {
        if !path.repository.is_empty() {
            return Err(Failure::input(format!("{path} comes with the program and is no file")));
        }
        self.check(store, path, digest)?;
        self.file(path)?.ok_or_else(|| Failure::input(format!("there is no file {path}")))
    }

    /// A failure when the file's bytes are not those of `digest` any more.
    pub(crate) fn check(&self, store: &Store, path: &SourcePath, digest: Digest) -> Result<(), Failure> {
        if path.repository.is_empty() && self.digest(store, path)? != digest { Err(moved(path)) } else { Ok(()) }
    }

    /// The real file, `None` when there is none.
    fn file(&self, path: &SourcePath) -> Result<Option<Utf8PathBuf>, Failure> {
        let joined = self.root.join(&path.path);
        let real = match joined.canonicalize_utf8() {
            Ok(real) => real,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(unreadable(path, &error)),
        };
        if real.starts_with(&self.root) || path.is_absolute() {
            Ok(Some(real))
        } else {
            Err(Failure::input(format!("{path} is a link to {real}, which is not below the workspace root")))
        }
    }
}

fn moved(path: &SourcePath) -> Failure {
    Failure::new(crate::Cause::Disk, format!("{path} changed while it was being built; nothing was stored for it, build again"))
}

fn is_absence(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

fn unreadable(path: &SourcePath, error: &std::io::Error) -> Failure {
    Failure::new(crate::Cause::Disk, format!("cannot read {path}: {error}"))
}
