//! The salsa database: inputs are declarations of targets and digests of files.
//!
//! Queries are plain functions `#[salsa::tracked] fn stage_name(db: &dyn Db, key) -> Result<Artifact<T>, Failure>` in
//! other crates. What they read comes from [`Db::target`], [`Db::source`] and other queries, and nothing else.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use salsa::Setter;
use store::Digest;

use crate::inputs::Revisit;
use crate::label_map::LabelMap;
use crate::shared::{Shared, lock};
use crate::{Declared, Failure, InterruptHandle, Label, SourceFile, SourcePath, Target, cancellation};

/// The database as queries see it.
#[salsa::db]
pub trait Db: salsa::Database {
    /// The one target input of `label`; undeclared when the workspace has no such target.
    fn target(&self, label: &Label) -> Target;

    /// The one source input of `path`; absent when no loaded target names it.
    fn source(&self, path: &SourcePath) -> SourceFile;

    /// Store, events and caches; not part of any key.
    fn shared(&self) -> &Shared;

    /// Threads that a stage's function may use for work of its own; not part of any key.
    fn threads(&self) -> usize;

    /// Reads the epoch, so that the calling query runs again when it is raised.
    fn visit(&self, every_build: bool);
}

/// The database, and the handle a command holds. Clones share everything; drop them before [`Engine::build`].
#[salsa::db]
#[derive(Clone)]
pub struct Engine {
    storage: salsa::Storage<Engine>,
    shared: Arc<Shared>,
    inputs: Arc<Inputs>,
    pool: Arc<rayon::ThreadPool>,
    shuffle: Option<u64>,
    /// Whether exported files are written.
    pub(crate) exports: bool,
    /// Whether the first point of a sweep that fails ends the build.
    pub(crate) fail_fast: bool,
}

#[derive(Default)]
struct Inputs {
    targets: Mutex<LabelMap<Target>>,
    sources: Mutex<HashMap<SourcePath, SourceFile>>,
    revisit: OnceLock<Revisit>,
    ran_uncached: AtomicBool,
}

#[salsa::db]
impl salsa::Database for Engine {}

#[salsa::db]
impl Db for Engine {
    fn target(&self, label: &Label) -> Target {
        let label = label.target();
        let mut targets = lock(&self.inputs.targets);
        if let Some(target) = targets.get(&label) {
            return *target;
        }
        let target = Target::new(self, label.clone(), None, None);
        targets.insert(label, target);
        target
    }

    fn source(&self, path: &SourcePath) -> SourceFile {
        let mut sources = lock(&self.inputs.sources);
        *sources.entry(path.clone()).or_insert_with(|| SourceFile::new(self, path.clone(), Digest::ABSENT))
    }

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    fn visit(&self, every_build: bool) {
        let revisit = self.revisit();
        revisit.epoch(self);
        if every_build {
            revisit.build(self);
            self.inputs.ran_uncached.store(true, Ordering::Relaxed);
        }
    }
}

/// How an engine works; nothing here reaches a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// Worker threads of waves, at least 1.
    pub threads: usize,
    /// Visits the pieces of every wave in an order drawn from this seed instead of their own.
    pub shuffle: Option<u64>,
}

/// How often a build is tried after stored bodies were lost. Every attempt checks all bodies it met, so more than two are
/// needed only when bodies are lost while it runs.
const LOST_ATTEMPTS: usize = 8;

impl Engine {
    /// An engine without targets.
    pub fn new(shared: Shared, options: EngineOptions) -> Result<Engine, Failure> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads.max(1))
            .thread_name(|index| format!("worker-{index}"))
            .build()
            .map_err(|error| Failure::new(crate::Cause::Disk, format!("cannot start worker threads: {error}")))?;
        Ok(Engine {
            storage: salsa::Storage::new(None),
            shared: Arc::new(shared),
            inputs: Arc::default(),
            pool: Arc::new(pool),
            shuffle: options.shuffle,
            exports: true,
            fail_fast: false,
        })
    }

    /// The same, leaving the workspace's folder of artifacts alone.
    #[must_use]
    pub fn without_exports(self) -> Engine {
        Engine { exports: false, ..self }
    }

    /// The same, ending a build at the first point of a sweep that fails instead of building the others.
    #[must_use]
    pub fn failing_fast(self) -> Engine {
        Engine { fail_fast: true, ..self }
    }

    /// Declares a target, or with `None` takes it away. Does nothing when nothing changed.
    pub fn set_target(&mut self, label: &Label, declared: Option<Declared>) {
        let target = self.target(label);
        if *target.declared(self) != declared {
            target.set_declared(self).to(declared);
        }
    }

    /// The store.
    pub fn store(&self) -> &store::Store {
        self.shared.store()
    }

    /// Reads source files.
    pub fn sources(&self) -> &crate::SourceReader {
        self.shared.sources()
    }

    /// The digest of a source as it is now.
    pub(crate) fn source_digest(&self, path: &SourcePath) -> Result<Digest, Failure> {
        self.shared.sources().digest(self.shared.store(), path)
    }

    /// Says what a target gave. Does nothing when it gave the same before.
    pub(crate) fn set_outcome(&mut self, label: &Label, outcome: Digest) {
        let target = self.target(label);
        if target.outcome(self) != Some(outcome) {
            target.set_outcome(self).to(Some(outcome));
        }
    }

    /// Gives a file's digest. Does nothing when it is the old one.
    pub fn set_source(&mut self, path: &SourcePath, digest: Digest) {
        let source = self.source(path);
        if source.digest(self) != digest {
            source.set_digest(self).to(digest);
        }
    }

    /// Labels of the targets set so far, declared or not.
    pub(crate) fn known_targets(&self) -> Vec<Label> {
        lock(&self.inputs.targets).labels().cloned().collect()
    }

    /// Runs `attempt`, which calls queries. What it made is written to the store when it is much or took long, at the
    /// latest by [`Shared::flush`]. When a body that a record promised
    /// turns out to be lost, all bodies met so far are checked, the records of the lost ones are forgotten, and `attempt`
    /// runs again.
    pub fn build<T>(&mut self, mut attempt: impl FnMut(&Engine) -> Result<T, Failure>) -> Result<T, Failure> {
        self.begin_build();
        for _ in 1..LOST_ATTEMPTS {
            let result = self.attempt(&mut attempt);
            match &result {
                Err(failure) if matches!(failure.cause(), crate::Cause::Lost(_)) => {
                    self.shared.forget_lost()?;
                    self.shared.report_store();
                    self.raise_epoch();
                }
                _ => return result,
            }
        }
        self.attempt(&mut attempt)
    }

    fn attempt<T>(&mut self, attempt: &mut impl FnMut(&Engine) -> Result<T, Failure>) -> Result<T, Failure> {
        let result = cancellation::catch(|| attempt(self)).unwrap_or_else(|_| Err(Failure::interrupted()));
        let flushed = if result.is_err() || self.shared.has_much_to_write() { self.shared.flush() } else { Ok(()) };
        self.shared.report_store();
        let result = result.and_then(|value| flushed.map(|()| value));
        // A failure to read or write may pass, so it must not be remembered. A lost body raises the epoch in `build`, and
        // of a stopped build nothing is remembered that could be forgotten.
        if result.as_ref().is_err_and(|failure| matches!(failure.cause(), crate::Cause::Disk)) {
            self.raise_epoch();
        }
        result
    }

    fn begin_build(&mut self) {
        if self.inputs.ran_uncached.swap(false, Ordering::Relaxed) {
            let revisit = self.revisit();
            let next = revisit.build(self) + 1;
            revisit.set_build(self).to(next);
        }
    }

    fn raise_epoch(&mut self) {
        let revisit = self.revisit();
        let next = revisit.epoch(self) + 1;
        revisit.set_epoch(self).to(next);
    }

    fn revisit(&self) -> Revisit {
        *self.inputs.revisit.get_or_init(|| Revisit::new(self, 0, 0))
    }

    /// Calls `work` for every piece over clones of the database on the worker threads. Call it outside queries only; a
    /// failure is found again by the query that collects the pieces.
    pub fn wave<K: Sync>(&self, label: &Label, wave: &'static str, pieces: &[K], work: impl Fn(&Engine, &K) + Sync) {
        self.growing_wave(label, wave, pieces.iter().map(|piece| (0, piece)).collect(), |engine, piece| {
            work(engine, piece);
            Vec::new()
        });
    }

    /// The same where pieces give further ones. Each comes with what it is guessed to cost, in any unit: what takes longest begins
    /// first, so that the threads end together.
    pub fn growing_wave<K: Send>(
        &self,
        label: &Label,
        wave: &'static str,
        pieces: Vec<(u64, K)>,
        work: impl Fn(&Engine, K) -> Vec<(u64, K)> + Sync,
    ) {
        crate::wave::run(self, &crate::wave::Wave { label, name: wave, shuffle: self.shuffle }, pieces, work);
    }

    pub(crate) fn pool(&self) -> &rayon::ThreadPool {
        &self.pool
    }

    /// Stops builds of this engine from another thread.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle::of(&self.shared)
    }
}
