//! Compiles operator graphs to programs of the IPU21: pure functions, one stage a file, each with its own check.
//!
//! Planning turns a model into an [`program::Expanded`]; placement, tile code, rows and images give it addresses and words, and
//! `assemble` makes the package. Nothing here knows a database, a store or the simulator.

pub mod layout;
pub mod model;

pub mod axes;
pub mod does_not_fit;
pub mod kernel_table;
pub mod plan;
pub mod plan_fault;

mod candidates;

pub mod finalists;
pub mod mapping;

pub mod program;

pub mod clocks;
pub mod expand;
pub mod expanded_check;
pub mod footprint;
pub mod peaks;
pub mod selected;

mod expand_attention;
mod expand_product;
mod expanding;
mod merging;

pub mod spread;
mod tile_set;

pub mod host_plan;
pub mod host_rows;
pub mod supervisor;
pub mod tile_code;

pub mod placement;
pub mod rows;
pub mod runtime;

pub mod code_blocks;
pub mod images;

pub mod assemble;
pub mod host_files;
