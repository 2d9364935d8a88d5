//! Float64 evaluation of a model graph on row-major tensors: the expectation of every verdict.
//!
//! Knows nothing of layouts, tiles or element types: tensors are matrices of `f64` in logical row-major order, and every
//! operation is written from its mathematical definition. Transcendentals come from `libm`, so the same inputs give the same
//! bits on every machine.

mod attention;
mod graph;
mod matrix;

pub use graph::{Fault, Graph, Operation, evaluate};
pub use matrix::Matrix;
