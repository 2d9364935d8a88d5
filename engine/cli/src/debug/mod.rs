//! The debugger of `ipubuild debug`: what is typed, where that is in a program, and how a standing chip is shown.
//!
//! The chip itself, with its breakpoints and steps, is `simulator::debug`; the host's part is a `driver::Session` that a
//! [`Desk`](desk::Desk) is in charge of.

pub(crate) mod desk;
mod listing;
mod places;
mod profile;
pub(crate) mod prompt;
mod request;
mod tile_trace;
