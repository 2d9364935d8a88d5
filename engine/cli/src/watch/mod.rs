//! What `ipubuild watch` looks at, and how it learns of changes.

mod changes;
mod known;
mod watcher;

pub(crate) use changes::Changes;
pub(crate) use known::Known;
pub(crate) use watcher::{Heard, SCAN, Watcher};
