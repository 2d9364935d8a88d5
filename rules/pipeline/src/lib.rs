//! The stages of a program and its runs as incremental queries, and the rules that users write.
//!
//! A stage here fetches its inputs, calls a pure function of another crate, checks the result with that crate's own checker and
//! returns an artifact; nothing else happens. `graph` finds results again by key, the crates behind know no database. The command
//! line registers [`rule::registry`] and [`repository`] and builds targets.

pub mod rule;
pub mod stage;
pub mod tensor;

mod compiler_call;
mod debuggee;
mod figures;
mod fingerprint;
mod key;
mod outcome;
mod repository;
mod show;
mod waves;

pub use debuggee::Debuggee;
pub use key::{BindingKey, FinalistKey, KernelKey, PhaseKey, TensorKey};
pub use repository::repository;
pub use stage::simulation::CLOCK_LIMIT;
