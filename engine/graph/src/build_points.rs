//! Points of sweeps, built beside each other. One that fails is a result, and recorded as such: it is not tried again before
//! something that it is made of changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use store::{Digest, RecordKind};

use crate::build_target::{Found, failed, made, report};
use crate::shared::lock;
use crate::target_table::TargetTable;
use crate::{
    Cause, Db, Engine, Event, Failure, KeptFailure, Label, LoadedTarget, Objective, PointEvent, Sweep, TargetInputs, TargetReport,
    Workspace, cancellation,
};

/// The targets at one point, by number, dependencies first; the point itself comes last.
struct PointTargets {
    label: Label,
    targets: Vec<usize>,
}

/// What all threads share while they build points.
struct Work<'a> {
    workspace: &'a Workspace,
    table: &'a TargetTable,
    points: Vec<PointTargets>,
    /// Keys that the store had a record of in the beginning.
    listed: BTreeSet<Digest>,
    found: Mutex<BTreeMap<usize, Found>>,
    next: AtomicUsize,
    /// What ends the build: an interruption, a disk that is full, a failed point where the first one is to end it.
    ended: Mutex<Option<Failure>>,
    told: Mutex<Told>,
}

/// What was told so far.
#[derive(Default)]
struct Told {
    done: usize,
    /// By sweep.
    best: BTreeMap<Label, f64>,
}

/// Builds these targets, which are at points of sweeps, and of which all else that they need is built; reports in their order.
pub(crate) fn build(
    engine: &mut Engine,
    workspace: &Workspace,
    table: &TargetTable,
    numbers: &[usize],
) -> Result<Vec<(usize, TargetReport)>, Failure> {
    let keys: Vec<Digest> = numbers.iter().map(|number| table.key(*number)).collect();
    let work = Work {
        workspace,
        table,
        points: in_order(workspace, points_of(table, numbers)?),
        listed: engine.shared().store().listed_records(RecordKind::Target, &keys)?,
        found: Mutex::default(),
        next: AtomicUsize::new(0),
        ended: Mutex::default(),
        told: Mutex::default(),
    };
    engine.build(|engine| work.run(engine))?;
    let mut found = work.found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let report = |number: &usize| {
        let found = found.remove(number).ok_or_else(Failure::interrupted)?;
        Ok((*number, report(loaded(workspace, table, *number)?, table.key(*number), found)))
    };
    numbers.iter().map(report).collect()
}

fn points_of(table: &TargetTable, numbers: &[usize]) -> Result<Vec<PointTargets>, Failure> {
    let mut points: Vec<PointTargets> = Vec::new();
    let mut places: BTreeMap<Label, usize> = BTreeMap::new();
    for number in numbers {
        let label = table.label(*number).ok_or_else(|| Failure::build("the recorded graph is damaged"))?.whole_point();
        let place = *places.entry(label.clone()).or_insert_with(|| {
            points.push(PointTargets { label, targets: Vec::new() });
            points.len() - 1
        });
        points[place].targets.push(*number);
    }
    Ok(points)
}

/// The points of each sweep in its order.
fn in_order(workspace: &Workspace, mut points: Vec<PointTargets>) -> Vec<PointTargets> {
    let sweeps: BTreeSet<Label> = points.iter().map(|point| point.label.sweep()).collect();
    let mut places: BTreeMap<Label, usize> = BTreeMap::new();
    for label in sweeps {
        let sweep = workspace.target(&label).and_then(LoadedTarget::data::<Sweep>);
        let declared = sweep.iter().flat_map(|sweep| &sweep.expanded);
        places.extend(declared.enumerate().map(|(place, point)| (label.at_point(&point.names), place)));
    }
    points.sort_by_key(|point| (point.label.sweep(), places.get(&point.label).copied()));
    points
}

fn loaded<'a>(workspace: &'a Workspace, table: &TargetTable, number: usize) -> Result<&'a LoadedTarget, Failure> {
    let label = table.label(number).ok_or_else(|| Failure::build("the recorded graph is damaged"))?;
    workspace.target(&label).ok_or_else(|| Failure::build("its declaration is not loaded").at_label(&label))
}

impl Work<'_> {
    /// All points on threads of their own: those of the engine work for the waves of each point, and one that waited there for a
    /// wave could begin another point meanwhile, which then waited for the first.
    fn run(&self, engine: &Engine) -> Result<(), Failure> {
        self.next.store(0, Ordering::Relaxed);
        *lock(&self.ended) = None;
        std::thread::scope(|scope| {
            let threads = engine.threads().min(self.points.len());
            let threads: Vec<_> = (0..threads)
                .map(|_| {
                    let engine = engine.clone();
                    scope.spawn(move || self.drain(&engine))
                })
                .collect();
            for thread in threads {
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
        lock(&self.ended).take().map_or(Ok(()), Err)
    }

    fn drain(&self, engine: &Engine) {
        while let Some(point) = self.points.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if lock(&self.ended).is_some() {
                return;
            }
            let built = cancellation::catch(|| self.point(engine, point)).unwrap_or_else(|_| Err(Failure::interrupted()));
            if let Err(failure) = built {
                lock(&self.ended).get_or_insert(failure);
            }
        }
    }

    /// One point; a failure is one that ends the build.
    fn point(&self, engine: &Engine, point: &PointTargets) -> Result<(), Failure> {
        let mut is_cached = true;
        for number in &point.targets {
            if lock(&self.found).contains_key(number) {
                continue;
            }
            let found = self.target(engine, *number)?;
            is_cached &= found.cached;
            lock(&self.found).insert(*number, found);
        }
        self.tell(engine, point, is_cached)
    }

    fn target(&self, engine: &Engine, number: usize) -> Result<Found, Failure> {
        let target = loaded(self.workspace, self.table, number)?;
        let (key, is_exported) = (self.table.key(number), self.table.is_asked(number));
        if let Some(found) = engine.recorded(self.workspace, target, key, self.listed.contains(&key), is_exported)? {
            return Ok(found);
        }
        if engine.shared().is_interrupted() {
            return Err(Failure::interrupted().at_label(target.label()));
        }
        let found = match self.failure_below(number) {
            Some(failure) => failed(engine, self.workspace, target, key, failure, false)?,
            None => match made(engine, self.workspace, target, key, &[], is_exported) {
                Ok(found) => found,
                Err(failure) => match KeptFailure::of(&failure) {
                    Some(kept) => failed(engine, self.workspace, target, key, kept, true)?,
                    None => return Err(failure),
                },
            },
        };
        TargetInputs::keep(engine.shared(), self.table, number, target)?;
        if engine.shared().has_much_to_write() {
            engine.shared().flush()?;
        }
        Ok(found)
    }

    /// Why a target that it needs at the same point gives nothing.
    fn failure_below(&self, number: usize) -> Option<KeptFailure> {
        let found = lock(&self.found);
        self.table.dependencies(number).find_map(|used| found.get(&used)?.record.failure.clone())
    }

    fn tell(&self, engine: &Engine, point: &PointTargets, cached: bool) -> Result<(), Failure> {
        let Some(last) = point.targets.last() else { return Ok(()) };
        let sweep = self.workspace.target(&point.label.sweep()).and_then(LoadedTarget::data::<Sweep>);
        let objective = sweep.map_or_else(Objective::default, |sweep| sweep.objective.clone());
        let record = lock(&self.found).get(last).map(|found| found.record.clone());
        let Some(record) = record else { return Ok(()) };
        let value = record.objective(&objective);
        let mut told = lock(&self.told);
        told.done += 1;
        let known = told.best.get(&point.label.sweep()).copied();
        let is_best = value.is_some_and(|value| known.is_none_or(|known| objective.prefers(value, known)));
        if let Some(value) = value.filter(|_| is_best) {
            told.best.insert(point.label.sweep(), value);
        }
        let event = PointEvent {
            label: point.label.clone(),
            done: told.done,
            total: self.points.len(),
            cached,
            success: record.success,
            value,
            is_best,
            objective,
            message: record.why_not(),
        };
        engine.shared().tell(&Event::Point(event));
        drop(told);
        let ends = engine.fail_fast && !record.success;
        match record.failure.as_ref().map(KeptFailure::failure) {
            Some(failure) if ends => Err(failure),
            None if ends => Err(Failure::new(Cause::Build, record.lines.join("\n")).at_label(&point.label)),
            _ => Ok(()),
        }
    }
}

impl crate::TargetRecord {
    /// The objective's figure, if it gave one and passed.
    pub(crate) fn objective(&self, objective: &Objective) -> Option<f64> {
        let figure = self.figures.iter().find(|(name, _)| name == objective.figure()).filter(|_| self.success);
        figure.and_then(|(_, figure)| figure.number())
    }

    /// What is wrong with it; nothing when it passed.
    pub fn why_not(&self) -> Option<Arc<str>> {
        match &self.failure {
            Some(failure) => {
                let lines: Vec<&str> = failure.messages().iter().flat_map(|message| message.lines()).map(str::trim).collect();
                Some(lines.join("; ").into())
            }
            None if self.success => None,
            None => Some(format!("the verdict is a failure: {}", self.lines.last().map_or("", String::as_str)).into()),
        }
    }
}
