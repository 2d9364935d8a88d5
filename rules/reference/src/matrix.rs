//! A dense row-major matrix of `f64`.

/// Row-major matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// `values` in row-major order; `None` when their number is not `rows * columns`.
    #[must_use]
    pub fn new(rows: usize, columns: usize, values: Vec<f64>) -> Option<Self> {
        (rows.checked_mul(columns)? == values.len()).then_some(Self { rows, columns, values })
    }

    /// All zeros.
    #[must_use]
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: vec![0.0; rows * columns] }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All elements, row-major.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// One row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }

    /// One row, to be written.
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.values[row * self.columns..(row + 1) * self.columns]
    }

    /// Rows and columns exchanged.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let mut result = Self::zeros(self.columns, self.rows);
        for (index, value) in self.values.iter().enumerate() {
            result.values[index % self.columns * self.rows + index / self.columns] = *value;
        }
        result
    }

    /// `self * right`; the inner dimensions must be equal. Sums run over the inner index in ascending order.
    #[must_use]
    pub fn times(&self, right: &Self) -> Self {
        assert_eq!(self.columns, right.rows, "inner dimensions of a product");
        let mut result = Self::zeros(self.rows, right.columns);
        for row in 0..self.rows {
            let sums = &mut result.values[row * right.columns..(row + 1) * right.columns];
            for (inner, factor) in self.row(row).iter().enumerate() {
                for (sum, value) in sums.iter_mut().zip(right.row(inner)) {
                    *sum += factor * value;
                }
            }
        }
        result
    }

    /// The columns `[first, first + count)`.
    #[must_use]
    pub fn column_block(&self, first: usize, count: usize) -> Self {
        let values = (0..self.rows).flat_map(|row| self.row(row)[first..first + count].iter().copied()).collect();
        Self { rows: self.rows, columns: count, values }
    }
}

#[cfg(test)]
mod tests {
    use super::Matrix;

    #[test]
    fn product_of_small_matrices_is_the_textbook_one() {
        let left = Matrix::new(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let right = Matrix::new(3, 2, vec![7.0, 8.0, 9.0, 10.0, 11.0, 12.0]).unwrap();
        assert_eq!(left.times(&right).values(), [58.0, 64.0, 139.0, 154.0]);
    }

    #[test]
    fn transposing_twice_gives_the_matrix_back() {
        let matrix = Matrix::new(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert_eq!(matrix.transposed().values(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!(matrix.transposed().transposed(), matrix);
    }

    #[test]
    fn a_wrong_number_of_values_is_no_matrix() {
        assert_eq!(Matrix::new(2, 2, vec![0.0; 3]), None);
    }
}
