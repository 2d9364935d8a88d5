//! Executes IPU21 tile images alone, instruction by instruction: 1472 tiles, their barriers, the exchange fabric and the host port.
//!
//! In: memory segments of tiles, host pages and barrier credits. Out: memory, clocks, stops and faults. The timing follows
//! isa-notes 3 and `parameters.toml`; the exchange follows machine.md c.11. The simulator knows no plan, no schedule and no
//! symbol, reads no clock and no environment, and its results do not depend on the number of threads.

mod fault;

mod arithmetic;
mod float_format;
mod memory;
mod operation;

mod choice;
mod code;
mod coefficients;
mod context;
mod crew;
mod exchange;
mod function_table;
mod lanes;
mod load_store;
mod matrix_unit;
mod pace;
mod plain;
mod products;
mod register_file;
mod supervisor;
mod transcendental;
mod vector_unit;
mod worker;

mod barrier;
mod image;
mod tile;

mod chip;
mod fabric;
mod host_port;

pub mod debug;

mod single_tile;

pub use barrier::{Latency, empty_phase_instructions};
pub use chip::{Chip, ChipOptions, Counters, Stop, Waiting, WatchHit};
pub use exchange::{Message, Way};
pub use fault::{Access, Cause, Context, Fault, PairRule, Place, ReceiveError};
pub use image::{LoadFault, Segment};
pub use memory::ReadFault;
pub use single_tile::{CallMeasurement, SingleTile, measure_call};
