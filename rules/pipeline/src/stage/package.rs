//! The application package of a program.

use compiler::assemble::{Description, assemble};
use graph::{Artifact, Bytes, Db, Failure, Made, Target, load, stage};

use crate::fingerprint::{COMPILATION, Crate};
use crate::key::{FinalistKey, faults, spec};
use crate::stage::images::images;
use crate::stage::kernel_object::machine_of;
use crate::stage::parts::PartArtifacts;
use crate::stage::selected::{refined, selected};

/// Who made a package, in its header.
const PRODUCER: &str = concat!("ipubuild ", env!("CARGO_PKG_VERSION"));

/// The file `model.ipuexe`. Key: images, what they are made from, planned clocks, parameters.
#[salsa::tracked(returns(clone))]
pub fn package(db: &dyn Db, program: Target) -> Result<Artifact<Bytes>, Failure> {
    let label = program.label(db);
    let machine = machine_of(db, program)?;
    let (artifacts, images) = (PartArtifacts::of(db, program)?, images(db, program)?);
    let clocks = refined(db, FinalistKey::new(db, program, selected(db, program)?.facts().finalist))?;
    let mut inputs = artifacts.inputs();
    inputs.extend([("images", images.digest()), ("clocks", clocks.digest()), ("parameters", machine.digest)]);
    stage(db, &spec("package", &[COMPILATION, &[Crate::Package]].concat(), label), &inputs, || {
        let (loaded, images, clocks) = (artifacts.load(db)?, load(db, &images)?, load(db, &clocks)?);
        let horizons: Vec<u64> = artifacts.schedule_facts().map(|schedule| u64::from(schedule.horizon)).collect();
        let objects = &loaded.objects;
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
        let package = assemble(&loaded.parts(), &images, &description);
        package.check().map_err(|found: Vec<::package::Fault>| faults(&found))?;
        let bytes = package.write();
        let (size, tiles, blobs) = (bytes.len(), package.tiles.len(), package.blobs.contents().len());
        Ok(Made::new(Bytes::from(bytes)).figure("bytes", size).figure("tiles", tiles).figure("blobs", blobs))
    })
}
