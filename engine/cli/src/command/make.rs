//! `ipubuild LABEL`: builds targets, and runs those that are run targets.

use std::sync::Arc;

use graph::RuleKind;

use crate::arguments::Options;
use crate::builder::Builder;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::Surroundings;

pub(crate) fn make(labels: &[String], options: &Options, console: &Arc<Console>) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let workspace = surroundings.load(&surroundings.patterns(labels)?)?;
    let requested = workspace.expand_suites(workspace.requested());
    let mut builder = Builder::new(&surroundings, options, &workspace, console.clone())?;
    let (built, data): (Vec<_>, Vec<_>) =
        requested.into_iter().partition(|label| matches!(builder.kind_of(label), Some(RuleKind::Built | RuleKind::Run)));
    if built.is_empty() {
        data.iter().for_each(|label| console.tell(&format!("{label} is well formed; other targets read it, by itself it gives nothing")));
    }
    builder.build_all(&built)
}
