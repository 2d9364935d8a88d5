//! A target as text: what was declared, and what the store knows of it.

use std::collections::BTreeMap;
use std::fmt;

use graph::{Digest, Label, LoadedTarget, TargetRecord, Workspace};
use serde::Serialize;
use store::RecordKind;

use crate::builder::silent_engine;
use crate::exit::Fault;
use crate::opened::Surroundings;

/// What is known of a target.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    label: String,
    rule: String,
    summary: String,
    place: String,
    fields: Vec<FieldFact>,
    dependencies: Vec<String>,
    sources: Vec<String>,
    users: Vec<String>,
    key: String,
    result: Option<ResultFact>,
    built: bool,
}

/// A field of the rule, with the declared value if there is one.
#[derive(Debug, Serialize)]
struct FieldFact {
    name: String,
    value: Option<String>,
    expects: String,
}

/// What the last build of this very declaration gave.
#[derive(Debug, Serialize)]
struct ResultFact {
    success: bool,
    lines: Vec<String>,
    exports: Vec<String>,
    stages: usize,
}

/// Gathers the facts; runs no stage.
pub(crate) fn facts(surroundings: &Surroundings, workspace: &Workspace, label: &Label) -> Result<Facts, Fault> {
    let target = workspace.target(label).ok_or_else(|| Fault::input(format!("there is no target `{label}`")))?;
    let (key, record) = record_of(surroundings, workspace, label)?;
    Ok(Facts {
        label: label.to_string(),
        rule: target.rule().name().to_owned(),
        summary: target.rule().summary().to_owned(),
        place: target.place().to_string(),
        fields: fields_of(target),
        dependencies: target.dependencies().iter().map(|dependency| format!("{} {}", dependency.field, dependency.label)).collect(),
        sources: target.sources().iter().map(|source| format!("{} {}", source.field, source.path)).collect(),
        users: workspace.users(label).iter().map(|user| user.label().to_string()).collect(),
        key: key.to_string(),
        built: target.rule().kind().is_built(),
        result: record.map(|record| result_of(workspace, label, record)),
    })
}

/// The fields of the rule, in its order, with the declared values.
fn fields_of(target: &LoadedTarget) -> Vec<FieldFact> {
    let declared: BTreeMap<String, String> = target.fields().into_iter().collect();
    let fields = target.rule().fields().iter();
    fields
        .map(|field| FieldFact { name: field.name.to_owned(), value: declared.get(field.name).cloned(), expects: field.value.to_owned() })
        .collect()
}

/// The shallow key of the target as it is declared now, and what the store has under it.
pub(crate) fn record_of(
    surroundings: &Surroundings,
    workspace: &Workspace,
    label: &Label,
) -> Result<(Digest, Option<TargetRecord>), Fault> {
    let mut engine = silent_engine(surroundings.store()?, surroundings)?;
    let keys = engine.apply(workspace, std::slice::from_ref(label)).map_err(|failure| Fault::build(workspace, &failure))?;
    let key = keys.get(label).copied().unwrap_or(Digest::ABSENT);
    Ok((key, engine.store().record(RecordKind::Target, &key)?))
}

fn result_of(workspace: &Workspace, label: &Label, record: TargetRecord) -> ResultFact {
    let folder = workspace.artifacts_of(label);
    let folder = folder.strip_prefix(workspace.root()).unwrap_or(&folder);
    ResultFact {
        success: record.success,
        lines: record.lines,
        exports: record.exports.iter().map(|export| folder.join(&export.path).to_string()).collect(),
        stages: record.stages.len(),
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}  {}: {}", self.label, self.rule, self.summary)?;
        writeln!(formatter, "declared at {}", self.place)?;
        let width = self.fields.iter().map(|field| field.name.len()).max().unwrap_or(0);
        writeln!(formatter, "\nfields")?;
        for field in &self.fields {
            match &field.value {
                Some(value) => writeln!(formatter, "  {:width$} = {value}", field.name)?,
                None => writeln!(formatter, "  {:width$}   not set: {}", field.name, field.expects)?,
            }
        }
        section(formatter, "depends on", &self.dependencies)?;
        section(formatter, "reads", &self.sources)?;
        section(formatter, "used in its package by", &self.users)?;
        match &self.result {
            Some(result) => {
                let success = if result.success { "success" } else { "failure" };
                section(formatter, &format!("built, {} stages, {success}", result.stages), &result.exports)?;
                section(formatter, "verdict", &result.lines)
            }
            None if self.built => writeln!(formatter, "\nnot built as it is declared now"),
            None => Ok(()),
        }
    }
}

fn section(formatter: &mut fmt::Formatter<'_>, title: &str, lines: &[String]) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(formatter, "\n{title}")?;
    lines.iter().try_for_each(|line| writeln!(formatter, "  {line}"))
}
