//! What all clones of an engine share besides salsa's storage: store, events, bodies in memory, who made what.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{Batch, BlobMiss, Digest, RecordKind, References, Store, StoreFault};

use crate::{Event, EventSink, Failure, SourceReader, StageId};

/// See the module. Everything here is immaterial to results: with another store or sink the digests are the same.
pub struct Shared {
    store: Store,
    sink: Arc<dyn EventSink>,
    sources: SourceReader,
    writing: WriteBehind,
    bodies: Mutex<Bodies>,
    /// Digests of bodies and the keys of the records that promise them.
    producers: Mutex<BTreeSet<(Digest, Digest)>>,
    executed: Mutex<Vec<StageId>>,
    stages: Mutex<HashMap<StageId, Digest>>,
    interrupted: Arc<AtomicBool>,
}

/// Stops builds of an engine, from any thread: stages that have not started do not start, and [`Engine::build`] gives
/// [`Failure::interrupted`] when those that run have ended.
///
/// [`Engine::build`]: crate::Engine::build
#[derive(Clone)]
pub struct InterruptHandle {
    interrupted: Arc<AtomicBool>,
    shared: Weak<Shared>,
}

impl InterruptHandle {
    pub(crate) fn of(shared: &Arc<Shared>) -> InterruptHandle {
        InterruptHandle { interrupted: shared.interrupted.clone(), shared: Arc::downgrade(shared) }
    }

    /// Stops the build.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// Lets builds run again.
    pub fn reset(&self) {
        self.interrupted.store(false, Ordering::Relaxed);
    }

    /// Whether it was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Gives the engine's store to `work`, unless the engine is gone.
    pub fn with_store(&self, work: impl FnOnce(&Store)) {
        if let Some(shared) = self.shared.upgrade() {
            work(&shared.store);
        }
    }

    /// Writes what is finished to the store, for a process that ends without waiting for the stages that run.
    pub fn keep_finished(&self) -> Result<(), Failure> {
        self.shared.upgrade().map_or(Ok(()), |shared| shared.flush())
    }
}

impl Shared {
    /// An engine's surroundings.
    pub fn new(store: Store, sink: Arc<dyn EventSink>, sources: SourceReader) -> Shared {
        Shared {
            store,
            sink,
            sources,
            writing: WriteBehind::default(),
            bodies: Mutex::default(),
            producers: Mutex::default(),
            executed: Mutex::default(),
            stages: Mutex::default(),
            interrupted: Arc::default(),
        }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Reads source files.
    pub fn sources(&self) -> &SourceReader {
        &self.sources
    }

    /// Tells an event to the sink.
    pub fn tell(&self, event: &Event) {
        self.sink.event(event);
    }

    /// Does `work` and tells how long it took.
    pub fn timed<R>(&self, name: &'static str, work: impl FnOnce() -> R) -> R {
        let started = Instant::now();
        let result = work();
        self.tell(&Event::Work { name, elapsed: started.elapsed() });
        result
    }

    /// The stages whose function ran since the last call, in order.
    pub fn take_executed(&self) -> BTreeSet<StageId> {
        std::mem::take(&mut *lock(&self.executed)).into_iter().collect()
    }

    /// Digest of every stage's artifact seen by this engine, executed or cached, in order.
    pub fn stage_digests(&self) -> BTreeMap<StageId, Digest> {
        lock(&self.stages).iter().map(|(id, digest)| (id.clone(), *digest)).collect()
    }

    /// Whether the user stopped the build.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Writes everything made so far to the store.
    pub fn flush(&self) -> Result<(), Failure> {
        self.timed("store", || self.writing.flush(&self.store).map_err(Failure::from))
    }

    pub(crate) fn report_store(&self) {
        for report in self.store.take_reports() {
            self.tell(&Event::Store(report));
        }
    }

    pub(crate) fn record<T: DeserializeOwned>(&self, kind: RecordKind, key: &Digest) -> Result<Option<T>, StoreFault> {
        match self.unwritten_record(kind, key) {
            Some(record) => Ok(Some(record)),
            None => self.store.record(kind, key),
        }
    }

    /// A record that waits to be written.
    pub(crate) fn unwritten_record<T: DeserializeOwned>(&self, kind: RecordKind, key: &Digest) -> Option<T> {
        self.writing.find_record(kind, key)
    }

    /// Adds a blob to what is written next.
    pub fn add_blob(&self, digest: Digest, bytes: Arc<[u8]>) {
        lock(&self.writing.slots).open.blob_with_digest(digest, bytes);
    }

    pub(crate) fn add_record<T: Serialize>(
        &self,
        kind: RecordKind,
        key: Digest,
        value: &T,
        references: References,
    ) -> Result<(), StoreFault> {
        lock(&self.writing.slots).open.record(kind, key, value, references)
    }

    /// Notes that a stage took `elapsed` for something that waits to be written.
    pub(crate) fn note_work(&self, elapsed: Duration) {
        lock(&self.writing.slots).work += elapsed;
    }

    /// Whether so much waits to be written, or took so long, that it should be now.
    pub(crate) fn has_much_to_write(&self) -> bool {
        // Entries of a transaction share the database's pages, the fewer the larger it is: with 512 instead, 100,000 small
        // stages took 11.4 s.
        const ENTRIES: usize = 8192;
        const BYTES: usize = 8 << 20;
        // What a killed process may lose.
        const WORK: Duration = Duration::from_millis(250);
        let slots = lock(&self.writing.slots);
        slots.open.len() >= ENTRIES.max(slots.written / 8) || slots.open.blob_bytes() >= BYTES || slots.work >= WORK
    }

    /// The blob's bytes, from what waits to be written or from the store.
    pub fn blob(&self, digest: &Digest) -> Result<Arc<[u8]>, BlobMiss> {
        match self.writing.find_blob(digest) {
            Some(bytes) => Ok(bytes),
            None => self.store.blob(digest).map(Arc::from),
        }
    }

    /// Forgets the records that promised `digest`, so that its producers run again.
    pub(crate) fn forget(&self, digest: &Digest) -> Result<(), StoreFault> {
        let range = (*digest, Digest::from_bytes([0; 32]))..=(*digest, Digest::from_bytes([0xff; 32]));
        let keys: Vec<Digest> = lock(&self.producers).range(range).map(|(_, key)| *key).collect();
        for key in keys {
            lock(&self.producers).remove(&(*digest, key));
            lock(&self.writing.slots).open.remove_record(RecordKind::Action, &key);
            self.store.remove_record(RecordKind::Action, &key)?;
        }
        Ok(())
    }

    /// Reads every body met so far and forgets the records of those that are lost or damaged.
    pub(crate) fn forget_lost(&self) -> Result<(), StoreFault> {
        let mut met: Vec<Digest> = lock(&self.producers).iter().map(|(digest, _)| *digest).collect();
        met.dedup();
        let is_lost = |digest: &&Digest| match self.blob(digest) {
            Ok(_) => false,
            Err(BlobMiss::Unreadable { fault, .. }) => !fault.may_pass(),
            Err(BlobMiss::Absent { .. } | BlobMiss::Corrupt { .. }) => true,
        };
        met.iter().filter(is_lost).try_for_each(|digest| self.forget(digest))
    }

    pub(crate) fn note_stage(&self, id: StageId, key: Digest, digest: Digest) {
        lock(&self.producers).insert((digest, key));
        lock(&self.stages).insert(id, digest);
    }

    /// A stage whose artifact this is, the first in order.
    pub(crate) fn stage_of(&self, artifact: &Digest) -> Option<StageId> {
        lock(&self.stages).iter().filter(|(_, digest)| *digest == artifact).map(|(id, _)| id).min().cloned()
    }

    pub(crate) fn note_executed(&self, id: StageId) {
        lock(&self.executed).push(id);
    }

    pub(crate) fn body<T: Any + Send + Sync>(&self, digest: &Digest) -> Option<Arc<T>> {
        lock(&self.bodies).get(digest)
    }

    pub(crate) fn keep_body<T: Any + Send + Sync>(&self, digest: Digest, body: Arc<T>, bytes: usize) {
        lock(&self.bodies).insert(digest, body, bytes);
    }
}

/// Blobs and records on their way to the store: gathered, so that a wave of small results costs one transaction and
/// one pack, and still found while they are written.
#[derive(Default)]
struct WriteBehind {
    slots: Mutex<Slots>,
    one_writer: Mutex<()>,
}

#[derive(Default)]
struct Slots {
    open: Batch,
    work: Duration,
    /// Entries written so far.
    written: usize,
    written_now: Option<Arc<Batch>>,
}

impl WriteBehind {
    fn flush(&self, store: &Store) -> Result<(), StoreFault> {
        let _one = lock(&self.one_writer);
        let batch = {
            let mut slots = lock(&self.slots);
            let batch = Arc::new(std::mem::take(&mut slots.open));
            slots.work = Duration::ZERO;
            slots.written_now = Some(batch.clone());
            batch
        };
        let result = store.commit(&batch);
        let mut slots = lock(&self.slots);
        slots.written_now = None;
        slots.written += batch.len();
        if result.is_err() {
            // The queries that made it do not run again in this process.
            slots.open.add_missing(Arc::unwrap_or_clone(batch));
        }
        result
    }

    fn find<R>(&self, find: impl Fn(&Batch) -> Option<R>) -> Option<R> {
        let slots = lock(&self.slots);
        find(&slots.open).or_else(|| slots.written_now.as_deref().and_then(find))
    }

    fn find_blob(&self, digest: &Digest) -> Option<Arc<[u8]>> {
        self.find(|batch| batch.find_blob(digest))
    }

    fn find_record<T: DeserializeOwned>(&self, kind: RecordKind, key: &Digest) -> Option<T> {
        self.find(|batch| batch.find_record(kind, key))
    }
}

/// Decoded bodies, the most recently used ones up to a bound on their encoded size.
#[derive(Default)]
struct Bodies {
    entries: BTreeMap<(Digest, u64), BodyEntry>,
    types: Vec<TypeId>,
    by_use: BTreeMap<u64, (Digest, u64)>,
    uses: u64,
    bytes: usize,
}

struct BodyEntry {
    body: Arc<dyn Any + Send + Sync>,
    bytes: usize,
    used: u64,
}

/// A guess: the reference workload's bodies are a tenth of it, and decoded bodies are up to three times as large.
const BODIES_BYTES: usize = 256 << 20;
/// Small bodies are read again faster than they are worth keeping: their entries are larger than they are.
const BODIES: usize = 4096;

impl Bodies {
    fn get<T: Any + Send + Sync>(&mut self, digest: &Digest) -> Option<Arc<T>> {
        let key = (*digest, self.type_number(TypeId::of::<T>()));
        self.uses += 1;
        let entry = self.entries.get_mut(&key)?;
        self.by_use.remove(&entry.used);
        entry.used = self.uses;
        self.by_use.insert(self.uses, key);
        entry.body.clone().downcast().ok()
    }

    fn insert<T: Any + Send + Sync>(&mut self, digest: Digest, body: Arc<T>, bytes: usize) {
        let key = (digest, self.type_number(TypeId::of::<T>()));
        self.uses += 1;
        self.bytes += bytes;
        self.by_use.insert(self.uses, key);
        if let Some(old) = self.entries.insert(key, BodyEntry { body, bytes, used: self.uses }) {
            self.by_use.remove(&old.used);
            self.bytes -= old.bytes;
        }
        while (self.bytes > BODIES_BYTES || self.entries.len() > BODIES) && self.entries.len() > 1 {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((_, key)) = self.by_use.pop_first()
            && let Some(entry) = self.entries.remove(&key)
        {
            self.bytes -= entry.bytes;
        }
    }

    /// A digest may be the encoding of two types; types get numbers in the order they are met.
    fn type_number(&mut self, wanted: TypeId) -> u64 {
        let position = self.types.iter().position(|known| *known == wanted).unwrap_or_else(|| {
            self.types.push(wanted);
            self.types.len() - 1
        });
        position as u64
    }
}

/// A panic of another thread leaves no half-made state behind these locks, so poisoning is ignored.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
