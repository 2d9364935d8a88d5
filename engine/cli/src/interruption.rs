//! Ctrl-C and `kill`: the first stops the build, within a second and with all that is finished kept; the second at once.
//! The store survives either.

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

/// The build that runs now.
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

#[derive(Clone)]
struct Running {
    handle: InterruptHandle,
    console: Arc<Console>,
    run: Arc<Run>,
}

/// A build of which nothing is kept.
static REBUILD: Mutex<Option<InterruptHandle>> = Mutex::new(None);

/// Names a build that the next signal stops, and of which nothing is kept.
pub(crate) fn arm_rebuild(handle: InterruptHandle) {
    *running() = None;
    *REBUILD.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
}

/// Begins to listen. Without a build to stop, a signal ends the process.
pub(crate) fn watch() {
    // Without it the process still ends on a signal, only without a code of its own.
    if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) {
        std::thread::spawn(move || signals.forever().for_each(|_| stop()));
    }
}

/// Names the build that the next signal stops.
pub(crate) fn arm(handle: InterruptHandle, console: Arc<Console>, run: Arc<Run>) {
    *running() = Some(Running { handle, console, run });
}

fn stop() {
    match running().clone().filter(|running| !running.handle.is_interrupted()) {
        Some(running) => {
            running.handle.interrupt();
            std::thread::spawn(move || give_up(&running));
        }
        None => match REBUILD.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(handle) => {
                handle.interrupt();
                // The stages that run are given the same patience, so that nobody writes into the folder that is removed.
                std::thread::spawn(|| {
                    std::thread::sleep(PATIENCE);
                    exit()
                });
            }
            None => exit(),
        },
    }
}

/// Ends the process unless the build ends it before: a stage may still run for minutes.
fn give_up(running: &Running) {
    std::thread::sleep(PATIENCE);
    let Running { handle, console, run } = running.clone();
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
    running.console.fault(&Fault { exit: Exit::Interrupted, message: format!("error: interrupted: {message}") });
    exit()
}

fn exit() -> ! {
    scratch::remove_all();
    std::process::exit(Exit::Interrupted.code().into())
}

fn running() -> MutexGuard<'static, Option<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
