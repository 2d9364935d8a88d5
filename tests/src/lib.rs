//! What the end-to-end tests share.

pub mod binary;
pub mod compiled;

mod workspace;

pub use workspace::{Session, TemporaryWorkspace};
