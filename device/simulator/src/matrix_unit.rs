//! Accumulators of a worker and the instructions that work on them: AMP, SLIC, sums, and the 4 x 4 transpose (isa-notes 9, 10).
//!
//! Unit u of both sets has two accumulators: `active` is AACC[2u], `staging` is AACC[2u + 1]; units 8..15 are set 1.
//! Sums are formed in f64 as `((p0 + p1) + (p2 + p3)) + accumulator` and rounded once to f32 (parameters.toml `amp_sum`).

use crate::coefficients::Coefficients;
use crate::float_format::F32_NAN_BITS;

/// The 32 accumulators, with a written bit for each.
///
/// The staging chain of a set is a ring: a couple that leaves makes room for the one that enters, and nothing moves.
#[derive(Clone, Debug)]
pub(crate) struct Accumulators {
    active: [f32; 16],
    /// Couples of two f32, the first in the low half: one load and one store each.
    staging: [u64; 8],
    active_written: u16,
    staging_written: u16,
    /// Which couple of each set's four in `staging` is that of units 0 and 1.
    head: u8,
}

/// What a matrix step moves out of or into one set: two f32 values and whether they were written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Couple {
    /// Units 0 and 1 of the set (results) or its two last units (partials).
    pub(crate) values: [f32; 2],
    /// Whether somebody wrote them.
    pub(crate) written: bool,
}

/// A sum rounded to f32, every NaN the same: hosts, and ways of one host, differ in which operand's payload they keep.
#[inline(always)]
pub(crate) fn quiet(sum: f64) -> f32 {
    let rounded = sum as f32;
    if rounded.is_nan() { f32::from_bits(F32_NAN_BITS) } else { rounded }
}

/// Two values as one word, the first in its low half.
#[inline(always)]
fn couple_bits([low, high]: [f32; 2]) -> u64 {
    u64::from(low.to_bits()) | u64::from(high.to_bits()) << 32
}

/// The two values of a word.
#[inline(always)]
fn couple_values(bits: u64) -> [f32; 2] {
    [f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32)]
}

/// Length of the chain: 8 units for E4, 4 for E2, 2 for E1.
pub(crate) type Units = usize;

impl Accumulators {
    /// Poison.
    pub(crate) fn new(salt: u64) -> Accumulators {
        let value = |i: usize| f32::from_bits((crate::memory::scramble(salt ^ i as u64) as u32) & 0xbfff_ffff);
        Accumulators {
            active: std::array::from_fn(value),
            staging: std::array::from_fn(|i| couple_bits([value(16 + 2 * i), value(17 + 2 * i)])),
            active_written: 0,
            staging_written: 0,
            head: 0,
        }
    }

    /// Brings unit 0 of each set back to its place.
    fn straighten(&mut self) {
        if self.head == 0 {
            return;
        }
        let head = usize::from(std::mem::take(&mut self.head));
        self.staging[..4].rotate_left(head);
        self.staging[4..].rotate_left(head);
        let [low, high] = self.staging_written.to_le_bytes().map(|mask| mask.rotate_right(2 * head as u32));
        self.staging_written = u16::from_le_bytes([low, high]);
    }

    /// Whether somebody may read an accumulator that nobody wrote.
    pub(crate) fn has_poison(&self) -> bool {
        self.active_written & self.staging_written != u16::MAX
    }

    /// Active and staging accumulators in the order of units.
    pub(crate) fn in_order(&mut self) -> [[f32; 16]; 2] {
        self.straighten();
        [self.active, std::array::from_fn(|unit| couple_values(self.staging[unit / 2])[unit % 2])]
    }

    /// Replaces accumulators that were all written; the counterpart of [`Accumulators::in_order`].
    pub(crate) fn put(&mut self, [active, staging]: [[f32; 16]; 2]) {
        self.active = active;
        self.staging = std::array::from_fn(|couple| couple_bits([staging[2 * couple], staging[2 * couple + 1]]));
        self.head = 0;
    }

    /// Exchanges active and staging accumulators of the first `sets` sets.
    #[inline(always)]
    fn swap(&mut self, sets: usize) {
        self.straighten();
        for (pair, couple) in self.active.as_chunks_mut::<2>().0.iter_mut().zip(&mut self.staging).take(4 * sets) {
            let leaving = couple_bits(*pair);
            *pair = couple_values(*couple);
            *couple = leaving;
        }
        let mask = if sets == 2 { u16::MAX } else { 0xff };
        let (active, staging) = (self.active_written, self.staging_written);
        self.active_written = active & !mask | staging & mask;
        self.staging_written = staging & !mask | active & mask;
    }

    /// Values and written bits in the order of units: active, then staging.
    pub(crate) fn contents(&self) -> ([u32; 32], u32) {
        let mut straight = self.clone();
        straight.swap(0);
        let staging = |i: usize| couple_values(straight.staging[i / 2])[i % 2];
        let values = std::array::from_fn(|i| if i < 16 { straight.active[i] } else { staging(i - 16) }.to_bits());
        (values, u32::from(straight.active_written) | u32::from(straight.staging_written) << 16)
    }

    /// Zeroes everything (`$FP_CLR.ZAACC`).
    pub(crate) fn clear(&mut self) {
        *self = Accumulators { active: [0.0; 16], staging: [0; 8], active_written: u16::MAX, staging_written: u16::MAX, head: 0 };
    }

    /// Forgets what was written: the transpose uses the same accumulators in a way that is not public.
    pub(crate) fn forget(&mut self) {
        self.active_written = 0;
        self.staging_written = 0;
    }

    /// The first half of an f16 step of both sets with the full chain: a couple of each set enters and one leaves. Returns what
    /// leaves and a bit for each couple of it that was written; `entering_written` is such a set of bits.
    #[inline(always)]
    fn pass(&mut self, entering: [u64; 2], entering_written: u32, swap: bool) -> ([u64; 2], u32) {
        if swap {
            self.swap(2);
        }
        let low = usize::from(self.head & 3);
        let leaving = [self.staging[low], self.staging[low + 4]];
        [self.staging[low], self.staging[low + 4]] = entering;
        let written = self.staging_written >> (2 * low);
        let leaving_written = u32::from(written & 3 == 3) | u32::from(written & 0x300 == 0x300) << 1;
        let bits = ((entering_written & 1) * 3) | ((entering_written >> 1) * 0x300);
        self.staging_written = self.staging_written & !(0x303 << (2 * low)) | (bits as u16) << (2 * low);
        self.head = (self.head + 1) & 3;
        (leaving, leaving_written)
    }

    /// One f16 step of both sets with the full chain.
    pub(crate) fn step_both(&mut self, weights: &[[f64; 4]; 16], x: [f64; 4], partials: [Couple; 2], swap: bool) -> [Couple; 2] {
        let entering = partials.map(|partial| couple_bits(partial.values));
        let (leaving, written) = self.pass(entering, u32::from(partials[0].written) | u32::from(partials[1].written) << 1, swap);
        for (unit, sum) in self.active.iter_mut().enumerate() {
            let weight = &weights[unit];
            let products = (x[0] * weight[0] + x[1] * weight[1]) + (x[2] * weight[2] + x[3] * weight[3]);
            *sum = quiet(products + f64::from(*sum));
        }
        [0, 1].map(|set| Couple { values: couple_values(leaving[set]), written: written >> set & 1 == 1 })
    }

    /// Moves a couple through the staging chain of a set.
    #[inline(always)]
    fn shift(&mut self, set: usize, units: Units, partial: Couple) -> Couple {
        self.straighten();
        let first = 8 * set;
        let mask = 3 << first;
        let chain = 4 * set..4 * set + units / 2;
        let result = Couple { values: couple_values(self.staging[chain.start]), written: self.staging_written & mask == mask };
        self.staging[chain.clone()].rotate_left(1);
        self.staging[chain.end - 1] = couple_bits(partial.values);
        let chain = ((1u16 << units) - 1) << first;
        let moved = (self.staging_written & chain) >> 2 & chain;
        let entered = u16::from(partial.written) * (3 << (first + units - 2));
        self.staging_written = self.staging_written & !chain | moved & !(3 << (first + units - 2)) | entered;
        result
    }

    /// Adds a product sum to a unit.
    fn add(&mut self, unit: usize, sum: f64) {
        self.active[unit] = quiet(sum + f64::from(self.active[unit]));
    }

    /// One step of `partials.len()` sets with any chain length; `dot` gives the product sum of a unit.
    pub(crate) fn step(&mut self, units: Units, swap: bool, partials: &[Couple], dot: impl Fn(usize) -> f64) -> [Couple; 2] {
        let sets = partials.len();
        if swap {
            self.swap(sets);
        }
        let mut results = [Couple { values: [0.0; 2], written: false }; 2];
        for (set, partial) in partials.iter().enumerate() {
            results[set] = self.shift(set, units, *partial);
            for unit in 8 * set..8 * set + units {
                self.add(unit, dot(unit));
            }
        }
        results
    }

    /// One f32 step: `sets` sets are multiplied, the couple of `moving` (a set, if any) moves.
    pub(crate) fn step_single(
        &mut self,
        units: Units,
        sets: usize,
        swap: bool,
        moving: Option<(usize, Couple)>,
        product: impl Fn(usize) -> f64,
    ) -> Couple {
        if swap {
            self.swap(sets);
        }
        let result = match moving {
            Some((set, partial)) => self.shift(set, units, partial),
            None => Couple { values: [0.0; 2], written: false },
        };
        for set in 0..sets {
            for unit in 8 * set..8 * set + units {
                self.add(unit, product(unit));
            }
        }
        result
    }

    /// One SLIC step of the 1x4 shape on a set (isa-notes 10.4).
    pub(crate) fn slim(&mut self, set: usize, partial: Couple, dot: impl Fn(usize) -> f64) -> Couple {
        let first = 8 * set;
        let mask = 3 << first;
        let sums = &mut self.active[first..first + 8];
        let result = Couple { values: [sums[0], sums[1]], written: self.active_written & mask == mask };
        for unit in 0..8 {
            let carried = if unit < 6 { sums[unit + 2] } else { partial.values[unit - 6] };
            sums[unit] = quiet(dot(first + unit) + f64::from(carried));
        }
        let chain = 0xff << first;
        let moved = (self.active_written & chain) >> 2 & (0x3f << first);
        self.active_written = self.active_written & !chain | moved | (u16::from(partial.written) * (0xc0 << first));
        result
    }

    /// One of the two calls of an f32 SLIC step of the 1x4 shape on the first `sets` sets. The couple that leaves set 1 in the first
    /// call waits in AACC[17] and AACC[19] for the second, in which the partials of set 1 enter.
    pub(crate) fn slim_single(&mut self, second: bool, sets: usize, partial: Couple, product: impl Fn(usize) -> f64) -> Couple {
        let nothing = Couple { values: [0.0; 2], written: true };
        if !second {
            let result = self.slim(0, partial, &product);
            if sets == 2 {
                let waiting = self.slim(1, nothing, &product);
                self.straighten();
                self.staging[4] = couple_bits(waiting.values);
                self.staging_written = (self.staging_written & !0x300) | (u16::from(waiting.written) * 0x300);
            }
            return result;
        }
        for unit in 0..8 * sets {
            let entering = if unit >= 14 { f64::from(partial.values[unit - 14]) } else { 0.0 };
            self.add(unit, product(unit) + entering);
        }
        if sets == 1 {
            return Couple { written: false, ..nothing };
        }
        self.active_written &= if partial.written { u16::MAX } else { 0x3fff };
        self.straighten();
        Couple { values: couple_values(self.staging[4]), written: self.staging_written & 0x300 == 0x300 }
    }

    /// Adds to AACC[number].
    pub(crate) fn add_to(&mut self, number: usize, value: f64) {
        let unit = number / 2;
        if number.is_multiple_of(2) {
            return self.add(unit, value);
        }
        self.straighten();
        let mut couple = couple_values(self.staging[unit / 2]);
        couple[unit % 2] = quiet(value + f64::from(couple[unit % 2]));
        self.staging[unit / 2] = couple_bits(couple);
    }

    /// AACC[2i] += values[i].
    pub(crate) fn accumulate(&mut self, values: &[f64]) {
        for (unit, value) in values.iter().enumerate() {
            self.add(unit, *value);
        }
    }

    /// AACC[2i], i in 0..4, and whether each was written.
    pub(crate) fn even(&self) -> ([f32; 4], u16) {
        ([self.active[0], self.active[1], self.active[2], self.active[3]], self.active_written & 15)
    }

    /// Writes AACC[2i] for i from 0 and returns what was there.
    pub(crate) fn replace<const N: usize>(&mut self, values: [f32; N]) -> ([f32; N], bool) {
        let mask = (1 << N) - 1;
        let old = std::array::from_fn(|i| self.active[i]);
        let written = self.active_written & mask == mask;
        self.active[..N].copy_from_slice(&values.map(|value| quiet(value.into())));
        self.active_written |= mask;
        (old, written)
    }

    /// `gina` with immediate 0: takes AACC[0], AACC[2] out of the chain and enters a couple at AACC[12], AACC[14].
    pub(crate) fn exchange(&mut self, entering: [f32; 2], entering_written: u32) -> ([f32; 2], u32) {
        let result = ([self.active[0], self.active[1]], u32::from(self.active_written & 3));
        self.active.copy_within(2..8, 0);
        self.active[6..8].copy_from_slice(&entering);
        let set = (self.active_written & 0xff) >> 2 | (entering_written as u16 & 3) << 6;
        self.active_written = self.active_written & 0xff00 | set;
        result
    }
}

/// The dot product of four f16 values with a unit's coefficients.
pub(crate) fn dot4(coefficients: &Coefficients, phase: usize, x: [f64; 4], unit: usize) -> f64 {
    let weight = &coefficients.half(phase)[unit];
    (x[0] * weight[0] + x[1] * weight[1]) + (x[2] * weight[2] + x[3] * weight[3])
}

/// The dot product of eight FP8 values with a unit's coefficients, scaled by 2^`$FP_ISCL`.
pub(crate) fn dot8(coefficients: &Coefficients, phase: usize, x: [f64; 8], unit: usize) -> f64 {
    let weights = coefficients.bytes(4 * unit + phase);
    let product = |i: usize| x[i] * weights[i];
    let first = (product(0) + product(1)) + (product(2) + product(3));
    let second = (product(4) + product(5)) + (product(6) + product(7));
    libm::ldexp(first + second, coefficients.byte_scale)
}

/// The 4 x 4 transpose of `f16v4istacc` and `f16v4stacc`: rows enter in two calls, columns leave in four (isa-notes 10.5).
#[derive(Clone, Debug, Default)]
pub(crate) struct Sorter {
    rows: [(u64, u32); 4],
    columns: [(u64, u32); 4],
}

impl Sorter {
    /// Enters two rows (64 bits and two written bits each); returns column 2 or 3 of the block before.
    pub(crate) fn enter(&mut self, second: bool, rows: [(u64, u32); 2]) -> (u64, u32) {
        let at = 2 * usize::from(second);
        let leaving = self.columns[2 + usize::from(second)];
        self.rows[at..at + 2].copy_from_slice(&rows);
        if second {
            self.columns = std::array::from_fn(|column| self.column(column));
        }
        leaving
    }

    /// Column 0 or 1 of the block entered last.
    pub(crate) fn leave(&self, second: bool) -> (u64, u32) {
        self.columns[usize::from(second)]
    }

    fn column(&self, column: usize) -> (u64, u32) {
        let mut value = 0;
        let mut written = 3;
        for (row, (lanes, lanes_written)) in self.rows.iter().enumerate() {
            value |= (lanes >> (16 * column) & 0xffff) << (16 * row);
            if lanes_written >> (column / 2) & 1 == 0 {
                written &= !(1 << (row / 2));
            }
        }
        (value, written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::scramble;
    use half::f16;

    fn couple(values: [f32; 2]) -> Couple {
        Couple { values, written: true }
    }

    /// A value with few bits, so that sums are exact in any order.
    fn small(seed: u64) -> f64 {
        (scramble(seed) % 17) as f64 - 8.0
    }

    fn filled() -> Coefficients {
        let mut coefficients = Coefficients::default();
        for entry in 0..64 {
            let lane = |i: usize| u64::from(f16::from_f64(small((entry * 4 + i) as u64)).to_bits()) << (16 * i);
            coefficients.put(entry, lane(0) | lane(1) | lane(2) | lane(3), 3);
        }
        coefficients
    }

    fn input(row: usize, channel: usize) -> f64 {
        small(1000 + (row * 16 + channel) as u64)
    }

    fn partial(row: usize, unit: usize) -> f32 {
        small(9000 + (row * 16 + unit) as u64) as f32
    }

    /// sum over 16 channels of x * w, plus the partial, computed from the raw numbers.
    fn expected(row: usize, unit: usize) -> f32 {
        let sum: f64 = (0..16).map(|k| input(row, k) * small((unit * 16 + k) as u64)).sum();
        (sum + f64::from(partial(row, unit))) as f32
    }

    #[test]
    fn rows_streamed_through_the_chain_come_out_multiplied_and_in_order() {
        let coefficients = filled();
        let mut accumulators = Accumulators::new(3);
        let rows = 4;
        let mut out = vec![[0.0f32; 16]; rows];
        for call in 0..4 * (rows + 2) {
            let (row, phase) = (call / 4, call % 4);
            let x = |j: usize| if row == 0 || row > rows { 0.0 } else { input(row - 1, 4 * phase + j) };
            let part = |set: usize| {
                let unit = 8 * set + 2 * phase;
                if row < rows { couple([partial(row, unit), partial(row, unit + 1)]) } else { couple([0.0; 2]) }
            };
            let results = accumulators.step_both(coefficients.half(phase), [x(0), x(1), x(2), x(3)], [part(0), part(1)], phase == 0);
            if row >= 2 {
                for (set, result) in results.iter().enumerate() {
                    assert!(result.written);
                    out[row - 2][8 * set + 2 * phase..8 * set + 2 * phase + 2].copy_from_slice(&result.values);
                }
            }
        }
        for (row, values) in out.iter().enumerate() {
            let wanted: Vec<f32> = (0..16).map(|unit| expected(row, unit)).collect();
            assert_eq!(&values[..], &wanted[..], "row {row}");
        }
    }

    #[test]
    fn the_general_step_equals_the_fast_one() {
        let coefficients = filled();
        let (mut fast, mut general) = (Accumulators::new(3), Accumulators::new(3));
        for call in 0..40usize {
            let phase = call % 4;
            let x: [f64; 4] = std::array::from_fn(|j| small((call * 4 + j) as u64));
            let parts = [couple([call as f32, 1.0]), Couple { values: [2.0, 3.0], written: call > 9 }];
            let one = fast.step_both(coefficients.half(phase), x, parts, phase == 0);
            let other = general.step(8, phase == 0, &parts, |unit| dot4(&coefficients, phase, x, unit));
            assert_eq!(one, other, "call {call}");
            assert_eq!(fast.contents(), general.contents(), "call {call}");
        }
    }

    #[test]
    fn a_poison_partial_leaves_as_poison_and_nothing_else_does() {
        let coefficients = filled();
        let mut accumulators = Accumulators::new(3);
        accumulators.clear();
        for call in 0..12usize {
            let partial = Couple { values: [0.0; 2], written: call != 1 };
            let results = accumulators.step_both(coefficients.half(call % 4), [0.0; 4], [partial, couple([0.0; 2])], call % 4 == 0);
            assert_eq!(results[0].written, call != 9, "call {call}");
            assert!(results[1].written);
        }
    }

    #[test]
    fn slim_steps_return_a_partial_four_calls_later() {
        let coefficients = filled();
        let mut accumulators = Accumulators::new(3);
        accumulators.clear();
        let x = |call: usize| -> [f64; 4] { std::array::from_fn(|j| small((call * 4 + j) as u64)) };
        let mut out = Vec::new();
        for call in 0..9 {
            let part = couple([100.0 + call as f32, 200.0]);
            out.push(accumulators.slim(0, part, |unit| dot4(&coefficients, 0, x(call), unit)));
        }
        for call in 0..5 {
            for side in 0..2 {
                let units = [6 + side, 4 + side, 2 + side, side];
                let sum: f64 = units.iter().enumerate().map(|(step, &unit)| dot4(&coefficients, 0, x(call + step), unit)).sum();
                let start = if side == 0 { 100.0 + call as f64 } else { 200.0 };
                assert_eq!(out[call + 4].values[side], (sum + start) as f32);
            }
        }
    }

    #[test]
    fn gina_drains_and_initialises_eight_accumulators_in_four_calls() {
        let mut accumulators = Accumulators::new(3);
        accumulators.clear();
        accumulators.accumulate(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let mut out = Vec::new();
        for call in 0..4 {
            out.extend(accumulators.exchange([10.0 + call as f32, 20.0], 3).0);
        }
        assert_eq!(out, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(accumulators.exchange([0.0; 2], 3), ([10.0, 20.0], 3));
    }

    #[test]
    fn four_rows_come_back_as_four_columns() {
        let row = |r: u64| (0..4).fold(0u64, |word, c| word | (10 * r + c) << (16 * c));
        let column = |c: u64| (0..4).fold(0u64, |word, r| word | (10 * r + c) << (16 * r));
        let mut sorter = Sorter::default();
        sorter.enter(false, [(row(0), 3), (row(1), 3)]);
        sorter.enter(true, [(row(2), 3), (row(3), 1)]);
        assert_eq!(sorter.leave(false), (column(0), 3));
        assert_eq!(sorter.leave(true), (column(1), 3));
        assert_eq!(sorter.enter(false, [(0, 3), (0, 3)]), (column(2), 1));
        assert_eq!(sorter.enter(true, [(0, 3), (0, 3)]), (column(3), 1));
    }

    /// A byte's value in units of 2^-10 (F143) or 2^-17 (F152), from the fields of isa-notes 8.
    fn units_of(code: u64, is_f143: bool) -> Option<i128> {
        let fraction_bits = if is_f143 { 3 } else { 2 };
        let (exponent, fraction) = ((code & 0x7f) >> fraction_bits, i128::from(code & ((1 << fraction_bits) - 1)));
        let magnitude = if exponent == 0 { fraction } else { (fraction + (1 << fraction_bits)) << (exponent - 1) };
        if code == 0x80 { None } else { Some(if code > 0x80 { -magnitude } else { magnitude }) }
    }

    #[test]
    fn all_pairs_of_bytes_multiply_exactly_in_all_formats() {
        let mut coefficients = Coefficients::default();
        coefficients.byte_scale = -3;
        for formats in 0..4 {
            let (weights, inputs) = (formats & 1 == 1, formats >> 1 & 1 == 1);
            coefficients.byte_formats = formats;
            let unit = 0.5f64.powi((if weights { 10 } else { 17 }) + (if inputs { 10 } else { 17 }) + 3);
            for weight in 0..256 {
                coefficients.put(5, weight << 16, 3);
                for input in 0..256u64 {
                    let mut x = [0.0; 8];
                    x[2] = crate::float_format::Fp8::of(formats >> 1).value(input as u8);
                    let found = dot8(&coefficients, 1, x, 1);
                    match (units_of(weight, weights), units_of(input, inputs)) {
                        (Some(a), Some(b)) => assert_eq!(found, (a * b) as f64 * unit, "{weight:#x} {input:#x} {formats}"),
                        _ => assert!(found.is_nan(), "{weight:#x} {input:#x} {formats}"),
                    }
                }
            }
        }
    }
}
