//! Lower bounds of finalists, by which those that cannot win are left out before they are scheduled.

use compiler::clocks::Clocks;
use compiler::selected::Measured;
use graph::{Artifact, Db, Digest, Failure, Made, load, note_facts, stage};

use crate::fingerprint::COMPILATION;
use crate::key::{FinalistKey, KernelKey, digest_of, spec};
use crate::stage::expanded::expanded;
use crate::stage::kernel_object::machine_of;
use crate::stage::measured::measured;
use crate::stage::selected::costs_of;

/// What a finalist costs at least: measured calls and the route bounds of its phases, before anything is scheduled. The facts are the
/// clocks. Key: program, measured clocks, costs of barriers and calls.
#[salsa::tracked(returns(clone))]
pub fn planned<'db>(db: &'db dyn Db, key: FinalistKey<'db>) -> Result<Artifact<Clocks, u64>, Failure> {
    let (program, index) = (key.program(db), key.index(db));
    let (expanded, calls) = (expanded(db, key)?, Calls::of(db, key)?);
    let costs = costs_of(&machine_of(db, program)?.parameters);
    let inputs = [("expanded", expanded.digest()), ("measured", calls.digest()), ("costs", digest_of(&costs))];
    stage(db, &spec("planned", COMPILATION, program.label(db)).index(index), &inputs, || {
        calls.note();
        let clocks = compiler::selected::planned(&*load(db, &expanded)?, &calls.clocks, &costs);
        let clocks = clocks.map_err(|fault| Failure::build(fault.to_string()))?;
        let (total, exchange) = (clocks.total, clocks.exchange);
        Ok(Made::with_facts(clocks, total).figure("planned_cycles", total).figure("exchange_cycles", exchange))
    })
}

/// Measured clocks of the calls of a finalist.
pub(crate) struct Calls {
    pub(crate) clocks: Measured,
    artifacts: Vec<Artifact<u64, u64>>,
}

impl Calls {
    pub(crate) fn of<'db>(db: &'db dyn Db, key: FinalistKey<'db>) -> Result<Self, Failure> {
        let (mut clocks, mut artifacts) = (Measured::new(), Vec::new());
        for variant in &expanded(db, key)?.facts().variants {
            let measured = measured(db, KernelKey::new(db, key.program(db), variant.clone()))?;
            clocks.insert(variant.clone(), *measured.facts());
            artifacts.push(measured);
        }
        Ok(Self { clocks, artifacts })
    }

    pub(crate) fn digest(&self) -> Digest {
        digest_of(&self.clocks.iter().collect::<Vec<_>>())
    }

    pub(crate) fn note(&self) {
        self.artifacts.iter().for_each(note_facts);
    }
}
