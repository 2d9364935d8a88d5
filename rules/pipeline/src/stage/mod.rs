//! Every stage as a query: fetch, call the pure function, check, return. One file a stage, in the order of the data's way.

pub mod tensor;

pub mod machine;
pub mod model;

pub mod kernel_bound;
pub mod kernel_library;
pub mod kernel_object;
pub mod measured;

pub mod expanded;
pub mod finalists;
pub mod mapping;
pub mod schedule;

pub mod placement;
pub mod planned;
pub mod selected;
pub mod tile_code;

pub mod images;
pub mod package;
mod parts;
pub mod rows;

pub mod host_file;
pub mod reference;
pub mod simulation;
pub mod verdict;
