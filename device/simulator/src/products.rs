//! f16 matrix steps of up to six workers at once, in the vector units that the host turns out to have.
//!
//! The coefficients are the same for all workers, and so are the conversions of formats: 16 lanes at a time. Order and rounding
//! of every sum are those of [`Accumulators::step_both`](crate::matrix_unit::Accumulators::step_both).
#![expect(clippy::needless_range_loop, reason = "one lane of several rows at a time")]

use multiversion::multiversion;
use multiversion::target::target_cfg;

use crate::code::Operation;
use crate::context::Worker;
use crate::crew::WORKERS;
use crate::float_format::{f16_lane_to_f32, f32_lane_to_f16};
use crate::matrix_unit::{Couple, couple_bits, couple_values};
use crate::plain::{Group, Results, lanes_of};
use crate::register_file::{LANES, Row, Set};
use crate::vector_unit::rounded;

/// The inputs and the partials of a step: a pair of rows each, and the written lanes of the latter.
struct Operands {
    inputs: [Row; 2],
    partials: [Row; 2],
    written: [Set; 2],
}

/// What leaves the accumulators: two couples of each worker, whether they were written, and the largest magnitude of them as f16
/// (at least 0x7c00 if f16 ended, or for NaN).
struct Leaving {
    /// By set, then by worker.
    couples: [[u64; LANES]; 2],
    written: [u32; LANES],
    largest: u32,
}

/// One step of both sets with f16 partials; nothing happens if it may fault. Returns whether it happened.
pub(crate) fn step(group: &mut Group<'_>, operation: &Operation, results: &mut Results) -> bool {
    let is_plain = group.is_plain;
    let raises = !is_plain && lanes_of(group.members).any(|n| group.workers[n].float.control & 7 != 0);
    if raises || operation.units != 8 || !group.files.aux.has(operation.needs_aux) || group.coefficients.first_unwritten(2).is_some() {
        return false;
    }
    let pair = |register: u8| [register, register + 1].map(|register| group.files.aux.get(register));
    let written = [operation.y, operation.y + 1].map(|register| group.files.aux.written(register));
    let operands = Operands { inputs: pair(operation.x), partials: pair(operation.y), written };
    let (weights, swap) = (group.coefficients.half(operation.phase.into()), operation.phase == 0);
    let leaving = multiply(group.workers, group.members, weights, &operands, swap, &mut results.rows);
    if is_plain && leaving.largest < 0x7c00 && leaving.written == [3; LANES] {
        return true;
    }
    results.written = [0; 2];
    for n in lanes_of(group.members) {
        let (float, written) = (&mut group.workers[n].float, leaving.written[n]);
        let is_rare = written != 3 || leaving.largest >= 0x7c00 || !is_plain;
        for half in 0..2 {
            let is_written = written >> half & 1 == 1;
            if is_rare {
                let values = couple_values(leaving.couples[half][n]);
                results.rows[half][n] = rounded(float, Couple { values, written: is_written });
            }
            results.written[half] |= Set::from(is_written) << n;
        }
    }
    true
}

/// The sums of a step, and what leaves rounded to nearest even.
#[multiversion(targets("x86_64+avx+avx2+fma+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2+fma"))]
fn multiply(
    workers: &mut [Worker; WORKERS],
    members: u8,
    weights: &[[f64; 16]; 4],
    operands: &Operands,
    swap: bool,
    rows: &mut [Row; 2],
) -> Leaving {
    #[target_cfg(target_feature = "fma")]
    const FUSED: bool = true;
    #[target_cfg(not(target_feature = "fma"))]
    const FUSED: bool = false;
    let x = widened(&operands.inputs);
    let mut partials = [[0; LANES]; 2];
    for set in 0..2 {
        for lane in 0..LANES {
            let word = operands.partials[set][lane];
            partials[set][lane] = couple_bits([f16_lane_to_f32(word), f16_lane_to_f32(word >> 16)]);
        }
    }
    let mut leaving = Leaving { couples: [[0; LANES]; 2], written: [3; LANES], largest: 0 };
    if let Some(head) = full_chains(workers, members, operands, swap) {
        for set in 0..2 {
            let at = head + 4 * set;
            let mut row = [0; LANES];
            for (n, worker) in workers.iter_mut().enumerate() {
                row[n] = worker.accumulators.exchange_couple(at, partials[set][n]);
            }
            leaving.couples[set] = row;
        }
        for (n, worker) in workers.iter_mut().enumerate() {
            worker.accumulators.advance();
            worker.accumulators.add_products::<FUSED, 16>(weights, [x[0][n], x[1][n], x[2][n], x[3][n]]);
        }
    } else {
        for (n, worker) in workers.iter_mut().enumerate() {
            if members >> n & 1 == 0 {
                continue;
            }
            let entering_written = operands.written[0] >> n & 1 | (operands.written[1] >> n & 1) << 1;
            let (couples, written) = worker.accumulators.pass([partials[0][n], partials[1][n]], entering_written, swap);
            (leaving.couples[0][n], leaving.couples[1][n]) = (couples[0], couples[1]);
            leaving.written[n] = written;
            worker.accumulators.add_products::<FUSED, 16>(weights, [x[0][n], x[1][n], x[2][n], x[3][n]]);
        }
    }
    let mut largest = [0; LANES];
    for set in 0..2 {
        let (mut low, mut high) = ([0; LANES], [0; LANES]);
        for lane in 0..LANES {
            low[lane] = f32_lane_to_f16(f32::from_bits(leaving.couples[set][lane] as u32));
            high[lane] = f32_lane_to_f16(f32::from_bits((leaving.couples[set][lane] >> 32) as u32));
        }
        for lane in 0..LANES {
            rows[set][lane] = low[lane] & 0x7fff | low[lane] >> 16 & 0x8000 | (high[lane] & 0x7fff | high[lane] >> 16 & 0x8000) << 16;
            largest[lane] = largest[lane].max(low[lane] & 0x7fff_ffff).max(high[lane] & 0x7fff_ffff);
        }
    }
    leaving.largest = largest.into_iter().fold(0, u32::max);
    leaving
}

/// The place of the couple that leaves, if all six workers step, their chains stand alike, and nothing in or before them is poison.
#[inline(always)]
fn full_chains(workers: &mut [Worker; WORKERS], members: u8, operands: &Operands, swap: bool) -> Option<usize> {
    const SIX: Set = 0x3f;
    if Set::from(members) != SIX || operands.written[0] & operands.written[1] & SIX != SIX {
        return None;
    }
    let head = workers[0].accumulators.head_of_full()?;
    for worker in &workers[1..] {
        if worker.accumulators.head_of_full() != Some(head) {
            return None;
        }
    }
    if !swap {
        return Some(head);
    }
    for worker in &mut *workers {
        worker.accumulators.swap(2);
    }
    Some(0)
}

/// The inputs by element, then by worker. Infinities behave as NaN (isa-notes 8).
#[inline(always)]
fn widened(inputs: &[Row; 2]) -> [[f64; LANES]; 4] {
    let mut x = [[0.0; LANES]; 4];
    for row in 0..2 {
        for upper in 0..2 {
            for lane in 0..LANES {
                let value = f16_lane_to_f32(inputs[row][lane] >> (16 * upper));
                x[2 * row + upper][lane] = f64::from(if value.is_infinite() { f32::NAN } else { value });
            }
        }
    }
    x
}

/// One step of set 0 with f32 partials and results; nothing happens if it may fault. Returns whether it happened.
pub(crate) fn step_single(group: &mut Group<'_>, operation: &Operation, results: &mut Results) -> bool {
    let raises = lanes_of(group.members).any(|n| group.workers[n].float.control & 7 != 0);
    if raises || operation.units != 8 || !group.files.aux.has(operation.needs_aux) || group.coefficients.first_unwritten(1).is_some() {
        return false;
    }
    let aux = &group.files.aux;
    let inputs = [operation.x, operation.x + 1].map(|register| aux.get(register));
    let known = aux.written(operation.y) & aux.written(operation.y + 1);
    let mut couples: [u64; LANES] = std::array::from_fn(|lane| aux.double(operation.y, lane));
    let (weights, swap) = (group.coefficients.half(operation.phase.into()), operation.phase == 0);
    let written = multiply_single(group.workers, group.members, weights, &inputs, swap, &mut couples, known);
    results.rows = [couples.map(|couple| couple as u32), couples.map(|couple| (couple >> 32) as u32)];
    results.written = [written; 2];
    true
}

/// The sums of a step of set 0. `couples` enter and are replaced by those that leave; `known` lanes of them were written, and so
/// were the returned ones.
#[multiversion(targets("x86_64+avx+avx2+fma+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2+fma"))]
fn multiply_single(
    workers: &mut [Worker; WORKERS],
    members: u8,
    weights: &[[f64; 16]; 4],
    inputs: &[Row; 2],
    swap: bool,
    couples: &mut [u64; LANES],
    known: Set,
) -> Set {
    #[target_cfg(target_feature = "fma")]
    const FUSED: bool = true;
    #[target_cfg(not(target_feature = "fma"))]
    const FUSED: bool = false;
    let x = widened(inputs);
    let mut written = 0;
    for (n, worker) in workers.iter_mut().enumerate() {
        if members >> n & 1 == 0 {
            continue;
        }
        let (leaving, is_written) = worker.accumulators.pass_single(couples[n], known >> n & 1 == 1, swap);
        couples[n] = leaving;
        written |= Set::from(is_written) << n;
        worker.accumulators.add_products::<FUSED, 8>(weights, [x[0][n], x[1][n], x[2][n], x[3][n]]);
    }
    written
}
