//! From a loaded workspace to a target's outcome: shallow key, record, and only then waves and stages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use store::{Digest, RecordKind, References};

use crate::target_table::TargetTable;
use crate::{
    Db, Engine, Event, Export, Failure, KeptFailure, Label, LoadedTarget, NotedStage, Outcome, Rule, RuleKind, StageEntry, StageNote,
    TargetInputs, TargetRecord, Workspace, build_points, export,
};

/// Targets whose records are looked up together: one by one they took a tenth of a build of 100,000 small targets.
const LOOK_AHEAD: usize = 64;

/// What became of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetReport {
    /// The target.
    pub label: Label,
    /// What may be done with it.
    pub kind: RuleKind,
    /// Whether it was answered from its record.
    pub cached: bool,
    /// See [`Outcome::success`].
    pub success: bool,
    /// See [`Outcome::lines`].
    pub lines: Vec<String>,
    /// See [`Outcome::data`].
    pub data: Vec<u8>,
    /// The exported files, absolute; none of a target whose files were not written.
    pub exports: Vec<Utf8PathBuf>,
    /// The target's shallow key.
    pub shallow_key: Digest,
    /// See [`TargetRecord::outcome_digest`].
    pub outcome: Digest,
    /// The content of each exported file.
    pub contents: Vec<Digest>,
    /// Whether the next build may answer from a record; see [`Outcome::recorded`].
    pub recorded: bool,
}

impl Engine {
    /// Gives the database the declarations and source digests of `labels` and all they depend on; the shallow keys.
    pub fn apply(&mut self, workspace: &Workspace, labels: &[Label]) -> Result<BTreeMap<Label, Digest>, Failure> {
        let table = self.tabulate(workspace, labels)?;
        Ok((0..table.len()).filter_map(|target| Some((table.label(target)?, table.key(target)))).collect())
    }

    /// The shallow key of `label`, and what it and all it depends on are made from as they stand, by shallow key.
    pub fn inputs_now(&mut self, workspace: &Workspace, label: &Label) -> Result<(Digest, BTreeMap<Digest, TargetInputs>), Failure> {
        let closure = workspace.closure([label]);
        let table = self.tabulate_closure(workspace, &closure)?;
        let targets = closure.iter().enumerate();
        let inputs = targets.map(|(number, target)| (table.key(number), TargetInputs::of(&table, number, target)));
        // The label itself comes after all that it depends on.
        let key = table.len().checked_sub(1).map_or(Digest::ABSENT, |last| table.key(last));
        Ok((key, inputs.collect()))
    }

    /// Builds `labels` and, before them, the targets with outcomes that they depend on; reports in that order, and
    /// at the first failure it stops.
    pub fn build_targets(&mut self, workspace: &Workspace, labels: &[Label]) -> Result<Vec<TargetReport>, Failure> {
        let mut table = self.tabulate(workspace, labels)?;
        let asked = table.find(labels).into_iter().flatten().collect();
        table.set_asked(asked);
        let mut reports = Vec::new();
        for target in table.find(labels).into_iter().flatten() {
            let built = self.build_below(workspace, &mut table, target)?;
            reports.extend(built.into_iter().map(|(_, report)| report));
        }
        Ok(reports)
    }

    /// The table of `labels` and what they depend on, with the digests of their files and their keys; the database knows
    /// them afterwards, and no target that the workspace does not have.
    pub(crate) fn tabulate(&mut self, workspace: &Workspace, labels: &[Label]) -> Result<TargetTable, Failure> {
        self.tabulate_closure(workspace, &workspace.closure(labels))
    }

    fn tabulate_closure(&mut self, workspace: &Workspace, targets: &[&LoadedTarget]) -> Result<TargetTable, Failure> {
        let started = Instant::now();
        let mut table = TargetTable::of(targets);
        let mut is_read = vec![false; table.file_count()];
        for (number, target) in targets.iter().enumerate() {
            for (source, file) in target.sources().iter().zip(table.sources(number).collect::<Vec<_>>()) {
                if !std::mem::replace(&mut is_read[file], true) {
                    let digest = self.source_digest(&source.path);
                    let digest = digest.map_err(|failure| failure.at_label(target.label()).at_field(&source.field))?;
                    table.set_file(file, digest);
                }
            }
        }
        for (number, target) in targets.iter().enumerate() {
            self.declare(&mut table, number, target);
        }
        for label in self.known_targets() {
            if workspace.target(&label).is_none() {
                self.set_target(&label, None);
            }
        }
        self.shared().tell(&Event::Work { name: "keys", elapsed: started.elapsed() });
        Ok(table)
    }

    /// Keys a target and gives the database its declaration and its sources' digests.
    pub(crate) fn declare(&mut self, table: &mut TargetTable, number: usize, target: &LoadedTarget) {
        table.set_key(number, target);
        self.set_target(target.label(), Some(target.declared().clone()));
        for (source, file) in target.sources().iter().zip(table.sources(number)) {
            self.set_source(&source.path, table.file_digest(file));
        }
    }

    /// Builds what is not done below `target` and at last `target`; numbers and reports of the targets with
    /// outcomes.
    pub(crate) fn build_below(
        &mut self,
        workspace: &Workspace,
        table: &mut TargetTable,
        target: usize,
    ) -> Result<Vec<(usize, TargetReport)>, Failure> {
        let built = self.build_each(workspace, table, target);
        let flushed = self.shared().flush();
        self.shared().report_store();
        built.and_then(|reports| flushed.map(|()| reports))
    }

    fn build_each(&mut self, workspace: &Workspace, table: &mut TargetTable, target: usize) -> Result<Vec<(usize, TargetReport)>, Failure> {
        let waiting = Waiting::of(table, target);
        let mut reports = Vec::new();
        self.build_in_order(workspace, table, &waiting.before, &mut reports)?;
        if !waiting.points.is_empty() {
            for (number, report) in build_points::build(self, workspace, table, &waiting.points)? {
                self.set_outcome(&report.label, report.outcome);
                table.set_done(number, report.outcome);
                reports.push((number, report));
            }
        }
        self.build_in_order(workspace, table, &waiting.behind, &mut reports)?;
        Ok(reports)
    }

    /// Builds these targets one after another; each has what it needs among those before it.
    fn build_in_order(
        &mut self,
        workspace: &Workspace,
        table: &mut TargetTable,
        waiting: &[usize],
        reports: &mut Vec<(usize, TargetReport)>,
    ) -> Result<(), Failure> {
        let mut read = Vec::new();
        let mut listed = BTreeSet::new();
        for (place, &number) in waiting.iter().enumerate() {
            if place % LOOK_AHEAD == 0 {
                // Another process may write a record after that: then the target's stages are found.
                let keys: Vec<Digest> = waiting[place..].iter().take(LOOK_AHEAD).map(|number| table.key(*number)).collect();
                listed = self.shared().store().listed_records(RecordKind::Target, &keys)?;
            }
            let key = table.key(number);
            let label = table.label(number).ok_or_else(|| Failure::build("the recorded graph is damaged"))?;
            let loaded = workspace.target(&label);
            let loaded = loaded.ok_or_else(|| Failure::build("its declaration is not loaded").at_label(&label))?;
            let outcome = if loaded.rule().kind().is_built() {
                let report = self.build_one(workspace, table, (number, loaded), listed.contains(&key))?;
                let outcome = report.outcome;
                if !report.cached {
                    // Of what nothing was built from there is nothing to explain.
                    for number in read.drain(..).chain([number]) {
                        if let Some(target) = table.label(number).and_then(|label| workspace.target(&label)) {
                            TargetInputs::keep(self.shared(), table, number, target)?;
                        }
                    }
                }
                reports.push((number, report));
                outcome
            } else {
                read.push(number);
                // A target that is only read gives what it is declared to be.
                table.key(number)
            };
            self.set_outcome(&label, outcome);
            table.set_done(number, outcome);
        }
        Ok(())
    }

    /// Makes the exported files what they should be, when they are written at all; their paths.
    fn restore(&self, rule: &dyn Rule, folder: &Utf8Path, exports: &[Export]) -> Result<Vec<Utf8PathBuf>, Failure> {
        if self.exports && rule.exports_files() {
            self.shared().timed("exports", || export::restore(self.shared(), folder, exports))
        } else {
            Ok(exports.iter().map(|export| folder.join(&export.path)).collect())
        }
    }

    /// What is recorded of a target, with its files made what they should be; `None` when it has to be built.
    pub(crate) fn recorded(
        &self,
        workspace: &Workspace,
        target: &LoadedTarget,
        key: Digest,
        is_listed: bool,
        is_exported: bool,
    ) -> Result<Option<Found>, Failure> {
        let record: Option<TargetRecord> = match is_listed {
            true => self.shared().record(RecordKind::Target, &key)?,
            false => self.shared().unwritten_record(RecordKind::Target, &key),
        };
        // Elsewhere than at a point, a failure is no result: trying again is what was asked for.
        let Some(record) = record.filter(|record| record.failure.is_none() || target.label().is_at_point()) else { return Ok(None) };
        let restored = if is_exported {
            self.restore(target.rule().as_ref(), &workspace.artifacts_of(target.label()), &record.exports)
        } else {
            Ok(Vec::new())
        };
        match restored {
            Ok(exports) => Ok(Some(Found { record, exports, cached: true, recorded: true })),
            // The exports' blobs are gone: the stages that made them run again.
            Err(failure) if matches!(failure.cause(), crate::Cause::Lost(_)) => {
                self.shared().report_store();
                self.shared().store().remove_record(RecordKind::Target, &key)?;
                Ok(None)
            }
            Err(failure) => Err(failure.at_label(target.label())),
        }
    }

    fn build_one(
        &mut self,
        workspace: &Workspace,
        table: &TargetTable,
        (number, target): (usize, &LoadedTarget),
        is_listed: bool,
    ) -> Result<TargetReport, Failure> {
        let (label, key) = (target.label(), table.key(number));
        if self.shared().is_interrupted() {
            return Err(Failure::interrupted().at_label(label));
        }
        let found = match self.recorded(workspace, target, key, is_listed, true)? {
            Some(found) => found,
            None => {
                let records = self.records_below(table, number, target)?;
                let built = self.build(|engine| made(engine, workspace, target, key, &records, true));
                match built.map_err(|failure| located(failure, label)) {
                    Ok(found) => found,
                    Err(failure) => match KeptFailure::of(&failure).filter(|_| label.is_at_point()) {
                        Some(kept) => failed(self, workspace, target, key, kept, true)?,
                        None => return Err(failure),
                    },
                }
            }
        };
        match &found.record.failure {
            Some(failure) => Err(failure.failure()),
            None => Ok(report(target, key, found)),
        }
    }

    /// What the targets in its fields gave, of a rule that wants to know.
    fn records_below(&self, table: &TargetTable, number: usize, target: &LoadedTarget) -> Result<Vec<(Label, Arc<TargetRecord>)>, Failure> {
        if !target.rule().reads_records() {
            return Ok(Vec::new());
        }
        let mut records = Vec::new();
        for (used, below) in target.dependencies().iter().zip(table.dependencies(number)) {
            let record: Option<TargetRecord> = self.shared().record(RecordKind::Target, &table.key(below))?;
            let nothing = || Failure::build(format!("`{}` leaves no record: its results hold for one build only", used.label));
            records.push((used.label.clone(), Arc::new(record.ok_or_else(|| nothing().at_label(target.label()))?)));
        }
        Ok(records)
    }
}

/// Targets that have to be built, in three parts that are built one after another.
struct Waiting {
    before: Vec<usize>,
    /// At points of sweeps, which are needed by a target that is at none.
    points: Vec<usize>,
    behind: Vec<usize>,
}

impl Waiting {
    fn of(table: &TargetTable, target: usize) -> Waiting {
        let mut waiting = Waiting { before: Vec::new(), points: Vec::new(), behind: Vec::new() };
        let are_points_results = !table.is_at_point(target);
        let mut behind = BTreeSet::new();
        for number in table.not_done_below(target) {
            if are_points_results && table.is_at_point(number) {
                waiting.points.push(number);
            } else if table.dependencies(number).any(|used| behind.contains(&used) || (are_points_results && table.is_at_point(used))) {
                behind.insert(number);
                waiting.behind.push(number);
            } else {
                waiting.before.push(number);
            }
        }
        waiting
    }
}

/// Builds a target, and records what it gives.
pub(crate) fn made(
    engine: &Engine,
    workspace: &Workspace,
    target: &LoadedTarget,
    key: Digest,
    records: &[(Label, Arc<TargetRecord>)],
    is_exported: bool,
) -> Result<Found, Failure> {
    let at_label = |failure: Failure| located(failure, target.label());
    let outcome = run_rule(engine, target, records).map_err(at_label)?;
    let recorded = outcome.recorded;
    let (record, references) = record_of(engine, workspace, target, outcome);
    let exports = if is_exported {
        engine.restore(target.rule().as_ref(), &workspace.artifacts_of(target.label()), &record.exports).map_err(at_label)?
    } else {
        Vec::new()
    };
    if recorded {
        engine.shared().add_record(RecordKind::Target, key, &record, references)?;
    }
    Ok(Found { record, exports, cached: false, recorded })
}

/// With a label at any rate.
fn located(failure: Failure, label: &Label) -> Failure {
    if failure.label().is_some() { failure } else { failure.at_label(label) }
}

/// Records that a target at a point gives nothing; with the stages that it is made of as far as it came, when it was begun.
pub(crate) fn failed(
    engine: &Engine,
    workspace: &Workspace,
    target: &LoadedTarget,
    key: Digest,
    failure: KeptFailure,
    was_begun: bool,
) -> Result<Found, Failure> {
    let outcome = Outcome { success: false, ..Outcome::default() };
    let (record, references) = match was_begun {
        true => record_of(engine, workspace, target, outcome),
        false => (TargetRecord::of(outcome, Vec::new(), Vec::new()), References::default()),
    };
    let record = TargetRecord { failure: Some(failure), ..record };
    engine.shared().add_record(RecordKind::Target, key, &record, references)?;
    Ok(Found { record, exports: Vec::new(), cached: false, recorded: true })
}

fn run_rule(engine: &Engine, target: &LoadedTarget, records: &[(Label, Arc<TargetRecord>)]) -> Result<Outcome, Failure> {
    for wave in target.rule().waves() {
        wave(engine, target.label())?;
    }
    target.rule().finish_over(engine, target.label(), records)
}

/// The record and what it refers to: the blobs of exports and the records of all stages, those of the targets below included.
fn record_of(engine: &Engine, workspace: &Workspace, target: &LoadedTarget, outcome: Outcome) -> (TargetRecord, References) {
    let mut notes = target.rule().stages(engine, target.label());
    notes.sort_unstable();
    let references = References {
        blobs: outcome.exports.iter().map(|export| export.blob).collect(),
        // Stages of targets that are only read have no other record that refers to them.
        records: notes.iter().map(|StageNote(note)| (RecordKind::Action, note.key)).collect(),
    };
    // A stage is noted by each query that calls it.
    notes.dedup_by(|StageNote(a), StageNote(b)| a.id == b.id);
    let (mut stages, mut below) = (Vec::new(), Vec::new());
    for StageNote(note) in &notes {
        let NotedStage { id, key, digest } = note.as_ref();
        let entry = StageEntry { name: id.stage.clone(), key: *key, digest: *digest };
        if id.label == *target.label() {
            stages.push(entry);
        } else if workspace.target(&id.label).is_some_and(|target| !target.rule().kind().is_built()) {
            below.push((id.label.to_string(), entry));
        }
    }
    (TargetRecord::of(outcome, stages, below), references)
}

impl TargetRecord {
    fn of(outcome: Outcome, stages: Vec<StageEntry>, below: Vec<(String, StageEntry)>) -> TargetRecord {
        let Outcome { success, lines, data, figures, exports, .. } = outcome;
        TargetRecord { success, lines, data, figures, failure: None, exports, stages, below }
    }
}

/// A target's record, looked up or just made.
pub(crate) struct Found {
    pub(crate) record: TargetRecord,
    pub(crate) exports: Vec<Utf8PathBuf>,
    pub(crate) cached: bool,
    pub(crate) recorded: bool,
}

pub(crate) fn report(target: &LoadedTarget, key: Digest, found: Found) -> TargetReport {
    let Found { record, exports, cached, recorded } = found;
    TargetReport {
        label: target.label().clone(),
        kind: target.rule().kind(),
        cached,
        success: record.success,
        outcome: record.outcome_digest(),
        contents: record.exports.iter().map(|export| export.content).collect(),
        lines: record.lines,
        data: record.data,
        exports,
        shallow_key: key,
        recorded,
    }
}
