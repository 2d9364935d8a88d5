//! Judges timed messages, with arithmetic of its own.
//!
//! In: messages in program order; for [`validate_messages`] also what every tile does when. Rules (machine.md c.10):
//! * of a message alone: I1 receivers, I2 length, I3 addresses, I4 direction and width bits, I5 first events, I23 pairs;
//! * of a tile's controls: I6, I7, I8 are exactly the selects, pointers and neutrals its arrivals demand, each at its event, and
//!   no other control exists; I12 one control of a stream on an event; I13 none on the first two events of a send;
//! * of a tile's intervals: I9 sends, I10 selections and I11 stores are disjoint; I23 a 64-bit sender's partner rests;
//! * of a tile's memory: I14 windows that meet are in different units, I16 ranges that meet keep program order.
//!
//! Without addresses (schedules) memory is buffers: windows that meet must be of a pair the schedule exports as apart, and never
//! of one buffer or of a pair that the problem wants serial.

use std::collections::{BTreeMap, BTreeSet};

use ipu21::exchange_word::NEUTRAL;
use ipu21::memory;
use ipu21::tile::{PhysTile, TileId};

use crate::events::{Control, Setting, TileEvents};
use crate::message::{Spot, TimedMessage, Width};
use crate::problem::BufferId;
use crate::violation::{Findings, Invariant, Violation};

/// Judges messages with addresses and the events of every tile.
///
/// # Errors
/// Every violation found of I1 to I14, I16 and I23.
pub fn validate_messages(messages: &[TimedMessage], events: &[TileEvents]) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    for (index, message) in (0..).zip(messages) {
        check_addresses(index, message, &mut findings);
    }
    let given: BTreeMap<TileId, &[Control]> = events.iter().map(|events| (events.tile, events.controls.as_slice())).collect();
    check(messages, &Memory::Addresses, Some(&given), &mut findings);
    findings.result()
}

/// How to tell whether two accesses meet.
pub(crate) enum Memory<'a> {
    /// Real addresses and conflict units.
    Addresses,
    /// Buffers and offsets; the sets hold both orders of a pair.
    Buffers { serial: &'a BTreeSet<(TileId, BufferId, BufferId)>, apart: &'a BTreeSet<(TileId, BufferId, BufferId)> },
}

/// All rules that need no address beyond what `memory` knows.
pub(crate) fn check(messages: &[TimedMessage], memory: &Memory<'_>, given: Option<&BTreeMap<TileId, &[Control]>>, findings: &mut Findings) {
    for (index, message) in (0..).zip(messages) {
        check_message(index, message, findings);
    }
    let lives = lives(messages);
    for (tile, life) in &lives {
        let expected = expected_controls(*tile, life);
        let controls = match given {
            Some(given) => {
                let given = given.get(tile).copied().unwrap_or_default();
                check_controls(*tile, &expected, given, findings);
                given
            }
            None => expected.as_slice(),
        };
        check_issue(*tile, life, controls, findings);
        check_intervals(*tile, life, findings);
        check_windows(*tile, life, memory, findings);
        check_program_order(*tile, life, memory, findings);
    }
    let others = given.into_iter().flatten().filter(|(tile, _)| !lives.contains_key(tile));
    for (tile, controls) in others {
        check_controls(*tile, &[], controls, findings);
    }
    check_partners(messages, &lives, findings);
}

// Own geometry: machine.md c.2 and c.3 written out again, so that a mistake in the scheduler's routes is seen here.

struct Seat {
    row: i32,
    folded: i32,
    side: i32,
    far: i32,
    lane: i32,
}

fn seat(tile: PhysTile) -> Seat {
    let number = i32::from(tile.get());
    let (row, column, sub) = (number / 64, number / 4 % 16, number % 4);
    let side = column / 8;
    let folded = if side == 0 { column } else { 15 - column };
    Seat { row, folded, side, far: side ^ (sub % 2), lane: sub / 2 }
}

fn spine(source: &Seat, destination: &Seat) -> i32 {
    let listens = if destination.far == 0 { 1 + destination.lane } else { 5 - destination.lane };
    6 * destination.folded + listens - 6 * (source.folded + source.far)
}

/// Receiver's counter minus sender's.
pub(crate) fn skew(source: TileId, destination: TileId) -> i32 {
    let (from, to) = (seat(source.physical()), seat(destination.physical()));
    let a_column = [5, 3][to.side as usize];
    let constant = if (from.side, to.side) == (1, 0) { 14 } else { 30 };
    a_column * (from.folded - to.folded) + 2 * (from.row - to.row) + spine(&from, &to).abs() - constant
}

fn direction(source: TileId, destination: TileId) -> u32 {
    if spine(&seat(source.physical()), &seat(destination.physical())) > 0 { 1 } else { 2 }
}

/// Events from the select of a source to its first word in memory.
pub(crate) fn depth(tile: TileId) -> i32 {
    52 + 2 * seat(tile.physical()).row
}

/// Whether this member of a receiving pair hears the sender first.
fn hears_first(source: TileId, destination: TileId) -> bool {
    skew(source, destination) < skew(source, other(destination))
}

/// The other tile of the pair.
pub(crate) fn other(tile: TileId) -> TileId {
    tile.partner()
}

fn select_event(message: &TimedMessage, receiver: TileId) -> i32 {
    let source = message.source.tile;
    let own = skew(source, receiver);
    let start = message.start as i32;
    match message.width {
        Width::Word => start + own + 1,
        Width::Pair => start + own.max(skew(source, other(receiver))),
    }
}

/// First event after a send at which its tile may go on.
pub(crate) fn sent_by(message: &TimedMessage) -> i32 {
    let earliest = message.destinations.iter().map(|spot| -skew(message.source.tile, spot.tile)).max().unwrap_or(0).max(0);
    (message.start as i32 - earliest) + (earliest + message.items as i32).max(6)
}

fn check_message(index: u32, message: &TimedMessage, findings: &mut Findings) {
    let source = message.source.tile;
    let mut expect = |holds: bool, invariant, tile: TileId| findings.expect(holds, invariant, Some(tile), Some(index), None);
    let tiles: BTreeSet<TileId> = message.destinations.iter().map(|spot| spot.tile).collect();
    let distinct = tiles.len() == message.destinations.len();
    expect(!tiles.is_empty() && distinct && !tiles.contains(&source), Invariant::I1, source);
    let fewest = if message.width == Width::Pair { 64 } else { 1 };
    expect((fewest..=4148).contains(&message.items), Invariant::I2, source);
    let needed = tiles.iter().fold(0, |bits, tile| bits | direction(source, *tile));
    let wide = message.width == Width::Pair;
    expect(message.control & needed == needed && (message.control & 4 != 0) == wide && message.control < 8, Invariant::I4, source);
    for spot in &message.destinations {
        expect(select_event(message, spot.tile) >= 1, Invariant::I5, spot.tile);
        if wide {
            let depth = depth(spot.tile);
            let coincides = message.items as i32 == depth - 1 || message.items as i32 == depth + 1;
            expect(tiles.contains(&other(spot.tile)), Invariant::I23, spot.tile);
            expect(!(hears_first(source, spot.tile) && coincides), Invariant::I23, spot.tile);
        }
    }
    expect(!(wide && tiles.contains(&other(source))), Invariant::I23, source);
}

fn check_addresses(index: u32, message: &TimedMessage, findings: &mut Findings) {
    let bytes = u64::from(message.items) * u64::from(message.width.bytes());
    for spot in std::iter::once(&message.source).chain(&message.destinations) {
        let aligned = spot.address % message.width.bytes() == 0;
        let inside = spot.address >= memory::BASE && u64::from(spot.address) + bytes <= u64::from(memory::END);
        findings.expect(aligned && inside, Invariant::I3, Some(spot.tile), Some(index), Some(i64::from(spot.address)));
        let twin = message.destinations.iter().find(|twin| message.width == Width::Pair && twin.tile == other(spot.tile));
        let equal = spot.tile == message.source.tile || twin.is_none_or(|twin| twin.address == spot.address);
        findings.expect(equal, Invariant::I3, Some(spot.tile), Some(index), Some(i64::from(spot.address)));
    }
}

/// A message as its sender or one of its receivers sees it.
struct Part<'a> {
    index: u32,
    message: &'a TimedMessage,
    spot: Spot,
    /// Select event of a receiver; unused for a sender.
    select: i32,
    /// First read or first store.
    from: i32,
    /// End of reading or storing.
    done: i32,
    /// End of the window in which memory must be free of others.
    clear: i32,
}

impl Part<'_> {
    fn items(&self) -> i32 {
        self.message.items as i32
    }

    fn end_address(&self) -> u64 {
        u64::from(self.spot.address) + u64::from(self.message.items) * u64::from(self.message.width.bytes())
    }
}

/// What a tile does in the phase; sends by start, receives by select.
#[derive(Default)]
struct Life<'a> {
    sends: Vec<Part<'a>>,
    receives: Vec<Part<'a>>,
}

fn lives(messages: &[TimedMessage]) -> BTreeMap<TileId, Life<'_>> {
    let mut lives = BTreeMap::<TileId, Life<'_>>::new();
    for (index, message) in (0..).zip(messages) {
        let start = message.start as i32;
        let (done, clear) = (start + message.items as i32, sent_by(message));
        let sent = Part { index, message, spot: message.source, select: start, from: start, done, clear };
        lives.entry(message.source.tile).or_default().sends.push(sent);
        for spot in &message.destinations {
            lives.entry(spot.tile).or_default().receives.push(received(index, message, *spot));
        }
    }
    for life in lives.values_mut() {
        life.sends.sort_by_key(|part| part.from);
        life.receives.sort_by_key(|part| part.select);
    }
    lives
}

fn received(index: u32, message: &TimedMessage, spot: Spot) -> Part<'_> {
    let (select, items) = (select_event(message, spot.tile), message.items as i32);
    let pointer = select + depth(spot.tile);
    match message.width {
        Width::Word => Part { index, message, spot, select, from: pointer, done: pointer + items, clear: pointer + items + 5 },
        Width::Pair => {
            let format_off = pointer - 1 + items;
            let torn = if hears_first(message.source.tile, spot.tile) { select + items } else { 0 };
            Part { index, message, spot, select, from: pointer + 1, done: pointer + items + 3, clear: torn.max(format_off) + 7 }
        }
    }
}

fn expected_controls(tile: TileId, life: &Life<'_>) -> Vec<Control> {
    let mut controls = Vec::new();
    for (at, part) in life.receives.iter().enumerate() {
        let physical = part.message.source.tile.physical().get();
        let end = part.select + part.items();
        let mut set = |event, setting, value| controls.push(Control { event, setting, value });
        if part.message.width == Width::Word {
            set(part.select, Setting::Source, u32::from(physical));
            let next = life.receives[at + 1..].iter().find(|next| next.message.width == Width::Word);
            if next.is_none_or(|next| next.select != end) {
                set(end, Setting::Source, NEUTRAL);
            }
            if !(at > 0 && continues(&life.receives[at - 1], part)) {
                set(part.from, Setting::Pointer, part.spot.address / 4);
            }
            continue;
        }
        if hears_first(part.message.source.tile, tile) {
            let member = tile.physical().get() & 2;
            set(part.select, Setting::PairSource, u32::from(physical ^ member));
            set(end, Setting::PairSource, NEUTRAL);
        }
        let format = part.from - 2;
        set(format, Setting::Format, direction(part.message.source.tile, tile));
        set(part.from, Setting::Pointer, part.spot.address / 4);
        set(format + part.items(), Setting::Format, 0);
    }
    controls.sort_unstable();
    controls
}

/// Whether the pointer stands right after the earlier part.
fn continues(earlier: &Part<'_>, later: &Part<'_>) -> bool {
    let plain = earlier.message.width == Width::Word;
    plain && earlier.spot.buffer == later.spot.buffer && earlier.end_address() == u64::from(later.spot.address)
}

fn check_controls(tile: TileId, expected: &[Control], given: &[Control], findings: &mut Findings) {
    let mut left = given.to_vec();
    for control in expected {
        let found = left.iter().position(|other| other == control);
        findings.expect(found.is_some(), rule_of(control), Some(tile), None, Some(i64::from(control.event)));
        if let Some(at) = found {
            left.swap_remove(at);
        }
    }
    for control in left {
        findings.expect(false, rule_of(&control), Some(tile), None, Some(i64::from(control.event)));
    }
}

const fn rule_of(control: &Control) -> Invariant {
    match control.setting {
        Setting::Pointer => Invariant::I7,
        Setting::Source | Setting::PairSource if control.value == NEUTRAL => Invariant::I8,
        Setting::Source | Setting::PairSource | Setting::Format => Invariant::I6,
    }
}

/// I5, I12, I13.
fn check_issue(tile: TileId, life: &Life<'_>, controls: &[Control], findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for control in controls {
        let at = Some(i64::from(control.event));
        findings.expect(control.event >= 1, Invariant::I5, Some(tile), None, at);
        findings.expect(seen.insert((control.event, control.setting.is_pic())), Invariant::I12, Some(tile), None, at);
    }
    for part in &life.sends {
        for event in [part.from, part.from + 1] {
            let free = !seen.contains(&(event, true)) && !seen.contains(&(event, false));
            findings.expect(free, Invariant::I13, Some(tile), Some(part.index), Some(i64::from(event)));
        }
    }
}

/// I9, I10, I11.
fn check_intervals(tile: TileId, life: &Life<'_>, findings: &mut Findings) {
    let sends = life.sends.iter().map(|part| (part.from, part.done, part.index));
    disjoint(sends.collect(), Invariant::I9, tile, findings);
    disjoint(life.receives.iter().filter_map(|part| selection(tile, part)).collect(), Invariant::I10, tile, findings);
    let stores = life.receives.iter().map(|part| (part.from, part.from + part.items(), part.index));
    disjoint(stores.collect(), Invariant::I11, tile, findings);
}

/// The events during which a receiver's port is taken; in pair mode with the format around it.
fn selection(tile: TileId, part: &Part<'_>) -> Option<(i32, i32, u32)> {
    let (end, format) = (part.select + part.items(), part.from - 2);
    Some(match part.message.width {
        Width::Word => (part.select, end, part.index),
        Width::Pair if hears_first(part.message.source.tile, tile) => (part.select, end.max(format + part.items()), part.index),
        Width::Pair => (format, format + part.items(), part.index),
    })
}

fn disjoint(mut intervals: Vec<(i32, i32, u32)>, invariant: Invariant, tile: TileId, findings: &mut Findings) {
    intervals.sort_unstable();
    let mut latest = i32::MIN;
    for (from, to, index) in intervals {
        findings.expect(latest <= from, invariant, Some(tile), Some(index), Some(i64::from(from)));
        latest = latest.max(to);
    }
}

/// I14.
fn check_windows(tile: TileId, life: &Life<'_>, memory: &Memory<'_>, findings: &mut Findings) {
    let mut writes: Vec<&Part<'_>> = life.receives.iter().collect();
    writes.sort_by_key(|write| write.from);
    let mut latest = Vec::with_capacity(writes.len());
    for write in &writes {
        latest.push(latest.last().copied().unwrap_or(i32::MIN).max(write.clear));
    }
    for read in &life.sends {
        let before = writes.partition_point(|write| write.from < read.clear);
        for at in (0..before).rev().take_while(|at| latest[*at] > read.from) {
            let write = writes[at];
            let meets = write.clear > read.from && clash(tile, read, write, memory);
            findings.expect(!meets, Invariant::I14, Some(tile), Some(read.index), Some(i64::from(write.from)));
        }
    }
}

fn clash(tile: TileId, read: &Part<'_>, write: &Part<'_>, memory: &Memory<'_>) -> bool {
    match memory {
        Memory::Addresses => {
            let units = |part: &Part<'_>| memory::units(part.spot.address, part.message.bytes());
            units(read).intersects(units(write))
        }
        Memory::Buffers { serial, apart } => {
            let pair = (tile, read.spot.buffer, write.spot.buffer);
            pair.1 == pair.2 || serial.contains(&pair) || !apart.contains(&pair)
        }
    }
}

/// I16. Parts of one tile whose ranges meet, found by a sweep over addresses.
fn check_program_order(tile: TileId, life: &Life<'_>, memory: &Memory<'_>, findings: &mut Findings) {
    let space = |part: &Part<'_>| if matches!(memory, Memory::Addresses) { BufferId(0) } else { part.spot.buffer };
    let reads = life.sends.iter().map(|part| (part, false));
    let mut parts: Vec<(&Part<'_>, bool)> = reads.chain(life.receives.iter().map(|part| (part, true))).collect();
    parts.sort_by_key(|(part, _)| (space(part), part.spot.address));
    let mut open: Vec<(&Part<'_>, bool)> = Vec::new();
    for (part, writes) in parts {
        open.retain(|(other, _)| space(other) == space(part) && other.end_address() > u64::from(part.spot.address));
        for (other, other_writes) in &open {
            if (writes || *other_writes) && other.index != part.index {
                let earlier_first = if other.index < part.index {
                    [(*other, *other_writes), (part, writes)]
                } else {
                    [(part, writes), (*other, *other_writes)]
                };
                check_pair(tile, earlier_first, findings);
            }
        }
        open.push((part, writes));
    }
}

fn check_pair(tile: TileId, [(earlier, wrote), (later, writes)]: [(&Part<'_>, bool); 2], findings: &mut Findings) {
    let needed = match (wrote, writes) {
        (true, false) => earlier.done + 5,
        _ => earlier.done,
    };
    findings.expect(later.from >= needed, Invariant::I16, Some(tile), Some(later.index), Some(i64::from(later.from)));
}

/// I23: the partner of a 64-bit sender rests.
fn check_partners(messages: &[TimedMessage], lives: &BTreeMap<TileId, Life<'_>>, findings: &mut Findings) {
    for (index, message) in (0..).zip(messages).filter(|(_, message)| message.width == Width::Pair) {
        let (from, to) = (message.start as i32, sent_by(message));
        let Some(life) = lives.get(&other(message.source.tile)) else { continue };
        let busy = life.sends.iter().map(|part| (part.from, part.done)).chain(life.receives.iter().map(|part| (part.select, part.done)));
        for (busy_from, _) in busy.filter(|(busy_from, busy_to)| *busy_from < to && from < *busy_to) {
            let partner = other(message.source.tile);
            findings.expect(false, Invariant::I23, Some(partner), Some(index), Some(i64::from(busy_from)));
        }
    }
}
