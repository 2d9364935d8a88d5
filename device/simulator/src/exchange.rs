//! What one tile does on the exchange fabric, by its own event counter (machine.md c.11).
//!
//! Event 0 is the first instruction of a row entered by a `call` right after the release. A tile only records here; `fabric`
//! moves the words when every tile waits.

use std::sync::Arc;

use ipu21::exchange_word::NEUTRAL;
use ipu21::memory::UnitSet;
use ipu21::tile::PhysTile;

/// Items sent back to back from one stretch of memory.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    /// Event of the first item.
    pub(crate) event: i64,
    /// Items, one an event.
    pub(crate) items: u32,
    /// Bytes of an item: 4, or 8 in pair mode.
    pub(crate) width: u32,
    /// Byte address of the first item.
    pub(crate) address: u32,
    /// Direction bits.
    pub(crate) control: u32,
    /// The words, once read.
    pub(crate) words: Option<Arc<[u32]>>,
}

/// Words that a tile sent or stored back to back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Clock of the first word.
    pub clock: u64,
    /// Words, one a clock, or two in 64-bit pair mode.
    pub words: u32,
    /// Byte address of the first word.
    pub address: u32,
    /// The way it went.
    pub way: Way,
}

/// The way of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Sent.
    Sent {
        /// Bit 0 East, bit 1 West.
        directions: u32,
    },
    /// Received.
    Received {
        /// Who sent it.
        source: PhysTile,
    },
}

/// The exchange state and log of one tile.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// Clock of event 0.
    pub(crate) origin: u64,
    /// Selected source (INCOMING_MUX).
    pub(crate) mux: u32,
    /// Next incoming byte address, relative to INCOMING_BASE.
    pub(crate) pointer: Option<u32>,
    /// Next outgoing byte address.
    pub(crate) outgoing: u32,
    /// Direction bits of the running stream.
    pub(crate) control: u32,
    /// Sends since the release, in order of events.
    pub(crate) sendings: Vec<Sending>,
    /// Source selections not yet consumed, in order of events; the first may be older than `consumed`.
    pub(crate) selects: Vec<(i64, u32)>,
    /// Selections of the pair's 64-bit source, in order of events (INCOMING_MUXPAIR).
    pub(crate) pair_selects: Vec<(i64, u32)>,
    /// Changes of the incoming format, in order of events (INCOMING_FORMAT): 0 32-bit, 1 and 2 64-bit by direction.
    pub(crate) formats: Vec<(i64, u32)>,
    /// First event whose format was not looked at yet.
    pub(crate) formed: i64,
    /// Pointer settings not yet consumed, in order of events.
    pub(crate) pointers: Vec<(i64, u32)>,
    /// Units of instruction fetch from an event on.
    pub(crate) fetches: Vec<(i64, UnitSet)>,
    /// Units of the supervisor's data accesses while words were on their way, by event.
    pub(crate) accesses: Vec<(i64, UnitSet)>,
    /// First event whose seen item was not handled yet.
    pub(crate) consumed: i64,
    /// Records were added since the last resolution.
    pub(crate) unresolved: bool,
    /// Items were seen but not stored at the last resolution.
    pub(crate) in_flight: bool,
    /// An internal phase is open: controls are recorded.
    pub(crate) open: bool,
    /// Fetches are recorded: the row may still run.
    pub(crate) logging: bool,
    /// All messages, while a debugger asks for them.
    pub(crate) messages: Option<Vec<Message>>,
}

impl Exchange {
    /// Nothing selected, nothing sent.
    pub(crate) fn new() -> Exchange {
        Exchange {
            origin: 0,
            mux: NEUTRAL,
            pointer: None,
            outgoing: 0,
            control: 0,
            sendings: Vec::new(),
            selects: Vec::new(),
            pair_selects: Vec::new(),
            formats: Vec::new(),
            formed: 0,
            pointers: Vec::new(),
            fetches: Vec::new(),
            accesses: Vec::new(),
            consumed: 0,
            unresolved: false,
            in_flight: false,
            open: false,
            logging: false,
            messages: None,
        }
    }

    /// Notes a message whose first word went at an event.
    pub(crate) fn note(&mut self, event: i64, words: u32, address: u32, way: Way) {
        if let Some(messages) = &mut self.messages {
            let clock = (self.origin as i64 + event).max(0) as u64;
            messages.push(Message { clock, words, address, way });
        }
    }

    /// Opens the phase behind a barrier: `origin` is the clock of event 0, which may lie ahead.
    pub(crate) fn release(&mut self, origin: u64, internal: bool) {
        self.origin = origin;
        self.sendings.clear();
        self.selects.clear();
        self.pointers.clear();
        self.fetches.clear();
        self.accesses.clear();
        self.consumed = i64::MIN / 4;
        self.formed = i64::MIN / 4;
        // What was selected stays; the origin is another.
        for (kept, idle) in [(&mut self.pair_selects, NEUTRAL), (&mut self.formats, 0)] {
            let last = kept.pop().filter(|&(_, value)| value != idle);
            kept.clear();
            kept.extend(last.map(|(_, value)| (0, value)));
        }
        self.unresolved = false;
        self.in_flight = false;
        self.open = internal;
        self.logging = internal;
        if internal && self.mux != NEUTRAL {
            self.selects.push((0, self.mux));
            self.unresolved = true;
        }
    }

    /// The event of a clock.
    pub(crate) fn event(&self, clock: u64) -> i64 {
        clock as i64 - self.origin as i64
    }

    /// Records the units of an instruction fetch.
    pub(crate) fn fetch(&mut self, clock: u64, units: UnitSet) {
        if self.fetches.last().is_none_or(|(_, last)| *last != units) {
            let event = self.event(clock);
            self.fetches.push((event, units));
        }
    }

    /// Records the units of a data access.
    pub(crate) fn access(&mut self, clock: u64, units: UnitSet) {
        let event = self.event(clock);
        self.accesses.push((event, units));
    }

    /// Records a source selection at a clock.
    pub(crate) fn select(&mut self, clock: u64, source: u32) {
        self.mux = source;
        if self.open {
            let event = self.event(clock);
            self.selects.push((event, source));
            self.unresolved = true;
        }
    }

    /// Records a selection of the pair's source at a clock.
    pub(crate) fn select_pair(&mut self, clock: u64, source: u32) {
        let event = self.event(clock);
        self.pair_selects.push((event, source));
        self.unresolved = true;
    }

    /// Records a format at a clock.
    pub(crate) fn format(&mut self, clock: u64, format: u32) {
        let event = self.event(clock);
        self.formats.push((event, format));
        self.unresolved = true;
    }

    /// Whether items were or are received in pair mode.
    pub(crate) fn receives_pairs(&self) -> bool {
        self.formats.iter().any(|&(_, format)| format != 0)
    }

    /// Records a pointer setting at a clock.
    pub(crate) fn point(&mut self, clock: u64, address: u32) {
        if self.open {
            let event = self.event(clock);
            self.pointers.push((event, address));
        } else {
            self.pointer = Some(address);
        }
    }

    /// Bytes of an outgoing item.
    pub(crate) fn width(&self) -> u32 {
        if self.control & 4 == 0 { 4 } else { 8 }
    }

    /// Records items sent from a clock on; continues the last record where memory and time run on.
    pub(crate) fn send(&mut self, clock: u64, items: u32) {
        let event = self.event(clock);
        let (address, control, width) = (self.outgoing, self.control & 3, self.width());
        self.outgoing = address.wrapping_add(width * items);
        self.unresolved = true;
        if let Some(last) = self.sendings.last_mut()
            && last.words.is_none()
            && (last.control, last.width) == (control, width)
            && last.event + i64::from(last.items) == event
            && last.address + width * last.items == address
        {
            last.items += items;
            return;
        }
        self.sendings.push(Sending { event, items, width, address, control, words: None });
    }

    /// Forgets what was resolved.
    pub(crate) fn settle(&mut self) {
        self.unresolved = false;
    }
}
