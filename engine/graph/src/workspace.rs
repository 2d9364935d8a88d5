//! A loaded workspace: every target that the requested ones can reach, checked.

use std::any::Any;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use store::Digest;

use crate::build_file::BuildFile;
use crate::diagnostic::{Diagnostics, Place, Problem};
use crate::label_map::LabelMap;
use crate::loader::PackageWalk;
use crate::toml_tree::{Node, NodeValue, Span};
use crate::{
    Declared, Dependency, Diagnostic, EmbeddedRepository, Failure, Label, Override, PackageName, Pattern, Registry, Rule, RuleKind,
    SourceUse, loader,
};

/// What to load.
pub struct LoadRequest<'a> {
    /// The directory with WORKSPACE.toml, absolute and without symbolic links; see [`Workspace::find_root`].
    pub root: &'a Utf8Path,
    /// The rules that may be used.
    pub registry: &'a Registry,
    /// The repositories that come with the program.
    pub repositories: &'a [EmbeddedRepository],
    /// The targets wanted; packages are loaded as far as these reach.
    pub patterns: &'a [Pattern],
    /// Changes to the declarations of the workspace's own targets.
    pub overrides: &'a [Override],
}

/// Targets with their rules, dependencies and sources. No label dangles, no target depends on itself, no label names a
/// target of a rule that its field does not accept, every source exists.
pub struct Workspace {
    pub(crate) root: Utf8PathBuf,
    pub(crate) name: String,
    pub(crate) targets: LabelMap<LoadedTarget>,
    pub(crate) requested: Vec<Label>,
    /// WORKSPACE.toml and the BUILD.toml files read, below the root, with the digests of what was read.
    pub(crate) files: Vec<(String, Digest)>,
    /// The walk that patterns needed.
    pub(crate) walk: Option<PackageWalk>,
}

/// One target of a workspace.
pub struct LoadedTarget {
    pub(crate) label: Label,
    pub(crate) rule: Arc<dyn Rule>,
    pub(crate) declared: Declared,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) sources: Vec<SourceUse>,
    pub(crate) file: Arc<BuildFile>,
    pub(crate) header: Span,
    pub(crate) node: Node,
}

impl LoadedTarget {
    /// Its label.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// Its rule.
    pub fn rule(&self) -> &Arc<dyn Rule> {
        &self.rule
    }

    /// Its declaration without positions.
    pub fn declared(&self) -> &Declared {
        &self.declared
    }

    /// Its fields, when its rule's data is a `T`.
    pub fn data<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.declared.data.clone().downcast().ok()
    }

    /// The labels in its declaration, by field.
    pub fn dependencies(&self) -> &[Dependency] {
        &self.dependencies
    }

    /// The files in its declaration, by field.
    pub fn sources(&self) -> &[SourceUse] {
        &self.sources
    }

    /// Its fields as declared, changes of the command line included: name and value as TOML, in the order of the text.
    pub fn fields(&self) -> Vec<(String, String)> {
        let NodeValue::Table(entries) = &self.node.value else { return Vec::new() };
        let declared = entries.iter().filter(|entry| entry.key != "rule");
        declared.map(|entry| (entry.key.clone(), entry.node.to_string())).collect()
    }

    /// Every value declared, by the path of its field as in `layout.tiles` or `op[2].args`, in TOML; a list of plain values is
    /// one value.
    pub fn leaves(&self) -> Vec<(String, String)> {
        let mut leaves = Vec::new();
        self.node.add_leaves("", &mut leaves);
        leaves.retain(|(path, _)| path != "rule");
        leaves
    }

    /// Where it is declared.
    pub fn place(&self) -> Place {
        self.file.place(&self.header)
    }

    /// Where `field` stands, as in `layout.tiles`; the nearest table around it when it is not written.
    pub fn place_of(&self, field: &str) -> Place {
        if field.is_empty() { self.place() } else { self.file.place(&self.node.nearest(field).span) }
    }
}

impl Workspace {
    /// The nearest directory from `start` upwards that has a WORKSPACE.toml.
    pub fn find_root(start: &Utf8Path) -> Result<Utf8PathBuf, Diagnostics> {
        let problem = |problem| Diagnostics(vec![Diagnostic { label: None, field: String::new(), place: None, problem, other: None }]);
        let start = start.canonicalize_utf8().map_err(|error| problem(Problem::Unreadable { message: format!("{start}: {error}") }))?;
        start
            .ancestors()
            .find(|directory| directory.join("WORKSPACE.toml").is_file())
            .map(Utf8Path::to_owned)
            .ok_or_else(|| problem(Problem::NoWorkspace { directory: start.to_string() }))
    }

    /// Loads what `request` wants, or says everything that is wrong with it.
    pub fn load(request: &LoadRequest<'_>) -> Result<Workspace, Diagnostics> {
        loader::load(request)
    }

    /// Loads these targets alone; see [`loader::load_part`].
    pub(crate) fn load_part(request: &LoadRequest<'_>, only: &BTreeSet<Label>) -> Result<Workspace, Diagnostics> {
        loader::load_part(request, only)
    }

    /// The directory with WORKSPACE.toml.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The name in WORKSPACE.toml.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The targets that the patterns of the request name, in label order within a pattern.
    pub fn requested(&self) -> &[Label] {
        &self.requested
    }

    /// A loaded target.
    pub fn target(&self, label: &Label) -> Option<&LoadedTarget> {
        self.targets.get(&label.target())
    }

    /// All loaded targets, in label order.
    pub fn targets(&self) -> impl Iterator<Item = &LoadedTarget> {
        self.targets.values()
    }

    /// The loaded targets that `pattern` names.
    pub fn expand(&self, pattern: &Pattern) -> Vec<Label> {
        self.targets.labels().filter(|label| matches(pattern, label)).cloned().collect()
    }

    /// `labels` and everything they depend on, dependencies first.
    pub fn closure<'a>(&'a self, labels: impl IntoIterator<Item = &'a Label>) -> Vec<&'a LoadedTarget> {
        let mut seen = HashSet::new();
        let mut ordered = Vec::new();
        for label in labels {
            // An own stack: a chain of targets may be longer than the thread's.
            let mut path: Vec<(&LoadedTarget, usize)> = Vec::new();
            let enter = |label: &Label, seen: &mut HashSet<&'a Label>| {
                self.target(label).filter(|target| seen.insert(&target.label)).map(|target| (target, 0))
            };
            path.extend(enter(label, &mut seen));
            while let Some((target, next)) = path.last_mut() {
                let target = *target;
                match target.dependencies.get(*next) {
                    Some(dependency) => {
                        *next += 1;
                        path.extend(enter(&dependency.label, &mut seen));
                    }
                    None => {
                        ordered.push(target);
                        path.pop();
                    }
                }
            }
        }
        ordered
    }

    /// The targets that use `label` directly, in label order.
    pub fn users(&self, label: &Label) -> Vec<&LoadedTarget> {
        let label = label.target();
        let uses = |target: &&LoadedTarget| target.dependencies.iter().any(|used| used.label.target() == label);
        self.targets.values().filter(uses).collect()
    }

    /// `labels` with every suite replaced by its members, each once, in order.
    pub fn expand_suites(&self, labels: &[Label]) -> Vec<Label> {
        let mut expanded = Vec::new();
        let mut seen = HashSet::new();
        for label in labels {
            self.expand_suite(label, &mut seen, &mut expanded);
        }
        expanded
    }

    fn expand_suite(&self, label: &Label, seen: &mut HashSet<Label>, expanded: &mut Vec<Label>) {
        if !seen.insert(label.clone()) {
            return;
        }
        match self.target(label) {
            Some(target) if target.rule.kind() == RuleKind::Suite => {
                target.dependencies.iter().for_each(|member| self.expand_suite(&member.label, seen, expanded));
            }
            _ => expanded.push(label.clone()),
        }
    }

    /// The failure as a message with the place of its field, `error: LABEL, FIELD: …` and ` --> FILE:LINE:COLUMN`.
    pub fn explain(&self, failure: &Failure) -> String {
        let place = failure
            .label()
            .and_then(|label| self.target(label))
            .map(|target| format!("\n --> {}", target.place_of(failure.field().unwrap_or(""))));
        format!("error: {failure}{}", place.unwrap_or_default())
    }

    /// Where the exported files of `label` lie; see [`Label::artifacts`].
    pub fn artifacts_of(&self, label: &Label) -> Utf8PathBuf {
        self.root.join(label.artifacts())
    }
}

/// Points of sweeps are named one by one: a pattern stands for the sweep.
pub(crate) fn matches(pattern: &Pattern, label: &Label) -> bool {
    match pattern {
        Pattern::One(wanted) => wanted.target() == *label,
        Pattern::Below(package) => !label.is_at_point() && is_below(package, label.package()),
    }
}

pub(crate) fn is_below(package: &PackageName, candidate: &PackageName) -> bool {
    let rest = candidate.path.strip_prefix(package.path.as_str());
    package.repository == candidate.repository
        && (package.path.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}
