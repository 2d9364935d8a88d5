//! `ipubuild test`: run targets and test suites, all of them whatever fails, with a verdict for each.

use std::sync::Arc;
use std::time::Instant;

use camino::Utf8Path;
use graph::{Label, Pattern, RuleKind, Workspace};

use crate::arguments::Options;
use crate::builder::Builder;
use crate::command::{nothing_named, of_kinds};
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::junit::{Case, Verdict, xml};
use crate::object_files::write;
use crate::opened::{Surroundings, directory};

pub(crate) fn test(labels: &[String], junit: Option<&Utf8Path>, options: &Options, console: &Arc<Console>) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let patterns = surroundings.patterns(labels)?;
    let started = Instant::now();
    let mut builder = Builder::open(&surroundings, options, console, ("test", choose), &patterns)?;
    let tests = builder.labels();
    let outcomes: Vec<Outcome> = tests.iter().map(|label| test_one(&mut builder, label)).collect();
    let exit = outcomes.iter().map(|outcome| outcome.exit).max().unwrap_or(Exit::Success);
    builder.finish(exit);
    tell_verdicts(console, &outcomes, started);
    if let Some(file) = junit {
        let cases: Vec<Case> = outcomes.into_iter().map(|outcome| outcome.case).collect();
        let text = xml(&cases).map_err(|error| Fault::failed(format!("{file}: {error}")))?;
        write(&directory(options)?, file, &text)?;
    }
    Ok(exit)
}

fn choose(workspace: &Workspace, patterns: &[Pattern], _: &Console) -> Result<Vec<Label>, Fault> {
    let tests = of_kinds(workspace, patterns, &[RuleKind::Run, RuleKind::Sweep], "a run target, a sweep or a test suite")?;
    if tests.is_empty() { Err(nothing_named(patterns, "test")) } else { Ok(tests) }
}

/// How one test ended.
struct Outcome {
    exit: Exit,
    is_cached: bool,
    case: Case,
}

/// Its fault is told; only an interruption keeps the others from running, by itself.
fn test_one(builder: &mut Builder, label: &Label) -> Outcome {
    let started = Instant::now();
    let built = builder.build(label);
    let text = label.to_string();
    let (package, name) = text.split_once(':').unwrap_or((&text, ""));
    let case = |verdict, lines| Case { package: package.to_owned(), name: name.to_owned(), elapsed: started.elapsed(), verdict, lines };
    match built {
        Ok(report) if report.success => {
            Outcome { exit: Exit::Success, is_cached: report.cached, case: case(Verdict::Passed, report.lines) }
        }
        Ok(report) => {
            let failed = report.lines.iter().filter(|line| line.contains("FAIL")).cloned().collect();
            Outcome { exit: Exit::Failed, is_cached: report.cached, case: case(Verdict::Failed(failed), report.lines) }
        }
        Err(fault) => {
            builder.console().fault(&fault);
            Outcome { exit: fault.exit, is_cached: false, case: case(Verdict::Broken(fault.message), Vec::new()) }
        }
    }
}

/// A line for each test with what failed, and one for all.
fn tell_verdicts(console: &Console, outcomes: &[Outcome], started: Instant) {
    for Outcome { exit, is_cached, case } in outcomes {
        let cached = if *is_cached { " cached=true" } else { "" };
        console.verdict(*exit == Exit::Success, &format!("{}:{}{cached}", case.package, case.name));
        match &case.verdict {
            Verdict::Passed => {}
            Verdict::Failed(lines) => lines.iter().for_each(|line| console.tell(&format!("     {line}"))),
            Verdict::Broken(text) => {
                console.tell(&format!("     {}", text.lines().next().unwrap_or_default().trim_start_matches("error: ")))
            }
        }
    }
    let passed = outcomes.iter().filter(|outcome| outcome.exit == Exit::Success).count();
    let cached = outcomes.iter().filter(|outcome| outcome.is_cached).count();
    let seconds = started.elapsed().as_secs_f64();
    console.tell(&format!("{passed} of {} tests pass, {cached} cached, {seconds:.2} s", outcomes.len()));
}
