//! Moves the words of an exchange phase between tiles that wait (machine.md c.11).
//!
//! A receiver sees at its event e what the selected source sent at its own event e - T - 1, and stores it 52 + 2*row events
//! later, at its pointer of that event. In 64-bit pair mode (c.7) the member of a pair that hears the source first selects it for both; an item
//! passes the format of a member 51 + 2*row events after it was seen, and is stored two events after that. From a send to its store pass at least 19 events of any tile, so a stretch of words is
//! read at its first send event and written at its first store event, all in the order of events; stretches that overlap in
//! time in one conflict unit of a tile are faults, so nothing finer is needed.

use std::sync::Arc;

use ipu21::exchange_word::NEUTRAL;
use ipu21::memory::{UnitSet, units};
use ipu21::route::{pair_route, route};
use ipu21::tile::PhysTile;

use crate::exchange::{Sending, Way};
use crate::fault::{Cause, Fault, PairRule, ReceiveError};
use crate::memory::{ReadFault, span};
use crate::tile::{State, Tile};

/// Far beyond every event.
const NEVER: i64 = i64::MAX / 4;

/// Words that a receiver saw and will store.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// Store event of the first item.
    event: i64,
    items: u32,
    /// Bytes of an item as the receiver takes it.
    width: u32,
    source: u32,
    /// The sending and the first item inside it; `None` when nothing was sent.
    sent: Option<(usize, u32)>,
}

/// A stretch of words with its address at the receiver.
#[derive(Clone, Copy, Debug)]
struct Storing {
    event: i64,
    items: u32,
    width: u32,
    address: u32,
    source: u32,
    sent: (usize, u32),
}

impl Storing {
    fn bytes(&self) -> u32 {
        self.width * self.items
    }

    fn end(&self) -> i64 {
        self.event + i64::from(self.items)
    }
}

/// A step of the phase, ordered by event.
#[derive(Clone, Copy, Debug)]
enum Action {
    Read { sending: usize },
    Write { storing: Storing },
}

/// Settles every tile that can be settled. Returns whether a paused tile can go on.
pub(crate) fn resolve(tiles: &mut [Tile]) -> Result<bool, Box<Fault>> {
    let reach: Vec<i64> = tiles.iter().map(reach).collect();
    let mut actions: Vec<(i64, usize, Action)> = Vec::new();
    let mut settled = Vec::new();
    for index in 0..tiles.len() {
        queue_reads(&tiles[index], index, &mut actions);
        let pairs = tiles[index].exchange.receives_pairs();
        if pairs || !tiles[index].exchange.selects.is_empty() {
            let Some(mut arrivals) = arrivals(tiles, index, &reach)? else { continue };
            if pairs {
                let Some(more) = pair_arrivals(tiles, index, &reach)? else { continue };
                arrivals.extend(more);
                arrivals.sort_by_key(|arrival| arrival.event);
                tiles[index].exchange.formed = reach[index] - FORMAT_AHEAD;
            }
            let storings = address(&mut tiles[index], &arrivals, reach[index])?;
            check_stores(&tiles[index], &storings)?;
            check_duplex(&tiles[index], &storings)?;
            check_accesses(&tiles[index], &storings)?;
            check_partner(tiles, index, storings.iter().map(|storing| (storing.event, storing.end())))?;
            actions.extend(storings.into_iter().map(|s| (s.event, index, Action::Write { storing: s })));
        }
        check_sends(&tiles[index])?;
        let sent = tiles[index].exchange.sendings.iter().map(|sending| (sending.event, sending.event + i64::from(sending.items)));
        check_partner(tiles, index, sent)?;
        settled.push(index);
    }
    actions.sort_by_key(|&(event, tile, action)| (event, tile, matches!(action, Action::Read { .. })));
    for (_, tile, action) in actions {
        perform(tiles, tile, action)?;
    }
    let mut moved = false;
    for index in settled {
        moved |= resume(&mut tiles[index]);
    }
    Ok(moved)
}

/// The event up to which everything a tile does is known.
fn reach(tile: &Tile) -> i64 {
    match tile.state {
        State::Paused => tile.exchange.event(tile.clock),
        _ => NEVER,
    }
}

fn resume(tile: &mut Tile) -> bool {
    tile.exchange.settle();
    if tile.state != State::Paused {
        return false;
    }
    tile.exchange.in_flight = tile.exchange.selects.iter().any(|&(_, source)| source < ipu21::tile::COUNT as u32)
        || tile.exchange.formats.last().is_some_and(|&(_, format)| format != 0);
    tile.exchange.logging = tile.exchange.in_flight;
    tile.pass = true;
    tile.state = State::Running;
    true
}

fn queue_reads(tile: &Tile, index: usize, actions: &mut Vec<(i64, usize, Action)>) {
    for (number, sending) in tile.exchange.sendings.iter().enumerate() {
        if sending.words.is_none() {
            actions.push((sending.event, index, Action::Read { sending: number }));
        }
    }
}

/// Events from seeing a word to storing it.
fn delay(tile: PhysTile) -> i64 {
    52 + 2 * i64::from(tile.row())
}

/// Events from an item passing the format to its store.
const FORMAT_AHEAD: i64 = 2;

/// The stretches of `changes` inside `from..to`, with the value in force.
fn stretches(changes: &[(i64, u32)], from: i64, to: i64) -> impl Iterator<Item = (i64, i64, u32)> + '_ {
    changes.iter().enumerate().filter_map(move |(number, &(start, value))| {
        let end = changes.get(number + 1).map_or(to, |next| next.0).min(to);
        let start = start.max(from);
        (start < end).then_some((start, end, value))
    })
}

/// What a tile's pair saw while its format was a 64-bit one, as [`arrivals`].
fn pair_arrivals(tiles: &[Tile], index: usize, reach: &[i64]) -> Result<Option<Vec<Arrival>>, Box<Fault>> {
    let tile = &tiles[index];
    let lag = delay(tile.id) - 1;
    let until = reach[index] - FORMAT_AHEAD;
    let mut out = Vec::new();
    for (start, end, format) in stretches(&tile.exchange.formats, tile.exchange.formed, until) {
        if format == 0 {
            continue;
        }
        // A format that stays at a barrier: one item too many is enough to fail.
        let end = end.min(start.saturating_add(NEVER / 2));
        let (from, to) = (start - lag, end - lag);
        let partner = index ^ 2;
        if to < NEVER / 4 && to > reach[partner] {
            return Ok(None);
        }
        let misuse = |event, rule| receive_fault(tile, event, Cause::PairMisuse { event, rule });
        let mut seen: Vec<(i64, i64)> = Vec::new();
        for member in [index, partner] {
            for (start, end, value) in stretches(&tiles[member].exchange.pair_selects, from, to) {
                if value == NEUTRAL {
                    continue;
                }
                let listener = tiles[member].id;
                let source = value ^ u32::from(listener.get()) & 2;
                let sender = &tiles[source as usize];
                let way = pair_route(sender.id, listener);
                if way.early != listener {
                    return Err(misuse(start + lag, PairRule::LateMember));
                }
                if route(sender.id, tile.id).direction.control() != format {
                    return Err(misuse(start + lag, PairRule::Format));
                }
                let shift = i64::from(way.offset);
                if end < NEVER / 4 && end - shift > reach[source as usize] {
                    return Ok(None);
                }
                seen.push((start, end));
                let store = shift + lag + FORMAT_AHEAD;
                see(&sender.exchange.sendings, start - shift, end - shift, format, |from, items, sent| {
                    out.push(Arrival { event: from + store, items, width: 8, source, sent });
                });
            }
        }
        seen.sort_unstable();
        let mut at = from;
        for (start, end) in seen.into_iter().chain([(to, to)]) {
            if start < at {
                return Err(misuse(start + lag, PairRule::TwoSelections));
            }
            if start > at {
                out.push(Arrival { event: at + lag + FORMAT_AHEAD, items: 1, width: 8, source: NEUTRAL, sent: None });
            }
            at = end;
        }
    }
    Ok(Some(out))
}

/// What a receiver saw and stores before `reach`; nothing if a source has not come far enough.
fn arrivals(tiles: &[Tile], index: usize, reach: &[i64]) -> Result<Option<Vec<Arrival>>, Box<Fault>> {
    let tile = &tiles[index];
    let until = reach[index] - delay(tile.id);
    let mut out = Vec::new();
    for (start, end, source) in stretches(&tile.exchange.selects, tile.exchange.consumed, until) {
        if source == NEUTRAL || source >= ipu21::tile::COUNT as u32 {
            continue;
        }
        let sender = &tiles[source as usize];
        let way = route(sender.id, tile.id);
        let shift = i64::from(way.offset) + 1;
        // A source left selected at a barrier sends nothing more; one word too many is enough to fail.
        let end = end.min(start.saturating_add(NEVER / 2));
        if end < NEVER / 2 && end - shift > reach[source as usize] {
            return Ok(None);
        }
        let store = shift + delay(tile.id);
        see(&sender.exchange.sendings, start - shift, end - shift, way.direction.control(), |from, items, sent| {
            out.push(Arrival { event: from + store, items, width: 4, source, sent });
        });
    }
    for arrival in &out {
        let (from, to) = (arrival.event - FORMAT_AHEAD, arrival.event - FORMAT_AHEAD + i64::from(arrival.items));
        if stretches(&tile.exchange.formats, from, to).any(|(.., format)| format != 0) {
            let cause = Cause::PairMisuse { event: arrival.event, rule: PairRule::Width };
            return Err(receive_fault(tile, arrival.event, cause));
        }
    }
    Ok(Some(out))
}

/// Splits the sender's events `from..to` into sent stretches and silence.
fn see(sendings: &[Sending], from: i64, to: i64, direction: u32, mut found: impl FnMut(i64, u32, Option<(usize, u32)>)) {
    let mut at = from;
    let first = sendings.partition_point(|s| s.event + i64::from(s.items) <= from);
    for (number, sending) in sendings.iter().enumerate().skip(first) {
        if sending.event >= to {
            break;
        }
        if sending.control & direction == 0 {
            continue;
        }
        if sending.event > at {
            found(at, 1, None);
        }
        let start = at.max(sending.event);
        let end = to.min(sending.event + i64::from(sending.items));
        if end > start {
            found(start, (end - start) as u32, Some((number, (start - sending.event) as u32)));
            at = end;
        }
    }
    if at < to {
        found(at, 1, None);
    }
}

/// Gives arrivals their addresses, applies pointer settings, and drops what is consumed.
fn address(tile: &mut Tile, arrivals: &[Arrival], reach: i64) -> Result<Vec<Storing>, Box<Fault>> {
    let mut settings = std::mem::take(&mut tile.exchange.pointers).into_iter().peekable();
    let mut pointer = tile.exchange.pointer;
    let mut out: Vec<Storing> = Vec::with_capacity(arrivals.len());
    for arrival in arrivals {
        let mut event = arrival.event;
        let end = event + i64::from(arrival.items);
        while event < end {
            while let Some((_, value)) = settings.next_if(|&(at, _)| at <= event) {
                pointer = Some(value);
            }
            let stop = settings.peek().map_or(end, |&(at, _)| at.min(end));
            let (items, width) = ((stop - event) as u32, arrival.width);
            let Some(address) = pointer else {
                return Err(receive_fault(tile, event, Cause::NoPointer { event }));
            };
            let Some((sending, from)) = arrival.sent else {
                let cause = Cause::NothingSent { source: arrival.source, event, address };
                return Err(receive_fault(tile, event, cause));
            };
            let from = from + (event - arrival.event) as u32;
            if !address.is_multiple_of(width) {
                return Err(receive_fault(tile, event, Cause::PairMisuse { event, rule: PairRule::Unaligned }));
            }
            out.push(Storing { event, items, width, address, source: arrival.source, sent: (sending, from) });
            pointer = Some(address.wrapping_add(width * items));
            event = stop;
        }
    }
    while let Some((_, value)) = settings.next_if(|&(at, _)| at < reach) {
        pointer = Some(value);
    }
    tile.exchange.pointer = pointer;
    tile.exchange.pointers = settings.collect();
    forget_selects(tile, reach);
    Ok(out)
}

/// Keeps the selection that is in force and the later ones.
fn forget_selects(tile: &mut Tile, reach: i64) {
    let until = reach - delay(tile.id);
    let selects = &mut tile.exchange.selects;
    let in_force = selects.partition_point(|&(event, _)| event <= until);
    if in_force > 0 {
        selects.drain(..in_force - 1);
    }
    if selects.len() == 1 && selects[0].1 == NEUTRAL && selects[0].0 <= until {
        selects.clear();
    }
    tile.exchange.consumed = until;
}

fn receive_fault(tile: &Tile, event: i64, cause: Cause) -> Box<Fault> {
    let clock = (tile.exchange.origin as i64 + event).max(0) as u64;
    tile.fault(crate::fault::Context::Supervisor, tile.pc, clock, cause)
}

/// Addresses, running workers and instruction fetches against incoming writes (receive errors 2, 3, 4).
fn check_stores(tile: &Tile, storings: &[Storing]) -> Result<(), Box<Fault>> {
    for storing in storings {
        let error = |error, event| receive_fault(tile, event, Cause::Receive { error, address: storing.address, event });
        if span(storing.address, storing.bytes()).is_err() {
            return Err(error(ReceiveError::Address, storing.event));
        }
        let end = storing.end();
        let (launched, done) = (tile.exchange.event(tile.launched), tile.exchange.event(tile.done));
        if launched < end && storing.event < done {
            return Err(error(ReceiveError::WorkersActive, storing.event.max(launched)));
        }
        let touched = units(storing.address, storing.bytes());
        if let Some(event) = fetch_meets(tile, storing.event, end, touched) {
            return Err(error(ReceiveError::ClashFetch, event));
        }
    }
    Ok(())
}

/// Instruction fetches against send reads.
fn check_sends(tile: &Tile) -> Result<(), Box<Fault>> {
    for sending in tile.exchange.sendings.iter().filter(|sending| sending.words.is_none()) {
        let end = sending.event + i64::from(sending.items);
        let touched = units(sending.address, sending.width * sending.items);
        if let Some(event) = fetch_meets(tile, sending.event, end, touched) {
            return Err(receive_fault(tile, event, Cause::SendFetchConflict { address: sending.address, event }));
        }
    }
    Ok(())
}

/// The first event in `from..to` at which the instruction fetch touches one of the units.
fn fetch_meets(tile: &Tile, from: i64, to: i64, touched: UnitSet) -> Option<i64> {
    let fetches = &tile.exchange.fetches;
    let first = fetches.partition_point(|&(event, _)| event <= from).saturating_sub(1);
    fetches[first..]
        .iter()
        .take_while(|&&(event, _)| event < to)
        .find(|(_, fetched)| fetched.intersects(touched))
        .map(|&(event, _)| event.max(from))
}

/// Send reads against incoming writes of the same tile and clock (receive error 1).
fn check_duplex(tile: &Tile, storings: &[Storing]) -> Result<(), Box<Fault>> {
    let sendings = &tile.exchange.sendings;
    for storing in storings {
        let end = storing.end();
        let first = sendings.partition_point(|s| s.event + i64::from(s.items) <= storing.event);
        for sending in sendings[first..].iter().take_while(|sending| sending.event < end) {
            let from = storing.event.max(sending.event);
            let to = end.min(sending.event + i64::from(sending.items));
            let part = |address: u32, event: i64, width: u32| units(address + width * (from - event) as u32, width * (to - from) as u32);
            let stored = part(storing.address, storing.event, storing.width);
            if stored.intersects(part(sending.address, sending.event, sending.width)) {
                let cause = Cause::Receive { error: ReceiveError::ClashData, address: storing.address, event: from };
                return Err(receive_fault(tile, from, cause));
            }
        }
    }
    Ok(())
}

/// The supervisor's loads and stores against incoming writes of the same clock (receive error 1).
fn check_accesses(tile: &Tile, storings: &[Storing]) -> Result<(), Box<Fault>> {
    for storing in storings {
        let during = storing.event..storing.end();
        for &(event, accessed) in tile.exchange.accesses.iter().filter(|(event, _)| during.contains(event)) {
            let address = storing.address + storing.width * (event - storing.event) as u32;
            if accessed.intersects(units(address, storing.width)) {
                return Err(receive_fault(tile, event, Cause::Receive { error: ReceiveError::ClashData, address, event }));
            }
        }
    }
    Ok(())
}

/// The partner of a tile, when it sends 64-bit items.
fn wide_partner(tiles: &[Tile], index: usize) -> Option<&Tile> {
    tiles.get(index ^ 2).filter(|partner| partner.exchange.sendings.iter().any(|sending| sending.width == 8))
}

/// The partner of a tile that sends 64-bit items neither sends nor stores meanwhile (I23): at these events of tile `index`.
fn check_partner(tiles: &[Tile], index: usize, intervals: impl Iterator<Item = (i64, i64)>) -> Result<(), Box<Fault>> {
    let Some(partner) = wide_partner(tiles, index) else { return Ok(()) };
    let tile = &tiles[index];
    let shift = tile.exchange.origin as i64 - partner.exchange.origin as i64;
    let wide = || partner.exchange.sendings.iter().filter(|sending| sending.width == 8);
    for (event, end) in intervals {
        if wide().any(|sending| sending.event < end + shift && event + shift < sending.event + i64::from(sending.items)) {
            return Err(receive_fault(tile, event, Cause::PairMisuse { event, rule: PairRule::PartnerBusy }));
        }
    }
    Ok(())
}

fn perform(tiles: &mut [Tile], index: usize, action: Action) -> Result<(), Box<Fault>> {
    match action {
        Action::Read { sending } => read(&mut tiles[index], sending),
        Action::Write { storing } => {
            let (sending, from) = storing.sent;
            let sent = &tiles[storing.source as usize].exchange.sendings[sending];
            let (words, width) = (sent.words.clone(), sent.width);
            let source = tiles[storing.source as usize].id;
            let tile = &mut tiles[index];
            let (event, address) = (storing.event, storing.address);
            if width != storing.width {
                return Err(receive_fault(tile, event, Cause::PairMisuse { event, rule: PairRule::Width }));
            }
            let (from, count) = ((from * width / 4) as usize, storing.bytes() / 4);
            let part = words.as_deref().and_then(|words| words.get(from..from + count as usize));
            let Some(part) = part else {
                return Err(receive_fault(tile, event, Cause::NothingSent { source: storing.source, event, address }));
            };
            tile.memory
                .write_words(address, part)
                .map_err(|_| receive_fault(tile, event, Cause::Receive { error: ReceiveError::Address, address, event }))?;
            tile.exchange.note(event, count, address, Way::Received { source });
            Ok(())
        }
    }
}

fn read(tile: &mut Tile, number: usize) -> Result<(), Box<Fault>> {
    let sending = &tile.exchange.sendings[number];
    let (address, count, event) = (sending.address, sending.items * sending.width / 4, sending.event);
    let mut words = Vec::with_capacity(count as usize);
    if let Err(fault) = tile.memory.read_words(address, count, &mut words) {
        let cause = match fault {
            ReadFault::Poison { address } => Cause::PoisonSent { address },
            ReadFault::Outside { address, .. } => Cause::AddressOutside { address, access: crate::fault::Access::Send },
        };
        return Err(receive_fault(tile, event, cause));
    }
    let directions = sending.control;
    tile.exchange.sendings[number].words = Some(Arc::from(words));
    tile.exchange.note(event, count, address, Way::Sent { directions });
    Ok(())
}
