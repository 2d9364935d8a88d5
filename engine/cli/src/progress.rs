//! What is redrawn in place on a terminal: stage, pieces done of a wave, current label; of a sweep the best points so far.

use std::sync::{Mutex, PoisonError};

use graph::{Event, PointEvent, Progress, StageId};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Points of a sweep that are shown.
const BEST: usize = 5;

/// Lines that are redrawn in place, or nothing when standard error is not a terminal.
pub(crate) struct LiveLine {
    bars: Option<Bars>,
}

struct Bars {
    all: MultiProgress,
    line: ProgressBar,
    table: ProgressBar,
    best: Mutex<Vec<PointEvent>>,
}

impl LiveLine {
    /// Lines on standard error when `shown`.
    pub(crate) fn new(shown: bool) -> LiveLine {
        LiveLine { bars: shown.then(Bars::new) }
    }

    /// Whether something is shown.
    pub(crate) fn is_shown(&self) -> bool {
        self.bars.is_some()
    }

    /// Shows what `event` tells.
    pub(crate) fn show(&self, event: &Event) {
        let Some(Bars { line, .. }) = &self.bars else { return };
        match event {
            Event::Stage(event) if event.progress == Progress::Started => line.set_message(named(&event.id)),
            Event::WaveStarted { wave, total, .. } => {
                line.set_length(*total as u64);
                line.set_position(0);
                line.set_prefix(*wave);
            }
            Event::WaveAdvanced { done, total, .. } => {
                line.set_length(*total as u64);
                line.set_position(*done as u64);
            }
            Event::Point(point) => self.bars.iter().for_each(|bars| bars.point(point)),
            Event::Stage(_) | Event::WaveEnded { .. } | Event::Work { .. } | Event::Store(_) | Event::Notice { .. } => {}
        }
    }

    /// Runs `print` while the lines are out of the way.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bars {
            Some(bars) => bars.all.suspend(print),
            None => print(),
        }
    }

    /// Takes the lines away.
    pub(crate) fn clear(&self) {
        if let Some(Bars { all, line, table, .. }) = &self.bars {
            table.finish_and_clear();
            line.finish_and_clear();
            let _ = all.clear();
        }
    }
}

impl Bars {
    fn new() -> Bars {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let (table, line) = (all.add(ProgressBar::no_length()), all.add(ProgressBar::new(0)));
        let style = |bar: &ProgressBar, template: &str| {
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
        };
        style(&table, "{msg}");
        style(&line, "{spinner} {prefix} {pos}/{len} {wide_msg}");
        Bars { all, line, table, best: Mutex::default() }
    }

    fn point(&self, point: &PointEvent) {
        let mut best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
        if point.done == 1 {
            best.clear();
        }
        if let Some(value) = point.value {
            let is_worse = |known: &PointEvent| known.value.is_some_and(|known| point.objective.prefers(value, known));
            let place = best.iter().position(is_worse).unwrap_or(best.len());
            best.insert(place, point.clone());
            best.truncate(BEST);
        }
        let rows = best.iter().filter_map(|point| Some(format!("{:>12}  {}", point.value?, point.label)));
        let head = format!("{} of {} points, best {}:", point.done, point.total, point.objective.figure());
        self.table.set_message(std::iter::once(head).chain(rows).collect::<Vec<_>>().join("\n"));
    }
}

fn named(id: &StageId) -> String {
    id.to_string()
}
