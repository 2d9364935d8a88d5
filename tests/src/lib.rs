//! What the end-to-end tests share.

mod workspace;

pub use workspace::{Session, TemporaryWorkspace};
