//! Targets that are built one after another in one process, with all that is known of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use store::{Digest, StoreFault};

use crate::remembered::Glance;
use crate::target_table::TargetTable;
use crate::{Engine, Failure, Label, LoadRequest, Remembered, SourcePath, TargetReport, Workspace, export};

/// An engine, a workspace of which at least everything is loaded that has to be built, and the table of its targets.
pub struct Session {
    engine: Engine,
    workspace: Workspace,
    table: TargetTable,
    requested: Vec<(usize, Label)>,
    /// Places in `requested`, by label and by target.
    places: HashMap<Label, usize>,
    positions: HashMap<usize, usize>,
    /// What the last builds of the requested targets gave.
    reports: Vec<Option<TargetReport>>,
    /// From what was remembered, when the session began with that.
    glance: Option<Glance>,
    /// The targets built since, with the paths and contents of their exported files and of the files that name these.
    built: BTreeMap<usize, Vec<(String, Digest)>>,
    /// Whether everything built may be answered from its record.
    is_lasting: bool,
    /// Whether the whole closure of the requested targets is loaded.
    is_whole: bool,
}

/// Why a session did not begin, and what it would have been made of.
pub struct NotBegun {
    /// What the workspace explains.
    pub failure: Failure,
    /// For the next attempt.
    pub engine: Engine,
    /// As it was loaded.
    pub workspace: Workspace,
}

impl Session {
    /// A session for `labels` of a loaded workspace, none of them built; a failure when a source cannot be read.
    pub fn begin(mut engine: Engine, workspace: Workspace, labels: &[Label]) -> Result<Session, Box<NotBegun>> {
        let table = match engine.tabulate(&workspace, labels) {
            Ok(table) => table,
            Err(failure) => return Err(Box::new(NotBegun { failure, engine, workspace })),
        };
        let found = table.find(labels).into_iter().zip(labels);
        let requested = found.filter_map(|(target, label)| Some((target?, label.clone()))).collect();
        Ok(Session::new(engine, workspace, table, requested, None))
    }

    /// A session that goes on from what is remembered of the same request, after the sources `changed`; the engine comes back
    /// when what is remembered cannot be used, or the declarations have faults now. Only the declarations are loaded that the changed sources reach, and what these read.
    pub fn resume(
        mut engine: Engine,
        remembered: Remembered,
        changed: &[(usize, Digest)],
        load: &LoadRequest<'_>,
    ) -> Result<Session, Box<Engine>> {
        let Some(mut table) = remembered.table(engine.store()) else { return Err(Box::new(engine)) };
        if changed.iter().any(|(file, _)| *file >= table.file_count()) {
            return Err(Box::new(engine));
        }
        let dirty = table.change_files(changed);
        let Some(needed) = Needed::of(&table, &dirty, load) else { return Err(Box::new(engine)) };
        let Ok(workspace) = Workspace::load_part(load, &needed.labels) else { return Err(Box::new(engine)) };
        // A build file that was edited since it was looked at would not fit the table.
        if !remembered.glance.has_build_files(&workspace.files) {
            return Err(Box::new(engine));
        }
        if !needed.targets.iter().all(|(_, label)| workspace.target(label).is_some()) {
            return Err(Box::new(engine));
        }
        for (target, label) in &needed.targets {
            if let Some(loaded) = workspace.target(label) {
                engine.declare(&mut table, *target, loaded);
            }
        }
        for target in needed.settled {
            if let Some(label) = table.label(target) {
                engine.set_outcome(&label, table.outcome(target));
            }
        }
        let requested = remembered.glance.reports.iter().filter_map(|report| {
            let target = report.target as usize;
            Some((target, table.label(target)?))
        });
        let requested = requested.collect();
        let root = workspace.root().to_owned();
        let reports = remembered.reports(&root);
        let mut session = Session::new(engine, workspace, table, requested, Some(remembered.glance));
        session.reports = reports.into_iter().map(Some).collect();
        session.reports.resize_with(session.requested.len(), || None);
        Ok(session)
    }

    fn new(engine: Engine, workspace: Workspace, table: TargetTable, requested: Vec<(usize, Label)>, glance: Option<Glance>) -> Session {
        let mut table = table;
        table.set_asked(requested.iter().map(|(target, _)| *target).collect());
        let (places, positions) = places_of(&requested);
        let (reports, is_whole) = (vec![None; requested.len()], glance.is_none());
        Session {
            engine,
            workspace,
            table,
            requested,
            places,
            positions,
            reports,
            glance,
            built: BTreeMap::new(),
            is_lasting: true,
            is_whole,
        }
    }

    /// What is loaded of the workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The requested labels that have targets, in the order of the request.
    pub fn requested(&self) -> Vec<Label> {
        self.requested.iter().map(|(_, label)| label.clone()).collect()
    }

    /// Builds one of the requested targets; the reports of what was built for it, its own last.
    pub fn build(&mut self, label: &Label) -> Result<Vec<TargetReport>, Failure> {
        let Some(position) = self.places.get(label).copied() else {
            return Err(Failure::build("it is not among the requested targets").at_label(label));
        };
        let (target, _) = self.requested[position];
        if self.table.is_done(target) {
            return Ok(self.hand_out(position).into_iter().collect());
        }
        let built = self.engine.build_below(&self.workspace, &mut self.table, target)?;
        for (target, report) in &built {
            self.note(*target, report);
            // Another requested target may have been built on the way.
            if let Some(position) = self.positions.get(target) {
                self.reports[*position] = Some(report.clone());
            }
        }
        self.hand_out(position);
        Ok(built.into_iter().map(|(_, report)| report).collect())
    }

    /// The report of a requested target; from then on it is one of a target that was built before.
    fn hand_out(&mut self, position: usize) -> Option<TargetReport> {
        let report = self.reports[position].clone();
        self.reports[position].iter_mut().for_each(|report| report.cached = true);
        report
    }

    fn note(&mut self, target: usize, report: &TargetReport) {
        self.is_lasting &= report.recorded;
        let root = self.workspace.root();
        let manifest = export::manifest(&self.workspace.artifacts_of(&report.label), &report.exports);
        let exports = report.exports.iter().cloned().zip(report.contents.iter().copied()).chain(manifest);
        let exports = exports.map(|(path, content)| (path.strip_prefix(root).unwrap_or(&path).to_string(), content));
        self.built.insert(target, exports.collect());
    }

    /// Whether all of these are sources of its targets.
    pub fn knows(&self, paths: &[SourcePath]) -> bool {
        self.table.find_files(paths).iter().all(Option::is_some)
    }

    /// Reads these sources again; the number of targets that have to be built again. A file that nothing uses changes
    /// nothing. A session that was resumed has not loaded all declarations and cannot.
    pub fn change_sources(&mut self, paths: &[SourcePath]) -> Result<usize, Failure> {
        if !self.is_whole {
            return Err(Failure::build("only a part of the workspace is loaded"));
        }
        let mut changes = Vec::new();
        for (path, file) in paths.iter().zip(self.table.find_files(paths)) {
            if let Some(file) = file {
                changes.push((file, self.engine.source_digest(path)?));
            }
        }
        let dirty = self.table.change_files(&changes);
        for target in &dirty {
            if let Some(label) = self.table.label(*target)
                && let Some(loaded) = self.workspace.target(&label)
            {
                self.engine.declare(&mut self.table, *target, loaded);
            }
        }
        Ok(dirty.len())
    }

    /// Goes on with a workspace loaded again, after any edit or with other changes to fields; every source is looked at again.
    /// What was built with the key that it still has stays built, and the results of before stay known.
    pub fn reload(&mut self, workspace: Workspace, labels: &[Label]) -> Result<(), Failure> {
        let mut table = self.engine.tabulate(&workspace, labels)?;
        // What a resumed session began with has exported files that are not noted in `built`.
        if self.is_whole {
            table.keep_done(&self.table);
        }
        let found = table.find(labels).into_iter().zip(labels);
        let requested: Vec<(usize, Label)> = found.filter_map(|(target, label)| Some((target?, label.clone()))).collect();
        let known: HashMap<&Label, &TargetReport> = self.reports.iter().flatten().map(|report| (&report.label, report)).collect();
        let reports: Vec<Option<TargetReport>> =
            requested.iter().map(|(_, label)| known.get(label).map(|report| (*report).clone())).collect();
        for ((target, _), report) in requested.iter().zip(&reports) {
            // It was built for another target, and its own report is not at hand.
            if report.is_none() {
                table.set_undone(*target);
            }
        }
        table.set_asked(requested.iter().map(|(target, _)| *target).collect());
        // Numbers of targets are others now.
        let built = std::mem::take(&mut self.built);
        let built_labels: Vec<Label> = built.keys().filter_map(|target| self.table.label(*target)).collect();
        let found = table.find(&built_labels).into_iter().zip(built.into_values());
        self.built = found.filter_map(|(target, exports)| Some((target?, exports))).collect();
        (self.places, self.positions) = places_of(&requested);
        (self.workspace, self.table, self.requested, self.reports) = (workspace, table, requested, reports);
        (self.glance, self.is_whole) = (None, true);
        Ok(())
    }

    /// Keeps what the next build of the request `key` can begin with. Does nothing unless every requested target was
    /// built, and may be answered from its record.
    pub fn remember(&mut self, key: Digest) -> Result<(), StoreFault> {
        let is_complete = self.is_lasting && self.requested.iter().all(|(target, _)| self.table.is_done(*target));
        if !is_complete || self.requested.is_empty() {
            return Ok(());
        }
        let root = self.workspace.root();
        let (store, sources) = (self.engine.store(), self.engine.sources());
        let mut glance = match self.glance.take() {
            Some(glance) => glance,
            None => {
                let mut glance = Glance::new(sources, store, &self.workspace.files, &self.table);
                if let Some(walk) = &self.workspace.walk {
                    glance.set_walk(walk);
                }
                glance
            }
        };
        glance.set_exports(store, root, &self.built);
        for ((target, _), report) in self.requested.iter().zip(&self.reports) {
            if let Some(report) = report {
                glance.set_report(root, *target, report);
            }
        }
        let remembered = glance.remember(store, key, &self.table);
        self.glance = Some(glance);
        remembered
    }
}

/// Places of requested targets, by label and by target.
fn places_of(requested: &[(usize, Label)]) -> (HashMap<Label, usize>, HashMap<usize, usize>) {
    let places = requested.iter().enumerate();
    places.map(|(place, (target, label))| ((label.clone(), place), (*target, place))).unzip()
}

/// What has to be loaded to build the dirty targets.
struct Needed {
    /// In dependency order.
    targets: Vec<(usize, Label)>,
    labels: BTreeSet<Label>,
    /// Targets whose outcomes are read and that did not change.
    settled: BTreeSet<usize>,
}

impl Needed {
    /// The dirty targets, and below them everything but what is read only by its outcome; `None` when it cannot be told, and where
    /// sweeps are concerned: their points are made of what others declare.
    fn of(table: &TargetTable, dirty: &[usize], load: &LoadRequest<'_>) -> Option<Needed> {
        let is_of_sweep =
            |target: &usize| table.is_at_point(*target) || load.registry.get(table.rule(*target)).is_some_and(|rule| rule.reads_records());
        if dirty.iter().any(is_of_sweep) {
            return None;
        }
        let mut needed = Needed { targets: Vec::new(), labels: BTreeSet::new(), settled: BTreeSet::new() };
        let mut seen: BTreeSet<usize> = dirty.iter().copied().collect();
        let mut queue: Vec<usize> = dirty.to_vec();
        while let Some(target) = queue.pop() {
            let reads_outcomes = load.registry.get(table.rule(target))?.reads_outcomes();
            for used in table.dependencies(target) {
                if seen.contains(&used) {
                    continue;
                }
                if reads_outcomes && table.is_done(used) {
                    needed.settled.insert(used);
                } else {
                    seen.insert(used);
                    queue.push(used);
                }
            }
        }
        for target in seen {
            let label = table.label(target)?;
            needed.labels.insert(label.clone());
            needed.targets.push((target, label));
        }
        Some(needed)
    }
}
