//! The images of all tiles of the selected finalist: one pack, equal contents once.

use compiler::images::{Images, Parts};
use graph::{Artifact, Db, Failure, Made, Target, load, stage};

use crate::fingerprint::COMPILATION;
use crate::key::{FinalistKey, faults, spec};
use crate::stage::expanded::expanded;
use crate::stage::placement::{ObjectArtifacts, placement, schedules};
use crate::stage::rows::rows;
use crate::stage::selected::selected;
use crate::stage::tile_code::tile_code;

/// The images. Key: program, code, objects, placement, rows.
#[salsa::tracked(returns(clone))]
pub fn images(db: &dyn Db, program: Target) -> Result<Artifact<Images>, Failure> {
    let label = program.label(db);
    let selected = selected(db, program)?;
    let key = FinalistKey::new(db, program, selected.facts().finalist);
    let (expanded, code) = (expanded(db, key)?, tile_code(db, key)?);
    let objects = ObjectArtifacts::of(db, key)?;
    let round = selected.facts().round;
    let placement = placement(db, key, round)?;
    let phases = expanded.facts().phases.len() as u32;
    let all_rows = (0..phases).map(|phase| rows(db, program, phase)).collect::<Result<Vec<_>, _>>()?;
    let row_bytes: Vec<u32> = schedules(db, key, round)?.iter().map(|schedule| schedule.facts().row_bytes).collect();
    let mut inputs =
        vec![("expanded", expanded.digest()), ("code", code.digest()), ("objects", objects.digest()), ("placement", placement.digest())];
    inputs.extend(all_rows.iter().map(|rows| ("rows", rows.digest())));
    stage(db, &spec("images", COMPILATION, label), &inputs, || {
        let (program, code, placed) = (load(db, &expanded)?, load(db, &code)?, load(db, &placement)?);
        let objects = objects.load(db)?;
        let rows = all_rows.iter().map(|rows| Ok((*load(db, rows)?).clone())).collect::<Result<Vec<_>, Failure>>()?;
        let parts = Parts { expanded: &program, plan: &code.plan, code: &code.code, objects: &objects, placement: &placed, rows: &rows };
        let images = compiler::images::build(&parts).map_err(|fault| Failure::build(fault.to_string()))?;
        compiler::images::check(&placed, &row_bytes, &images).map_err(|found| faults(&found))?;
        let (contents, bytes) = (images.contents.len(), images.contents.iter().map(|content| content.len()).sum::<usize>());
        let tiles = images.tiles.len();
        Ok(Made::new(images).figure("tiles", tiles).figure("distinct_contents", contents).figure("distinct_bytes", bytes))
    })
}
