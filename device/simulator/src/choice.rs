//! The simulator's own choices where no public source says anything (parameters.toml `[choice]`), entered into operations when
//! their words are decoded.

use ipu21::parameters::{Choice, Fp8Overflow, PackedHalf};

use crate::code::Operation;
use crate::operation::{Kind, Pace};

/// The choices in the form that operations carry.
#[derive(Debug)]
pub(crate) struct Choices {
    /// Four bits for each class, in the order of [`Class`].
    class_codes: u64,
    /// Five bits for each of four accumulators.
    outer: u32,
    /// Bytes of a unit of `ldb16b16`'s last operand, and bit 31 if the high delta moves by one element.
    two_halves: u32,
    /// Bytes.
    narrow_stride: u32,
    /// Whether values beyond an FP8 format become NaN.
    bytes_overflow_to_nan: u32,
}

/// Classes of numbers, in the order of `ClassCodes::in_order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    SignallingNan = 0,
    QuietNan = 1,
    Zero = 2,
    Subnormal = 4,
    Normal = 6,
    Infinity = 8,
}

/// `ldb16b16`: the high delta moves by one element, the low one by the last operand.
const HIGH_IS_COUNTED: u32 = 1 << 31;

impl Choices {
    /// Of these parameters.
    pub(crate) fn of(choice: &Choice) -> Choices {
        let packed = |values: &[u32], bits: usize| values.iter().rev().fold(0, |word, &value| word << bits | u64::from(value));
        let counted = if choice.ldb16b16_counted_half == PackedHalf::High { HIGH_IS_COUNTED } else { 0 };
        Choices {
            class_codes: packed(&choice.class_codes.in_order(), 4),
            outer: packed(&choice.aop_accumulators, 5) as u32,
            two_halves: choice.ldb16b16_mini_bytes & !HIGH_IS_COUNTED | counted,
            narrow_stride: choice.narrow_pace_stride_bytes,
            bytes_overflow_to_nan: u32::from(choice.fp8_overflow == Fp8Overflow::Nan),
        }
    }

    /// Gives an operation the choice that it depends on.
    pub(crate) fn enter(&self, operation: &mut Operation) {
        match operation.kind {
            Kind::HalfClass { .. } | Kind::SingleClass { .. } | Kind::ByteClass => {
                (operation.immediate, operation.second) = (self.class_codes as u32, (self.class_codes >> 32) as u32);
            }
            Kind::OuterProduct => operation.second = self.outer,
            Kind::LoadTwoHalves => operation.second = self.two_halves,
            Kind::Pace(Pace::LoadPairWord | Pace::LoadPairHalf) => operation.second = self.narrow_stride,
            Kind::HalfToByte { .. } => operation.second = self.bytes_overflow_to_nan,
            _ => {}
        }
    }
}

/// The code of a class and sign in a class form.
pub(crate) fn class_code(operation: &Operation, class: Class, negative: bool) -> u32 {
    let codes = u64::from(operation.immediate) | u64::from(operation.second) << 32;
    let is_nan = matches!(class, Class::SignallingNan | Class::QuietNan);
    (codes >> (4 * (class as u32 + u32::from(negative && !is_nan))) & 15) as u32
}

/// AACC number `which`, 0..4, of an outer product.
pub(crate) fn outer_accumulator(operation: &Operation, which: u32) -> usize {
    (operation.second >> (5 * which) & 31) as usize
}

/// By how many bytes the low and the high delta of `ldb16b16` move.
pub(crate) fn delta_steps(operation: &Operation, mini: u32) -> [u32; 2] {
    let moved = (mini & 15).wrapping_mul(operation.second & !HIGH_IS_COUNTED);
    if operation.second & HIGH_IS_COUNTED == 0 { [2, moved] } else { [moved, 2] }
}
