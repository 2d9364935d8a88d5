//! Softmax attention, head by head.

use crate::matrix::Matrix;

/// `softmax(Q K^T * scale) V` for each of `heads` equal column blocks; results side by side.
///
/// Shapes: `q` [queries, heads*d], `k` [keys, heads*d], `v` [keys, heads*e]; result [queries, heads*e].
pub(crate) fn attention(q: &Matrix, k: &Matrix, v: &Matrix, heads: usize, scale: f64) -> Matrix {
    let (width, value_width) = (q.columns() / heads, v.columns() / heads);
    let mut result = Matrix::zeros(q.rows(), v.columns());
    for head in 0..heads {
        let keys = k.column_block(head * width, width).transposed();
        let mut weights = q.column_block(head * width, width).times(&keys);
        for row in 0..weights.rows() {
            softmax(weights.row_mut(row), scale);
        }
        let context = weights.times(&v.column_block(head * value_width, value_width));
        for row in 0..result.rows() {
            result.row_mut(row)[head * value_width..(head + 1) * value_width].copy_from_slice(context.row(row));
        }
    }
    result
}

/// Replaces scores by `exp(scale * score)` normalised to sum 1, shifted by the maximum so that nothing overflows.
fn softmax(scores: &mut [f64], scale: f64) {
    let largest = scores.iter().map(|score| score * scale).fold(f64::NEG_INFINITY, f64::max);
    for score in scores.iter_mut() {
        *score = libm::exp(*score * scale - largest);
    }
    let sum: f64 = scores.iter().sum();
    for score in scores.iter_mut() {
        *score /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::{Matrix, attention};

    #[test]
    fn equal_keys_average_the_values() {
        let q = Matrix::new(1, 2, vec![0.3, -0.7]).unwrap();
        let k = Matrix::new(2, 2, vec![1.0, 2.0, 1.0, 2.0]).unwrap();
        let v = Matrix::new(2, 1, vec![4.0, 8.0]).unwrap();
        assert_eq!(attention(&q, &k, &v, 1, 1.0).values(), [6.0]);
    }

    #[test]
    fn a_dominant_key_takes_all_the_weight() {
        let q = Matrix::new(1, 1, vec![1000.0]).unwrap();
        let k = Matrix::new(2, 1, vec![1.0, -1.0]).unwrap();
        let v = Matrix::new(2, 1, vec![3.0, 5.0]).unwrap();
        assert_eq!(attention(&q, &k, &v, 1, 1.0).values(), [3.0]);
    }

    #[test]
    fn heads_do_not_see_each_other() {
        let q = Matrix::new(1, 2, vec![1.0, 0.0]).unwrap();
        let k = Matrix::new(2, 2, vec![5.0, 0.0, -5.0, 0.0]).unwrap();
        let v = Matrix::new(2, 2, vec![1.0, 10.0, 2.0, 20.0]).unwrap();
        let result = attention(&q, &k, &v, 2, 1.0);
        let weight = 1.0 / (1.0 + libm::exp(-10.0));
        assert!((result.values()[0] - (weight + 2.0 * (1.0 - weight))).abs() < 1e-12);
        assert_eq!(result.values()[1], 15.0);
    }
}
