//! The memory map of a tile and its conflict units (machine.md b).

/// First byte address of tile memory.
pub const BASE: u32 = 0x4c000;
/// One past the last byte address.
pub const END: u32 = 0xe8000;
/// Bytes of tile memory, 624 KiB.
pub const SIZE: u32 = END - BASE;
/// First byte address of the interleaved region 1; the executable region 0 ends here.
pub const REGION1: u32 = 0x80000;
/// Bytes of a conflict unit of region 0.
pub const UNIT0: u32 = 0x4000;
/// Bytes of a conflict unit of region 1: two interleaved elements.
pub const UNIT1: u32 = 0x8000;
/// Entry point and lowest loadable address (machine.md b).
pub const ENTRY: u32 = 0x4c010;
/// One past the last loadable address: 643 frames of 992 bytes.
pub const LOADABLE_END: u32 = 0xe7bb0;
/// Bytes past an executed word that may be fetched.
pub const FETCH_LOOK_AHEAD: u32 = 64;
/// Number of conflict units, 13 of each region.
pub const UNITS: u32 = 26;

/// A set of conflict units: bits 0..13 are S19..S31, bits 13..26 are I0..I12.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitSet(u32);

impl UnitSet {
    /// No unit.
    pub const EMPTY: Self = Self(0);

    /// Whether a unit is in both.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Units of either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there is no unit in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Bit `n` is unit `n`: 0..13 region 0, 13..26 region 1.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Names as in `memory_elements.tsv`: `S19`, `I0`.
    pub fn names(self) -> impl Iterator<Item = String> {
        (0..UNITS)
            .filter(move |unit| self.0 >> unit & 1 == 1)
            .map(|unit| if unit < 13 { format!("S{}", unit + 19) } else { format!("I{}", unit - 13) })
    }
}

/// Index of the conflict unit of an address, 0..26, or `None` outside tile memory.
#[must_use]
pub const fn unit(address: u32) -> Option<u32> {
    if address < BASE || address >= END {
        None
    } else if address < REGION1 {
        Some((address - BASE) / UNIT0)
    } else {
        Some(13 + (address - REGION1) / UNIT1)
    }
}

/// Every unit between the first and last byte of `[address, address + bytes)`, clipped to tile memory; empty for no bytes.
#[must_use]
pub const fn units(address: u32, bytes: u32) -> UnitSet {
    let end = address.saturating_add(bytes);
    let first = if address < BASE { BASE } else { address };
    let last = if end > END { END } else { end };
    if first >= last {
        return UnitSet::EMPTY;
    }
    match (unit(first), unit(last - 1)) {
        (Some(low), Some(high)) => UnitSet((((1_u64 << (high + 1)) - 1) & !((1_u64 << low) - 1)) as u32),
        _ => UnitSet::EMPTY,
    }
}

/// First byte address of a conflict unit, 0..26.
#[must_use]
pub const fn unit_start(unit: u32) -> u32 {
    if unit < 13 { BASE + unit * UNIT0 } else { REGION1 + (unit - 13) * UNIT1 }
}

/// Whether `[address, address + bytes)` lies inside tile memory.
#[must_use]
pub const fn contains(address: u32, bytes: u32) -> bool {
    address >= BASE && bytes <= SIZE && address <= END - bytes
}
