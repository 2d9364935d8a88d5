//! The checked operator graph: what is computed, with every shape known.
//!
//! In: a [`Declaration`] as written by a user. Out: a [`Model`], values and operations by number, operations in declaration
//! order, every argument declared before its use. Later stages rely on what [`check`] has proved: leading dimensions
//! are 1, all shapes agree, every value an operation reads exists. Nothing here knows a tile.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The element type of a tensor. Only f16 is computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// IEEE 754 binary16.
    F16,
}

/// Type and shape of a graph input or parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorDeclaration {
    /// Element type.
    #[serde(rename = "type")]
    pub element: ElementType,
    /// Extents, outermost first.
    pub shape: Vec<u32>,
}

/// One operation as declared; which fields an operation takes depends on its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationDeclaration {
    /// Name of the operation and of its result.
    pub name: String,
    /// Kind: `matmul`, `split` or `attention`.
    pub op: String,
    /// Names of the arguments, in the order of the kind.
    pub args: Vec<String>,
    /// `matmul`: the weight is given as `[out, in]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transposed: Option<bool>,
    /// `split`: number of heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<u32>,
    /// `attention`: factor of the scores; 1/sqrt(width of a head) unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
}

/// A model as a user writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// Tensors given for each run.
    #[serde(default)]
    pub inputs: BTreeMap<String, TensorDeclaration>,
    /// Tensors given once.
    #[serde(default)]
    pub parameters: BTreeMap<String, TensorDeclaration>,
    /// Operations, in order.
    #[serde(default)]
    pub op: Vec<OperationDeclaration>,
    /// Names of the results given back; every result no operation reads, unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Vec<String>>,
}

/// Number of a value: inputs by name, then parameters by name, then results in operation order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ValueId(pub u32);

impl ValueId {
    /// Position in [`Model::values`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// Given for each run.
    Input,
    /// Given once.
    Parameter,
    /// Result of the operation with this number.
    Result(u32),
}

/// A tensor of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// Unique name.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
    /// Extents, outermost first, none 0.
    pub shape: Vec<u32>,
}

impl Value {
    /// Rows of the matrix this value is: all extents but the last together, 1 for a vector.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.shape.iter().rev().skip(1).product()
    }

    /// Columns of the matrix this value is.
    #[must_use]
    pub fn columns(&self) -> u32 {
        self.shape.last().copied().unwrap_or(1)
    }
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Kind {
    /// `y = x·W (+ bias)`; `transposed`: the weight is given as `[out, in]`, `y = x·Wᵀ`.
    Product {
        /// Input or result, `[1, rows, in]` or `[rows, in]`.
        x: ValueId,
        /// Parameter.
        weight: ValueId,
        /// Parameter, `[out]`.
        bias: Option<ValueId>,
        /// The weight is given as `[out, in]`.
        transposed: bool,
    },
    /// A view of `[1, rows, heads·width]` as `[1, heads, rows, width]`; nothing moves.
    Split {
        /// What is viewed.
        value: ValueId,
        /// Number of heads.
        heads: u32,
    },
    /// `softmax(scale·Q·Kᵀ)·V` head by head, the heads side by side in the result.
    Attention {
        /// The value split into queries (the value itself, not its view).
        queries: ValueId,
        /// The value split into keys.
        keys: ValueId,
        /// The value split into values.
        values: ValueId,
        /// Number of heads.
        heads: u32,
        /// Factor of the scores.
        scale: f32,
    },
}

/// An operation of the graph; its number is its position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Unique name, also of the result.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// The result; of a view the view itself, which no other stage ever stores.
    pub result: ValueId,
}

/// A checked operator graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Index = [`ValueId`].
    pub values: Vec<Value>,
    /// In declaration order; an operation's number is its index.
    pub operations: Vec<Operation>,
    /// Results given back, ascending.
    pub outputs: Vec<ValueId>,
}

impl Model {
    /// The value with this number.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// The value with this name.
    #[must_use]
    pub fn value_named(&self, name: &str) -> Option<ValueId> {
        let index = self.values.iter().position(|value| value.name == name)?;
        Some(ValueId(u32::try_from(index).ok()?))
    }

    /// The value that is stored for `id`: what a view looks at, else the value itself.
    #[must_use]
    pub fn stored(&self, id: ValueId) -> ValueId {
        match self.value(id).source {
            Source::Result(operation) => match self.operations[operation as usize].kind {
                Kind::Split { value, .. } => value,
                Kind::Product { .. } | Kind::Attention { .. } => id,
            },
            Source::Input | Source::Parameter => id,
        }
    }

    /// Numbers of the operations that compute something, in order.
    pub fn computed(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.operations).filter(|(_, operation)| !matches!(operation.kind, Kind::Split { .. })).map(|(number, _)| number)
    }
}

/// What can be wrong with a declaration. `place` is an operation, input or parameter name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// Two values share a name.
    Repeated {
        /// The name.
        name: String,
    },
    /// Nothing is computed.
    NoOperation,
    /// An operation kind that does not exist.
    UnknownKind {
        /// Operation.
        place: String,
        /// What was written.
        found: String,
    },
    /// An argument names nothing declared before.
    UnknownValue {
        /// Operation.
        place: String,
        /// Argument, from 0.
        argument: usize,
        /// What was written.
        found: String,
    },
    /// Too few or too many arguments.
    ArgumentCount {
        /// Operation.
        place: String,
        /// What the kind takes.
        expected: String,
        /// How many were given.
        found: usize,
    },
    /// A field this kind does not take, lacks, or whose value is out of range.
    Field {
        /// Operation.
        place: String,
        /// Field name.
        field: String,
        /// What is possible.
        expected: String,
        /// What was found.
        found: String,
    },
    /// An argument of the wrong origin: a weight that is no parameter, an attention argument that is no view.
    Role {
        /// Operation.
        place: String,
        /// Argument, from 0.
        argument: usize,
        /// What is possible.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A shape that does not fit.
    Shape {
        /// Operation, input or parameter.
        place: String,
        /// Argument, from 0; none for a declaration.
        argument: Option<usize>,
        /// What is possible.
        expected: String,
        /// The shape found.
        found: Vec<u32>,
    },
    /// A name in `outputs` that is no result of a product or attention.
    Output {
        /// The name.
        name: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeated { name } => write!(f, "`{name}` is declared twice"),
            Self::NoOperation => write!(f, "the model has no operation that computes anything"),
            Self::UnknownKind { place, found } => {
                write!(f, "operation `{place}`: unknown op `{found}`; expected matmul, split or attention")
            }
            Self::UnknownValue { place, argument, found } => {
                write!(f, "operation `{place}`, args[{argument}]: `{found}` is no input, parameter or earlier result")
            }
            Self::ArgumentCount { place, expected, found } => {
                write!(f, "operation `{place}`, args: expected {expected}, found {found}")
            }
            Self::Field { place, field, expected, found } => {
                write!(f, "operation `{place}`, {field}: expected {expected}, found {found}")
            }
            Self::Role { place, argument, expected, found } => {
                write!(f, "operation `{place}`, args[{argument}]: expected {expected}, found {found}")
            }
            Self::Shape { place, argument: Some(argument), expected, found } => {
                write!(f, "operation `{place}`, args[{argument}]: expected shape {expected}, found {found:?}")
            }
            Self::Shape { place, argument: None, expected, found } => {
                write!(f, "`{place}`: expected shape {expected}, found {found:?}")
            }
            Self::Output { name } => write!(f, "outputs: `{name}` is not the result of a matmul or attention"),
        }
    }
}

impl std::error::Error for Fault {}

/// Largest extent and largest number of elements of a tensor: more than the memory of all tiles holds.
const ELEMENTS_MAX: u64 = 1 << 30;

/// Checks names, arguments and shapes and infers the results. Returns all independent faults in declaration order.
///
/// # Errors
/// Every fault found; operations that read the result of a faulty operation are not reported again.
pub fn check(declaration: &Declaration) -> Result<Model, Vec<Fault>> {
    let mut checker = Checker {
        model: Model { values: Vec::new(), operations: Vec::new(), outputs: Vec::new() },
        broken: Vec::new(),
        faults: Vec::new(),
    };
    for (name, tensor) in &declaration.inputs {
        checker.declare(name, tensor, Source::Input);
    }
    for (name, tensor) in &declaration.parameters {
        checker.declare(name, tensor, Source::Parameter);
    }
    for operation in &declaration.op {
        checker.operation(operation);
    }
    checker.outputs(declaration.outputs.as_deref());
    if checker.faults.is_empty() { Ok(checker.model) } else { Err(checker.faults) }
}

struct Checker {
    model: Model,
    broken: Vec<String>,
    faults: Vec<Fault>,
}

impl Checker {
    fn declare(&mut self, name: &str, tensor: &TensorDeclaration, source: Source) {
        if !(1..=4).contains(&tensor.shape.len()) || !is_sized(&tensor.shape) {
            self.faults.push(Fault::Shape {
                place: name.to_owned(),
                argument: None,
                expected: format!("one to four extents of at least 1, at most {ELEMENTS_MAX} elements"),
                found: tensor.shape.clone(),
            });
            self.broken.push(name.to_owned());
            return;
        }
        self.add(name, source, tensor.shape.clone());
    }

    fn add(&mut self, name: &str, source: Source, shape: Vec<u32>) -> Option<ValueId> {
        if self.model.value_named(name).is_some() {
            self.faults.push(Fault::Repeated { name: name.to_owned() });
            return None;
        }
        let id = ValueId(u32::try_from(self.model.values.len()).ok()?);
        self.model.values.push(Value { name: name.to_owned(), source, shape });
        Some(id)
    }

    fn operation(&mut self, declared: &OperationDeclaration) {
        let before = self.faults.len();
        let number = u32::try_from(self.model.operations.len()).unwrap_or(u32::MAX);
        let Some((kind, shape)) = self.kind(declared) else {
            self.broken.push(declared.name.clone());
            return;
        };
        if self.faults.len() > before {
            self.broken.push(declared.name.clone());
            return;
        }
        if let Some(result) = self.add(&declared.name, Source::Result(number), shape) {
            self.model.operations.push(Operation { name: declared.name.clone(), kind, result });
        }
    }

    fn kind(&mut self, declared: &OperationDeclaration) -> Option<(Kind, Vec<u32>)> {
        match declared.op.as_str() {
            "matmul" => self.product(declared),
            "split" => self.split(declared),
            "attention" => self.attention(declared),
            _ => {
                self.faults.push(Fault::UnknownKind { place: declared.name.clone(), found: declared.op.clone() });
                None
            }
        }
    }

    /// The arguments, or nothing when one is unknown or the result of an operation already reported.
    fn arguments(&mut self, declared: &OperationDeclaration, counts: &[usize], expected: &str) -> Option<Vec<ValueId>> {
        if !counts.contains(&declared.args.len()) {
            self.faults.push(Fault::ArgumentCount {
                place: declared.name.clone(),
                expected: expected.to_owned(),
                found: declared.args.len(),
            });
            return None;
        }
        let found: Vec<_> = declared.args.iter().map(|name| self.model.value_named(name)).collect();
        for (argument, (name, id)) in declared.args.iter().zip(&found).enumerate() {
            if id.is_none() && !self.broken.contains(name) {
                self.faults.push(Fault::UnknownValue { place: declared.name.clone(), argument, found: name.clone() });
            }
        }
        found.into_iter().collect()
    }

    fn refuse_fields(&mut self, declared: &OperationDeclaration, allowed: &str) {
        let given =
            [("transposed", declared.transposed.is_some()), ("heads", declared.heads.is_some()), ("scale", declared.scale.is_some())];
        for (field, present) in given {
            if present && field != allowed {
                self.faults.push(Fault::Field {
                    place: declared.name.clone(),
                    field: field.to_owned(),
                    expected: format!("no such field for {}", declared.op),
                    found: "a value".to_owned(),
                });
            }
        }
    }

    fn shape_fault(&mut self, declared: &OperationDeclaration, argument: usize, expected: String, id: ValueId) {
        let found = self.model.value(id).shape.clone();
        self.faults.push(Fault::Shape { place: declared.name.clone(), argument: Some(argument), expected, found });
    }

    fn role_fault(&mut self, declared: &OperationDeclaration, argument: usize, expected: &str, id: ValueId) {
        let value = self.model.value(id);
        let origin = match value.source {
            Source::Input => "an input",
            Source::Parameter => "a parameter",
            Source::Result(_) => "a result",
        };
        let found = format!("`{}`, {origin}", value.name);
        self.faults.push(Fault::Role { place: declared.name.clone(), argument, expected: expected.to_owned(), found });
    }

    fn product(&mut self, declared: &OperationDeclaration) -> Option<(Kind, Vec<u32>)> {
        self.refuse_fields(declared, "transposed");
        let arguments = self.arguments(declared, &[2, 3], "x, weight and optionally bias")?;
        let (x, weight, bias) = (arguments[0], arguments[1], arguments.get(2).copied());
        let transposed = declared.transposed.unwrap_or(false);
        let mut right = self.expect_activation(declared, 0, x);
        for (argument, id) in arguments.iter().enumerate().skip(1) {
            if self.model.value(*id).source != Source::Parameter {
                self.role_fault(declared, argument, "a parameter", *id);
                right = false;
            }
        }
        if !right {
            return None;
        }
        let inner = self.model.value(x).columns();
        let outer = match (self.model.value(weight).shape.as_slice(), transposed) {
            (&[rows, columns], false) if rows == inner => columns,
            (&[rows, columns], true) if columns == inner => rows,
            _ => {
                let expected = if transposed { format!("[out, {inner}]") } else { format!("[{inner}, out]") };
                self.shape_fault(declared, 1, expected, weight);
                return None;
            }
        };
        if let Some(bias) = bias
            && self.model.value(bias).shape != [outer]
        {
            self.shape_fault(declared, 2, format!("[{outer}]"), bias);
            return None;
        }
        let mut shape = self.model.value(x).shape.clone();
        if let Some(last) = shape.last_mut() {
            *last = outer;
        }
        if !is_sized(&shape) {
            self.shape_fault(declared, 1, format!("a result of at most {ELEMENTS_MAX} elements"), weight);
            return None;
        }
        Some((Kind::Product { x, weight, bias, transposed }, shape))
    }

    /// An input or result `[1, rows, columns]` or `[rows, columns]` that is no view.
    fn expect_activation(&mut self, declared: &OperationDeclaration, argument: usize, id: ValueId) -> bool {
        if self.model.value(id).source == Source::Parameter || self.model.stored(id) != id {
            self.role_fault(declared, argument, "an input or the result of a matmul or attention", id);
            return false;
        }
        let right = matches!(self.model.value(id).shape.as_slice(), [1, _, _] | [_, _]);
        if !right {
            self.shape_fault(declared, argument, "[1, rows, columns] or [rows, columns]".to_owned(), id);
        }
        right
    }

    fn split(&mut self, declared: &OperationDeclaration) -> Option<(Kind, Vec<u32>)> {
        self.refuse_fields(declared, "heads");
        let value = *self.arguments(declared, &[1], "one value")?.first()?;
        let Some(heads) = declared.heads.filter(|&heads| heads > 0) else {
            self.faults.push(Fault::Field {
                place: declared.name.clone(),
                field: "heads".to_owned(),
                expected: "an integer of at least 1".to_owned(),
                found: declared.heads.map_or("nothing".to_owned(), |heads| heads.to_string()),
            });
            return None;
        };
        if !self.expect_activation(declared, 0, value) {
            return None;
        }
        let (rows, columns) = (self.model.value(value).rows(), self.model.value(value).columns());
        if !columns.is_multiple_of(heads) {
            self.shape_fault(declared, 0, format!("[1, rows, a multiple of {heads}]"), value);
            return None;
        }
        Some((Kind::Split { value, heads }, vec![1, heads, rows, columns / heads]))
    }

    fn attention(&mut self, declared: &OperationDeclaration) -> Option<(Kind, Vec<u32>)> {
        self.refuse_fields(declared, "scale");
        let arguments = self.arguments(declared, &[3], "queries, keys and values")?;
        let mut right = true;
        for (argument, id) in arguments.iter().enumerate() {
            if self.model.stored(*id) == *id {
                self.role_fault(declared, argument, "the result of a split", *id);
                right = false;
            }
        }
        if !right {
            return None;
        }
        let shape_of = |id: ValueId| <[u32; 4]>::try_from(self.model.value(id).shape.as_slice()).ok();
        let (
            &[q, k, v],
            Some([_, heads, rows, width]),
            Some([_, key_heads, keys, key_width]),
            Some([_, value_heads, value_rows, value_width]),
        ) = (arguments.first_chunk::<3>()?, shape_of(arguments[0]), shape_of(arguments[1]), shape_of(arguments[2]))
        else {
            return None;
        };
        if (key_heads, key_width) != (heads, width) {
            self.shape_fault(declared, 1, format!("[1, {heads}, keys, {width}]"), k);
            right = false;
        }
        if (value_heads, value_rows) != (heads, keys) {
            self.shape_fault(declared, 2, format!("[1, {heads}, {keys}, width]"), v);
            right = false;
        }
        let scale = declared.scale.unwrap_or_else(|| 1.0 / f64::from(width).sqrt());
        #[expect(clippy::cast_possible_truncation, reason = "the kernel takes the scale as f32; rounding is meant")]
        let scale = scale as f32;
        if !(scale.is_finite() && scale > 0.0) {
            self.faults.push(Fault::Field {
                place: declared.name.clone(),
                field: "scale".to_owned(),
                expected: "a finite number above 0".to_owned(),
                found: scale.to_string(),
            });
            right = false;
        }
        if !right {
            return None;
        }
        let stored = |id| self.model.stored(id);
        let kind = Kind::Attention { queries: stored(q), keys: stored(k), values: stored(v), heads, scale };
        Some((kind, vec![1, rows, heads * value_width]))
    }

    fn outputs(&mut self, named: Option<&[String]>) {
        if self.faults.is_empty() && self.model.computed().next().is_none() {
            self.faults.push(Fault::NoOperation);
        }
        let mut outputs = match named {
            Some(names) => self.named_outputs(names),
            None => self.unread_results(),
        };
        outputs.sort_unstable();
        outputs.dedup();
        self.model.outputs = outputs;
    }

    fn named_outputs(&mut self, names: &[String]) -> Vec<ValueId> {
        let mut outputs = Vec::new();
        for name in names {
            match self.model.value_named(name).filter(|&id| self.is_result(id)) {
                Some(id) => outputs.push(id),
                None if self.broken.contains(name) => {}
                None => self.faults.push(Fault::Output { name: name.clone() }),
            }
        }
        outputs
    }

    fn is_result(&self, id: ValueId) -> bool {
        matches!(self.model.value(id).source, Source::Result(_)) && self.model.stored(id) == id
    }

    /// Results that no product or attention reads; a view alone is no reader.
    fn unread_results(&self) -> Vec<ValueId> {
        let mut read = vec![false; self.model.values.len()];
        for operation in &self.model.operations {
            match operation.kind {
                Kind::Product { x, .. } => read[x.index()] = true,
                Kind::Split { .. } => {}
                Kind::Attention { queries, keys, values, .. } => {
                    for id in [queries, keys, values] {
                        read[id.index()] = true;
                    }
                }
            }
        }
        self.model.operations.iter().map(|operation| operation.result).filter(|id| self.is_result(*id) && !read[id.index()]).collect()
    }
}

fn is_sized(shape: &[u32]) -> bool {
    let elements = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(u64::from(extent)));
    matches!(elements, Some(1..=ELEMENTS_MAX))
}

#[cfg(test)]
mod tests {
    use super::{Declaration, check};

    const TENSORS: &str = r#"
        inputs.x = { type = "f16", shape = [1, 10, 32] }
        inputs.batch = { type = "f16", shape = [2, 10, 32] }
        parameters.w = { type = "f16", shape = [32, 48] }
        parameters.b = { type = "f16", shape = [48] }
    "#;

    fn declaration(operations: &str) -> Declaration {
        toml::from_str(&format!("{TENSORS}\nop = [{operations}]")).expect("a test model")
    }

    fn faults(operations: &str) -> Vec<String> {
        check(&declaration(operations)).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn shapes_of_results_follow_from_their_arguments() {
        let model = check(&declaration(
            r#"{ name = "y", op = "matmul", args = ["x", "w", "b"] },
               { name = "h", op = "split", args = ["y"], heads = 3 },
               { name = "o", op = "attention", args = ["h", "h", "h"] }"#,
        ))
        .unwrap();
        let shapes: Vec<_> = ["y", "h", "o"].iter().map(|name| model.value(model.value_named(name).unwrap()).shape.clone()).collect();
        assert_eq!(shapes, [vec![1, 10, 48], vec![1, 3, 10, 16], vec![1, 10, 48]]);
        assert_eq!(model.outputs, [model.value_named("o").unwrap()]);
    }

    #[test]
    fn every_wrong_operation_is_named_with_what_was_expected_and_found() {
        #[rustfmt::skip]
        let cases = [
            (r#"{ name = "y", op = "conv", args = ["x"] }"#, "operation `y`: unknown op `conv`; expected matmul, split or attention"),
            (r#"{ name = "y", op = "matmul", args = ["x"] }"#, "operation `y`, args: expected x, weight and optionally bias, found 1"),
            (r#"{ name = "y", op = "matmul", args = ["x", "v"] }"#, "operation `y`, args[1]: `v` is no input, parameter or earlier result"),
            (r#"{ name = "y", op = "matmul", args = ["batch", "w"] }"#, "operation `y`, args[0]: expected shape [1, rows, columns] or [rows, columns], found [2, 10, 32]"),
            (r#"{ name = "y", op = "matmul", args = ["x", "x"] }"#, "operation `y`, args[1]: expected a parameter, found `x`, an input"),
            (r#"{ name = "y", op = "matmul", args = ["x", "w"], transposed = true }"#, "operation `y`, args[1]: expected shape [out, 32], found [32, 48]"),
            (r#"{ name = "y", op = "matmul", args = ["x", "w"], heads = 2 }"#, "operation `y`, heads: expected no such field for matmul, found a value"),
            (r#"{ name = "y", op = "split", args = ["x"], heads = 5 }"#, "operation `y`, args[0]: expected shape [1, rows, a multiple of 5], found [1, 10, 32]"),
            (r#"{ name = "y", op = "split", args = ["x"] }"#, "operation `y`, heads: expected an integer of at least 1, found nothing"),
            (r#"{ name = "y", op = "attention", args = ["x", "x", "x"] }"#, "operation `y`, args[0]: expected the result of a split, found `x`, an input"),
            (r#"{ name = "x", op = "matmul", args = ["x", "w"] }"#, "`x` is declared twice"),
        ];
        for (operations, expected) in cases {
            assert_eq!(faults(operations)[0], expected);
        }
    }

    #[test]
    fn readers_of_a_faulty_operation_are_not_reported_again() {
        let found = faults(r#"{ name = "y", op = "matmul", args = ["x", "v"] }, { name = "z", op = "split", args = ["y"], heads = 2 }"#);
        assert_eq!(found, ["operation `y`, args[1]: `v` is no input, parameter or earlier result"]);
    }
}
