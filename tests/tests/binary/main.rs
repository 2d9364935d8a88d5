//! The program `ipubuild` as a user runs it: arguments and files in; exit code, output and files out.

mod artifacts;
mod bad_input;
mod command_line;
mod debugging;
mod documentation;
mod exchange_lab;
mod place;
mod toolchain;

use place::Ran;

/// The program's answer when everything is as it should be.
#[track_caller]
fn good(ran: Ran) -> Ran {
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    ran
}
