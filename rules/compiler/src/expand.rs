//! Turns a plan and its mapping into a program over buffers: calls, exchange problems, bindings, checkpoints.
//!
//! In: model, plan, mapping, kernel table, checkpointed operations. Out: [`Expanded`]. One file an operator
//! (`expand_product`, `expand_attention`); this one holds the flow, `expanding` the state they share.
//! `expanded_check` lists what holds of the result.

use exchange::BufferId;

use crate::expanding::Expanding;
use crate::kernel_table::KernelTable;
use crate::mapping::Mapping;
use crate::merging::merged;
use crate::model::{Kind, Model};
use crate::plan::{OperationPlan, Plan};
use crate::plan_fault::Fault;
use crate::program::{Buffer, Expanded, Group, Region, Step};
use crate::{expand_attention, expand_product};

/// Expands a plan. Operations are walked in order; every operation gathers its operands in one phase, then computes; at last
/// phases are merged, if the plan says so.
///
/// # Errors
/// A kernel the table lacks, a checkpoint on a view.
pub fn expand(model: &Model, plan: &Plan, mapping: &Mapping, kernels: &KernelTable, checkpoints: &[u32]) -> Result<Expanded, Fault> {
    let mut state = Expanding::new(model, plan, mapping);
    for input in &plan.inputs {
        state.input(input)?;
    }
    for (number, (operation, planned)) in (0u32..).zip(model.operations.iter().zip(&plan.operations)) {
        match (planned, &operation.kind) {
            (OperationPlan::View, Kind::Split { .. }) => {}
            (OperationPlan::Product(product), Kind::Product { x, weight, bias, transposed }) => {
                let work = expand_product::Work { number, x: *x, weight: *weight, bias: *bias, given_transposed: *transposed };
                expand_product::expand(&mut state, &work, product)?;
            }
            (OperationPlan::Attention(attention), Kind::Attention { queries, keys, values, scale, .. }) => {
                let work = expand_attention::Work { number, queries: *queries, keys: *keys, values: *values, scale: *scale };
                expand_attention::expand(&mut state, &work, attention)?;
            }
            _ => return Err(Fault::PlanMismatch { operation: operation.name.clone() }),
        }
        if checkpoints.contains(&number) {
            state.checkpoint(number)?;
        }
    }
    for &output in &model.outputs {
        state.output(output)?;
    }
    let program = finish(state.finish(), kernels)?;
    let merged = if plan.merged { merged(&program, kernels)? } else { None };
    Ok(merged.unwrap_or(program))
}

/// Derives from the calls what buffers must be like: lifetimes, regions, alignments, readable tails.
fn finish(mut program: Expanded, kernels: &KernelTable) -> Result<Expanded, Fault> {
    operand_wants(&mut program, kernels)?;
    lifetimes(&mut program);
    Ok(program)
}

fn operand_wants(program: &mut Expanded, kernels: &KernelTable) -> Result<(), Fault> {
    let facts: Vec<_> = program.variants.iter().map(|variant| kernels.operands(variant)).collect::<Result<_, _>>()?;
    let Expanded { steps, buffers, .. } = program;
    for step in steps.iter() {
        let Step::Compute { groups, .. } = step else { continue };
        for call in groups.iter().flat_map(|group| &group.calls) {
            for (operand, fact) in call.operands.iter().zip(&facts[call.kernel.0 as usize]) {
                let buffer = &mut buffers[operand.buffer.0 as usize];
                want_region(buffer, fact.region)?;
                buffer.align = buffer.align.max(fact.align);
                let read_to = u64::from(operand.offset) + fact.bytes + u64::from(fact.readable_tail);
                let tail = read_to.saturating_sub(u64::from(buffer.bytes));
                buffer.readable_tail = buffer.readable_tail.max(u32::try_from(tail).unwrap_or(u32::MAX));
            }
        }
    }
    Ok(())
}

fn want_region(buffer: &mut Buffer, region: Region) -> Result<(), Fault> {
    match (buffer.region, region) {
        (_, Region::Any) => {}
        (Region::Any, wanted) => buffer.region = wanted,
        (had, wanted) if had == wanted => {}
        _ => return Err(Fault::TwoRegions { buffer: buffer.name.clone() }),
    }
    Ok(())
}

/// First and last step that touch a buffer. Weights and outputs live to the end, what the host sends from the start.
pub(crate) fn lifetimes(program: &mut Expanded) {
    let mut touched: Vec<Option<(u32, u32)>> = vec![None; program.buffers.len()];
    for (number, step) in (0u32..).zip(&program.steps) {
        for buffer in touched_by(program, step) {
            let span = &mut touched[buffer.0 as usize];
            *span = Some(span.map_or((number, number), |(first, _)| (first, number)));
        }
    }
    for (buffer, span) in program.buffers.iter_mut().zip(&touched) {
        buffer.first_step = span.map(|(first, _)| first);
        buffer.last_step = span.map(|(_, last)| last);
    }
    for binding in &program.bindings {
        for piece in &binding.pieces {
            let buffer = &mut program.buffers[piece.buffer.0 as usize];
            match binding.group {
                Group::Input => buffer.first_step = None,
                Group::Weight => (buffer.first_step, buffer.last_step) = (None, None),
                Group::Output => buffer.last_step = None,
            }
        }
    }
}

/// The buffers a step reads or writes, with repeats.
pub(crate) fn touched_by(program: &Expanded, step: &Step) -> Vec<BufferId> {
    match step {
        Step::Exchange { phase, .. } => {
            let transfers = &program.phases[*phase as usize].transfers;
            let places = transfers.iter().flat_map(|transfer| std::iter::once(&transfer.source).chain(&transfer.destinations));
            places.map(|place| place.buffer).collect()
        }
        Step::Compute { groups, .. } => {
            let calls = groups.iter().flat_map(|group| &group.calls);
            calls.flat_map(|call| &call.operands).map(|operand| operand.buffer).collect()
        }
        Step::Checkpoint { checkpoint } => {
            program.checkpoints[*checkpoint as usize].tensor.pieces.iter().map(|piece| piece.buffer).collect()
        }
    }
}
