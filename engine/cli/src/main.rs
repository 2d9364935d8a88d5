//! The program `ipubuild`: arguments in; progress, diagnostics and reports out. It decides nothing: what a target is and
//! how it is built is said by the crates that [`composition`] links together.
//!
//! Standard output carries results alone (verdicts, answers of `query`, listings of `show`), standard error everything else.

// From arguments to a loaded workspace.
mod arguments;
mod composition;
mod exit;
mod object_files;
mod opened;
// What is told while it works.
mod clock;
mod console;
mod event_file;
mod progress;
mod stage_line;
mod trace_file;
// Work.
mod builder;
mod command;
mod debug;
mod interruption;
mod junit;
mod scratch;
mod show;
mod watch;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    interruption::watch();
    let arguments = arguments::Arguments::parse();
    command::execute(arguments).into()
}
