//! The stage queries.
pub mod tensor;
