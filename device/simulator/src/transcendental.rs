//! Functions of one argument: f64 through the pure-Rust `libm`, rounded once by the caller (parameters.toml `transcendentals`).

/// A function of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// e^x.
    Exp,
    /// 2^x.
    Exp2,
    /// Natural logarithm.
    Ln,
    /// Logarithm to base 2.
    Log2,
    /// Hyperbolic tangent.
    Tanh,
    /// Logistic sigmoid 1/(1+e^-x).
    Sigmoid,
    /// Square root.
    Sqrt,
    /// 1/x.
    Reciprocal,
    /// 1/sqrt(x).
    ReciprocalSqrt,
}

impl Function {
    /// How many there are.
    pub(crate) const COUNT: usize = Function::ReciprocalSqrt as usize + 1;

    /// The value in f64.
    pub(crate) fn value(self, x: f64) -> f64 {
        match self {
            Function::Exp => libm::exp(x),
            Function::Exp2 => libm::exp2(x),
            Function::Ln => libm::log(x),
            Function::Log2 => libm::log2(x),
            Function::Tanh => libm::tanh(x),
            Function::Sigmoid => 1.0 / (1.0 + libm::exp(-x)),
            Function::Sqrt => x.sqrt(),
            Function::Reciprocal => 1.0 / x,
            Function::ReciprocalSqrt => 1.0 / x.sqrt(),
        }
    }

    /// Whether the argument is a pole.
    pub(crate) fn pole(self, x: f64) -> bool {
        let has_pole = matches!(self, Function::Ln | Function::Log2 | Function::Reciprocal | Function::ReciprocalSqrt);
        has_pole && x == 0.0
    }
}
