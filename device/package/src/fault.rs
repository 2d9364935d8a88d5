//! What can be wrong with the contents of a package; every variant carries the numbers needed to act on it.

use std::fmt;

use ipu21::tile::PhysTile;

/// A rule of package.md that does not hold. The number in brackets names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Built for another chip (P2).
    Target {
        /// Which fact.
        what: &'static str,
        /// This chip's.
        expected: String,
        /// The package's.
        found: String,
    },
    /// Built with another numbering of tiles (P3).
    TileTable,
    /// Not one record for each tile (P6).
    TileCount {
        /// Tiles of the chip.
        expected: u32,
        /// Records.
        found: u64,
    },
    /// Records are not ascending, or a tile has two (P6).
    TileOrder {
        /// The earlier record.
        previous: PhysTile,
        /// The later record.
        tile: PhysTile,
    },
    /// The loader starts tiles elsewhere (P7).
    Entry {
        /// The tile.
        tile: PhysTile,
        /// Where the loader starts it.
        expected: u32,
        /// The record's.
        found: u32,
    },
    /// A segment names contents that are not there (P8).
    NoBlob {
        /// The tile.
        tile: PhysTile,
        /// The segment's first byte.
        address: u32,
        /// Contents asked for.
        blob: u32,
    },
    /// More contents than memory (P8).
    DataSize {
        /// The tile.
        tile: PhysTile,
        /// The segment's first byte.
        address: u32,
        /// Bytes of contents.
        data_bytes: u64,
        /// Bytes of the segment.
        memory_bytes: u32,
    },
    /// A segment does not start at a word (P8).
    Alignment {
        /// The tile.
        tile: PhysTile,
        /// The segment's first byte.
        address: u32,
    },
    /// The lowest segment does not start where the loader begins (P8).
    LowestSegment {
        /// The tile.
        tile: PhysTile,
        /// Where the loader begins.
        expected: u32,
        /// First byte of the lowest segment, if there is one.
        found: Option<u32>,
    },
    /// Two segments overlap or are not ascending (P8).
    SegmentOverlap {
        /// The tile.
        tile: PhysTile,
        /// First byte of the earlier.
        first: u32,
        /// One past its last byte.
        first_end: u32,
        /// First byte of the later.
        second: u32,
    },
    /// A segment reaches past what the loader can fill (P8, P9).
    BeyondLoadable {
        /// The tile.
        tile: PhysTile,
        /// The segment's first byte.
        address: u32,
        /// One past its last byte.
        end: u64,
        /// One past the last loadable byte.
        limit: u32,
    },
    /// Code in memory that cannot be executed (P8).
    Execute {
        /// The tile.
        tile: PhysTile,
        /// The segment's first byte.
        address: u32,
        /// One past its last byte.
        end: u32,
        /// One past the last executable byte.
        limit: u32,
    },
    /// A segment lies in the host window without saying so (9).
    HostWindow {
        /// The tile.
        tile: PhysTile,
        /// The segment's first byte.
        address: u32,
        /// Its size.
        bytes: u32,
        /// The window.
        window: (u32, u32),
    },
    /// The completion word is not a word of tile memory (P10).
    Completion {
        /// The tile.
        tile: PhysTile,
        /// Its address.
        address: u32,
    },
    /// Contents stored twice (P11).
    RepeatedBlob {
        /// The earlier.
        first: u32,
        /// The later.
        second: u32,
    },
    /// Contents with zeros at the end (P11).
    ZeroTail {
        /// Which.
        blob: u32,
        /// Their size.
        bytes: u64,
    },
    /// A name that is empty (P12, P18, P26).
    EmptyName {
        /// What has it.
        what: &'static str,
        /// Its number.
        index: u64,
    },
    /// Two of a kind with one name (P12, P18).
    RepeatedName {
        /// What they are.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A slice's size, address or file offset is not in words (P13, P18, P29).
    SliceUnit {
        /// Binding, call or tensor.
        owner: String,
        /// Number of the slice.
        slice: u64,
        /// Its address or page offset.
        address: u32,
        /// Its size.
        bytes: u32,
    },
    /// A slice outside tile memory (P13, P29).
    SliceMemory {
        /// Binding or tensor.
        owner: String,
        /// Number of the slice.
        slice: u64,
        /// The tile.
        tile: PhysTile,
        /// First byte.
        address: u32,
        /// Size.
        bytes: u32,
    },
    /// Slices of one tensor overlap on a tile (P13).
    SliceOverlap {
        /// Binding or tensor.
        owner: String,
        /// The tile.
        tile: PhysTile,
        /// First byte of the lower slice.
        first: u32,
        /// First byte of the slice that starts inside it.
        second: u32,
    },
    /// A slice outside its file (P13, P18).
    SliceFile {
        /// Binding, call or tensor.
        owner: String,
        /// One past the last byte of the slice.
        end: u64,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// A stretch of a file is in no slice (P13, P18).
    Uncovered {
        /// Binding, call or tensor.
        owner: String,
        /// First byte that is missing.
        file_offset: u64,
        /// Bytes that are missing.
        bytes: u64,
    },
    /// A stretch of a file is in two slices of one tile, or moved twice (P13, P18).
    CoveredTwice {
        /// Binding, call or tensor.
        owner: String,
        /// First byte that is there twice.
        file_offset: u64,
    },
    /// Shape and layout, or layout and file, do not fit together (P14).
    Layout {
        /// Binding or tensor.
        owner: String,
        /// What does not fit.
        what: &'static str,
        /// As the one says.
        expected: u64,
        /// As the other says.
        found: u64,
    },
    /// The mark after loading is not the number of loader batches (P15).
    StartMark {
        /// Batches.
        expected: u32,
        /// The package's.
        found: u32,
    },
    /// A page's size is not a positive multiple of 4096 (P16).
    PageSize {
        /// Its number.
        page: u32,
        /// Its size.
        bytes: u32,
    },
    /// Two pages with one number (P16).
    RepeatedPage {
        /// The number.
        page: u32,
    },
    /// The command word is not a word of a page (P17).
    Command {
        /// Page.
        page: u32,
        /// Offset.
        offset: u32,
    },
    /// Another number of host phases than the batches need (P18).
    Phases {
        /// The call.
        call: String,
        /// What the batches need.
        expected: u64,
        /// What the call says.
        found: u32,
    },
    /// Batch ends do not strictly increase, or do not end at the last slice (P18).
    Batches {
        /// The call.
        call: String,
        /// Number of the batch.
        batch: u64,
        /// Slices that there are, or that the previous batch ends at.
        slices: u64,
        /// The batch's end.
        end: u64,
    },
    /// A call moves a tensor that is not there or that goes the other way (P18).
    CallBinding {
        /// The call.
        call: String,
        /// Number of the binding.
        binding: u32,
    },
    /// A slice outside its page (P18).
    CallPage {
        /// The call.
        call: String,
        /// Page.
        page: u32,
        /// Offset of the slice.
        page_offset: u32,
        /// Size of the slice.
        bytes: u32,
    },
    /// Slices of one batch share bytes of a page (P20).
    PageOverlap {
        /// The call.
        call: String,
        /// Number of the batch.
        batch: u64,
        /// Page.
        page: u32,
        /// First byte that both have.
        page_offset: u32,
    },
    /// A call may never be made (P19).
    Invocations {
        /// The call.
        call: String,
    },
    /// A configuration write that must not be (P21).
    Configuration {
        /// The register.
        offset: u32,
        /// Why.
        why: &'static str,
    },
    /// The names of code parameters are not ascending.
    CodeParameters {
        /// The first name out of order.
        name: String,
    },
    /// A set of tiles is empty or not ascending (P26).
    TileSet {
        /// Its number.
        set: u32,
    },
    /// Something names what is not there (P23, P26, P29).
    NoSuch {
        /// What it is: `tile set`, `operation`, `listing`, `checkpoint`.
        what: &'static str,
        /// Who names it.
        owner: String,
        /// The number.
        index: u32,
    },
    /// A symbol outside tile memory (P26, P28).
    SymbolMemory {
        /// The symbol.
        symbol: String,
        /// First byte.
        address: u32,
        /// Size.
        bytes: u32,
    },
    /// Code, a row or a program point outside executable segments (9, P27).
    NotExecutable {
        /// Symbol, step or checkpoint.
        owner: String,
        /// The tile.
        tile: PhysTile,
        /// First byte.
        address: u32,
        /// Size.
        bytes: u32,
    },
    /// A tile stands in two points of one step or checkpoint, or in none of a checkpoint (P29).
    Points {
        /// Step or checkpoint.
        owner: String,
        /// The tile.
        tile: PhysTile,
        /// Points that name it.
        found: u32,
    },
    /// Traps do not alternate from 0 (P29).
    TrapNumber {
        /// Name of the checkpoint.
        checkpoint: String,
        /// Its turn.
        expected: u32,
        /// The package's.
        found: u32,
    },
    /// The word to restore, or the word in the image, is not the trap (P30).
    TrapWord {
        /// Name of the checkpoint.
        checkpoint: String,
        /// The tile, or none for the record itself.
        tile: Option<PhysTile>,
        /// The trap.
        expected: u32,
        /// What is there.
        found: Option<u32>,
    },
    /// The word to go on with is not `nop` (P30).
    ResumeWord {
        /// Name of the checkpoint.
        checkpoint: String,
        /// `nop`.
        expected: u32,
        /// The package's.
        found: u32,
    },
}

impl fmt::Display for Fault {
    #[allow(clippy::too_many_lines, reason = "one line for each rule")]
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target { what, expected, found } => write!(out, "built for {what} {found}, this chip has {expected}"),
            Self::TileTable => write!(out, "built with another logical-to-physical tile table than this board's"),
            Self::TileCount { expected, found } => write!(out, "{found} tile records, expected {expected}"),
            Self::TileOrder { previous, tile } => write!(out, "tile {tile} follows tile {previous}: records must ascend"),
            Self::Entry { tile, expected, found } => write!(out, "tile {tile}: entry {found:#x}, the loader starts at {expected:#x}"),
            Self::NoBlob { tile, address, blob } => {
                write!(out, "tile {tile}: the segment at {address:#x} names contents {blob}, which are not there")
            }
            Self::DataSize { tile, address, data_bytes, memory_bytes } => {
                write!(out, "tile {tile}: the segment at {address:#x} has {data_bytes} bytes of contents in {memory_bytes} bytes of memory")
            }
            Self::Alignment { tile, address } => write!(out, "tile {tile}: the segment at {address:#x} does not start at a multiple of 4"),
            Self::LowestSegment { tile, expected, found: Some(found) } => {
                write!(out, "tile {tile}: the lowest segment starts at {found:#x}, expected {expected:#x}")
            }
            Self::LowestSegment { tile, expected, found: None } => write!(out, "tile {tile}: no segment, expected one at {expected:#x}"),
            Self::SegmentOverlap { tile, first, first_end, second } => {
                write!(out, "tile {tile}: the segment at {second:#x} starts before the end {first_end:#x} of the one at {first:#x}")
            }
            Self::BeyondLoadable { tile, address, end, limit } => {
                write!(out, "tile {tile}: the segment at {address:#x} ends at {end:#x}, the loader fills memory up to {limit:#x}")
            }
            Self::Execute { tile, address, end, limit } => {
                write!(out, "tile {tile}: the code at {address:#x}..{end:#x} leaves executable memory, which ends at {limit:#x}")
            }
            Self::HostWindow { tile, address, bytes, window: (start, end) } => {
                write!(out, "tile {tile}: the segment of {bytes} bytes at {address:#x} lies in the host window {start:#x}..{end:#x}")
            }
            Self::Completion { tile, address } => write!(out, "tile {tile}: the completion word {address:#x} is not a word of tile memory"),
            Self::RepeatedBlob { first, second } => write!(out, "contents {first} and {second} are equal and must be stored once"),
            Self::ZeroTail { blob, bytes } => write!(out, "contents {blob} of {bytes} bytes end with zeros, which must not be stored"),
            Self::EmptyName { what, index } => write!(out, "{what} {index} has no name"),
            Self::RepeatedName { what, name } => write!(out, "two {what}s are named {name}"),
            Self::SliceUnit { owner, slice, address, bytes } => {
                write!(out, "{owner}: slice {slice} ({bytes} bytes at {address:#x}) is empty or not in multiples of 4")
            }
            Self::SliceMemory { owner, slice, tile, address, bytes } => {
                write!(out, "{owner}: slice {slice}, {bytes} bytes at {address:#x} of tile {tile}, leaves tile memory")
            }
            Self::SliceOverlap { owner, tile, first, second } => {
                write!(out, "{owner}: the slices at {first:#x} and {second:#x} of tile {tile} overlap")
            }
            Self::SliceFile { owner, end, file_bytes } => write!(out, "{owner}: a slice ends at byte {end} of a file of {file_bytes}"),
            Self::Uncovered { owner, file_offset, bytes } => {
                write!(out, "{owner}: {bytes} bytes of the file from {file_offset} on are in no slice")
            }
            Self::CoveredTwice { owner, file_offset } => write!(out, "{owner}: byte {file_offset} of the file is in two slices"),
            Self::Layout { owner, what, expected, found } => write!(out, "{owner}: {what}: expected {expected}, found {found}"),
            Self::StartMark { expected, found } => write!(out, "start mark {found}, the tiles are loaded in {expected} batches"),
            Self::PageSize { page, bytes } => write!(out, "page {page} has {bytes} bytes, expected a positive multiple of 4096"),
            Self::RepeatedPage { page } => write!(out, "page {page} is listed twice"),
            Self::Command { page, offset } => write!(out, "the command word at byte {offset} of page {page} is not a word of a page"),
            Self::Phases { call, expected, found } => write!(out, "call {call}: {found} host phases, its batches need {expected}"),
            Self::Batches { call, batch, slices, end } => {
                write!(out, "call {call}: batch {batch} ends at slice {end}, which does not fit its neighbours ({slices})")
            }
            Self::CallBinding { call, binding } => write!(out, "call {call}: it cannot move binding {binding}"),
            Self::CallPage { call, page, page_offset, bytes } => {
                write!(out, "call {call}: {bytes} bytes at {page_offset} leave page {page} or there is no such page")
            }
            Self::PageOverlap { call, batch, page, page_offset } => {
                write!(out, "call {call}: two slices of batch {batch} have byte {page_offset} of page {page}")
            }
            Self::Invocations { call } => write!(out, "call {call}: it may be called 0 times"),
            Self::Configuration { offset, why } => write!(out, "configuration write to {offset:#x}: {why}"),
            Self::CodeParameters { name } => write!(out, "code parameter {name:?} is empty, repeated or out of order"),
            Self::TileSet { set } => write!(out, "tile set {set} is empty or not ascending"),
            Self::NoSuch { what, owner, index } => write!(out, "{owner}: there is no {what} {index}"),
            Self::SymbolMemory { symbol, address, bytes } => {
                write!(out, "symbol {symbol}: {bytes} bytes at {address:#x} leave tile memory")
            }
            Self::NotExecutable { owner, tile, address, bytes } => {
                write!(out, "{owner}: {bytes} bytes at {address:#x} of tile {tile} are not in an executable segment")
            }
            Self::Points { owner, tile, found } => write!(out, "{owner}: {found} program points name tile {tile}"),
            Self::TrapNumber { checkpoint, expected, found } => {
                write!(out, "checkpoint {checkpoint}: trap {found}, traps must alternate and {expected} is due")
            }
            Self::TrapWord { checkpoint, tile, expected, found } => {
                write!(out, "checkpoint {checkpoint}: expected the trap word {expected:#010x}")?;
                if let Some(tile) = tile {
                    write!(out, " on tile {tile}")?;
                }
                match found {
                    Some(found) => write!(out, ", found {found:#010x}"),
                    None => write!(out, ", found nothing"),
                }
            }
            Self::ResumeWord { checkpoint, expected, found } => {
                write!(out, "checkpoint {checkpoint}: resumes with {found:#010x}, expected nop {expected:#010x}")
            }
        }
    }
}

impl std::error::Error for Fault {}
