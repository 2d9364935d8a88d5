//! The stage wrapper: key, record, and only then the function.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use salsa::Accumulator;
use serde::{Deserialize, Serialize};
use store::{BlobMiss, Digest, KeyBuilder, KeyLock, RecordKind, References, StoreFault, StoreReport};

use crate::shared::Shared;
use crate::{
    Artifact, Body, Cause, Db, Event, Facts, Failure, Figure, Label, Made, Progress, SourceFile, StageEvent, StageId, StageName,
    noted_reads,
};

/// Whether a stage may be answered from a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// Its result depends on its inputs alone.
    Recorded,
    /// It executes in every build, as a run on hardware does; its body is stored all the same.
    Never,
}

/// Which stage runs for which target.
#[derive(Clone, Debug)]
pub struct StageSpec {
    /// The stage's name, part of its key.
    pub name: &'static str,
    /// Digest of the stage's code and tables, part of its key.
    pub fingerprint: Digest,
    /// The target it works for; not part of the key, so targets with equal inputs share results.
    pub label: Label,
    /// Which of several pieces, for messages; not part of the key.
    pub index: Option<String>,
    /// Whether a record may answer.
    pub caching: Caching,
}

impl StageSpec {
    /// A recorded stage without index.
    pub fn new(name: &'static str, fingerprint: Digest, label: &Label) -> StageSpec {
        StageSpec { name, fingerprint, label: label.target(), index: None, caching: Caching::Recorded }
    }

    /// The same for one of several pieces.
    #[must_use]
    pub fn index(mut self, index: impl ToString) -> StageSpec {
        self.index = Some(index.to_string());
        self
    }

    /// The same, executed in every build.
    #[must_use]
    pub fn never_cached(mut self) -> StageSpec {
        self.caching = Caching::Never;
        self
    }

    fn id(&self) -> StageId {
        StageId { label: self.label.clone(), stage: StageName { stage: self.name.to_owned(), index: self.index.clone() } }
    }
}

/// One named digest that a stage reads; the name is part of the key and of what `why` explains.
pub type StageInput = (&'static str, Digest);

/// What is recorded of a stage under its key.
#[derive(Serialize, Deserialize)]
struct StageRecord<F> {
    about: StageFacts,
    facts: F,
}

/// What is known of a stage's execution, by its deep key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageFacts {
    /// Digest of the artifact.
    pub digest: Digest,
    /// Bytes of the artifact's encoding.
    pub bytes: u64,
    /// Its figures, in the stage's order.
    pub figures: Vec<(String, Figure)>,
    /// Digest of the code and tables it was made by.
    pub fingerprint: Digest,
    /// Names and digests of what it read, in the order of the key.
    pub inputs: Vec<(String, Digest)>,
    /// Wall time of the execution in milliseconds.
    pub elapsed_ms: f64,
}

impl StageFacts {
    /// Those under a deep key, when it has a record.
    pub fn read(store: &store::Store, key: &Digest) -> Result<Option<StageFacts>, StoreFault> {
        // They are the record's first field, and what follows in the encoding is not read.
        store.record(RecordKind::Action, key)
    }
}

/// Finds the artifact of a stage in the store, or runs `compute` and stores what it gives.
///
/// Call it inside a query, after the queries that gave `inputs`. `compute` may call [`load`] and [`read_source`]; it
/// must read nothing that is not in `inputs`, and must not wait for the engine's worker threads.
pub fn stage<T: Body, F: Facts>(
    db: &dyn Db,
    spec: &StageSpec,
    inputs: &[StageInput],
    compute: impl FnOnce() -> Result<Made<T, F>, Failure>,
) -> Result<Artifact<T, F>, Failure> {
    db.visit(spec.caching == Caching::Never);
    leave_if_interrupted(db);
    let id = spec.id();
    let key = key_of(spec, inputs);
    let attempt = Attempt { shared: db.shared(), spec, key, inputs, id: &id };
    let artifact = attempt.run(compute).map_err(|failure| failure.or_at(&id.label, &id.stage))?;
    StageNote(Arc::new(NotedStage { id, key, digest: artifact.digest() })).accumulate(db);
    Ok(artifact)
}

/// What a stage gave. Salsa keeps one with every query that called [`stage`], so `QUERY::accumulated::<StageNote>` of a
/// target's last query are the stages that the target is made of now, whether they executed, were found in the store or
/// were kept in memory. Salsa makes room for four at the first, so what it says lies outside: 0.3 KB less for each stage.
#[salsa::accumulator]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StageNote(pub Arc<NotedStage>);

/// What a [`StageNote`] says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotedStage {
    /// Which stage, for which target.
    pub id: StageId,
    /// Its deep key.
    pub key: Digest,
    /// Digest of its artifact.
    pub digest: Digest,
}

/// Leaves the query that calls it when the build was stopped. Nothing is remembered of a query that is left, and everything
/// of those that are finished; [`crate::Engine::build`] and the pieces of waves catch what is thrown here.
fn leave_if_interrupted(db: &dyn Db) {
    if db.shared().is_interrupted() {
        db.cancellation_token().cancel();
        db.unwind_if_revision_cancelled();
    }
}

/// The deep key of a stage.
pub fn key_of(spec: &StageSpec, inputs: &[StageInput]) -> Digest {
    let mut key = KeyBuilder::new("stage");
    key.text(spec.name).digest(&spec.fingerprint);
    for (name, digest) in inputs {
        key.text(name).digest(digest);
    }
    key.finish()
}

type Figures = Vec<(String, Figure)>;

struct Attempt<'a> {
    shared: &'a Shared,
    spec: &'a StageSpec,
    key: Digest,
    inputs: &'a [StageInput],
    id: &'a StageId,
}

/// A stage that took longer is written at once, under its key's lock, so that it never runs twice.
const WRITE_AT_ONCE: Duration = Duration::from_millis(20);

impl Attempt<'_> {
    fn run<T: Body, F: Facts>(&self, compute: impl FnOnce() -> Result<Made<T, F>, Failure>) -> Result<Artifact<T, F>, Failure> {
        if self.spec.caching == Caching::Never {
            return self.execute(compute);
        }
        if let Some(artifact) = self.recorded()? {
            return Ok(artifact);
        }
        let lock: KeyLock = self.shared.store().lock_key(&self.key)?;
        if lock.waited()
            && let Some(artifact) = self.recorded()?
        {
            return Ok(artifact);
        }
        self.execute(compute)
    }

    fn recorded<T: Body, F: Facts>(&self) -> Result<Option<Artifact<T, F>>, StoreFault> {
        let started = Instant::now();
        let Some(record) = self.shared.record::<StageRecord<F>>(RecordKind::Action, &self.key)? else {
            return Ok(None);
        };
        let StageRecord { about, facts } = record;
        self.shared.note_stage(self.id.clone(), self.key, about.digest);
        self.tell(self.event(Progress::Cached, true, started.elapsed(), Some(about.digest), about.figures));
        Ok(Some(Artifact::new(about.digest, facts)))
    }

    fn execute<T: Body, F: Facts>(&self, compute: impl FnOnce() -> Result<Made<T, F>, Failure>) -> Result<Artifact<T, F>, Failure> {
        self.tell(self.event(Progress::Started, true, Duration::ZERO, None, Vec::new()));
        self.shared.note_executed(self.id.clone());
        let started = Instant::now();
        let (made, reads) = noted_reads::during(compute);
        let elapsed = started.elapsed();
        let stored = made.and_then(|made| {
            // What was read is what the key says; all the same nobody wants the result of a file that moved on.
            reads.sources.iter().try_for_each(|(path, digest)| self.shared.sources().check(self.shared.store(), path, *digest))?;
            self.keep(made, elapsed)
        });
        let mut read = reads.artifacts;
        read.extend(self.inputs.iter().map(|(_, digest)| *digest));
        let help_ms = milliseconds(reads.help);
        let ended = |success, digest, figures| StageEvent {
            reads: read,
            help_ms,
            ..self.event(Progress::Executed, success, elapsed, digest, figures)
        };
        match stored {
            Ok((artifact, figures)) => {
                self.tell(ended(true, Some(artifact.digest()), figures));
                Ok(artifact)
            }
            Err(failure) => {
                self.tell(ended(false, None, Vec::new()));
                Err(failure)
            }
        }
    }

    fn keep<T: Body, F: Facts>(&self, made: Made<T, F>, elapsed: Duration) -> Result<(Artifact<T, F>, Figures), Failure> {
        let encoded: Arc<[u8]> =
            postcard::to_stdvec(&made.body).map_err(|error| Failure::build(format!("the result cannot be encoded: {error}")))?.into();
        let digest = Digest::of(&encoded);
        let length = encoded.len();
        self.shared.keep_body(digest, Arc::new(made.body), length);
        self.shared.add_blob(digest, encoded);
        self.shared.note_stage(self.id.clone(), self.key, digest);
        let about = StageFacts {
            digest,
            bytes: length as u64,
            figures: made.figures,
            fingerprint: self.spec.fingerprint,
            inputs: self.inputs.iter().map(|(name, digest)| ((*name).to_owned(), *digest)).collect(),
            elapsed_ms: milliseconds(elapsed),
        };
        let record = StageRecord { about, facts: made.facts };
        if self.spec.caching == Caching::Recorded {
            self.shared.add_record(RecordKind::Action, self.key, &record, References::blobs([digest]))?;
        }
        self.shared.note_work(elapsed);
        if elapsed > WRITE_AT_ONCE || self.shared.has_much_to_write() {
            self.shared.flush()?;
        }
        Ok((Artifact::new(digest, record.facts), record.about.figures))
    }

    fn tell(&self, event: StageEvent) {
        self.shared.tell(&Event::Stage(event));
    }

    fn event(&self, progress: Progress, success: bool, elapsed: Duration, digest: Option<Digest>, figures: Figures) -> StageEvent {
        let (id, elapsed_ms) = (self.id.clone(), milliseconds(elapsed));
        StageEvent { id, progress, success, elapsed_ms, help_ms: 0.0, key: self.key, digest, reads: Vec::new(), figures }
    }
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The body of an artifact, decoded once in a process. A body that is not in the store any more is a failure that makes
/// [`crate::Engine::build`] run its producer again.
pub fn load<T: Body, F>(db: &dyn Db, artifact: &Artifact<T, F>) -> Result<Arc<T>, Failure> {
    db.visit(false);
    noted_reads::artifact(artifact.digest());
    db.shared().load_body(&artifact.digest())
}

/// The bytes of a source file, read inside a stage's function. They are those of the digest in the stage's key.
pub fn read_source(db: &dyn Db, file: SourceFile) -> Result<Arc<[u8]>, Failure> {
    db.visit(false);
    let (path, digest) = (file.path(db), file.digest(db));
    let bytes = db.shared().sources().read(path, digest)?;
    noted_reads::source(path, digest);
    Ok(bytes)
}

/// Where a source file lies, for a program that a stage's function executes or lets execute. Its digest is in the stage's key, and
/// like a file that was read it must be the same when the stage ends.
pub fn locate_source(db: &dyn Db, file: SourceFile) -> Result<Utf8PathBuf, Failure> {
    db.visit(false);
    let (path, digest) = (file.path(db), file.digest(db));
    let place = db.shared().sources().locate(db.shared().store(), path, digest)?;
    noted_reads::source(path, digest);
    Ok(place)
}

/// The fields of a declared target, whose rule's data is a `T`.
pub fn data_of<T: Any + Send + Sync>(db: &dyn Db, label: &Label) -> Result<Arc<T>, Failure> {
    let fault = |message: String| Failure::input(message).at_label(label);
    let target = db.target(label);
    let Some(declared) = target.declared(db) else { return Err(fault("there is no such target".to_owned())) };
    declared.data.clone().downcast().map_err(|_| fault(format!("a `{}` cannot be used here", declared.rule)))
}

impl Shared {
    /// The body of `digest`, decoded as `T`.
    pub(crate) fn load_body<T: Body>(&self, digest: &Digest) -> Result<Arc<T>, Failure> {
        if let Some(body) = self.body::<T>(digest) {
            return Ok(body);
        }
        let bytes = self.blob(digest).map_err(|miss| self.lost(miss))?;
        match postcard::from_bytes::<T>(&bytes) {
            Ok(body) => {
                let body = Arc::new(body);
                self.keep_body(*digest, body.clone(), bytes.len());
                Ok(body)
            }
            Err(error) => {
                self.forget(digest)?;
                Err(Failure::new(Cause::Lost(*digest), format!("blob {} has another layout: {error}", digest.short())))
            }
        }
    }

    /// The failure for a blob that a record promised; its producers' records are forgotten. The store has reported a
    /// damaged blob already.
    pub(crate) fn lost(&self, miss: BlobMiss) -> Failure {
        if matches!(miss, BlobMiss::Absent { .. }) {
            match self.stage_of(&miss.digest()) {
                Some(id) => {
                    let message = format!("the record of {id} is there, but its result is gone: {miss}; it is made again");
                    self.tell(&Event::Notice { label: None, message });
                }
                None => self.tell(&Event::Store(StoreReport::Blob(miss.clone()))),
            }
        }
        if matches!(&miss, BlobMiss::Unreadable { fault, .. } if fault.may_pass()) {
            return miss.into();
        }
        match self.forget(&miss.digest()) {
            Ok(()) => miss.into(),
            Err(fault) => fault.into(),
        }
    }
}
