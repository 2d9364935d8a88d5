//! f16 matrix steps of up to six workers at once, in the vector units that the host turns out to have.
//!
//! While workers run together their accumulators are here, a row for each unit and a lane for each worker, so that a couple moves
//! through a chain as two rows. Order and rounding of every sum are those of
//! [`Accumulators::step_both`](crate::matrix_unit::Accumulators::step_both).
#![expect(clippy::needless_range_loop, reason = "one lane of several rows at a time")]

use std::hint::black_box;

use multiversion::multiversion;
use multiversion::target::target_cfg;

use crate::code::Operation;
use crate::context::Worker;
use crate::crew::{WORKERS, members_of};
use crate::float_format::{f16_lane_to_f32, f32_lane_to_f16};
use crate::lanes;
use crate::matrix_unit::{Couple, quiet};
use crate::operation::Accumulated;
use crate::plain::{Group, Results, lanes_of};
use crate::register_file::{LANES, Row};
use crate::vector_unit::rounded;

/// An f32 of each worker.
type Singles = [f32; LANES];

/// The accumulators of workers that run together, taken from them by the first step.
#[derive(Debug)]
pub(crate) struct Chains {
    /// The workers they were taken from; 0 if they are where they belong.
    members: u8,
    sets: [Chain; 2],
}

/// One set of eight units.
#[derive(Debug, Default)]
struct Chain {
    /// By unit; `active` says which of the two is multiplied into.
    banks: [[Singles; 8]; 2],
    active: usize,
    /// The couple of the other bank that leaves next: units 2 * head and 2 * head + 1.
    head: usize,
}

impl Chain {
    fn swap(&mut self) {
        let staging = &mut self.banks[(1 - self.active) & 1];
        staging.rotate_left(2 * std::mem::take(&mut self.head));
        self.active = (1 - self.active) & 1;
    }

    /// A couple enters and one leaves.
    #[inline(always)]
    fn pass(&mut self, entering: [Singles; 2]) -> [Singles; 2] {
        let at = self.head & 3;
        self.head = (at + 1) & 3;
        std::mem::replace(&mut self.banks[(1 - self.active) & 1].as_chunks_mut::<2>().0[at], entering)
    }

    /// Adds the products of four inputs with the coefficients of the units. `FUSED` adds two products by a fused multiply-add,
    /// where the host has it: a product of two f16 is exact in f64, so the sum is rounded once either way.
    #[inline(always)]
    fn add_products<const FUSED: bool>(&mut self, weights: &[[f64; 4]; 8], x: &[[f64; LANES]; 4]) {
        for (sums, weight) in self.banks[self.active & 1].iter_mut().zip(weights) {
            // Keeps compilers from making vectors of units instead of lanes, with a transpose on each side: 36 instead of 50 M steps a second.
            let weight = black_box(*weight);
            for lane in 0..LANES {
                let (second, fourth) = (x[1][lane] * weight[1], x[3][lane] * weight[3]);
                let first = if FUSED { x[0][lane].mul_add(weight[0], second) } else { x[0][lane] * weight[0] + second };
                let third = if FUSED { x[2][lane].mul_add(weight[2], fourth) } else { x[2][lane] * weight[2] + fourth };
                sums[lane] = quiet((first + third) + f64::from(sums[lane]));
            }
        }
    }
}

impl Chains {
    /// Nothing taken.
    pub(crate) fn new() -> Chains {
        Chains { members: 0, sets: [Chain::default(), Chain::default()] }
    }

    /// Takes the members' accumulators, unless there is poison among them.
    #[inline(always)]
    fn hold(&mut self, workers: &mut [Worker; WORKERS], members: u8) -> bool {
        self.members == members || self.take(workers, members)
    }

    /// The active accumulators of set 0.
    #[inline(always)]
    fn sums(&mut self) -> &mut [Singles; 8] {
        let Chain { banks, active, .. } = &mut self.sets[0];
        &mut banks[*active & 1]
    }

    #[inline(never)]
    fn take(&mut self, workers: &mut [Worker; WORKERS], members: u8) -> bool {
        self.give_back(workers);
        if lanes_of(members).any(|n| workers[n].accumulators.has_poison()) {
            return false;
        }
        for (n, worker) in members_of(workers, members) {
            for (bank, values) in worker.accumulators.in_order().into_iter().enumerate() {
                for (unit, value) in values.into_iter().enumerate() {
                    self.sets[unit / 8].banks[bank][unit % 8][n] = value;
                }
            }
        }
        for set in &mut self.sets {
            (set.active, set.head) = (0, 0);
        }
        self.members = members;
        true
    }

    /// Gives the workers their accumulators back.
    pub(crate) fn give_back(&mut self, workers: &mut [Worker; WORKERS]) {
        for (n, worker) in members_of(workers, std::mem::take(&mut self.members)) {
            let value = |staging: usize, unit: usize| {
                let Chain { banks, active, head } = &self.sets[unit / 8];
                if staging == 0 { banks[active & 1][unit % 8][n] } else { banks[(1 - active) & 1][(unit + 2 * head) % 8][n] }
            };
            worker.accumulators.put([0, 1].map(|staging| std::array::from_fn(|unit| value(staging, unit))));
        }
    }
}

/// One step of both sets with f16 partials; nothing happens if it may fault or moves poison. Returns whether it happened.
pub(crate) fn step(group: &mut Group<'_>, operation: &Operation, results: &mut Results) -> bool {
    if !may_step(group, operation, 2) || !group.files.aux.has_pair(operation.y) || !group.chains.hold(group.workers, group.members) {
        return false;
    }
    let (inputs, partials) = (*group.files.aux.pair(operation.x), *group.files.aux.pair(operation.y));
    let weights = group.coefficients.half(operation.phase.into());
    let mut leaving = [[[0.0; LANES]; 2]; 2];
    let mut rows = [[0; LANES]; 2];
    let largest = multiply(&mut group.chains.sets, weights, &inputs, &partials, operation.phase == 0, &mut leaving, &mut rows);
    results.rows = rows;
    if !group.is_plain || lanes_of(group.members).any(|n| largest[n] >= 0x7c00) {
        for n in lanes_of(group.members) {
            for set in 0..2 {
                let values = leaving[set].map(|row| row[n]);
                results.rows[set][n] = rounded(&mut group.workers[n].float, Couple { values, written: true });
            }
        }
    }
    true
}

/// One step of set 0 with f32 partials and results; as [`step`].
pub(crate) fn step_single(group: &mut Group<'_>, operation: &Operation, results: &mut Results) -> bool {
    if !may_step(group, operation, 1) || !group.files.aux.has_pair(operation.y) || !group.chains.hold(group.workers, group.members) {
        return false;
    }
    let (inputs, partials) = (*group.files.aux.pair(operation.x), *group.files.aux.pair(operation.y));
    let weights = group.coefficients.half(operation.phase.into());
    multiply_single(&mut group.chains.sets[0], weights, &inputs, &partials, operation.phase == 0, &mut results.rows);
    true
}

/// AACC[2i] += the f16 of two or four registers.
#[inline(always)]
pub(crate) fn accumulate_halves(
    group: &mut Group<'_>,
    operation: &Operation,
    kind: Accumulated,
    eight: bool,
    results: &mut Results,
) -> bool {
    if !hold(group, results) {
        return false;
    }
    let sums = group.chains.sums();
    let aux = &group.files.aux;
    for register in 0..if eight { 4 } else { 2 } {
        let row = aux.get((operation.x & 14) + register as u8);
        for upper in 0..2 {
            add(&mut sums[2 * register + upper], terms(kind, finite_or_nan(row, upper)));
        }
    }
    true
}

/// AACC[2i] += the f32 of four registers.
#[inline(always)]
pub(crate) fn accumulate_singles(group: &mut Group<'_>, operation: &Operation, kind: Accumulated, results: &mut Results) -> bool {
    if !hold(group, results) {
        return false;
    }
    let sums = group.chains.sums();
    for register in 0..4 {
        let row = group.files.aux.get((operation.x & 12) + register as u8);
        add(&mut sums[register], terms(kind, widened(row)));
    }
    true
}

/// AACC[2i] += sums of two products of f16 each, of one or two registers.
#[inline(always)]
pub(crate) fn accumulate_half_products(group: &mut Group<'_>, operation: &Operation, four: bool, results: &mut Results) -> bool {
    if !hold(group, results) {
        return false;
    }
    let sums = group.chains.sums();
    let aux = &group.files.aux;
    for register in 0..if four { 2 } else { 1 } {
        let (a, b) = (aux.get(operation.x + register as u8), aux.get(operation.y + register as u8));
        let (a, b) = ([finite_or_nan(a, 0), finite_or_nan(a, 1)], [finite_or_nan(b, 0), finite_or_nan(b, 1)]);
        let mut products = [0.0; LANES];
        for lane in 0..LANES {
            products[lane] = a[0][lane] * b[0][lane] + a[1][lane] * b[1][lane];
        }
        add(&mut sums[register], products);
    }
    true
}

/// AACC[2i] += products of f32, of one or two registers.
#[inline(always)]
pub(crate) fn accumulate_single_products(group: &mut Group<'_>, operation: &Operation, two: bool, results: &mut Results) -> bool {
    if !hold(group, results) {
        return false;
    }
    let sums = group.chains.sums();
    let aux = &group.files.aux;
    for register in 0..if two { 2 } else { 1 } {
        let (a, b) = (widened(aux.get(operation.x + register as u8)), widened(aux.get(operation.y + register as u8)));
        let mut products = [0.0; LANES];
        for lane in 0..LANES {
            products[lane] = a[lane] * b[lane];
        }
        add(&mut sums[register], products);
    }
    true
}

/// AACC[0], [2], [4] and [6] as f16, unless one of them overflows.
#[inline(always)]
pub(crate) fn get_accumulators(group: &mut Group<'_>, results: &mut Results) -> bool {
    let members = group.members;
    if !hold(group, results) {
        return false;
    }
    let sums = group.chains.sums();
    let [low, high] = &mut results.rows;
    let pair = |at: usize| [bits(&sums[at]), bits(&sums[at + 1])];
    results.count = 2;
    lanes::single_to_half(pair(0), members, low) && lanes::single_to_half(pair(2), members, high)
}

/// `f32v2gina` with immediate 0: AACC[0] and AACC[2] leave, a pair of registers enters at AACC[12] and AACC[14].
#[inline(always)]
pub(crate) fn exchange_accumulators(group: &mut Group<'_>, operation: &Operation, results: &mut Results) -> bool {
    if operation.immediate != 0 || !group.files.aux.has_pair(operation.x) {
        return false;
    }
    if !hold(group, results) {
        return false;
    }
    let sums = group.chains.sums();
    for half in 0..2 {
        results.rows[half] = bits(&sums[half]);
    }
    sums.copy_within(2.., 0);
    for half in 0..2 {
        sums[6 + half] = singles(&group.files.aux.pair(operation.x)[half]);
    }
    results.count = 2;
    true
}

/// Takes the members' accumulators, unless there is poison among them. Nothing is to be written to registers.
#[inline(always)]
fn hold(group: &mut Group<'_>, results: &mut Results) -> bool {
    results.count = 0;
    group.chains.hold(group.workers, group.members)
}

/// Adds values to an accumulator of each worker.
#[inline(always)]
fn add(sums: &mut Singles, values: [f64; LANES]) {
    let mut out = *sums;
    for lane in 0..LANES {
        out[lane] = quiet(values[lane] + f64::from(out[lane]));
    }
    *sums = out;
}

/// What elements contribute to sums.
#[inline(always)]
fn terms(kind: Accumulated, mut values: [f64; LANES]) -> [f64; LANES] {
    match kind {
        Accumulated::Plain => {}
        Accumulated::Absolute => {
            for lane in 0..LANES {
                values[lane] = values[lane].abs();
            }
        }
        Accumulated::Square => {
            for lane in 0..LANES {
                values[lane] *= values[lane];
            }
        }
    }
    values
}

/// A row of f32.
#[inline(always)]
fn widened(row: Row) -> [f64; LANES] {
    let mut out = [0.0; LANES];
    for lane in 0..LANES {
        out[lane] = f64::from(f32::from_bits(row[lane]));
    }
    out
}

/// The bits of a row of f32.
#[inline(always)]
fn bits(row: &Singles) -> Row {
    let mut out = [0; LANES];
    for lane in 0..LANES {
        out[lane] = row[lane].to_bits();
    }
    out
}

/// The f32 of a row of bits.
#[inline(always)]
fn singles(row: &Row) -> Singles {
    let mut out = [0.0; LANES];
    for lane in 0..LANES {
        out[lane] = f32::from_bits(row[lane]);
    }
    out
}

/// The lower or upper halves of a row. Infinities behave as NaN (isa-notes 8).
#[inline(always)]
fn finite_or_nan(row: Row, upper: usize) -> [f64; LANES] {
    let mut out = [0.0; LANES];
    for lane in 0..LANES {
        let value = f16_lane_to_f32(row[lane] >> (16 * upper));
        out[lane] = f64::from(if value.is_infinite() { f32::NAN } else { value });
    }
    out
}

/// Whether a step of the full chains can go wrong for no member: nothing is raised and all it multiplies was written.
#[inline(always)]
fn may_step(group: &Group<'_>, operation: &Operation, sets: u32) -> bool {
    let raises = !group.is_plain && lanes_of(group.members).any(|n| group.workers[n].float.control & 7 != 0);
    !raises && operation.units == 8 && group.files.aux.has(operation.needs_aux) && group.coefficients.first_unwritten(sets).is_none()
}

/// The sums of a step, the couples that leave, and these rounded to nearest even; returns by worker the largest magnitude as f16
/// (at least 0x7c00 if f16 ended, or for NaN).
#[multiversion(targets("x86_64+avx+avx2+fma+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2+fma"))]
fn multiply(
    sets: &mut [Chain; 2],
    weights: &[[f64; 4]; 16],
    inputs: &[Row; 2],
    partials: &[Row; 2],
    swap: bool,
    leaving: &mut [[Singles; 2]; 2],
    rows: &mut [Row; 2],
) -> Row {
    #[target_cfg(target_feature = "fma")]
    const FUSED: bool = true;
    #[target_cfg(not(target_feature = "fma"))]
    const FUSED: bool = false;
    let x = elements(inputs);
    let mut largest = [0; LANES];
    for set in 0..2 {
        let chain = &mut sets[set];
        if swap {
            chain.swap();
        }
        let mut entering = [[0.0; LANES]; 2];
        for lane in 0..LANES {
            entering[0][lane] = f16_lane_to_f32(partials[set][lane]);
            entering[1][lane] = f16_lane_to_f32(partials[set][lane] >> 16);
        }
        let couples = chain.pass(entering);
        for lane in 0..LANES {
            let (low, high) = (f32_lane_to_f16(couples[0][lane]), f32_lane_to_f16(couples[1][lane]));
            rows[set][lane] = low & 0x7fff | low >> 16 & 0x8000 | (high & 0x7fff | high >> 16 & 0x8000) << 16;
            largest[lane] = largest[lane].max(low & 0x7fff_ffff).max(high & 0x7fff_ffff);
        }
        leaving[set] = couples;
        chain.add_products::<FUSED>(&weights.as_chunks().0[set], &x);
    }
    largest
}

/// The sums of a step of set 0, and the couples that leave, as they are.
#[multiversion(targets("x86_64+avx+avx2+fma+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2+fma"))]
fn multiply_single(chain: &mut Chain, weights: &[[f64; 4]; 16], inputs: &[Row; 2], partials: &[Row; 2], swap: bool, rows: &mut [Row; 2]) {
    #[target_cfg(target_feature = "fma")]
    const FUSED: bool = true;
    #[target_cfg(not(target_feature = "fma"))]
    const FUSED: bool = false;
    let x = elements(inputs);
    if swap {
        chain.swap();
    }
    let leaving = chain.pass([singles(&partials[0]), singles(&partials[1])]);
    *rows = [bits(&leaving[0]), bits(&leaving[1])];
    chain.add_products::<FUSED>(&weights.as_chunks().0[0], &x);
}

/// The inputs by element, then by worker.
#[inline(always)]
fn elements(inputs: &[Row; 2]) -> [[f64; LANES]; 4] {
    [finite_or_nan(inputs[0], 0), finite_or_nan(inputs[0], 1), finite_or_nan(inputs[1], 0), finite_or_nan(inputs[1], 1)]
}
