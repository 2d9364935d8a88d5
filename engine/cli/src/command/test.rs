//! `ipubuild test`: run targets and test suites, all of them whatever fails, with a verdict for each.

use std::sync::Arc;

use graph::{Label, Pattern, RuleKind, Workspace};

use crate::arguments::Options;
use crate::builder::Builder;
use crate::command::{nothing_named, of_kinds};
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::Surroundings;

pub(crate) fn test(labels: &[String], options: &Options, console: &Arc<Console>) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let patterns = surroundings.patterns(labels)?;
    let mut builder = Builder::open(&surroundings, options, console, ("test", choose), &patterns)?;
    let tests = builder.labels();
    let outcomes = tests.iter().map(|label| (label, test_one(&mut builder, label))).collect::<Vec<_>>();
    builder.finish(outcomes.iter().map(|(_, exit)| *exit).max().unwrap_or(Exit::Success));
    Ok(tell_verdicts(console, &outcomes))
}

fn choose(workspace: &Workspace, patterns: &[Pattern], _: &Console) -> Result<Vec<Label>, Fault> {
    let tests = of_kinds(workspace, patterns, &[RuleKind::Run, RuleKind::Sweep], "a run target, a sweep or a test suite")?;
    if tests.is_empty() { Err(nothing_named(patterns, "test")) } else { Ok(tests) }
}

/// How one test ended. Its fault is told; only an interruption keeps the others from running, by itself.
fn test_one(builder: &mut Builder, label: &Label) -> Exit {
    match builder.build(label) {
        Ok(report) if report.success => Exit::Success,
        Ok(_) => Exit::Failed,
        Err(fault) => {
            builder.console().fault(&fault);
            fault.exit
        }
    }
}

/// A line for each test and one for all; the gravest ending is that of the command.
fn tell_verdicts(console: &Console, outcomes: &[(&Label, Exit)]) -> Exit {
    for (label, exit) in outcomes {
        console.verdict(*exit == Exit::Success, &label.to_string());
    }
    let passed = outcomes.iter().filter(|(_, exit)| *exit == Exit::Success).count();
    console.tell(&format!("{passed} of {} tests pass", outcomes.len()));
    outcomes.iter().map(|(_, exit)| *exit).max().unwrap_or(Exit::Success)
}
