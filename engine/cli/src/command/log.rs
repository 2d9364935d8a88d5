//! `ipubuild log`: what ran, when, and how long it took.

use std::fmt::Write as _;

use graph::{RunOutcome, RunRecord, Runs, Span, StageEnd, StageRun};
use serde_json::{Value, json};

use crate::arguments::Options;
use crate::clock::utc;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened;
use crate::show::table::table;
use crate::show::to_json;

/// Lists the newest `limit` runs, or tells one.
pub(crate) fn log(run: Option<i64>, limit: u32, json: bool, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let store = opened::store(options)?;
    let Runs { newest_first: runs, unreadable } = Runs::newest(&store, if run.is_some() { u32::MAX } else { limit })?;
    let text = match run {
        None if json => to_json(&runs.iter().map(|(number, run)| summary(*number, run)).collect::<Vec<_>>())?,
        None => list(&runs),
        Some(wanted) => {
            let found = runs.iter().find(|(number, _)| *number == wanted);
            let (number, run) = found.ok_or_else(|| no_such_run(wanted, &runs))?;
            if json { to_json(&details(*number, run))? } else { tell(*number, run) }
        }
    };
    if let (Some(newest), Some(oldest)) = (unreadable.first(), unreadable.last()) {
        let count = unreadable.len();
        console.tell(&format!("{count} runs from {oldest} to {newest} were recorded by another version of ipubuild and are left out"));
    }
    console.result(text.trim_end());
    Ok(Exit::Success)
}

/// The fault of a number that is no run's.
pub(crate) fn no_such_run(wanted: i64, runs: &[(i64, RunRecord)]) -> Fault {
    let known = match (runs.last(), runs.first()) {
        (Some((oldest, _)), Some((newest, _))) => format!("expected a run from {oldest} to {newest}"),
        _ => "there are no runs in this store".to_owned(),
    };
    Fault::input(format!("there is no run {wanted}: {known}"))
}

fn summary(number: i64, run: &RunRecord) -> Value {
    json!({
        "run": number, "workspace": run.workspace, "started_ms": run.started_ms, "elapsed_ms": run.elapsed_ms, "command": run.command,
        "outcome": run.outcome.word(), "executed": run.count(StageEnd::Executed), "found": run.count(StageEnd::Found),
        "failed": run.count(StageEnd::Failed), "work_ms": run.work_ms(), "engine_ms": run.engine_ms(),
    })
}

fn list(runs: &[(i64, RunRecord)]) -> String {
    if runs.is_empty() {
        return "no runs in this store yet".to_owned();
    }
    // A store may serve several workspaces.
    let several = runs.iter().any(|(_, run)| run.workspace != runs[0].1.workspace);
    let rows = runs.iter().map(|(number, run)| {
        let fixed = [
            number.to_string(),
            utc(run.started_ms),
            run.outcome.word().to_owned(),
            run.count(StageEnd::Executed).to_string(),
            run.count(StageEnd::Found).to_string(),
            format!("{:.3}", run.elapsed_ms / 1e3),
        ];
        fixed.into_iter().chain(several.then(|| run.workspace.clone())).chain([run.command.join(" ")]).collect()
    });
    let columns = ["run", "started (UTC)", "outcome", "executed", "found", "seconds"];
    let columns: Vec<&str> = columns.into_iter().chain(several.then_some("workspace")).chain(["command"]).collect();
    table(&columns, &rows.collect::<Vec<_>>())
}

fn details(number: i64, run: &RunRecord) -> Value {
    let stage = |stage: &StageRun| {
        json!({
            "label": stage.label, "stage": stage.name.to_string(), "end": format!("{:?}", stage.end).to_lowercase(),
            "start_ms": stage.start_ms, "elapsed_ms": stage.elapsed_ms, "help_ms": stage.help_ms, "thread": stage.thread, "key": stage.key, "digest": stage.digest,
            "needs": stage.needs,
        })
    };
    let mut value = summary(number, run);
    value["targets"] = run
        .targets
        .iter()
        .map(|target| json!({ "label": target.label, "key": target.key, "cached": target.cached, "success": target.success }))
        .collect();
    value["stages"] = run.stages.iter().map(stage).collect();
    value["critical_path"] = run.critical_path().into_iter().map(stage).collect();
    value["requested"] = json!(run.requested);
    value["spans"] = json!(run.spans);
    if let RunOutcome::Failed(message) = &run.outcome {
        value["message"] = json!(message);
    }
    value
}

fn tell(number: i64, run: &RunRecord) -> String {
    let mut text = format!("run {number}  {}  {}\n", utc(run.started_ms), run.command.join(" "));
    let path = run.critical_path();
    let on_path = path.iter().fold(0.0, |sum, stage| sum + stage.elapsed_ms);
    let _ = writeln!(
        text,
        "{}, {:.1} ms; stages {:.1} ms on all threads, critical path {on_path:.1} ms, {:.1} ms without a stage",
        run.outcome.word(),
        run.elapsed_ms,
        run.work_ms(),
        run.engine_ms()
    );
    if let RunOutcome::Failed(message) = &run.outcome {
        let _ = writeln!(text, "{message}");
    }
    let targets = run.targets.iter().map(|target| {
        let how = if target.cached { "from its record" } else { "built" };
        vec![target.label.clone(), how.to_owned(), target.key.short()]
    });
    if !run.targets.is_empty() {
        let _ = write!(text, "\n{}", table(&["target", "how", "key"], &targets.collect::<Vec<_>>()));
    }
    let columns = ["stage", "end", "start ms", "ms", "thread", "artifact"];
    let row = |stage: &StageRun| {
        vec![
            format!("{}{}", stage.label, stage.name),
            format!("{:?}", stage.end).to_lowercase(),
            format!("{:.1}", stage.start_ms),
            format!("{:.2}", stage.elapsed_ms),
            stage.thread.to_string(),
            stage.digest.map_or(String::new(), |digest| digest.short()),
        ]
    };
    if !run.stages.is_empty() {
        let _ = write!(text, "\n{}", table(&columns, &run.stages.iter().map(row).collect::<Vec<_>>()));
        let _ = write!(text, "\ncritical path\n{}", table(&columns, &path.into_iter().map(row).collect::<Vec<_>>()));
    }
    let span = |span: &Span| {
        let name = span.label.iter().map(String::as_str).chain([span.name.as_str()]).collect::<Vec<_>>().join(" ");
        vec![name, format!("{:.1}", span.start_ms), format!("{:.2}", span.elapsed_ms)]
    };
    if !run.spans.is_empty() {
        let rows: Vec<_> = run.spans.iter().map(span).collect();
        let _ = write!(text, "\nwaves, and work of the engine\n{}", table(&["what", "start ms", "ms"], &rows));
    }
    text
}
