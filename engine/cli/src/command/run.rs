//! `ipubuild run`: run targets, built first.

use std::sync::Arc;

use graph::{Label, Pattern, RuleKind, Workspace};

use crate::arguments::Options;
use crate::builder::Builder;
use crate::command::{nothing_named, of_kinds};
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::Surroundings;

pub(crate) fn run(labels: &[String], options: &Options, console: &Arc<Console>) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let patterns = surroundings.patterns(labels)?;
    Builder::open(&surroundings, options, console, ("run", choose), &patterns)?.build_all()
}

fn choose(workspace: &Workspace, patterns: &[Pattern], _: &Console) -> Result<Vec<Label>, Fault> {
    let runs = of_kinds(workspace, patterns, &[RuleKind::Run, RuleKind::Sweep], "a run target or a sweep")?;
    if runs.is_empty() { Err(nothing_named(patterns, "run target")) } else { Ok(runs) }
}
