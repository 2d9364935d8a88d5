//! Addresses of a finalist's buffers, rows and code.

use compiler::code_blocks;
use compiler::images::{KernelObject, Objects};
use compiler::placement::{Demand, Placement};
use compiler::program::Variant;
use graph::{Artifact, Db, Digest, Failure, Made, load, stage};
use toolchain::object::Object;

use crate::fingerprint::COMPILATION;
use crate::key::{FinalistKey, KernelKey, PhaseKey, digest_of, faults, spec};
use crate::stage::expanded::expanded;
use crate::stage::kernel_library::{kernel, kernel_library};
use crate::stage::kernel_object::{kernel_object, runtime_object};
use crate::stage::schedule::{ScheduleFacts, schedule};
use crate::stage::tile_code::tile_code;

/// The placement. Key: program, code, sizes and alignments of objects, interfaces of the kernels called, schedules. Round 1 stands on the schedules that were made again
/// with the pairs round 0 gave up.
#[salsa::tracked(returns(clone))]
pub fn placement<'db>(db: &'db dyn Db, key: FinalistKey<'db>, round: u32) -> Result<Artifact<Placement, bool>, Failure> {
    let (program, index) = (key.program(db), key.index(db));
    let label = program.label(db);
    let library = kernel_library(db, program)?;
    let (expanded, code) = (expanded(db, key)?, tile_code(db, key)?);
    let objects = ObjectArtifacts::of(db, key)?;
    let schedules = schedules(db, key, round)?;
    let interfaces = library.digest_of_called(&expanded.facts().variants, |kernel| kernel.interface);
    let mut inputs =
        vec![("expanded", expanded.digest()), ("code", code.digest()), ("objects", objects.sizes(db)?), ("interfaces", interfaces)];
    inputs.extend(schedules.iter().map(|schedule| ("schedule", schedule.digest())));
    stage(db, &spec("placement", COMPILATION, label).index(index), &inputs, || {
        let (program, code) = (load(db, &expanded)?, load(db, &code)?);
        let objects = objects.load(db)?;
        let phases = schedules.iter().zip(&expanded.facts().phases);
        let schedules =
            phases.map(|(schedule, phase)| Ok(load(db, schedule)?.in_program(&phase.buffers))).collect::<Result<Vec<_>, Failure>>()?;
        let row_bytes: Vec<u32> = schedules.iter().map(|schedule| 4 * schedule.figures.largest_row_words).collect();
        let blocks = code_blocks::demands(&code.plan, &code.code, &objects, &row_bytes);
        let kernel_apart = code_blocks::kernel_apart(&program, &library.manifests()).map_err(|fault| Failure::build(fault.to_string()))?;
        let mut schedule_apart: Vec<_> = schedules.iter().flat_map(|schedule| schedule.apart.iter().copied()).collect();
        schedule_apart.sort_unstable();
        schedule_apart.dedup();
        let demand = Demand { expanded: &program, blocks: &blocks, kernel_apart: &kernel_apart, schedule_apart: &schedule_apart };
        let placed = compiler::placement::place(&demand).map_err(|fault| Failure::build(fault.to_string()))?;
        compiler::placement::check(&demand, &placed).map_err(|found| faults(&found))?;
        let (figures, given_up) = (placed.figures, placed.given_up.len());
        Ok(Made::with_facts(placed, given_up == 0)
            .figure("round", round)
            .figure("code_bytes", figures.code_bytes)
            .figure("standard_bytes", figures.region_zero_bytes)
            .figure("interleaved_bytes", figures.region_one_bytes)
            .figure("largest_allocation", figures.largest_buffer_bytes)
            .figure("given_up", given_up))
    })
}

/// The schedules of all phases of a finalist.
pub(crate) fn schedules<'db>(
    db: &'db dyn Db,
    key: FinalistKey<'db>,
    round: u32,
) -> Result<Vec<Artifact<exchange::Schedule, ScheduleFacts>>, Failure> {
    let count = expanded(db, key)?.facts().phases.len() as u32;
    (0..count).map(|phase| schedule(db, PhaseKey::new(db, key.program(db), key.index(db), phase, round))).collect()
}

/// The artifacts of all objects of a finalist.
pub(crate) struct ObjectArtifacts {
    kernels: Vec<(String, Artifact<Object>)>,
    copy: (String, Artifact<Object>),
    runtime: Artifact<Object>,
}

impl ObjectArtifacts {
    pub(crate) fn of<'db>(db: &'db dyn Db, key: FinalistKey<'db>) -> Result<Self, Failure> {
        let program = key.program(db);
        let label = program.label(db);
        let library = kernel_library(db, program)?;
        let object = |variant: &Variant| -> Result<(String, Artifact<Object>), Failure> {
            let entry = kernel(&library, &variant.kernel, label)?.kernel.entry.clone();
            Ok((entry, kernel_object(db, KernelKey::new(db, program, variant.clone()))?))
        };
        let kernels = expanded(db, key)?.facts().variants.iter().map(object).collect::<Result<_, _>>()?;
        let copy = object(&Variant { kernel: "copy".to_owned(), parameters: std::collections::BTreeMap::new() })?;
        Ok(Self { kernels, copy, runtime: runtime_object(db, program)? })
    }

    /// All of them.
    pub(crate) fn load(&self, db: &dyn Db) -> Result<Objects, Failure> {
        let one = |(entry, artifact): &(String, Artifact<Object>)| -> Result<KernelObject, Failure> {
            Ok(KernelObject { object: (*load(db, artifact)?).clone(), entry: entry.clone() })
        };
        let kernels = self.kernels.iter().map(one).collect::<Result<_, _>>()?;
        Ok(Objects { kernels, copy: one(&self.copy)?, runtime: (*load(db, &self.runtime)?).clone() })
    }

    /// Digest of their contents.
    pub(crate) fn digest(&self) -> Digest {
        let kernels: Vec<(&str, Digest)> = self.all().map(|(entry, artifact)| (entry, artifact.digest())).collect();
        digest_of(&kernels)
    }

    /// Digest of what placement sees of them, so that a kernel of the same size moves nothing.
    fn sizes(&self, db: &dyn Db) -> Result<Digest, Failure> {
        let mut sizes = Vec::new();
        for (_, artifact) in self.all() {
            let object = load(db, artifact)?;
            sizes.push((object.text().len(), object.align()));
        }
        Ok(digest_of(&sizes))
    }

    fn all(&self) -> impl Iterator<Item = (&str, &Artifact<Object>)> {
        let kernels = self.kernels.iter().chain([&self.copy]).map(|(entry, artifact)| (entry.as_str(), artifact));
        kernels.chain([("runtime", &self.runtime)])
    }
}
