//! `ipubuild build`: the targets that give files, and those that the named ones need; nothing runs.

use std::sync::Arc;

use graph::{Label, Pattern, RuleKind, Workspace};

use crate::arguments::Options;
use crate::builder::Builder;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::Surroundings;

pub(crate) fn build(labels: &[String], options: &Options, console: &Arc<Console>) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let patterns = surroundings.patterns(labels)?;
    Builder::open(&surroundings, options, console, ("build", choose), &patterns)?.build_all()
}

fn choose(workspace: &Workspace, _: &[Pattern], console: &Console) -> Result<Vec<Label>, Fault> {
    let needed = workspace.closure(workspace.requested());
    let built: Vec<Label> =
        needed.iter().filter(|target| target.rule().kind() == RuleKind::Built).map(|target| target.label().clone()).collect();
    if built.is_empty() {
        console.tell("nothing to build: the targets are well formed, and none of them gives files");
    }
    Ok(built)
}
