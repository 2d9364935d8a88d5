//! Fewer phases: phases of different operations that do not need each other become one.
//!
//! In: a program whose steps stand in the order of its operations. Out: the same steps, each in front of every phase that it need not
//! wait for, and phases that are then due together as one phase. A phase costs a barrier and a row call whatever it carries, and
//! between two phases every tile goes at its own pace, so a program of fewer phases takes no longer; its buffers live longer.
//! Phases of one operation stay in their order: they bring pieces one after another because of memory.

use std::collections::{BTreeMap, BTreeSet};

use exchange::{BufferId, Problem};

use crate::expand::lifetimes;
use crate::kernel_table::{Access, KernelTable};
use crate::plan_fault::Fault;
use crate::program::{Expanded, Step};

/// The program with fewer phases; `None` when every phase needs the one before it.
///
/// # Errors
/// A kernel the table lacks.
pub(crate) fn merged(program: &Expanded, kernels: &KernelTable) -> Result<Option<Expanded>, Fault> {
    let order = ordered(&program.steps, &waits(program, kernels)?);
    if order.iter().all(|due| due.len() == 1) {
        return Ok(None);
    }
    let mut merged = Expanded { steps: Vec::with_capacity(order.len()), phases: Vec::new(), ..program.clone() };
    for due in order {
        let mut phase = Problem::default();
        for step in due.iter().map(|step| &program.steps[*step]) {
            match step {
                Step::Exchange { phase: number, .. } => {
                    let carried = &program.phases[*number as usize];
                    phase.transfers.extend(carried.transfers.iter().cloned());
                    phase.serial.extend(carried.serial.iter().copied());
                }
                other => merged.steps.push(other.clone()),
            }
        }
        if let Step::Exchange { operation, .. } = program.steps[due[0]] {
            let number = u32::try_from(merged.phases.len()).unwrap_or(u32::MAX);
            merged.steps.push(Step::Exchange { phase: number, operation });
            merged.phases.push(phase);
        }
    }
    lifetimes(&mut merged);
    Ok(Some(merged))
}

/// What a step reads and writes.
#[derive(Default)]
struct Accesses {
    reads: BTreeSet<BufferId>,
    writes: BTreeSet<BufferId>,
}

fn accesses(program: &Expanded, kernels: &KernelTable) -> Result<Vec<Accesses>, Fault> {
    let facts: Vec<_> = program.variants.iter().map(|variant| kernels.operands(variant)).collect::<Result<_, _>>()?;
    let of_step = |step: &Step| {
        let mut found = Accesses::default();
        match step {
            Step::Exchange { phase, .. } => {
                for transfer in &program.phases[*phase as usize].transfers {
                    found.reads.insert(transfer.source.buffer);
                    found.writes.extend(transfer.destinations.iter().map(|place| place.buffer));
                }
            }
            Step::Compute { groups, .. } => {
                for call in groups.iter().flat_map(|group| &group.calls) {
                    for (operand, fact) in call.operands.iter().zip(&facts[call.kernel.0 as usize]) {
                        if fact.access != Access::Write {
                            found.reads.insert(operand.buffer);
                        }
                        if fact.access != Access::Read {
                            found.writes.insert(operand.buffer);
                        }
                    }
                }
            }
            Step::Checkpoint { checkpoint } => {
                found.reads.extend(program.checkpoints[*checkpoint as usize].tensor.pieces.iter().map(|piece| piece.buffer));
            }
        }
        found
    };
    Ok(program.steps.iter().map(of_step).collect())
}

/// The steps that must be over before each step begins, as far as no other of them says so.
fn waits(program: &Expanded, kernels: &KernelTable) -> Result<Vec<BTreeSet<usize>>, Fault> {
    let mut writer = BTreeMap::<BufferId, usize>::new();
    let mut readers = BTreeMap::<BufferId, Vec<usize>>::new();
    // The last phase of every operation, and the last checkpoint.
    let mut before = BTreeMap::<Option<u32>, usize>::new();
    let mut waits = Vec::with_capacity(program.steps.len());
    for (number, (step, accesses)) in program.steps.iter().zip(accesses(program, kernels)?).enumerate() {
        let mut found = BTreeSet::new();
        for buffer in &accesses.writes {
            found.extend(readers.remove(buffer).unwrap_or_default());
            found.extend(writer.insert(*buffer, number));
        }
        for buffer in &accesses.reads {
            found.extend(writer.get(buffer).copied());
            readers.entry(*buffer).or_default().push(number);
        }
        let sequence = match step {
            Step::Exchange { operation, .. } => Some(Some(*operation)),
            Step::Checkpoint { .. } => Some(None),
            Step::Compute { .. } => None,
        };
        found.extend(sequence.and_then(|sequence| before.insert(sequence, number)));
        found.remove(&number);
        waits.push(found);
    }
    Ok(waits)
}

/// The steps in their new order, phases that are due together side by side.
fn ordered(steps: &[Step], waits: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut order = Vec::new();
    let mut is_over = vec![false; steps.len()];
    let mut left: Vec<usize> = (0..steps.len()).collect();
    while !left.is_empty() {
        let mut phases = Vec::new();
        left.retain(|step| {
            let is_due = waits[*step].iter().all(|other| is_over[*other]);
            match (is_due, &steps[*step]) {
                (false, _) => true,
                (true, Step::Exchange { .. }) => {
                    phases.push(*step);
                    true
                }
                (true, _) => {
                    is_over[*step] = true;
                    order.push(vec![*step]);
                    false
                }
            }
        });
        left.retain(|step| !phases.contains(step));
        phases.iter().for_each(|step| is_over[*step] = true);
        if !phases.is_empty() {
            order.push(phases);
        }
    }
    order
}
