//! The images of all tiles of the selected finalist: one pack, equal contents once.

use compiler::images::Images;
use graph::{Artifact, Db, Failure, Made, Target, stage};

use crate::fingerprint::COMPILATION;
use crate::key::{faults, spec};
use crate::stage::parts::PartArtifacts;

/// The images. Key: program, code, objects, placement, rows, schedules.
#[salsa::tracked(returns(clone))]
pub fn images(db: &dyn Db, program: Target) -> Result<Artifact<Images>, Failure> {
    let artifacts = PartArtifacts::of(db, program)?;
    stage(db, &spec("images", COMPILATION, program.label(db)), &artifacts.inputs(), || {
        let loaded = artifacts.load(db)?;
        let row_bytes: Vec<u32> = artifacts.schedule_facts().map(|schedule| schedule.row_bytes).collect();
        let images = compiler::images::build(&loaded.parts()).map_err(|fault| Failure::build(fault.to_string()))?;
        compiler::images::check(&loaded.placement, &row_bytes, &images).map_err(|found| faults(&found))?;
        let (contents, bytes) = (images.contents.len(), images.contents.iter().map(|content| content.len()).sum::<usize>());
        let tiles = images.tiles.len();
        Ok(Made::new(images).figure("tiles", tiles).figure("distinct_contents", contents).figure("distinct_bytes", bytes))
    })
}
