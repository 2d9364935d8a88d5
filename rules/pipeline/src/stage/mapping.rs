//! The tiles of a finalist's positions.

use compiler::expand::expand;
use compiler::mapping::Mapping;
use graph::{Artifact, Db, Failure, Made, data_of, load, stage};

use crate::fingerprint::COMPILATION;
use crate::key::{FinalistKey, digest_of, spec};
use crate::rule::Program;
use crate::stage::finalists::{finalists, plan};
use crate::stage::kernel_library::kernel_library;
use crate::stage::model::model;

/// The mapping. Key: plan, layout, model, manifests.
#[salsa::tracked(returns(clone))]
pub fn mapping<'db>(db: &'db dyn Db, key: FinalistKey<'db>) -> Result<Artifact<Mapping>, Failure> {
    let (program, index) = (key.program(db), key.index(db));
    let label = program.label(db);
    let declared = data_of::<Program>(db, label)?;
    let library = kernel_library(db, program)?;
    let model = model(db, db.target(&declared.model))?;
    let finalists = finalists(db, program)?;
    let chosen = plan(&finalists, index)?;
    let inputs = [
        ("plan", chosen),
        ("model", model.digest()),
        ("layout", digest_of(&declared.layout)),
        ("manifests", library.digest),
        ("checkpoints", digest_of(&declared.checkpoints)),
    ];
    stage(db, &spec("mapping", COMPILATION, label).index(index), &inputs, || {
        let (model, all) = (load(db, &model)?, load(db, &finalists)?);
        let plan = &all[index as usize].plan;
        let fault = |fault: compiler::plan_fault::Fault| Failure::build(fault.to_string());
        let identity = compiler::mapping::identity(declared.layout.tiles);
        let program = expand(&model, plan, &identity, &library.table(), &declared.checkpoints).map_err(fault)?;
        let mapping = compiler::mapping::map(&program, &declared.layout).map_err(fault)?;
        compiler::mapping::check(&declared.layout, &mapping).map_err(|fault| Failure::build(fault.to_string()))?;
        let figures = mapping.figures.clone();
        Ok(Made::new(mapping)
            .figure("candidates", figures.candidates)
            .figure("baseline_cycles", figures.baseline_cycles)
            .figure("candidate_cycles", figures.candidate_cycles)
            .figure("baseline_pressure", figures.baseline_pressure)
            .figure("candidate_pressure", figures.candidate_pressure)
            .figure("mapped", figures.mapped))
    })
}
