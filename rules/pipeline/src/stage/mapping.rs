//! The tiles of a finalist's positions.

use compiler::expand::expand;
use compiler::layout::Layout;
use compiler::mapping::Mapping;
use graph::{Artifact, Db, Digest, Failure, Made, data_of, load, stage};

use crate::fingerprint::COMPILATION;
use crate::key::{FinalistKey, digest_of, spec};
use crate::rule::Program;
use crate::stage::finalists::{finalists, plan};
use crate::stage::kernel_library::kernel_library;
use crate::stage::model::model;

/// The mapping; the fact is the digest of its tiles, without the figures of the screening. Key: plan, model, interfaces of kernels, the
/// layout's tiles and the mapping it asks for.
#[salsa::tracked(returns(clone))]
pub fn mapping<'db>(db: &'db dyn Db, key: FinalistKey<'db>) -> Result<Artifact<Mapping, Digest>, Failure> {
    let (program, index) = (key.program(db), key.index(db));
    let label = program.label(db);
    let declared = data_of::<Program>(db, label)?;
    let library = kernel_library(db, program)?;
    let model = model(db, db.target(&declared.model))?;
    let finalists = finalists(db, program)?;
    let chosen = plan(&finalists, index)?;
    // What else a layout says has become the plan.
    let layout = Layout { mapping: declared.layout.mapping.clone(), ..Layout::on(declared.layout.tiles) };
    let inputs = [("plan", chosen), ("model", model.digest()), ("layout", digest_of(&layout)), ("interfaces", library.interfaces)];
    stage(db, &spec("mapping", COMPILATION, label).index(index), &inputs, || {
        let (model, all) = (load(db, &model)?, load(db, &finalists)?);
        let plan = &all[index as usize].plan;
        let fault = |fault: compiler::plan_fault::Fault| Failure::build(fault.to_string());
        let identity = compiler::mapping::identity(layout.tiles);
        let program = expand(&model, plan, &identity, &library.interface_table(), &[]).map_err(fault)?;
        let mapping = compiler::mapping::map(&program, &layout).map_err(fault)?;
        compiler::mapping::check(&layout, &mapping).map_err(|fault| Failure::build(fault.to_string()))?;
        let figures = mapping.figures.clone();
        let tiles = digest_of(&mapping.tiles);
        Ok(Made::with_facts(mapping, tiles)
            .figure("candidates", figures.candidates)
            .figure("baseline_cycles", figures.baseline_cycles)
            .figure("candidate_cycles", figures.candidate_cycles)
            .figure("baseline_pressure", figures.baseline_pressure)
            .figure("candidate_pressure", figures.candidate_pressure)
            .figure("mapped", figures.mapped))
    })
}
