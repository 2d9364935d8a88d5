//! f16 arithmetic on rows of registers, for operands and results that are ordinary numbers.
//!
//! Sums and products of two f16 are formed in f32. A product is exact there; a sum is rounded to 24 bits, at least 2 * 11 + 2,
//! so that the second rounding to f16 gives what one rounding would (Figueroa). NaN, infinities and overflow are left to
//! [`vector_unit`](crate::vector_unit).

use crate::float_format::{f16_lane_to_f32, f32_lane_to_f16};
use crate::operation::{Broadcast, Lane};
use crate::register_file::{LANES, Row};

/// f16 lanes of a row.
const HALVES: usize = 2 * LANES;
type Halves = [f32; HALVES];

/// Puts the result for registers (or pairs) `a` and `b` into `out`; whether all members' lanes are ordinary numbers.
#[inline(always)]
pub(crate) fn half(lane: Lane, broadcast: Broadcast, a: [Row; 2], b: [Row; 2], members: u8, out: &mut [Row; 2]) -> bool {
    let spread = |row: Row| match broadcast {
        Broadcast::None => row,
        Broadcast::Lower => row.map(|value| (value & 0xffff) * 0x1_0001),
        Broadcast::Upper => row.map(|value| (value >> 16) * 0x1_0001),
    };
    let a = if broadcast == Broadcast::None { a } else { [spread(a[0]); 2] };
    for half in 0..2 {
        let (values, largest) = match lane {
            Lane::Add => rounded(a[half], b[half], |a, b| a + b),
            Lane::Subtract => rounded(a[half], b[half], |a, b| a - b),
            Lane::Multiply => rounded(a[half], b[half], |a, b| a * b),
            Lane::Max => rounded(a[half], b[half], |a, b| if a >= b { a } else { b }),
            Lane::Min => rounded(a[half], b[half], |a, b| if a <= b { a } else { b }),
            _ => return false,
        };
        let mut rare = 0;
        for lane in 0..LANES {
            rare |= u32::from(largest[lane] >= 0x7c00) & u32::from(members) >> lane;
        }
        if rare & 1 == 1 {
            return false;
        }
        out[half] = values;
    }
    true
}

/// A function of f16 lanes rounded to f16, and for each worker the largest magnitude among operands and results.
#[inline(always)]
fn rounded(a: Row, b: Row, f: impl Fn(f32, f32) -> f32) -> (Row, Row) {
    let (x, y) = (widened(a), widened(b));
    let mut results = [0; HALVES];
    for i in 0..HALVES {
        results[i] = f32_lane_to_f16(f(x[i], y[i]));
    }
    let (mut values, mut largest) = ([0; LANES], [0; LANES]);
    for lane in 0..LANES {
        let (low, high) = (results[lane], results[lane + LANES]);
        values[lane] = low & 0x7fff | low >> 16 & 0x8000 | (high & 0x7fff | high >> 16 & 0x8000) << 16;
        let operands = (a[lane] & 0x7fff).max(a[lane] >> 16 & 0x7fff).max(b[lane] & 0x7fff).max(b[lane] >> 16 & 0x7fff);
        largest[lane] = operands.max(low & 0x7fff_ffff).max(high & 0x7fff_ffff);
    }
    (values, largest)
}

/// The values of both halves of every lane: all lower halves, then all upper ones.
#[inline(always)]
fn widened(row: Row) -> Halves {
    let mut out = [0.0; HALVES];
    for lane in 0..LANES {
        out[lane] = f16_lane_to_f32(row[lane]);
        out[lane + LANES] = f16_lane_to_f32(row[lane] >> 16);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::scramble;
    use half::f16;

    fn half(lane: Lane, broadcast: Broadcast, a: [Row; 2], b: [Row; 2], members: u8) -> Option<[Row; 2]> {
        let mut out = [[0; LANES]; 2];
        super::half(lane, broadcast, a, b, members, &mut out).then_some(out)
    }

    /// What one rounding of the exact result gives.
    fn expected(lane: Lane, a: u16, b: u16) -> u16 {
        let (x, y) = (f16::from_bits(a).to_f64(), f16::from_bits(b).to_f64());
        let value = match lane {
            Lane::Add => x + y,
            Lane::Subtract => x - y,
            Lane::Multiply => x * y,
            Lane::Max if x >= y => return a,
            Lane::Min if x <= y => return a,
            _ => return b,
        };
        f16::from_f64(value).to_bits()
    }

    #[test]
    fn rows_give_what_one_rounding_of_the_exact_result_gives() {
        for seed in 0..100_000u64 {
            let row = |salt: u64| -> Row { std::array::from_fn(|lane| scramble(seed << 8 | salt << 4 | lane as u64) as u32 & 0xbbff_bbff) };
            let (a, b) = ([row(0), row(1)], [row(2), row(3)]);
            for lane in [Lane::Add, Lane::Subtract, Lane::Multiply, Lane::Max, Lane::Min] {
                let Some(found) = half(lane, Broadcast::None, a, b, 0x3f) else { continue };
                for n in 0..6 {
                    for (half, shift) in [(0, 0), (0, 16), (1, 0), (1, 16)] {
                        let (left, right) = ((a[half][n] >> shift) as u16, (b[half][n] >> shift) as u16);
                        assert_eq!((found[half][n] >> shift) as u16, expected(lane, left, right), "{lane:?} {left:#x} {right:#x}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_ordinary_number_is_left_to_the_vector_unit() {
        let rows = |value: u32| [[value; LANES]; 2];
        assert_eq!(half(Lane::Add, Broadcast::None, rows(0x7c00_0000), rows(0), 0x3f), None);
        assert_eq!(half(Lane::Add, Broadcast::None, rows(0x7e00), rows(0), 0x3f), None);
        assert_eq!(half(Lane::Multiply, Broadcast::None, rows(0x7bff), rows(0x4000), 0x3f), None);
        assert_eq!(half(Lane::Add, Broadcast::None, rows(0x3c00), rows(0x3c00_3c00), 0x3f), Some(rows(0x3c00_4000)));
    }
}
