//! The artifact graph: what targets are declared, how they depend on each other, and the engine that runs their stages.
//!
//! A command loads a [`Workspace`], gives its declarations and the digests of its sources to an [`Engine`], and asks for
//! targets. Stages are salsa queries in other crates that call [`stage`]; their results are found again by key in the
//! store. This crate knows no chip, no model and no stage by name; it never prints.

mod artifact;
mod database;
mod event;
mod failure;
mod inputs;
mod label;
mod repository;
mod shared;
mod source;
mod source_reader;
mod stage;
mod wave;

pub use artifact::{Artifact, Body, Bytes, Facts, Made};
pub use database::{Db, Engine, EngineOptions};
pub use event::{Event, EventSink, Figure, Progress, Silent, StageEvent, StageId};
pub use failure::{Cause, Failure};
pub use inputs::{Declared, RuleData, SourceFile, Target};
pub use label::{Label, LabelFault, PackageName, Pattern, StageName};
pub use repository::EmbeddedRepository;
pub use shared::{InterruptHandle, Shared};
pub use source::SourcePath;
pub use source_reader::SourceReader;
pub use stage::{Caching, StageInput, StageSpec, key_of, load, read_source, stage};
pub use store::{Digest, KeyBuilder};
