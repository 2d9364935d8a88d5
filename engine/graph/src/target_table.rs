//! The targets below the requested ones by number, in dependency order, with their keys: what an edited file reaches is
//! found by walking numbers, and only that is keyed and built again.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use store::{Digest, KeyBuilder};

use crate::packed::{Digests, Lists, Texts};
use crate::{Label, LoadedTarget, PackageName, SourcePath};

/// See the module. A target's dependencies and sources stand in the order of [`LoadedTarget::dependencies`] and
/// [`LoadedTarget::sources`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TargetTable {
    labels: Texts,
    /// Names of rules, and the number in it for each target.
    rules: Vec<String>,
    rule_of: Vec<u8>,
    dependencies: Lists,
    sources: Lists,
    files: Texts,
    file_digests: Digests,
    keys: Digests,
    /// See [`crate::Target::outcome`]; [`Digest::ABSENT`] for targets not built yet.
    outcomes: Digests,
    /// Whether the target was built, or needs no building, with its key.
    done: Vec<bool>,
    /// The requested targets: of those at points of sweeps, the only ones whose files are written.
    #[serde(skip)]
    asked: BTreeSet<usize>,
    #[serde(skip)]
    users: Option<Users>,
}

/// Who uses what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Users {
    of_targets: Lists,
    of_files: Lists,
}

impl TargetTable {
    /// These targets, a closure with dependencies first, without keys; files in the order in which they are met.
    pub(crate) fn of(closure: &[&LoadedTarget]) -> TargetTable {
        let mut table = TargetTable::default();
        let numbers: HashMap<&Label, u32> = closure.iter().zip(0..).map(|(target, number)| (target.label(), number)).collect();
        let mut files: HashMap<&SourcePath, u32> = HashMap::new();
        for target in closure {
            table.labels.push(&target.label().to_string());
            table.push_rule(target.rule().name());
            // Every dependency is in the closure: the loader leaves no label dangling.
            table.dependencies.push(target.dependencies().iter().filter_map(|used| numbers.get(&used.label.target()).copied()));
            for source in target.sources() {
                let next = files.len() as u32;
                if *files.entry(&source.path).or_insert(next) == next {
                    table.files.push(&source.path.to_string());
                }
            }
            table.sources.push(target.sources().iter().filter_map(|source| files.get(&source.path).copied()));
        }
        table.file_digests = Digests(vec![Digest::ABSENT; files.len()]);
        table.keys = Digests(vec![Digest::ABSENT; closure.len()]);
        table.outcomes = table.keys.clone();
        table.done = vec![false; closure.len()];
        table
    }

    /// Whether all numbers in it name something; one read from the store may be of another program.
    pub(crate) fn is_sound(&self) -> bool {
        let (targets, files) = (self.labels.len(), self.files.len());
        self.rule_of.len() == targets
            && self.rule_of.iter().all(|rule| usize::from(*rule) < self.rules.len())
            && self.dependencies.len() == targets
            && self.sources.len() == targets
            && self.keys.0.len() == targets
            && self.outcomes.0.len() == targets
            && self.done.len() == targets
            && self.file_digests.0.len() == files
            && self.dependencies.is_sound(targets)
            && self.sources.is_sound(files)
    }

    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The label of a target; `None` only for text that is no label, as in a damaged table.
    pub(crate) fn label(&self, target: usize) -> Option<Label> {
        Label::parse(self.labels.get(target), &PackageName::in_workspace("")).ok()
    }

    /// Whether the target is at a point of a sweep.
    pub(crate) fn is_at_point(&self, target: usize) -> bool {
        self.labels.get(target).contains('[')
    }

    pub(crate) fn set_asked(&mut self, asked: BTreeSet<usize>) {
        self.asked = asked;
    }

    pub(crate) fn is_asked(&self, target: usize) -> bool {
        self.asked.contains(&target)
    }

    /// There are fewer rules than a byte counts; what does not fit is no rule's name and is loaded from the start.
    fn push_rule(&mut self, name: &str) {
        let number = self.rules.iter().position(|known| known == name).unwrap_or_else(|| {
            self.rules.push(name.to_owned());
            self.rules.len() - 1
        });
        self.rule_of.push(u8::try_from(number).unwrap_or(u8::MAX));
    }

    /// The name of a target's rule.
    pub(crate) fn rule(&self, target: usize) -> &str {
        &self.rules[usize::from(self.rule_of[target])]
    }

    /// The numbers of `labels`, in their order; of one that is not in the table, none.
    pub(crate) fn find(&self, labels: &[Label]) -> Vec<Option<usize>> {
        self.labels.find(labels.iter().map(|label| label.target().to_string()))
    }

    /// The numbers of files, in their order; of one that no target uses, none.
    pub(crate) fn find_files(&self, paths: &[SourcePath]) -> Vec<Option<usize>> {
        self.files.find(paths.iter().map(ToString::to_string))
    }

    pub(crate) fn file_count(&self) -> usize {
        self.files.len()
    }

    /// A file as it is displayed.
    pub(crate) fn file_text(&self, file: usize) -> &str {
        self.files.get(file)
    }

    pub(crate) fn file_digest(&self, file: usize) -> Digest {
        self.file_digests.0[file]
    }

    pub(crate) fn dependencies(&self, target: usize) -> impl Iterator<Item = usize> {
        self.dependencies.get(target).iter().map(|number| *number as usize)
    }

    pub(crate) fn sources(&self, target: usize) -> impl Iterator<Item = usize> {
        self.sources.get(target).iter().map(|number| *number as usize)
    }

    pub(crate) fn key(&self, target: usize) -> Digest {
        self.keys.0[target]
    }

    pub(crate) fn outcome(&self, target: usize) -> Digest {
        self.outcomes.0[target]
    }

    pub(crate) fn is_done(&self, target: usize) -> bool {
        self.done[target]
    }

    pub(crate) fn set_done(&mut self, target: usize, outcome: Digest) {
        self.outcomes.0[target] = outcome;
        self.done[target] = true;
    }

    pub(crate) fn set_undone(&mut self, target: usize) {
        self.done[target] = false;
    }

    /// Takes over what `before` had built under the same labels and keys.
    pub(crate) fn keep_done(&mut self, before: &TargetTable) {
        let numbers: HashMap<&str, usize> = (0..before.len()).map(|target| (before.labels.get(target), target)).collect();
        for target in 0..self.len() {
            if let Some(known) = numbers.get(self.labels.get(target))
                && before.done[*known]
                && before.keys.0[*known] == self.keys.0[target]
            {
                self.set_done(target, before.outcomes.0[*known]);
            }
        }
    }

    /// Gives a file its digest before anything is keyed.
    pub(crate) fn set_file(&mut self, file: usize, digest: Digest) {
        self.file_digests.0[file] = digest;
    }

    /// Gives files their digests; the targets that use one that changed, directly or not, in dependency order. They have
    /// to be keyed and built again.
    pub(crate) fn change_files(&mut self, changes: &[(usize, Digest)]) -> Vec<usize> {
        let changed: Vec<usize> =
            changes.iter().filter(|(file, digest)| self.file_digests.0[*file] != *digest).map(|(file, _)| *file).collect();
        for (file, digest) in changes {
            self.file_digests.0[*file] = *digest;
        }
        if changed.is_empty() {
            return Vec::new();
        }
        let users = self.users.take().unwrap_or_else(|| Users {
            of_targets: self.dependencies.reversed(self.len()),
            of_files: self.sources.reversed(self.file_count()),
        });
        let mut is_dirty = vec![false; self.len()];
        let mut queue: Vec<u32> = changed.iter().flat_map(|file| users.of_files.get(*file)).copied().collect();
        while let Some(target) = queue.pop() {
            if !std::mem::replace(&mut is_dirty[target as usize], true) {
                queue.extend(users.of_targets.get(target as usize));
            }
        }
        self.users = Some(users);
        let dirty: Vec<usize> = is_dirty.iter().enumerate().filter(|(_, dirty)| **dirty).map(|(target, _)| target).collect();
        dirty.iter().for_each(|target| self.done[*target] = false);
        dirty
    }

    /// Computes the shallow key of a target whose dependencies have theirs: blake3 of the rule, the normalised declaration,
    /// the rule's fingerprint, the sources' digests and the dependencies' shallow keys. A target that had another one is not
    /// done.
    pub(crate) fn set_key(&mut self, target: usize, loaded: &LoadedTarget) {
        // The number stands for the form of the record under it.
        let mut key = KeyBuilder::new("target 3");
        key.text(loaded.declared().rule).digest(&loaded.declared().digest).digest(&loaded.rule().fingerprint());
        for (source, file) in loaded.sources().iter().zip(self.sources(target)) {
            key.text(&source.field).digest(&self.file_digests.0[file]);
        }
        for (dependency, number) in loaded.dependencies().iter().zip(self.dependencies(target)) {
            key.text(&dependency.field).text(&dependency.label.to_string()).digest(&self.keys.0[number]);
        }
        let key = key.finish();
        if self.keys.0[target] != key {
            self.keys.0[target] = key;
            self.done[target] = false;
        }
    }

    /// `target` and what it depends on that is not done, dependencies first. What is done has only done dependencies.
    pub(crate) fn not_done_below(&self, target: usize) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        let mut queue = vec![target];
        while let Some(target) = queue.pop() {
            if !self.done[target] && seen.insert(target) {
                queue.extend(self.dependencies(target));
            }
        }
        // Numbers are in dependency order.
        seen.into_iter().collect()
    }
}
