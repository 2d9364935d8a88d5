//! `ipubuild run`: run targets, built first.

use std::sync::Arc;

use graph::RuleKind;

use crate::arguments::Options;
use crate::builder::Builder;
use crate::command::of_kinds;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::Surroundings;

pub(crate) fn run(labels: &[String], options: &Options, console: &Arc<Console>) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let patterns = surroundings.patterns(labels)?;
    let workspace = surroundings.load(&patterns)?;
    let runs = of_kinds(&workspace, &patterns, &[RuleKind::Run], "a run target")?;
    if runs.is_empty() {
        return Err(Fault::input(format!("`{}` names no run target", labels.join(" "))));
    }
    Builder::new(&surroundings, options, &workspace, console.clone())?.build_all(&runs)
}
