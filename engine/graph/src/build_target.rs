//! From a loaded workspace to a target's outcome: shallow key, record, and only then waves and stages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use store::{Digest, RecordKind, References};

use crate::target_table::TargetTable;
use crate::{
    Db, Engine, Event, Export, Failure, Label, LoadedTarget, NotedStage, Outcome, Rule, RuleKind, StageEntry, StageNote, TargetInputs,
    TargetRecord, Workspace, export,
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
    /// The exported files, absolute.
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
        let mut reports = Vec::new();
        let mut read = Vec::new();
        let waiting = table.not_done_below(target);
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
                let report = self.build_one(workspace, loaded, key, listed.contains(&key))?;
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
        Ok(reports)
    }

    /// Makes the exported files what they should be, when they are written at all; their paths.
    fn restore(&self, rule: &dyn Rule, folder: &Utf8Path, exports: &[Export]) -> Result<Vec<Utf8PathBuf>, Failure> {
        if self.exports && rule.exports_files() {
            self.shared().timed("exports", || export::restore(self.shared(), folder, exports))
        } else {
            Ok(exports.iter().map(|export| folder.join(&export.path)).collect())
        }
    }

    fn build_one(&mut self, workspace: &Workspace, target: &LoadedTarget, key: Digest, is_listed: bool) -> Result<TargetReport, Failure> {
        let label = target.label();
        if self.shared().is_interrupted() {
            return Err(Failure::interrupted().at_label(label));
        }
        let folder = workspace.artifacts_of(label);
        let record: Option<TargetRecord> = match is_listed {
            true => self.shared().record(RecordKind::Target, &key)?,
            false => self.shared().unwritten_record(RecordKind::Target, &key),
        };
        if let Some(record) = record {
            match self.restore(target.rule().as_ref(), &folder, &record.exports) {
                Ok(exports) => return Ok(report(target, key, Found { record, exports, cached: true, recorded: true })),
                // The exports' blobs are gone: the stages that made them run again.
                Err(failure) if matches!(failure.cause(), crate::Cause::Lost(_)) => {
                    self.shared().report_store();
                    self.shared().store().remove_record(RecordKind::Target, &key)?;
                }
                Err(failure) => return Err(failure.at_label(label)),
            }
        }
        let built = self.build(|engine| {
            let outcome = run_rule(engine, target)?;
            let recorded = outcome.recorded;
            let (record, references) = record_of(engine, workspace, target, outcome);
            let exports = engine.restore(target.rule().as_ref(), &folder, &record.exports)?;
            if recorded {
                engine.shared().add_record(RecordKind::Target, key, &record, references)?;
            }
            Ok(Found { record, exports, cached: false, recorded })
        });
        let found = built.map_err(|failure| match failure.label() {
            Some(_) => failure,
            None => failure.at_label(label),
        })?;
        Ok(report(target, key, found))
    }
}

fn run_rule(engine: &Engine, target: &LoadedTarget) -> Result<Outcome, Failure> {
    for wave in target.rule().waves() {
        wave(engine, target.label())?;
    }
    target.rule().finish(engine, target.label())
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
    let Outcome { success, lines, data, exports, .. } = outcome;
    (TargetRecord { success, lines, data, exports, stages, below }, references)
}

/// A target's record, looked up or just made.
struct Found {
    record: TargetRecord,
    exports: Vec<Utf8PathBuf>,
    cached: bool,
    recorded: bool,
}

fn report(target: &LoadedTarget, key: Digest, found: Found) -> TargetReport {
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
