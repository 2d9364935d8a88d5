//! `ipubuild watch` as a user runs it beside an editor.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// A running `ipubuild watch`, killed when dropped.
pub struct Watching {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

/// So long nothing takes; a test that waits longer fails.
const LONGEST: Duration = Duration::from_secs(120);

impl Watching {
    /// Starts `command`, whose standard input is closed.
    pub fn start(mut command: Command) -> Watching {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let (sender, lines) = channel();
        forward(child.stdout.take().expect("piped"), sender.clone());
        forward(child.stderr.take().expect("piped"), sender);
        Watching { child, lines, seen: Vec::new() }
    }

    /// Waits for a line that holds `text`.
    #[track_caller]
    pub fn line(&mut self, text: &str) -> String {
        loop {
            match self.lines.recv_timeout(LONGEST) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("no line with {text:?} after {:?}", self.seen),
                Err(RecvTimeoutError::Disconnected) => panic!("ended without {text:?} after {:?}", self.seen),
            }
        }
    }

    /// Waits for a line of standard error that holds `text` and for the line of a build, in whichever order they come.
    #[track_caller]
    pub fn fault(&mut self, text: &str) -> Built {
        let (mut told, mut built) = (false, None);
        loop {
            let line = self.line("");
            if line.contains(" stages executed, ") {
                built = Some(Built::of(&line));
            } else {
                told |= line.contains(text);
            }
            if told && let Some(built) = built.take() {
                return built;
            }
        }
    }

    /// Waits for the line of the next build.
    #[track_caller]
    pub fn build(&mut self) -> Built {
        Built::of(&self.line(" stages executed, "))
    }

    /// The lines that come within `quiet`, those of standard output and error.
    pub fn lines_within(&mut self, quiet: Duration) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(quiet) {
            lines.push(line);
        }
        self.seen.extend(lines.iter().cloned());
        lines
    }

    /// Process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, as `INT`.
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Waits for the end; the exit code.
    #[track_caller]
    pub fn end(mut self) -> Option<i32> {
        self.child.wait().expect("a child can be waited for").code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a process a signal, as `INT`.
pub fn signal(process: u32, name: &str) {
    let sent = Command::new("sh").arg("-c").arg(format!("kill -{name} {process}")).status().expect("sh starts");
    assert!(sent.success(), "kill -{name} {process}");
}

fn forward(stream: impl Read + Send + 'static, lines: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                break;
            }
        }
    });
}

/// The line of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// What it was about.
    pub what: String,
    /// Stages that ran.
    pub executed: usize,
    /// PASS, FAIL or ERROR.
    pub verdict: String,
}

impl Built {
    fn of(line: &str) -> Built {
        let (what, rest) = line.split_once(": ").expect("a subject");
        let executed = rest.split(' ').next().and_then(|count| count.parse().ok()).expect("a count");
        let verdict = rest.rsplit(' ').next().expect("a verdict").to_owned();
        Built { what: what.to_owned(), executed, verdict }
    }
}
