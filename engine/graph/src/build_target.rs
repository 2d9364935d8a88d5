//! From a loaded workspace to a target's outcome: shallow key, record, and only then waves and stages.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use store::{Digest, KeyBuilder, RecordKind};

use crate::{Db, Engine, Failure, Label, LoadedTarget, Outcome, RuleKind, SourcePath, StageEntry, TargetRecord, Workspace, export};

/// What became of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetReport {
    /// The target.
    pub label: Label,
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
}

/// Digest of every source that `targets` name.
fn source_digests(engine: &Engine, targets: &[&LoadedTarget]) -> Result<BTreeMap<SourcePath, Digest>, Failure> {
    let shared = engine.shared();
    let mut digests = BTreeMap::new();
    for target in targets {
        for source in target.sources() {
            if !digests.contains_key(&source.path) {
                let digest = shared.sources().digest(shared.store(), &source.path);
                let digest = digest.map_err(|failure| failure.at_label(target.label()).at_field(&source.field))?;
                digests.insert(source.path.clone(), digest);
            }
        }
    }
    Ok(digests)
}

/// The shallow keys of `targets`, which come after their dependencies: blake3 of the normalised declaration, the
/// sources' digests, the dependencies' shallow keys and the fingerprint of the rule.
fn shallow_keys(targets: &[&LoadedTarget], sources: &BTreeMap<SourcePath, Digest>) -> BTreeMap<Label, Digest> {
    let mut keys = BTreeMap::new();
    for target in targets {
        let mut key = KeyBuilder::new("target");
        key.text(target.declared().rule).digest(&target.declared().digest).digest(&target.rule().fingerprint());
        for source in target.sources() {
            key.text(&source.field).digest(sources.get(&source.path).unwrap_or(&Digest::ABSENT));
        }
        for dependency in target.dependencies() {
            key.text(&dependency.field).text(&dependency.label.to_string());
            key.digest(keys.get(&dependency.label.target()).unwrap_or(&Digest::ABSENT));
        }
        keys.insert(target.label().clone(), key.finish());
    }
    keys
}

impl Engine {
    /// Gives the database the declarations and source digests of `labels` and all they depend on; the shallow keys.
    pub fn apply(&mut self, workspace: &Workspace, labels: &[Label]) -> Result<BTreeMap<Label, Digest>, Failure> {
        let targets = workspace.closure(labels);
        let sources = source_digests(self, &targets)?;
        let keys = shallow_keys(&targets, &sources);
        for target in &targets {
            self.set_target(target.label(), Some(target.declared().clone()));
        }
        for (path, digest) in &sources {
            self.set_source(path, *digest);
        }
        for label in self.known_targets() {
            if workspace.target(&label).is_none() {
                self.set_target(&label, None);
            }
        }
        Ok(keys)
    }

    /// Builds `labels` and, before them, the targets with outcomes that they depend on; reports in that order, and
    /// at the first failure it stops.
    pub fn build_targets(&mut self, workspace: &Workspace, labels: &[Label]) -> Result<Vec<TargetReport>, Failure> {
        let keys = self.apply(workspace, labels)?;
        let mut reports = Vec::new();
        for target in workspace.closure(labels) {
            if matches!(target.rule().kind(), RuleKind::Built | RuleKind::Run) {
                let key = keys.get(target.label()).copied().unwrap_or(Digest::ABSENT);
                reports.push(self.build_one(workspace, target, key)?);
            }
        }
        self.shared().flush()?;
        Ok(reports)
    }

    fn build_one(&mut self, workspace: &Workspace, target: &LoadedTarget, key: Digest) -> Result<TargetReport, Failure> {
        let label = target.label();
        if self.shared().is_interrupted() {
            return Err(Failure::interrupted().at_label(label));
        }
        let folder = workspace.artifacts_of(label);
        if let Some(record) = self.shared().record::<TargetRecord>(RecordKind::Target, &key)? {
            match export::restore(self.shared(), &folder, &record.exports) {
                Ok(exports) => return Ok(report(label, key, record, exports, true)),
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
            let record = record_of(engine, target, outcome);
            let exports = export::restore(engine.shared(), &folder, &record.exports)?;
            if recorded {
                engine.shared().add_record(RecordKind::Target, key, &record, record.references())?;
            }
            Ok((record, exports))
        });
        let (record, exports) = built.map_err(|failure| match failure.label() {
            Some(_) => failure,
            None => failure.at_label(label),
        })?;
        Ok(report(label, key, record, exports, false))
    }
}

fn run_rule(engine: &Engine, target: &LoadedTarget) -> Result<Outcome, Failure> {
    for wave in target.rule().waves() {
        wave(engine, target.label())?;
    }
    target.rule().finish(engine, target.label())
}

fn record_of(engine: &Engine, target: &LoadedTarget, outcome: Outcome) -> TargetRecord {
    let mut notes = target.rule().stages(engine, target.label());
    notes.retain(|note| note.id.label == *target.label());
    notes.sort_unstable();
    // A stage is noted by each query that calls it.
    notes.dedup_by(|a, b| a.id == b.id);
    let stages = notes.into_iter().map(|note| StageEntry { name: note.id.stage, key: note.key, digest: note.digest });
    TargetRecord { success: outcome.success, lines: outcome.lines, data: outcome.data, exports: outcome.exports, stages: stages.collect() }
}

fn report(label: &Label, key: Digest, record: TargetRecord, exports: Vec<Utf8PathBuf>, cached: bool) -> TargetReport {
    TargetReport {
        label: label.clone(),
        cached,
        success: record.success,
        lines: record.lines,
        data: record.data,
        exports,
        shallow_key: key,
    }
}
