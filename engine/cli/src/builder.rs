//! Builds the targets of a request and prints what they give.

use std::sync::Arc;
use std::time::Instant;

use camino::Utf8PathBuf;
use graph::{
    Digest, Engine, EngineOptions, Label, LoadRequest, Look, Pattern, Remembered, Request, RuleKind, Session, SessionFault, Shared,
    SourceReader, TargetReport, Workspace,
};
use store::{FileStamp, Store};

use crate::arguments::Options;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::interruption;
use crate::opened::Surroundings;

/// What a command builds: of the patterns' targets those that it is for.
pub(crate) type Choice = fn(&Workspace, &[Pattern], &Console) -> Result<Vec<Label>, Fault>;

/// The requested targets, on their way to being built.
pub(crate) struct Builder {
    work: Work,
    /// Under which the next command finds what this one knows; `None` when the program cannot be told from another one.
    key: Option<Digest>,
    root: Utf8PathBuf,
    console: Arc<Console>,
    started: Instant,
}

enum Work {
    /// Nothing changed since these were given.
    Known(Vec<TargetReport>),
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
        let started = Instant::now();
        let load = surroundings.request(patterns);
        let program = std::env::current_exe().ok().and_then(|program| Utf8PathBuf::from_path_buf(program).ok());
        let program = program.and_then(|program| FileStamp::at(&program));
        let key = program.map(|program| Request { load: &load, command, program }.key());
        let store = surroundings.store()?;
        let sources = SourceReader::new(surroundings.root(), surroundings.repositories());
        let builder = |work| Builder { work, key, root: surroundings.root().to_owned(), console: console.clone(), started };
        let engine = |store, sources| engine(store, sources, options, console);
        let resumed = match key.and_then(|key| Remembered::find(&store, key)) {
            None => Err((store, sources)),
            Some(mut remembered) => match remembered.look(&store, &sources) {
                Look::Unchanged => return Ok(builder(Work::Known(remembered.reports(surroundings.root())))),
                Look::Unclear => Err((store, sources)),
                Look::Sources(changed) => Ok(resume(engine(store, sources)?, remembered, &changed, &load)?),
            },
        };
        let engine = match resumed {
            Ok(Ok(session)) => return Ok(builder(Work::Session(Box::new(session)))),
            Ok(Err(engine)) => engine,
            Err((store, sources)) => engine(store, sources)?,
        };
        let workspace = Workspace::load(&load)?;
        let labels = choice(&workspace, patterns, console)?;
        match Session::begin(engine, workspace, &labels) {
            Ok(session) => Ok(builder(Work::Session(Box::new(session)))),
            Err(fault) => Err(Fault::build(&fault.1, &fault.0)),
        }
    }

    /// The targets to build, in order.
    pub(crate) fn labels(&self) -> Vec<Label> {
        match &self.work {
            Work::Known(reports) => reports.iter().map(|report| report.label.clone()).collect(),
            Work::Session(session) => session.requested(),
        }
    }

    /// Builds `label` and what it needs, and prints its lines.
    pub(crate) fn build(&mut self, label: &Label) -> Result<TargetReport, Fault> {
        let reports = match &mut self.work {
            Work::Known(reports) => Ok(reports.iter().filter(|report| report.label == *label).cloned().collect()),
            Work::Session(session) => session.build(label).map_err(|failure| Fault::build(session.workspace(), &failure)),
        };
        let mut reports: Vec<TargetReport> = reports?;
        reports.iter().for_each(|report| self.console.target(report));
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
        if report.kind == RuleKind::Built {
            for export in &report.exports {
                self.console.tell(&format!("{} {}", report.label, export.strip_prefix(&self.root).unwrap_or(export)));
            }
        }
    }

    /// Builds the requested targets in order up to the first that gives nothing; fails when a verdict does.
    pub(crate) fn build_all(&mut self) -> Result<Exit, Fault> {
        let mut exit = Exit::Success;
        for label in self.labels() {
            if !self.build(&label)?.success {
                exit = Exit::Failed;
            }
        }
        self.finish();
        Ok(exit)
    }

    /// Keeps what the next command can begin with, and says how much was done, when something was.
    pub(crate) fn finish(&mut self) {
        if let (Work::Session(session), Some(key)) = (&mut self.work, self.key)
            && let Err(fault) = session.remember(key)
        {
            self.console.tell(&format!("the next build begins from the start: {fault}"));
        }
        let (executed, found) = self.console.counts();
        if executed > 0 {
            let seconds = self.started.elapsed().as_secs_f64();
            self.console.tell(&format!("{executed} stages executed, {found} found in the store, {seconds:.2} s"));
        }
    }

    /// The console.
    pub(crate) fn console(&self) -> &Console {
        &self.console
    }
}

fn engine(store: Store, sources: SourceReader, options: &Options, console: &Arc<Console>) -> Result<Engine, Fault> {
    let threads = match options.jobs {
        Some(jobs) => jobs.into(),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let engine = Engine::new(Shared::new(store, console.clone(), sources), EngineOptions { threads, shuffle: None });
    let engine = engine.map_err(Fault::failed)?;
    interruption::arm(engine.interrupt_handle(), console.clone());
    Ok(engine)
}

fn resume(
    engine: Engine,
    remembered: Remembered,
    changed: &[(usize, Digest)],
    load: &LoadRequest<'_>,
) -> Result<Result<Session, Engine>, Fault> {
    Session::resume(engine, remembered, changed, load).map_err(|fault| match fault {
        SessionFault::Load(diagnostics) => diagnostics.into(),
        SessionFault::Read(failure) => Fault::failed(failure),
    })
}
