//! Checks what only all targets together show: labels that name nothing or the wrong thing, circles, missing files.

use std::collections::HashMap;

use crate::diagnostic::Problem;
use crate::loader::{Found, Loader, ReadTarget, found};
use crate::nearest::nearest;
use crate::toml_tree::Span;
use crate::{Dependency, Label, SourcePath, SourceUse};

pub(crate) fn check(loader: &Loader<'_>) -> Vec<Found> {
    let mut faults = Vec::new();
    for target in loader.targets.values() {
        for (dependency, span) in &target.dependencies {
            faults.extend(check_dependency(loader, target, dependency, span));
        }
        for (source, span) in &target.sources {
            faults.extend(check_source(loader, target, source, span));
        }
    }
    faults.extend(cycles(loader));
    faults
}

fn check_dependency(loader: &Loader<'_>, target: &ReadTarget, dependency: &Dependency, span: &Span) -> Option<Found> {
    let label = dependency.label.target();
    let fault = |problem| found(&target.file, Some(&target.label), &dependency.field, span, problem);
    if let Some(problem) = loader.missing(&label) {
        return Some(fault(problem));
    }
    let named = loader.targets.get(&label)?;
    let (rule, user) = (named.rule.as_ref()?, target.rule.as_ref()?);
    let name = dependency.field.split(['.', '[']).next().unwrap_or_default();
    let accepts = user.fields().iter().find(|field| field.name == name)?.accepts;
    if accepts.is_empty() || accepts.contains(&rule.name()) {
        return None;
    }
    let accepts = accepts.iter().map(|&name| name.to_owned()).collect();
    let mut fault = fault(Problem::WrongKind { found: label.clone(), rule: rule.name().to_owned(), accepts });
    fault.diagnostic.other = Some((named.file.place(&named.header), format!("`{label}` is declared here")));
    Some(fault)
}

fn check_source(loader: &Loader<'_>, target: &ReadTarget, source: &SourceUse, span: &Span) -> Option<Found> {
    let SourcePath { repository, path } = &source.path;
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let exists = repository.is_empty() && loader.request.root.join(path).exists();
    let siblings: Vec<String> = if repository.is_empty() {
        let place = loader.request.root.join(path);
        if place.is_file() {
            return None;
        }
        let folder = loader.request.root.join(folder);
        let entries = folder.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| entry.file_name().to_owned()).collect()
    } else {
        let repository = loader.request.repositories.iter().find(|known| known.name == *repository)?;
        if repository.files.contains_key(path) {
            return None;
        }
        let paths = repository.files.keys().map(|path| path.rsplit_once('/').unwrap_or(("", path)));
        paths.filter(|(other, _)| *other == folder).map(|(_, name)| name.to_owned()).collect()
    };
    let nearest = if exists { Vec::new() } else { nearest(name, siblings.iter().map(String::as_str)) };
    let problem = Problem::NoSource { path: source.path.to_string(), exists, nearest };
    Some(found(&target.file, Some(&target.label), &source.field, span, problem))
}

/// Every circle once, named from its smallest member.
fn cycles(loader: &Loader<'_>) -> Vec<Found> {
    let mut walk = Walk { loader, states: HashMap::new(), path: Vec::new(), faults: Vec::new() };
    for label in loader.targets.labels() {
        walk.visit(label);
    }
    walk.faults
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    OnPath,
    Done,
}

/// Depth first with an own stack: a chain of targets may be longer than the thread's stack.
struct Walk<'a> {
    loader: &'a Loader<'a>,
    states: HashMap<&'a Label, State>,
    path: Vec<(&'a ReadTarget, usize)>,
    faults: Vec<Found>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, label: &Label) {
        self.enter(label);
        while let Some((target, next)) = self.path.last_mut() {
            let target = *target;
            match target.dependencies.get(*next) {
                Some((dependency, span)) => {
                    *next += 1;
                    match self.states.get(&dependency.label.target()) {
                        None => self.enter(&dependency.label.target()),
                        Some(State::OnPath) => self.note_cycle(target, dependency, span),
                        Some(State::Done) => {}
                    }
                }
                None => {
                    self.states.insert(&target.label, State::Done);
                    self.path.pop();
                }
            }
        }
    }

    fn enter(&mut self, label: &Label) {
        let loader = self.loader;
        if let Some(target) = loader.targets.get(label)
            && !self.states.contains_key(&target.label)
        {
            self.states.insert(&target.label, State::OnPath);
            self.path.push((target, 0));
        }
    }

    fn note_cycle(&mut self, last: &ReadTarget, closing: &Dependency, span: &Span) {
        let first = closing.label.target();
        let start = self.path.iter().position(|(target, _)| target.label == first).unwrap_or(0);
        let mut members: Vec<Label> = self.path[start..].iter().map(|(target, _)| target.label.clone()).collect();
        // The message starts with the target it is about, the last one of the path.
        members.rotate_right(1);
        let mut fault = found(&last.file, Some(&last.label), &closing.field, span, Problem::Cycle { members });
        if let Some((target, _)) = self.path.get(start)
            && let Some((dependency, span)) = self.path_edge(start)
        {
            let what = format!("`{}` names `{}` here", target.label, dependency.label.target());
            fault.diagnostic.other = Some((target.file.place(span), what));
        }
        self.faults.push(fault);
    }

    /// The label that leads from one member of the path to the next.
    fn path_edge(&self, at: usize) -> Option<&'a (Dependency, Span)> {
        let (target, next) = self.path.get(at)?;
        target.dependencies.get(next.checked_sub(1)?)
    }
}
