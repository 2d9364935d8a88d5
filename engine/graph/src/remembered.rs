//! What the next build of a request looks at, so that one without changes reads a record and stamps of files and nothing else.
//!
//! The record of kind [`RecordKind::Graph`] names two blobs. The first, [`Glance`], holds every file that loading and
//! building looked at, with its stamp, and the reports of the requested targets; when nothing changed it is the whole
//! answer. The second is the [`TargetTable`], from which a build goes on when only sources changed. Anything else is
//! loaded from the start. Where this is in doubt, or a record is damaged, it gives nothing, and the build is only slower.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZero;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};
use store::{Digest, FileStamp, FileState, KeyBuilder, RecordKind, References, Store, StoreFault};

use crate::loader::PackageWalk;
use crate::packed::Texts;
use crate::target_table::TargetTable;
use crate::{Bytes, LoadRequest, RuleKind, SourceReader, TargetReport};

/// A request as the user made it.
pub struct Request<'a> {
    /// What is loaded.
    pub load: &'a LoadRequest<'a>,
    /// What is done with it: commands choose other targets from the same patterns.
    pub command: &'a str,
    /// The program that runs: another one may load and decide otherwise.
    pub program: FileStamp,
}

impl Request<'_> {
    /// The key of the request's record.
    pub fn key(&self) -> Digest {
        let mut key = KeyBuilder::new("request");
        key.text(self.command).text(self.load.root.as_str());
        for number in [self.program.bytes, self.program.inode, self.program.device] {
            key.number(number);
        }
        key.bytes(&self.program.modified_ns.to_le_bytes()).bytes(&self.program.changed_ns.to_le_bytes());
        self.load.patterns.iter().for_each(|pattern| {
            key.text("pattern").text(&pattern.to_string());
        });
        self.load.overrides.iter().for_each(|change| {
            key.text("override").text(change.text());
        });
        key.finish()
    }
}

/// What the record under a request's key names.
#[derive(Serialize, Deserialize)]
struct Record {
    glance: Digest,
    table: Digest,
}

/// Where the entries of a [`Glance`] of one sort end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Ends {
    build_files: usize,
    sources: usize,
    exports: usize,
    directories: usize,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Glance {
    /// Build files, sources, exported files and walked directories, below the root.
    paths: Texts,
    /// One [`FileState`] for each path.
    states: Vec<u8>,
    ends: Ends,
    /// For each source its number in the table.
    files: Vec<u32>,
    /// For each exported file the number of its target.
    owners: Vec<u32>,
    packages: Vec<String>,
    pub(crate) reports: Vec<Report>,
}

/// A requested target's report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) target: u32,
    label: String,
    kind: ReportKind,
    success: bool,
    lines: Vec<String>,
    data: Bytes,
    exports: Vec<String>,
    contents: Vec<Digest>,
    key: Digest,
    outcome: Digest,
}

/// The kinds of targets that have reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum ReportKind {
    Built,
    Run,
    Sweep,
}

impl ReportKind {
    fn of(kind: RuleKind) -> ReportKind {
        match kind {
            RuleKind::Run => ReportKind::Run,
            RuleKind::Sweep => ReportKind::Sweep,
            RuleKind::Built | RuleKind::Data | RuleKind::Suite => ReportKind::Built,
        }
    }

    fn rule_kind(self) -> RuleKind {
        match self {
            ReportKind::Built => RuleKind::Built,
            ReportKind::Run => RuleKind::Run,
            ReportKind::Sweep => RuleKind::Sweep,
        }
    }
}

/// What is remembered of a request.
pub struct Remembered {
    pub(crate) glance: Glance,
    table: Digest,
    key: Digest,
    restamped: bool,
}

/// What became of the files since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing that matters.
    Unchanged,
    /// These sources have other bytes: number in the table and digest.
    Sources(Vec<(usize, Digest)>),
    /// Something else, or it cannot be told.
    Unclear,
}

impl Remembered {
    /// What is remembered under `key`, if it can be read.
    pub fn find(store: &Store, key: Digest) -> Option<Remembered> {
        let record = store.record::<Record>(RecordKind::Graph, &key).ok()??;
        let glance: Glance = postcard::from_bytes(&store.blob(&record.glance).ok()?).ok()?;
        glance.is_sound().then_some(Remembered { glance, table: record.table, key, restamped: false })
    }

    /// The graph, if it can be read.
    pub(crate) fn table(&self, store: &Store) -> Option<TargetTable> {
        let table: TargetTable = postcard::from_bytes(&store.blob(&self.table).ok()?).ok()?;
        table.is_sound().then_some(table)
    }

    /// Compares all files with what is remembered. Files whose stamps prove nothing are read; what is learnt is kept when
    /// nothing changed.
    pub fn look(&mut self, store: &Store, sources: &SourceReader) -> Look {
        let doubtful = self.glance.doubtful(sources.root());
        let mut changed = Vec::new();
        let mut is_walked = false;
        for index in doubtful {
            match self.glance.look_at(index, store, sources) {
                Seen::Same(state) => {
                    self.glance.set_state(index, state);
                    self.restamped = true;
                }
                Seen::Source(file, state) => {
                    self.glance.set_state(index, state);
                    changed.push((file, state.digest));
                }
                Seen::Directory => is_walked = true,
                Seen::Other => return Look::Unclear,
            }
        }
        if is_walked && !self.glance.walk_again(sources.root()) {
            return Look::Unclear;
        }
        self.restamped |= is_walked;
        if !changed.is_empty() {
            return Look::Sources(changed);
        }
        if self.restamped {
            // Only the next look would be quicker with it.
            let _ = self.glance.write(store, self.key, self.table);
        }
        Look::Unchanged
    }

    /// The reports of the requested targets, as found in the store.
    pub fn reports(&self, root: &Utf8Path) -> Vec<TargetReport> {
        self.glance.reports.iter().filter_map(|report| report.restore(root)).collect()
    }
}

/// What became of one entry.
enum Seen {
    Same(FileState),
    Source(usize, FileState),
    Directory,
    Other,
}

impl Glance {
    /// An entry for each file; sources are the table's files of the workspace itself.
    pub(crate) fn new(sources: &SourceReader, store: &Store, build_files: &[(String, Digest)], table: &TargetTable) -> Glance {
        let mut glance = Glance::default();
        let root = sources.root();
        for (path, digest) in build_files {
            glance.push(path, state_of(store, root, path, *digest));
        }
        glance.ends.build_files = glance.paths.len();
        for file in 0..table.file_count() {
            let path = table.file_text(file);
            if !path.starts_with('@') {
                glance.push(path, state_of(store, root, path, table.file_digest(file)));
                glance.files.push(file as u32);
            }
        }
        glance.ends.sources = glance.paths.len();
        glance.ends.exports = glance.paths.len();
        glance.ends.directories = glance.paths.len();
        glance
    }

    /// Whether these build files are among those that were looked at, with the same bytes.
    pub(crate) fn has_build_files(&self, files: &[(String, Digest)]) -> bool {
        let known: HashMap<&str, Digest> =
            (0..self.ends.build_files).map(|index| (self.paths.get(index), self.state(index).digest)).collect();
        files.iter().all(|(path, digest)| known.get(path.as_str()) == Some(digest))
    }

    /// Replaces the exported files of these targets, given by path and content.
    pub(crate) fn set_exports(&mut self, store: &Store, root: &Utf8Path, targets: &BTreeMap<usize, Vec<(String, Digest)>>) {
        let mut next = Glance { files: self.files.clone(), packages: self.packages.clone(), ..Glance::default() };
        let copy = |next: &mut Glance, index: usize| next.push(self.paths.get(index), self.state(index));
        (0..self.ends.sources).for_each(|index| copy(&mut next, index));
        for (index, owner) in (self.ends.sources..self.ends.exports).zip(&self.owners) {
            if !targets.contains_key(&(*owner as usize)) {
                copy(&mut next, index);
                next.owners.push(*owner);
            }
        }
        for (target, exports) in targets {
            for (path, content) in exports {
                next.push(path, state_of(store, root, path, *content));
                next.owners.push(*target as u32);
            }
        }
        next.ends = Ends { exports: next.paths.len(), ..self.ends };
        (self.ends.exports..self.ends.directories).for_each(|index| copy(&mut next, index));
        next.ends.directories = next.paths.len();
        next.reports = std::mem::take(&mut self.reports);
        *self = next;
    }

    /// Sets the directories that patterns walked through; the packages found there are compared when one changed.
    pub(crate) fn set_walk(&mut self, walk: &PackageWalk) {
        walk.directories.iter().for_each(|(path, state)| self.push(path, *state));
        self.ends.directories = self.paths.len();
        self.packages.clone_from(&walk.packages);
    }

    pub(crate) fn set_report(&mut self, root: &Utf8Path, target: usize, report: &TargetReport) {
        let below = |path: &Utf8Path| path.strip_prefix(root).unwrap_or(path).to_string();
        let report = Report {
            target: target as u32,
            label: report.label.to_string(),
            kind: ReportKind::of(report.kind),
            success: report.success,
            lines: report.lines.clone(),
            data: report.data.clone().into(),
            exports: report.exports.iter().map(|path| below(path)).collect(),
            contents: report.contents.clone(),
            key: report.shallow_key,
            outcome: report.outcome,
        };
        match self.reports.iter_mut().find(|known| known.target == report.target) {
            Some(known) => *known = report,
            None => self.reports.push(report),
        }
    }

    /// Stores this and `table` under a request's key.
    pub(crate) fn remember(&self, store: &Store, key: Digest, table: &TargetTable) -> Result<(), StoreFault> {
        self.write(store, key, store.put_blob(&encode(table)?)?)
    }

    fn write(&self, store: &Store, key: Digest, table: Digest) -> Result<(), StoreFault> {
        let glance = store.put_blob(&encode(self)?)?;
        store.put_record(RecordKind::Graph, key, &Record { glance, table }, References::blobs([glance, table]))
    }

    fn push(&mut self, path: &str, state: FileState) {
        self.paths.push(path);
        self.states.extend_from_slice(&state.to_bytes());
    }

    fn state(&self, index: usize) -> FileState {
        FileState::from_bytes(&self.states.as_chunks::<{ FileState::BYTES }>().0[index])
    }

    fn set_state(&mut self, index: usize, state: FileState) {
        self.states.as_chunks_mut::<{ FileState::BYTES }>().0[index] = state.to_bytes();
    }

    fn is_sound(&self) -> bool {
        let Ends { build_files, sources, exports, directories } = self.ends;
        let entries = self.paths.len();
        self.states.len() == entries * FileState::BYTES
            && [build_files, sources, exports, directories].is_sorted()
            && directories == entries
            && self.files.len() == sources - build_files
            && self.owners.len() == exports - sources
    }

    /// The entries whose stamps do not prove that nothing changed, in order.
    fn doubtful(&self, root: &Utf8Path) -> Vec<usize> {
        /// A stamp takes about 1 µs, a thread 30.
        const WORTH_A_THREAD: usize = 2000;
        let entries = self.paths.len();
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(entries / WORTH_A_THREAD).max(1);
        let share = entries.div_ceil(threads).max(1);
        std::thread::scope(|scope| {
            let look = |start: usize| {
                let mut place = String::new();
                (start..entries.min(start + share)).filter(|index| !self.is_proven(root, *index, &mut place)).collect::<Vec<_>>()
            };
            let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || look(thread * share))).collect();
            let mut doubtful = look(0);
            for other in others {
                match other.join() {
                    Ok(found) => doubtful.extend(found),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            doubtful
        })
    }

    fn is_proven(&self, root: &Utf8Path, index: usize, place: &mut String) -> bool {
        FileStamp::at(join(place, root, self.paths.get(index))).is_some_and(|stamp| self.state(index).proves(&stamp))
    }

    fn look_at(&self, index: usize, store: &Store, sources: &SourceReader) -> Seen {
        if index >= self.ends.exports {
            return Seen::Directory;
        }
        let path = self.paths.get(index);
        let recorded = self.state(index).digest;
        let is_source = (self.ends.build_files..self.ends.sources).contains(&index);
        let state = if is_source {
            crate::SourcePath::parse_full(path).ok().and_then(|path| sources.state(store, &path).ok().flatten())
        } else {
            store.source_state(&sources.root().join(path)).ok().flatten()
        };
        match state {
            Some(state) if state.digest == recorded => Seen::Same(state),
            Some(state) if is_source => Seen::Source(self.files[index - self.ends.build_files] as usize, state),
            _ => Seen::Other,
        }
    }

    /// Walks through the workspace; whether it has the same packages, in the same directories.
    fn walk_again(&mut self, root: &Utf8Path) -> bool {
        let walk = PackageWalk::of(root);
        let directories = self.ends.exports..self.ends.directories;
        let is_same = walk.packages == self.packages
            && walk.directories.len() == directories.len()
            && walk.directories.iter().zip(directories.clone()).all(|((path, _), index)| path == self.paths.get(index));
        if is_same {
            directories.zip(&walk.directories).for_each(|(index, (_, state))| self.set_state(index, *state));
        }
        is_same
    }
}

impl Report {
    fn restore(&self, root: &Utf8Path) -> Option<TargetReport> {
        Some(TargetReport {
            label: crate::Label::parse(&self.label, &crate::PackageName::in_workspace("")).ok()?,
            kind: self.kind.rule_kind(),
            cached: true,
            success: self.success,
            lines: self.lines.clone(),
            data: self.data.to_vec(),
            exports: self.exports.iter().map(|path| root.join(path)).collect(),
            contents: self.contents.clone(),
            shallow_key: self.key,
            outcome: self.outcome,
            recorded: true,
        })
    }
}

/// The state of a file that had the digest `used` when it was read; distrusted when it has another one by now.
fn state_of(store: &Store, root: &Utf8Path, path: &str, used: Digest) -> FileState {
    // The stat cache knows files by their real paths; a link is looked at in full each time.
    match store.source_state(&root.join(path)) {
        Ok(Some(state)) if state.digest == used => state,
        _ => FileState { stamp: FileStamp::default(), digest: used, recorded_ns: 0 }.distrusted(),
    }
}

/// `root/path` in `place`, which is written again and again.
fn join<'a>(place: &'a mut String, root: &Utf8Path, path: &str) -> &'a Utf8Path {
    place.clear();
    if !path.starts_with('/') {
        place.push_str(root.as_str());
        if !path.is_empty() {
            place.push('/');
        }
    }
    place.push_str(path);
    Utf8Path::new(place)
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>, StoreFault> {
    postcard::to_stdvec(value).map_err(|error| StoreFault::Encoding { what: "a graph", message: error.to_string() })
}
