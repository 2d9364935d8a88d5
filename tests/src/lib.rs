//! What the end-to-end tests share.

pub mod binary;
pub mod bounds;
pub mod compiled;
pub mod fake_sdk;
pub mod fidelity;
pub mod kernel_files;
pub mod place;
pub mod watching;

mod workspace;

pub use workspace::{Session, TemporaryWorkspace};
