//! The aux lane: vector arithmetic, conversions, functions, accumulators and the matrix unit.
//!
//! [`execute`] reads registers as they were before the bundle and returns what to write; memory is never touched here.

use crate::arithmetic::{DIVIDE_BY_ZERO, FloatState, INVALID};
use crate::choice::{Class, class_code, outer_accumulator};
use crate::code::Operation;
use crate::coefficients::Coefficients;
use crate::context::{Worker, poison};
use crate::fault::{Cause, Place, Step, fail};
use crate::float_format::{F32_NAN_BITS, Fp8, Rounding, f16_operand, f16_to_f32, f16_to_f64};
use crate::matrix_unit::{Couple, dot4, dot8};
use crate::operation::{Accumulated, Broadcast, Kind, Lane, Matrix};
use crate::transcendental::Function;

/// What an aux instruction writes: up to two registers from `register` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuxResult {
    /// First register.
    pub(crate) register: u8,
    /// 0, 1 or 2 registers.
    pub(crate) count: u8,
    /// A bit for each register that becomes defined.
    pub(crate) written: u32,
    /// The values, first register in the low half.
    pub(crate) value: u64,
}

const NOTHING: AuxResult = AuxResult { register: 15, count: 0, written: 0, value: 0 };

fn one(register: u8, value: u32) -> AuxResult {
    AuxResult { register, count: 1, written: 1, value: u64::from(value) }
}

fn two(register: u8, value: u64) -> AuxResult {
    AuxResult { register, count: 2, written: 3, value }
}

impl AuxResult {
    /// Writes the result.
    #[inline]
    pub(crate) fn commit(self, worker: &mut Worker) {
        match self.count {
            0 => {}
            1 => worker.set_aux(self.register, self.value as u32, self.written),
            _ => worker.set_aux_pair(self.register, self.value, self.written),
        }
    }
}

/// Executes one aux-lane instruction except for its write.
#[inline]
pub(crate) fn execute(worker: &mut Worker, operation: &Operation, coefficients: &Coefficients) -> Step<AuxResult> {
    if let Kind::SetAux = operation.kind {
        return Ok(one(operation.d, operation.immediate));
    }
    worker.need_aux(operation)?;
    if let Kind::Matrix(Matrix::HalfHalfHalf16) = operation.kind
        && operation.units == 8
    {
        return matrix_fast(worker, operation, coefficients);
    }
    let result = others(worker, operation, coefficients)?;
    if worker.float.control & 7 != 0 && worker.float.trapped() != 0 {
        return fail(Cause::FloatingPoint { flags: worker.float.trapped() });
    }
    Ok(result)
}

fn others(worker: &mut Worker, operation: &Operation, coefficients: &Coefficients) -> Step<AuxResult> {
    let (d, x, y) = (operation.d, operation.x, operation.y);
    Ok(match operation.kind {
        Kind::AuxInteger(integer, broadcast) => {
            let a = spread16(worker.aux(x), broadcast);
            let b = if operation.uses_immediate { operation.immediate } else { worker.aux(y) };
            let sources = if operation.uses_immediate { 1 << x } else { 1 << x | 1 << y };
            let written = u32::from(worker.aux_written & sources == sources);
            AuxResult { written, ..one(d, integer.apply(a, b)) }
        }
        Kind::PairBits(bits) => {
            let written = worker.aux_pair_written(x) & worker.aux_pair_written(y);
            let written = if written == 3 { 3 } else { 0 };
            AuxResult { written, ..two(d, bits.apply(worker.aux_pair(x), worker.aux_pair(y))) }
        }
        Kind::Half { lane, four: false, broadcast } => {
            let (a, b) = (spread16(worker.aux(x), broadcast), worker.aux(y));
            one(d, half_lanes(&mut worker.float, lane, u64::from(a), u64::from(b), 2) as u32)
        }
        Kind::Half { lane, four: true, broadcast } => {
            let a = match broadcast {
                Broadcast::None => worker.aux_pair(x),
                _ => u64::from(spread16(worker.aux(x), broadcast)) * 0x1_0000_0001,
            };
            let b = worker.aux_pair(y);
            two(d, half_lanes(&mut worker.float, lane, a, b, 4))
        }
        Kind::Single { lane, two: false, .. } => {
            one(d, single_lane(&mut worker.float, lane, worker.aux[x as usize], worker.aux[y as usize]))
        }
        Kind::Single { lane, two: true, broadcast } => {
            let b = worker.aux_pair(y);
            let a = match broadcast {
                Broadcast::None => worker.aux_pair(x),
                _ => u64::from(worker.aux(x)) * 0x1_0000_0001,
            };
            let low = single_lane(&mut worker.float, lane, a as u32, b as u32);
            let high = single_lane(&mut worker.float, lane, (a >> 32) as u32, (b >> 32) as u32);
            two(d, u64::from(low) | u64::from(high) << 32)
        }
        Kind::HalfClamp { four } => {
            let bounds = worker.aux(y);
            let clamp = |v: u16| clamp16(v, bounds as u16, (bounds >> 16) as u16);
            if four { two(d, map16(worker.aux_pair(x), 4, clamp)) } else { one(d, map16(worker.aux(x).into(), 2, clamp) as u32) }
        }
        Kind::SingleClamp { two: pair } => {
            let bounds = worker.aux_pair(y);
            let clamp = |v: u32| clamp32(v, bounds as u32, (bounds >> 32) as u32);
            if pair { two(d, map32(worker.aux_pair(x), clamp)) } else { one(d, clamp(worker.aux(x))) }
        }
        Kind::HalfFunction(function) => {
            let value = worker.aux(x);
            let low = half_function(&mut worker.float, function, value as u16);
            let high = half_function(&mut worker.float, function, (value >> 16) as u16);
            one(d, u32::from(low) | u32::from(high) << 16)
        }
        Kind::SingleFunction(function) => {
            let value = f32::from_bits(worker.aux(x));
            one(d, single_function(&mut worker.float, function, value).to_bits())
        }
        _ => return conversions(worker, operation, coefficients),
    })
}

fn conversions(worker: &mut Worker, operation: &Operation, coefficients: &Coefficients) -> Step<AuxResult> {
    let (d, x, y) = (operation.d, operation.x, operation.y);
    Ok(match operation.kind {
        Kind::HalfMaxAcross { four: false } => {
            let v = worker.aux(x);
            let top = u32::from(max16(v as u16, (v >> 16) as u16));
            one(d, top | top << 16)
        }
        Kind::HalfMaxAcross { four: true } => {
            let v = worker.aux_pair(x);
            let low = u32::from(max16(v as u16, (v >> 16) as u16));
            one(d, low | u32::from(max16((v >> 32) as u16, (v >> 48) as u16)) << 16)
        }
        Kind::HalfSum { four: false } => one(d, sum16(&mut worker.float, worker.aux[x as usize])),
        Kind::HalfSum { four: true } => {
            let v = worker.aux_pair(x);
            let low = sum16(&mut worker.float, v as u32);
            two(d, u64::from(low) | u64::from(sum16(&mut worker.float, (v >> 32) as u32)) << 32)
        }
        Kind::HalfToSingle { two: false } => one(d, f16_to_f32(worker.aux(x) as u16).to_bits()),
        Kind::HalfToSingle { two: true } => {
            let v = worker.aux(x);
            let (low, high) = (f16_to_f32(v as u16), f16_to_f32((v >> 16) as u16));
            two(d, u64::from(low.to_bits()) | u64::from(high.to_bits()) << 32)
        }
        Kind::SingleToHalf { lanes } => single_to_half(worker, d, x, lanes),
        Kind::IntegerToSingle { signed } => {
            let v = worker.aux(x);
            let value = if signed { f64::from(v as i32) } else { f64::from(v) };
            one(d, worker.float.round32(value, 0.0).to_bits())
        }
        Kind::SingleToInteger { signed } => one(d, single_to_integer(&mut worker.float, worker.aux[x as usize], signed)),
        Kind::RoundSingle => {
            let Some(rounding) = Rounding::of(operation.immediate) else {
                return fail(Cause::NotSimulated { form: operation.name(), value: operation.immediate });
            };
            one(d, round_single(worker.aux(x), rounding))
        }
        Kind::HalfToByte { eight } => half_to_byte(worker, operation, eight),
        Kind::HalfClass { four } => {
            let lanes = if four { worker.aux_pair(x) } else { worker.aux(x).into() };
            let class = |i: u32| class_of((lanes >> (16 * i)) as u32 & 0x7fff, 10, 0x7c00);
            one(d, classes(operation, if four { 4 } else { 2 }, |i| (class(i), lanes >> (16 * i + 15) & 1 == 1)))
        }
        Kind::SingleClass { two: pair } => {
            let lanes = if pair { worker.aux_pair(x) } else { worker.aux(x).into() };
            let class = |i: u32| class_of((lanes >> (32 * i)) as u32 & 0x7fff_ffff, 23, 0x7f80_0000);
            one(d, classes(operation, if pair { 2 } else { 1 }, |i| (class(i), lanes >> (32 * i + 31) & 1 == 1)))
        }
        Kind::ByteClass => {
            let (codes, format) = (worker.aux(x), Fp8::of(worker.byte_format));
            one(d, classes(operation, 4, |i| (format.class((codes >> (8 * i)) as u8), codes >> (8 * i + 7) & 1 == 1)))
        }
        Kind::ByteToHalf { four } => byte_to_half(worker, d, x, four),
        Kind::HalfUniform { four } => {
            let lanes = if four { worker.aux_pair(x) } else { worker.aux(x).into() };
            let float = &mut worker.float;
            let out = map16(lanes, if four { 4 } else { 2 }, |u| float.round16((f64::from(u) + 0.5) / 65536.0 - 0.5));
            if four { two(d, out) } else { one(d, out as u32) }
        }
        Kind::SingleUniform { two: pair } => {
            let float = &mut worker.float;
            let mut uniform = |u: u32| float.round32((f64::from(u) + 0.5) / 4_294_967_296.0 - 0.5, 0.0).to_bits();
            let low = uniform(worker.aux[x as usize]);
            if pair {
                let high = uniform(worker.aux[x as usize | 1]);
                two(d, u64::from(low) | u64::from(high) << 32)
            } else {
                one(d, low)
            }
        }
        Kind::Random { two: pair } => {
            let draw = worker.float.draw();
            if pair { two(d, draw) } else { one(d, (draw >> 32) as u32) }
        }
        Kind::HalfGaussian => {
            let (a, b) = (gaussian(&mut worker.float), gaussian(&mut worker.float));
            let (low, high) = (worker.float.round16(a), worker.float.round16(b));
            one(d, u32::from(low) | u32::from(high) << 16)
        }
        Kind::SingleGaussian => {
            let (a, b) = (gaussian(&mut worker.float) as f32, gaussian(&mut worker.float) as f32);
            two(d, u64::from(a.to_bits()) | u64::from(b.to_bits()) << 32)
        }
        Kind::HalfMask => {
            let (value, keep) = (worker.aux_pair(x), worker.aux(y));
            let draw = worker.float.draw();
            let mask = |i: u32| if kept(draw, i, keep) { 0xffffu64 << (16 * i) } else { 0 };
            two(d, value & (mask(0) | mask(1) | mask(2) | mask(3)))
        }
        Kind::SingleMask => {
            let (value, keep) = (worker.aux_pair(x), worker.aux(y));
            let draw = worker.float.draw();
            let mask = |i: u32| if kept(draw, i, keep) { 0xffff_ffffu64 << (32 * i) } else { 0 };
            two(d, value & (mask(0) | mask(1)))
        }
        _ => return accumulators(worker, operation, coefficients),
    })
}

fn accumulators(worker: &mut Worker, operation: &Operation, coefficients: &Coefficients) -> Step<AuxResult> {
    let (d, x, y) = (operation.d, operation.x, operation.y);
    Ok(match operation.kind {
        Kind::HalfAccumulate { kind, eight } => {
            let (low, high) = (worker.aux_pair(x), worker.aux_pair(x + 2));
            let value = |i: usize| term(kind, f16_operand((if i < 4 { low >> (16 * i) } else { high >> (16 * (i - 4)) }) as u16));
            let values: [f64; 8] = std::array::from_fn(value);
            worker.accumulators.accumulate(&values[..if eight { 8 } else { 4 }]);
            NOTHING
        }
        Kind::SingleAccumulate { kind } => {
            let values: [f64; 4] = std::array::from_fn(|i| term(kind, f64::from(f32::from_bits(worker.aux[(x as usize & 12) + i]))));
            worker.accumulators.accumulate(&values);
            NOTHING
        }
        Kind::HalfDot { four } => {
            let (a, b) = if four { (worker.aux_pair(x), worker.aux_pair(y)) } else { (worker.aux(x).into(), worker.aux(y).into()) };
            let product = |i: u32| f16_operand((a >> (16 * i)) as u16) * f16_operand((b >> (16 * i)) as u16);
            let sums = [product(0) + product(1), if four { product(2) + product(3) } else { 0.0 }];
            worker.accumulators.accumulate(&sums[..if four { 2 } else { 1 }]);
            NOTHING
        }
        Kind::SingleDot { two: pair } => {
            let product =
                |i: usize| f64::from(f32::from_bits(worker.aux[x as usize + i])) * f64::from(f32::from_bits(worker.aux[y as usize + i]));
            let sums = [product(0), if pair { product(1) } else { 0.0 }];
            worker.accumulators.accumulate(&sums[..if pair { 2 } else { 1 }]);
            NOTHING
        }
        Kind::OuterProduct => {
            only_zero(operation)?;
            let value = |register: u8| f64::from(f32::from_bits(worker.aux(register)));
            let products = [(x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)].map(|(a, b)| value(a) * value(b));
            for (which, product) in (0..).zip(products) {
                worker.accumulators.add_to(outer_accumulator(operation, which), product);
            }
            NOTHING
        }
        Kind::HalfGetAccumulators => {
            let (values, written) = worker.accumulators.even();
            let bits = (0..4).fold(0, |word, i| word | u64::from(worker.float.round16(values[i].into())) << (16 * i));
            let written = u32::from(written & 3 == 3) | u32::from(written & 12 == 12) << 1;
            AuxResult { written, ..two(d, bits) }
        }
        Kind::HalfExchangeAccumulators => {
            only_zero(operation)?;
            let v = worker.aux(x);
            let entering = [f16_to_f32(v as u16), f16_to_f32((v >> 16) as u16)];
            let written = u32::from(worker.aux_written >> x & 1) * 3;
            let (values, written) = worker.accumulators.exchange(entering, written);
            let low = worker.float.round16(values[0].into());
            let high = worker.float.round16(values[1].into());
            AuxResult { written: u32::from(written == 3), ..one(d, u32::from(low) | u32::from(high) << 16) }
        }
        Kind::SingleExchangeAccumulators => {
            only_zero(operation)?;
            let v = worker.aux_pair(x);
            let entering = [f32::from_bits(v as u32), f32::from_bits((v >> 32) as u32)];
            let (values, written) = worker.accumulators.exchange(entering, worker.aux_pair_written(x));
            let bits = u64::from(values[0].to_bits()) | u64::from(values[1].to_bits()) << 32;
            AuxResult { written, ..two(d, bits) }
        }
        Kind::HalfMix => {
            need_scale(worker, operation)?;
            let (a, b) = (f16_to_f64(worker.scale as u16), f16_to_f64((worker.scale >> 16) as u16));
            let (p, q) = (worker.aux_pair(x), worker.aux_pair(y));
            let value = |i: usize| (a * f16_operand((p >> (16 * i)) as u16) + b * f16_operand((q >> (16 * i)) as u16)) as f32;
            let (old, written) = worker.accumulators.replace::<4>(std::array::from_fn(value));
            let bits = (0..4).fold(0, |word, i| word | u64::from(worker.float.round16(old[i].into())) << (16 * i));
            AuxResult { written: if written { 3 } else { 0 }, ..two(d, bits) }
        }
        Kind::SingleAxpy => {
            need_scale(worker, operation)?;
            let a = f64::from(f32::from_bits(worker.scale));
            let single = |pair: u64, i: usize| f64::from(f32::from_bits((pair >> (32 * i)) as u32));
            let (p, q) = (worker.aux_pair(x), worker.aux_pair(y));
            let (old, written) = worker.accumulators.replace::<2>(std::array::from_fn(|i| (a * single(p, i) + single(q, i)) as f32));
            let bits = u64::from(old[0].to_bits()) | u64::from(old[1].to_bits()) << 32;
            AuxResult { written: if written { 3 } else { 0 }, ..two(d, bits) }
        }
        Kind::Matrix(matrix) => return matrix_step(worker, operation, matrix, coefficients),
        Kind::Slim(matrix) => return slim_step(worker, operation, matrix, coefficients),
        Kind::SortIn => {
            worker.accumulators.forget();
            let row = |register| (worker.aux_pair(register), worker.aux_pair_written(register));
            let (value, written) = worker.sorter.enter(operation.phase == 1, [row(x), row(y)]);
            AuxResult { written, ..two(d, value) }
        }
        Kind::SortOut => {
            let (value, written) = worker.sorter.leave(operation.phase == 1);
            AuxResult { written, ..two(d, value) }
        }
        Kind::GetUpper | Kind::PutUpper => return upper_register(worker, operation),
        _ => return fail(Cause::NotSimulated { form: operation.name(), value: operation.immediate }),
    })
}

fn only_zero(operation: &Operation) -> Step {
    if operation.immediate != 0 {
        return fail(Cause::NotSimulated { form: operation.name(), value: operation.immediate });
    }
    Ok(())
}

fn need_scale(worker: &Worker, operation: &Operation) -> Step {
    if worker.scale_written { Ok(()) } else { poison(Place::Scale, operation) }
}

fn need_coefficients(coefficients: &Coefficients, sets: u32, operation: &Operation) -> Step {
    match coefficients.first_unwritten(sets) {
        None => Ok(()),
        Some(entry) => poison(Place::Coefficients { entry }, operation),
    }
}

#[inline]
fn operands4(value: u64) -> [f64; 4] {
    [f16_operand(value as u16), f16_operand((value >> 16) as u16), f16_operand((value >> 32) as u16), f16_operand((value >> 48) as u16)]
}

#[inline]
fn half_couple(bits: u32, written: bool) -> Couple {
    Couple { values: [f16_to_f32(bits as u16), f16_to_f32((bits >> 16) as u16)], written }
}

/// Two f32 results as f16; poison stays poison.
#[inline]
pub(crate) fn rounded(float: &mut FloatState, couple: Couple) -> u32 {
    if !couple.written {
        return couple.values[0].to_bits() & 0xbfff_bfff;
    }
    let low = float.round16(f64::from(couple.values[0]));
    u32::from(low) | u32::from(float.round16(f64::from(couple.values[1]))) << 16
}

#[inline]
fn matrix_fast(worker: &mut Worker, operation: &Operation, coefficients: &Coefficients) -> Step<AuxResult> {
    if coefficients.first_unwritten(2).is_some() {
        need_coefficients(coefficients, 2, operation)?;
    }
    let phase = operation.phase as usize;
    let x = operands4(worker.aux_pair(operation.x));
    let partial = worker.aux_pair(operation.y);
    let written = worker.aux_pair_written(operation.y);
    let partials = [half_couple(partial as u32, written & 1 == 1), half_couple((partial >> 32) as u32, written & 2 == 2)];
    let results = worker.accumulators.step_both(coefficients.half(phase), x, partials, phase == 0);
    let low = rounded(&mut worker.float, results[0]);
    let high = rounded(&mut worker.float, results[1]);
    if worker.float.control & 7 != 0 && worker.float.trapped() != 0 {
        return fail(Cause::FloatingPoint { flags: worker.float.trapped() });
    }
    let written = u32::from(results[0].written) | u32::from(results[1].written) << 1;
    Ok(AuxResult { register: operation.d, count: 2, written, value: u64::from(low) | u64::from(high) << 32 })
}

/// The partials an instruction brings: one couple for 8 channels, two for 16.
fn partials(worker: &Worker, register: u8, matrix: Matrix) -> ([Couple; 2], usize) {
    let pair = worker.aux_pair(register);
    let written = worker.aux_pair_written(register);
    let (first, second) = match matrix {
        Matrix::HalfHalfHalf16 | Matrix::ByteHalfHalf16 => {
            (half_couple(pair as u32, written & 1 == 1), Some(half_couple((pair >> 32) as u32, written & 2 == 2)))
        }
        Matrix::HalfHalfHalf8 => (half_couple(worker.aux(register), worker.aux_written >> register & 1 == 1), None),
        Matrix::HalfSingleHalf8 | Matrix::HalfSingleSingle8 | Matrix::Single8 | Matrix::Single16 => {
            let values = [f32::from_bits(pair as u32), f32::from_bits((pair >> 32) as u32)];
            (Couple { values, written: written == 3 }, None)
        }
    };
    ([first, second.unwrap_or(first)], if second.is_some() { 2 } else { 1 })
}

/// Results in the format of the instruction.
fn delivered(worker: &mut Worker, register: u8, matrix: Matrix, results: [Couple; 2]) -> AuxResult {
    match matrix {
        Matrix::HalfHalfHalf16 | Matrix::ByteHalfHalf16 => {
            let low = rounded(&mut worker.float, results[0]);
            let high = rounded(&mut worker.float, results[1]);
            let written = u32::from(results[0].written) | u32::from(results[1].written) << 1;
            AuxResult { written, ..two(register, u64::from(low) | u64::from(high) << 32) }
        }
        Matrix::HalfHalfHalf8 | Matrix::HalfSingleHalf8 => {
            let value = rounded(&mut worker.float, results[0]);
            AuxResult { written: results[0].written.into(), ..one(register, value) }
        }
        Matrix::HalfSingleSingle8 | Matrix::Single8 | Matrix::Single16 => {
            let [low, high] = results[0].values.map(f32::to_bits);
            let written = if results[0].written { 3 } else { 0 };
            AuxResult { written, ..two(register, u64::from(low) | u64::from(high) << 32) }
        }
    }
}

fn bytes8(value: u64, formats: u32) -> [f64; 8] {
    let format = Fp8::of(formats >> 1);
    std::array::from_fn(|i| format.value((value >> (8 * i)) as u8))
}

fn matrix_step(worker: &mut Worker, operation: &Operation, matrix: Matrix, coefficients: &Coefficients) -> Step<AuxResult> {
    let (entering, sets) = partials(worker, operation.y, matrix);
    let entering = &entering[..sets];
    let (units, phase) = (operation.units as usize, operation.phase as usize);
    let swap = phase == 0;
    let results = match matrix {
        Matrix::Single8 | Matrix::Single16 => {
            let sets = if matrix == Matrix::Single16 { 2 } else { 1 };
            need_coefficients(coefficients, sets, operation)?;
            let x = f64::from(f32::from_bits(worker.aux(operation.x)));
            let moving = match (matrix, phase % 2) {
                (_, 0) => Some((0, entering[0])),
                (Matrix::Single16, _) => Some((1, entering[0])),
                _ => None,
            };
            let product = |unit: usize| x * coefficients.single(4 * unit + phase / 2, phase % 2);
            let result = worker.accumulators.step_single(units, sets as usize, swap, moving, product);
            worker.scale_written = false;
            [result, result]
        }
        Matrix::ByteHalfHalf16 => {
            need_coefficients(coefficients, 2, operation)?;
            let x = bytes8(worker.aux_pair(operation.x), coefficients.byte_formats);
            worker.accumulators.step(units, swap, entering, |unit| dot8(coefficients, phase, x, unit))
        }
        _ => {
            need_coefficients(coefficients, entering.len() as u32, operation)?;
            let x = operands4(worker.aux_pair(operation.x));
            worker.accumulators.step(units, swap, entering, |unit| dot4(coefficients, phase, x, unit))
        }
    };
    Ok(delivered(worker, operation.d, matrix, results))
}

fn slim_step(worker: &mut Worker, operation: &Operation, matrix: Matrix, coefficients: &Coefficients) -> Step<AuxResult> {
    if matches!(matrix, Matrix::Single8 | Matrix::Single16) {
        return slim_single_step(worker, operation, matrix, coefficients);
    }
    let (entering, sets) = partials(worker, operation.y, matrix);
    let entering = &entering[..sets];
    need_coefficients(coefficients, sets as u32, operation)?;
    let column = operation.phase as usize;
    let pair = worker.aux_pair(operation.x);
    let mut results = [entering[0]; 2];
    for (set, partial) in entering.iter().enumerate() {
        results[set] = if matrix == Matrix::ByteHalfHalf16 {
            let x = bytes8(pair, coefficients.byte_formats);
            worker.accumulators.slim(set, *partial, |unit| dot8(coefficients, column, x, unit))
        } else {
            let x = operands4(pair);
            worker.accumulators.slim(set, *partial, |unit| dot4(coefficients, column, x, unit))
        };
    }
    Ok(delivered(worker, operation.d, matrix, results))
}

/// One of the two calls of an f32 step (isa-notes 10.4): the low halves of the coefficients, then the high ones. The first moves the
/// chains and the couple of set 0, the second the couple of set 1 (parameters.toml `f32_slic`).
fn slim_single_step(worker: &mut Worker, operation: &Operation, matrix: Matrix, coefficients: &Coefficients) -> Step<AuxResult> {
    let sets = if matrix == Matrix::Single16 { 2 } else { 1 };
    need_coefficients(coefficients, sets, operation)?;
    let partial = partials(worker, operation.y, matrix).0[0];
    let x = f64::from(f32::from_bits(worker.aux(operation.x)));
    let (column, half) = (operation.phase as usize / 2, operation.phase as usize % 2);
    let product = |unit: usize| x * coefficients.single(4 * unit + column, half);
    let result = worker.accumulators.slim_single(half == 1, sets as usize, partial, product);
    worker.scale_written = false;
    Ok(delivered(worker, operation.d, matrix, [result; 2]))
}

/// `uget` and `uput`: the upper control registers of a worker (isa.toml csr 0x100..0x10a).
fn upper_register(worker: &mut Worker, operation: &Operation) -> Step<AuxResult> {
    let number = operation.immediate;
    if operation.kind == Kind::GetUpper {
        let random = |i: usize, half: u32| (worker.float.random[i] >> (32 * half)) as u32;
        let value = match number {
            0 => worker.float.status,
            1 | 7 => 0,
            2 => worker.float.control,
            3 => random(0, 0),
            4 => random(0, 1),
            5 => random(1, 0),
            6 => random(1, 1),
            8 => {
                let written = u32::from(worker.scale_written);
                return Ok(AuxResult { written, ..one(operation.d, worker.scale) });
            }
            9 => worker.byte_format,
            10 => worker.byte_scale,
            _ => return fail(Cause::NotSimulated { form: "upper control register", value: 0x100 + number }),
        };
        return Ok(one(operation.d, value));
    }
    let value = worker.aux(operation.x);
    let low = |word: u64| word & !0xffff_ffff | u64::from(value);
    let high = |word: u64| word & 0xffff_ffff | u64::from(value) << 32;
    let random = &mut worker.float.random;
    match number {
        0 => {}
        1 => {
            worker.float.status &= !(value & 7);
            if value & 8 != 0 {
                worker.accumulators.clear();
            }
        }
        2 => worker.float.control = value & 0x001f_0007,
        3 => random[0] = low(random[0]),
        4 => random[0] = high(random[0]),
        5 => random[1] = low(random[1]),
        6 => random[1] = high(random[1]),
        7 => {
            random[0] = u64::from(value) | u64::from(!value) << 32;
            random[1] = u64::from(value << 13 | !value >> 19) | u64::from(!value << 13 | value >> 19) << 32;
        }
        8 => {
            worker.scale = value;
            worker.scale_written = true;
        }
        9 => worker.byte_format = value & 1,
        10 => worker.byte_scale = value & 0x3f,
        _ => return fail(Cause::NotSimulated { form: "upper control register", value: 0x100 + number }),
    }
    Ok(NOTHING)
}

fn spread16(value: u32, broadcast: Broadcast) -> u32 {
    match broadcast {
        Broadcast::None => value,
        Broadcast::Lower => (value & 0xffff) * 0x1_0001,
        Broadcast::Upper => (value >> 16) * 0x1_0001,
    }
}

fn map16(lanes: u64, count: u32, mut f: impl FnMut(u16) -> u16) -> u64 {
    (0..count).fold(0, |word, i| word | u64::from(f((lanes >> (16 * i)) as u16)) << (16 * i))
}

fn map32(lanes: u64, f: impl Fn(u32) -> u32) -> u64 {
    u64::from(f(lanes as u32)) | u64::from(f((lanes >> 32) as u32)) << 32
}

#[inline]
fn half_lanes(float: &mut FloatState, lane: Lane, a: u64, b: u64, count: u32) -> u64 {
    (0..count).fold(0, |word, i| {
        let value = half_lane(float, lane, (a >> (16 * i)) as u16, (b >> (16 * i)) as u16);
        word | u64::from(value) << (16 * i)
    })
}

#[inline]
fn half_lane(float: &mut FloatState, lane: Lane, left: u16, right: u16) -> u16 {
    let (a, b) = (f16_to_f64(left), f16_to_f64(right));
    let value = match lane {
        Lane::Add => float.sum(a, b),
        Lane::Subtract => float.sum(a, -b),
        Lane::Multiply => a * b,
        Lane::Divide => a / b,
        Lane::AbsoluteAdd => a.abs() + b.abs(),
        Lane::AbsoluteMax => return max16(left & 0x7fff, right & 0x7fff),
        Lane::Max => return max16(left, right),
        Lane::Min => return min16(left, right),
        comparison => return if compares(comparison, a, b) { 0xffff } else { 0 },
    };
    float.invalid_if(value.is_nan(), a.is_nan() || b.is_nan());
    float.round16(value)
}

fn compares(lane: Lane, a: f64, b: f64) -> bool {
    match lane {
        Lane::Equal => a == b,
        Lane::NotEqual => a != b,
        Lane::Less => a < b,
        Lane::LessEqual => a <= b,
        Lane::Greater => a > b,
        _ => a >= b,
    }
}

#[inline]
fn max16(a: u16, b: u16) -> u16 {
    let (left, right) = (f16_to_f32(a), f16_to_f32(b));
    if left >= right || right.is_nan() { a } else { b }
}

#[inline]
fn min16(a: u16, b: u16) -> u16 {
    let (left, right) = (f16_to_f32(a), f16_to_f32(b));
    if left <= right || right.is_nan() { a } else { b }
}

fn max32(a: u32, b: u32) -> u32 {
    let (left, right) = (f32::from_bits(a), f32::from_bits(b));
    if left >= right || right.is_nan() { a } else { b }
}

fn min32(a: u32, b: u32) -> u32 {
    let (left, right) = (f32::from_bits(a), f32::from_bits(b));
    if left <= right || right.is_nan() { a } else { b }
}

fn clamp16(value: u16, low: u16, high: u16) -> u16 {
    min16(max16(value, low), high)
}

fn clamp32(value: u32, low: u32, high: u32) -> u32 {
    min32(max32(value, low), high)
}

fn single_lane(float: &mut FloatState, lane: Lane, left: u32, right: u32) -> u32 {
    const SIGN: u32 = 1 << 31;
    let (a, b) = (f32::from_bits(left), f32::from_bits(right));
    match lane {
        Lane::AbsoluteMax => return max32(left & !SIGN, right & !SIGN),
        Lane::Max => return max32(left, right),
        Lane::Min => return min32(left, right),
        Lane::Equal | Lane::NotEqual | Lane::Less | Lane::LessEqual | Lane::Greater | Lane::GreaterEqual => {
            return if compares(lane, a.into(), b.into()) { u32::MAX } else { 0 };
        }
        Lane::Divide if b == 0.0 && a != 0.0 && !a.is_nan() => float.status |= DIVIDE_BY_ZERO,
        _ => {}
    }
    let (a, b) = match lane {
        Lane::Subtract => (a, -b),
        Lane::AbsoluteAdd => (a.abs(), b.abs()),
        _ => (a, b),
    };
    let result = if float.plain() { nearest32(lane, a, b) } else { rounded32(float, lane, a, b) };
    float.invalid_if(result.is_nan(), a.is_nan() || b.is_nan());
    if result.is_infinite() && a.is_finite() && b.is_finite() && !(lane == Lane::Divide && b == 0.0) {
        float.status |= crate::arithmetic::OVERFLOW;
    }
    if result.is_nan() { F32_NAN_BITS } else { result.to_bits() }
}

fn nearest32(lane: Lane, a: f32, b: f32) -> f32 {
    match lane {
        Lane::Multiply => a * b,
        Lane::Divide => a / b,
        _ => a + b,
    }
}

/// Directed rounding: the f64 result and the sign of what it lost decide.
fn rounded32(float: &mut FloatState, lane: Lane, a: f32, b: f32) -> f32 {
    let (a, b) = (f64::from(a), f64::from(b));
    match lane {
        Lane::Multiply => float.round32(a * b, 0.0),
        Lane::Divide => {
            let quotient = a / b;
            let rest = libm::fma(-quotient, b, a) * if b < 0.0 { -1.0 } else { 1.0 };
            float.round32(quotient, rest)
        }
        _ => {
            let sum = float.sum(a, b);
            let part = sum - a;
            float.round32(sum, (a - (sum - part)) + (b - part))
        }
    }
}

fn sum16(float: &mut FloatState, lanes: u32) -> u32 {
    let (a, b) = (f16_to_f64(lanes as u16), f16_to_f64((lanes >> 16) as u16));
    float.round32(a + b, 0.0).to_bits()
}

fn term(kind: Accumulated, value: f64) -> f64 {
    match kind {
        Accumulated::Plain => value,
        Accumulated::Absolute => value.abs(),
        Accumulated::Square => value * value,
    }
}

/// A function of one f16, rounded as the worker does.
pub(crate) fn half_function(float: &mut FloatState, function: Function, bits: u16) -> u16 {
    let x = f16_to_f64(bits);
    let value = function.value(x);
    note(float, function, x, value);
    float.round16(value)
}

fn single_function(float: &mut FloatState, function: Function, x: f32) -> f32 {
    let value = function.value(x.into());
    note(float, function, x.into(), value);
    float.round32(value, 0.0)
}

fn note(float: &mut FloatState, function: Function, x: f64, value: f64) {
    if function.pole(x) {
        float.status |= DIVIDE_BY_ZERO;
    }
    float.invalid_if(value.is_nan(), x.is_nan());
}

fn single_to_half(worker: &mut Worker, d: u8, x: u8, lanes: u8) -> AuxResult {
    let mut half = |register: u8| {
        let value = f32::from_bits(worker.aux[register as usize & 15]);
        u64::from(worker.float.round16(value.into()))
    };
    match lanes {
        1 => {
            let value = half(x) as u32;
            one(d, value | value << 16)
        }
        2 => one(d, (half(x) | half(x + 1) << 16) as u32),
        _ => two(d, half(x) | half(x + 1) << 16 | half(x + 2) << 32 | half(x + 3) << 48),
    }
}

/// Out of range saturates and raises INV; NaN gives 0 (parameters.toml `f32toi32_out_of_range`).
fn single_to_integer(float: &mut FloatState, bits: u32, signed: bool) -> u32 {
    let value = f64::from(f32::from_bits(bits));
    let whole = float.rounding().integer(value.abs(), value < 0.0) * if value < 0.0 { -1.0 } else { 1.0 };
    let (low, high) = if signed { (f64::from(i32::MIN), f64::from(i32::MAX)) } else { (0.0, f64::from(u32::MAX)) };
    if !(low..=high).contains(&whole) {
        float.status |= INVALID;
    }
    if signed { whole as i32 as u32 } else { whole as u32 }
}

fn round_single(bits: u32, rounding: Rounding) -> u32 {
    let value = f32::from_bits(bits);
    if !value.is_finite() {
        return bits;
    }
    let magnitude = rounding.integer(f64::from(value.abs()), value.is_sign_negative()) as f32;
    magnitude.to_bits() | bits & (1 << 31)
}

fn signed6(value: u32) -> i32 {
    ((value << 26) as i32) >> 26
}

/// The class of a magnitude with so many fraction bits, of which the highest makes a NaN quiet.
fn class_of(magnitude: u32, fraction_bits: u32, infinity: u32) -> Class {
    match magnitude {
        0 => Class::Zero,
        m if m > infinity && m >> (fraction_bits - 1) & 1 == 1 => Class::QuietNan,
        m if m > infinity => Class::SignallingNan,
        m if m == infinity => Class::Infinity,
        m if m >> fraction_bits == 0 => Class::Subnormal,
        _ => Class::Normal,
    }
}

/// One byte for each element, element i in byte i, the rest zero.
fn classes(operation: &Operation, count: u32, element: impl Fn(u32) -> (Class, bool)) -> u32 {
    (0..count).fold(0, |word, i| {
        let (class, negative) = element(i);
        word | class_code(operation, class, negative) << (8 * i)
    })
}

/// Bit 0 of the operation's second field: values beyond the format become NaN (parameters.toml `fp8_overflow`).
fn half_to_byte(worker: &mut Worker, operation: &Operation, eight: bool) -> AuxResult {
    let (d, x, overflow_to_nan) = (operation.d, operation.x, operation.second & 1 == 1);
    let (format, scale) = (Fp8::of(worker.byte_format), signed6(worker.byte_scale));
    let count = if eight { 8 } else { 2 };
    let mut out = 0;
    for i in 0..count {
        let lanes = worker.aux(x + (i / 2) as u8);
        let value = f16_to_f64((lanes >> (16 * (i % 2))) as u16);
        let (code, overflow) = format.code(libm::ldexp(value, scale));
        if overflow {
            worker.float.status |= crate::arithmetic::OVERFLOW;
        }
        let code = if overflow && overflow_to_nan { Fp8::NAN } else { code };
        out |= u64::from(code) << (8 * i);
    }
    if eight { two(d, out) } else { one(d, out as u32) }
}

fn byte_to_half(worker: &mut Worker, d: u8, x: u8, four: bool) -> AuxResult {
    let (format, scale) = (Fp8::of(worker.byte_format), signed6(worker.byte_scale));
    let codes = worker.aux(x);
    let mut out = 0;
    for i in 0..if four { 4 } else { 2 } {
        let value = libm::ldexp(format.value((codes >> (8 * i)) as u8), scale);
        out |= u64::from(worker.float.round16(value)) << (16 * i);
    }
    if four { two(d, out) } else { one(d, out as u32) }
}

/// A sum of twelve uniforms: the simulator's own stand-in for the undocumented generator.
fn gaussian(float: &mut FloatState) -> f64 {
    (0..12).map(|_| (float.draw() >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() - 6.0
}

fn kept(draw: u64, lane: u32, probability: u32) -> bool {
    probability & 0x1_0000 != 0 || (draw >> (16 * lane) & 0xffff) < u64::from(probability & 0xffff)
}
