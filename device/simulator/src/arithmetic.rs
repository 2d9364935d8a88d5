//! Floating-point state of a worker: control, sticky flags, random source; and results rounded once (isa-notes 8).

use crate::float_format::{
    F16_MAX_BITS, F16_NAN_BITS, F32_NAN_BITS, Rounding, f16_magnitude, f16_magnitude_nearest, f16_magnitude_stochastic,
};

/// Flag and enable bits of `$FP_STS` and `$FP_CTL`.
pub(crate) const INVALID: u32 = 1;
/// Division by zero.
pub(crate) const DIVIDE_BY_ZERO: u32 = 2;
/// Overflow.
pub(crate) const OVERFLOW: u32 = 4;

const ROUNDING_FIELD: u32 = 7 << 16;
const STOCHASTIC: u32 = 1 << 19;
const NAN_ON_OVERFLOW: u32 = 1 << 20;

/// `$FP_CTL`, `$FP_STS`, the PRNG, and a count of binary16 overflows for the report.
#[derive(Clone, Debug, Default)]
pub(crate) struct FloatState {
    /// `$FP_CTL`.
    pub(crate) control: u32,
    /// `$FP_STS`.
    pub(crate) status: u32,
    /// PRNG state, two 64-bit words (a stand-in: xoroshiro128+).
    pub(crate) random: [u64; 2],
    /// Results that saturated or became NaN because binary16 ended.
    pub(crate) overflows: u64,
}

/// 2^128: the first power of two that f32 lacks. What lies beyond has overflowed even if it rounds to the largest number.
const F32_END: f64 = 340_282_366_920_938_463_463_374_607_431_768_211_456.0;

impl FloatState {
    /// The selected rounding; codes without a meaning round to nearest.
    pub(crate) fn rounding(&self) -> Rounding {
        Rounding::of((self.control & ROUNDING_FIELD) >> 16).unwrap_or(Rounding::NearestEven)
    }

    /// Flags raised and enabled as exceptions.
    #[inline]
    pub(crate) fn trapped(&self) -> u32 {
        self.status & self.control & 7
    }

    /// One 64-bit draw of the stand-in generator.
    pub(crate) fn draw(&mut self) -> u64 {
        let [first, mut second] = self.random;
        let result = first.wrapping_add(second);
        second ^= first;
        self.random = [first.rotate_left(24) ^ second ^ (second << 16), second.rotate_left(37)];
        result
    }

    /// Rounds to binary16: overflow saturates, or gives NaN under NANOO.
    #[inline]
    pub(crate) fn round16(&mut self, value: f64) -> u16 {
        if !self.rounds16_plainly() {
            return self.round16_slowly(value);
        }
        let magnitude = if value.is_nan() { u32::from(F16_NAN_BITS) } else { f16_magnitude_nearest(value) };
        self.finish16(value, magnitude)
    }

    #[cold]
    fn round16_slowly(&mut self, value: f64) -> u16 {
        let magnitude = if value.is_nan() {
            u32::from(F16_NAN_BITS)
        } else if self.control & STOCHASTIC != 0 {
            let draw = (self.draw() >> 11) as f64 / (1u64 << 53) as f64;
            f16_magnitude_stochastic(value, draw)
        } else {
            f16_magnitude(value, self.rounding())
        };
        self.finish16(value, magnitude)
    }

    #[inline]
    fn finish16(&mut self, value: f64, magnitude: u32) -> u16 {
        let sign = ((value.to_bits() >> 48) & 0x8000) as u16;
        if magnitude >= 0x7c00 {
            return self.overflow16(value, sign);
        }
        sign | magnitude as u16
    }

    #[cold]
    fn overflow16(&mut self, value: f64, sign: u16) -> u16 {
        if value.is_nan() {
            return F16_NAN_BITS;
        }
        self.status |= OVERFLOW;
        self.overflows += 1;
        if self.control & NAN_ON_OVERFLOW != 0 { F16_NAN_BITS } else { sign | F16_MAX_BITS }
    }

    /// A sum in f64: what cancels is -0 when rounding down and +0 otherwise, as in IEEE 754.
    #[inline]
    pub(crate) fn sum(&self, a: f64, b: f64) -> f64 {
        let sum = a + b;
        if sum == 0.0 && (a.is_sign_negative() || b.is_sign_negative()) && !self.plain() && self.rounding() == Rounding::Down {
            return -0.0;
        }
        sum
    }

    /// Rounds `value` to f32; every NaN becomes the quiet one. `rest` has the sign of what `value` itself already lost.
    pub(crate) fn round32(&mut self, value: f64, rest: f64) -> f32 {
        if value.is_nan() {
            return f32::from_bits(F32_NAN_BITS);
        }
        let rounding = self.rounding();
        let nearest = value as f32;
        let result = match rounding {
            Rounding::NearestEven => nearest,
            Rounding::NearestAway => away32(nearest, value, rest),
            _ => directed32(nearest, value, rest, rounding),
        };
        if value.is_finite() && (result.is_infinite() || value.abs() >= F32_END) {
            self.status |= OVERFLOW;
        }
        result
    }

    /// Notes an invalid operation when a result is NaN though no input was.
    #[inline]
    pub(crate) fn invalid_if(&mut self, result_nan: bool, input_nan: bool) {
        if result_nan && !input_nan {
            self.status |= INVALID;
        }
    }

    /// Whether binary16 results are rounded to nearest even.
    #[inline]
    pub(crate) fn rounds16_plainly(&self) -> bool {
        self.control & (ROUNDING_FIELD | STOCHASTIC) == 0
    }

    /// Whether everything is rounded to nearest even and nothing is raised as an exception.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.control & (ROUNDING_FIELD | STOCHASTIC | 7) == 0
    }

    /// Whether f32 arithmetic rounds to nearest even, as the host does.
    #[inline]
    pub(crate) fn plain(&self) -> bool {
        self.control & ROUNDING_FIELD == 0
    }
}

/// The nearest f32, of two equally near ones the greater in magnitude.
fn away32(nearest: f32, value: f64, rest: f64) -> f32 {
    if nearest.is_nan() || !value.is_finite() || nearest.is_infinite() {
        return nearest;
    }
    let wide = f64::from(nearest);
    let neighbour = if wide < value { nearest.next_up() } else { nearest.next_down() };
    let is_tie = rest == 0.0 && wide != value && value - wide == f64::from(neighbour) - value;
    if is_tie && f64::from(neighbour).abs() > wide.abs() { neighbour } else { nearest }
}

/// The f32 on the wanted side of `value` (plus the sign of `rest`), starting from its nearest.
fn directed32(nearest: f32, value: f64, rest: f64, rounding: Rounding) -> f32 {
    if nearest.is_nan() || !value.is_finite() {
        return nearest;
    }
    let wide = f64::from(nearest);
    let above = wide > value || (wide == value && rest < 0.0);
    let below = wide < value || (wide == value && rest > 0.0);
    let toward_zero_down = rounding == Rounding::Zero && value > 0.0;
    let toward_zero_up = rounding == Rounding::Zero && value < 0.0;
    if above && (rounding == Rounding::Down || toward_zero_down) {
        nearest.next_down()
    } else if below && (rounding == Rounding::Up || toward_zero_up) {
        nearest.next_up()
    } else {
        nearest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(control: u32) -> FloatState {
        FloatState { control, random: [1, 2], ..FloatState::default() }
    }

    #[test]
    fn overflow_saturates_and_is_counted_unless_nan_is_asked_for() {
        let mut plain = state(0);
        assert_eq!(plain.round16(-70000.0), 0xfbff);
        assert_eq!((plain.status, plain.overflows), (OVERFLOW, 1));
        assert_eq!(state(NAN_ON_OVERFLOW).round16(70000.0), F16_NAN_BITS);
        assert_eq!(plain.round16(65519.0), 0x7bff);
        assert_eq!(plain.overflows, 1);
    }

    #[test]
    fn directed_f32_rounding_moves_one_unit_at_most() {
        let value = 1.0 + 1e-9;
        assert_eq!(state(1 << 16).round32(value, 0.0), 1.0f32.next_up());
        assert_eq!(state(2 << 16).round32(value, 0.0), 1.0);
        assert_eq!(state(3 << 16).round32(-value, 0.0), -1.0);
        assert_eq!(state(2 << 16).round32(1.0, -1.0), 1.0f32.next_down());
    }

    #[test]
    fn stochastic_rounding_keeps_the_mean() {
        let mut random = state(STOCHASTIC);
        let value = 1.0 + 0.25 / 1024.0;
        let ups = (0..10_000).filter(|_| random.round16(value) == 0x3c01).count();
        assert!((2_300..2_700).contains(&ups), "{ups}");
    }
}
