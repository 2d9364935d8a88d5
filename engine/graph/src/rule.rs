//! What a kind of target is: its fields, its data, the waves that build it and what it gives.

use std::collections::BTreeMap;
use std::sync::Arc;

use store::Digest;

use crate::{ChosenName, Declaration, Engine, Failure, Label, Outcome, Renderer, RuleData, StageNote, TargetRecord};

/// One field of a rule, for messages and documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in BUILD.toml.
    pub name: &'static str,
    /// The type in words, as in "label of a `program`".
    pub value: &'static str,
    /// Whether a declaration must have it.
    pub required: bool,
    /// Rules whose targets a label in this field (at any depth) may name; empty allows every rule.
    pub accepts: &'static [&'static str],
    /// One sentence.
    pub doc: &'static str,
}

impl Field {
    /// A field that must be given.
    pub const fn required(name: &'static str, value: &'static str, doc: &'static str) -> Field {
        Field { name, value, required: true, accepts: &[], doc }
    }

    /// A field with a default.
    pub const fn optional(name: &'static str, value: &'static str, doc: &'static str) -> Field {
        Field { name, value, required: false, accepts: &[], doc }
    }

    /// The same, with labels of these rules only.
    #[must_use]
    pub const fn accepting(self, accepts: &'static [&'static str]) -> Field {
        Field { accepts, ..self }
    }
}

/// What the command line may do with a rule's targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// Only read by other targets; has no record of its own.
    Data,
    /// Built: gives exported files.
    Built,
    /// Built, and its outcome is a verdict: `run` and `test` take it.
    Run,
    /// Stands for many points that are built or run before it, and gives what became of them.
    Sweep,
    /// Stands for the targets it depends on.
    Suite,
}

impl RuleKind {
    /// Whether its targets are built by themselves and give something.
    pub fn is_built(self) -> bool {
        matches!(self, RuleKind::Built | RuleKind::Run | RuleKind::Sweep)
    }
}

/// A function that calls queries for many keys over [`Engine::wave`]; failures come back in [`Rule::finish`].
pub type WaveFunction = fn(&Engine, &Label) -> Result<(), Failure>;

/// A kind of target.
pub trait Rule: Send + Sync {
    /// The name written in `rule = "…"`.
    fn name(&self) -> &'static str;

    /// One sentence for the documentation.
    fn summary(&self) -> &'static str;

    /// All fields but `rule`, in the order of the documentation.
    fn fields(&self) -> &'static [Field];

    /// Reads the fields, usually `declaration.read::<Schema>()`; `None` after a fault was noted.
    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData>;

    /// What may be done with targets of this rule.
    fn kind(&self) -> RuleKind {
        RuleKind::Data
    }

    /// Whether its targets export files. Those of a rule that exports none have no folder under `artifacts/` to be looked at.
    fn exports_files(&self) -> bool {
        true
    }

    /// Whether its stages read of the targets in its fields only what these gave ([`crate::Target::outcome`]) and never
    /// their declarations or stages. Then those that did not change need not even be loaded.
    fn reads_outcomes(&self) -> bool {
        false
    }

    /// Whether it makes its outcome from the records of the targets in its fields: [`Rule::finish_over`].
    fn reads_records(&self) -> bool {
        false
    }

    /// Digest of the fingerprints of all stages that [`Rule::waves`] and [`Rule::finish`] run.
    fn fingerprint(&self) -> Digest {
        Digest::ABSENT
    }

    /// The parts of the code in [`Rule::fingerprint`] by name, for explanations.
    fn code(&self) -> Vec<(&'static str, Digest)> {
        vec![("rule", self.fingerprint())]
    }

    /// What to run before [`Rule::finish`], one after another; see [`WaveFunction`].
    fn waves(&self) -> &'static [WaveFunction] {
        &[]
    }

    /// The stages that the target is made of, its dependencies' too: what [`StageNote`] says of the last query.
    fn stages(&self, _engine: &Engine, _label: &Label) -> Vec<StageNote> {
        Vec::new()
    }

    /// Collects the target's outcome from queries, which the waves have answered already.
    fn finish(&self, _engine: &Engine, _label: &Label) -> Result<Outcome, Failure> {
        Ok(Outcome::default())
    }

    /// The same from what the targets in its fields gave, in the order of [`crate::LoadedTarget::dependencies`]; empty unless
    /// [`Rule::reads_records`].
    fn finish_over(&self, engine: &Engine, label: &Label, _records: &[(Label, Arc<TargetRecord>)]) -> Result<Outcome, Failure> {
        self.finish(engine, label)
    }
}

/// The rules a program knows, by name, and how the artifacts of their stages are shown.
#[derive(Clone, Default)]
pub struct Registry {
    rules: BTreeMap<&'static str, Arc<dyn Rule>>,
    renderers: BTreeMap<&'static str, Renderer>,
    chosen_names: Vec<ChosenName>,
}

impl Registry {
    /// The generic rules `filegroup`, `test_suite` and `sweep`.
    pub fn with_generic_rules() -> Registry {
        let mut registry = Registry::default();
        registry.add(crate::filegroup::FileGroupRule);
        registry.add(crate::test_suite::TestSuiteRule);
        registry.add(crate::sweep::SweepRule);
        registry
    }

    /// Adds a rule; one of the same name is replaced.
    pub fn add(&mut self, rule: impl Rule + 'static) {
        self.rules.insert(rule.name(), Arc::new(rule));
    }

    /// Adds how the artifacts of a stage are shown.
    pub fn add_renderer(&mut self, renderer: Renderer) {
        self.renderers.insert(renderer.stage, renderer);
    }

    /// How the artifacts of a stage are shown.
    pub fn renderer(&self, stage: &str) -> Option<&Renderer> {
        self.renderers.get(stage)
    }

    /// Adds a name for what was chosen of a stage's artifacts.
    pub fn add_chosen_name(&mut self, name: ChosenName) {
        self.chosen_names.push(name);
    }

    /// What a name stands for, if it is one of what was chosen.
    pub fn chosen_name(&self, name: &str) -> Option<&ChosenName> {
        self.chosen_names.iter().find(|chosen| chosen.name == name)
    }

    /// The rule of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Rule>> {
        self.rules.get(name)
    }

    /// All rules, by name.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<dyn Rule>> {
        self.rules.values()
    }
}
