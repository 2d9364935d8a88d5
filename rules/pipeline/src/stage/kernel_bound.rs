//! What a kernel variant takes at least, and what its screening model says. Shown beside the measured clocks; nothing is planned with it.

use compiler::kernel_table::printed;
use graph::{Artifact, Db, Failure, Made, stage};
use serde::{Deserialize, Serialize};
use toolchain::expression::{Expression, ExpressionFault};
use toolchain::manifest::Kernel;

use crate::fingerprint::Crate;
use crate::key::{KernelKey, digest_of, spec};
use crate::stage::kernel_library::{kernel, kernel_library};

/// Clocks of a call by the manifest; the values of the call are 0, as where it is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelBound {
    /// Of the screening model.
    pub modelled: u64,
    /// The components of the lower bound by name; none where the manifest has no floor.
    pub components: Vec<(String, u64)>,
    /// The unit of work and how many a call does.
    pub per: Option<(String, u64)>,
}

impl KernelBound {
    /// The lower bound, if there is one that says something.
    #[must_use]
    pub fn bound(&self) -> Option<u64> {
        self.components.iter().map(|(_, clocks)| *clocks).max().filter(|clocks| *clocks > 0)
    }
}

/// The bounds of one variant. Key: the manifest's model and floor, the variant.
#[salsa::tracked(returns(clone))]
pub fn kernel_bound<'db>(db: &'db dyn Db, key: KernelKey<'db>) -> Result<Artifact<KernelBound>, Failure> {
    let (program, variant) = (key.program(db), key.variant(db));
    let label = program.label(db);
    let library = kernel_library(db, program)?;
    let known = &kernel(&library, &variant.kernel, label)?.kernel;
    let costs = digest_of(&format!("{:?} {:?} {:?}", known.cycles, known.floor, known.values));
    let spec = spec("kernel_bound", &[Crate::Toolchain], label).index(printed(variant));
    stage(db, &spec, &[("costs", costs), ("variant", digest_of(variant))], || {
        let mut symbols = variant.parameters.clone();
        symbols.extend(known.values.iter().map(|value| (value.clone(), 0)));
        Ok(Made::new(evaluated(known, |expression| expression.evaluate(&symbols))?))
    })
}

/// The manifest's costs of a variant.
fn evaluated(known: &Kernel, evaluate: impl Fn(&Expression) -> Result<i64, ExpressionFault>) -> Result<KernelBound, Failure> {
    let count = |name: &str, expression: &Expression| -> Result<u64, Failure> {
        let fault = |found: String| Failure::input(format!("kernel {}: {name}: expected a count of at least 0, found {found}", known.name));
        let value = evaluate(expression).map_err(|cause| fault(cause.to_string()))?;
        u64::try_from(value).map_err(|_| fault(value.to_string()))
    };
    let (mut components, mut per) = (Vec::new(), None);
    if let Some(floor) = &known.floor {
        for (name, expression) in floor.components() {
            components.push((name.to_owned(), count(&format!("floor.{name}"), expression)?));
        }
        if let Some(unit) = &floor.per {
            per = Some((unit.name.clone(), count("floor.per", &unit.count)?));
        }
    }
    Ok(KernelBound { modelled: count("cycles", &known.cycles)?, components, per })
}
