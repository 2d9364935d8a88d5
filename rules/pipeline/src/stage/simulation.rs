//! A run on the embedded simulator.

use ::package::Package;
use compiler::host_files;
use compiler::program::{Binding, Expanded, Group};
use driver::{Files, Session, SessionOptions};
use graph::{Artifact, Db, Failure, Made, Target, data_of, load, stage};
use serde::{Deserialize, Serialize};
use simulator::ChipOptions;

use crate::fingerprint::Crate;
use crate::key::{BindingKey, FinalistKey, digest_of, spec};
use crate::rule::{Device, DeviceKind, Program, Run};
use crate::stage::expanded::expanded;
use crate::stage::host_file::host_file;
use crate::stage::kernel_object::machine_of;
use crate::stage::package::package;
use crate::stage::selected::selected;
use crate::tensor::Tensor;

/// A run that takes more clocks than this, on any tile, is given up: four seconds of a real chip.
pub const CLOCK_LIMIT: u64 = 6_000_000_000;

/// A tensor that a run gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Number of the operation whose result it is; `None` for outputs by name.
    pub operation: Option<u32>,
    /// Name of the value or operation.
    pub name: String,
    /// Row-major values.
    pub tensor: Tensor,
}

/// What a run gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    /// Tensors of checkpoints, in order.
    pub checkpoints: Vec<Sample>,
    /// Outputs by name.
    pub outputs: Vec<Sample>,
    /// Clocks of the run, largest over all tiles.
    pub clocks: u64,
    /// What each step of the program adds to the slowest tile's clocks.
    pub steps: Vec<u64>,
    /// Results that saturated because binary16 ended.
    pub f16_overflows: u64,
    /// Parameters the simulation read.
    pub parameters_read: Vec<String>,
}

/// Outputs, samples and clocks. Key: package, how results lie on the tiles, host files, poison seed, parameters. Results do not depend on the number of threads.
#[salsa::tracked(returns(clone))]
pub fn simulation(db: &dyn Db, target: Target) -> Result<Artifact<Simulation>, Failure> {
    let label = target.label(db);
    let run = data_of::<Run>(db, label)?;
    let device = data_of::<Device>(db, &run.device)?;
    if device.kind == DeviceKind::Hardware {
        return Err(hardware(&device).at_label(&run.device));
    }
    let program = db.target(&run.program);
    data_of::<Program>(db, &run.program)?;
    let machine = machine_of(db, program)?;
    let chosen = selected(db, program)?.facts().finalist;
    let (expanded, package) = (expanded(db, FinalistKey::new(db, program, chosen))?, package(db, program)?);
    let names: Vec<&String> = expanded.facts().given.keys().collect();
    let files = names.iter().map(|name| host_file(db, BindingKey::new(db, target, (*name).clone()))).collect::<Result<Vec<_>, _>>()?;
    let mut inputs = vec![
        ("package", package.digest()),
        ("results", expanded.facts().results),
        ("parameters", machine.digest),
        ("seed", digest_of(&device.seed)),
    ];
    inputs.extend(files.iter().map(|file| ("host file", file.digest())));
    let crates = [Crate::Driver, Crate::Simulator, Crate::Package, Crate::Compiler, Crate::Ipu21];
    stage(db, &spec("simulation", &crates, label), &inputs, || {
        let (bytes, program) = (load(db, &package)?, load(db, &expanded)?);
        let package = Package::read(&bytes).map_err(|fault| Failure::build(format!("the package cannot be read back: {fault}")))?;
        let mut host_files = Files::new();
        for (name, file) in names.iter().zip(&files) {
            host_files.insert((*name).clone(), load(db, file)?.to_vec());
        }
        let chip = ChipOptions { seed: device.seed, threads: 0, clock_limit: CLOCK_LIMIT };
        let options = SessionOptions { parameters: machine.parameters.clone(), chip };
        let simulation = simulate(&package, &options, &program, &host_files)?;
        let (clocks, overflows) = (simulation.clocks, simulation.f16_overflows);
        let read = simulation.parameters_read.len();
        Ok(Made::new(simulation).figure("clocks", clocks).figure("f16_overflows", overflows).figure("parameters_read", read))
    })
}

/// Loads, initialises, runs, and turns file images into row-major tensors.
fn simulate(package: &Package, options: &SessionOptions, program: &Expanded, files: &Files) -> Result<Simulation, Failure> {
    let fault = |fault: driver::SessionFault| Failure::build(fault.to_string());
    let of = |group: Group| -> Files {
        let names = program.bindings.iter().filter(|binding| binding.group == group).map(|binding| &binding.name);
        names.filter_map(|name| Some((name.clone(), files.get(name)?.clone()))).collect()
    };
    let mut session = Session::open(package, options).map_err(fault)?;
    session.initialize(&of(Group::Weight)).map_err(fault)?;
    let mut readings = Vec::new();
    let outcome = session.run(&of(Group::Input), &mut |reading| readings.push(reading)).map_err(fault)?;
    let mut checkpoints = Vec::new();
    for reading in &readings {
        let checkpoint = &program.checkpoints[reading.checkpoint];
        for (_, file) in &reading.tensors {
            checkpoints.push(sample(&checkpoint.tensor, Some(checkpoint.operation), &checkpoint.name, file)?);
        }
    }
    let mut outputs = Vec::new();
    for binding in program.bindings.iter().filter(|binding| binding.group == Group::Output) {
        let file =
            outcome.outputs.get(&binding.name).ok_or_else(|| Failure::build(format!("the run gave no output `{}`", binding.name)))?;
        outputs.push(sample(binding, None, &binding.name, file)?);
    }
    Ok(Simulation {
        checkpoints,
        outputs,
        clocks: outcome.clocks.total,
        steps: outcome.clocks.steps.iter().map(|step| step.simulated).collect(),
        f16_overflows: outcome.counters.f16_overflows,
        parameters_read: outcome.parameters_read,
    })
}

fn sample(binding: &Binding, operation: Option<u32>, name: &str, file: &[u8]) -> Result<Sample, Failure> {
    let bytes = host_files::tensor_of(binding, file).map_err(|fault| Failure::build(fault.to_string()))?;
    let bits = bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
    Ok(Sample { operation, name: name.to_owned(), tensor: Tensor::of_f16(binding.shape.clone(), bits) })
}

/// What stands between this machine and a run on a board.
fn hardware(device: &Device) -> Failure {
    let files = driver::BoardFiles {
        device: format!("/dev/ipu{}", device.number).into(),
        secondary_loader: device.loader.as_ref().map(Into::into),
        configuration: device.configuration.as_ref().map(Into::into),
        lock: std::env::temp_dir().join(format!("ipubuild-ipu{}.lock", device.number)),
    };
    match driver::Board::open(&files) {
        Err(fault) => Failure::new(graph::Cause::Disk, fault.to_string()),
        Ok(_) => Failure::build("the board was opened; running on it is not supported yet: use @ipu//devices:simulator"),
    }
}
