//! What a debugger needs of a target: the package, and what a run would give it.

use std::sync::Arc;

use driver::Files;
use graph::{Db, Engine, Failure, Label, data_of, load};
use ipu21::parameters::Parameters;
use package::Package;

use crate::key::{BindingKey, FinalistKey};
use crate::rule::{Device, Run};
use crate::stage::expanded::expanded;
use crate::stage::host_file::host_file;
use crate::stage::kernel_object::machine_of;
use crate::stage::selected::selected;

/// A program with the tensors and the machine of its run.
#[derive(Clone, Debug)]
pub struct Debuggee {
    /// The program.
    pub package: Package,
    /// Host files of weights and inputs by binding; none for a program without a run.
    pub files: Files,
    /// Of the program's machine.
    pub parameters: Arc<Parameters>,
    /// Of the poison.
    pub seed: u64,
}

impl Debuggee {
    /// That of a `run`; nothing is simulated.
    ///
    /// # Errors
    /// The failure of a stage.
    pub fn of_run(engine: &Engine, label: &Label) -> Result<Debuggee, Failure> {
        let run = data_of::<Run>(engine, label)?;
        let program = engine.target(&run.program);
        let key = FinalistKey::new(engine, program, selected(engine, program)?.facts().finalist);
        let expanded = expanded(engine, key)?;
        let mut files = Files::new();
        for name in expanded.facts().given.keys() {
            let file = host_file(engine, BindingKey::new(engine, engine.target(label), name.clone()))?;
            files.insert(name.clone(), load(engine, &file)?.to_vec());
        }
        let seed = data_of::<Device>(engine, &run.device)?.seed;
        Ok(Debuggee { files, seed, ..Debuggee::of_program(engine, &run.program)? })
    }

    /// That of a `program`, without tensors.
    ///
    /// # Errors
    /// The failure of a stage.
    pub fn of_program(engine: &Engine, label: &Label) -> Result<Debuggee, Failure> {
        let program = engine.target(label);
        let bytes = load(engine, &crate::stage::package::package(engine, program)?)?;
        let package = Package::read(&bytes).map_err(|fault| Failure::build(format!("the package cannot be read back: {fault}")))?;
        let parameters = machine_of(engine, program)?.parameters;
        Ok(Debuggee { package, files: Files::new(), parameters, seed: 0 })
    }
}
