//! Builds the targets of a request and prints what they give.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use graph::{
    Digest, Engine, EngineOptions, Event, EventSink, Label, Look, Pattern, Remembered, Request, RuleKind, RunOutcome, RunRecorder, Session,
    Shared, Silent, SourceReader, TargetReport, Workspace,
};
use store::{FileStamp, RecordKind, Store};

use crate::arguments::Options;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::{self, Surroundings};
use crate::{interruption, trace_file};

/// What a command builds: of the patterns' targets those that it is for.
pub(crate) type Choice = fn(&Workspace, &[Pattern], &Console) -> Result<Vec<Label>, Fault>;

/// The requested targets, on their way to being built.
pub(crate) struct Builder {
    work: Work,
    /// Under which the next command finds what this one knows; `None` when the program cannot be told from another one.
    key: Option<Digest>,
    root: Utf8PathBuf,
    console: Arc<Console>,
    run: Arc<Run>,
    keeps_going: bool,
}

/// The run that is being recorded, and where it goes.
pub(crate) struct Run {
    recorder: RunRecorder,
    trace: Option<(Utf8PathBuf, File)>,
    key: Option<Digest>,
    is_kept: AtomicBool,
}

impl Run {
    /// A run of the program's command that starts now; its record is kept once. `key` is that of the graph it uses.
    pub(crate) fn start(
        surroundings: &Surroundings,
        options: &Options,
        console: &Arc<Console>,
        key: Option<Digest>,
    ) -> Result<Arc<Run>, Fault> {
        let words = std::env::args().skip(1).collect();
        let trace = match &options.trace {
            Some(wanted) => Some(open_trace(wanted, opened::directory(options)?.join(wanted))?),
            None => None,
        };
        let recorder = RunRecorder::start(console.clone(), surroundings.root().as_str(), words);
        Ok(Arc::new(Run { recorder, trace, key, is_kept: AtomicBool::new(false) }))
    }

    /// Notes what is to be built.
    pub(crate) fn request(&self, labels: &[Label]) {
        self.recorder.request(labels);
    }

    /// Notes a target.
    pub(crate) fn target(&self, report: &TargetReport) {
        self.recorder.target(report);
    }

    /// Does `work` and notes how long it took.
    fn timed<R>(&self, name: &'static str, work: impl FnOnce() -> R) -> R {
        let started = Instant::now();
        let result = work();
        self.event(&Event::Work { name, elapsed: started.elapsed() });
        result
    }

    /// Keeps the record, once. A fault is told and changes nothing: what was built is built.
    pub(crate) fn keep(&self, store: &Store, outcome: RunOutcome, console: &Console) {
        if self.is_kept.swap(true, Ordering::Relaxed) {
            return;
        }
        let record = self.recorder.record(outcome);
        let graph = self.key.map(|key| (RecordKind::Graph, key));
        let number = match RunRecorder::keep(store, &record, graph.as_slice()) {
            Ok(number) => number,
            Err(fault) => return console.tell(&format!("this run is not in the log: {fault}")),
        };
        console.run(number, &record);
        if let Some((path, file)) = &self.trace
            && let Err(error) = trace_file::write(file, &record, number)
        {
            console.tell(&format!("cannot write the trace {path}: {error}"));
        }
    }
}

/// A file that cannot be written is told before anything is built; what it holds stays until there is a trace.
fn open_trace(wanted: &Utf8Path, path: Utf8PathBuf) -> Result<(Utf8PathBuf, File), Fault> {
    match File::options().write(true).create(true).truncate(false).open(&path) {
        Ok(file) => Ok((path, file)),
        Err(error) => Err(Fault::input(format!("--trace {wanted}: {error}"))),
    }
}

enum Work {
    /// Nothing changed since these were given.
    Known(Box<Store>, Vec<TargetReport>),
    Session(Box<Session>),
}

impl Builder {
    /// What `command` has to do with `patterns`; the next signal stops it. When nothing changed since it was done last,
    /// nothing is loaded; when only sources changed, only what they reach.
    pub(crate) fn open(
        surroundings: &Surroundings,
        options: &Options,
        console: &Arc<Console>,
        (command, choice): (&str, Choice),
        patterns: &[Pattern],
    ) -> Result<Builder, Fault> {
        let load = surroundings.request(patterns);
        let program = std::env::current_exe().ok().and_then(|program| Utf8PathBuf::from_path_buf(program).ok());
        let program = program.and_then(|program| FileStamp::at(&program));
        let key = program.map(|program| Request { load: &load, command, program }.key());
        let store = surroundings.store()?;
        let run = Run::start(surroundings, options, console, key)?;
        // What a pattern names is not known before the declarations are loaded.
        let named = patterns.iter().filter_map(|pattern| match pattern {
            Pattern::One(label) => Some(label.clone()),
            Pattern::Below(_) => None,
        });
        run.request(&named.collect::<Vec<_>>());
        let sources = surroundings.sources();
        let builder = |work| {
            let builder = Builder {
                work,
                key,
                root: surroundings.root().to_owned(),
                console: console.clone(),
                run: run.clone(),
                keeps_going: options.keep_going,
            };
            run.request(&builder.labels());
            builder
        };
        let engine = |store, sources| engine(store, sources, options, console, &run);
        let resumed = match key.and_then(|key| Remembered::find(&store, key)) {
            None => Err((store, sources)),
            Some(mut remembered) => match remembered.look(&store, &sources) {
                Look::Unchanged => return Ok(builder(Work::Known(Box::new(store), remembered.reports(surroundings.root())))),
                Look::Unclear => Err((store, sources)),
                Look::Sources(changed) => {
                    let engine = engine(store, sources)?;
                    Ok(run.timed("declarations", || Session::resume(engine, remembered, &changed, &load)))
                }
            },
        };
        let engine = match resumed {
            Ok(Ok(session)) => return Ok(builder(Work::Session(Box::new(session)))),
            Ok(Err(engine)) => *engine,
            Err((store, sources)) => engine(store, sources)?,
        };
        let loaded = run.timed("declarations", || Workspace::load(&load)).map_err(Fault::from);
        let chosen = loaded.and_then(|workspace| Ok((choice(&workspace, patterns, console)?, workspace)));
        let (labels, workspace) = chosen.inspect_err(|fault| run.keep(engine.store(), fault.into(), console))?;
        run.request(&labels);
        Session::begin(engine, workspace, &labels).map(|session| builder(Work::Session(Box::new(session)))).map_err(|not_begun| {
            let fault = Fault::build(&not_begun.workspace, &not_begun.failure);
            run.keep(not_begun.engine.store(), (&fault).into(), console);
            fault
        })
    }

    /// The targets to build, in order.
    pub(crate) fn labels(&self) -> Vec<Label> {
        match &self.work {
            Work::Known(_, reports) => reports.iter().map(|report| report.label.clone()).collect(),
            Work::Session(session) => session.requested(),
        }
    }

    /// Builds `label` and what it needs, and prints its lines.
    pub(crate) fn build(&mut self, label: &Label) -> Result<TargetReport, Fault> {
        let reports = match &mut self.work {
            Work::Known(_, reports) => Ok(reports.iter().filter(|report| report.label == *label).cloned().collect()),
            Work::Session(session) => session.build(label).map_err(|failure| Fault::build(session.workspace(), &failure)),
        };
        let mut reports: Vec<TargetReport> = reports?;
        for report in &reports {
            self.console.target(report);
            self.run.target(report);
        }
        let position = reports.iter().position(|report| report.label == *label);
        let report = position.map(|position| reports.swap_remove(position));
        let report = report.ok_or_else(|| Fault::input(format!("there is nothing to build for `{label}`")))?;
        self.print(&report);
        Ok(report)
    }

    fn print(&self, report: &TargetReport) {
        report.lines.iter().for_each(|line| self.console.result(line));
        if report.cached {
            self.console.tell(&format!("{} cached=true", report.label));
        }
        if report.kind != RuleKind::Run {
            for export in &report.exports {
                self.console.tell(&format!("{} {}", report.label, export.strip_prefix(&self.root).unwrap_or(export)));
            }
        }
    }

    /// Builds the requested targets in order, unless it keeps going up to the first that gives nothing; fails when a verdict does.
    pub(crate) fn build_all(&mut self) -> Result<Exit, Fault> {
        self.build_all_and_tell_lasting().map(|(exit, _)| exit)
    }

    /// The same, with the targets that may be answered from a record later.
    pub(crate) fn build_all_and_tell_lasting(&mut self) -> Result<(Exit, Vec<Label>), Fault> {
        let (mut exit, mut lasting) = (Exit::Success, Vec::new());
        for label in self.labels() {
            let report = match self.build(&label) {
                Ok(report) => report,
                Err(fault) if self.keeps_going && fault.exit != Exit::Interrupted => {
                    self.console.fault(&fault);
                    exit = exit.max(fault.exit);
                    continue;
                }
                Err(fault) => {
                    self.keep((&fault).into());
                    return Err(fault);
                }
            };
            if !report.success {
                exit = exit.max(Exit::Failed);
            }
            if report.recorded {
                lasting.push(label);
            }
        }
        self.finish(exit);
        Ok((exit, lasting))
    }

    fn keep(&self, outcome: RunOutcome) {
        let store = match &self.work {
            Work::Known(store, _) => store,
            Work::Session(session) => session.engine().store(),
        };
        self.run.keep(store, outcome, &self.console);
    }

    /// Keeps what the next command can begin with, and says how much was done, when something was.
    pub(crate) fn finish(&mut self, exit: Exit) {
        if let (Work::Session(session), Some(key)) = (&mut self.work, self.key)
            && let Err(fault) = session.remember(key)
        {
            self.console.tell(&format!("the next build begins from the start: {fault}"));
        }
        let (executed, found) = self.console.counts();
        if executed > 0 {
            let seconds = self.run.recorder.elapsed().as_secs_f64();
            self.console.tell(&format!("{executed} stages executed, {found} found in the store, {seconds:.2} s"));
        }
        self.keep(match exit {
            Exit::Success => RunOutcome::Succeeded,
            Exit::Failed => RunOutcome::VerdictFailed,
            Exit::BadInput => RunOutcome::Failed("bad input".to_owned()),
            Exit::Interrupted => RunOutcome::Interrupted,
        });
    }

    /// The console.
    pub(crate) fn console(&self) -> &Console {
        &self.console
    }
}

impl EventSink for Run {
    fn event(&self, event: &Event) {
        self.recorder.event(event);
    }
}

impl From<&Fault> for RunOutcome {
    fn from(fault: &Fault) -> RunOutcome {
        if fault.exit == Exit::Interrupted { RunOutcome::Interrupted } else { RunOutcome::Failed(fault.message.clone()) }
    }
}

/// An engine without targets, whose events go to `sink`.
pub(crate) fn plain_engine(store: Store, sources: SourceReader, threads: usize, sink: Arc<dyn EventSink>) -> Result<Engine, Fault> {
    Engine::new(Shared::new(store, sink, sources), EngineOptions { threads, shuffle: None }).map_err(Fault::failed)
}

/// An engine that looks at declarations and records and builds nothing.
pub(crate) fn silent_engine(store: Store, surroundings: &Surroundings) -> Result<Engine, Fault> {
    plain_engine(store, surroundings.sources(), 1, Arc::new(Silent))
}

/// The engine of a command's build; the next signal stops it.
pub(crate) fn engine(
    store: Store,
    sources: SourceReader,
    options: &Options,
    console: &Arc<Console>,
    run: &Arc<Run>,
) -> Result<Engine, Fault> {
    let engine = plain_engine(store, sources, options.threads(), run.clone())?;
    let engine = if options.fail_fast { engine.failing_fast() } else { engine };
    interruption::arm(engine.interrupt_handle(), console.clone(), run.clone());
    Ok(engine)
}
