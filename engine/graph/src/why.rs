//! Why a target was built again: two of its builds compared, from records alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;
use store::{Digest, RecordKind, Store, StoreFault};

use crate::keys_below::KeysBelow;
use crate::{RunOutcome, RunRecord, StageEnd, StageEntry, StageFacts, StageRun, TargetInputs, TargetRecord};

/// Something that a target is made from and that differs between two of its builds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// A declared value.
    Field {
        /// Its path, as in `layout.tiles`.
        field: String,
        /// Before, in TOML; none when it was not there.
        old: Option<String>,
        /// After.
        new: Option<String>,
    },
    /// A file's content.
    Source {
        /// The file.
        path: String,
        /// Digest before; none when it was not a source.
        old: Option<Digest>,
        /// Digest after.
        new: Option<Digest>,
    },
    /// The program's own code.
    Code {
        /// Which part.
        part: String,
        /// Its digest before.
        old: Option<Digest>,
        /// Its digest after.
        new: Option<Digest>,
    },
    /// Records that would tell are gone.
    Unknown,
}

/// A change and how it reaches the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// What changed.
    #[serde(flatten)]
    pub change: Change,
    /// The labels from the target that it belongs to, to the one asked about: the shortest way.
    pub path: Vec<String>,
}

/// What became of a stage between two builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It gave something else.
    Changed,
    /// It was asked again and gave the same: nothing behind it was asked because of it.
    CutOff,
    /// It was not there before.
    New,
}

/// A stage whose key changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageChange {
    /// The target it works for.
    pub label: String,
    /// Stage and index, as in `[schedule/0.1]`.
    pub stage: String,
    /// What became of it.
    pub effect: Effect,
    /// Whether it executed in the run, or was found in the store.
    pub executed: bool,
    /// Names of the inputs that differ; `code` when the stage's own code does.
    pub because: Vec<String>,
    /// What it took, in milliseconds, when it executed.
    pub elapsed_ms: f64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Why {
    /// The target.
    pub label: String,
    /// The run that gave it the key it has: the first one since `before`.
    pub run: i64,
    /// The run that had it with another key before that; none when there is none.
    pub before: Option<i64>,
    /// The earlier run that made the record from which `run` answered.
    pub made: Option<i64>,
    /// The newest run that asked for it, when that is not `run`.
    pub answered: Option<i64>,
    /// A newer run that could not build it.
    pub failed: Option<FailedRun>,
    /// What changed.
    pub reasons: Vec<Reason>,
    /// Stages with other keys, in the order in which they ended.
    pub stages: Vec<StageChange>,
    /// Stages with the keys of before.
    pub kept: usize,
}

/// A run that was to build a target and failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedRun {
    /// Its number.
    pub run: i64,
    /// What it said.
    pub message: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyFault {
    /// No run of this workspace built the target; the newest that was to.
    NeverBuilt(Option<FailedRun>),
    /// There is no such run, or the target was not in it or any before it.
    NoSuchRun(i64),
    /// The store could not be read.
    Store(StoreFault),
}

impl From<StoreFault> for WhyFault {
    fn from(fault: StoreFault) -> WhyFault {
        WhyFault::Store(fault)
    }
}

/// The runs of one workspace, and what their targets were made from.
pub struct History<'a> {
    store: &'a Store,
    /// All runs of the store, newest first.
    all: &'a [(i64, RunRecord)],
    workspace: &'a str,
}

/// A run that had a target.
#[derive(Clone, Copy)]
struct Sighting<'a> {
    number: i64,
    run: &'a RunRecord,
    /// The key that it had there.
    key: Digest,
}

impl<'a> History<'a> {
    /// `runs` are all of the store, newest first; others than those of the workspace with this root are no history of its targets.
    pub fn new(store: &'a Store, runs: &'a [(i64, RunRecord)], workspace: &'a str) -> History<'a> {
        History { store, all: runs, workspace }
    }

    fn runs(&self) -> impl Iterator<Item = &'a (i64, RunRecord)> {
        self.all.iter().filter(|(_, run)| run.workspace == self.workspace)
    }

    /// The runs that had `label`, newest first: among their targets, or below one of them.
    fn sightings(&self, label: &str) -> Result<Vec<Sighting<'a>>, StoreFault> {
        let mut keys = KeysBelow::of(label);
        let mut sightings = Vec::new();
        for (number, run) in self.runs() {
            let direct = run.targets.iter().find(|target| target.label == label).map(|target| target.key);
            let key = match direct {
                Some(key) => Some(key),
                // Those asked for come last, and have the others below them.
                None => keys.first(self.store, run.targets.iter().rev().map(|target| target.key))?,
            };
            sightings.extend(key.map(|key| Sighting { number: *number, run, key }));
        }
        Ok(sightings)
    }

    /// The newest run that had `label`, and its key there.
    pub fn newest(&self, label: &str) -> Result<Option<(i64, Digest)>, StoreFault> {
        Ok(self.sightings(label)?.first().map(|sighting| (sighting.number, sighting.key)))
    }

    /// The stages of everything that a run built or answered, by label and name.
    pub fn stages_of(&self, run: i64) -> Result<BTreeMap<(String, String), StageEntry>, StoreFault> {
        let record = self.runs().find(|(number, _)| *number == run);
        let targets = record.iter().flat_map(|(_, run)| &run.targets).map(|target| (target.label.clone(), target.key));
        stages_below(self.store, targets.collect())
    }

    /// Labels that runs built, for hints.
    pub fn labels(&self) -> BTreeSet<&'a str> {
        self.runs().flat_map(|(_, run)| &run.targets).map(|target| target.label.as_str()).collect()
    }

    /// The newest run after `number` that was to build `label` and failed.
    fn failed_after(&self, number: i64, label: &str) -> Option<FailedRun> {
        let after = self.runs().take_while(|(other, _)| *other > number);
        after.filter(|(_, run)| run.requested.iter().any(|wanted| wanted == label)).find_map(|(run, record)| match &record.outcome {
            RunOutcome::Failed(message) => Some(FailedRun { run: *run, message: message.clone() }),
            RunOutcome::Succeeded | RunOutcome::VerdictFailed | RunOutcome::Interrupted => None,
        })
    }

    /// The newest run up to `number`, of any workspace, that built something under `key`.
    fn maker(&self, number: i64, key: Digest) -> Option<i64> {
        let made = |run: &RunRecord| run.targets.iter().any(|target| target.key == key && !target.cached);
        self.all.iter().skip_while(|(other, _)| *other > number).find(|(_, run)| made(run)).map(|(number, _)| *number)
    }

    /// Compares `label` as the newest run has it with what it was before it got that key, or with what it was as of run `since`.
    pub fn why(&self, label: &str, since: Option<i64>) -> Result<Why, WhyFault> {
        let sightings = self.sightings(label)?;
        let Some(newest) = sightings.first().copied() else { return Err(WhyFault::NeverBuilt(self.failed_after(i64::MIN, label))) };
        let before = match since {
            None => sightings.iter().find(|sighting| sighting.key != newest.key),
            Some(since) if self.all.first().is_none_or(|(newest, _)| since > *newest) => return Err(WhyFault::NoSuchRun(since)),
            Some(since) => {
                let found = sightings.iter().find(|sighting| sighting.number <= since);
                Some(found.ok_or(WhyFault::NoSuchRun(since))?)
            }
        };
        let is_later = |sighting: &&Sighting<'_>| sighting.key == newest.key && before.is_none_or(|before| sighting.number > before.number);
        let first = sightings.iter().take_while(is_later).last().copied().unwrap_or(newest);
        let made = self.maker(first.number, newest.key).filter(|made| *made != first.number);
        let mut answer = Why {
            label: label.to_owned(),
            run: first.number,
            before: before.map(|before| before.number),
            made,
            answered: (newest.number != first.number).then_some(newest.number),
            failed: self.failed_after(newest.number, label),
            reasons: Vec::new(),
            stages: Vec::new(),
            kept: 0,
        };
        let Some(before) = before else { return Ok(answer) };
        let keys = (before.key, newest.key);
        answer.reasons = reasons(self.store, label, keys, &BTreeMap::new())?;
        compare_stages(self.store, label, keys, first.run, &mut answer)?;
        Ok(answer)
    }
}

/// Everything that differs below a target between two of its keys, nearest first. `now` are inputs that need not be in
/// the store, by key.
pub fn reasons(
    store: &Store,
    label: &str,
    (old, new): (Digest, Digest),
    now: &BTreeMap<Digest, TargetInputs>,
) -> Result<Vec<Reason>, StoreFault> {
    let mut reasons = Vec::new();
    let mut seen = BTreeSet::new();
    let mut queue = VecDeque::from([(vec![label.to_owned()], old, new)]);
    while let Some((path, old, new)) = queue.pop_front() {
        if old == new || !seen.insert((path[0].clone(), old, new)) {
            continue;
        }
        let inputs = |key: &Digest| match now.get(key) {
            Some(inputs) => Ok(Some(inputs.clone())),
            None => store.record::<TargetInputs>(RecordKind::Inputs, key),
        };
        let (Some(old), Some(new)) = (inputs(&old)?, inputs(&new)?) else {
            reasons.push(Reason { change: Change::Unknown, path });
            continue;
        };
        reasons.extend(changes(&old, &new).into_iter().map(|change| Reason { change, path: path.clone() }));
        let known: BTreeMap<&str, Digest> = old.dependencies.iter().map(|(_, label, key)| (label.as_str(), *key)).collect();
        for (_, label, key) in &new.dependencies {
            if let Some(before) = known.get(label.as_str()) {
                let mut longer = vec![label.clone()];
                longer.extend(path.iter().cloned());
                queue.push_back((longer, *before, *key));
            }
        }
    }
    Ok(reasons)
}

/// What differs in a target itself.
fn changes(old: &TargetInputs, new: &TargetInputs) -> Vec<Change> {
    let mut changes = Vec::new();
    if old.rule != new.rule {
        changes.push(Change::Field { field: "rule".to_owned(), old: Some(old.rule.clone()), new: Some(new.rule.clone()) });
    }
    for (part, old, new) in
        differing(old.code.iter().map(|(name, digest)| (name, digest)), new.code.iter().map(|(name, digest)| (name, digest)))
    {
        changes.push(Change::Code { part, old, new });
    }
    for (field, old, new) in
        differing(old.fields.iter().map(|(name, value)| (name, value)), new.fields.iter().map(|(name, value)| (name, value)))
    {
        changes.push(Change::Field { field, old, new });
    }
    for (path, old, new) in
        differing(old.sources.iter().map(|(_, path, digest)| (path, digest)), new.sources.iter().map(|(_, path, digest)| (path, digest)))
    {
        changes.push(Change::Source { path, old, new });
    }
    changes
}

type Differing<V> = Vec<(String, Option<V>, Option<V>)>;

/// Names whose values differ, in order.
fn differing<'a, V: Clone + PartialEq + 'a>(
    old: impl Iterator<Item = (&'a String, &'a V)>,
    new: impl Iterator<Item = (&'a String, &'a V)>,
) -> Differing<V> {
    let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) = (old.collect(), new.collect());
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).copied().collect();
    let pairs = names.into_iter().map(|name| (name.clone(), old.get(name).copied().cloned(), new.get(name).copied().cloned()));
    pairs.filter(|(_, old, new)| old != new).collect()
}

/// The stages of a target and of what it depends on, under two keys.
fn compare_stages(store: &Store, label: &str, keys: (Digest, Digest), run: &RunRecord, answer: &mut Why) -> Result<(), StoreFault> {
    let below = |key| stages_below(store, vec![(label.to_owned(), key)]);
    let (old, new) = (below(keys.0)?, below(keys.1)?);
    let mut found: BTreeMap<(String, String), StageChange> = BTreeMap::new();
    for ((label, name), entry) in &new {
        let before = old.get(&(label.clone(), name.clone()));
        if before.is_some_and(|before| before.key == entry.key) {
            answer.kept += 1;
            continue;
        }
        let effect = match before {
            None => Effect::New,
            Some(before) if before.digest == entry.digest => Effect::CutOff,
            Some(_) => Effect::Changed,
        };
        let because = match before {
            Some(before) => because(store, before.key, entry.key)?,
            None => Vec::new(),
        };
        let is_this = |stage: &&StageRun| stage.label == *label && stage.name.to_string() == *name && stage.end == StageEnd::Executed;
        let ran = run.stages.iter().find(is_this);
        let change = StageChange {
            label: label.clone(),
            stage: name.clone(),
            effect,
            executed: ran.is_some(),
            because,
            elapsed_ms: ran.map_or(0.0, |stage| stage.elapsed_ms),
        };
        found.insert((label.clone(), name.clone()), change);
    }
    // In the order in which they ended; those that the run found in the store by themselves, last.
    for stage in &run.stages {
        answer.stages.extend(found.remove(&(stage.label.clone(), stage.name.to_string())));
    }
    answer.stages.extend(found.into_values());
    Ok(())
}

/// Stages of these targets, given with their keys, and of the targets below them, by label and name.
fn stages_below(store: &Store, mut queue: Vec<(String, Digest)>) -> Result<BTreeMap<(String, String), StageEntry>, StoreFault> {
    let mut stages = BTreeMap::new();
    let mut seen = BTreeSet::new();
    while let Some((label, key)) = queue.pop() {
        if !seen.insert(key) {
            continue;
        }
        if let Some(record) = store.record::<TargetRecord>(RecordKind::Target, &key)? {
            stages.extend(record.stages.into_iter().map(|stage| ((label.clone(), stage.name.to_string()), stage)));
            stages.extend(record.below.into_iter().map(|(label, stage)| ((label, stage.name.to_string()), stage)));
        }
        if let Some(inputs) = store.record::<TargetInputs>(RecordKind::Inputs, &key)? {
            queue.extend(inputs.dependencies.into_iter().map(|(_, label, key)| (label, key)));
        }
    }
    Ok(stages)
}

/// Names of the inputs that differ between two keys of a stage.
fn because(store: &Store, old: Digest, new: Digest) -> Result<Vec<String>, StoreFault> {
    let (Some(old), Some(new)) = (StageFacts::read(store, &old)?, StageFacts::read(store, &new)?) else { return Ok(Vec::new()) };
    let mut names: Vec<String> = Vec::new();
    if old.fingerprint != new.fingerprint {
        names.push("code".to_owned());
    }
    let longer = old.inputs.len().max(new.inputs.len());
    for index in 0..longer {
        let (before, after) = (old.inputs.get(index), new.inputs.get(index));
        if before != after
            && let Some((name, _)) = after.or(before)
            && !names.contains(name)
        {
            names.push(name.clone());
        }
    }
    Ok(names)
}
