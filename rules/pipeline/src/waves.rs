//! What is computed for many keys at once, in the order in which it is known what is needed.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use compiler::program::Variant;
use graph::{Db, Digest, Engine, Failure, Label, Target, WaveFunction, data_of};

use crate::key::{BindingKey, FinalistKey, KernelKey, PhaseKey};
use crate::rule::{Program, Run};
use crate::stage::expanded::expanded;
use crate::stage::finalists::finalists;
use crate::stage::host_file::host_file;
use crate::stage::kernel_object::kernel_object;
use crate::stage::measured::measured;
use crate::stage::model::model;
use crate::stage::planned::planned;
use crate::stage::reference::{given_values, reference};
use crate::stage::rows::rows;
use crate::stage::schedule::schedule;
use crate::stage::selected::{refined, selected};
use crate::stage::tile_code::tile_code;

/// Waves of a `program`.
pub(crate) const PROGRAM: &[WaveFunction] = &[prepare, schedule_rivals, refine, write_rows];

/// Waves of a `run`; its program is built before it.
pub(crate) const RUN: &[WaveFunction] = &[give];

/// Something that the finalists need.
enum Need {
    Finalist(u32),
    /// Of the first finalist.
    Code,
    /// Of the first finalist.
    Phase(u32),
    Kernel(Variant),
}

/// What a need is guessed to take, in microseconds of the reference workload's stages.
mod cost {
    /// Everything else waits for it.
    pub(super) const FINALIST: u64 = u64::MAX;
    pub(super) const CODE: u64 = 10_000;
    pub(super) const TRANSFER: u64 = 20;
    pub(super) const KERNEL: u64 = 2_000;
}

/// Expands every finalist, and assembles and measures its kernels. Which of them will be chosen is known only afterwards; most often
/// it is the first, so that one's phases are scheduled and its tile code is made as well.
fn prepare(engine: &Engine, label: &Label) -> Result<(), Failure> {
    let program = engine.target(label);
    let count = finalists(engine, program)?.facts().len() as u32;
    let begun = Mutex::new(Begun::default());
    let needs = (0..count).map(|index| (cost::FINALIST, Need::Finalist(index))).collect();
    engine.growing_wave(label, "finalists", needs, |engine, need| {
        match need {
            Need::Finalist(index) => return needs_of(engine, program, index, &begun),
            // Failures are found again by the queries that read these.
            Need::Code => _ = tile_code(engine, FinalistKey::new(engine, program, 0)),
            Need::Phase(phase) => _ = schedule(engine, PhaseKey::new(engine, program, 0, phase, 0)),
            Need::Kernel(variant) => {
                let key = KernelKey::new(engine, program, variant);
                let _ = kernel_object(engine, key).and_then(|_| measured(engine, key));
            }
        }
        Vec::new()
    });
    Ok(())
}

/// What finalists needed so far. Two threads at one result would be one thread that waits for the other.
#[derive(Default)]
struct Begun {
    problems: BTreeSet<Digest>,
    kernels: BTreeSet<Variant>,
}

/// What a finalist needs besides what was begun for others.
fn needs_of(engine: &Engine, program: Target, index: u32, begun: &Mutex<Begun>) -> Vec<(u64, Need)> {
    let Ok(expanded) = expanded(engine, FinalistKey::new(engine, program, index)) else { return Vec::new() };
    let mut begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
    let phases = expanded.facts().phases.iter().zip(0..).filter(|(facts, _)| index == 0 && begun.problems.insert(facts.problem));
    let phases = phases.map(|(facts, phase)| (u64::from(facts.transfers) * cost::TRANSFER, Need::Phase(phase)));
    let mut needs: Vec<(u64, Need)> = phases.collect();
    let new = expanded.facts().variants.iter().filter(|variant| begun.kernels.insert((*variant).clone()));
    needs.extend(new.map(|variant| (cost::KERNEL, Need::Kernel(variant.clone()))));
    if index == 0 {
        needs.push((cost::CODE, Need::Code));
    }
    needs
}

/// The finalists behind the first that may be faster: those whose planned clocks are not above its refined clocks.
fn rivals(engine: &Engine, program: Target) -> Result<Vec<u32>, Failure> {
    let limit = *refined(engine, FinalistKey::new(engine, program, 0))?.facts();
    let mut found = Vec::new();
    for index in 1..finalists(engine, program)?.facts().len() as u32 {
        if *planned(engine, FinalistKey::new(engine, program, index))?.facts() <= limit {
            found.push(index);
        }
    }
    Ok(found)
}

/// Schedules the phases of the rivals of the first finalist.
fn schedule_rivals(engine: &Engine, label: &Label) -> Result<(), Failure> {
    let program = engine.target(label);
    let first = expanded(engine, FinalistKey::new(engine, program, 0))?;
    let mut begun: BTreeSet<Digest> = first.facts().phases.iter().map(|facts| facts.problem).collect();
    let mut phases = Vec::new();
    for index in rivals(engine, program)? {
        let expanded = expanded(engine, FinalistKey::new(engine, program, index))?;
        let new = expanded.facts().phases.iter().zip(0..).filter(|(facts, _)| begun.insert(facts.problem));
        phases.extend(new.map(|(facts, phase)| (facts.transfers, index, phase)));
    }
    phases.sort_by_key(|(transfers, ..)| std::cmp::Reverse(*transfers));
    engine.wave(label, "phases", &phases, |engine, (_, finalist, phase)| {
        let _ = schedule(engine, PhaseKey::new(engine, program, *finalist, *phase, 0));
    });
    Ok(())
}

/// Counts the clocks of the rivals of the first finalist.
fn refine(engine: &Engine, label: &Label) -> Result<(), Failure> {
    let program = engine.target(label);
    engine.wave(label, "clocks", &rivals(engine, program)?, |engine, index| {
        let _ = refined(engine, FinalistKey::new(engine, program, *index));
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
