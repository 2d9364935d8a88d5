//! `ipubuild exchange`: the scheduler and its validator on phases in text files.

use std::time::Instant;

use camino::Utf8Path;
use exchange::{Effort, Options as ScheduleOptions, Piece, PlacedTransfer, Schedule, TextFault, Violation};
use serde_json::json;

use crate::arguments::{ExchangeCommand, Options};
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::object_files::{read_text, write};
use crate::opened;

/// Violations listed of a schedule; the rest is counted.
const LISTED: usize = 40;

pub(crate) fn exchange(command: &ExchangeCommand, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let directory = opened::directory(options)?;
    match command {
        ExchangeCommand::Schedule { phase, out, timeline, effort, pairs, json } => {
            let transfers = read_phase(&directory, phase)?;
            let found = schedule(&transfers, phase, (*effort, *pairs), *json, console)?;
            if let Some(file) = out {
                write(&directory, file, exchange::starts_text(&found, &transfers).as_bytes())?;
            }
            if let Some(file) = timeline {
                write(&directory, file, exchange::timeline(&found).as_bytes())?;
            }
            Ok(Exit::Success)
        }
        ExchangeCommand::Check { phase, schedule, json } => {
            let transfers = read_phase(&directory, phase)?;
            let text = read_text(&directory, schedule)?;
            let pieces = exchange::read_starts(&text, &transfers).map_err(|fault| at(schedule, &fault))?;
            Ok(check(&transfers, &pieces, *json, console))
        }
    }
}

fn at(file: &Utf8Path, fault: &TextFault) -> Fault {
    Fault::input(format!("{file}:{fault}"))
}

fn read_phase(directory: &Utf8Path, file: &Utf8Path) -> Result<Vec<PlacedTransfer>, Fault> {
    exchange::read_phase(&read_text(directory, file)?).map_err(|fault| at(file, &fault))
}

/// Schedules a phase and tells the figures.
fn schedule(
    transfers: &[PlacedTransfer],
    file: &Utf8Path,
    (effort, pairs): (u32, bool),
    json: bool,
    console: &Console,
) -> Result<Schedule, Fault> {
    if let Some(index) = transfers.iter().position(|transfer| transfer.is_paired).filter(|_| !pairs) {
        return Err(Fault::input(format!("{file}: transfer {index}: expected width 32, found 64; `--pairs` allows pair mode")));
    }
    let effort = Effort::new(effort).ok_or_else(|| Fault::input(format!("--effort: expected 1 to {}, found {effort}", Effort::MAX)))?;
    let started = Instant::now();
    let found = exchange::schedule_with(&exchange::problem_of(transfers), ScheduleOptions { effort, pairs }).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(|fault| format!("{file}: {fault}")).collect();
        Fault::input(faults.join("\n"))
    })?;
    let milliseconds = started.elapsed().as_secs_f64() * 1e3;
    if let Err(violations) = exchange::judge(transfers, &exchange::pieces_of(&found)) {
        return Err(Fault::failed(format!("{file}: the schedule found is not valid:\n{}", listed(&violations))));
    }
    let figures = &found.figures;
    let kind = format!("{:?}", figures.kind).to_lowercase();
    let is_proven = figures.horizon == figures.lower_bound;
    if json {
        console.result(
            &json!({
                "transfers": figures.transfers,
                "initial_horizon": figures.initial_horizon,
                "horizon": figures.horizon,
                "bound": figures.lower_bound,
                "gap": figures.gap(),
                "proven": is_proven,
                "kind": kind,
                "improvements": figures.improvements,
                "pairs": figures.pairs,
                "largest_row_words": figures.largest_row_words,
                "milliseconds": milliseconds,
            })
            .to_string(),
        );
    } else {
        console.result(&format!(
            "transfers={} initial={} horizon={} bound={} gap={} proven={is_proven} kind={kind} improvements={} pairs={} largestRowWords={} ms={milliseconds:.1}",
            figures.transfers,
            figures.initial_horizon,
            figures.horizon,
            figures.lower_bound,
            figures.gap(),
            figures.improvements,
            figures.pairs,
            figures.largest_row_words
        ));
    }
    Ok(found)
}

fn listed(violations: &[Violation]) -> String {
    let mut lines: Vec<String> = violations.iter().take(LISTED).map(ToString::to_string).collect();
    if violations.len() > LISTED {
        lines.push(format!("and {} more", violations.len() - LISTED));
    }
    lines.join("\n")
}

fn check(transfers: &[PlacedTransfer], pieces: &[Piece], json: bool, console: &Console) -> Exit {
    match exchange::judge(transfers, pieces) {
        Ok(judged) => {
            if json {
                console.result(&json!({"valid": true, "horizon": judged.horizon, "largest_row_words": judged.row_words}).to_string());
            } else {
                console.result(&format!("valid: horizon={} largestRowWords={}", judged.horizon, judged.row_words));
            }
            Exit::Success
        }
        Err(violations) => {
            if json {
                console.result(&json!({"valid": false, "violations": violations}).to_string());
            } else {
                console.result(&format!("{}\n{} violations", listed(&violations), violations.len()));
            }
            Exit::Failed
        }
    }
}
