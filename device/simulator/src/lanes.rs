//! Floating-point arithmetic on rows of registers, for operands and results that are ordinary numbers, under rounding to nearest
//! even and with no exceptions enabled.
//!
//! Sums and products of two f16 are formed in f32. A product is exact there; a sum is rounded to 24 bits, at least 2 * 11 + 2,
//! so that the second rounding to f16 gives what one rounding would (Figueroa). NaN, infinities and overflow are left to
//! [`vector_unit`](crate::vector_unit).

#![expect(clippy::needless_range_loop, reason = "one lane of several rows at a time")]

use crate::float_format::{f16_lane_to_f32, f32_lane_to_f16};
use crate::function_table::tabulated;
use crate::operation::{Broadcast, Lane};
use crate::plain::lanes_of;
use crate::register_file::{LANES, Row};
use crate::transcendental::Function;

/// f16 lanes of a row.
const HALVES: usize = 2 * LANES;
type Halves = [f32; HALVES];

/// Puts the result for registers (or pairs) `a` and `b` into `out`; whether all members' lanes are ordinary numbers.
#[inline(always)]
pub(crate) fn half(lane: Lane, broadcast: Broadcast, a: [Row; 2], b: [Row; 2], members: u8, out: &mut [Row; 2]) -> bool {
    let a = if broadcast == Broadcast::None { a } else { [spread(a[0], broadcast); 2] };
    for half in 0..2 {
        let (values, largest) = match lane {
            Lane::Add => rounded(a[half], b[half], |a, b| a + b),
            Lane::Subtract => rounded(a[half], b[half], |a, b| a - b),
            Lane::Multiply => rounded(a[half], b[half], |a, b| a * b),
            Lane::Max => rounded(a[half], b[half], |a, b| if a >= b { a } else { b }),
            Lane::Min => rounded(a[half], b[half], |a, b| if a <= b { a } else { b }),
            Lane::AbsoluteAdd => rounded(a[half], b[half], |a, b| a.abs() + b.abs()),
            Lane::AbsoluteMax => rounded(a[half], b[half], |a, b| if a.abs() >= b.abs() { a.abs() } else { b.abs() }),
            Lane::Divide => return false,
            Lane::Equal => compared(a[half], b[half], |a, b| a == b),
            Lane::NotEqual => compared(a[half], b[half], |a, b| a != b),
            Lane::Less => compared(a[half], b[half], |a, b| a < b),
            Lane::LessEqual => compared(a[half], b[half], |a, b| a <= b),
            Lane::Greater => compared(a[half], b[half], |a, b| a > b),
            Lane::GreaterEqual => compared(a[half], b[half], |a, b| a >= b),
        };
        if !are_below(&largest, 0x7c00, members) {
            return false;
        }
        out[half] = values;
    }
    true
}

/// Both halves of each lane replaced by one of them, if so wanted.
#[inline(always)]
pub(crate) fn spread(row: Row, broadcast: Broadcast) -> Row {
    let mut out = row;
    for lane in 0..LANES {
        out[lane] = match broadcast {
            Broadcast::None => row[lane],
            Broadcast::Lower => (row[lane] & 0xffff) * 0x1_0001,
            Broadcast::Upper => (row[lane] >> 16) * 0x1_0001,
        };
    }
    out
}

/// Whether the members' lanes are below a limit.
#[inline(always)]
fn are_below(row: &Row, limit: u32, members: u8) -> bool {
    let mut beyond = 0;
    for lane in 0..LANES {
        beyond |= u32::from(row[lane] >= limit) & u32::from(members) >> lane;
    }
    beyond & 1 == 0
}

/// The larger magnitude of both halves of each lane, as bits of f16.
#[inline(always)]
fn magnitudes(row: Row) -> Row {
    let mut out = [0; LANES];
    for lane in 0..LANES {
        out[lane] = (row[lane] & 0x7fff).max(row[lane] >> 16 & 0x7fff);
    }
    out
}

/// The result of f32 lanes; whether all members' results are finite, so that nothing is raised.
#[inline(always)]
pub(crate) fn single(lane: Lane, a: [Row; 2], b: [Row; 2], members: u8, out: &mut [Row; 2]) -> bool {
    const SIGN: u32 = 1 << 31;
    let max = |a: f32, b: f32| if a >= b || b.is_nan() { a.to_bits() } else { b.to_bits() };
    let min = |a: f32, b: f32| if a <= b || b.is_nan() { a.to_bits() } else { b.to_bits() };
    let mask = |holds: bool| u32::from(holds).wrapping_neg();
    for half in 0..2 {
        let (a, b, out) = (a[half], b[half], &mut out[half]);
        match lane {
            Lane::Add => over_singles(a, b, out, |a, b| (a + b).to_bits()),
            Lane::Subtract => over_singles(a, b, out, |a, b| (a - b).to_bits()),
            Lane::Multiply => over_singles(a, b, out, |a, b| (a * b).to_bits()),
            Lane::Divide => over_singles(a, b, out, |a, b| (a / b).to_bits()),
            Lane::AbsoluteAdd => over_singles(a, b, out, |a, b| (a.abs() + b.abs()).to_bits()),
            Lane::AbsoluteMax => over_singles(a, b, out, |a, b| max(a.abs(), b.abs()) & !SIGN),
            Lane::Max => over_singles(a, b, out, max),
            Lane::Min => over_singles(a, b, out, min),
            Lane::Equal => over_singles(a, b, out, |a, b| mask(a == b)),
            Lane::NotEqual => over_singles(a, b, out, |a, b| mask(a != b)),
            Lane::Less => over_singles(a, b, out, |a, b| mask(a < b)),
            Lane::LessEqual => over_singles(a, b, out, |a, b| mask(a <= b)),
            Lane::Greater => over_singles(a, b, out, |a, b| mask(a > b)),
            Lane::GreaterEqual => over_singles(a, b, out, |a, b| mask(a >= b)),
        }
        let is_rounded = matches!(lane, Lane::Add | Lane::Subtract | Lane::Multiply | Lane::Divide | Lane::AbsoluteAdd);
        if is_rounded && !are_finite(out, members) {
            return false;
        }
    }
    true
}

#[inline(always)]
fn over_singles(a: Row, b: Row, out: &mut Row, f: impl Fn(f32, f32) -> u32) {
    for lane in 0..LANES {
        out[lane] = f(f32::from_bits(a[lane]), f32::from_bits(b[lane]));
    }
}

/// Whether the members' f32 are finite.
#[inline(always)]
fn are_finite(row: &Row, members: u8) -> bool {
    const INFINITY: u32 = 0x7f80_0000;
    let mut magnitudes = [0; LANES];
    for lane in 0..LANES {
        magnitudes[lane] = row[lane] & 0x7fff_ffff;
    }
    are_below(&magnitudes, INFINITY, members)
}

/// The values of both halves.
#[inline(always)]
pub(crate) fn half_to_single(row: Row, out: &mut [Row; 2]) {
    for lane in 0..LANES {
        out[0][lane] = f16_lane_to_f32(row[lane]).to_bits();
        out[1][lane] = f16_lane_to_f32(row[lane] >> 16).to_bits();
    }
}

/// Two rows of f32 rounded to the halves of one; whether no member's became infinite or NaN.
#[inline(always)]
pub(crate) fn single_to_half(values: [Row; 2], members: u8, out: &mut Row) -> bool {
    let mut largest = [0; LANES];
    for lane in 0..LANES {
        let low = f32_lane_to_f16(f32::from_bits(values[0][lane]));
        let high = f32_lane_to_f16(f32::from_bits(values[1][lane]));
        out[lane] = low & 0x7fff | low >> 16 & 0x8000 | (high & 0x7fff | high >> 16 & 0x8000) << 16;
        largest[lane] = (low & 0x7fff_ffff).max(high & 0x7fff_ffff);
    }
    are_below(&largest, 0x7c00, members)
}

/// The larger half of each register: twice of one, or side by side of two. Whether all are ordinary numbers.
#[inline(always)]
pub(crate) fn half_max_across(values: [Row; 2], four: bool, members: u8, out: &mut Row) -> bool {
    let mut tops = [[0; LANES]; 2];
    for half in 0..2 {
        if !are_below(&magnitudes(values[half]), 0x7c00, members) {
            return false;
        }
        for lane in 0..LANES {
            let (low, high) = (values[half][lane] & 0xffff, values[half][lane] >> 16);
            tops[half][lane] = if f16_lane_to_f32(low) >= f16_lane_to_f32(high) { low } else { high };
        }
    }
    for lane in 0..LANES {
        out[lane] = tops[0][lane] | tops[usize::from(four)][lane] << 16;
    }
    true
}

/// The f32 sum of both halves of each register, exact before its one rounding. Whether all are ordinary numbers.
#[inline(always)]
pub(crate) fn half_sum(values: [Row; 2], members: u8, out: &mut [Row; 2]) -> bool {
    for half in 0..2 {
        if !are_below(&magnitudes(values[half]), 0x7c00, members) {
            return false;
        }
        for lane in 0..LANES {
            out[half][lane] = (f16_lane_to_f32(values[half][lane]) + f16_lane_to_f32(values[half][lane] >> 16)).to_bits();
        }
    }
    true
}

/// Halves between the lower and the upper half of `bounds`. Whether all are ordinary numbers.
#[inline(always)]
pub(crate) fn half_clamp(values: [Row; 2], bounds: Row, members: u8, out: &mut [Row; 2]) -> bool {
    if !are_below(&magnitudes(bounds), 0x7c00, members) {
        return false;
    }
    for half in 0..2 {
        if !are_below(&magnitudes(values[half]), 0x7c00, members) {
            return false;
        }
        for lane in 0..LANES {
            let (low, high) = (bounds[lane] & 0xffff, bounds[lane] >> 16);
            let clamp = |value: u32| {
                let raised = if f16_lane_to_f32(value) >= f16_lane_to_f32(low) { value } else { low };
                if f16_lane_to_f32(raised) <= f16_lane_to_f32(high) { raised } else { high }
            };
            out[half][lane] = clamp(values[half][lane] & 0xffff) | clamp(values[half][lane] >> 16) << 16;
        }
    }
    true
}

/// f32 between two bounds.
#[inline(always)]
pub(crate) fn single_clamp(values: [Row; 2], bounds: [Row; 2], out: &mut [Row; 2]) {
    for half in 0..2 {
        for lane in 0..LANES {
            let (low, high) = (f32::from_bits(bounds[0][lane]), f32::from_bits(bounds[1][lane]));
            let value = f32::from_bits(values[half][lane]);
            let raised = if value >= low || low.is_nan() { value } else { low };
            out[half][lane] = if raised <= high || high.is_nan() { raised } else { high }.to_bits();
        }
    }
}

/// A function of both halves; whether that raises nothing for any member.
#[inline(always)]
pub(crate) fn half_function(function: Function, row: Row, members: u8, out: &mut Row) -> bool {
    let mut is_plain = true;
    for n in lanes_of(members) {
        match (tabulated(function, row[n] as u16), tabulated(function, (row[n] >> 16) as u16)) {
            (Some(low), Some(high)) => out[n] = u32::from(low) | u32::from(high) << 16,
            _ => is_plain = false,
        }
    }
    is_plain
}

/// A function of f32; whether all members' results are finite, so that nothing is raised.
#[inline(always)]
pub(crate) fn single_function(function: Function, row: Row, members: u8, out: &mut Row) -> bool {
    for n in lanes_of(members) {
        let x = f64::from(f32::from_bits(row[n]));
        out[n] = (function.value(x) as f32).to_bits();
    }
    are_finite(out, members)
}

/// A comparison of f16 lanes, and for each worker the largest magnitude among operands.
#[inline(always)]
fn compared(a: Row, b: Row, holds: impl Fn(f32, f32) -> bool) -> (Row, Row) {
    let (x, y) = (widened(a), widened(b));
    let (mut values, mut largest) = ([0; LANES], [0; LANES]);
    for lane in 0..LANES {
        let (low, high) = (holds(x[lane], y[lane]), holds(x[lane + LANES], y[lane + LANES]));
        values[lane] = (u32::from(low) * 0xffff) | (u32::from(high) * 0xffff_0000);
        largest[lane] = (a[lane] & 0x7fff).max(a[lane] >> 16 & 0x7fff).max(b[lane] & 0x7fff).max(b[lane] >> 16 & 0x7fff);
    }
    (values, largest)
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
