//! The rules users write, one file each: schema, fields for messages and documentation, checks that need no other target.

mod device;
mod kernel_library;
mod machine;
mod model;
mod program;
mod run;
mod tensors;
mod toolchain;

pub use device::{Device, DeviceKind};
pub use kernel_library::KernelLibrary;
pub use machine::{Chip, Machine};
pub use model::{Model, TensorShape};
pub use program::Program;
pub use run::Run;
pub use tensors::{Normal, Tensors};
pub use toolchain::Toolchain;

use graph::{ChosenName, Registry};

/// All rules: the generic ones and those of this crate, and how what they make is shown.
#[must_use]
pub fn registry() -> Registry {
    let mut registry = Registry::with_generic_rules();
    registry.add(model::ModelRule);
    registry.add(tensors::TensorsRule);
    registry.add(machine::MachineRule);
    registry.add(kernel_library::KernelLibraryRule);
    registry.add(toolchain::ToolchainRule);
    registry.add(program::ProgramRule);
    registry.add(device::DeviceRule);
    registry.add(run::RunRule);
    crate::show::RENDERERS.iter().for_each(|renderer| registry.add_renderer(*renderer));
    registry.add_chosen_name(ChosenName { name: "exchange", stage: "schedule", choice: ("selected", "finalist") });
    registry
}
