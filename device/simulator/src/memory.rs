//! Memory of one tile: its 64-bit words, and one "written" bit per 32-bit word.
//!
//! There are no sub-word stores in the ISA, so a bit for each 32-bit word is exact. A word nobody wrote reads as poison: a
//! value that depends on the seed, the tile and the address alone. Memory is flat, in pages of the system that cost nothing until
//! somebody writes there.

use std::fmt;

use memmap2::MmapMut;

pub(crate) use ipu21::memory::{BASE, END, REGION1 as REGION_1};

use crate::code::BLOCK_BYTES;
use crate::fault::{Access, Cause, Step, fail};

/// Bytes of a page, the unit of memory accounting.
const PAGE_BYTES: u32 = 4096;
const DOUBLES: usize = ((END - BASE) / 8) as usize;
/// 64-bit words whose written bits share a word of the mask.
const MASKED: usize = 32;
/// Words of the mask that cover a page.
const PAGE_MASKS: usize = PAGE_BYTES as usize / 8 / MASKED;
/// Words with a bit for each block of code.
const CODE_MASKS: usize = ((REGION_1 - BASE) / BLOCK_BYTES) as usize / 64;

/// Memory of one tile.
#[derive(Debug)]
pub(crate) struct TileMemory {
    /// Little-endian 64-bit words; a half that nobody wrote holds anything.
    doubles: Doubles,
    /// Two bits for each of `doubles`, 32 of them in a word.
    written: Box<[u64; DOUBLES / MASKED]>,
    /// A bit for each block of region 0 that somebody predecoded.
    decoded: [u64; CODE_MASKS],
    /// Byte addresses from the first to behind the last block that was ever predecoded.
    decoded_span: (u32, u32),
    /// Predecoded blocks that were stored over since.
    stale: Vec<u32>,
    salt: u64,
}

/// The words of a tile and their written bits, looked up once for many accesses.
pub(crate) struct Accessor<'a> {
    doubles: &'a mut [[u8; 8]; DOUBLES],
    written: &'a mut [u64; DOUBLES / MASKED],
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
        TileMemory {
            doubles: Doubles::new(),
            written: Box::new([0; DOUBLES / MASKED]),
            decoded: [0; CODE_MASKS],
            decoded_span: (END, BASE),
            stale: Vec::new(),
            salt,
        }
    }

    /// The aligned 64 bits at `address`, and the written bits of its two words.
    #[inline]
    pub(crate) fn double(&self, address: u32) -> (u64, u32) {
        let number = ((address - BASE) / 8) as usize;
        let value = self.doubles.get(number);
        let written = (self.written[number / MASKED] >> (2 * (number % MASKED))) as u32 & 3;
        if written == 3 { (value, 3) } else { (with_poison(self.salt, number, value, written), written) }
    }

    /// For accesses at addresses that were checked.
    #[inline(always)]
    pub(crate) fn accessor(&mut self) -> Accessor<'_> {
        Accessor { doubles: self.doubles.all(), written: &mut self.written, salt: self.salt }
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

    /// Whether a store to this address, which is inside memory, changes predecoded code.
    #[inline]
    pub(crate) fn holds_code(&self, address: u32) -> bool {
        let block = ((address - BASE) / BLOCK_BYTES) as usize;
        self.decoded.get(block / 64).is_some_and(|bits| bits >> (block % 64) & 1 == 1)
    }

    #[inline]
    fn forget_code(&mut self, address: u32) {
        if self.holds_code(address) {
            self.drop_block(address);
        }
    }

    #[cold]
    fn drop_block(&mut self, address: u32) {
        let block = (address - BASE) / BLOCK_BYTES;
        self.decoded[block as usize / 64] &= !(1 << (block % 64));
        self.stale.push(block);
    }

    /// Notes that the block which holds `address` was predecoded.
    pub(crate) fn note_decoded(&mut self, address: u32) {
        let block = (address - BASE) / BLOCK_BYTES;
        self.decoded[block as usize / 64] |= 1 << (block % 64);
        let (first, end) = self.decoded_span;
        let start = address & !(BLOCK_BYTES - 1);
        self.decoded_span = (first.min(start), end.max(start + BLOCK_BYTES));
    }

    /// No predecoded code is outside these byte addresses.
    #[inline]
    pub(crate) fn decoded_span(&self) -> (u32, u32) {
        self.decoded_span
    }

    /// Whether predecoded blocks were stored over.
    #[inline]
    pub(crate) fn has_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    /// Numbers of the predecoded blocks that were stored over since the last call.
    pub(crate) fn take_stale(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.stale)
    }

    /// Writes 64 bits at an address that was checked, where no predecoded code is.
    #[inline]
    pub(crate) fn put_data(&mut self, address: u32, value: u64) {
        self.accessor().put_data(address, value);
    }

    /// Writes 32 bits at an address that was checked.
    #[inline]
    pub(crate) fn put_word(&mut self, address: u32, value: u32) {
        self.forget_code(address);
        let word = ((address - BASE) / 4) as usize;
        let shift = 32 * (word % 2);
        let others = self.doubles.get(word / 2) & !(0xffff_ffff << shift);
        self.doubles.set(word / 2, others | u64::from(value) << shift);
        self.written[word / (2 * MASKED)] |= 1 << (word % (2 * MASKED));
    }

    /// Stores 64 bits.
    #[inline]
    pub(crate) fn store_double(&mut self, address: u32, value: u64) -> Step {
        check(address, 8, Access::Store)?;
        self.forget_code(address);
        self.put_data(address, value);
        Ok(())
    }

    /// Stores 32 bits.
    #[inline]
    pub(crate) fn store_word(&mut self, address: u32, value: u32) -> Step {
        check(address, 4, Access::Store)?;
        self.put_word(address, value);
        Ok(())
    }

    /// The address of the first word of a span, inside memory, that nobody wrote.
    fn hole(&self, address: u32, words: u32) -> Option<u32> {
        let first = ((address - BASE) / 4) as usize;
        let end = first + words as usize;
        let mut word = first;
        while word < end {
            let (run, mask) = stretch(word, end);
            let missing = mask & !self.written[word / (2 * MASKED)];
            if missing != 0 {
                return Some(BASE + 4 * (word / 64 * 64 + missing.trailing_zeros() as usize) as u32);
            }
            word += run;
        }
        None
    }

    /// Appends the words of a span to `out`; the error is the address of the first word nobody wrote.
    pub(crate) fn read_words(&self, address: u32, words: u32, out: &mut Vec<u32>) -> Result<(), ReadFault> {
        span(address, 4 * words)?;
        if let Some(address) = self.hole(address, words) {
            return Err(ReadFault::Poison { address });
        }
        let first = 4 * ((address - BASE) / 4) as usize;
        let bytes = &self.doubles.0[first..first + 4 * words as usize];
        out.extend(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)));
        Ok(())
    }

    /// Writes words.
    pub(crate) fn write_words(&mut self, address: u32, words: &[u32]) -> Result<(), ReadFault> {
        span(address, 4 * words.len() as u32)?;
        if words.is_empty() {
            return Ok(());
        }
        self.mark(address, 4 * words.len() as u32);
        let first = 4 * ((address - BASE) / 4) as usize;
        let bytes = &mut self.doubles.0[first..first + 4 * words.len()];
        for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        Ok(())
    }

    /// Marks the words that a span inside memory touches as written, and the code there as changed.
    fn mark(&mut self, address: u32, bytes: u32) {
        if bytes == 0 {
            return;
        }
        let last = address + bytes - 1;
        for block in (address - BASE) / BLOCK_BYTES..=(last - BASE) / BLOCK_BYTES {
            self.forget_code(BASE + block * BLOCK_BYTES);
        }
        let end = ((last - BASE) / 4) as usize + 1;
        let mut word = ((address - BASE) / 4) as usize;
        while word < end {
            let (run, mask) = stretch(word, end);
            self.written[word / (2 * MASKED)] |= mask;
            word += run;
        }
    }

    /// Bytes of a span, poison or not, and the first poison word if there is one.
    pub(crate) fn bytes(&self, address: u32, bytes: u32) -> Result<(Vec<u8>, Option<u32>), ReadFault> {
        span(address, bytes)?;
        let mut out = Vec::with_capacity(bytes as usize);
        let end = address + bytes;
        let mut at = address;
        while at < end {
            let (double, _) = self.double(at & !7);
            let (skip, take) = (at % 8, (8 - at % 8).min(end - at));
            out.extend_from_slice(&double.to_le_bytes()[skip as usize..(skip + take) as usize]);
            at += take;
        }
        let words = (end.next_multiple_of(4) - (address & !3)) / 4;
        Ok((out, if bytes == 0 { None } else { self.hole(address & !3, words) }))
    }

    /// Writes bytes of any alignment (tests, loaders). Every word touched counts as written, its other bytes stay.
    pub(crate) fn write_bytes(&mut self, address: u32, bytes: &[u8]) -> Result<(), ReadFault> {
        span(address, bytes.len() as u32)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let first = (address - BASE) as usize;
        for edge in [address & !7, (address + bytes.len() as u32 - 1) & !7] {
            let (value, _) = self.double(edge);
            self.doubles.set(((edge - BASE) / 8) as usize, value);
        }
        self.doubles.0[first..first + bytes.len()].copy_from_slice(bytes);
        self.mark(address, bytes.len() as u32);
        Ok(())
    }

    /// Writes zeros of any alignment. A page in which nobody wrote is zero already and is not touched.
    pub(crate) fn write_zeros(&mut self, address: u32, bytes: u32) -> Result<(), ReadFault> {
        const ZEROS: [u8; PAGE_BYTES as usize] = [0; PAGE_BYTES as usize];
        span(address, bytes)?;
        let mut at = address;
        let end = address + bytes;
        while at < end {
            let offset = at - BASE;
            let stop = end.min(BASE + (offset / PAGE_BYTES + 1) * PAGE_BYTES);
            let words_are_whole = at.is_multiple_of(4) && stop.is_multiple_of(4);
            if words_are_whole && self.page_is_untouched((offset / PAGE_BYTES) as usize) {
                self.mark(at, stop - at);
            } else {
                self.write_bytes(at, &ZEROS[..(stop - at) as usize])?;
            }
            at = stop;
        }
        Ok(())
    }

    fn page_is_untouched(&self, page: usize) -> bool {
        self.written[PAGE_MASKS * page..PAGE_MASKS * (page + 1)].iter().all(|&mask| mask == 0)
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

    /// Pages in which somebody wrote (memory accounting).
    pub(crate) fn touched_pages(&self) -> usize {
        (0..DOUBLES / MASKED / PAGE_MASKS).filter(|&page| !self.page_is_untouched(page)).count()
    }

    /// The first address at which two memories of one salt differ.
    pub(crate) fn first_difference(&self, other: &TileMemory) -> Option<u32> {
        (BASE..END).step_by(8).find(|&address| self.double(address) != other.double(address))
    }
}

impl Accessor<'_> {
    /// As [`TileMemory::double`].
    #[inline(always)]
    pub(crate) fn double(&self, address: u32) -> (u64, u32) {
        let number = ((address - BASE) / 8) as usize;
        let value = u64::from_le_bytes(self.doubles[number]);
        let written = (self.written[number / MASKED] >> (2 * (number % MASKED))) as u32 & 3;
        if written == 3 { (value, 3) } else { (with_poison(self.salt, number, value, written), written) }
    }

    /// As [`TileMemory::put_data`].
    #[inline(always)]
    pub(crate) fn put_data(&mut self, address: u32, value: u64) {
        let number = ((address - BASE) / 8) as usize;
        self.doubles[number] = value.to_le_bytes();
        let (mask, bits) = (&mut self.written[number / MASKED], 3 << (2 * (number % MASKED)));
        // Reading is cheaper than a chain of updates of one word by neighbouring stores.
        if *mask & bits != bits {
            *mask |= bits;
        }
    }

    /// Writes 32 bits where no predecoded code is.
    #[inline(always)]
    pub(crate) fn put_data_word(&mut self, address: u32, value: u32) {
        let word = ((address - BASE) / 4) as usize;
        let upper = word % 2;
        self.doubles[word / 2].as_chunks_mut::<4>().0[upper] = value.to_le_bytes();
        let (mask, bit) = (&mut self.written[word / (2 * MASKED)], 1 << (word % (2 * MASKED)));
        if *mask & bit == 0 {
            *mask |= bit;
        }
    }
}

/// A word of which a half, or both, is poison.
#[cold]
fn with_poison(salt: u64, number: usize, value: u64, written: u32) -> u64 {
    let poison = scramble(salt ^ number as u64);
    match written {
        1 => poison & !0xffff_ffff | value & 0xffff_ffff,
        2 => poison & 0xffff_ffff | value & !0xffff_ffff,
        _ => poison,
    }
}

/// The words themselves, in pages of the system that hold zeros and cost nothing until somebody writes: an allocator gives
/// memory that was used before and clears all of it, 900 MB for the second chip of a process.
#[derive(Debug)]
struct Doubles(MmapMut);

impl Doubles {
    fn new() -> Doubles {
        Doubles(MmapMut::map_anon(8 * DOUBLES).expect("the system has memory for a tile"))
    }

    #[inline(always)]
    fn all(&mut self) -> &mut [[u8; 8]; DOUBLES] {
        self.0.as_chunks_mut().0.first_chunk_mut().expect("the mapping has this many words")
    }

    #[inline(always)]
    fn get(&self, number: usize) -> u64 {
        u64::from_le_bytes(self.0.as_chunks().0[number])
    }

    #[inline(always)]
    fn set(&mut self, number: usize, value: u64) {
        self.0.as_chunks_mut().0[number] = value.to_le_bytes();
    }
}

/// Of the words from `word` to `end`, those that share its word of the mask: how many, and their bits.
fn stretch(word: usize, end: usize) -> (usize, u64) {
    let run = (64 - word % 64).min(end - word);
    (run, (u64::MAX >> (64 - run)) << (word % 64))
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

/// Whether two accesses of one instruction meet in a memory element: [`element`] without a choice, for loops over lanes.
#[inline(always)]
pub(crate) fn meet(first: u32, second: u32) -> bool {
    const REGION_0_BITS: u32 = !0x3fff;
    const REGION_1_BITS: u32 = !0x7fff | 8;
    let bits = if first < REGION_1 { REGION_0_BITS } else { REGION_1_BITS };
    (first ^ second) & bits == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_meet_where_their_elements_are_equal() {
        let addresses: Vec<u32> = (BASE..END).step_by(0x1000).flat_map(|page| [page, page + 8]).collect();
        for &first in &addresses {
            for &second in &addresses {
                assert_eq!(meet(first, second), element(first) == element(second), "{first:#x} {second:#x}");
            }
        }
    }

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
    fn zeros_over_words_that_were_written_replace_them() {
        let mut memory = TileMemory::new(1);
        memory.store_word(0x50004, 9).unwrap();
        memory.write_zeros(0x50002, 0x2003).unwrap();
        assert_eq!(memory.load_word(0x50004).unwrap(), (0, 1));
        assert_eq!(memory.bytes(0x50002, 0x2003).unwrap(), (vec![0; 0x2003], None));
        assert_eq!(memory.bytes(0x52004, 8).unwrap().1, Some(0x52008));
        assert_eq!(memory.touched_pages(), 3);
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
