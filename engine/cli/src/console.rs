//! Everything that is printed while a command works.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use graph::{Event, EventSink, PointEvent, Progress, RunRecord, TargetReport};

use crate::arguments::{Color, Options};
use crate::event_file::EventFile;
use crate::exit::Fault;
use crate::opened;
use crate::progress::LiveLine;
use crate::stage_line::stage_line;

/// Prints results to standard output and everything else to standard error; takes the engine's events.
pub(crate) struct Console {
    verbose: bool,
    colored: bool,
    live: LiveLine,
    events: Option<Mutex<EventFile>>,
    executed: AtomicUsize,
    found: AtomicUsize,
}

/// How a word is coloured.
#[derive(Clone, Copy)]
enum Paint {
    Red,
    Green,
    Yellow,
}

impl Console {
    /// A console as the options want it; `live` allows a live line on a terminal.
    pub(crate) fn new(options: &Options, live: bool) -> Result<Console, Fault> {
        let terminal = std::io::stderr().is_terminal();
        let colored = match options.color {
            Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            Color::Always => true,
            Color::Never => false,
        };
        let events = match &options.events {
            None => None,
            Some(wanted) => {
                let path = opened::directory(options)?.join(wanted);
                let file = EventFile::create(&path).map_err(|error| Fault::input(format!("--events {wanted}: {error}")))?;
                Some(Mutex::new(file))
            }
        };
        Ok(Console {
            verbose: options.verbose,
            colored,
            live: LiveLine::new(live && terminal),
            events,
            executed: AtomicUsize::new(0),
            found: AtomicUsize::new(0),
        })
    }

    /// A line of a result, on standard output.
    pub(crate) fn result(&self, line: &str) {
        // A reader that has read enough, as `head`, is no fault of the build.
        self.live.aside(|| {
            let _ = writeln!(std::io::stdout().lock(), "{line}");
        });
    }

    /// A line for the user, on standard error.
    pub(crate) fn tell(&self, line: &str) {
        self.live.aside(|| {
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        });
    }

    /// Why something stopped.
    pub(crate) fn fault(&self, fault: &Fault) {
        let lines = fault.message.lines().map(|line| match line.strip_prefix("error:") {
            Some(rest) => format!("{}{rest}", self.painted("error:", Paint::Red)),
            None => line.to_owned(),
        });
        self.tell(&lines.collect::<Vec<_>>().join("\n"));
    }

    /// The line of a verdict in a list of tests.
    pub(crate) fn verdict(&self, success: bool, text: &str) {
        let word = if success { self.painted("PASS", Paint::Green) } else { self.painted("FAIL", Paint::Red) };
        self.tell(&format!("{word} {text}"));
    }

    /// What became of a target, for the file of events.
    pub(crate) fn target(&self, report: &TargetReport) {
        if let Some(events) = &self.events {
            lock(events).target(report);
        }
    }

    /// The end of a run, for the file of events.
    pub(crate) fn run(&self, number: i64, record: &RunRecord) {
        if let Some(events) = &self.events {
            lock(events).run(number, record);
        }
    }

    /// Stages executed and found in the store so far.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.executed.load(Ordering::Relaxed), self.found.load(Ordering::Relaxed))
    }

    /// Takes the live line away, and says whether all events could be written.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        self.live.clear();
        match self.events.as_ref().and_then(|events| lock(events).fault()) {
            Some(error) => Err(Fault::failed(format!("cannot write the file of events: {error}"))),
            None => Ok(()),
        }
    }

    fn painted(&self, word: &str, paint: Paint) -> String {
        let code = match paint {
            Paint::Red => 31,
            Paint::Green => 32,
            Paint::Yellow => 33,
        };
        if self.colored { format!("\x1b[1;{code}m{word}\x1b[0m") } else { word.to_owned() }
    }

    /// A failed point is told when it fails; the best one so far where no live table shows it.
    fn point(&self, point: &PointEvent) {
        let PointEvent { label, done, total, value, .. } = point;
        if let Some(message) = &point.message {
            self.tell(&format!("{} {label}: {message}", self.painted("failed", Paint::Red)));
        } else if let Some(value) = value.filter(|_| point.is_best && !self.live.is_shown()) {
            self.tell(&format!("best of {done} of {total} points: {}={value} {label}", point.objective.figure()));
        }
    }

    fn count(&self, progress: Progress) {
        match progress {
            Progress::Started => 0,
            Progress::Executed => self.executed.fetch_add(1, Ordering::Relaxed),
            Progress::Cached => self.found.fetch_add(1, Ordering::Relaxed),
        };
    }
}

impl EventSink for Console {
    fn event(&self, event: &Event) {
        if let Some(events) = &self.events {
            lock(events).event(event);
        }
        self.live.show(event);
        match event {
            Event::Stage(event) => {
                self.count(event.progress);
                if self.verbose && event.progress != Progress::Started {
                    self.tell(&stage_line(event));
                }
            }
            Event::Store(report) => self.tell(&format!("{} {report}", self.painted("store:", Paint::Yellow))),
            Event::Notice { label: Some(label), message } => self.tell(&format!("{label}: {message}")),
            Event::Notice { label: None, message } => self.tell(message),
            Event::Point(point) => self.point(point),
            Event::WaveStarted { .. } | Event::WaveAdvanced { .. } | Event::WaveEnded { .. } | Event::Work { .. } => {}
        }
    }
}

fn lock(events: &Mutex<EventFile>) -> MutexGuard<'_, EventFile> {
    events.lock().unwrap_or_else(PoisonError::into_inner)
}
