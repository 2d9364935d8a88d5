//! Segments of a tile image, and the pages made of them. Pages with the same parts are made once for all tiles.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::memory::{BASE, END, PAGE_BYTES, PAGES, Page, TileMemory};

/// A loadable stretch of tile memory.
#[derive(Clone, Debug)]
pub struct Segment {
    /// First byte address.
    pub address: u32,
    /// The bytes; shared between the tiles that have the same ones.
    pub data: Arc<[u8]>,
    /// Bytes in memory, at least `data.len()`; the rest is zero-filled.
    pub memory_bytes: u32,
}

/// A segment that cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadFault {
    /// It is not inside tile memory.
    Outside {
        /// First byte.
        address: u32,
        /// Bytes.
        bytes: u32,
    },
    /// It has more bytes than memory for them.
    DataLongerThanMemory {
        /// First byte.
        address: u32,
        /// Bytes of data.
        data: usize,
        /// Bytes of memory.
        memory_bytes: u32,
    },
    /// Two segments share a byte.
    Overlap {
        /// First byte of the lower segment.
        first: u32,
        /// First byte of the upper segment.
        second: u32,
    },
}

impl std::error::Error for LoadFault {}

impl fmt::Display for LoadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadFault::Outside { address, bytes } => {
                write!(f, "segment of {bytes} bytes at {address:#x} is not inside tile memory")
            }
            LoadFault::DataLongerThanMemory { address, data, memory_bytes } => {
                write!(f, "segment at {address:#x} has {data} bytes of data for {memory_bytes} bytes of memory")
            }
            LoadFault::Overlap { first, second } => write!(f, "segments at {first:#x} and {second:#x} overlap"),
        }
    }
}

/// A run of bytes inside one page. Data is named by its allocation, which the cache keeps alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Part {
    /// Allocation of the data, 0 for zeros.
    data: usize,
    /// First byte of it.
    from: usize,
    /// First byte in the page.
    at: usize,
    bytes: usize,
}

/// Pages already made, by their parts.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    seed: u64,
    pages: HashMap<(usize, Vec<Part>), Arc<Page>>,
    data: HashMap<usize, Arc<[u8]>>,
}

impl PageCache {
    /// An empty cache; the seed chooses the poison between segments.
    pub(crate) fn new(seed: u64) -> PageCache {
        PageCache { seed, ..PageCache::default() }
    }

    /// Places segments in a tile's memory.
    pub(crate) fn load(&mut self, memory: &mut TileMemory, segments: &[Segment]) -> Result<(), LoadFault> {
        check(segments)?;
        let mut parts: Vec<Vec<Part>> = vec![Vec::new(); PAGES];
        for segment in segments {
            self.split(segment, &mut parts);
        }
        for (number, parts) in parts.into_iter().enumerate().filter(|(_, parts)| !parts.is_empty()) {
            memory.place(number, self.page(number, parts));
        }
        Ok(())
    }

    fn split(&mut self, segment: &Segment, parts: &mut [Vec<Part>]) {
        let identity = segment.data.as_ptr() as usize;
        if !segment.data.is_empty() {
            self.data.entry(identity).or_insert_with(|| segment.data.clone());
        }
        let data_end = segment.data.len();
        let mut from = 0;
        while from < segment.memory_bytes as usize {
            let offset = (segment.address - BASE) as usize + from;
            let at = offset % PAGE_BYTES as usize;
            let limit = if from < data_end { data_end } else { segment.memory_bytes as usize };
            let bytes = (limit - from).min(PAGE_BYTES as usize - at);
            let (data, start) = if from < data_end { (identity, from) } else { (0, 0) };
            parts[offset / PAGE_BYTES as usize].push(Part { data, from: start, at, bytes });
            from += bytes;
        }
    }

    /// Poison inside image pages is the same on all tiles: pages are shared. It still depends on the page.
    fn page(&mut self, number: usize, parts: Vec<Part>) -> Arc<Page> {
        let whole = parts.iter().map(|part| part.bytes).sum::<usize>() == PAGE_BYTES as usize;
        let key = (if whole { 0 } else { number }, parts);
        if let Some(page) = self.pages.get(&key) {
            return page.clone();
        }
        let mut page = Page::poison(self.seed, number);
        for part in &key.1 {
            match self.data.get(&part.data) {
                Some(data) => page.fill(part.at, &data[part.from..part.from + part.bytes]),
                None => page.fill_zero(part.at, part.bytes),
            }
        }
        let page = Arc::new(page);
        self.pages.insert(key, page.clone());
        page
    }
}

fn check(segments: &[Segment]) -> Result<(), LoadFault> {
    let mut spans: Vec<(u64, u64)> = Vec::with_capacity(segments.len());
    for segment in segments {
        let (address, bytes) = (segment.address, segment.memory_bytes);
        if segment.data.len() > bytes as usize {
            return Err(LoadFault::DataLongerThanMemory { address, data: segment.data.len(), memory_bytes: bytes });
        }
        let end = u64::from(address) + u64::from(bytes);
        if address < BASE || end > u64::from(END) {
            return Err(LoadFault::Outside { address, bytes });
        }
        spans.push((u64::from(address), end));
    }
    spans.sort_unstable();
    for pair in spans.windows(2) {
        if pair[1].0 < pair[0].1 {
            return Err(LoadFault::Overlap { first: pair[0].0 as u32, second: pair[1].0 as u32 });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(address: u32, data: &[u8], memory_bytes: u32) -> Segment {
        Segment { address, data: data.into(), memory_bytes }
    }

    #[test]
    fn data_is_followed_by_zeros_and_then_by_poison() {
        let mut memory = TileMemory::new(5);
        PageCache::default().load(&mut memory, &[segment(0x4fff8, &[1; 12], 20)]).unwrap();
        let (bytes, hole) = memory.bytes(0x4fff8, 24).unwrap();
        assert_eq!(&bytes[..20], &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(hole, Some(0x4fff8 + 20));
    }

    #[test]
    fn overlapping_segments_are_refused_with_both_addresses() {
        let mut memory = TileMemory::new(5);
        let segments = [segment(0x50008, &[0; 8], 8), segment(0x50000, &[0; 9], 9)];
        assert_eq!(PageCache::default().load(&mut memory, &segments), Err(LoadFault::Overlap { first: 0x50000, second: 0x50008 }));
    }

    #[test]
    fn a_segment_outside_memory_is_refused() {
        let mut memory = TileMemory::new(5);
        assert_eq!(
            PageCache::default().load(&mut memory, &[segment(0xe7ffc, &[], 8)]),
            Err(LoadFault::Outside { address: 0xe7ffc, bytes: 8 })
        );
    }
}
