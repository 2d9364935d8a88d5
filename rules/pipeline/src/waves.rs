//! What is computed for many keys at once, in the order in which it is known what is needed.

use graph::{Db, Engine, Failure, Label, Target, WaveFunction, data_of};

use crate::key::{BindingKey, FinalistKey, KernelKey, PhaseKey};
use crate::rule::{Program, Run};
use crate::stage::expanded::expanded;
use crate::stage::finalists::finalists;
use crate::stage::host_file::host_file;
use crate::stage::kernel_object::kernel_object;
use crate::stage::measured::measured;
use crate::stage::model::model;
use crate::stage::placement::placement;
use crate::stage::reference::{given_values, reference};
use crate::stage::rows::rows;
use crate::stage::schedule::schedule;
use crate::stage::selected::selected;

/// Waves of a `program`.
pub(crate) const PROGRAM: &[WaveFunction] = &[expand, prepare, place, write_rows];

/// Waves of a `run`; its program is built before it.
pub(crate) const RUN: &[WaveFunction] = &[give];

fn indices(engine: &Engine, program: Target) -> Result<Vec<u32>, Failure> {
    Ok((0..finalists(engine, program)?.facts().len() as u32).collect())
}

/// Expands every finalist.
fn expand(engine: &Engine, label: &Label) -> Result<(), Failure> {
    let program = engine.target(label);
    engine.wave(label, "expanded", &indices(engine, program)?, |engine, index| {
        let _ = expanded(engine, FinalistKey::new(engine, program, *index));
    });
    Ok(())
}

/// Something that the finalists need.
enum Need {
    Phase { finalist: u32, phase: u32 },
    Kernel(compiler::program::Variant),
}

/// Schedules every phase and measures every kernel of every finalist.
fn prepare(engine: &Engine, label: &Label) -> Result<(), Failure> {
    let program = engine.target(label);
    let mut needs = Vec::new();
    let mut kernels = std::collections::BTreeSet::new();
    for finalist in indices(engine, program)? {
        let expanded = expanded(engine, FinalistKey::new(engine, program, finalist))?;
        needs.extend((0..expanded.facts().phases.len() as u32).map(|phase| Need::Phase { finalist, phase }));
        kernels.extend(expanded.facts().variants.iter().cloned());
    }
    needs.extend(kernels.into_iter().map(Need::Kernel));
    engine.wave(label, "schedules and kernels", &needs, |engine, need| match need {
        Need::Phase { finalist, phase } => {
            let _ = schedule(engine, PhaseKey::new(engine, program, *finalist, *phase, 0));
        }
        Need::Kernel(variant) => {
            let key = KernelKey::new(engine, program, variant.clone());
            let _ = kernel_object(engine, key).and_then(|_| measured(engine, key));
        }
    });
    Ok(())
}

/// Places every finalist.
fn place(engine: &Engine, label: &Label) -> Result<(), Failure> {
    let program = engine.target(label);
    engine.wave(label, "placements", &indices(engine, program)?, |engine, index| {
        let _ = placement(engine, FinalistKey::new(engine, program, *index), 0);
    });
    Ok(())
}

/// Writes the rows of every phase of the selected finalist.
fn write_rows(engine: &Engine, label: &Label) -> Result<(), Failure> {
    let program = engine.target(label);
    let chosen = selected(engine, program)?.facts().finalist;
    let phases: Vec<u32> = (0..expanded(engine, FinalistKey::new(engine, program, chosen))?.facts().phases.len() as u32).collect();
    engine.wave(label, "rows", &phases, |engine, phase| {
        let _ = rows(engine, program, *phase);
    });
    Ok(())
}

/// Host files and the reference of a run.
fn give(engine: &Engine, label: &Label) -> Result<(), Failure> {
    let run = engine.target(label);
    let declared = data_of::<Run>(engine, label)?;
    let program = data_of::<Program>(engine, &declared.program)?;
    let graph = graph::load(engine, &model(engine, engine.target(&program.model))?)?;
    let mut pieces: Vec<Option<String>> = given_values(&graph).map(|value| Some(value.name.clone())).collect();
    pieces.push(None);
    engine.wave(label, "host files and reference", &pieces, |engine, piece| match piece {
        Some(name) => {
            let _ = host_file(engine, BindingKey::new(engine, run, name.clone()));
        }
        None => {
            let _ = reference(engine, run);
        }
    });
    Ok(())
}
