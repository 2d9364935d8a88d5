//! A kernel variant, assembled or compiled.

use std::collections::BTreeMap;

use compiler::kernel_table::printed;
use compiler::runtime;
use graph::{Artifact, Cause, Db, Digest, Failure, Made, StageInput, Target, data_of, read_source, stage};
use toolchain::object::Object;
use toolchain::{Source, assemble};

use crate::compiler_call::Compiler;
use crate::fingerprint::Crate;
use crate::key::{KernelKey, digest_of, spec};
use crate::rule::Program;
use crate::stage::kernel_library::{kernel, kernel_library};
use crate::stage::machine::{MachineParameters, machine};

/// The object. Key: the source's digest and name, the parameters of the variant, and what makes an object of it: the chip's named
/// immediates, or names and digests of headers, digests of the toolchain's files, flags and environment.
#[salsa::tracked(returns(clone))]
pub fn kernel_object<'db>(db: &'db dyn Db, key: KernelKey<'db>) -> Result<Artifact<Object>, Failure> {
    let (program, variant) = (key.program(db), key.variant(db));
    let label = program.label(db);
    let library = kernel_library(db, program)?;
    let known = kernel(&library, &variant.kernel, label)?;
    let source = known.source;
    let name = source.path(db).to_string();
    let shared = [("source", source.digest(db)), ("name", digest_of(&name)), ("variant", digest_of(&variant.parameters))];
    let spec = spec("kernel_object", &[Crate::Toolchain, Crate::Ipu21], label).index(printed(variant));
    if let Some(compilation) = &known.compilation {
        let compiler = Compiler::of(db, compilation)?;
        let inputs: Vec<StageInput> = shared.into_iter().chain(compiler.inputs(db)).collect();
        return stage(db, &spec, &inputs, || compiler.object(db, source, &variant.parameters));
    }
    let machine = machine_of(db, program)?;
    let inputs: Vec<StageInput> = shared.into_iter().chain([("immediates", immediates(&machine))]).collect();
    stage(db, &spec, &inputs, || {
        let bytes = read_source(db, source)?;
        let text = String::from_utf8(bytes.to_vec()).map_err(|cause| Failure::input(format!("{name}: {cause}")))?;
        object(&Source { name: name.clone(), text }, &variant.parameters, &machine)
    })
}

/// The program's runtime: what every tile starts with. Key: the number of checkpoints; its source is part of the fingerprint.
#[salsa::tracked(returns(clone))]
pub fn runtime_object(db: &dyn Db, program: Target) -> Result<Artifact<Object>, Failure> {
    let label = program.label(db);
    let checkpoints = data_of::<Program>(db, label)?.checkpoints.len();
    let machine = machine_of(db, program)?;
    let inputs = [("checkpoints", digest_of(&checkpoints)), ("immediates", immediates(&machine))];
    let spec = spec("kernel_object", &[Crate::Toolchain, Crate::Ipu21, Crate::Compiler], label).index("runtime");
    stage(db, &spec, &inputs, || object(&runtime::source(checkpoints), &runtime::defines(), &machine))
}

/// The machine of a program.
pub(crate) fn machine_of(db: &dyn Db, program: Target) -> Result<MachineParameters, Failure> {
    let declared = data_of::<Program>(db, program.label(db))?;
    machine(db, db.target(&declared.machine))
}

fn immediates(machine: &MachineParameters) -> Digest {
    digest_of(&machine.parameters.immediate)
}

fn object(source: &Source, defines: &BTreeMap<String, i64>, machine: &MachineParameters) -> Result<Made<Object>, Failure> {
    let bytes = assemble(source, defines, &machine.parameters)
        .map_err(|faults| Failure::all(Cause::Input, faults.iter().map(ToString::to_string).collect()))?;
    let object = Object::parse(&bytes)
        .map_err(|cause| Failure::build(format!("{}: the assembler's object cannot be read: {cause}", source.name)))?;
    let text = object.text().len();
    Ok(Made::new(object).figure("text_bytes", text))
}
