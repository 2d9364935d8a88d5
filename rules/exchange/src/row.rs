//! Instruction words of a tile's row: sends and timed controls in one issue stream (machine.md c.4, c.6, c.9).

use std::fmt;

use ipu21::exchange_word::{ExchangeWord, RETURN};
use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};

use crate::events::{Control, Send, TileEvents, lower};
use crate::message::TimedMessage;
use crate::problem::BufferId;
use crate::schedule::Schedule;

const DELAY_MAX: i32 = 1 << 19;
const DELAY_PIC_MAX: i32 = 128;
const DELAY_XPIC_MAX: i32 = 4096;
const SEND_MAX: i32 = 64;
const SEND_OFF_MAX: i32 = 4096;

/// A tile's row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The tile.
    pub tile: TileId,
    /// Instruction words; the base must be 8-byte aligned.
    pub words: Vec<u32>,
    /// Events the row takes.
    pub horizon: u32,
}

/// Why events cannot be put into one issue stream (machine.md I17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RowFault {
    /// The tile.
    pub tile: TileId,
    /// The event of the control or send that does not fit.
    pub event: i32,
    /// Which rule.
    pub cause: RowCause,
}

/// The rule that a row cannot keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RowCause {
    /// More than one control of a stream on an event, or no event left for an instruction.
    Slot,
    /// Something starts before what is issued earlier has ended.
    Order,
    /// A two-word control cannot be put on an even word.
    Alignment,
    /// A control on the first two events of a send.
    SendStart,
    /// A count, address or value does not fit its field.
    Field,
}

impl fmt::Display for RowFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.cause {
            RowCause::Slot => "no instruction is left for a control",
            RowCause::Order => "a send or control starts before the last one has ended",
            RowCause::Alignment => "a two-word control falls on an odd word",
            RowCause::SendStart => "a control falls on the first two events of a send",
            RowCause::Field => "a count, address or value does not fit its field",
        };
        write!(out, "tile {}, event {}: {why}", self.tile, self.event)
    }
}

impl std::error::Error for RowFault {}

/// The rows of a schedule at given addresses of buffers (8-byte aligned), by tile.
///
/// # Errors
/// [`RowFault`] when the events do not fit an issue stream: never for what [`crate::schedule`] returns and addresses inside tile memory.
pub fn rows(schedule: &Schedule, address_of: impl Fn(TileId, BufferId) -> u32) -> Result<Vec<Row>, Vec<RowFault>> {
    timed_rows(&schedule.timed(address_of))
}

/// The rows of messages with start events, by tile.
///
/// # Errors
/// The first [`RowFault`] of every tile that has one.
pub fn timed_rows(messages: &[TimedMessage]) -> Result<Vec<Row>, Vec<RowFault>> {
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    for events in lower(messages) {
        match row(&events) {
            Ok(row) => rows.push(row),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(rows) } else { Err(faults) }
}

/// The row of one tile.
///
/// # Errors
/// The first [`RowFault`].
pub fn row(events: &TileEvents) -> Result<Row, RowFault> {
    let mut issue = Issue { tile: events.tile, words: Vec::new(), cursor: 0 };
    let groups = groups(events)?;
    let mut rest = groups.as_slice();
    for send in &events.sends {
        let (before, from) = rest.split_at(rest.partition_point(|group| group.event < send.start));
        issue.idle(before, send.start)?;
        let (inside, after) = from.split_at(from.partition_point(|group| group.event <= send.start + send.items as i32));
        issue.send(send, inside)?;
        rest = after;
    }
    issue.idle(rest, events.horizon)?;
    issue.words.push(RETURN);
    Ok(Row { tile: events.tile, words: issue.words, horizon: events.horizon as u32 })
}

/// The controls of one event.
#[derive(Clone, Copy)]
struct Group {
    event: i32,
    pic: Option<Control>,
    xpic: Option<Control>,
}

impl Group {
    const fn is_pair(&self) -> bool {
        self.pic.is_some() && self.xpic.is_some()
    }
}

fn groups(events: &TileEvents) -> Result<Vec<Group>, RowFault> {
    let mut groups: Vec<Group> = Vec::with_capacity(events.controls.len());
    for control in &events.controls {
        if groups.last().is_none_or(|group| group.event != control.event) {
            groups.push(Group { event: control.event, pic: None, xpic: None });
        }
        let Some(group) = groups.last_mut() else { continue };
        let slot = if control.setting.is_pic() { &mut group.pic } else { &mut group.xpic };
        if slot.replace(*control).is_some() {
            return Err(RowFault { tile: events.tile, event: control.event, cause: RowCause::Slot });
        }
    }
    Ok(groups)
}

/// The issue stream so far.
struct Issue {
    tile: TileId,
    words: Vec<u32>,
    /// Events taken so far.
    cursor: i32,
}

impl Issue {
    const fn fault(&self, event: i32, cause: RowCause) -> RowFault {
        RowFault { tile: self.tile, event, cause }
    }

    fn put(&mut self, word: ExchangeWord) -> Result<(), RowFault> {
        let encoded = word.encode().map_err(|_| self.fault(self.cursor, RowCause::Field))?;
        self.words.extend_from_slice(encoded.words());
        self.cursor += word.events() as i32;
        Ok(())
    }

    /// Delays until `event`; with `even`, so that the next word is an even one.
    fn gap(&mut self, event: i32, even: bool) -> Result<(), RowFault> {
        let left = event - self.cursor;
        if left < 0 {
            return Err(self.fault(event, RowCause::Order));
        }
        let mut pieces = left.unsigned_abs().div_ceil(DELAY_MAX.unsigned_abs()) as i32;
        if even && !(self.words.len() + pieces as usize).is_multiple_of(2) {
            pieces += 1;
        }
        if pieces > left {
            return Err(self.fault(event, RowCause::Alignment));
        }
        for after in (0..pieces).rev() {
            let step = (event - self.cursor - after).min(DELAY_MAX);
            self.put(ExchangeWord::Delay { events: step as u32 })?;
        }
        Ok(())
    }

    /// Controls while nothing is sent, then delay until `limit`.
    fn idle(&mut self, groups: &[Group], limit: i32) -> Result<(), RowFault> {
        for (index, group) in groups.iter().enumerate() {
            let next = groups.get(index + 1).map_or(limit, |next| next.event - 1);
            self.idle_control(group, next)?;
        }
        self.gap(limit, false)
    }

    fn idle_control(&mut self, group: &Group, next: i32) -> Result<(), RowFault> {
        if let (Some(pic), Some(xpic)) = (group.pic, group.xpic) {
            self.gap(group.event - 1, true)?;
            let events = (next - self.cursor).min(SEND_MAX);
            if events < 1 {
                return Err(self.fault(group.event, RowCause::Slot));
            }
            return self.put(combined(events, 0, 0, pic, xpic));
        }
        let most = if group.pic.is_some() { DELAY_PIC_MAX } else { DELAY_XPIC_MAX };
        if group.event - self.cursor < 1 {
            return Err(self.fault(group.event, RowCause::Slot));
        }
        if group.event - self.cursor > most {
            self.gap(group.event - most, false)?;
        }
        let events = (group.event - self.cursor) as u32;
        match (group.pic, group.xpic) {
            (Some(Control { setting, value, .. }), _) => self.put(ExchangeWord::DelayPic { events, selector: setting.selector(), value }),
            (_, Some(Control { setting, value, .. })) => self.put(ExchangeWord::DelayXpic { events, selector: setting.selector(), value }),
            _ => Ok(()),
        }
    }

    /// One send with the controls that fall into it.
    fn send(&mut self, send: &Send, groups: &[Group]) -> Result<(), RowFault> {
        let (end, items) = (send.start + send.items as i32, send.items as i32);
        for (index, group) in groups.iter().enumerate() {
            let before = group.event - 1 - self.cursor;
            if before < 0 || before >= end - self.cursor || (before == 0 && self.cursor == send.start) {
                return Err(self.fault(group.event, RowCause::SendStart));
            }
            self.plain(send, before, group.is_pair())?;
            let mut room = groups.get(index + 1).map_or(end, |next| next.event - 1) - self.cursor;
            let words = if group.is_pair() { 2 } else { 1 };
            let odd_then = !(self.words.len() + words).is_multiple_of(2);
            if groups.get(index + 1).is_some_and(Group::is_pair) && odd_then && room > 1 {
                // Leaves an event for a plain piece that puts the next combined control on an even word.
                room -= 1;
            }
            let piece = room.min(SEND_MAX).min(end - self.cursor);
            if piece < 1 {
                return Err(self.fault(group.event, RowCause::Slot));
            }
            self.put(merged(send, piece, items - (end - self.cursor), group))?;
        }
        self.plain(send, end - self.cursor, false)
    }

    /// `items` of a send without controls; with `even`, split so that the next word is an even one.
    fn plain(&mut self, send: &Send, items: i32, even: bool) -> Result<(), RowFault> {
        let mut sizes = plain_sizes(items, self.cursor > send.start);
        if even && !(self.words.len() + sizes.len()).is_multiple_of(2) {
            let Some(at) = sizes.iter().rposition(|size| *size > 1) else {
                return Err(self.fault(self.cursor, RowCause::Alignment));
            };
            sizes.splice(at..=at, [1, sizes[at] - 1]);
        }
        for size in sizes {
            let items = size as u32;
            let word = if self.cursor > send.start {
                ExchangeWord::SendOff { items, offset: 0, control: send.control }
            } else {
                ExchangeWord::Send { items, address: send.item_address, control: send.control }
            };
            self.put(word)?;
        }
        Ok(())
    }
}

/// Pieces of `items`: the first send instruction takes 64, every continuation 4096.
fn plain_sizes(items: i32, started: bool) -> Vec<i32> {
    let (mut sizes, mut left) = (Vec::new(), items);
    while left > 0 {
        let most = if started || !sizes.is_empty() { SEND_OFF_MAX } else { SEND_MAX };
        sizes.push(left.min(most));
        left -= left.min(most);
    }
    sizes
}

fn merged(send: &Send, piece: i32, sent: i32, group: &Group) -> ExchangeWord {
    match (group.pic, group.xpic) {
        (Some(pic), Some(xpic)) => combined(piece, send.item_address + sent as u32, send.control, pic, xpic),
        (Some(pic), None) => ExchangeWord::SendPic { items: piece as u32, selector: 2 + pic.setting.selector(), value: pic.value },
        (None, xpic) => {
            let (selector, value) = xpic.map_or((0, 0), |xpic| (xpic.setting.selector(), xpic.value));
            ExchangeWord::SendPic { items: piece as u32, selector, value }
        }
    }
}

const fn combined(items: i32, address: u32, control: u32, pic: Control, xpic: Control) -> ExchangeWord {
    ExchangeWord::SendPicP {
        items: items as u32,
        address,
        control,
        pic_selector: pic.setting.selector(),
        pic: pic.value,
        xpic_selector: xpic.setting.selector(),
        xpic: xpic.value,
    }
}
