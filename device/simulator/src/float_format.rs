//! Number formats: binary16 to and from f64 with one rounding, and the two FP8 formats (isa-notes 8).

use crate::choice::Class;

/// Rounding of `$FP_CTL.RND` and `f32int` (isa-notes 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// 0: to nearest, ties to even.
    NearestEven,
    /// 1: toward plus infinity.
    Up,
    /// 2: toward minus infinity.
    Down,
    /// 3: toward zero.
    Zero,
    /// 4: to nearest, ties away from zero.
    NearestAway,
}

impl Rounding {
    /// The rounding of a code, if it has one.
    pub(crate) fn of(code: u32) -> Option<Rounding> {
        Some(match code {
            0 => Rounding::NearestEven,
            1 => Rounding::Up,
            2 => Rounding::Down,
            3 => Rounding::Zero,
            4 => Rounding::NearestAway,
            _ => return None,
        })
    }

    /// A magnitude of a signed value, rounded to an integer.
    pub(crate) fn integer(self, magnitude: f64, negative: bool) -> f64 {
        match self {
            Rounding::NearestEven => libm::rint(magnitude),
            Rounding::Up if negative => libm::floor(magnitude),
            Rounding::Up => libm::ceil(magnitude),
            Rounding::Down if negative => libm::ceil(magnitude),
            Rounding::Down | Rounding::Zero => libm::floor(magnitude),
            Rounding::NearestAway => libm::floor(magnitude + 0.5),
        }
    }
}

/// Largest finite binary16.
pub(crate) const F16_MAX_BITS: u16 = 0x7bff;
/// The quiet NaN of binary16.
pub(crate) const F16_NAN_BITS: u16 = 0x7e00;
/// The quiet NaN of binary32. Hosts differ in the sign and the payload of the NaN they make.
pub(crate) const F32_NAN_BITS: u32 = 0x7fc0_0000;

const IMPLICIT_MAGIC: u32 = 113 << 23;

/// The value of a binary16, exact.
#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    f16_lane_to_f32(bits.into())
}

/// The value of the binary16 in the lower half of a word, exact, without branches: compilers turn loops over it into vector code.
#[inline(always)]
pub(crate) fn f16_lane_to_f32(word: u32) -> f32 {
    let magnitude = (word & 0x7fff) << 13;
    let sign = (word & 0x8000) << 16;
    let special = if magnitude >= 0x7c00 << 13 { 112 << 23 } else { 0 };
    let normal = magnitude + (112 << 23) + special;
    let subnormal = (f32::from_bits(magnitude | IMPLICIT_MAGIC) - f32::from_bits(IMPLICIT_MAGIC)).to_bits();
    f32::from_bits(sign | if magnitude < 0x400 << 13 { subnormal } else { normal })
}

/// The binary16 magnitude of a value rounded to nearest even, with the sign in bit 31, without branches; at least 0x7c00 for
/// values beyond binary16 and for NaN.
#[inline(always)]
pub(crate) fn f32_lane_to_f16(value: f32) -> u32 {
    const SUBNORMAL_MAGIC: u32 = 126 << 23;
    const REBIAS: u32 = (112u32 << 23).wrapping_neg();
    let magnitude = value.to_bits() & 0x7fff_ffff;
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_add(REBIAS).wrapping_add(0xfff + odd) >> 13;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(SUBNORMAL_MAGIC)).to_bits().wrapping_sub(SUBNORMAL_MAGIC);
    // A mask, since a choice may become a branch.
    let is_subnormal = u32::from(magnitude < IMPLICIT_MAGIC).wrapping_neg();
    normal & !is_subnormal | subnormal & is_subnormal | value.to_bits() & 0x8000_0000
}

/// The value of a binary16 as f64, exact.
#[inline]
pub(crate) fn f16_to_f64(bits: u16) -> f64 {
    f64::from(f16_to_f32(bits))
}

/// The value of a binary16 as an input of an accumulating instruction: infinities behave as NaN (isa-notes 8).
#[inline]
pub(crate) fn f16_operand(bits: u16) -> f64 {
    if bits & 0x7fff == 0x7c00 { f64::NAN } else { f16_to_f64(bits) }
}

/// A magnitude as a count of binary16 units in the last place, and the exponent that the count belongs to.
#[inline]
fn scaled(value: f64) -> (f64, i64) {
    let exponent = (((value.to_bits() >> 52) & 0x7ff) as i64 - 1023).clamp(-14, 16);
    let scale = f64::from_bits(((1023 + 10 - exponent) as u64) << 52);
    (value.abs() * scale, exponent)
}

/// Magnitude bits of a count of units; at least 0x7c00 means overflow.
#[inline]
fn assembled(count: f64, exponent: i64) -> u32 {
    if count >= 4096.0 {
        return 0x7c00;
    }
    (((exponent + 14) as u32) << 10) + count as u32
}

/// Magnitude bits of a finite value rounded to nearest even; at least 0x7c00 means overflow.
#[inline]
pub(crate) fn f16_magnitude_nearest(value: f64) -> u32 {
    const INTEGER_MAGIC: f64 = 4_503_599_627_370_496.0;
    let (count, exponent) = scaled(value);
    assembled((count + INTEGER_MAGIC) - INTEGER_MAGIC, exponent)
}

/// Magnitude bits of a finite value under any rounding; at least 0x7c00 means overflow.
pub(crate) fn f16_magnitude(value: f64, rounding: Rounding) -> u32 {
    let (count, exponent) = scaled(value);
    assembled(rounding.integer(count, value.is_sign_negative()), exponent)
}

/// Magnitude bits of a finite value rounded up with a probability equal to the cut-off part; `draw` is uniform in 0..1.
pub(crate) fn f16_magnitude_stochastic(value: f64, draw: f64) -> u32 {
    let (count, exponent) = scaled(value);
    let whole = libm::floor(count);
    let up = f64::from(u8::from(draw < count - whole));
    assembled(whole + up, exponent)
}

/// The two FP8 formats; neither has infinities, both have one NaN, code 0x80.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fp8 {
    /// 1-4-3, bias 8, largest 240.
    F143,
    /// 1-5-2, bias 16, largest 57344.
    F152,
}

impl Fp8 {
    /// The format of a format bit: 1 = F143 (isa-notes 8).
    pub(crate) fn of(bit: u32) -> Fp8 {
        if bit & 1 == 1 { Fp8::F143 } else { Fp8::F152 }
    }

    /// The code of NaN in both formats.
    pub(crate) const NAN: u8 = 0x80;

    /// The class of a code. The formats have no infinities and no signalling NaN.
    pub(crate) fn class(self, code: u8) -> Class {
        match code {
            Fp8::NAN => Class::QuietNan,
            0 => Class::Zero,
            code if (code & 0x7f) >> self.fraction_bits() == 0 => Class::Subnormal,
            _ => Class::Normal,
        }
    }

    fn fraction_bits(self) -> i32 {
        match self {
            Fp8::F143 => 3,
            Fp8::F152 => 2,
        }
    }

    fn bias(self) -> i32 {
        match self {
            Fp8::F143 => 8,
            Fp8::F152 => 16,
        }
    }

    /// The value of a code.
    pub(crate) fn value(self, code: u8) -> f64 {
        if code == Fp8::NAN {
            return f64::NAN;
        }
        let fraction_bits = self.fraction_bits();
        let fraction = i32::from(code) & ((1 << fraction_bits) - 1);
        let exponent = (i32::from(code) & 0x7f) >> fraction_bits;
        let (significand, power) = if exponent == 0 { (fraction, 1) } else { (fraction + (1 << fraction_bits), exponent) };
        let magnitude = libm::ldexp(f64::from(significand), power - self.bias() - fraction_bits);
        if code & 0x80 != 0 { -magnitude } else { magnitude }
    }

    /// The nearest code (ties to even, the largest for all beyond it, infinity included) and whether the value overflowed.
    pub(crate) fn code(self, value: f64) -> (u8, bool) {
        if value.is_nan() {
            return (Fp8::NAN, false);
        }
        let largest = self.value(0x7f);
        let step = largest - self.value(0x7e);
        let overflows = value.abs() >= largest + step / 2.0;
        let magnitude = value.abs().min(largest);
        let mut best = 0u8;
        for code in 0..=0x7fu8 {
            let nearer = (self.value(code) - magnitude).abs();
            let now = (self.value(best) - magnitude).abs();
            if nearer < now || (nearer == now && code % 2 == 0) {
                best = code;
            }
        }
        let sign = if value < 0.0 && best != 0 { 0x80 } else { 0 };
        (best | sign, overflows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    #[test]
    fn every_binary16_has_the_value_of_the_half_crate() {
        for bits in 0..=u16::MAX {
            let expected = f16::from_bits(bits).to_f64();
            let found = f16_to_f64(bits);
            assert!(found == expected || (found.is_nan() && expected.is_nan()), "{bits:#x}");
        }
    }

    #[test]
    fn rounding_to_nearest_agrees_with_the_half_crate() {
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = crate::memory::scramble(state);
            let exponent = (state >> 52) % 48;
            let value = f64::from_bits((1023 - 30 + exponent) << 52 | (state & ((1 << 52) - 1))) as f32;
            let expected = f16::from_f32(value).to_bits();
            assert_eq!(f16_magnitude_nearest(value.into()).min(0x7c00) as u16, expected, "{value}");
        }
    }

    #[test]
    fn rounding_a_lane_agrees_with_rounding_one_value() {
        for high in 0..=u16::MAX {
            for low in [0u32, 1, 0xfff, 0x1000, 0x1001, 0x2000, 0x3000, 0xffff] {
                let value = f32::from_bits(u32::from(high) << 16 | low);
                let found = f32_lane_to_f16(value);
                let expected = if value.is_nan() { 0x7c00 } else { f16_magnitude_nearest(value.into()).min(0x7c00) };
                assert_eq!((found & 0x7fff_ffff).min(0x7c00), expected, "{value:e}");
                assert_eq!(found >> 31 == 1, value.is_sign_negative(), "{value:e}");
            }
        }
    }

    #[test]
    fn directed_roundings_bracket_the_value() {
        let value = 1.000_3;
        assert_eq!(f16_magnitude(value, Rounding::Up), 0x3c01);
        assert_eq!(f16_magnitude(value, Rounding::Down), 0x3c00);
        assert_eq!(f16_magnitude(-value, Rounding::Up), 0x3c00);
        assert_eq!(f16_magnitude(value, Rounding::Zero), 0x3c00);
        assert_eq!(f16_magnitude(1.0 + 0.5 / 1024.0, Rounding::NearestAway), 0x3c01);
    }

    #[test]
    fn fp8_ranges_are_those_of_the_notes() {
        assert_eq!(Fp8::F143.value(0x7f), 240.0);
        assert_eq!(Fp8::F143.value(1), 1.0 / 1024.0);
        assert_eq!(Fp8::F152.value(0x7f), 57344.0);
        for format in [Fp8::F143, Fp8::F152] {
            for code in (0..=0xff).filter(|&code| code != 0x80) {
                assert_eq!(format.code(format.value(code)), (code, false));
            }
            assert_eq!(format.code(f64::NAN), (0x80, false));
        }
        assert_eq!(Fp8::F143.code(1000.0), (0x7f, true));
    }
}
