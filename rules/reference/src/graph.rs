//! The operator graph and its evaluation.

use std::fmt;

use crate::attention::attention;
use crate::matrix::Matrix;

/// An operation over values; an argument is the index of a value (inputs first, then results in operation order).
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// `x * w` (or `x * w^T` when `transposed`), plus `bias` (one row) on every row.
    Product {
        /// Left operand [rows, inner].
        x: usize,
        /// Right operand [inner, columns], or [columns, inner] when `transposed`.
        w: usize,
        /// One row [1, columns].
        bias: Option<usize>,
        /// The right operand is given transposed.
        transposed: bool,
    },
    /// A view: columns are looked at as heads; the elements stay as they are.
    View {
        /// The value looked at.
        x: usize,
    },
    /// Softmax attention over `heads` column blocks.
    Attention {
        /// Queries [queries, heads*d].
        q: usize,
        /// Keys [keys, heads*d].
        k: usize,
        /// Values [keys, heads*e].
        v: usize,
        /// Number of heads.
        heads: usize,
        /// Factor on the scores.
        scale: f64,
    },
}

/// A graph: the number of given values, then operations, each making one value.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// Number of inputs and parameters.
    pub inputs: usize,
    /// In order; an operation reads only values before its own result.
    pub operations: Vec<Operation>,
}

/// What can be wrong with a graph or its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Another number of inputs than the graph names.
    InputCount {
        /// Named by the graph.
        expected: usize,
        /// Given.
        found: usize,
    },
    /// An operation reads a value that does not exist yet.
    UnknownValue {
        /// The operation.
        operation: usize,
        /// The index it reads.
        value: usize,
    },
    /// Dimensions that do not go together.
    Shape {
        /// The operation.
        operation: usize,
        /// Which dimensions.
        what: &'static str,
        /// First of them.
        left: usize,
        /// Second of them.
        right: usize,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InputCount { expected, found } => write!(out, "the graph has {expected} inputs, {found} were given"),
            Self::UnknownValue { operation, value } => {
                write!(out, "operation {operation} reads value {value}, which is not made before it")
            }
            Self::Shape { operation, what, left, right } => write!(out, "operation {operation}: {what} differ: {left} and {right}"),
        }
    }
}

impl std::error::Error for Fault {}

/// All values: the inputs as given, then one result per operation.
///
/// # Errors
/// [`Fault`] when inputs are missing or shapes do not go together.
pub fn evaluate(graph: &Graph, inputs: Vec<Matrix>) -> Result<Vec<Matrix>, Fault> {
    if inputs.len() != graph.inputs {
        return Err(Fault::InputCount { expected: graph.inputs, found: inputs.len() });
    }
    let mut values = inputs;
    for (number, operation) in graph.operations.iter().enumerate() {
        let result = apply(number, operation, &values)?;
        values.push(result);
    }
    Ok(values)
}

fn apply(number: usize, operation: &Operation, values: &[Matrix]) -> Result<Matrix, Fault> {
    let value = |index: usize| values.get(index).ok_or(Fault::UnknownValue { operation: number, value: index });
    let equal = |what, left, right| if left == right { Ok(()) } else { Err(Fault::Shape { operation: number, what, left, right }) };
    match *operation {
        Operation::View { x } => Ok(value(x)?.clone()),
        Operation::Product { x, w, bias, transposed } => {
            let (x, right) = (value(x)?, if transposed { value(w)?.transposed() } else { value(w)?.clone() });
            equal("inner dimensions", x.columns(), right.rows())?;
            let mut result = x.times(&right);
            if let Some(bias) = bias {
                let bias = value(bias)?;
                equal("columns of product and bias", result.columns(), bias.values().len())?;
                add_to_rows(&mut result, bias.values());
            }
            Ok(result)
        }
        Operation::Attention { q, k, v, heads, scale } => {
            let (q, k, v) = (value(q)?, value(k)?, value(v)?);
            equal("widths of queries and keys", q.columns(), k.columns())?;
            equal("numbers of keys and values", k.rows(), v.rows())?;
            equal("columns beyond whole heads and none", if heads == 0 { 1 } else { q.columns() % heads + v.columns() % heads }, 0)?;
            Ok(attention(q, k, v, heads, scale))
        }
    }
}

fn add_to_rows(matrix: &mut Matrix, bias: &[f64]) {
    for row in 0..matrix.rows() {
        for (value, added) in matrix.row_mut(row).iter_mut().zip(bias) {
            *value += added;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, Graph, Operation, evaluate};
    use crate::matrix::Matrix;

    fn product(bias: Option<usize>, transposed: bool) -> Operation {
        Operation::Product { x: 0, w: 1, bias, transposed }
    }

    #[test]
    fn transposed_weights_and_bias_follow_y_is_x_wt_plus_b() {
        let inputs = vec![
            Matrix::new(1, 2, vec![1.0, 2.0]).unwrap(),
            Matrix::new(3, 2, vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0]).unwrap(),
            Matrix::new(1, 3, vec![10.0, 20.0, 30.0]).unwrap(),
        ];
        let graph = Graph { inputs: 3, operations: vec![product(Some(2), true)] };
        assert_eq!(evaluate(&graph, inputs).unwrap()[3].values(), [11.0, 22.0, 33.0]);
    }

    #[test]
    fn inner_dimensions_that_differ_are_named() {
        let inputs = vec![Matrix::zeros(1, 2), Matrix::zeros(3, 3)];
        let graph = Graph { inputs: 2, operations: vec![product(None, false)] };
        assert_eq!(evaluate(&graph, inputs), Err(Fault::Shape { operation: 0, what: "inner dimensions", left: 2, right: 3 }));
    }

    #[test]
    fn a_value_from_the_future_is_refused() {
        let graph = Graph { inputs: 1, operations: vec![Operation::View { x: 1 }] };
        assert_eq!(evaluate(&graph, vec![Matrix::zeros(1, 1)]), Err(Fault::UnknownValue { operation: 0, value: 1 }));
    }
}
