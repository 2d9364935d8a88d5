//! Functions of f16 looked up: each of the 65536 results is computed when it is first wanted.

use std::sync::atomic::{AtomicU16, Ordering};

use crate::arithmetic::FloatState;
use crate::transcendental::Function;
use crate::vector_unit::half_function;

/// f16 values.
const VALUES: usize = 1 << 16;
/// What is kept of a result is its exclusive or with this NaN, which no function gives, so that 0 means not yet computed.
const NEVER: u16 = 0x7e01;
/// Kept of results that raise a flag or overflow.
const RARE: u16 = 0xffff;

static TABLES: [[AtomicU16; VALUES]; Function::COUNT] = [const { [const { AtomicU16::new(0) }; VALUES] }; Function::COUNT];

/// The result for an f16 rounded to nearest even; nothing if it raises a flag or overflows.
#[inline]
pub(crate) fn tabulated(function: Function, bits: u16) -> Option<u16> {
    let place = &TABLES[function as usize][usize::from(bits)];
    let kept = match place.load(Ordering::Relaxed) {
        0 => compute(function, bits, place),
        kept => kept,
    };
    if kept == RARE { None } else { Some(kept ^ NEVER) }
}

#[cold]
fn compute(function: Function, bits: u16, place: &AtomicU16) -> u16 {
    let mut float = FloatState::default();
    let result = half_function(&mut float, function, bits);
    let kept = if float.status != 0 || float.overflows != 0 { RARE } else { result ^ NEVER };
    place.store(kept, Ordering::Relaxed);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looked_up_results_are_the_computed_ones() {
        for function in [Function::Exp, Function::Ln, Function::Sqrt, Function::Reciprocal] {
            for bits in (0..=u16::MAX).step_by(7) {
                for _ in 0..2 {
                    let mut float = FloatState::default();
                    let expected = half_function(&mut float, function, bits);
                    let is_rare = float.status != 0 || float.overflows != 0;
                    assert_eq!(tabulated(function, bits), if is_rare { None } else { Some(expected) }, "{function:?} {bits:#x}");
                }
            }
        }
    }
}
