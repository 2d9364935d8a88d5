//! Events as JSON, one object a line, in the order they came.

use std::fs::File;
use std::io::{LineWriter, Write};

use camino::Utf8Path;
use graph::{Event, Figure, Progress, RunRecord, StageEvent, TargetReport};
use serde::{Serialize, Serializer};

/// A file that takes events.
pub(crate) struct EventFile {
    file: LineWriter<File>,
    fault: Option<std::io::Error>,
}

/// Raised when a line changes its meaning.
const VERSION: u32 = 1;

/// One line.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line<'a> {
    Schema {
        version: u32,
    },
    Run {
        run: i64,
        outcome: &'static str,
        started_ms: i64,
        elapsed_ms: f64,
    },
    Stage {
        label: String,
        stage: &'a str,
        index: Option<&'a str>,
        cached: bool,
        success: bool,
        elapsed_ms: f64,
        help_ms: f64,
        key: String,
        digest: Option<String>,
        figures: Figures<'a>,
    },
    Wave {
        label: String,
        wave: &'a str,
        total: usize,
    },
    Store {
        message: String,
    },
    Notice {
        label: Option<String>,
        message: &'a str,
    },
    Target {
        label: String,
        cached: bool,
        success: bool,
        key: String,
        lines: &'a [String],
        exports: &'a [camino::Utf8PathBuf],
    },
    Point {
        label: String,
        done: usize,
        total: usize,
        cached: bool,
        success: bool,
        objective: &'a str,
        value: Option<f64>,
        is_best: bool,
        message: Option<&'a str>,
    },
}

/// An object in the order of the stage.
struct Figures<'a>(&'a [(String, Figure)]);

impl Serialize for Figures<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl EventFile {
    /// Makes the file, or empties it.
    pub(crate) fn create(path: &Utf8Path) -> std::io::Result<EventFile> {
        let mut file = EventFile { file: LineWriter::new(File::create(path)?), fault: None };
        file.write(&Line::Schema { version: VERSION });
        Ok(file)
    }

    /// Writes the end of a run.
    pub(crate) fn run(&mut self, number: i64, record: &RunRecord) {
        let RunRecord { started_ms, elapsed_ms, ref outcome, .. } = *record;
        self.write(&Line::Run { run: number, outcome: outcome.word(), started_ms, elapsed_ms });
    }

    /// Writes an event of the engine; starts of stages and steps of waves are for live displays and left out.
    pub(crate) fn event(&mut self, event: &Event) {
        if let Some(line) = line(event) {
            self.write(&line);
        }
    }

    /// Writes what became of a target.
    pub(crate) fn target(&mut self, report: &TargetReport) {
        self.write(&Line::Target {
            label: report.label.to_string(),
            cached: report.cached,
            success: report.success,
            key: report.shallow_key.to_string(),
            lines: &report.lines,
            exports: &report.exports,
        });
    }

    /// The first fault of writing.
    pub(crate) fn fault(&mut self) -> Option<std::io::Error> {
        self.fault.take()
    }

    fn write(&mut self, line: &Line<'_>) {
        let written = serde_json::to_vec(line).map_err(std::io::Error::from).and_then(|mut bytes| {
            bytes.push(b'\n');
            self.file.write_all(&bytes)
        });
        if let Err(error) = written {
            self.fault.get_or_insert(error);
        }
    }
}

fn line(event: &Event) -> Option<Line<'_>> {
    match event {
        Event::Stage(event) if event.progress == Progress::Started => None,
        Event::Stage(event) => Some(stage(event)),
        Event::WaveStarted { label, wave, total } => Some(Line::Wave { label: label.to_string(), wave, total: *total }),
        Event::WaveAdvanced { .. } | Event::WaveEnded { .. } | Event::Work { .. } => None,
        Event::Point(point) => Some(Line::Point {
            label: point.label.to_string(),
            done: point.done,
            total: point.total,
            cached: point.cached,
            success: point.success,
            objective: point.objective.figure(),
            value: point.value,
            is_best: point.is_best,
            message: point.message.as_deref(),
        }),
        Event::Store(report) => Some(Line::Store { message: report.to_string() }),
        Event::Notice { label, message } => Some(Line::Notice { label: label.as_ref().map(ToString::to_string), message }),
    }
}

fn stage(event: &StageEvent) -> Line<'_> {
    Line::Stage {
        label: event.id.label.to_string(),
        stage: &event.id.stage.stage,
        index: event.id.stage.index.as_deref(),
        cached: event.progress == Progress::Cached,
        success: event.success,
        elapsed_ms: event.elapsed_ms,
        help_ms: event.help_ms,
        key: event.key.to_string(),
        digest: event.digest.map(|digest| digest.to_string()),
        figures: Figures(&event.figures),
    }
}
