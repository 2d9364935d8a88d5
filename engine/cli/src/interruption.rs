//! Ctrl-C and `kill`: the first stops the build between stages, the second at once. The store survives either.

use std::sync::Mutex;

use graph::InterruptHandle;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// The build that runs now.
static RUNNING: Mutex<Option<InterruptHandle>> = Mutex::new(None);

/// Begins to listen. Without a build to stop, a signal ends the process.
pub(crate) fn watch() {
    // Without it the process still ends on a signal, only without a code of its own.
    if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) {
        std::thread::spawn(move || signals.forever().for_each(|_| stop()));
    }
}

/// Names the build that the next signal stops.
pub(crate) fn arm(handle: InterruptHandle) {
    *running() = Some(handle);
}

fn stop() {
    match running().as_ref().filter(|handle| !handle.is_interrupted()) {
        Some(handle) => handle.interrupt(),
        None => std::process::exit(Exit::Interrupted.code().into()),
    }
}

fn running() -> std::sync::MutexGuard<'static, Option<InterruptHandle>> {
    RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
