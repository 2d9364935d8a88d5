//! `ipubuild LABEL`: builds targets, and runs those that are run targets.

use std::sync::Arc;

use graph::{Label, Pattern, Workspace};

use crate::arguments::Options;
use crate::builder::Builder;
use crate::command::built_targets;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::Surroundings;

pub(crate) fn make(labels: &[String], options: &Options, console: &Arc<Console>) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let patterns = surroundings.patterns(labels)?;
    Builder::open(&surroundings, options, console, ("make", choose), &patterns)?.build_all()
}

fn choose(workspace: &Workspace, _: &[Pattern], console: &Console) -> Result<Vec<Label>, Fault> {
    let built = built_targets(workspace);
    if built.is_empty() {
        let data = workspace.expand_suites(workspace.requested());
        data.iter().for_each(|label| console.tell(&format!("{label} is well formed; other targets read it, by itself it gives nothing")));
    }
    Ok(built)
}
