//! The application package `.ipuexe`: everything a session needs to load, call, check and read a program of the IPU21.
//!
//! In: images, bindings, calls, checkpoints and profile points of a finished program. Out: one file with a whole-file checksum,
//! the same bytes for the same package; and back, checked before any use. The crate knows no compiler, no label and no store.
//!
//! The requirements of package.md, and what is deliberately absent: per-tile lists of exchange activities (P23: rows and routes
//! say the same), output bindings with counter samples (P24: a session over the simulator watches program points instead;
//! hardware sampling needs code in the tiles) and compression (P11: identical contents are stored once, zero tails not at all).

mod binding;
mod call;
mod checkpoint;
mod debug;
mod image;
mod package;
mod profile;
mod target;

mod container;

mod check;
mod check_calls;
mod check_tensors;
mod check_tiles;
mod fault;
mod summary;

pub use binding::{Axis, Binding, Element, Group, Layout, Order, Panels, Piece, Slice};
pub use call::{Call, CallKind, CallSlice, Command, Page, Transfers};
pub use checkpoint::{Checkpoint, Tensor};
pub use container::{MAGIC, ReadFault, VERSION};
pub use debug::{Listing, Located, SourceLine, Symbol, SymbolKind, TileSet, TileSetId};
pub use fault::Fault;
pub use image::{Access, BlobId, Blobs, Segment, Tile};
pub use package::{ConfigurationWrite, Package};
pub use profile::{Point, Profile, Step, StepKind};
pub use summary::{Summary, SummaryBinding, SummaryCall, SummaryStep};
pub use target::{Digest, Target};
