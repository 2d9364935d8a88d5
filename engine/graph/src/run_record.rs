//! What every build leaves behind about itself: `log`, `why` and traces read it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use store::{Digest, RecordKind, Store, StoreFault};

use crate::shared::lock;
use crate::{Event, EventSink, Progress, StageEvent, StageName, TargetReport};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunOutcome {
    /// Everything was built, every verdict is a pass.
    Succeeded,
    /// Everything was built, a verdict is none.
    VerdictFailed,
    /// Something could not be built; the message.
    Failed(String),
    /// The user stopped it.
    Interrupted,
}

impl RunOutcome {
    /// In a word or two, as `log` and events have it.
    pub fn word(&self) -> &'static str {
        match self {
            RunOutcome::Succeeded => "success",
            RunOutcome::VerdictFailed => "verdict failed",
            RunOutcome::Failed(_) => "failed",
            RunOutcome::Interrupted => "interrupted",
        }
    }
}

/// A target in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetRun {
    /// Its label.
    pub label: String,
    /// Its shallow key.
    pub key: Digest,
    /// Whether it was answered from its record.
    pub cached: bool,
    /// Its verdict.
    pub success: bool,
}

/// What a stage did in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StageEnd {
    /// It executed.
    Executed,
    /// Its result was in the store.
    Found,
    /// It executed and failed.
    Failed,
}

/// A stage in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageRun {
    /// The target it worked for.
    pub label: String,
    /// Stage and index.
    pub name: StageName,
    /// Its deep key.
    pub key: Digest,
    /// Its artifact, when there is one.
    pub digest: Option<Digest>,
    /// What became of it.
    pub end: StageEnd,
    /// Milliseconds from the start of the run to its own.
    pub start_ms: f64,
    /// Wall time in milliseconds; of the look-up when found.
    pub elapsed_ms: f64,
    /// Which thread: 0 is the command's, others are workers.
    pub thread: u32,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The words of the command.
    pub command: Vec<String>,
    /// When it started, in milliseconds since 1970.
    pub started_ms: i64,
    /// Its wall time in milliseconds.
    pub elapsed_ms: f64,
    /// How it ended.
    pub outcome: RunOutcome,
    /// The targets that were built or answered, dependencies first.
    pub targets: Vec<TargetRun>,
    /// The stages that executed or were looked up, in the order in which they ended. Stages behind a target that was
    /// answered from its record were not asked.
    pub stages: Vec<StageRun>,
}

impl RunRecord {
    /// The newest `limit` runs of a store, newest first; one that cannot be read is left out.
    pub fn newest(store: &Store, limit: u32) -> Result<Vec<(i64, RunRecord)>, StoreFault> {
        let runs = store.runs(limit)?;
        Ok(runs.iter().filter_map(|run| Some((run.number, postcard::from_bytes(&run.value).ok()?))).collect())
    }

    /// Number of stages that ended so.
    pub fn count(&self, end: StageEnd) -> usize {
        self.stages.iter().filter(|stage| stage.end == end).count()
    }
}

/// Takes events on their way to a sink, and makes a run record of them.
pub struct RunRecorder {
    sink: Arc<dyn EventSink>,
    started: Instant,
    started_ms: i64,
    command: Vec<String>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    stages: Vec<StageRun>,
    targets: Vec<TargetRun>,
    threads: BTreeMap<String, u32>,
}

impl RunRecorder {
    /// A run of `command` that starts now.
    pub fn start(sink: Arc<dyn EventSink>, command: Vec<String>) -> RunRecorder {
        RunRecorder { sink, started: Instant::now(), started_ms: store::now_ms(), command, seen: Mutex::default() }
    }

    /// Notes a target.
    pub fn target(&self, report: &TargetReport) {
        let TargetReport { label, shallow_key, cached, success, .. } = report;
        let target = TargetRun { label: label.to_string(), key: *shallow_key, cached: *cached, success: *success };
        lock(&self.seen).targets.push(target);
    }

    /// Time since the start.
    pub fn elapsed(&self) -> std::time::Duration {
        self.started.elapsed()
    }

    /// The record of the run, which ends with it: what was seen is in the record and no longer here.
    pub fn record(&self, outcome: RunOutcome) -> RunRecord {
        let seen = std::mem::take(&mut *lock(&self.seen));
        RunRecord {
            command: self.command.clone(),
            started_ms: self.started_ms,
            elapsed_ms: self.started.elapsed().as_secs_f64() * 1e3,
            outcome,
            targets: seen.targets,
            stages: seen.stages,
        }
    }

    /// Keeps `record` in the store and gives the run's number. `also` are records that it used besides those of its targets.
    pub fn keep(store: &Store, record: &RunRecord, also: &[(RecordKind, Digest)]) -> Result<i64, StoreFault> {
        let mut used = also.to_vec();
        used.extend(record.targets.iter().flat_map(|target| [(RecordKind::Target, target.key), (RecordKind::Inputs, target.key)]));
        // Of a run that failed there is no record of its target: what its stages made is used by it.
        let unfinished = matches!(record.outcome, RunOutcome::Failed(_) | RunOutcome::Interrupted);
        used.extend(record.stages.iter().filter(|_| unfinished).map(|stage| (RecordKind::Action, stage.key)));
        let value =
            postcard::to_stdvec(record).map_err(|error| StoreFault::Encoding { what: "a run record", message: error.to_string() })?;
        store.add_run(&value, &used)
    }

    fn stage(&self, event: &StageEvent) {
        let end = match (event.progress, event.success) {
            (Progress::Started, _) => return,
            (Progress::Cached, _) => StageEnd::Found,
            (Progress::Executed, true) => StageEnd::Executed,
            (Progress::Executed, false) => StageEnd::Failed,
        };
        let now_ms = self.started.elapsed().as_secs_f64() * 1e3;
        let mut seen = lock(&self.seen);
        let thread = std::thread::current().name().unwrap_or("main").to_owned();
        let next = seen.threads.len() as u32;
        let thread = *seen.threads.entry(thread).or_insert(next);
        seen.stages.push(StageRun {
            label: event.id.label.to_string(),
            name: event.id.stage.clone(),
            key: event.key,
            digest: event.digest,
            end,
            start_ms: (now_ms - event.elapsed_ms).max(0.0),
            elapsed_ms: event.elapsed_ms,
            thread,
        });
    }
}

impl EventSink for RunRecorder {
    fn event(&self, event: &Event) {
        if let Event::Stage(event) = event {
            self.stage(event);
        }
        self.sink.event(event);
    }
}
