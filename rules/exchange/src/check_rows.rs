//! Judges rows where they lie: reads the words back into events.
//!
//! Rules: I17 a row is exchange instructions, a two-word one at an 8-byte aligned address, a continued send only right behind a
//! send, then one return; I18 its events reach the tile's horizon; the sends read back are those of the messages (coverage); the
//! controls read back satisfy I5 to I8, I12 and I13 and the messages the rest of [`crate::check_messages`]; I15 the row is 8-byte
//! aligned, in region 0 with its look-ahead, in units none of the tile's data of the phase touches.

use std::collections::BTreeMap;

use ipu21::exchange_word::{ExchangeWord, RETURN};
use ipu21::memory::{self, FETCH_LOOK_AHEAD, REGION1, UnitSet};
use ipu21::tile::TileId;

use crate::check_messages::{depth, other, sent_by, skew, validate_messages};
use crate::events::{Control, Send, Setting, TileEvents};
use crate::message::{TimedMessage, Width};
use crate::violation::{Findings, Invariant, Violation};

/// A row at its place in tile memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedRow {
    /// The tile.
    pub tile: TileId,
    /// Byte address of the first word.
    pub address: u32,
    /// Instruction words.
    pub words: Vec<u32>,
}

/// Judges the rows of a phase against its messages.
///
/// # Errors
/// Every violation found of I1 to I18, I23 and coverage.
pub fn validate_rows(messages: &[TimedMessage], rows: &[PlacedRow]) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    let mut read: Vec<TileEvents> = Vec::with_capacity(rows.len());
    for row in rows {
        match read_back(row) {
            Ok(events) => read.push(events),
            Err(word) => findings.expect(false, Invariant::I17, Some(row.tile), None, Some(word as i64)),
        }
    }
    let data = data_of(messages);
    for row in rows {
        check_place(row, data.get(&row.tile).copied().unwrap_or_default(), &mut findings);
    }
    check_sends(messages, &read, &mut findings);
    check_lengths(messages, &read, &mut findings);
    findings.extend(validate_messages(messages, &read));
    findings.result()
}

/// The events of a row, or the index of the word that is wrong.
fn read_back(row: &PlacedRow) -> Result<TileEvents, usize> {
    let mut reader = Reader { sends: Vec::new(), controls: Vec::new(), cursor: 0, sending: false };
    let mut at = 0;
    loop {
        let word = *row.words.get(at).ok_or(at)?;
        if word == RETURN {
            break;
        }
        let instruction = ExchangeWord::decode(&row.words[at..]).ok_or(at)?;
        let aligned = (row.address as usize / 4 + at).is_multiple_of(2);
        if instruction.words() == 2 && !(aligned && at + 1 < row.words.len()) || !reader.take(instruction) {
            return Err(at);
        }
        at += instruction.words() as usize;
    }
    if at + 1 != row.words.len() {
        return Err(at);
    }
    reader.controls.sort_unstable();
    Ok(TileEvents { tile: row.tile, sends: reader.sends, controls: reader.controls, horizon: reader.cursor })
}

struct Reader {
    sends: Vec<Send>,
    controls: Vec<Control>,
    cursor: i32,
    /// The last instruction sent, so that the running address and control are known.
    sending: bool,
}

impl Reader {
    /// Takes an instruction; false when it continues a send that is not there.
    fn take(&mut self, instruction: ExchangeWord) -> bool {
        let (now, end) = (self.cursor, self.cursor + instruction.events() as i32);
        self.cursor = end;
        let mut set = |event, setting, value| self.controls.push(Control { event, setting, value });
        match instruction {
            ExchangeWord::Delay { .. } => {}
            ExchangeWord::DelayPic { selector, value, .. } => set(end, pic(selector), value),
            ExchangeWord::DelayXpic { selector, value, .. } => set(end, xpic(selector), value),
            ExchangeWord::SendPic { selector, value, .. } if selector < 2 => set(now + 1, xpic(selector), value),
            ExchangeWord::SendPic { selector, value, .. } => set(now + 1, pic(selector - 2), value),
            ExchangeWord::SendPicP { pic_selector, pic: pointer, xpic_selector, xpic: source, .. } => {
                set(now + 1, pic(pic_selector), pointer);
                set(now + 1, xpic(xpic_selector), source);
            }
            ExchangeWord::Send { .. } | ExchangeWord::SendOff { .. } => {}
        }
        self.send(now, instruction)
    }

    fn send(&mut self, now: i32, instruction: ExchangeWord) -> bool {
        let items = instruction.events();
        let fresh = match instruction {
            ExchangeWord::Send { address, control, .. } => Some((address, control)),
            ExchangeWord::SendPicP { address, control, .. } if control & 3 != 0 => Some((address, control)),
            ExchangeWord::SendOff { offset, control, .. } => {
                let last = self.sends.last().filter(|last| self.sending && last.control == control && offset == 0);
                let Some(last) = last else { return false };
                Some((last.item_address + last.items, control))
            }
            ExchangeWord::SendPic { .. } => {
                let Some(last) = self.sends.last().filter(|_| self.sending) else { return false };
                Some((last.item_address + last.items, last.control))
            }
            _ => None,
        };
        self.sending = fresh.is_some();
        if let Some((item_address, control)) = fresh {
            join(&mut self.sends, Send { start: now, items, item_address, control });
        }
        true
    }
}

const fn pic(selector: u32) -> Setting {
    if selector == 0 { Setting::Pointer } else { Setting::Format }
}

const fn xpic(selector: u32) -> Setting {
    if selector == 0 { Setting::Source } else { Setting::PairSource }
}

/// Appends a send, as one with the last where it goes on without a break.
fn join(sends: &mut Vec<Send>, next: Send) {
    let goes_on = |last: &&mut Send| {
        let ends = (last.start + last.items as i32, last.item_address + last.items, last.control);
        ends == (next.start, next.item_address, next.control)
    };
    match sends.last_mut().filter(goes_on) {
        Some(last) => last.items += next.items,
        None => sends.push(next),
    }
}

fn check_sends(messages: &[TimedMessage], read: &[TileEvents], findings: &mut Findings) {
    let mut asked = BTreeMap::<TileId, Vec<Send>>::new();
    for message in messages {
        let item_address = message.source.address / message.width.bytes();
        let send = Send { start: message.start as i32, items: message.items, item_address, control: message.control };
        asked.entry(message.source.tile).or_default().push(send);
    }
    for events in read {
        let mut sends = asked.remove(&events.tile).unwrap_or_default();
        sends.sort_unstable();
        let mut joined = Vec::with_capacity(sends.len());
        sends.into_iter().for_each(|send| join(&mut joined, send));
        findings.expect(joined == events.sends, Invariant::Coverage, Some(events.tile), None, None);
    }
    for tile in asked.into_keys() {
        findings.expect(false, Invariant::Coverage, Some(tile), None, None);
    }
}

/// I18, a receiver waits five events after its last store, seven after its format is back in pair mode.
fn check_lengths(messages: &[TimedMessage], read: &[TileEvents], findings: &mut Findings) {
    let mut needed = BTreeMap::<TileId, i64>::new();
    let mut wait = |tile: TileId, event: i64| {
        let horizon = needed.entry(tile).or_default();
        *horizon = (*horizon).max(event);
    };
    for message in messages {
        let source = message.source.tile;
        wait(source, i64::from(sent_by(message)));
        if message.width == Width::Pair {
            wait(other(source), i64::from(sent_by(message)));
        }
        for spot in &message.destinations {
            let stored = |tile: TileId| message.start as i32 + skew(source, tile) + 1 + depth(tile) + message.items as i32;
            wait(
                spot.tile,
                i64::from(match message.width {
                    Width::Word => stored(spot.tile) + 5,
                    Width::Pair => stored(spot.tile).max(stored(other(spot.tile))) - 2 + 7,
                }),
            );
        }
    }
    for events in read {
        let enough = i64::from(events.horizon) >= needed.remove(&events.tile).unwrap_or(0);
        findings.expect(enough, Invariant::I18, Some(events.tile), None, Some(i64::from(events.horizon)));
    }
    for (tile, horizon) in needed {
        findings.expect(false, Invariant::I18, Some(tile), None, Some(horizon));
    }
}

fn data_of(messages: &[TimedMessage]) -> BTreeMap<TileId, UnitSet> {
    let mut data = BTreeMap::<TileId, UnitSet>::new();
    for message in messages {
        for spot in std::iter::once(&message.source).chain(&message.destinations) {
            let units = data.entry(spot.tile).or_default();
            *units = units.union(memory::units(spot.address, message.bytes()));
        }
    }
    data
}

/// I15.
fn check_place(row: &PlacedRow, data: UnitSet, findings: &mut Findings) {
    let bytes = 4 * row.words.len() as u32 + FETCH_LOOK_AHEAD;
    let end = u64::from(row.address) + u64::from(bytes);
    let inside = row.address >= memory::BASE && end <= u64::from(REGION1);
    let alone = !memory::units(row.address, bytes).intersects(data);
    let holds = row.address.is_multiple_of(8) && inside && alone;
    findings.expect(holds, Invariant::I15, Some(row.tile), None, Some(i64::from(row.address)));
}
