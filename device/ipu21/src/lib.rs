//! Facts about the IPU21 (Graphcore C600): tiles, routes, memory, instructions, parameters, host packets.
//!
//! One fact, one place: the tables under `data/` are read and checked by the build script or on first use; encoder, decoder,
//! simulator, cost model and documentation read the same rows. This crate knows no program, no kernel and no schedule.

pub mod csr;
pub mod data;
pub mod exchange_word;
pub mod host;
pub mod isa;
pub mod memory;
pub mod parameters;
pub mod relocation;
pub mod route;
pub mod tile;
