//! Every kernel on one simulated tile, against its definition in f64.
//!
//! Memory that a test did not write is poison: multiplying or storing it faults, and what a kernel must not touch is poison afterwards.
//! `cargo bench -p kernels` prints the clocks that are asserted here.

mod bench;
mod matrix;

mod attention;
mod bias;
mod copies;
mod cycle_model;
mod figures;
mod library;
mod product;
mod rearrange;
