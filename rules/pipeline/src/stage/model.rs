//! The checked operator graph of a `model`.

use std::collections::BTreeMap;

use compiler::model::{Declaration, Model, TensorDeclaration};
use graph::{Artifact, Db, Failure, Made, Target, data_of, stage};

use crate::fingerprint::Crate;
use crate::key::{TensorKey, digest_of, input_faults, spec};
use crate::rule;
use crate::rule::TensorShape;
use crate::stage::tensor::tensor;

/// The graph. Key: the declaration with all shapes known; a tensor file of the same shape changes nothing here.
#[salsa::tracked(returns(clone))]
pub fn model(db: &dyn Db, target: Target) -> Result<Artifact<Model>, Failure> {
    let label = target.label(db);
    let declared = data_of::<rule::Model>(db, label)?;
    let declaration = Declaration {
        inputs: shapes(db, target, "inputs", &declared.inputs)?,
        parameters: shapes(db, target, "parameters", &declared.parameters)?,
        op: declared.op.clone(),
        outputs: declared.outputs.clone(),
    };
    stage(db, &spec("model", &[Crate::Compiler], label), &[("declaration", digest_of(&declaration))], || {
        let model = compiler::model::check(&declaration).map_err(|faults| input_faults(&faults))?;
        let (values, operations) = (model.values.len(), model.operations.len());
        Ok(Made::new(model).figure("values", values).figure("operations", operations))
    })
}

fn shapes(
    db: &dyn Db,
    target: Target,
    group: &str,
    tensors: &BTreeMap<String, TensorShape>,
) -> Result<BTreeMap<String, TensorDeclaration>, Failure> {
    let shape = |name: &String, given: &TensorShape| match (&given.shape, &given.like) {
        (Some(shape), _) => Ok(shape.clone()),
        (None, Some(like)) => tensor(db, TensorKey::new(db, db.target(like), name.clone())).map(|tensor| tensor.facts().clone()),
        (None, None) => Err(Failure::input("expected `shape` or `like`").at_label(target.label(db)).at_field(format!("{group}.{name}"))),
    };
    tensors
        .iter()
        .map(|(name, given)| Ok((name.clone(), TensorDeclaration { element: given.element, shape: shape(name, given)? })))
        .collect()
}
