//! Ctrl-C and `kill`: the first stops the build, within a second and with all that is finished kept; the second at once.
//! The store survives either.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use graph::{InterruptHandle, RunOutcome};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::builder::Run;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::scratch;

/// How long the stages that run may take to end; after it they are given up.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long the writing of finished results may take when stages were given up.
const WRITING: Duration = Duration::from_millis(300);

/// What a signal stops.
static RUNNING: Mutex<Running> = Mutex::new(Running::Nothing);
/// Whether there was a signal.
static SIGNALLED: AtomicBool = AtomicBool::new(false);

#[derive(Clone)]
enum Running {
    /// Nothing that needs an end: the process ends.
    Nothing,
    /// A build.
    Build(Build),
    /// A build of which nothing is kept.
    Rebuild(InterruptHandle),
    /// A command that waits for something to do, and ends when it is told to.
    Waiting(Arc<dyn Fn() + Send + Sync>),
}

#[derive(Clone)]
struct Build {
    handle: InterruptHandle,
    console: Arc<Console>,
    run: Arc<Run>,
}

/// Begins to listen. Without a build to stop, a signal ends the process.
pub(crate) fn watch() {
    // Without it the process still ends on a signal, only without a code of its own.
    if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) {
        std::thread::spawn(move || signals.forever().for_each(|_| stop()));
    }
}

/// Names the build that the first signal stops, and the record that is kept of it then.
pub(crate) fn arm(handle: InterruptHandle, console: Arc<Console>, run: Arc<Run>) {
    *running() = Running::Build(Build { handle, console, run });
}

/// Names a build that the first signal stops, and of which nothing is kept.
pub(crate) fn arm_rebuild(handle: InterruptHandle) {
    *running() = Running::Rebuild(handle);
}

/// No build runs: the first signal calls `end`. False when there was a signal already.
pub(crate) fn rest(end: Arc<dyn Fn() + Send + Sync>) -> bool {
    let mut running = running();
    *running = Running::Waiting(end);
    !is_signalled()
}

/// Nothing is built any more: a signal ends the process.
pub(crate) fn disarm() {
    *running() = Running::Nothing;
}

/// Whether there was a signal.
pub(crate) fn is_signalled() -> bool {
    SIGNALLED.load(Ordering::SeqCst)
}

fn stop() {
    let running = running();
    if SIGNALLED.swap(true, Ordering::SeqCst) {
        exit();
    }
    match &*running {
        Running::Nothing => exit(),
        Running::Waiting(end) => end(),
        Running::Rebuild(handle) => {
            handle.interrupt();
            // The stages that run are given the same patience, so that nobody writes into the folder that is removed.
            std::thread::spawn(|| {
                std::thread::sleep(PATIENCE);
                exit()
            });
        }
        Running::Build(build) => {
            build.handle.interrupt();
            let build = build.clone();
            std::thread::spawn(move || give_up(build));
        }
    }
}

/// Ends the process unless the build ends it before: a stage may still run for minutes.
fn give_up(build: Build) {
    std::thread::sleep(PATIENCE);
    let Build { handle, console, run } = build.clone();
    let (written, when_written) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let kept = handle.keep_finished();
        handle.with_store(|store| run.keep(store, RunOutcome::Interrupted, &console));
        written.send(kept)
    });
    let kept = match when_written.recv_timeout(WRITING) {
        Ok(Ok(())) => Ok("a stage still runs and is given up; those that are finished are kept".to_owned()),
        Ok(Err(failure)) => Err(failure.to_string()),
        Err(_) => Err("the store takes long to write, the last results are not kept".to_owned()),
    };
    let message = kept.unwrap_or_else(|fault| fault);
    build.console.fault(&Fault { exit: Exit::Interrupted, message: format!("error: interrupted: {message}") });
    exit()
}

fn exit() -> ! {
    scratch::remove_all();
    std::process::exit(Exit::Interrupted.code().into())
}

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
