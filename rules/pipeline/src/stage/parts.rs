//! Everything images and package are made from: the artifacts of the selected finalist's program, gathered once.

use std::sync::Arc;

use compiler::images::{Objects, Parts, Rows};
use compiler::placement::Placement;
use compiler::program::Expanded;
use compiler::rows::PhaseRows;
use exchange::Schedule;
use graph::{Artifact, Db, Failure, StageInput, Target, load, note_facts};

use crate::key::FinalistKey;
use crate::stage::expanded::{ExpandedFacts, expanded};
use crate::stage::placement::{ObjectArtifacts, placement, schedules};
use crate::stage::rows::rows;
use crate::stage::schedule::ScheduleFacts;
use crate::stage::selected::{Selected, selected};
use crate::stage::tile_code::{Code, tile_code};

/// The artifacts, for a stage's key.
pub(crate) struct PartArtifacts {
    selected: Artifact<Selected, Selected>,
    expanded: Artifact<Expanded, ExpandedFacts>,
    code: Artifact<Code>,
    objects: ObjectArtifacts,
    placement: Artifact<Placement, bool>,
    rows: Vec<Artifact<PhaseRows>>,
    schedules: Vec<Artifact<Schedule, ScheduleFacts>>,
}

/// The bodies, for a stage's function.
pub(crate) struct LoadedParts {
    expanded: Arc<Expanded>,
    code: Arc<Code>,
    pub(crate) objects: Objects,
    pub(crate) placement: Arc<Placement>,
    rows: Rows,
}

impl PartArtifacts {
    /// Those of the selected finalist.
    pub(crate) fn of(db: &dyn Db, program: Target) -> Result<Self, Failure> {
        let selected = selected(db, program)?;
        let (key, round) = (FinalistKey::new(db, program, selected.facts().finalist), selected.facts().round);
        let expanded = expanded(db, key)?;
        let phases = expanded.facts().phases.len() as u32;
        Ok(Self {
            code: tile_code(db, key)?,
            objects: ObjectArtifacts::of(db, key)?,
            placement: placement(db, key, round)?,
            rows: (0..phases).map(|phase| rows(db, program, phase)).collect::<Result<_, _>>()?,
            schedules: schedules(db, key, round)?,
            expanded,
            selected,
        })
    }

    /// What a stage that reads all of them puts into its key.
    pub(crate) fn inputs(&self) -> Vec<StageInput> {
        let mut inputs = vec![
            ("expanded", self.expanded.digest()),
            ("code", self.code.digest()),
            ("objects", self.objects.digest()),
            ("placement", self.placement.digest()),
        ];
        inputs.extend(self.rows.iter().map(|rows| ("rows", rows.digest())));
        inputs.extend(self.schedules.iter().map(|schedule| ("schedule", schedule.digest())));
        inputs
    }

    /// Facts of the schedules, by phase.
    pub(crate) fn schedule_facts(&self) -> impl Iterator<Item = &ScheduleFacts> {
        self.schedules.iter().map(Artifact::facts)
    }

    /// The bodies; schedules are known by their facts and rows.
    pub(crate) fn load(&self, db: &dyn Db) -> Result<LoadedParts, Failure> {
        note_facts(&self.selected);
        Ok(LoadedParts {
            expanded: load(db, &self.expanded)?,
            code: load(db, &self.code)?,
            objects: self.objects.load(db)?,
            placement: load(db, &self.placement)?,
            rows: self.rows.iter().map(|rows| Ok((*load(db, rows)?).clone())).collect::<Result<_, Failure>>()?,
        })
    }
}

impl LoadedParts {
    /// As the compiler takes them.
    pub(crate) fn parts(&self) -> Parts<'_> {
        let Self { expanded, code, objects, placement, rows } = self;
        Parts { expanded, plan: &code.plan, code: &code.code, objects, placement, rows }
    }
}
