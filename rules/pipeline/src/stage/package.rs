//! The application package of a program.

use compiler::assemble::{Description, assemble};
use compiler::images::Parts;
use graph::{Artifact, Bytes, Db, Failure, Made, Target, load, stage};

use crate::fingerprint::{COMPILATION, Crate};
use crate::key::{FinalistKey, faults, spec};
use crate::stage::expanded::expanded;
use crate::stage::images::images;
use crate::stage::kernel_object::machine_of;
use crate::stage::placement::{ObjectArtifacts, placement, schedules};
use crate::stage::rows::rows;
use crate::stage::selected::{refined, selected};
use crate::stage::tile_code::tile_code;

/// Who made a package, in its header.
const PRODUCER: &str = concat!("ipubuild ", env!("CARGO_PKG_VERSION"));

/// The file `model.ipuexe`. Key: images, program, code, placement, planned clocks, parameters.
#[salsa::tracked(returns(clone))]
pub fn package(db: &dyn Db, program: Target) -> Result<Artifact<Bytes>, Failure> {
    let label = program.label(db);
    let machine = machine_of(db, program)?;
    let selected = selected(db, program)?;
    let (key, round) = (FinalistKey::new(db, program, selected.facts().finalist), selected.facts().round);
    let (expanded, code, images) = (expanded(db, key)?, tile_code(db, key)?, images(db, program)?);
    let (placement, clocks) = (placement(db, key, round)?, refined(db, key)?);
    let objects = ObjectArtifacts::of(db, key)?;
    let all_rows = (0..expanded.facts().phases.len() as u32).map(|phase| rows(db, program, phase)).collect::<Result<Vec<_>, _>>()?;
    let horizons: Vec<u64> = schedules(db, key, round)?.iter().map(|schedule| u64::from(schedule.facts().horizon)).collect();
    let inputs = [
        ("images", images.digest()),
        ("expanded", expanded.digest()),
        ("code", code.digest()),
        ("objects", objects.digest()),
        ("placement", placement.digest()),
        ("clocks", clocks.digest()),
        ("parameters", machine.digest),
    ];
    stage(db, &spec("package", &[COMPILATION, &[Crate::Package]].concat(), label), &inputs, || {
        let (program, code, placed) = (load(db, &expanded)?, load(db, &code)?, load(db, &placement)?);
        let (images, clocks) = (load(db, &images)?, load(db, &clocks)?);
        let objects = objects.load(db)?;
        let rows = all_rows.iter().map(|rows| Ok((*load(db, rows)?).clone())).collect::<Result<Vec<_>, Failure>>()?;
        let parts = Parts { expanded: &program, plan: &code.plan, code: &code.code, objects: &objects, placement: &placed, rows: &rows };
        let texts = objects.kernels.iter().chain([&objects.copy]).map(|kernel| &kernel.object).chain([&objects.runtime]);
        let words: Vec<u32> = texts.flat_map(|object| object.text().as_chunks::<4>().0).map(|word| u32::from_le_bytes(*word)).collect();
        let code_parameters: Vec<String> = machine.parameters.unknown_values_in(&words).into_iter().map(str::to_owned).collect();
        let description = Description {
            producer: PRODUCER,
            parameters: *machine.digest.as_bytes(),
            code_parameters: &code_parameters,
            planned_clocks: &clocks.refined.steps,
            horizons: &horizons,
        };
        let package = assemble(&parts, &images, &description);
        package.check().map_err(|found: Vec<::package::Fault>| faults(&found))?;
        let bytes = package.write();
        let (size, tiles, blobs) = (bytes.len(), package.tiles.len(), package.blobs.contents().len());
        Ok(Made::new(Bytes::from(bytes)).figure("bytes", size).figure("tiles", tiles).figure("blobs", blobs))
    })
}
