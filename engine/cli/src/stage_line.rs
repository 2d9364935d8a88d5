//! The line of a stage: its name, its figures in its own order, how long it took.

use graph::{Progress, StageEvent};

/// `//nets:mlp[schedules/3] transfers=12 … elapsed_ms=0.81 success=true cached=false`.
pub(crate) fn stage_line(event: &StageEvent) -> String {
    let figures: String = event.figures.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    let cached = event.progress == Progress::Cached;
    format!("{}{figures} elapsed_ms={:.2} success={} cached={cached}", event.id, event.elapsed_ms, event.success)
}
