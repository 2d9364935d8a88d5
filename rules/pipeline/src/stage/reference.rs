//! The expectation: float64 values of all operations, from the whole graph on the f16 inputs.

use ::reference::{Graph, Matrix, Operation, evaluate};
use compiler::model::{Kind, Model, Source};
use graph::{Artifact, Db, Failure, Made, Target, data_of, load, stage};
use serde::{Deserialize, Serialize};

use crate::fingerprint::Crate;
use crate::key::{BindingKey, digest_of, spec};
use crate::rule::{Program, Run};
use crate::stage::model::model;
use crate::stage::tensor::tensor;
use crate::tensor::Tensor;

/// Row-major values of an operation's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// Number of the operation.
    pub operation: u32,
    /// The values.
    pub values: Vec<f64>,
}

/// The tensor a run gives for an input or parameter; its shape must be the declared one.
pub(crate) fn given<'db>(db: &'db dyn Db, key: BindingKey<'db>) -> Result<Artifact<Tensor, Vec<u32>>, Failure> {
    let (target, name) = (key.run(db), key.name(db));
    let label = target.label(db);
    let run = data_of::<Run>(db, label)?;
    let program = data_of::<Program>(db, &run.program)?;
    let model = load(db, &model(db, db.target(&program.model))?)?;
    let value = model.values.iter().find(|value| value.name == *name);
    let value = value.ok_or_else(|| Failure::input(format!("the model has no input or parameter `{name}`")).at_label(label))?;
    let field = if value.source == Source::Input { format!("tensors.{name}") } else { "parameters".to_owned() };
    let source = if value.source == Source::Input { run.tensors.get(name) } else { run.parameters.as_ref() };
    let missing = || {
        Failure::input(format!("there is no tensor for `{name}`: expected a label of `tensors` in `{field}`"))
            .at_label(label)
            .at_field(&field)
    };
    let from = source.ok_or_else(missing)?;
    let artifact = tensor(db, crate::key::TensorKey::new(db, db.target(from), name.clone()))?;
    if artifact.facts() != &value.shape {
        let message = format!("tensor `{name}` of {from}: expected shape {:?}, found {:?}", value.shape, artifact.facts());
        return Err(Failure::input(message).at_label(label).at_field(&field));
    }
    Ok(artifact)
}

/// All results that are checkpointed, given back or compared. Key: the model and the tensors; never anything a device made.
#[salsa::tracked(returns(clone))]
pub fn reference(db: &dyn Db, target: Target) -> Result<Artifact<Vec<Expectation>>, Failure> {
    let label = target.label(db);
    let run = data_of::<Run>(db, label)?;
    let program = data_of::<Program>(db, &run.program)?;
    let model = model(db, db.target(&program.model))?;
    let graph = load(db, &model)?;
    let names: Vec<String> = given_values(&graph).map(|value| value.name.clone()).collect();
    let tensors = names.iter().map(|name| given(db, BindingKey::new(db, target, name.clone()))).collect::<Result<Vec<_>, _>>()?;
    let wanted = wanted(&graph, &program.checkpoints, &run)?;
    let mut inputs = vec![("model", model.digest()), ("operations", digest_of(&wanted))];
    inputs.extend(tensors.iter().map(|tensor| ("tensor", tensor.digest())));
    stage(db, &spec("reference", &[Crate::Reference, Crate::Compiler], label), &inputs, || {
        let matrices = tensors.iter().zip(given_values(&graph)).map(|(artifact, value)| {
            let values = load(db, artifact)?.f16_bits().into_iter().map(|bits| half::f16::from_bits(bits).to_f64()).collect();
            let (rows, columns) = (value.rows() as usize, value.columns() as usize);
            Matrix::new(rows, columns, values)
                .ok_or_else(|| Failure::input(format!("tensor `{}`: expected {rows} x {columns} elements", value.name)))
        });
        let matrices = matrices.collect::<Result<Vec<_>, Failure>>()?;
        let first = matrices.len();
        let results = evaluate(&graph_of(&graph), matrices).map_err(|fault| Failure::input(fault.to_string()))?;
        let expectation =
            |operation: &u32| Expectation { operation: *operation, values: results[first + *operation as usize].values().to_vec() };
        let made: Vec<Expectation> = wanted.iter().map(expectation).collect();
        let operations = made.len();
        Ok(Made::new(made).figure("operations", operations))
    })
}

/// Inputs, then parameters: the values that are given, in the order of their numbers.
pub(crate) fn given_values(model: &Model) -> impl Iterator<Item = &compiler::model::Value> {
    model.values.iter().filter(|value| !matches!(value.source, Source::Result(_)))
}

fn wanted(model: &Model, checkpoints: &[u32], run: &Run) -> Result<Vec<u32>, Failure> {
    let mut operations: Vec<u32> = checkpoints.to_vec();
    let result_of = |name: &str| match model.value_named(name).map(|id| model.value(id).source) {
        Some(Source::Result(operation)) => Ok(operation),
        _ => Err(Failure::input(format!("`{name}` is no result of the model")).at_field(format!("expected.{name}"))),
    };
    for id in &model.outputs {
        operations.push(result_of(&model.value(*id).name)?);
    }
    for name in run.expected.keys() {
        operations.push(result_of(name)?);
    }
    operations.sort_unstable();
    operations.dedup();
    operations.retain(|operation| (*operation as usize) < model.operations.len());
    Ok(operations)
}

fn graph_of(model: &Model) -> Graph {
    let given = given_values(model).count();
    let operations = model.operations.iter().map(|operation| match operation.kind {
        Kind::Product { x, weight, bias, transposed } => {
            Operation::Product { x: x.index(), w: weight.index(), bias: bias.map(|bias| bias.index()), transposed }
        }
        Kind::Split { value, .. } => Operation::View { x: value.index() },
        Kind::Attention { queries, keys, values, heads, scale } => Operation::Attention {
            q: queries.index(),
            k: keys.index(),
            v: values.index(),
            heads: heads as usize,
            // The declared factor, 1/sqrt(width) unless given, as the device has it: an f32.
            scale: f64::from(scale),
        },
    });
    Graph { inputs: given, operations: operations.collect() }
}
