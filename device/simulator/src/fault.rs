//! What can go wrong on a tile, with the numbers needed to act on it (machine.md b.2, c.11, d.3, f.10).

use std::fmt;

use ipu21::tile::PhysTile;

/// One of the seven contexts of a tile (machine.md a.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// The supervisor.
    Supervisor,
    /// Worker 0..5.
    Worker(u8),
}

/// What kind of access touched memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load instruction.
    Load,
    /// A store instruction.
    Store,
    /// An instruction fetch.
    Fetch,
    /// A read of the send engine.
    Send,
    /// A write of the receive engine.
    Receive,
    /// A write of a host reply.
    Host,
}

/// A place that can hold poison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Memory, byte address.
    Memory(u32),
    /// `$m` register number.
    Main(u8),
    /// `$a` register number.
    Aux(u8),
    /// `$AACC` number, 0..31.
    Accumulator(u8),
    /// A coefficient set, 0 or 1 (CWEI entries 0..31 or 32..63), with its first unwritten entry.
    Coefficients {
        /// First unwritten 64-bit entry.
        entry: u8,
    },
    /// The scale register `$TAS`.
    Scale,
}

/// Receive errors of machine.md f.10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveError {
    /// 1: clash with an instruction's data access (a load, a store or a send read).
    ClashData,
    /// 2: clash with an instruction fetch.
    ClashFetch,
    /// 3: address outside memory.
    Address,
    /// 4: a worker was active.
    WorkersActive,
}

/// The rules of 64-bit pair mode that rows can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairRule {
    /// The member of the receiving pair that hears the source later selected it.
    LateMember,
    /// Both members of the pair select.
    TwoSelections,
    /// FORMAT is not the direction the items come from.
    Format,
    /// A 32-bit receiver listens to 64-bit items, or the other way round.
    Width,
    /// The partner of the sending tile sends or stores meanwhile.
    PartnerBusy,
    /// The address is no multiple of 8.
    Unaligned,
    /// The pair's source and the other stream's control change at one event.
    Coincident,
}

impl fmt::Display for PairRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PairRule::LateMember => "the member that hears the source later selects it",
            PairRule::TwoSelections => "both members of the pair select",
            PairRule::Format => "the format is not the direction of the items",
            PairRule::Width => "the format is not the width of the items",
            PairRule::PartnerBusy => "the partner of the sending tile uses the exchange",
            PairRule::Unaligned => "the address is no multiple of 8",
            PairRule::Coincident => "the pair's source and another control change at one event",
        })
    }
}

/// Why a tile stopped. Every variant carries what is needed to find the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An access outside 0x4c000..0xe8000.
    AddressOutside {
        /// Byte address.
        address: u32,
        /// What touched it.
        access: Access,
    },
    /// An access that is not naturally aligned.
    Misaligned {
        /// Byte address.
        address: u32,
        /// Required alignment in bytes.
        alignment: u32,
        /// What touched it.
        access: Access,
    },
    /// A 128-bit load outside region 1.
    NotInterleaved {
        /// Byte address.
        address: u32,
    },
    /// Two accesses of one instruction to one memory element (machine.md b.2 case 5).
    AccessClash {
        /// Byte address of the first access.
        first: u32,
        /// Byte address of the second access.
        second: u32,
    },
    /// Execution outside region 0, or at an address that is not a multiple of 4.
    BadProgramCounter {
        /// The address.
        address: u32,
    },
    /// No form has this word.
    IllegalInstruction {
        /// The word.
        word: u32,
    },
    /// An instruction that the context may not execute.
    WrongMode {
        /// Its id in isa.toml.
        form: &'static str,
    },
    /// A coissued word without a legal partner.
    IllegalBundle {
        /// The main-lane word.
        word: u32,
        /// Which rule it breaks.
        rule: &'static str,
    },
    /// A solo, control or system instruction inside a repeat body, or a misaligned body.
    IllegalRepeat {
        /// Which rule it breaks.
        rule: &'static str,
    },
    /// Both destinations of an instruction are the same register.
    SameDestination {
        /// Its id in isa.toml.
        form: &'static str,
    },
    /// A form, immediate or control register whose meaning is not public or not simulated.
    NotSimulated {
        /// Its id in isa.toml, or a register's name.
        form: &'static str,
        /// The immediate or value, 0 if none matters.
        value: u32,
    },
    /// An instruction word that nobody wrote was executed.
    PoisonExecuted {
        /// Byte address.
        address: u32,
    },
    /// A register that nobody wrote was stored.
    PoisonStored {
        /// The register.
        from: Place,
        /// Byte address of the store.
        address: u32,
    },
    /// A memory word that nobody wrote was sent.
    PoisonSent {
        /// Byte address.
        address: u32,
    },
    /// A value that nobody wrote was computed with, branched on, or used as an address.
    PoisonUsed {
        /// Where it lies.
        place: Place,
        /// What used it: a form's id.
        form: &'static str,
    },
    /// A floating-point exception enabled in `$FP_CTL`.
    FloatingPoint {
        /// Flags raised: bit 0 INV, 1 DIV0, 2 OFLO.
        flags: u32,
    },
    /// A worker's `trap`: exception PBRK0 for even numbers, PBRK1 for odd ones (isa-notes 7).
    Breakpoint {
        /// Immediate of the trap.
        number: u32,
    },
    /// A measured call stood still before its return.
    CallDidNotReturn {
        /// What the supervisor stands at.
        state: String,
    },
    /// A measured call went on for longer than any kernel may: most likely it loops for ever.
    CallTooLong {
        /// Clocks that a call may take.
        limit: u64,
    },
    /// `runall` or `run` while the needed workers are active.
    WorkersBusy,
    /// A send read met an instruction fetch in one conflict unit (machine.md b.2 case 1, exception CONFLICT).
    SendFetchConflict {
        /// Byte address of the send read.
        address: u32,
        /// Event of the phase.
        event: i64,
    },
    /// An incoming write failed.
    Receive {
        /// The receive error.
        error: ReceiveError,
        /// Byte address of the write.
        address: u32,
        /// Event of the phase.
        event: i64,
    },
    /// The selected source sent nothing at that event, and the receiver stored it.
    NothingSent {
        /// The selected source, physical id.
        source: u32,
        /// Event of the receiver at which the item would be stored.
        event: i64,
        /// Byte address of the store.
        address: u32,
    },
    /// An item was stored before any pointer was set.
    NoPointer {
        /// Event of the receiver.
        event: i64,
    },
    /// A source-select value that names neither a tile, neutral nor a host port.
    InvalidMux {
        /// The value.
        value: u32,
    },
    /// An internal barrier with an external source selected (machine.md d.3).
    InternalSyncWithExternalMux {
        /// INCOMING_MUX.
        mux: u32,
    },
    /// A host barrier without the host port selected (machine.md d.3).
    ExternalSyncWithInternalMux {
        /// INCOMING_MUX.
        mux: u32,
    },
    /// The host port of another group is selected.
    ExternalMuxOutOfRange {
        /// INCOMING_MUX.
        mux: u32,
        /// The port of this tile's group.
        expected: u32,
    },
    /// Paired 64-bit misuse: a rule of pair mode is broken (machine.md c.7).
    PairMisuse {
        /// Event on this tile's counter.
        event: i64,
        /// Which rule.
        rule: PairRule,
    },
    /// `sync` of a zone that there is not.
    InvalidSyncZone {
        /// The zone.
        zone: u32,
    },
    /// A real barrier while announced ones are outstanding (SYNC_ANS_ACTIVE).
    SyncWhileAnnounced {
        /// Announced barriers outstanding.
        credits: u32,
    },
    /// More than 2^19 - 1 announced barriers (ANS_WOULD_OVERFLOW).
    AnnounceOverflow {
        /// The credits asked for.
        credits: u64,
    },
    /// More words arrived than INCOMING_DCOUNT allows (message count too great).
    CountTooGreat {
        /// Words expected.
        expected: u32,
        /// Words arrived.
        arrived: u32,
    },
    /// A packet to the host port that cannot be understood.
    HostPacket {
        /// Word 0 of its header.
        word0: u32,
        /// Word 1 of its header.
        word1: u32,
        /// Which rule it breaks.
        rule: &'static str,
    },
    /// A host packet touches bytes behind the attached pages.
    HostOffsetOutside {
        /// Flat host offset.
        offset: u64,
        /// Bytes of the packet.
        bytes: u32,
    },
    /// A tile sent packets although its group's owner did not announce it (XREQ, machine.md e.4).
    NotAnnounced,
    /// A tile was announced for the host phase but did not finish a stream.
    AnnouncedWithoutStream,
    /// A packet was incomplete when the host phase closed.
    PacketIncomplete {
        /// Words seen.
        words: u32,
    },
}

/// Where and when a tile failed, and why. Kernel and source line are added by whoever knows the symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The tile.
    pub tile: PhysTile,
    /// The context that failed.
    pub context: Context,
    /// Program counter of the failing instruction.
    pub pc: u32,
    /// Tile clock.
    pub clock: u64,
    /// Why.
    pub cause: Cause,
}

impl std::error::Error for Fault {}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Context::Supervisor => write!(f, "supervisor"),
            Context::Worker(number) => write!(f, "worker {number}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Memory(address) => write!(f, "memory {address:#x}"),
            Place::Main(register) => write!(f, "$m{register}"),
            Place::Aux(register) => write!(f, "$a{register}"),
            Place::Accumulator(number) => write!(f, "$AACC[{number}]"),
            Place::Coefficients { entry } => write!(f, "$CWEI[{entry}]"),
            Place::Scale => write!(f, "$TAS"),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Load => "load",
            Access::Store => "store",
            Access::Fetch => "fetch",
            Access::Send => "send",
            Access::Receive => "incoming write",
            Access::Host => "host reply",
        })
    }
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReceiveError::ClashData => "1, clash with a data access",
            ReceiveError::ClashFetch => "2, clash with an instruction fetch",
            ReceiveError::Address => "3, address outside memory",
            ReceiveError::WorkersActive => "4, workers active",
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::AddressOutside { address, access } => write!(f, "{access} at {address:#x} is outside tile memory"),
            Cause::Misaligned { address, alignment, access } => {
                write!(f, "{access} at {address:#x} is not a multiple of {alignment}")
            }
            Cause::NotInterleaved { address } => write!(f, "128-bit load at {address:#x} is outside the interleaved region"),
            Cause::AccessClash { first, second } => {
                write!(f, "accesses of one instruction at {first:#x} and {second:#x} meet in one memory element")
            }
            Cause::BadProgramCounter { address } => write!(f, "program counter {address:#x} is not executable"),
            Cause::IllegalInstruction { word } => write!(f, "illegal instruction {word:#010x}"),
            Cause::WrongMode { form } => write!(f, "{form} cannot be executed by this context"),
            Cause::IllegalBundle { word, rule } => write!(f, "illegal bundle at word {word:#010x}: {rule}"),
            Cause::IllegalRepeat { rule } => write!(f, "illegal repeat: {rule}"),
            Cause::SameDestination { form } => write!(f, "both destinations of {form} are the same"),
            Cause::NotSimulated { form, value } => write!(f, "{form} with {value:#x} is not simulated"),
            Cause::PoisonExecuted { address } => write!(f, "executed {address:#x}, which nobody wrote"),
            Cause::PoisonStored { from, address } => write!(f, "stored {from}, which nobody wrote, to {address:#x}"),
            Cause::PoisonSent { address } => write!(f, "sent memory {address:#x}, which nobody wrote"),
            Cause::PoisonUsed { place, form } => write!(f, "{form} used {place}, which nobody wrote"),
            Cause::FloatingPoint { flags } => write!(f, "floating-point exception, flags {flags:#x}"),
            Cause::Breakpoint { number } => write!(f, "breakpoint, trap {number}"),
            Cause::CallDidNotReturn { state } => write!(f, "the call did not return: {state}"),
            Cause::CallTooLong { limit } => {
                write!(f, "the call did not return in {limit} clocks, the limit of one call; does it loop for ever?")
            }
            Cause::WorkersBusy => write!(f, "workers launched while active"),
            Cause::SendFetchConflict { address, event } => {
                write!(f, "send read of {address:#x} meets the instruction fetch in one unit at event {event}")
            }
            Cause::Receive { error, address, event } => {
                write!(f, "receive error {error}, address {address:#x}, event {event}")
            }
            Cause::NothingSent { source, event, address } => {
                write!(f, "stored to {address:#x} at event {event} what tile {source} did not send")
            }
            Cause::NoPointer { event } => write!(f, "an item arrived at event {event} before any pointer was set"),
            Cause::InvalidMux { value } => write!(f, "invalid source select {value:#x}"),
            Cause::InternalSyncWithExternalMux { mux } => write!(f, "internal sync with external source {mux:#x} selected"),
            Cause::ExternalSyncWithInternalMux { mux } => write!(f, "external sync with internal source {mux:#x} selected"),
            Cause::ExternalMuxOutOfRange { mux, expected } => {
                write!(f, "external source {mux:#x} selected, this tile's port is {expected:#x}")
            }
            Cause::PairMisuse { event, rule } => write!(f, "paired 64-bit misuse at event {event}: {rule}"),
            Cause::InvalidSyncZone { zone } => write!(f, "there is no sync zone {zone}"),
            Cause::SyncWhileAnnounced { credits } => write!(f, "sync while {credits} announced barriers are outstanding"),
            Cause::AnnounceOverflow { credits } => write!(f, "{credits} announced barriers overflow the counter"),
            Cause::CountTooGreat { expected, arrived } => {
                write!(f, "{arrived} words arrived where INCOMING_DCOUNT allows {expected}")
            }
            Cause::HostPacket { word0, word1, rule } => write!(f, "host packet {word0:#010x} {word1:#010x}: {rule}"),
            Cause::HostOffsetOutside { offset, bytes } => {
                write!(f, "host packet of {bytes} bytes at offset {offset:#x} is outside the attached pages")
            }
            Cause::NotAnnounced => write!(f, "host packets of a tile that no XREQ announced"),
            Cause::AnnouncedWithoutStream => write!(f, "announced by XREQ, but no host stream was finished"),
            Cause::PacketIncomplete { words } => write!(f, "host packet incomplete after {words} words"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tile {}, {}, pc {:#x}, clock {}: {}", self.tile, self.context, self.pc, self.clock, self.cause)
    }
}

/// Result of one step inside a context; the box keeps the good path small.
pub(crate) type Step<T = ()> = Result<T, Box<Cause>>;

/// Shorthand of `Err(Box::new(cause))`.
#[cold]
pub(crate) fn fail<T>(cause: Cause) -> Step<T> {
    Err(Box::new(cause))
}
