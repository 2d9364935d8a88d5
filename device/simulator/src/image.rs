//! Segments of a tile image, and their way into memory.

use std::fmt;
use std::sync::Arc;

use crate::memory::{BASE, END, TileMemory};

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

/// Places segments in a tile's memory.
pub(crate) fn load(memory: &mut TileMemory, segments: &[Segment]) -> Result<(), LoadFault> {
    check(segments)?;
    for segment in segments {
        let (address, data) = (segment.address, segment.data.len() as u32);
        let placed = memory.write_zeros(address + data, segment.memory_bytes - data).and(memory.write_bytes(address, &segment.data));
        assert_eq!(placed, Ok(()), "the segment at {address:#x} was checked");
    }
    Ok(())
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
        load(&mut memory, &[segment(0x4fff8, &[1; 12], 20)]).unwrap();
        let (bytes, hole) = memory.bytes(0x4fff8, 24).unwrap();
        assert_eq!(&bytes[..20], &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(hole, Some(0x4fff8 + 20));
    }

    #[test]
    fn overlapping_segments_are_refused_with_both_addresses() {
        let mut memory = TileMemory::new(5);
        let segments = [segment(0x50008, &[0; 8], 8), segment(0x50000, &[0; 9], 9)];
        assert_eq!(load(&mut memory, &segments), Err(LoadFault::Overlap { first: 0x50000, second: 0x50008 }));
    }

    #[test]
    fn a_segment_outside_memory_is_refused() {
        let mut memory = TileMemory::new(5);
        assert_eq!(load(&mut memory, &[segment(0xe7ffc, &[], 8)]), Err(LoadFault::Outside { address: 0xe7ffc, bytes: 8 }));
    }
}
