//! The coefficient store `$CWEI` of a tile: 64 entries of 64 bits, shared by its workers (isa-notes 10.1).

use crate::float_format::{Fp8, f16_operand};

/// Entries 0..31 feed AMP set 0, entries 32..63 set 1.
pub(crate) const ENTRIES: usize = 64;

/// The coefficients, raw and as f64, with a written bit for each 32-bit half.
#[derive(Clone, Debug)]
pub(crate) struct Coefficients {
    raw: [u64; ENTRIES],
    /// f16 view: by phase, by unit, by element of the dot product.
    half: [[[f64; 4]; 16]; 4],
    written: [u64; 2],
    /// Bits of `$FP_INFMT`: 0 weights, 1 inputs; 1 = F143.
    pub(crate) byte_formats: u32,
    /// `$FP_ISCL`, a signed 6-bit exponent.
    pub(crate) byte_scale: i32,
}

impl Default for Coefficients {
    fn default() -> Coefficients {
        Coefficients { raw: [0; ENTRIES], half: [[[0.0; 4]; 16]; 4], written: [0; 2], byte_formats: 0, byte_scale: 0 }
    }
}

impl Coefficients {
    /// Loads one entry; `written` has a bit for each 32-bit half.
    pub(crate) fn put(&mut self, entry: usize, value: u64, written: u32) {
        let (unit, phase) = (entry / 4, entry % 4);
        self.raw[entry] = value;
        for element in 0..4 {
            self.half[phase][unit][element] = f16_operand((value >> (16 * element)) as u16);
        }
        for half in 0..2 {
            let bit = 1 << entry;
            if written >> half & 1 == 1 {
                self.written[half] |= bit;
            } else {
                self.written[half] &= !bit;
            }
        }
    }

    /// Zeroes every entry (`$CR.ZCWEI`).
    pub(crate) fn clear(&mut self) {
        for entry in 0..ENTRIES {
            self.put(entry, 0, 3);
        }
    }

    /// The f16 coefficients of a phase: by unit, by element.
    #[inline]
    pub(crate) fn half(&self, phase: usize) -> &[[f64; 4]; 16] {
        &self.half[phase & 3]
    }

    /// The f32 coefficient in a half of an entry.
    pub(crate) fn single(&self, entry: usize, half: usize) -> f64 {
        f64::from(f32::from_bits((self.raw[entry] >> (32 * half)) as u32))
    }

    /// The eight FP8 coefficients of an entry.
    pub(crate) fn bytes(&self, entry: usize) -> [f64; 8] {
        let format = Fp8::of(self.byte_formats);
        std::array::from_fn(|i| format.value((self.raw[entry] >> (8 * i)) as u8))
    }

    /// The first entry of a set that is not wholly written.
    #[inline]
    pub(crate) fn first_unwritten(&self, sets: u32) -> Option<u8> {
        let wanted = if sets == 2 { u64::MAX } else { 0xffff_ffff };
        let missing = wanted & !(self.written[0] & self.written[1]);
        if missing == 0 { None } else { Some(missing.trailing_zeros() as u8) }
    }
}
