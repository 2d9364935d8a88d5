//! Memory of one tile: 4 KiB pages, copied from shared image pages when first written, with one "written" bit per word.
//!
//! There are no sub-word stores in the ISA, so a bit for each 32-bit word is exact. A word nobody wrote reads as poison: a
//! value that depends on the seed, the tile and the address alone.

use std::fmt;
use std::sync::Arc;

pub(crate) use ipu21::memory::{BASE, END, REGION1 as REGION_1};

use crate::code::{BLOCK_BYTES, Block};
use crate::fault::{Access, Cause, Step, fail};

/// Bytes of a page.
pub(crate) const PAGE_BYTES: u32 = 4096;
/// Pages of a tile.
pub(crate) const PAGES: usize = ((END - BASE) / PAGE_BYTES) as usize;

const PAGE_DOUBLES: usize = PAGE_BYTES as usize / 8;
const PAGE_MASKS: usize = PAGE_BYTES as usize / 4 / 64;

/// One page: little-endian 64-bit words, and a bit for each 32-bit word that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    doubles: [u64; PAGE_DOUBLES],
    written: [u64; PAGE_MASKS],
}

/// What stands where a page should be.
#[derive(Clone, Debug)]
enum Slot {
    /// Nobody wrote here.
    Poison,
    /// An image page, shared by tiles.
    Shared(Arc<Page>),
    /// This tile's own copy.
    Own(Box<Page>),
}

/// Memory of one tile.
#[derive(Debug)]
pub(crate) struct TileMemory {
    slots: Vec<Slot>,
    /// Predecoded instruction blocks of region 0 by number, grown on demand; a store drops its block.
    code: Vec<Option<Arc<Block>>>,
    salt: u64,
}

/// A read from outside that cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFault {
    /// The span is not inside tile memory.
    Outside {
        /// First byte.
        address: u32,
        /// Bytes.
        bytes: u32,
    },
    /// Nobody wrote this word.
    Poison {
        /// Byte address of the word.
        address: u32,
    },
}

impl std::error::Error for ReadFault {}

impl fmt::Display for ReadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadFault::Outside { address, bytes } => write!(f, "{bytes} bytes at {address:#x} are not inside tile memory"),
            ReadFault::Poison { address } => write!(f, "memory {address:#x} was never written"),
        }
    }
}

impl Page {
    /// A page of poison, nothing written.
    pub(crate) fn poison(salt: u64, number: usize) -> Page {
        let first = number as u64 * PAGE_DOUBLES as u64;
        let mut doubles = [0; PAGE_DOUBLES];
        for (i, double) in doubles.iter_mut().enumerate() {
            *double = scramble(salt ^ (first + i as u64));
        }
        Page { doubles, written: [0; PAGE_MASKS] }
    }

    /// Writes bytes at an offset inside the page; every word touched counts as written, its other bytes stay.
    pub(crate) fn fill(&mut self, offset: usize, bytes: &[u8]) {
        for (i, &byte) in bytes.iter().enumerate() {
            let at = offset + i;
            let shift = 8 * (at % 8);
            let double = &mut self.doubles[at / 8];
            *double = (*double & !(0xff << shift)) | (u64::from(byte) << shift);
        }
        self.mark(offset, bytes.len());
    }

    /// Writes zeros at an offset inside the page.
    pub(crate) fn fill_zero(&mut self, offset: usize, bytes: usize) {
        const ZEROS: [u8; PAGE_BYTES as usize] = [0; PAGE_BYTES as usize];
        self.fill(offset, &ZEROS[..bytes]);
    }

    fn mark(&mut self, offset: usize, bytes: usize) {
        if bytes == 0 {
            return;
        }
        for word in offset / 4..=(offset + bytes - 1) / 4 {
            self.written[word / 64] |= 1 << (word % 64);
        }
    }
}

/// A 64-bit mix (splitmix64): neighbouring inputs give unrelated outputs.
pub(crate) fn scramble(value: u64) -> u64 {
    let mut x = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl TileMemory {
    /// Memory in which nobody wrote anything; `salt` chooses the poison.
    pub(crate) fn new(salt: u64) -> TileMemory {
        TileMemory { slots: vec![Slot::Poison; PAGES], code: Vec::new(), salt }
    }

    /// Places an image page.
    pub(crate) fn place(&mut self, number: usize, page: Arc<Page>) {
        self.slots[number] = Slot::Shared(page);
        self.code.clear();
    }

    /// The aligned 64 bits at `address`, and the written bits of its two words.
    #[inline]
    fn double(&self, address: u32) -> (u64, u32) {
        let offset = address - BASE;
        let within = (offset % PAGE_BYTES) as usize;
        let page: &Page = match &self.slots[(offset / PAGE_BYTES) as usize] {
            Slot::Own(page) => page,
            Slot::Shared(page) => page,
            Slot::Poison => return (scramble(self.salt ^ u64::from(offset / 8)), 0),
        };
        let word = (within / 4) & !1;
        (page.doubles[within / 8], (page.written[word / 64] >> (word % 64)) as u32 & 3)
    }

    /// Loads 64 bits; also the written bits of the two words (bit 0 = low word).
    #[inline]
    pub(crate) fn load_double(&self, address: u32) -> Step<(u64, u32)> {
        check(address, 8, Access::Load)?;
        Ok(self.double(address))
    }

    /// Loads 32 bits; also 1 if written, else 0.
    #[inline]
    pub(crate) fn load_word(&self, address: u32) -> Step<(u32, u32)> {
        check(address, 4, Access::Load)?;
        let (double, written) = self.double(address);
        let upper = address / 4 % 2;
        Ok(((double >> (32 * upper)) as u32, (written >> upper) & 1))
    }

    /// Loads 16 bits, zero-extended.
    pub(crate) fn load_half(&self, address: u32) -> Step<(u32, u32)> {
        check(address, 2, Access::Load)?;
        self.part(address, 0xffff)
    }

    /// Loads 8 bits, zero-extended.
    pub(crate) fn load_byte(&self, address: u32) -> Step<(u32, u32)> {
        check(address, 1, Access::Load)?;
        self.part(address, 0xff)
    }

    fn part(&self, address: u32, mask: u64) -> Step<(u32, u32)> {
        let (double, written) = self.double(address);
        Ok((((double >> (8 * (address % 8))) & mask) as u32, (written >> (address / 4 % 2)) & 1))
    }

    #[inline]
    fn own(&mut self, offset: u32) -> &mut Page {
        let number = (offset / PAGE_BYTES) as usize;
        let slot = &mut self.slots[number];
        match slot {
            Slot::Own(_) => {}
            Slot::Shared(page) => *slot = Slot::Own(Box::new(Page::clone(page))),
            Slot::Poison => *slot = Slot::Own(Box::new(Page::poison(self.salt, number))),
        }
        match slot {
            Slot::Own(page) => page,
            Slot::Shared(_) | Slot::Poison => unreachable!("page {number} was just made this tile's own"),
        }
    }

    #[inline]
    fn forget_code(&mut self, offset: u32) {
        if let Some(block) = self.code.get_mut((offset / BLOCK_BYTES) as usize) {
            *block = None;
        }
    }

    /// Stores 64 bits.
    #[inline]
    pub(crate) fn store_double(&mut self, address: u32, value: u64) -> Step {
        check(address, 8, Access::Store)?;
        let offset = address - BASE;
        self.forget_code(offset);
        let within = (offset % PAGE_BYTES) as usize;
        let page = self.own(offset);
        page.doubles[within / 8] = value;
        page.written[within / 256] |= 3 << (within / 4 % 64);
        Ok(())
    }

    /// Stores 32 bits.
    #[inline]
    pub(crate) fn store_word(&mut self, address: u32, value: u32) -> Step {
        check(address, 4, Access::Store)?;
        self.put_word(address - BASE, value);
        Ok(())
    }

    fn put_word(&mut self, offset: u32, value: u32) {
        self.forget_code(offset);
        let within = (offset % PAGE_BYTES) as usize;
        let page = self.own(offset);
        let shift = 32 * (within / 4 % 2);
        let double = &mut page.doubles[within / 8];
        *double = (*double & !(0xffff_ffff << shift)) | (u64::from(value) << shift);
        page.written[within / 256] |= 1 << (within / 4 % 64);
    }

    /// Appends the words of a span to `out`; the error is the address of the first word nobody wrote.
    pub(crate) fn read_words(&self, address: u32, words: u32, out: &mut Vec<u32>) -> Result<(), ReadFault> {
        span(address, 4 * words)?;
        let mut at = address;
        let end = address + 4 * words;
        while at < end {
            let offset = at - BASE;
            let first = (offset % PAGE_BYTES / 4) as usize;
            let count = ((end - at) / 4).min((PAGE_BYTES / 4) - first as u32) as usize;
            let page: &Page = match &self.slots[(offset / PAGE_BYTES) as usize] {
                Slot::Own(page) => page,
                Slot::Shared(page) => page,
                Slot::Poison => return Err(ReadFault::Poison { address: at }),
            };
            if let Some(hole) = page.hole(first, count) {
                return Err(ReadFault::Poison { address: at - 4 * first as u32 + 4 * hole as u32 });
            }
            page.copy_out(first, count, out);
            at += 4 * count as u32;
        }
        Ok(())
    }

    /// Writes words; the span must have been checked.
    pub(crate) fn write_words(&mut self, address: u32, words: &[u32]) -> Result<(), ReadFault> {
        span(address, 4 * words.len() as u32)?;
        let mut at = address;
        let mut rest = words;
        while !rest.is_empty() {
            let offset = at - BASE;
            let first = (offset % PAGE_BYTES / 4) as usize;
            let count = rest.len().min((PAGE_BYTES / 4) as usize - first);
            let (now, later) = rest.split_at(count);
            for block in offset / BLOCK_BYTES..=(offset + 4 * count as u32 - 1) / BLOCK_BYTES {
                self.forget_code(block * BLOCK_BYTES);
            }
            self.own(offset).copy_in(first, now);
            at += 4 * count as u32;
            rest = later;
        }
        Ok(())
    }

    /// Bytes of a span, poison or not, and the first poison word if there is one.
    pub(crate) fn bytes(&self, address: u32, bytes: u32) -> Result<(Vec<u8>, Option<u32>), ReadFault> {
        span(address, bytes)?;
        let mut out = Vec::with_capacity(bytes as usize);
        let mut hole = None;
        for at in address..address + bytes {
            let (double, written) = self.double(at & !7);
            out.push((double >> (8 * (at % 8))) as u8);
            if hole.is_none() && (written >> (at / 4 % 2)) & 1 == 0 {
                hole = Some(at & !3);
            }
        }
        Ok((out, hole))
    }

    /// Writes bytes of any alignment (tests, loaders).
    pub(crate) fn write_bytes(&mut self, address: u32, bytes: &[u8]) -> Result<(), ReadFault> {
        span(address, bytes.len() as u32)?;
        let mut at = address;
        let mut rest = bytes;
        while !rest.is_empty() {
            let offset = at - BASE;
            let first = (offset % PAGE_BYTES) as usize;
            let (now, later) = rest.split_at(rest.len().min(PAGE_BYTES as usize - first));
            self.own(offset).fill(first, now);
            at += now.len() as u32;
            rest = later;
        }
        self.code.clear();
        Ok(())
    }

    /// The predecoded block that holds `address`, or nothing yet.
    #[inline]
    pub(crate) fn block(&self, address: u32) -> Option<&Block> {
        self.code.get((address.wrapping_sub(BASE) / BLOCK_BYTES) as usize)?.as_deref()
    }

    /// Keeps a predecoded block.
    pub(crate) fn keep_block(&mut self, address: u32, block: Arc<Block>) {
        let number = ((address - BASE) / BLOCK_BYTES) as usize;
        if self.code.len() <= number {
            self.code.resize(number + 1, None);
        }
        self.code[number] = Some(block);
    }

    /// The words of the block that holds `address`, and a bit for each word that was written.
    pub(crate) fn block_words(&self, address: u32) -> ([u32; 64], u64) {
        let first = address & !(BLOCK_BYTES - 1);
        let mut words = [0; 64];
        let mut written = 0;
        for i in 0..32 {
            let (double, mask) = self.double(first + 8 * i);
            words[2 * i as usize] = double as u32;
            words[2 * i as usize + 1] = (double >> 32) as u32;
            written |= u64::from(mask) << (2 * i);
        }
        (words, written)
    }

    /// Pages that this tile holds alone (memory accounting).
    pub(crate) fn own_pages(&self) -> usize {
        self.slots.iter().filter(|slot| matches!(slot, Slot::Own(_))).count()
    }
}

impl Page {
    /// The first of `count` words from `first` that nobody wrote.
    fn hole(&self, first: usize, count: usize) -> Option<usize> {
        let mut word = first;
        while word < first + count {
            let run = (64 - word % 64).min(first + count - word);
            let mask = if run == 64 { u64::MAX } else { ((1u64 << run) - 1) << (word % 64) };
            let missing = mask & !self.written[word / 64];
            if missing != 0 {
                return Some(word / 64 * 64 + missing.trailing_zeros() as usize);
            }
            word += run;
        }
        None
    }

    fn copy_out(&self, first: usize, count: usize, out: &mut Vec<u32>) {
        let mut word = first;
        let end = first + count;
        if word % 2 == 1 && word < end {
            out.push((self.doubles[word / 2] >> 32) as u32);
            word += 1;
        }
        for double in &self.doubles[word / 2..end.max(word) / 2] {
            out.push(*double as u32);
            out.push((*double >> 32) as u32);
        }
        if end % 2 == 1 && end > word {
            out.push(self.doubles[end / 2] as u32);
        }
    }

    fn copy_in(&mut self, first: usize, words: &[u32]) {
        for (i, &word) in words.iter().enumerate() {
            let at = first + i;
            let shift = 32 * (at % 2);
            let double = &mut self.doubles[at / 2];
            *double = (*double & !(0xffff_ffff << shift)) | (u64::from(word) << shift);
        }
        self.mark(4 * first, 4 * words.len());
    }
}

#[inline]
fn check(address: u32, size: u32, access: Access) -> Step {
    if !address.is_multiple_of(size) {
        return fail(Cause::Misaligned { address, alignment: size, access });
    }
    inside(address, access)
}

/// Refuses an address outside tile memory.
#[inline]
pub(crate) fn inside(address: u32, access: Access) -> Step {
    if address.wrapping_sub(BASE) >= END - BASE {
        return fail(Cause::AddressOutside { address, access });
    }
    Ok(())
}

/// Refuses a span that is not inside tile memory.
pub(crate) fn span(address: u32, bytes: u32) -> Result<(), ReadFault> {
    let end = u64::from(address) + u64::from(bytes);
    if address < BASE || end > u64::from(END) {
        return Err(ReadFault::Outside { address, bytes });
    }
    Ok(())
}

/// The memory element of an address: two accesses of one instruction must not share one (machine.md b).
#[inline]
pub(crate) fn element(address: u32) -> u32 {
    if address < REGION_1 { address >> 14 } else { 0x100 | (address >> 15) << 1 | (address >> 3) & 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_nobody_wrote_is_poison_and_depends_on_the_salt() {
        let one = TileMemory::new(1);
        let other = TileMemory::new(2);
        let (value, written) = one.load_word(0x50000).unwrap();
        assert_eq!(written, 0);
        assert_ne!(value, other.load_word(0x50000).unwrap().0);
    }

    #[test]
    fn poison_keeps_its_value_when_a_neighbour_is_written() {
        let mut memory = TileMemory::new(7);
        let before = memory.load_word(0x50004).unwrap();
        memory.store_word(0x50000, 5).unwrap();
        assert_eq!(memory.load_word(0x50000).unwrap(), (5, 1));
        assert_eq!(memory.load_word(0x50004).unwrap(), before);
    }

    #[test]
    fn a_store_changes_only_the_tile_that_stores() {
        let mut page = Page::poison(0, 0);
        page.fill(0, &[1, 2, 3, 4]);
        let page = Arc::new(page);
        let (mut a, mut b) = (TileMemory::new(1), TileMemory::new(2));
        a.place(0, page.clone());
        b.place(0, page);
        a.store_word(BASE, 9).unwrap();
        assert_eq!(a.load_word(BASE).unwrap().0, 9);
        assert_eq!(b.load_word(BASE).unwrap(), (0x0403_0201, 1));
        assert_eq!((a.own_pages(), b.own_pages()), (1, 0));
    }

    #[test]
    fn spans_over_pages_come_back_as_written_and_holes_are_named() {
        let mut memory = TileMemory::new(3);
        let words: Vec<u32> = (0..1500).map(|i| i * 7).collect();
        memory.write_words(0x50ffc, &words).unwrap();
        let mut back = Vec::new();
        memory.read_words(0x50ffc, 1500, &mut back).unwrap();
        assert_eq!(back, words);
        assert_eq!(memory.read_words(0x50ff8, 2, &mut back), Err(ReadFault::Poison { address: 0x50ff8 }));
        assert_eq!(memory.read_words(0x50ffc + 6000 - 4, 2, &mut back), Err(ReadFault::Poison { address: 0x50ffc + 6000 }));
    }

    #[test]
    fn elements_are_16_kib_in_region_0_and_alternate_by_8_bytes_in_region_1() {
        assert_eq!(element(0x50000), element(0x53ff8));
        assert_ne!(element(0x50000), element(0x54000));
        assert_eq!(element(0x80000), element(0x80010));
        assert_ne!(element(0x80000), element(0x80008));
        assert_ne!(element(0x80000), element(0x88000));
    }

    #[test]
    fn accesses_outside_or_unaligned_are_refused() {
        let memory = TileMemory::new(0);
        assert_eq!(*memory.load_double(0x50004).unwrap_err(), Cause::Misaligned { address: 0x50004, alignment: 8, access: Access::Load });
        assert_eq!(*memory.load_word(END).unwrap_err(), Cause::AddressOutside { address: END, access: Access::Load });
    }
}
