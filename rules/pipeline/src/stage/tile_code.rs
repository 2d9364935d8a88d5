//! The programs of the tiles of a finalist, by class, without addresses.

use compiler::host_plan::{self, HostPlan};
use compiler::tile_code::TileCode;
use graph::{Artifact, Db, Failure, Made, load, stage};
use serde::{Deserialize, Serialize};

use crate::fingerprint::COMPILATION;
use crate::key::{FinalistKey, faults, spec};
use crate::stage::expanded::expanded;

/// Host traffic and tile programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// Which bytes move in which host phase.
    pub plan: HostPlan,
    /// The programs.
    pub code: TileCode,
}

/// The programs; their sizes are final. Key: the expanded program.
#[salsa::tracked(returns(clone))]
pub fn tile_code<'db>(db: &'db dyn Db, key: FinalistKey<'db>) -> Result<Artifact<Code>, Failure> {
    let label = key.program(db).label(db);
    let expanded = expanded(db, key)?;
    stage(db, &spec("tile_code", COMPILATION, label).index(key.index(db)), &[("expanded", expanded.digest())], || {
        let program = load(db, &expanded)?;
        let plan = host_plan::plan(&program);
        host_plan::check(&program, &plan).map_err(|found| faults(&found))?;
        let code = compiler::tile_code::generate(&program, &plan).map_err(|fault| Failure::build(fault.to_string()))?;
        compiler::tile_code::check(&program, &plan, &code).map_err(|found| faults(&found))?;
        compiler::rows::check_entries(&program, &code).map_err(|found| faults(&found))?;
        let (classes, bytes, batches) = (code.classes.len(), code.program_bytes(), plan.batches().count());
        Ok(Made::new(Code { plan, code }).figure("classes", classes).figure("program_bytes", bytes).figure("host_batches", batches))
    })
}
