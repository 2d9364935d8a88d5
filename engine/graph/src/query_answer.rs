//! Questions about the target graph: what the answer is. Linear in the graph, and no chain of targets is too long.

use std::collections::{BTreeSet, HashMap};

use crate::packed::Lists;
use crate::{Label, LoadedTarget, Query, Workspace};

impl Query {
    /// The answer: in label order, for `somepath` in that of the way.
    pub fn answer(&self, workspace: &Workspace) -> Vec<Label> {
        let graph = Graph::of(workspace);
        let numbers = match self {
            Query::SomePath(from, to) => graph.some_path(&graph.answer(from), &graph.answer(to)),
            other => graph.answer(other).into_iter().collect(),
        };
        numbers.into_iter().map(|number| graph.targets[number].label().clone()).collect()
    }
}

/// Targets by number, in label order.
struct Graph<'a> {
    workspace: &'a Workspace,
    targets: Vec<&'a LoadedTarget>,
    numbers: HashMap<&'a Label, usize>,
    dependencies: Lists,
    users: Lists,
}

type Numbers = BTreeSet<usize>;

impl<'a> Graph<'a> {
    fn of(workspace: &'a Workspace) -> Graph<'a> {
        let targets: Vec<&LoadedTarget> = workspace.targets().collect();
        let numbers: HashMap<&Label, usize> = targets.iter().enumerate().map(|(number, target)| (target.label(), number)).collect();
        let mut dependencies = Lists::default();
        for target in &targets {
            let used = target.dependencies().iter().filter_map(|used| numbers.get(&used.label.target()));
            dependencies.push(used.map(|number| *number as u32).collect::<BTreeSet<u32>>());
        }
        let users = dependencies.reversed(targets.len());
        Graph { workspace, targets, numbers, dependencies, users }
    }

    fn answer(&self, query: &Query) -> Numbers {
        let both = |left: &Query, right: &Query| (self.answer(left), self.answer(right));
        match query {
            Query::Targets(patterns) => {
                let labels = patterns.iter().flat_map(|pattern| self.workspace.expand(pattern));
                labels.filter_map(|label| self.numbers.get(&label).copied()).collect()
            }
            Query::Dependencies(targets, depth) => reach(&self.answer(targets), &self.dependencies, *depth),
            Query::Users { universe, targets, depth } => {
                let (universe, targets) = both(universe, targets);
                let universe = reach(&universe, &self.dependencies, None);
                let within = targets.intersection(&universe).copied().collect();
                reach(&within, &self.users, *depth).intersection(&universe).copied().collect()
            }
            Query::AllPaths(from, to) => {
                let (from, to) = both(from, to);
                let below = reach(&from, &self.dependencies, None);
                let above = reach(&to, &self.users, None);
                below.intersection(&above).copied().collect()
            }
            Query::SomePath(from, to) => {
                let (from, to) = both(from, to);
                self.some_path(&from, &to).into_iter().collect()
            }
            Query::Kind(rule, targets) => self.filtered(targets, |target| is_like(rule, target.rule().name())),
            Query::Attribute { field, value, targets } => {
                self.filtered(targets, |target| target.leaves().iter().any(|(path, found)| path == field && has_value(value, found)))
            }
            Query::Union(left, right) => {
                let (left, right) = both(left, right);
                left.union(&right).copied().collect()
            }
            Query::Intersect(left, right) => {
                let (left, right) = both(left, right);
                left.intersection(&right).copied().collect()
            }
            Query::Except(left, right) => {
                let (left, right) = both(left, right);
                left.difference(&right).copied().collect()
            }
        }
    }

    fn filtered(&self, targets: &Query, holds: impl Fn(&LoadedTarget) -> bool) -> Numbers {
        self.answer(targets).into_iter().filter(|number| holds(self.targets[*number])).collect()
    }

    /// A shortest way down, the first in label order at each step; empty when there is none.
    fn some_path(&self, from: &Numbers, to: &Numbers) -> Vec<usize> {
        let mut before: Vec<Option<usize>> = vec![None; self.targets.len()];
        let mut seen = vec![false; self.targets.len()];
        let mut level: Vec<usize> = from.iter().copied().collect();
        level.iter().for_each(|number| seen[*number] = true);
        while !level.is_empty() {
            if let Some(end) = level.iter().find(|number| to.contains(number)) {
                let mut path = vec![*end];
                while let Some(number) = before[path[path.len() - 1]] {
                    path.push(number);
                }
                path.reverse();
                return path;
            }
            let mut next = Vec::new();
            for number in level {
                for used in self.dependencies.get(number).iter().map(|used| *used as usize) {
                    if !std::mem::replace(&mut seen[used], true) {
                        before[used] = Some(number);
                        next.push(used);
                    }
                }
            }
            level = next;
        }
        Vec::new()
    }
}

/// `from` and what is at most `depth` steps away over `edges`.
fn reach(from: &Numbers, edges: &Lists, depth: Option<usize>) -> Numbers {
    let mut seen = from.clone();
    let mut level: Vec<usize> = from.iter().copied().collect();
    let mut steps = 0;
    while !level.is_empty() && depth.is_none_or(|depth| steps < depth) {
        let next = level.iter().flat_map(|number| edges.get(*number)).map(|number| *number as usize);
        level = next.filter(|number| seen.insert(*number)).collect();
        steps += 1;
    }
    seen
}

/// Whether a value in TOML is the one meant: text with or without its quotes.
fn has_value(wanted: &str, found: &str) -> bool {
    is_like(wanted, found) || found.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).is_some_and(|text| is_like(wanted, text))
}

/// Whether `text` is `pattern`, where `*` stands for any characters.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, text) in
            [("run", "run"), ("*", ""), ("ker*", "kernel_library"), ("*_*", "test_suite"), ("a*a", "aa"), ("*a*b*", "xaxbx")]
        {
            assert!(is_like(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("run", "runs"), ("ker*", "make"), ("a*a", "a"), ("*ab", "abc"), ("a*b*b", "ab")] {
            assert!(!is_like(pattern, text), "{pattern} {text}");
        }
    }
}
