//! The points of loaded sweeps as targets of their own.
//!
//! At a point, the target of the sweep and everything below it that has a changed field, or needs something that has one, are
//! targets of their own, with the declarations that `--set` would make. All else is shared with the other points. In embedded
//! repositories nothing is changed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::{Point, Setting, Sweep};
use crate::build_file::BuildFile;
use crate::declaration::{FieldFault, unknown_field};
use crate::diagnostic::Problem;
use crate::loader::{Found, Loader, ReadTarget, found};
use crate::toml_tree::{Node, NodeValue, Span};
use crate::{Dependency, Label, Place, RuleKind};

/// Adds the points of every sweep that was read, as targets that it depends on.
pub(crate) fn expand(loader: &mut Loader<'_>) {
    let sweeps: Vec<Label> =
        loader.targets.values().filter(|target| sweep_of(target).is_some()).map(|target| target.label.clone()).collect();
    for label in sweeps {
        let expanded = loader.targets.get(&label).and_then(|target| Expansion::of(loader, target)).map(|mut expansion| {
            let points = expansion.points();
            (points, expansion.faults)
        });
        let Some((targets, faults)) = expanded else { continue };
        loader.faults.extend(faults);
        if let Some(sweep) = loader.targets.get_mut(&label) {
            let points = targets.iter().filter(|target| target.label.is_point());
            let dependency = |label: &Label| Dependency { field: format!("points{}", label.point_text()), label: label.clone() };
            let header = sweep.header.clone();
            sweep.dependencies.extend(points.map(|target| (dependency(&target.label), header.clone())));
        }
        targets.into_iter().for_each(|target| loader.targets.insert(target.label.clone(), target));
    }
    loader.targets.sort();
}

fn sweep_of(target: &ReadTarget) -> Option<Arc<Sweep>> {
    target.data.as_ref()?.data.clone().downcast().ok()
}

/// A sweep whose points are being made.
struct Expansion<'a> {
    declared: &'a ReadTarget,
    sweep: Arc<Sweep>,
    /// What is another target at every point, dependencies first; the last one is the point itself.
    members: Vec<&'a ReadTarget>,
    /// Where the values stand.
    places: HashMap<String, Arc<Place>>,
    faults: Vec<Found>,
}

impl<'a> Expansion<'a> {
    /// `None` when its target is not there or no point of it can be made; what is wrong with the label is told with all others.
    fn of(loader: &'a Loader<'_>, declared: &'a ReadTarget) -> Option<Expansion<'a>> {
        let sweep = sweep_of(declared)?;
        let target = loader.targets.get(&sweep.of)?;
        let rule = target.rule.as_ref()?;
        let mut expansion = Expansion { declared, sweep, members: Vec::new(), places: HashMap::new(), faults: Vec::new() };
        if matches!(rule.kind(), RuleKind::Built | RuleKind::Run) && !target.label.is_at_point() {
            expansion.members = expansion.members_among(closure(loader, target));
        } else {
            let what = if target.label.is_at_point() { "point of a sweep".to_owned() } else { format!("`{}`", rule.name()) };
            let message = format!("`{}` is a {what}", target.label);
            let problem = Problem::Rule { message, expected: "a target that gives something, as a `run` or a `program`".to_owned() };
            let span = declared.node.nearest("of").span.clone();
            expansion.faults.push(found(&declared.file, Some(&declared.label), "of", &span, problem));
        }
        Some(expansion)
    }

    /// Those of `targets` that have a field of some axis, or need one that has.
    fn members_among(&mut self, targets: Vec<&'a ReadTarget>) -> Vec<&'a ReadTarget> {
        let own: Vec<&ReadTarget> = targets.into_iter().filter(|target| target.label.package().repository.is_empty()).collect();
        let known: BTreeSet<&str> = own.iter().flat_map(|target| fields_of(target)).collect();
        for (name, axis) in &self.sweep.clone().axes {
            let single = axis.field.iter().map(|field| (format!("axes.{name}.field"), field));
            let several = axis.fields.iter().flatten().enumerate();
            let several = several.map(|(index, field)| (format!("axes.{name}.fields[{index}]"), field));
            for (at, field) in single.chain(several) {
                let first = field.split('.').next().unwrap_or_default();
                if !known.contains(first) {
                    let known: Vec<&str> = known.iter().copied().collect();
                    let span = self.declared.node.nearest(&at).span.clone();
                    self.faults.push(found(&self.declared.file, Some(&self.declared.label), &at, &span, unknown_field(first, &known)));
                }
            }
        }
        let changed: BTreeSet<&str> = self
            .sweep
            .expanded
            .iter()
            .flat_map(|point| &point.settings)
            .filter_map(|setting| Some(setting.path.first()?.as_str()))
            .collect();
        let mut labels: HashSet<&Label> = HashSet::new();
        let of = self.sweep.of.target();
        let mut members = Vec::new();
        for target in own {
            let is_changed = fields_of(target).any(|field| changed.contains(field));
            let needs_changed = target.dependencies.iter().any(|(used, _)| labels.contains(&used.label.target()));
            // Where no axis reaches the target itself, a fault was noted above.
            if is_changed || needs_changed || target.label == of {
                labels.insert(&target.label);
                members.push(target);
            }
        }
        members
    }

    fn points(&mut self) -> Vec<ReadTarget> {
        let sweep = self.sweep.clone();
        if !self.faults.is_empty() {
            return Vec::new();
        }
        sweep.expanded.iter().flat_map(|point| self.point(point)).collect()
    }

    /// The members at one point.
    fn point(&mut self, point: &Point) -> Vec<ReadTarget> {
        let label = self.declared.label.at_point(&point.names);
        let of = self.sweep.of.target();
        let name = |target: &Label| if *target == of { label.clone() } else { label.member(target) };
        let labels: BTreeMap<&Label, Label> = self.members.iter().map(|member| (&member.label, name(&member.label))).collect();
        let mut targets = Vec::new();
        for member in self.members.clone() {
            let mut node = member.node.clone();
            for setting in &point.settings {
                if setting.path.first().is_some_and(|first| fields_of(member).any(|field| field == first)) {
                    let span = self.span_of(setting);
                    node.set(&setting.path, setting.value.node(&span));
                }
            }
            for (used, span) in &member.dependencies {
                if let Some(label) = labels.get(&used.label.target()) {
                    rename(&mut node, span, &used.label, label, member);
                }
            }
            let place = (&member.file, member.header.clone());
            let declared_in = (member.label.package(), member.label.name());
            let (target, faults) = ReadTarget::of(labels[&member.label].clone(), declared_in, member.rule.clone(), node, place);
            self.note(&member.file, &target.label, faults);
            targets.push(target);
        }
        targets
    }

    /// Faults of values, each once: most values are those of many points.
    fn note(&mut self, file: &Arc<BuildFile>, label: &Label, faults: Vec<FieldFault>) {
        for FieldFault { field, span, problem } in faults {
            let fault = found(file, Some(label), &field, &span, problem);
            let is_new = |known: &Found| {
                (&known.diagnostic.place, &known.diagnostic.problem) != (&fault.diagnostic.place, &fault.diagnostic.problem)
            };
            if self.faults.iter().all(is_new) {
                self.faults.push(fault);
            }
        }
    }

    fn span_of(&mut self, setting: &Setting) -> Span {
        let declared = self.declared;
        let place = self.places.entry(setting.at.clone());
        let place = place.or_insert_with(|| Arc::new(declared.file.place(&declared.node.nearest(&setting.at).span)));
        Span::Elsewhere(place.clone())
    }
}

fn fields_of(target: &ReadTarget) -> impl Iterator<Item = &'static str> + use<> {
    target.rule.as_ref().map(|rule| rule.fields()).unwrap_or_default().iter().map(|field| field.name)
}

/// `target` and everything below it that was read, dependencies first.
fn closure<'a>(loader: &'a Loader<'_>, target: &'a ReadTarget) -> Vec<&'a ReadTarget> {
    let mut seen: HashSet<&Label> = HashSet::from([&target.label]);
    let mut ordered = Vec::new();
    // An own stack: a chain of targets may be longer than the thread's.
    let mut path = vec![(target, 0)];
    while let Some((target, next)) = path.last_mut() {
        let target = *target;
        match target.dependencies.get(*next) {
            Some((used, _)) => {
                *next += 1;
                path.extend(loader.targets.get(&used.label.target()).filter(|used| seen.insert(&used.label)).map(|used| (used, 0)));
            }
            None => {
                ordered.push(target);
                path.pop();
            }
        }
    }
    ordered
}

/// Puts another label into the text of `node` that stands at `span` and names `old`.
fn rename(node: &mut Node, span: &Span, old: &Label, new: &Label, declared: &ReadTarget) {
    match &mut node.value {
        NodeValue::Text(text) if node.span == *span && Label::parse(text, declared.label.package()).as_ref() == Ok(old) => {
            *text = new.to_string();
        }
        NodeValue::Array(nodes) => nodes.iter_mut().for_each(|node| rename(node, span, old, new, declared)),
        NodeValue::Table(entries) => entries.iter_mut().for_each(|entry| rename(&mut entry.node, span, old, new, declared)),
        _ => {}
    }
}
