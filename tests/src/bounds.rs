//! Lines of a benchmark's report, each with its bound.

use std::time::Duration;

/// Whether every bound held.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    held: bool,
    /// A bound missed by less than this factor is told and no fault.
    slack: f64,
}

impl Report {
    /// A report; the `small` form runs on machines that do other work, and fails only far above a bound.
    #[must_use]
    pub fn new(small: bool) -> Report {
        Report { held: true, slack: if small { 3.0 } else { 1.0 } }
    }

    /// A line: what was measured, and, where it was measured beside something else, their ratio, which the bound is of.
    #[allow(clippy::print_stdout, reason = "the report of a benchmark")]
    pub fn line(&mut self, what: &str, ours: f64, unit: &str, against: Option<(&str, f64)>, bound: f64) {
        let value = against.map_or(ours, |(_, against)| ours / against);
        self.held &= value <= bound * self.slack;
        let against = against.map_or(String::new(), |(name, against)| format!("  {name} {against:9.2} {unit}  ratio {value:5.2}"));
        let verdict = if value <= bound { "" } else { "  MISSED" };
        println!("{what:<52} {ours:9.2} {unit}{against}  bound {bound}{verdict}");
    }

    /// Ends the process with 1 when a bound was missed.
    pub fn finish(self) {
        if !self.held {
            std::process::exit(1);
        }
    }
}

/// The middle one, in milliseconds.
///
/// # Panics
/// When there are none.
#[must_use]
pub fn median(times: Vec<Duration>) -> f64 {
    middle(times.into_iter().map(|time| time.as_secs_f64() * 1e3).collect())
}

/// The middle one.
///
/// # Panics
/// When there are none.
#[must_use]
pub fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
