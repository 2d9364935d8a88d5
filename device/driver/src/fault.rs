//! Why a session stopped, with places named by the package's symbols.

use std::fmt;

use ipu21::tile::PhysTile;
use package::Package;
use simulator::{LoadFault, ReadFault, Waiting};

/// A program counter in words of the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Kernel, row or program: `gemm{cg=5,rows=12}`, `row 3`.
    pub symbol: String,
    /// Byte offset in it.
    pub offset: u32,
    /// Source file and line, where there is source.
    pub source: Option<(String, u32)>,
}

impl Named {
    /// The name of a place of a tile.
    pub(crate) fn find(package: &Package, tile: PhysTile, pc: u32) -> Option<Self> {
        let located = package.locate(tile, pc)?;
        let source = located.listing.zip(located.line).map(|(listing, line)| (listing.source.clone(), line));
        Some(Self { symbol: located.symbol.name.clone(), offset: located.offset, source })
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:#x}", self.symbol, self.offset)?;
        match &self.source {
            Some((file, line)) => write!(f, " ({file}:{line})"),
            None => Ok(()),
        }
    }
}

/// Why a session cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionFault {
    /// The package breaks rules; nothing was loaded.
    Package {
        /// Every rule that does not hold.
        faults: Vec<package::Fault>,
    },
    /// An image cannot be loaded.
    Load {
        /// The tile.
        tile: PhysTile,
        /// Why.
        cause: LoadFault,
    },
    /// The package has no such call.
    NoCall {
        /// Its name.
        call: String,
    },
    /// A call was made more often than the package allows.
    CallSpent {
        /// Its name.
        call: String,
    },
    /// A tensor that the call sends was not given.
    NoFile {
        /// The call.
        call: String,
        /// The binding.
        binding: String,
    },
    /// A tensor was given that the call does not send.
    UnknownFile {
        /// The call.
        call: String,
        /// The name given.
        binding: String,
    },
    /// A host file has the wrong size.
    FileSize {
        /// The binding.
        binding: String,
        /// Bytes expected.
        expected: u64,
        /// Bytes given.
        found: u64,
    },
    /// A tile failed.
    Tile {
        /// Where and why.
        fault: Box<simulator::Fault>,
        /// The place in the sources.
        place: Option<Named>,
    },
    /// Nobody can move.
    Stuck {
        /// One tile for each kind of waiting, with its place.
        waiting: Vec<(Waiting, Option<Named>)>,
    },
    /// A tile's clock passed the limit.
    ClockLimit {
        /// The tile.
        tile: PhysTile,
        /// The limit.
        clocks: u64,
    },
    /// Whoever was in charge of the chip gave the run up.
    GivenUp,
    /// The program stands elsewhere than the call expects.
    OutOfStep {
        /// The call.
        call: String,
        /// What the host expected.
        expected: &'static str,
        /// What the tiles do.
        found: &'static str,
        /// Whether the call that sends the weights was made.
        initialized: bool,
    },
    /// The tiles stand at another trap than the next checkpoint's.
    WrongTrap {
        /// Operand of the trap.
        found: u32,
        /// The checkpoint that comes next, with its trap.
        expected: Option<(String, u32)>,
    },
    /// A tensor cannot be read at a checkpoint.
    Read {
        /// The checkpoint.
        checkpoint: String,
        /// The tensor.
        tensor: String,
        /// The tile.
        tile: PhysTile,
        /// Why.
        cause: ReadFault,
    },
    /// A tile ended without its completion word.
    Incomplete {
        /// The tile.
        tile: PhysTile,
    },
}

impl fmt::Display for SessionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Package { faults } => {
                let first = faults.first().map(ToString::to_string).unwrap_or_default();
                write!(f, "the package breaks {} rules, the first: {first}", faults.len())
            }
            Self::Load { tile, cause } => write!(f, "tile {tile}: {cause}"),
            Self::NoCall { call } => write!(f, "the package has no call {call}"),
            Self::CallSpent { call } => write!(f, "call {call} was already made; load the package again"),
            Self::NoFile { call, binding } => write!(f, "call {call}: tensor {binding} was not given"),
            Self::UnknownFile { call, binding } => write!(f, "call {call}: tensor {binding} was given but is not sent"),
            Self::FileSize { binding, expected, found } => write!(f, "host file of {binding}: expected {expected} bytes, found {found}"),
            Self::Tile { fault, place } => {
                write!(f, "{fault}")?;
                place.as_ref().map_or(Ok(()), |place| write!(f, ", in {place}"))
            }
            Self::Stuck { waiting } => {
                f.write_str("no tile can move")?;
                waiting.iter().try_for_each(|(waiting, place)| {
                    write!(f, "; tile {} at clock {}: {}", waiting.tile, waiting.clock, waiting.what)?;
                    place.as_ref().map_or(Ok(()), |place| write!(f, ", in {place}"))
                })
            }
            Self::ClockLimit { tile, clocks } => write!(f, "tile {tile} passed the limit of {clocks} clocks"),
            Self::GivenUp => f.write_str("the run was given up"),
            Self::OutOfStep { call, expected, found, initialized } => {
                write!(f, "call {call}: expected the tiles {expected}, found them {found}")?;
                if *initialized { Ok(()) } else { f.write_str("; the call that sends the weights was not made") }
            }
            Self::WrongTrap { found, expected: Some((name, trap)) } => {
                write!(f, "the tiles stopped at trap {found}; the next checkpoint {name} has trap {trap}")
            }
            Self::WrongTrap { found, expected: None } => write!(f, "the tiles stopped at trap {found} behind the last checkpoint"),
            Self::Read { checkpoint, tensor, tile, cause } => {
                write!(f, "checkpoint {checkpoint}: tensor {tensor} on tile {tile}: {cause}")
            }
            Self::Incomplete { tile } => write!(f, "tile {tile} ended without its completion word"),
        }
    }
}

impl std::error::Error for SessionFault {}
