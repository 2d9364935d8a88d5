//! The host port as tiles see it (machine.md e): packet headers, participation requests, splitting, host phases word for word.

use serde::{Deserialize, Serialize};

use crate::csr;
use crate::exchange_word::{ExchangeWord, NEUTRAL, RETURN};
use crate::isa::{self, FormId, form};
use crate::memory;
use crate::tile::{PhysTile, TileId};

/// Bytes no packet crosses, and the size of a tile's slot on the data page.
pub const SLOT_BYTES: u32 = 4096;
/// Largest reply to a read packet, bytes.
pub const READ_MAX: u32 = 1024;
/// Largest payload of a write packet, bytes.
pub const WRITE_MAX: u32 = 256;
/// Where participation words are sent from.
pub const XREQ_ADDRESS: u32 = 0x50000;
/// Where packet headers are sent from.
pub const HEADERS_ADDRESS: u32 = 0x50008;
/// Where the closing read of a write stream points.
pub const CLOSE_ADDRESS: u32 = 0x50160;
/// Where read data lands before it is copied to its place.
pub const STAGING_ADDRESS: u32 = 0x50180;
/// Events a payload takes at least.
pub const PAYLOAD_EVENTS_MIN: u32 = 18;
/// Source-select value of the host port of group 0; the group's owner is added.
pub const MUX_BASE: u32 = 0x600;

/// The register host phases work with.
const REGISTER: u32 = 8;

/// Source-select value of a tile's host port (machine.md a.8).
#[must_use]
pub const fn mux(tile: PhysTile) -> u32 {
    MUX_BASE + tile.group_owner().get() as u32
}

/// Offset of a tile's slot from the first page on: page 0 has 4096 bytes, the data page follows.
#[must_use]
pub const fn slot_offset(slot: u32) -> u32 {
    SLOT_BYTES + SLOT_BYTES * slot
}

/// Format of a packet, bits 31:29 of its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Format {
    /// Participation request of the loader path.
    Xreq,
    /// Flow control.
    Xfc,
    /// Tile write, short.
    TileWriteShort,
    /// Tile write, long.
    TileWriteLong,
    /// Write to the host, units of 4 bytes.
    WriteShort,
    /// Write to the host, units of 64 bytes.
    WriteLong,
    /// Read from the host, units of 4 bytes.
    ReadShort,
    /// Read from the host, units of 64 bytes.
    ReadLong,
}

const FORMATS: [Format; 8] = [
    Format::Xreq,
    Format::Xfc,
    Format::TileWriteShort,
    Format::TileWriteLong,
    Format::WriteShort,
    Format::WriteLong,
    Format::ReadShort,
    Format::ReadLong,
];

impl Format {
    const fn shift(self) -> u32 {
        if matches!(self, Self::WriteLong | Self::ReadLong | Self::TileWriteLong) { 6 } else { 2 }
    }

    const fn is_read(self) -> bool {
        matches!(self, Self::ReadShort | Self::ReadLong)
    }
}

/// The two header words of a packet, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of packet.
    pub format: Format,
    /// Last read of a stream.
    pub last: bool,
    /// Sending tile, as the packet says.
    pub tile: u16,
    /// Where a reply goes, byte address; reads only.
    pub tile_address: u32,
    /// Bit 0 of the sender's physical id.
    pub lane: bool,
    /// Byte offset in the host's pages.
    pub host_offset: u32,
    /// Bytes; a long packet of 0 units has 1024.
    pub bytes: u32,
}

impl Header {
    /// The header words.
    #[must_use]
    pub fn encode(self) -> [u32; 2] {
        let format = FORMATS.iter().position(|format| *format == self.format).unwrap_or(0) as u32;
        let last = if self.last { 3 << 26 } else { 0 };
        let read = if self.format.is_read() { last | self.tile_address.wrapping_sub(memory::BASE) >> 5 & 0x7fff } else { 0 };
        let shift = self.format.shift();
        [
            format << 29 | u32::from(self.tile & 0x7ff) << 15 | read,
            u32::from(self.lane) << 31 | (self.host_offset >> shift & 0x7ff_ffff) << 4 | self.bytes >> shift & 15,
        ]
    }

    /// Reads two header words. Every pair of words is some header; whether it makes sense is the receiver's business.
    #[must_use]
    pub fn decode(words: [u32; 2]) -> Self {
        let format = FORMATS[(words[0] >> 29) as usize];
        let (shift, units) = (format.shift(), words[1] & 15);
        let bytes = if format.shift() == 6 && units == 0 { READ_MAX } else { units << shift };
        Self {
            format,
            last: words[0] >> 26 & 3 == 3,
            tile: (words[0] >> 15 & 0x7ff) as u16,
            tile_address: memory::BASE + (words[0] & 0x7fff) * 32,
            lane: words[1] >> 31 == 1,
            host_offset: (words[1] >> 4 & 0x7ff_ffff) << shift,
            bytes,
        }
    }
}

/// A piece of a transfer that one packet moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Byte address on the tile.
    pub tile_address: u32,
    /// Byte offset in the host's pages.
    pub host_offset: u32,
    /// Bytes.
    pub bytes: u32,
}

impl Chunk {
    const fn long(self) -> bool {
        self.host_offset.is_multiple_of(64) && self.bytes >= 64
    }
}

/// Splits a range of words into packets (machine.md e.3): none crosses 4096 bytes; long ones are multiples of 64 at most `largest` long.
#[must_use]
pub fn chunks(whole: Chunk, largest: u32) -> Vec<Chunk> {
    let mut rest = whole;
    let mut pieces = Vec::new();
    while rest.bytes > 0 {
        let room = rest.bytes.min(SLOT_BYTES - rest.host_offset % SLOT_BYTES);
        let bytes = if rest.host_offset.is_multiple_of(64) && room >= 64 {
            room.min(largest) / 64 * 64
        } else if room <= 60 {
            room
        } else {
            32
        };
        pieces.push(Chunk { bytes, ..rest });
        rest = Chunk { tile_address: rest.tile_address + bytes, host_offset: rest.host_offset + bytes, bytes: rest.bytes - bytes };
    }
    pieces
}

/// The two words with which a group owner announces the group's targets (machine.md e.4).
#[must_use]
pub fn participation(targets: &[PhysTile]) -> [u32; 2] {
    let mut words = [0, 0];
    for tile in targets {
        let bit = 2 * u32::from(tile.row()) + u32::from(tile.lane());
        if bit < 24 { words[0] |= 1 << bit } else { words[1] |= 1 << (bit - 24) }
    }
    words
}

/// The targets of an owner's group that two participation words announce; bits that name no tile are ignored.
#[must_use]
pub fn announced(owner: PhysTile, words: [u32; 2]) -> Vec<PhysTile> {
    let group = |bit: u16| PhysTile::new(64 * (bit / 2) + owner.group_owner().get() + 2 * (bit % 2));
    (0..46).filter(|bit| if *bit < 24 { words[0] >> bit & 1 == 1 } else { words[1] >> (bit - 24) & 1 == 1 }).filter_map(group).collect()
}

/// What a target does in a host phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Transfer {
    /// Host to tile.
    Read {
        /// Where the data lands, a multiple of 32 when more than one packet.
        tile_address: u32,
        /// Byte offset in the host's pages.
        host_offset: u32,
        /// Bytes, a multiple of 4.
        bytes: u32,
    },
    /// Tile to host.
    Write {
        /// Where the data lies.
        tile_address: u32,
        /// Byte offset in the host's pages.
        host_offset: u32,
        /// Bytes, a multiple of 4.
        bytes: u32,
    },
}

/// A host phase of a tile that takes part: as the group's owner, as a target, or both (machine.md e.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPhase {
    /// Supervisor instructions, a closing `br $m10` included.
    pub instructions: Vec<u32>,
    /// Participation words for [`XREQ_ADDRESS`]; empty unless the tile announces targets.
    pub participation: Vec<u32>,
    /// Packet headers for [`HEADERS_ADDRESS`].
    pub headers: Vec<u32>,
}

/// The words of a host phase: `targets` are the group's targets when `tile` is the announcing owner, else empty.
#[must_use]
pub fn phase(tile: PhysTile, transfer: Option<Transfer>, targets: &[PhysTile]) -> HostPhase {
    let mut phase = HostPhase::default();
    let code = &mut phase.instructions;
    select(code, mux(tile));
    code.push(word(form::SYNC_ZI4, &[if targets.is_empty() { 7 } else { 15 }]));
    let (expected, body, headers) = match transfer {
        None => (None, Vec::new(), Vec::new()),
        Some(Transfer::Read { tile_address, host_offset, bytes }) => read_body(tile, Chunk { tile_address, host_offset, bytes }),
        Some(Transfer::Write { tile_address, host_offset, bytes }) => write_body(tile, Chunk { tile_address, host_offset, bytes }),
    };
    if let Some(expected) = expected {
        code.push(word(form::SETZI_M_ZI20, &[REGISTER, expected]));
        code.push(word(form::PUT_ZI8_M, &[csr::INCOMING_DCOUNT, REGISTER]));
    }
    if !targets.is_empty() {
        code.push(send(2, XREQ_ADDRESS));
        phase.participation = participation(targets).to_vec();
    }
    code.extend(body);
    code.push(word(form::SYNC_ZI4, &[7]));
    select(code, NEUTRAL);
    code.push(RETURN);
    phase.headers = headers;
    phase
}

fn read_body(tile: PhysTile, whole: Chunk) -> (Option<u32>, Vec<u32>, Vec<u32>) {
    let pieces = chunks(whole, READ_MAX);
    let mut headers = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let format = if piece.long() { Format::ReadLong } else { Format::ReadShort };
        headers.extend(header(tile, format, *piece, index + 1 == pieces.len()));
    }
    let mut body = vec![send(2, HEADERS_ADDRESS)];
    body.extend((1..pieces.len()).map(|_| exchange(ExchangeWord::SendOff { items: 2, offset: 0, control: 3 })));
    body.push(word(form::SYNC_ZI4, &[0]));
    (Some(whole.bytes / 4), body, headers)
}

fn write_body(tile: PhysTile, whole: Chunk) -> (Option<u32>, Vec<u32>, Vec<u32>) {
    let (mut body, mut headers) = (Vec::new(), Vec::new());
    for piece in chunks(whole, WRITE_MAX) {
        let format = if piece.long() { Format::WriteLong } else { Format::WriteShort };
        body.push(send(2, HEADERS_ADDRESS + 4 * headers.len() as u32));
        headers.extend(header(tile, format, piece, false));
        body.push(send(piece.bytes / 4, piece.tile_address));
        if piece.bytes / 4 < PAYLOAD_EVENTS_MIN {
            body.push(exchange(ExchangeWord::Delay { events: PAYLOAD_EVENTS_MIN - piece.bytes / 4 }));
        }
    }
    body.push(send(2, HEADERS_ADDRESS + 4 * headers.len() as u32));
    headers.extend(header(tile, Format::ReadShort, Chunk { tile_address: CLOSE_ADDRESS, host_offset: 0, bytes: 0 }, true));
    body.push(word(form::SYNC_ZI4, &[0]));
    (Some(1), body, headers)
}

fn header(tile: PhysTile, format: Format, chunk: Chunk, last: bool) -> [u32; 2] {
    Header {
        format,
        last,
        tile: tile.get(),
        tile_address: chunk.tile_address,
        lane: tile.get() & 1 == 1,
        host_offset: chunk.host_offset,
        bytes: chunk.bytes,
    }
    .encode()
}

fn select(code: &mut Vec<u32>, value: u32) {
    code.push(word(form::SETZI_M_ZI20, &[REGISTER, value]));
    code.push(word(form::PUT_ZI8_M, &[csr::INCOMING_MUX, REGISTER]));
}

fn send(items: u32, address: u32) -> u32 {
    exchange(ExchangeWord::Send { items, address: address / 4, control: 3 })
}

fn exchange(instruction: ExchangeWord) -> u32 {
    instruction.encode().expect("counts of packets fit their fields").word()
}

fn word(id: FormId, operands: &[u32]) -> u32 {
    isa::encode(id, operands, false).expect("operands of host phases are in range").word()
}

/// The tiles that must announce: one owner for every group with a target, ascending, each with its targets.
#[must_use]
pub fn owners(targets: impl IntoIterator<Item = TileId>) -> Vec<(PhysTile, Vec<PhysTile>)> {
    let mut groups = std::collections::BTreeMap::<PhysTile, Vec<PhysTile>>::new();
    for tile in targets {
        groups.entry(tile.physical().group_owner()).or_default().push(tile.physical());
    }
    for group in groups.values_mut() {
        group.sort_unstable();
    }
    groups.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::table_rows;

    fn number(text: &str) -> u32 {
        match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).unwrap(),
            None => text.parse().unwrap(),
        }
    }

    fn tiles(text: &str) -> Vec<PhysTile> {
        text.split(',').filter(|part| *part != "-").map(|part| PhysTile::new(part.parse().unwrap()).unwrap()).collect()
    }

    fn words(text: &str) -> Vec<u32> {
        text.split(' ').filter(|part| *part != "-" && !part.is_empty()).map(number).collect()
    }

    #[test]
    fn packet_headers_are_the_recorded_words_both_ways() {
        let rows: Vec<_> = table_rows(include_str!("../data/vectors/host_packets.tsv")).skip(1).collect();
        assert_eq!(rows.len(), 15);
        for row in rows {
            let format = match row[0] {
                "XPWRS" => Format::WriteShort,
                "XPWRL" => Format::WriteLong,
                "XPRDS" => Format::ReadShort,
                _ => Format::ReadLong,
            };
            let tile_address = if row[2] == "-" { memory::BASE } else { number(row[2]) };
            let tile = number(row[1]) as u16;
            let last = format.is_read() && row[5] == "1";
            let header =
                Header { format, last, tile, tile_address, lane: tile & 1 == 1, host_offset: number(row[3]), bytes: number(row[4]) };
            let recorded = [number(row[6]), number(row[7])];
            assert_eq!(header.encode(), recorded, "{row:?}");
            assert_eq!(Header::decode(recorded), header, "{row:?}");
        }
    }

    #[test]
    fn ranges_are_split_as_recorded() {
        for row in table_rows(include_str!("../data/vectors/host_chunks.tsv")).skip(1) {
            let largest = if row[0] == "h2d" { READ_MAX } else { WRITE_MAX };
            let whole = Chunk { tile_address: number(row[1]), host_offset: number(row[2]), bytes: number(row[3]) };
            let text: Vec<String> = chunks(whole, largest)
                .iter()
                .map(|piece| format!("{:x}:{:x}:{}", piece.tile_address, piece.host_offset, piece.bytes))
                .collect();
            assert_eq!(text.join(" "), row[4], "{whole:?}");
        }
    }

    #[test]
    fn participation_words_are_the_recorded_ones_both_ways() {
        for row in table_rows(include_str!("../data/vectors/xreq.tsv")).skip(1) {
            let targets = tiles(row[0]);
            let recorded = [number(row[2]), number(row[3])];
            assert_eq!(participation(&targets), recorded, "{row:?}");
            assert_eq!(u32::from(targets[0].group_owner().get()), number(row[1]));
            assert_eq!(announced(targets[0].group_owner(), recorded), targets);
        }
    }

    #[test]
    fn host_phases_are_the_recorded_words() {
        let rows: Vec<_> = table_rows(include_str!("../data/vectors/host_phases.tsv")).skip(1).collect();
        assert_eq!(rows.len(), 7);
        for row in rows {
            let (tile_address, host_offset, bytes) = (number(row[2]), number(row[3]), number(row[4]));
            let transfer = match row[0] {
                "h2d" => Some(Transfer::Read { tile_address, host_offset, bytes }),
                "d2h" => Some(Transfer::Write { tile_address, host_offset, bytes }),
                _ => None,
            };
            let made = phase(PhysTile::new(number(row[1]) as u16).unwrap(), transfer, &tiles(row[5]));
            assert_eq!([made.participation, made.headers].concat(), words(row[6]), "{row:?}");
            assert_eq!(made.instructions, words(row[7]), "{row:?}");
        }
    }
}
