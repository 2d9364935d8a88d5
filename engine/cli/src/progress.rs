//! The live line on a terminal: stage, pieces done of a wave, current label.

use graph::{Event, Progress, StageId};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line that is redrawn in place, or nothing when standard error is not a terminal.
pub(crate) struct LiveLine {
    bar: Option<ProgressBar>,
}

impl LiveLine {
    /// A line on standard error when `shown`.
    pub(crate) fn new(shown: bool) -> LiveLine {
        LiveLine { bar: shown.then(bar) }
    }

    /// Shows what `event` tells.
    pub(crate) fn show(&self, event: &Event) {
        let Some(bar) = &self.bar else { return };
        match event {
            Event::Stage(event) if event.progress == Progress::Started => bar.set_message(named(&event.id)),
            Event::WaveStarted { wave, total, .. } => {
                bar.set_length(*total as u64);
                bar.set_position(0);
                bar.set_prefix(*wave);
            }
            Event::WaveAdvanced { done, total, .. } => {
                bar.set_length(*total as u64);
                bar.set_position(*done as u64);
            }
            Event::Stage(_) | Event::WaveEnded { .. } | Event::Work { .. } | Event::Store(_) | Event::Notice { .. } => {}
        }
    }

    /// Runs `print` while the line is out of the way.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

fn named(id: &StageId) -> String {
    id.to_string()
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {pos}/{len} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}
