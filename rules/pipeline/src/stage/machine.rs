//! The parameters of a `machine`.

use std::sync::Arc;

use graph::{Db, Digest, Failure, Target, data_of, read_source};
use ipu21::parameters::Parameters;

use crate::key::digest_of;
use crate::rule::Machine;

/// A parameter table with its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineParameters {
    /// Digest of the values; comments and order do not count.
    pub digest: Digest,
    /// The values.
    pub parameters: Arc<Parameters>,
}

/// Reads the parameter file. Key: its digest; a change that keeps all values is cut off here.
#[salsa::tracked(returns(clone))]
pub fn machine(db: &dyn Db, target: Target) -> Result<MachineParameters, Failure> {
    let label = target.label(db);
    let machine = data_of::<Machine>(db, label)?;
    let bytes = read_source(db, db.source(&machine.parameters))?;
    let fault = |message: String| Failure::input(format!("{}:{message}", machine.parameters)).at_label(label).at_field("parameters");
    let text = std::str::from_utf8(&bytes).map_err(|cause| fault(format!(" {cause}")))?;
    let parameters = Parameters::parse(text).map_err(|cause| fault(cause.to_string()))?;
    Ok(MachineParameters { digest: digest_of(&parameters), parameters: Arc::new(parameters) })
}
