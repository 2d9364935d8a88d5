//! Whether a program that was refused with "does not fit" really does not.

use compiler::clocks::Costs;
use compiler::images::{KernelObject, Objects};
use compiler::peaks::{INTERLEAVED, MEMORY, RESERVED};
use compiler::placement::{self, Demand};
use compiler::plan_fault;
use compiler::program::Variant;
use compiler::spread::Threads;
use compiler::{code_blocks, finalists};
use graph::{Db, Engine, Failure, Label, PackageName, Target, data_of, load};
use pipeline::rule::Program;
use pipeline::stage;
use pipeline::{FinalistKey, KernelKey, PhaseKey};

/// Repeats the arithmetic of the refusal.
///
/// # Errors
/// Why it does not hold.
pub(crate) fn confirm(engine: &Engine) -> Result<(), String> {
    let label = Label::parse("//:program", &PackageName::in_workspace("")).expect("a label");
    let program = engine.target(&label);
    match stage::finalists::finalists(engine, program) {
        Err(_) => confirm_planner(engine, program),
        Ok(found) => (0..found.facts().len() as u32).try_for_each(|index| confirm_finalist(engine, program, index)),
    }
}

fn text(failure: &Failure) -> String {
    failure.to_string()
}

/// The figures of the planner's refusal exceed the memory of a tile.
fn confirm_planner(engine: &Engine, program: Target) -> Result<(), String> {
    let declared = data_of::<Program>(engine, program.label(engine)).map_err(|failure| text(&failure))?;
    let model = stage::model::model(engine, engine.target(&declared.model))
        .and_then(|model| load(engine, &model))
        .map_err(|failure| text(&failure))?;
    let library = stage::kernel_library::kernel_library(engine, program).map_err(|failure| text(&failure))?;
    let machine = stage::machine::machine(engine, engine.target(&declared.machine)).map_err(|failure| text(&failure))?;
    let costs = Costs { internal_empty_phase: u64::from(machine.parameters.barrier.internal_empty_phase), call: 0 };
    let Err(faults) = finalists::finalists(&model, &declared.layout, &library.table(), &costs, &declared.checkpoints, &Threads::new(1))
    else {
        return Err("the planner finds plans when it is asked again".to_owned());
    };
    match faults.as_slice() {
        [plan_fault::Fault::DoesNotFit(refusal)] => {
            let peaks = &refusal.peaks;
            let exceeds = peaks.total > MEMORY - RESERVED || peaks.interleaved > INTERLEAVED || peaks.largest > INTERLEAVED;
            if exceeds { Ok(()) } else { Err(format!("the figures fit: {}", faults[0])) }
        }
        faults => Err(format!("another fault than `does not fit`: {faults:?}")),
    }
}

/// The placement of a finalist fails in round 0 for want of room, and its own arithmetic confirms it.
fn confirm_finalist(engine: &Engine, program: Target, index: u32) -> Result<(), String> {
    demand_and_place(engine, program, index).map_err(|failure| text(&failure))?
}

fn demand_and_place(engine: &Engine, program: Target, index: u32) -> Result<Result<(), String>, Failure> {
    let key = FinalistKey::new(engine, program, index);
    let library = stage::kernel_library::kernel_library(engine, program)?;
    let expanded_artifact = stage::expanded::expanded(engine, key)?;
    let expanded = load(engine, &expanded_artifact)?;
    let code = load(engine, &stage::tile_code::tile_code(engine, key)?)?;
    let object = |variant: &Variant| -> Result<KernelObject, Failure> {
        let artifact = stage::kernel_object::kernel_object(engine, KernelKey::new(engine, program, variant.clone()))?;
        Ok(KernelObject { object: (*load(engine, &artifact)?).clone(), entry: library.kernels[&variant.kernel].kernel.entry.clone() })
    };
    let objects = Objects {
        kernels: expanded.variants.iter().map(object).collect::<Result<_, _>>()?,
        copy: object(&Variant { kernel: "copy".to_owned(), parameters: std::collections::BTreeMap::new() })?,
        runtime: (*load(engine, &stage::kernel_object::runtime_object(engine, program)?)?).clone(),
    };
    let mut row_bytes = Vec::new();
    let mut schedule_apart = Vec::new();
    for phase in 0..expanded.phases.len() as u32 {
        let schedule = stage::schedule::schedule(engine, PhaseKey::new(engine, program, index, phase, 0))?;
        row_bytes.push(schedule.facts().row_bytes);
        let in_program = load(engine, &schedule)?.in_program(&expanded.phases[phase as usize].buffers());
        schedule_apart.extend(in_program.apart);
    }
    schedule_apart.sort_unstable();
    schedule_apart.dedup();
    let blocks = code_blocks::demands(&code.plan, &code.code, &objects, &row_bytes);
    let kernel_apart = code_blocks::kernel_apart(&expanded, &library.manifests()).map_err(|fault| Failure::build(fault.to_string()))?;
    let demand = Demand { expanded: &expanded, blocks: &blocks, kernel_apart: &kernel_apart, schedule_apart: &schedule_apart };
    Ok(match placement::place(&demand) {
        Err(placement::Fault::DoesNotFit(room)) if placement::confirm(&demand, &room) => Ok(()),
        Err(placement::Fault::CodeDoesNotFit { bytes, placed_bytes, available_bytes, .. }) if bytes + placed_bytes > available_bytes => {
            Ok(())
        }
        Err(fault) => Err(format!("finalist {index}: the arithmetic does not confirm: {fault}")),
        Ok(_) => Err(format!("finalist {index} can be placed")),
    })
}
