//! The recorded cases of `data/rows.toml` and `data/illegal.toml`.
#![allow(dead_code, reason = "each test file reads its own part of a case")]

use exchange::{BufferId, Spot, TimedMessage, Width};
use ipu21::tile::TileId;
use serde::Deserialize;

#[derive(Deserialize)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) violates: Vec<String>,
    pub(crate) message: Vec<Message>,
    #[serde(default)]
    pub(crate) row: Vec<Row>,
}

#[derive(Deserialize)]
pub(crate) struct Message {
    /// Written behind the last message of a case, so it is that message's in TOML.
    #[serde(default)]
    row_base: Vec<At>,
    src: u16,
    width: u32,
    items: u32,
    src_addr: u32,
    start_event: u32,
    sctl: u32,
    dst: Vec<At>,
    #[serde(default)]
    pub(crate) select_shift: i32,
    #[serde(default)]
    pub(crate) pointer_shift: i32,
    #[serde(default)]
    pub(crate) drop_neutral: bool,
}

#[derive(Deserialize)]
pub(crate) struct At {
    pub(crate) tile: u16,
    pub(crate) addr: u32,
}

#[derive(Deserialize)]
pub(crate) struct Row {
    pub(crate) tile: u16,
    pub(crate) horizon: u32,
    pub(crate) words: Vec<u32>,
}

impl Case {
    /// Where rows lie, for cases that say so.
    pub(crate) fn row_bases(&self) -> Vec<&At> {
        self.message.iter().flat_map(|message| &message.row_base).collect()
    }

    pub(crate) fn messages(&self) -> Vec<TimedMessage> {
        self.message.iter().map(Message::timed).collect()
    }
}

impl Message {
    fn timed(&self) -> TimedMessage {
        TimedMessage {
            source: spot(self.src, self.src_addr),
            width: if self.width == 64 { Width::Pair } else { Width::Word },
            items: self.items,
            start: self.start_event,
            control: self.sctl,
            destinations: self.dst.iter().map(|at| spot(at.tile, at.addr)).collect(),
        }
    }
}

pub(crate) fn spot(tile: u16, address: u32) -> Spot {
    Spot { tile: TileId::new(tile).expect("a logical tile number"), buffer: BufferId(0), address }
}

pub(crate) fn legal() -> Vec<Case> {
    toml::from_str::<File>(include_str!("../data/rows.toml")).expect("rows.toml").case
}

pub(crate) fn illegal() -> Vec<Case> {
    toml::from_str::<File>(include_str!("../data/illegal.toml")).expect("illegal.toml").case
}
