//! The artifact graph: what targets are declared, how they depend on each other, and the engine that runs their stages.
//!
//! A command loads a [`Workspace`], gives its declarations and the digests of its sources to an [`Engine`], and asks for
//! targets. Stages are salsa queries in other crates that call [`stage`]; their results are found again by key in the
//! store. This crate knows no chip, no model and no stage by name; it never prints.

// Names, and the text they stand in.
mod build_file;
mod diagnostic;
mod label;
mod label_map;
mod nearest;
mod source;
mod toml_tree;
// Declarations.
mod choice;
mod declaration;
mod filegroup;
mod override_field;
mod repository;
mod rule;
mod sweep;
mod test_suite;
// All of them together.
mod loader;
mod query;
mod query_answer;
mod target_graph;
mod workspace;
// Stages.
mod artifact;
mod cancellation;
mod database;
mod event;
mod failure;
mod inputs;
mod noted_reads;
mod shared;
mod source_reader;
mod stage;
mod wave;
// Targets.
mod build_points;
mod build_target;
mod export;
mod outcome;
mod packed;
mod remembered;
mod session;
// Afterwards.
mod document;
mod kept_stages;
mod keys_below;
mod renderer;
mod run_record;
mod target_inputs;
mod target_table;
mod why;

pub use artifact::{Artifact, Body, Bytes, Facts, Made};
pub use build_target::TargetReport;
pub use choice::{Auto, Input};
pub use database::{Db, Engine, EngineOptions};
pub use declaration::{Declaration, Dependency, SourceUse};
pub use diagnostic::{Diagnostic, Diagnostics, Place, Problem};
pub use document::{Block, Cell, Document, Table};
pub use event::{Event, EventSink, Figure, PointEvent, Progress, Silent, StageEvent, StageId};
pub use failure::{Cause, Failure};
pub use filegroup::{FileGroup, Manifest};
pub use inputs::{Declared, RuleData, SourceFile, Target};
pub use kept_stages::kept_stages;
pub use label::{Label, LabelFault, PackageName, Pattern, StageName};
pub use nearest::nearest;
pub use noted_reads::{note_facts, note_help};
pub use outcome::{Export, KeptFailure, Outcome, StageEntry, TargetRecord};
pub use override_field::{Override, OverrideFault};
pub use query::{FUNCTIONS, Query, QueryFault};
pub use remembered::{Look, Remembered, Request};
pub use renderer::{ChosenName, Renderer, Selection, Selects, ShowFault, Shown};
pub use repository::EmbeddedRepository;
pub use rule::{Field, Registry, Rule, RuleKind, WaveFunction};
pub use run_record::{RunOutcome, RunRecord, RunRecorder, Runs, Span, StageEnd, StageRun, TargetRun};
pub use session::{NotBegun, Session};
pub use shared::{InterruptHandle, Shared};
pub use source::{SourcePath, ToolPath};
pub use source_reader::SourceReader;
pub use stage::{
    Caching, NotedStage, StageFacts, StageInput, StageNote, StageSpec, data_of, key_of, load, locate_source, read_source, stage,
};
pub use store::{Digest, KeyBuilder};
pub use sweep::{Axis, Objective, Point, Range, Sample, Setting, Sweep, Value};
pub use target_inputs::TargetInputs;
pub use test_suite::TestSuite;
pub use why::{Change, Effect, FailedRun, History, Reason, StageChange, Why, WhyFault, reasons};
pub use workspace::{LoadRequest, LoadedTarget, Workspace};
