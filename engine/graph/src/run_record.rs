//! What every build leaves behind about itself: `log`, `why` and traces read it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use store::{Digest, RecordKind, Store, StoreFault};

use crate::shared::lock;
use crate::stage::milliseconds;
use crate::{Event, EventSink, Label, Progress, StageEvent, StageName, TargetReport};

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
    /// Milliseconds that threads of its own worked beside that, summed.
    pub help_ms: f64,
    /// Which thread: 0 is the command's, others are workers.
    pub thread: u32,
    /// Of the stages that executed in this run before it those whose artifacts it read, by place.
    pub needs: Vec<u32>,
}

/// What a run did besides stages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The target, when it was for one.
    pub label: Option<String>,
    /// What: a wave of stages, or work of the engine, as `declarations` and `store`.
    pub name: String,
    /// Milliseconds from the start of the run to its own.
    pub start_ms: f64,
    /// Wall time in milliseconds.
    pub elapsed_ms: f64,
    /// Which thread did it; none for a wave, which is done by all.
    pub thread: Option<u32>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The root of its workspace; a store serves several.
    pub workspace: String,
    /// The words of the command.
    pub command: Vec<String>,
    /// When it started, in milliseconds since 1970.
    pub started_ms: i64,
    /// Its wall time in milliseconds.
    pub elapsed_ms: f64,
    /// How it ended.
    pub outcome: RunOutcome,
    /// The labels that it was to build, as far as it came to know them.
    pub requested: Vec<String>,
    /// The targets that were built or answered, dependencies first.
    pub targets: Vec<TargetRun>,
    /// The stages that executed or were looked up, in the order in which they ended. Stages behind a target that was
    /// answered from its record were not asked.
    pub stages: Vec<StageRun>,
    /// What else took time, in the order in which it ended.
    pub spans: Vec<Span>,
}

/// The runs of a store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runs {
    /// Number and record, newest first.
    pub newest_first: Vec<(i64, RunRecord)>,
    /// Numbers of those that another version of the program wrote, or that are damaged.
    pub unreadable: Vec<i64>,
}

/// The first byte of an encoded record, raised when the rest changes its form.
const FORMAT: u8 = 3;

impl Runs {
    /// The newest `limit` runs of a store.
    pub fn newest(store: &Store, limit: u32) -> Result<Runs, StoreFault> {
        let mut runs = Runs::default();
        for entry in store.runs(limit)? {
            match RunRecord::decode(&entry.value) {
                Some(run) => runs.newest_first.push((entry.number, run)),
                None => runs.unreadable.push(entry.number),
            }
        }
        Ok(runs)
    }
}

impl RunRecord {
    fn encode(&self) -> Result<Vec<u8>, StoreFault> {
        let encoded = postcard::to_extend(self, vec![FORMAT]);
        encoded.map_err(|error| StoreFault::Encoding { what: "a run record", message: error.to_string() })
    }

    fn decode(value: &[u8]) -> Option<RunRecord> {
        let rest = value.strip_prefix(&[FORMAT])?;
        postcard::from_bytes(rest).ok()
    }

    /// Number of stages that ended so.
    pub fn count(&self, end: StageEnd) -> usize {
        self.stages.iter().filter(|stage| stage.end == end).count()
    }

    /// Milliseconds that executed stages took, on all threads together, their own ones included.
    pub fn work_ms(&self) -> f64 {
        self.executed().map(|(_, stage)| stage.elapsed_ms + stage.help_ms).fold(0.0, |sum, elapsed| sum + elapsed)
    }

    /// Milliseconds in which no stage executed: what the run took besides them.
    pub fn engine_ms(&self) -> f64 {
        let mut spans: Vec<(f64, f64)> = self.executed().map(|(_, stage)| (stage.start_ms, stage.start_ms + stage.elapsed_ms)).collect();
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut covered, mut reached) = (0.0, 0.0_f64);
        for (start, end) in spans {
            covered += (end - start.max(reached)).max(0.0);
            reached = reached.max(end);
        }
        (self.elapsed_ms - covered).max(0.0)
    }

    /// The executed stages of the chain, each needing the one before, that took longest, first to last: no number of threads
    /// makes the run shorter.
    pub fn critical_path(&self) -> Vec<&StageRun> {
        // A stage ends after those that it needs, so one pass in the order of the ends sees them first.
        let mut best: HashMap<usize, (f64, Option<usize>)> = HashMap::new();
        for (place, stage) in self.executed() {
            let needed = stage.needs.iter().filter_map(|need| Some((best.get(&(*need as usize))?.0, *need as usize)));
            let before = needed.max_by(|a, b| a.0.total_cmp(&b.0));
            best.insert(place, (stage.elapsed_ms + before.map_or(0.0, |(elapsed, _)| elapsed), before.map(|(_, place)| place)));
        }
        let mut path = Vec::new();
        let mut at = best.iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0)).map(|(place, _)| *place);
        while let Some(place) = at {
            path.push(&self.stages[place]);
            at = best[&place].1;
        }
        path.reverse();
        path
    }

    fn executed(&self) -> impl Iterator<Item = (usize, &StageRun)> {
        self.stages.iter().enumerate().filter(|(_, stage)| stage.end == StageEnd::Executed)
    }
}

/// Takes events on their way to a sink, and makes a run record of them.
pub struct RunRecorder {
    sink: Arc<dyn EventSink>,
    started: Instant,
    started_ms: i64,
    workspace: String,
    command: Vec<String>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    requested: Vec<String>,
    stages: Vec<StageRun>,
    /// Places in `stages` of those that executed, by artifact.
    made: HashMap<Digest, u32>,
    targets: Vec<TargetRun>,
    spans: Vec<Span>,
    threads: BTreeMap<String, u32>,
}

impl Seen {
    fn thread(&mut self) -> u32 {
        let thread = std::thread::current().name().unwrap_or("main").to_owned();
        let next = self.threads.len() as u32;
        *self.threads.entry(thread).or_insert(next)
    }
}

/// Work of the engine that took less is in no record: a large graph has a great many of it.
const SHORTEST_SPAN_MS: f64 = 0.1;

impl RunRecorder {
    /// A run of `command` in `workspace` that starts now.
    pub fn start(sink: Arc<dyn EventSink>, workspace: &str, command: Vec<String>) -> RunRecorder {
        let (started, started_ms) = (Instant::now(), store::now_ms());
        RunRecorder { sink, started, started_ms, workspace: workspace.to_owned(), command, seen: Mutex::default() }
    }

    /// Notes what is to be built.
    pub fn request(&self, labels: &[Label]) {
        lock(&self.seen).requested = labels.iter().map(ToString::to_string).collect();
    }

    /// Notes a target.
    pub fn target(&self, report: &TargetReport) {
        let TargetReport { label, shallow_key, cached, success, .. } = report;
        let target = TargetRun { label: label.to_string(), key: *shallow_key, cached: *cached, success: *success };
        lock(&self.seen).targets.push(target);
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The record of the run, which ends with it: what was seen is in the record and no longer here.
    pub fn record(&self, outcome: RunOutcome) -> RunRecord {
        let seen = std::mem::take(&mut *lock(&self.seen));
        RunRecord {
            workspace: self.workspace.clone(),
            command: self.command.clone(),
            started_ms: self.started_ms,
            elapsed_ms: milliseconds(self.started.elapsed()),
            outcome,
            requested: seen.requested,
            targets: seen.targets,
            stages: seen.stages,
            spans: seen.spans,
        }
    }

    /// Keeps `record` in the store and gives the run's number. `also` are records that it used besides those of its targets.
    pub fn keep(store: &Store, record: &RunRecord, also: &[(RecordKind, Digest)]) -> Result<i64, StoreFault> {
        let mut used = also.to_vec();
        used.extend(record.targets.iter().flat_map(|target| [(RecordKind::Target, target.key), (RecordKind::Inputs, target.key)]));
        // Of a run that failed there is no record of its target: what its stages made is used by it.
        let unfinished = matches!(record.outcome, RunOutcome::Failed(_) | RunOutcome::Interrupted);
        used.extend(record.stages.iter().filter(|_| unfinished).map(|stage| (RecordKind::Action, stage.key)));
        store.add_run(&record.encode()?, &used)
    }

    fn stage(&self, event: &StageEvent) {
        let end = match (event.progress, event.success) {
            (Progress::Started, _) => return,
            (Progress::Cached, _) => StageEnd::Found,
            (Progress::Executed, true) => StageEnd::Executed,
            (Progress::Executed, false) => StageEnd::Failed,
        };
        let now_ms = milliseconds(self.started.elapsed());
        let mut seen = lock(&self.seen);
        let mut needs: Vec<u32> = event.reads.iter().filter_map(|digest| seen.made.get(digest).copied()).collect();
        needs.sort_unstable();
        needs.dedup();
        let thread = seen.thread();
        if let (StageEnd::Executed, Some(digest)) = (end, event.digest) {
            let place = seen.stages.len() as u32;
            seen.made.entry(digest).or_insert(place);
        }
        seen.stages.push(StageRun {
            label: event.id.label.to_string(),
            name: event.id.stage.clone(),
            key: event.key,
            digest: event.digest,
            end,
            start_ms: (now_ms - event.elapsed_ms).max(0.0),
            elapsed_ms: event.elapsed_ms,
            help_ms: event.help_ms,
            thread,
            needs,
        });
    }

    fn span(&self, label: Option<&Label>, name: &str, elapsed: Duration) {
        let (now_ms, elapsed_ms) = (milliseconds(self.started.elapsed()), milliseconds(elapsed));
        let mut seen = lock(&self.seen);
        let thread = label.is_none().then(|| seen.thread());
        let (label, start_ms) = (label.map(ToString::to_string), (now_ms - elapsed_ms).max(0.0));
        if elapsed_ms >= SHORTEST_SPAN_MS {
            seen.spans.push(Span { label, name: name.to_owned(), start_ms, elapsed_ms, thread });
        }
    }
}

impl EventSink for RunRecorder {
    fn event(&self, event: &Event) {
        match event {
            Event::Stage(event) => self.stage(event),
            Event::WaveEnded { label, wave, elapsed } => self.span(Some(label), wave, *elapsed),
            Event::Work { name, elapsed } => self.span(None, name, *elapsed),
            Event::WaveStarted { .. } | Event::WaveAdvanced { .. } | Event::Point(_) | Event::Store(_) | Event::Notice { .. } => {}
        }
        self.sink.event(event);
    }
}
