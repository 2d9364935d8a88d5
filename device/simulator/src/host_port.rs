//! The host port: what tiles send to it, the pages behind it, and who takes part in a host phase (machine.md e).

use ipu21::host::SLOT_BYTES;
use ipu21::memory::BASE;
use ipu21::tile::{COUNT, PhysTile};

use crate::fault::{Access, Cause, Step, fail};
use crate::memory::span;
use crate::tile::{State, Tile};

/// Format codes of word 0, bits 31:29.
const XREQ: u32 = 0;
const WRITE_SHORT: u32 = 4;
const WRITE_LONG: u32 = 5;
const READ_LONG: u32 = 7;
/// Largest payload of a write, bytes: one `send`.
const WRITE_MAX: u32 = 256;

/// Words that a tile sent to the port, taken apart when the tile waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketStream {
    words: Vec<u32>,
    /// The tile had arrived by `sync 15` when it sent the last of them.
    by_master: bool,
}

impl PacketStream {
    /// Appends words of a tile that arrived by `sync 15` or not.
    pub(crate) fn push(&mut self, words: &[u32], by_master: bool) {
        self.by_master = by_master;
        self.words.extend_from_slice(words);
    }

    /// Whether the next word belongs to a payload: the words so far end inside a packet.
    pub(crate) fn payload_expected(&self) -> bool {
        let mut rest = &self.words[..];
        while let [first, second, ..] = rest {
            let words = 2 + payload_words(*first, *second);
            if rest.len() < words as usize {
                return true;
            }
            rest = &rest[words as usize..];
        }
        false
    }
}

/// Payload words behind a header.
fn payload_words(word0: u32, word1: u32) -> u32 {
    match word0 >> 29 {
        WRITE_SHORT | WRITE_LONG => length(word0, word1) / 4,
        _ => 0,
    }
}

/// Bytes of a packet.
fn length(word0: u32, word1: u32) -> u32 {
    let field = word1 & 15;
    match word0 >> 29 {
        WRITE_LONG | READ_LONG => 64 * if field == 0 { 16 } else { field },
        _ => 4 * field,
    }
}

/// The host's side: pages, credits, and the tiles of the running host phase.
#[derive(Debug, Default)]
pub(crate) struct HostPort {
    pub(crate) pages: Vec<Vec<u8>>,
    /// Barriers of group 2 that the host permits.
    pub(crate) credits: u32,
    /// Barriers of group 1 that the host permits.
    pub(crate) credits_of_group_1: u32,
    announced: Vec<bool>,
    sent: Vec<bool>,
    finished: Vec<bool>,
    any: bool,
}

impl HostPort {
    /// No pages, no credits.
    pub(crate) fn new() -> HostPort {
        HostPort { announced: vec![false; COUNT], sent: vec![false; COUNT], finished: vec![false; COUNT], ..HostPort::default() }
    }

    /// The barriers that the host permits in zone 5 or 7 (machine.md d.1).
    pub(crate) fn credits_for(&mut self, zone: u32) -> &mut u32 {
        if zone == 5 { &mut self.credits_of_group_1 } else { &mut self.credits }
    }

    /// Handles every complete packet of a tile; a tile at `sync 0` goes on when its count is reached.
    pub(crate) fn serve(&mut self, tile: &mut Tile) -> Step {
        let words = std::mem::take(&mut tile.host_words.words);
        let mut rest = &words[..];
        while let [word0, word1, behind @ ..] = rest {
            let payload = payload_words(*word0, *word1) as usize;
            if behind.len() < payload {
                break;
            }
            self.any = true;
            self.packet(tile, *word0, *word1, &behind[..payload])?;
            rest = &behind[payload..];
        }
        tile.host_words.words = rest.to_vec();
        self.settle_count(tile)
    }

    fn settle_count(&self, tile: &mut Tile) -> Step {
        let expected = tile.csr[ipu21::csr::INCOMING_DCOUNT as usize];
        if tile.arrived > expected && tile.state == State::Receiving {
            return fail(Cause::CountTooGreat { expected, arrived: tile.arrived });
        }
        if tile.state == State::Receiving && tile.arrived == expected {
            tile.state = State::Running;
            tile.clock += 1;
        }
        Ok(())
    }

    fn packet(&mut self, tile: &mut Tile, word0: u32, word1: u32, payload: &[u32]) -> Step {
        let malformed = |rule| fail(Cause::HostPacket { word0, word1, rule });
        let format = word0 >> 29;
        if format == XREQ {
            return self.announce(tile, word0, word1);
        }
        if !(WRITE_SHORT..=READ_LONG).contains(&format) {
            return malformed("the format is not simulated");
        }
        if word0 >> 15 & 0x7ff != u32::from(tile.id.get()) {
            return malformed("the tile field is not the sender");
        }
        if word1 >> 31 != u32::from(tile.id.get()) & 1 {
            return malformed("the lane flag is not bit 0 of the sender");
        }
        let long = format == WRITE_LONG || format == READ_LONG;
        let offset = (u64::from(word1) >> 4 & 0x7ff_ffff) * if long { 64 } else { 4 };
        let bytes = length(word0, word1);
        if bytes != 0 && offset / u64::from(SLOT_BYTES) != (offset + u64::from(bytes) - 1) / u64::from(SLOT_BYTES) {
            return malformed("the packet crosses a multiple of 4096");
        }
        self.sent[tile.id.index()] = true;
        if format == WRITE_SHORT || format == WRITE_LONG {
            if bytes == 0 || bytes > WRITE_MAX {
                return malformed("a write carries 4 to 256 bytes");
            }
            return self.write(offset, bytes, payload);
        }
        if word0 >> 26 & 3 == 3 {
            self.finished[tile.id.index()] = true;
        }
        self.read(tile, BASE + 32 * (word0 & 0x7fff), offset, bytes)
    }

    /// XREQ (machine.md e.4): bit 2*row + lane of the owner's group.
    fn announce(&mut self, owner: &Tile, word0: u32, word1: u32) -> Step {
        let malformed = |rule| fail(Cause::HostPacket { word0, word1, rule });
        if owner.id.group_owner() != owner.id {
            return malformed("only the owner of a group announces");
        }
        if !owner.host_words.by_master {
            return malformed("the owner did not arrive by sync 15");
        }
        if word0 >> 24 != 0 || word1 >> 22 != 0 {
            return malformed("bits outside the 46 tiles of a group");
        }
        let set = u64::from(word0) | u64::from(word1) << 24;
        for bit in (0..46u16).filter(|bit| set >> bit & 1 == 1) {
            let member = owner.id.get() + 64 * (bit / 2) + 2 * (bit % 2);
            if let Some(member) = PhysTile::new(member) {
                self.announced[member.index()] = true;
            }
        }
        Ok(())
    }

    /// The page and the offset inside it of a flat host offset.
    fn locate(&self, offset: u64, bytes: u32) -> Step<(usize, usize)> {
        let mut first = 0u64;
        for (number, page) in self.pages.iter().enumerate() {
            let end = first + page.len() as u64;
            if offset >= first && offset + u64::from(bytes) <= end && offset < end {
                return Ok((number, (offset - first) as usize));
            }
            first = end;
        }
        fail(Cause::HostOffsetOutside { offset, bytes })
    }

    fn write(&mut self, offset: u64, bytes: u32, payload: &[u32]) -> Step {
        let (page, at) = self.locate(offset, bytes)?;
        let target = &mut self.pages[page][at..at + bytes as usize];
        for (chunk, word) in target.chunks_exact_mut(4).zip(payload) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        Ok(())
    }

    fn read(&mut self, tile: &mut Tile, address: u32, offset: u64, bytes: u32) -> Step {
        if bytes == 0 {
            tile.arrived += 1;
            return Ok(());
        }
        let (page, at) = self.locate(offset, bytes)?;
        let source = &self.pages[page][at..at + bytes as usize];
        let words: Vec<u32> = source.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        if span(address, bytes).is_err() || tile.memory.write_words(address, &words).is_err() {
            return fail(Cause::AddressOutside { address, access: Access::Host });
        }
        tile.arrived += words.len() as u32;
        Ok(())
    }

    /// Closes a host phase: who sent must have been announced, who was announced must have finished a stream.
    pub(crate) fn close(&mut self, tiles: &[Tile]) -> Result<(), (usize, Cause)> {
        if !self.any {
            return Ok(());
        }
        for (index, tile) in tiles.iter().enumerate() {
            if !tile.host_words.words.is_empty() {
                return Err((index, Cause::PacketIncomplete { words: tile.host_words.words.len() as u32 }));
            }
            if self.sent[index] && !self.announced[index] {
                return Err((index, Cause::NotAnnounced));
            }
            if self.announced[index] && !self.finished[index] {
                return Err((index, Cause::AnnouncedWithoutStream));
            }
        }
        for flags in [&mut self.announced, &mut self.sent, &mut self.finished] {
            flags.fill(false);
        }
        self.any = false;
        Ok(())
    }
}
