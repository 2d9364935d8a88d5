//! What each tile of a phase does when: its sends and its timed controls (machine.md c.5, c.7).

use ipu21::exchange_word::NEUTRAL;
use ipu21::route::{pair_route, route};
use ipu21::tile::{self, TileId};
use serde::{Deserialize, Serialize};

use crate::bound::RECEIVER_GUARD;
use crate::message::{Spot, TimedMessage, Width};

/// The setting a control changes. The first two are one instruction stream (XPIC), the last two the other (PIC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Setting {
    /// Incoming pointer, in 32-bit words.
    Pointer,
    /// Incoming format: 0 32-bit, 1 and 2 64-bit by direction.
    Format,
    /// Source of this tile, or neutral.
    Source,
    /// Source of the pair's 64-bit stream, or neutral.
    PairSource,
}

impl Setting {
    /// Whether it belongs to the PIC stream.
    #[must_use]
    pub const fn is_pic(self) -> bool {
        matches!(self, Self::Pointer | Self::Format)
    }

    /// Selector inside its stream.
    #[must_use]
    pub const fn selector(self) -> u32 {
        matches!(self, Self::Format | Self::PairSource) as u32
    }
}

/// A setting that takes effect at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Control {
    /// Event on the tile's counter; legal from 1 on.
    pub event: i32,
    /// What is set.
    pub setting: Setting,
    /// To what; 18 bits, 13 for sources.
    pub value: u32,
}

/// A send of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Send {
    /// Event of the first item.
    pub start: i32,
    /// Items.
    pub items: u32,
    /// Byte address / 4, or / 8 in pair mode.
    pub item_address: u32,
    /// Direction bits and width bit.
    pub control: u32,
}

/// Everything a tile's row does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileEvents {
    /// The tile.
    pub tile: TileId,
    /// By start event.
    pub sends: Vec<Send>,
    /// By event, PIC before XPIC.
    pub controls: Vec<Control>,
    /// Event at which the row may end.
    pub horizon: i32,
}

/// A message on its way into a tile.
#[derive(Clone)]
struct Arrival<'a> {
    select: i32,
    message: &'a TimedMessage,
    spot: &'a Spot,
}

#[derive(Clone, Default)]
struct Gathered<'a> {
    sends: Vec<Send>,
    arrivals: Vec<Arrival<'a>>,
    horizon: i32,
    takes_part: bool,
}

impl Gathered<'_> {
    fn last_until(&mut self, horizon: i32) {
        self.horizon = self.horizon.max(horizon);
        self.takes_part = true;
    }
}

/// Sends and controls of every tile that takes part, by tile; 64-bit senders' partners take part with a delay.
#[must_use]
pub fn lower(messages: &[TimedMessage]) -> Vec<TileEvents> {
    let mut tiles = vec![Gathered::default(); tile::COUNT];
    for message in messages {
        let sender = &mut tiles[message.source.tile.index()];
        sender.sends.push(send(message));
        sender.last_until(message.sender_horizon());
        if message.width == Width::Pair {
            let partner = &mut tiles[message.source.tile.partner().index()];
            partner.last_until(message.sender_horizon());
        }
        for spot in &message.destinations {
            let select = message.select(spot.tile);
            let receiver = &mut tiles[spot.tile.index()];
            receiver.arrivals.push(Arrival { select, message, spot });
            receiver.takes_part = true;
        }
    }
    let takes_part = |(_, gathered): &(TileId, Gathered<'_>)| gathered.takes_part;
    TileId::all().zip(tiles).filter(takes_part).map(|(tile, gathered)| events_of(tile, gathered)).collect()
}

fn send(message: &TimedMessage) -> Send {
    let item_address = message.source.address / message.width.bytes();
    Send { start: message.start as i32, items: message.items, item_address, control: message.control }
}

fn events_of(tile: TileId, mut gathered: Gathered<'_>) -> TileEvents {
    gathered.sends.sort_unstable();
    gathered.arrivals.sort_by_key(|arrival| arrival.select);
    let mut receiving = Receiving { controls: Vec::new(), next: None, horizon: gathered.horizon };
    for arrival in &gathered.arrivals {
        match arrival.message.width {
            Width::Word => receiving.words(arrival),
            Width::Pair => receiving.pairs(arrival),
        }
    }
    receiving.controls.sort_unstable();
    TileEvents { tile, sends: gathered.sends, controls: receiving.controls, horizon: receiving.horizon }
}

struct Receiving {
    controls: Vec<Control>,
    /// Where the pointer stands after the last arrival.
    next: Option<Spot>,
    horizon: i32,
}

impl Receiving {
    fn set(&mut self, event: i32, setting: Setting, value: u32) {
        self.controls.push(Control { event, setting, value });
    }

    fn words(&mut self, arrival: &Arrival<'_>) {
        let (select, items, spot) = (arrival.select, arrival.message.items as i32, *arrival.spot);
        let pointer = select + 52 + 2 * i32::from(spot.tile.physical().row());
        // Cutover: a select on the very event where the last selection ends replaces its neutral, the last source control listed.
        let cut = |last: &Control| last.event == select && last.setting == Setting::Source && last.value == NEUTRAL;
        if let Some(at) = self.controls.iter().rposition(|last| last.setting == Setting::Source).filter(|at| cut(&self.controls[*at])) {
            self.controls.remove(at);
        }
        self.set(select, Setting::Source, u32::from(arrival.message.source.tile.physical().get()));
        if self.next != Some(spot) {
            self.set(pointer, Setting::Pointer, spot.address / 4);
        }
        self.set(select + items, Setting::Source, NEUTRAL);
        self.next = Some(Spot { address: spot.address.wrapping_add(arrival.message.bytes()), ..spot });
        self.horizon = self.horizon.max(pointer + items + RECEIVER_GUARD);
    }

    fn pairs(&mut self, arrival: &Arrival<'_>) {
        let (select, items) = (arrival.select, arrival.message.items as i32);
        let (source, receiver) = (arrival.message.source.tile.physical(), arrival.spot.tile.physical());
        let format = select + 51 + 2 * i32::from(receiver.row());
        let early = pair_route(source, receiver).early == receiver;
        if early {
            self.set(select, Setting::PairSource, u32::from(source.get() ^ receiver.get() & 2));
            self.set(select + items, Setting::PairSource, NEUTRAL);
        }
        self.set(format, Setting::Format, route(source, receiver).direction.control());
        // In words even here: machine.md c.4 says byte/8 in 64-bit mode, but the rows that were compared with working ones have byte/4.
        self.set(format + 2, Setting::Pointer, arrival.spot.address / 4);
        self.set(format + items, Setting::Format, 0);
        self.next = None;
        let torn = if early { select + items } else { 0 };
        self.horizon = self.horizon.max(torn.max(format + items) + 7);
    }
}
