//! How large the errors of a program may be, from the roundings its kernels make. The figures are those of f16 and of the planner's own
//! error model, not fitted to runs; terms are here because drawn programs showed elements that need them: the last roundings of the
//! largest elements, and the row of an attention with the largest score.
//!
//! Every value is taken as a normal variable with a variance and a mean square error. A product with weights of variance 1/inner
//! keeps the variance of its operand and the variance of its error, as independent terms do; what it adds itself are the roundings of
//! its f16 partial sums, which the planner also reckons with (`compiler::layout`), and those of its result and bias.

/// Root mean square of the roundings of a chain of one block of sixteen channels with f16 partial sums, for results of variance 1;
/// n blocks make √n times that. Where the planner takes f32 sums the error is smaller.
const CHAIN: f64 = 0.16e-3;
/// Root mean square of rounding a normal variable of variance 1 to f16, all binades weighted by how likely they are.
const ROUNDING: f64 = 0.2e-3;
/// The same of the difference between a score and the largest score of its row, which is a few units: mostly the binade from 2 to 4,
/// with steps of 2⁻⁹ / √12.
const DIFFERENCE: f64 = 0.6e-3;
/// A tolerance is this many root mean squares, and the last roundings of the largest element: among the 48,000 elements of the largest
/// result the largest normal variable is near 4.3, and roundings are no normal variables, those of large elements are larger.
const DEVIATIONS: f64 = 6.0;
/// Standard deviations of the largest element, and of the largest of the 300,000 scores of the largest attention.
const LARGEST: f64 = 4.6;

/// Variance and mean square error of the elements of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    variance: f64,
    error: f64,
    /// How often the elements were rounded after their last sum.
    roundings: f64,
    /// Mean square of the row with the largest elements, over the variance.
    tail: f64,
}

impl Estimate {
    /// What is drawn and given: exact.
    pub(crate) const INPUT: Self = Self { variance: 1.0, error: 0.0, roundings: 0.0, tail: 1.0 };

    /// The result of a product with weights of variance 1/`inner`, and a bias.
    pub(crate) fn product(self, inner: u32, bias_variance: f64) -> Self {
        let variance = self.variance + bias_variance;
        let roundings = if bias_variance > 0.0 { 2.0 } else { 1.0 };
        let error = self.error + (chain(inner) + roundings * ROUNDING.powi(2)) * variance;
        Self { variance, error, roundings, tail: self.tail.max(largest_row(inner)) }
    }

    /// The result of attention, scores scaled by 1/√`width`, over `keys` keys. `self` are the queries.
    pub(crate) fn attention(self, keys: &Self, values: &Self, width: u32, count: u32) -> Self {
        let scores = self.variance * keys.variance;
        // The largest scores, of rows with large elements.
        let large = scores * (self.tail * keys.tail).sqrt();
        // A score's error is the relative error of its probability. The roundings of its own sum grow with it, and the largest counts.
        let own = chain(width) * LARGEST.powi(2) * large + 2.0 * DIFFERENCE.powi(2) * scores + ROUNDING.powi(2);
        let probability = self.error * keys.variance + keys.error * self.variance + own;
        // The sum of the squared probabilities of a row is e^variance / count for normal scores. The row with the largest score has that
        // score's own square besides; it is this row that decides whether a tolerance holds.
        let others = f64::from(count) * (scores / 2.0).exp();
        let largest = (LARGEST * large.sqrt()).exp();
        let spread = (scores.exp() / f64::from(count) + (largest / (largest + others)).powi(2)).min(1.0);
        // Result, merged parts and reciprocal are rounded.
        let own = (chain(count) + 3.0 * ROUNDING.powi(2)) * values.variance;
        let error = spread * (probability * values.variance + values.error + own);
        Self { variance: spread * values.variance, error, roundings: 1.0, tail: values.tail }
    }

    /// The largest absolute error to expect.
    pub(crate) fn tolerance(self) -> f64 {
        // Half a step of f16 in the binade of the largest element.
        let rounding = (LARGEST * (self.variance * self.tail).sqrt()).log2().floor().exp2() * 2.0_f64.powi(-11);
        DEVIATIONS * (self.error * self.tail).sqrt() + self.roundings * rounding
    }
}

/// Mean square of the roundings of a chain over `inner` channels, results of variance 1.
fn chain(inner: u32) -> f64 {
    CHAIN.powi(2) * f64::from(inner.div_ceil(16))
}

/// Mean square of the largest of 300 rows of `inner` normal elements: a χ² variable exceeds this with a chance of e⁻⁶ a row (Laurent and
/// Massart's bound). All elements of a product's row grow with it, and so do their roundings.
fn largest_row(inner: u32) -> f64 {
    let chance = 6.0 / f64::from(inner);
    1.0 + 2.0 * chance.sqrt() + 2.0 * chance
}
