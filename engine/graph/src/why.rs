//! Why a target was built again: two of its builds compared, from records alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;
use store::{Digest, RecordKind, Store, StoreFault};

use crate::{RunRecord, StageEnd, StageEntry, StageFacts, TargetInputs, TargetRecord};

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
    /// The run that built it last.
    pub run: i64,
    /// The run with its build before that; none when there is none.
    pub before: Option<i64>,
    /// The newest run that asked for it, when that answered from the record.
    pub answered: Option<i64>,
    /// What changed.
    pub reasons: Vec<Reason>,
    /// Stages with other keys, in the order in which they ended.
    pub stages: Vec<StageChange>,
    /// Stages with the keys of before.
    pub kept: usize,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyFault {
    /// No run of this store built the target.
    NeverBuilt,
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

/// Where a run has a target, with the key it had there.
fn sightings<'a>(runs: &'a [(i64, RunRecord)], label: &'a str) -> impl Iterator<Item = (i64, &'a RunRecord, Digest, bool)> {
    runs.iter().filter_map(move |(number, run)| {
        let target = run.targets.iter().find(|target| target.label == label)?;
        Some((*number, run, target.key, target.cached))
    })
}

/// Compares the newest build of `label` with the one before, or with what it was as of run `since`. `runs` are newest
/// first.
pub fn why(store: &Store, runs: &[(i64, RunRecord)], label: &str, since: Option<i64>) -> Result<Why, WhyFault> {
    let Some((newest, newest_run, key, _)) = sightings(runs, label).next() else { return Err(WhyFault::NeverBuilt) };
    let before = match since {
        Some(since) if runs.first().is_none_or(|(newest, _)| since > *newest) => return Err(WhyFault::NoSuchRun(since)),
        None => sightings(runs, label).find(|(_, _, other, _)| *other != key),
        Some(since) => match sightings(runs, label).find(|(number, ..)| *number <= since) {
            Some(found) => Some(found),
            None => return Err(WhyFault::NoSuchRun(since)),
        },
    };
    // The first of the runs after `before` with this key is the one that built it.
    let built = sightings(runs, label)
        .take_while(|(number, _, other, _)| *other == key && before.is_none_or(|(before, ..)| *number > before))
        .last()
        .unwrap_or((newest, newest_run, key, false));
    let (run, run_record, ..) = built;
    let mut answer = Why {
        label: label.to_owned(),
        run,
        before: before.map(|(number, ..)| number),
        answered: (newest != run).then_some(newest),
        reasons: Vec::new(),
        stages: Vec::new(),
        kept: 0,
    };
    let Some((.., old_key, _)) = before else { return Ok(answer) };
    answer.reasons = reasons(store, label, (old_key, key), &BTreeMap::new())?;
    compare_stages(store, label, (old_key, key), run_record, &mut answer)?;
    Ok(answer)
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
    let (old, new) = (stages_below(store, label, keys.0)?, stages_below(store, label, keys.1)?);
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
        let ran = run.stages.iter().find(|stage| stage.key == entry.key && stage.end == StageEnd::Executed);
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

/// Stages of the target and of the targets below it that have records, by label and name.
pub fn stages_below(store: &Store, label: &str, key: Digest) -> Result<BTreeMap<(String, String), StageEntry>, StoreFault> {
    let mut stages = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut queue = vec![(label.to_owned(), key)];
    while let Some((label, key)) = queue.pop() {
        if !seen.insert(key) {
            continue;
        }
        if let Some(record) = store.record::<TargetRecord>(RecordKind::Target, &key)? {
            stages.extend(record.stages.into_iter().map(|stage| ((label.clone(), stage.name.to_string()), stage)));
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
