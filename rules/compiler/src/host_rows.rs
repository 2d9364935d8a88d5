//! Packet words and instruction rows of host phases (machine.md e.3 to e.5).
//!
//! In: a batch of the [`HostPlan`], a tile. Out: [`HostRow`], the words to stage at the start of the staging window and the row
//! that sends them. Only the payload addresses of outgoing data depend on placement; sizes never do.

use std::collections::BTreeSet;

use exchange::BufferId;
use ipu21::{
    exchange_word::{ExchangeWord, NEUTRAL},
    host::{self, Chunk, Format, Header, Transfer},
    tile::{PhysTile, TileId},
};

use crate::{
    host_plan::{Batch, HostPlan, Part, Way},
    supervisor::Listing,
    tile_set::TileSet,
};

/// Words of a packet header.
const HEADER_WORDS: u32 = 2;
/// Both directions (machine.md c.4).
const BOTH: u32 = 3;
/// Register of host rows, as in the recorded ones.
const REGISTER: u32 = 8;
/// Barrier zones (machine.md d.1).
const ZONE_RECEIVED: u32 = 0;
const ZONE_HOST: u32 = 7;
const ZONE_HOST_OWNER: u32 = 15;

/// What a tile stages and executes in a host phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRow {
    /// Words for the start of the staging window: two participation words, then two for each packet.
    pub staged: Vec<u32>,
    /// Instructions, ending with a return.
    pub row: Vec<u32>,
}

/// Tiles that execute a row in a batch: those with parts and the owners of their groups.
pub(crate) fn participants(batch: &Batch) -> TileSet {
    let mut tiles = TileSet::EMPTY;
    for share in &batch.shares {
        tiles.insert(share.tile);
        tiles.insert(share.tile.physical().group_owner().logical());
    }
    tiles
}

/// The row that every tile executes in front of its program: it meets the host once (machine.md d.7).
pub fn greeting(tile: TileId) -> Vec<u32> {
    let mut listing = Listing::default();
    select(&mut listing, host::mux(tile.physical()));
    listing.sync(ZONE_HOST);
    select(&mut listing, NEUTRAL);
    listing.return_();
    listing.words
}

/// Staged words and row of a tile; `None` when it takes no part.
pub fn host_row(plan: &HostPlan, way: Way, batch: &Batch, tile: TileId, address_of: impl Fn(BufferId) -> u32) -> Option<HostRow> {
    let group = targets_of_owner(batch, tile.physical());
    let parts = batch.parts_of(tile);
    let slot = plan.host_offset(tile).unwrap_or_default();
    let takes_part = !group.is_empty() || !parts.is_empty();
    takes_part.then(|| row(tile.physical(), &group, way, slot, parts, address_of))
}

/// The targets of a batch in the group of `tile`, when it owns that group.
fn targets_of_owner(batch: &Batch, tile: PhysTile) -> Vec<PhysTile> {
    if tile.group_owner() != tile {
        return Vec::new();
    }
    let targets = batch.shares.iter().map(|share| share.tile.physical()).filter(|target| target.group_owner() == tile);
    targets.collect::<BTreeSet<PhysTile>>().into_iter().collect()
}

/// `group`: the targets that `tile` announces as their owner; `parts`: its own, of the slot at host offset `slot`.
fn row(tile: PhysTile, group: &[PhysTile], way: Way, slot: u32, parts: &[Part], address_of: impl Fn(BufferId) -> u32) -> HostRow {
    if way == Way::ToHost && !parts.is_empty() {
        return Writer::new(tile).row(group, slot, parts, address_of);
    }
    // One range of the slot; the replies land behind each other in the staging window.
    let read = parts.last().map(|last| Transfer::Read {
        tile_address: host::STAGING_ADDRESS,
        host_offset: slot,
        bytes: last.slot_offset + last.bytes,
    });
    let phase = host::phase(tile, read, group);
    let mut staged = if phase.participation.is_empty() { vec![0; 2] } else { phase.participation };
    staged.extend(phase.headers);
    HostRow { staged, row: phase.instructions }
}

fn select(listing: &mut Listing, source: u32) {
    listing.set(REGISTER, source);
    listing.put(ipu21::csr::INCOMING_MUX, REGISTER);
}

/// A row that sends several places of tile memory to the slot.
struct Writer {
    listing: Listing,
    staged: Vec<u32>,
    tile: PhysTile,
}

impl Writer {
    fn new(tile: PhysTile) -> Self {
        Self { listing: Listing::default(), staged: vec![0; 2], tile }
    }

    fn row(mut self, group: &[PhysTile], slot: u32, parts: &[Part], address_of: impl Fn(BufferId) -> u32) -> HostRow {
        select(&mut self.listing, host::mux(self.tile));
        self.listing.sync(if group.is_empty() { ZONE_HOST } else { ZONE_HOST_OWNER });
        self.listing.set(REGISTER, 1);
        self.listing.put(ipu21::csr::INCOMING_DCOUNT, REGISTER);
        if !group.is_empty() {
            self.staged = host::participation(group).to_vec();
            self.send(HEADER_WORDS, host::XREQ_ADDRESS);
        }
        for part in parts {
            let tile_address = address_of(part.place.buffer) + part.place.offset;
            let whole = Chunk { tile_address, host_offset: slot + part.slot_offset, bytes: part.bytes };
            host::chunks(whole, host::WRITE_MAX).into_iter().for_each(|chunk| self.packet(chunk));
        }
        self.close();
        self.listing.sync(ZONE_HOST);
        select(&mut self.listing, NEUTRAL);
        self.listing.return_();
        HostRow { staged: self.staged, row: self.listing.words }
    }

    fn packet(&mut self, chunk: Chunk) {
        let long = chunk.host_offset.is_multiple_of(64) && chunk.bytes >= 64;
        self.header(if long { Format::WriteLong } else { Format::WriteShort }, chunk, false);
        let words = chunk.bytes / 4;
        self.send(words, chunk.tile_address);
        if words < host::PAYLOAD_EVENTS_MIN {
            self.exchange(ExchangeWord::Delay { events: host::PAYLOAD_EVENTS_MIN - words });
        }
    }

    /// An empty read closes the stream.
    fn close(&mut self) {
        self.header(Format::ReadShort, Chunk { tile_address: host::CLOSE_ADDRESS, host_offset: 0, bytes: 0 }, true);
        self.listing.sync(ZONE_RECEIVED);
    }

    fn header(&mut self, format: Format, chunk: Chunk, last: bool) {
        let tile = self.tile.get();
        let Chunk { tile_address, host_offset, bytes } = chunk;
        let header = Header { format, last, tile, tile_address, lane: tile & 1 == 1, host_offset, bytes };
        let address = host::XREQ_ADDRESS + self.staged.len() as u32 * 4;
        self.staged.extend(header.encode());
        self.send(HEADER_WORDS, address);
    }

    fn send(&mut self, items: u32, address: u32) {
        self.exchange(ExchangeWord::Send { items, address: address / 4, control: BOTH });
    }

    fn exchange(&mut self, word: ExchangeWord) {
        self.listing.data(word.encode().expect("counts and addresses of host rows are in range").word());
    }
}

#[cfg(test)]
mod tests {
    use exchange::BufferId;

    use super::*;
    use crate::{host_plan::Share, program::Operand};

    /// One line of the recorded table.
    struct Case {
        role: String,
        physical: PhysTile,
        address: u32,
        host_offset: u32,
        bytes: u32,
        targets: Vec<PhysTile>,
        staged: Vec<u32>,
        row: Vec<u32>,
    }

    fn hex(text: &str) -> u32 {
        u32::from_str_radix(text.trim_start_matches("0x"), 16).expect("hexadecimal")
    }

    fn physical(text: &str) -> PhysTile {
        PhysTile::new(text.parse().expect("a number")).expect("a tile")
    }

    fn cases() -> Vec<Case> {
        let lines = include_str!("../tests/data/host_phases.tsv").lines();
        let recorded = lines.filter(|line| !line.starts_with('#') && !line.starts_with("role"));
        recorded
            .map(|line| {
                let field: Vec<&str> = line.split('\t').collect();
                Case {
                    role: field[0].to_owned(),
                    physical: physical(field[1]),
                    address: hex(field[2]),
                    host_offset: hex(field[3]),
                    bytes: field[4].parse().expect("a size"),
                    targets: if field[5] == "-" { Vec::new() } else { field[5].split(',').map(physical).collect() },
                    staged: field[6].split(' ').map(hex).collect(),
                    row: field[7].split(' ').map(hex).collect(),
                }
            })
            .collect()
    }

    /// The row of a case, with the tile's slot moved to where the case has its data.
    fn row_of(case: &Case) -> HostRow {
        let way = if case.role == "d2h" { Way::ToHost } else { Way::ToTiles };
        let part =
            Part { binding: 0, file_offset: 0, slot_offset: 0, place: Operand { buffer: BufferId(0), offset: 0 }, bytes: case.bytes };
        let parts = if case.bytes > 0 { vec![part] } else { Vec::new() };
        row(case.physical, &case.targets, way, case.host_offset, &parts, |_| case.address)
    }

    #[test]
    fn rows_and_packet_words_are_the_recorded_ones() {
        let cases = cases();
        assert_eq!(cases.len(), 7);
        for case in &cases {
            let made = row_of(case);
            // Without targets of its own a tile stages no participation words; the table lists packet words only.
            let staged = if case.targets.is_empty() { &made.staged[2..] } else { &made.staged[..] };
            assert_eq!(staged, case.staged, "packet words of {} {}", case.role, case.physical);
            assert_eq!(made.row, case.row, "row of {} {}", case.role, case.physical);
        }
    }

    #[test]
    fn owners_without_data_announce_their_group_and_others_stay_away() {
        let target = physical("66").logical();
        let part = Part { binding: 0, file_offset: 0, slot_offset: 0, place: Operand { buffer: BufferId(0), offset: 0 }, bytes: 64 };
        let batch = Batch { shares: vec![Share { tile: target, parts: vec![part] }] };
        let plan = HostPlan { participants: vec![target], ..HostPlan::default() };
        let numbers: Vec<u16> = participants(&batch).iter().map(|tile| tile.physical().get()).collect();
        assert_eq!(numbers, [0, 66]);
        let row = |tile: &str| host_row(&plan, Way::ToTiles, &batch, physical(tile).logical(), |_| 0);
        assert_eq!(row("0").map(|row| row.staged), Some(vec![1 << 3, 0]));
        assert_eq!(row("2"), None);
    }
}
