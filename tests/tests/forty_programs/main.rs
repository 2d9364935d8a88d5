//! Programs drawn from a seed: every one passes, or is refused because it does not fit.
//!
//! `IPUBUILD_PROGRAMS` sets how many, `IPUBUILD_SEED` the seed; both are printed. A failure prints the smallest program found that
//! still fails, as a BUILD.toml.

mod case;
mod estimate;
mod refusal;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use graph::{EngineOptions, TargetReport};
use serde::Deserialize;
use tests::{Session, TemporaryWorkspace};

use case::{Case, draw};

/// Programs unless the environment says otherwise.
const PROGRAMS: u64 = 40;
/// The seed unless the environment says otherwise.
const SEED: u64 = 20_260_101;
/// Smaller programs tried for one that fails.
const ATTEMPTS: usize = 80;
/// How far simulated clocks may be from planned ones, in the median.
const CLOCKS_BOUND: f64 = 0.10;

/// What became of a program.
#[derive(Clone, Debug)]
enum Outcome {
    Passed { planned: u64, simulated: u64, error_over_tolerance: f64 },
    Refused,
    Failed(String),
}

#[derive(Deserialize)]
struct Report {
    checkpoints: Vec<Comparison>,
    outputs: Vec<Comparison>,
    total: Clocks,
}

#[derive(Deserialize)]
struct Comparison {
    maximum_absolute_error: f64,
    tolerance: f64,
}

#[derive(Deserialize)]
struct Clocks {
    planned: u64,
    simulated: u64,
}

/// Builds and runs a program in a workspace of its own.
fn outcome(case: &Case) -> Outcome {
    let workspace = TemporaryWorkspace::new(&case.toml());
    let mut session = workspace.session(EngineOptions { threads: 1, shuffle: None });
    match catch_unwind(AssertUnwindSafe(|| judge(&workspace, &mut session))) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let message = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
            Outcome::Failed(format!("a panic: {}", message.unwrap_or("without a message")))
        }
    }
}

fn judge(workspace: &TemporaryWorkspace, session: &mut Session) -> Outcome {
    let reports = match session.build("//:run") {
        Ok(reports) => reports,
        Err(failure) if failure.messages().iter().all(|message| message.contains("does not fit")) => {
            return match refusal::confirm(session.engine()) {
                Ok(()) => Outcome::Refused,
                Err(reason) => Outcome::Failed(format!("{failure}\nrefused without reason: {reason}")),
            };
        }
        Err(failure) => return Outcome::Failed(failure.to_string()),
    };
    match reports.last() {
        Some(TargetReport { success: true, .. }) => passed(workspace),
        Some(report) => Outcome::Failed(report.lines.join("\n")),
        None => Outcome::Failed("there is no report".to_owned()),
    }
}

fn passed(workspace: &TemporaryWorkspace) -> Outcome {
    let report: Report = serde_json::from_slice(&workspace.read("artifacts/run/report.json")).expect("a report");
    let ratios =
        report.checkpoints.iter().chain(&report.outputs).map(|comparison| comparison.maximum_absolute_error / comparison.tolerance);
    Outcome::Passed { planned: report.total.planned, simulated: report.total.simulated, error_over_tolerance: ratios.fold(0.0, f64::max) }
}

/// A program that still fails where every smaller one tried does not.
fn smallest(case: Case, message: String) -> (Case, String) {
    let (mut case, mut message) = (case, message);
    let mut attempts = 0;
    'shrinking: loop {
        for candidate in case.smaller() {
            attempts += 1;
            if attempts > ATTEMPTS {
                break 'shrinking;
            }
            if let Outcome::Failed(found) = outcome(&candidate) {
                (case, message) = (candidate, found);
                continue 'shrinking;
            }
        }
        break;
    }
    (case, message)
}

fn number_from(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{variable}: expected a number, found {text}")))
}

/// Outcomes of the cases, two at a time, in the order of their numbers.
fn outcomes(seed: u64, count: u64) -> Vec<(Case, Outcome)> {
    let (next, found) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let case = draw(seed, number);
                    let outcome = outcome(&case);
                    found.lock().expect("no panic").push((case, outcome));
                }
            });
        }
    });
    let mut found = found.into_inner().expect("no panic");
    found.sort_by_key(|(case, _)| case.number);
    found
}

#[test]
fn drawn_programs_pass_or_are_refused_for_a_reason() {
    let (seed, count) = (number_from("IPUBUILD_SEED", SEED), number_from("IPUBUILD_PROGRAMS", PROGRAMS));
    let mut listing = format!("seed {seed}, {count} programs\n");
    let (mut ratios, mut refused, mut failures) = (Vec::new(), 0, Vec::new());
    for (case, outcome) in outcomes(seed, count) {
        let attention =
            case.attention.as_ref().map_or(String::new(), |(_, attention)| format!(" heads {} keys {}", attention.heads, attention.keys));
        let line = format!(
            "{}: tokens {} width {} products {} tiles {}{attention}",
            case.number,
            case.tokens,
            case.width,
            case.products.len(),
            case.tiles
        );
        match outcome {
            Outcome::Passed { planned, simulated, error_over_tolerance } => {
                let ratio = simulated as f64 / planned as f64;
                ratios.push(ratio);
                listing += &format!(
                    "{line}: simulated/planned {simulated}/{planned} = {ratio:.3}, largest error/tolerance {error_over_tolerance:.2}\n"
                );
            }
            Outcome::Refused => {
                refused += 1;
                listing += &format!("{line}: does not fit\n");
            }
            Outcome::Failed(message) => {
                listing += &format!("{line}: FAILED {message}\n");
                failures.push((case, message));
            }
        }
    }
    if let Some((case, message)) = failures.first().cloned() {
        let (case, message) = smallest(case, message);
        panic!("{listing}\n{} of {count} programs fail; the smallest one found:\n\n{}\n{message}", failures.len(), case.toml());
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).copied().unwrap_or(1.0);
    assert!((median - 1.0).abs() <= CLOCKS_BOUND, "{listing}\nmedian simulated/planned {median:.3}");
    // Only large programs on one or two tiles may be refused.
    assert!(refused * 4 <= count, "{listing}\n{refused} of {count} refused");
    record(&format!("{listing}{} passed, {refused} refused, median simulated/planned {median:.3}\n", ratios.len()));
}

#[test]
fn largest_program_is_refused_on_one_tile_and_passes_on_more() {
    let layer = || case::Product { width: 160, bias: true, transposed: false };
    let attention = case::Attention { heads: 1, keys: 299, value_width: 160, memory: Some(160), bias: true };
    let on = |tiles: u32| Case {
        number: 0,
        tokens: 300,
        width: 160,
        products: vec![layer(), layer(), layer()],
        attention: Some((1, attention.clone())),
        tiles,
        checkpoints: true,
    };
    let on_one = outcome(&on(1));
    assert!(matches!(on_one, Outcome::Refused), "on 1 tile: {on_one:?}");
    for tiles in [2, 4, 8] {
        let found = outcome(&on(tiles));
        assert!(matches!(found, Outcome::Passed { .. }), "on {tiles} tiles: {found:?}");
    }
}

/// Keeps the listing beside the test's binary, for the figures of a report.
fn record(listing: &str) {
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/forty_programs.txt");
    std::fs::write(path, listing).expect("the listing can be written");
}
