//! The program `ipubuild` as a user runs it: arguments and files in; exit code, output and files out.

mod artifacts;
mod bad_input;
mod command_line;
mod documentation;
mod place;
