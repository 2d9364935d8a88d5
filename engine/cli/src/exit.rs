//! How a command ends.

use std::fmt::Display;
use std::process::ExitCode;

use graph::{Diagnostics, Failure, Workspace};
use store::StoreFault;

/// What the process tells its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Everything asked for was done, and every verdict is a pass.
    Success,
    /// The build or a verdict failed.
    Failed,
    /// Something the user wrote is wrong.
    BadInput,
    /// The user stopped it.
    Interrupted,
}

impl Exit {
    /// The number the operating system gets.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Failed => 1,
            Exit::BadInput => 2,
            Exit::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// Why a command stopped: what to print, beginning with `error:`, and how to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Fault {
    /// Something the user wrote is wrong.
    pub(crate) fn input(message: impl Display) -> Fault {
        Fault { exit: Exit::BadInput, message: format!("error: {message}") }
    }

    /// The input is right and yet it cannot be done.
    pub(crate) fn failed(message: impl Display) -> Fault {
        Fault { exit: Exit::Failed, message: format!("error: {message}") }
    }

    /// A failed build, with the place of the field at fault.
    pub(crate) fn build(workspace: &Workspace, failure: &Failure) -> Fault {
        let exit = match failure.exit_code() {
            2 => Exit::BadInput,
            130 => Exit::Interrupted,
            _ => Exit::Failed,
        };
        Fault { exit, message: workspace.explain(failure) }
    }
}

impl From<Diagnostics> for Fault {
    fn from(diagnostics: Diagnostics) -> Fault {
        Fault { exit: Exit::BadInput, message: diagnostics.to_string() }
    }
}

impl From<StoreFault> for Fault {
    fn from(fault: StoreFault) -> Fault {
        Fault::failed(fault)
    }
}
