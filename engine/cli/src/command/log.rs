//! `ipubuild log`: what ran, when, and how long it took.

use std::fmt::Write as _;

use graph::{RunOutcome, RunRecord, StageEnd, StageRun, critical_path};
use serde_json::{Value, json};
use store::Store;

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
    let runs = RunRecord::newest(&store, if run.is_some() { u32::MAX } else { limit })?;
    let text = match run {
        None if json => to_json(&runs.iter().map(|(number, run)| summary(*number, run)).collect::<Vec<_>>())?,
        None => list(&runs),
        Some(wanted) => {
            let found = runs.iter().find(|(number, _)| *number == wanted);
            let (number, run) = found.ok_or_else(|| no_such_run(wanted, &runs))?;
            if json { to_json(&details(&store, *number, run)?)? } else { tell(&store, *number, run)? }
        }
    };
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
        "run": number, "started_ms": run.started_ms, "elapsed_ms": run.elapsed_ms, "command": run.command,
        "outcome": run.outcome.word(), "executed": run.count(StageEnd::Executed), "found": run.count(StageEnd::Found),
        "failed": run.count(StageEnd::Failed),
    })
}

fn list(runs: &[(i64, RunRecord)]) -> String {
    if runs.is_empty() {
        return "no runs in this store yet".to_owned();
    }
    let rows = runs.iter().map(|(number, run)| {
        vec![
            number.to_string(),
            utc(run.started_ms),
            run.outcome.word().to_owned(),
            run.count(StageEnd::Executed).to_string(),
            run.count(StageEnd::Found).to_string(),
            format!("{:.3}", run.elapsed_ms / 1e3),
            run.command.join(" "),
        ]
    });
    let columns = ["run", "started (UTC)", "outcome", "executed", "found", "seconds", "command"];
    table(&columns, &rows.collect::<Vec<_>>())
}

fn details(store: &Store, number: i64, run: &RunRecord) -> Result<Value, Fault> {
    let stage = |stage: &StageRun| {
        json!({
            "label": stage.label, "stage": stage.name.to_string(), "end": format!("{:?}", stage.end).to_lowercase(),
            "start_ms": stage.start_ms, "elapsed_ms": stage.elapsed_ms, "thread": stage.thread, "key": stage.key, "digest": stage.digest,
        })
    };
    let mut value = summary(number, run);
    value["targets"] = run
        .targets
        .iter()
        .map(|target| json!({ "label": target.label, "key": target.key, "cached": target.cached, "success": target.success }))
        .collect();
    value["stages"] = run.stages.iter().map(stage).collect();
    value["critical_path"] = critical_path(store, run)?.into_iter().map(stage).collect();
    if let RunOutcome::Failed(message) = &run.outcome {
        value["message"] = json!(message);
    }
    Ok(value)
}

fn tell(store: &Store, number: i64, run: &RunRecord) -> Result<String, Fault> {
    let mut text = format!("run {number}  {}  {}\n", utc(run.started_ms), run.command.join(" "));
    let path = critical_path(store, run)?;
    let on_path: f64 = path.iter().map(|stage| stage.elapsed_ms).sum();
    let work: f64 = run.stages.iter().filter(|stage| stage.end == StageEnd::Executed).map(|stage| stage.elapsed_ms).sum();
    let _ = writeln!(text, "{}, {:.1} ms; stages {work:.1} ms, critical path {on_path:.1} ms", run.outcome.word(), run.elapsed_ms);
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
    Ok(text)
}
