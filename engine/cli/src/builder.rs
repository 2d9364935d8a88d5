//! Builds targets of a loaded workspace and prints what they give.

use std::sync::Arc;
use std::time::Instant;

use graph::{Engine, EngineOptions, Label, RuleKind, Shared, SourceReader, TargetReport, Workspace};

use crate::arguments::Options;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::interruption;
use crate::opened::Surroundings;

/// A workspace, an engine over the store, and the console they talk through.
pub(crate) struct Builder<'a> {
    workspace: &'a Workspace,
    engine: Engine,
    console: Arc<Console>,
    started: Instant,
}

impl<'a> Builder<'a> {
    /// An engine for `workspace`; the next signal stops it.
    pub(crate) fn new(
        surroundings: &Surroundings,
        options: &Options,
        workspace: &'a Workspace,
        console: Arc<Console>,
    ) -> Result<Builder<'a>, Fault> {
        let sources = SourceReader::new(surroundings.root(), surroundings.repositories());
        let shared = Shared::new(surroundings.store()?, console.clone(), sources);
        let threads = match options.jobs {
            Some(jobs) => jobs.into(),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let engine = Engine::new(shared, EngineOptions { threads, shuffle: None });
        let engine = engine.map_err(|failure| Fault::build(workspace, &failure))?;
        interruption::arm(engine.interrupt_handle(), console.clone());
        Ok(Builder { workspace, engine, console, started: Instant::now() })
    }

    /// Builds `label` and what it needs, and prints its lines.
    pub(crate) fn build(&mut self, label: &Label) -> Result<TargetReport, Fault> {
        let reports = self.engine.build_targets(self.workspace, std::slice::from_ref(label));
        let mut reports = reports.map_err(|failure| Fault::build(self.workspace, &failure))?;
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
        if self.kind_of(&report.label) == Some(RuleKind::Built) {
            let root = self.workspace.root();
            for export in &report.exports {
                self.console.tell(&format!("{} {}", report.label, export.strip_prefix(root).unwrap_or(export)));
            }
        }
    }

    /// Builds `labels` in order up to the first that gives nothing; fails when a verdict does.
    pub(crate) fn build_all(&mut self, labels: &[Label]) -> Result<Exit, Fault> {
        let mut exit = Exit::Success;
        for label in labels {
            if !self.build(label)?.success {
                exit = Exit::Failed;
            }
        }
        self.summarise();
        Ok(exit)
    }

    /// Says how much was done, when something was.
    pub(crate) fn summarise(&self) {
        let (executed, found) = self.console.counts();
        if executed > 0 {
            let seconds = self.started.elapsed().as_secs_f64();
            self.console.tell(&format!("{executed} stages executed, {found} found in the store, {seconds:.2} s"));
        }
    }

    /// What may be done with a loaded target.
    pub(crate) fn kind_of(&self, label: &Label) -> Option<RuleKind> {
        self.workspace.target(label).map(|target| target.rule().kind())
    }

    /// The console.
    pub(crate) fn console(&self) -> &Console {
        &self.console
    }
}
