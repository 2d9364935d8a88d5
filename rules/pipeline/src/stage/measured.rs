//! Clocks of a kernel variant, measured on the simulator: one tile, its real worker split.

use std::sync::Arc;

use compiler::kernel_table::printed;
use graph::{Artifact, Db, Failure, Made, load, stage};
use ipu21::memory;
use simulator::{Segment, measure_call};
use toolchain::manifest::Kernel;
use toolchain::object::Object;

use crate::fingerprint::Crate;
use crate::key::{KernelKey, digest_of, spec};
use crate::stage::kernel_bound::kernel_bound;
use crate::stage::kernel_library::{kernel, kernel_library, without_costs};
use crate::stage::kernel_object::{kernel_object, machine_of};

/// Where the measured code lies; operands follow in conflict units of their own.
const CODE: u32 = 0x54000;
/// Where the argument block lies.
const ARGUMENTS: u32 = memory::ENTRY;
/// Every operand is full of binary16 halves; clocks do not depend on values.
const HALVES: u8 = 0x38;

/// Clocks of one call, `setzi $m0` and `call` up to the return. Key: object, the manifest's entry without its costs, machine parameters.
/// What the manifest expects of it is kept beside it, for those who read both, and is no part of the key.
#[salsa::tracked(returns(clone))]
pub fn measured<'db>(db: &'db dyn Db, key: KernelKey<'db>) -> Result<Artifact<u64, u64>, Failure> {
    let (program, variant) = (key.program(db), key.variant(db));
    let label = program.label(db);
    let library = kernel_library(db, program)?;
    let known = kernel(&library, &variant.kernel, label)?;
    let machine = machine_of(db, program)?;
    let object = kernel_object(db, key)?;
    kernel_bound(db, key)?;
    let inputs =
        [("object", object.digest()), ("interface", known.interface), ("variant", digest_of(variant)), ("parameters", machine.digest)];
    let spec = spec("measured", &[Crate::Simulator, Crate::Toolchain, Crate::Ipu21], label).index(printed(variant));
    stage(db, &spec, &inputs, || {
        let object = load(db, &object)?;
        let (segments, entry) = bench(&without_costs(&known.kernel), &object, &variant.parameters)?;
        let measured = measure_call(&segments, entry, ARGUMENTS, &machine.parameters).map_err(|fault| {
            let (file, line) = object.line_of(fault.pc.wrapping_sub(CODE)).unwrap_or((object.source_name(), 0));
            Failure::build(format!("{file}:{line}: {fault}"))
        })?;
        Ok(Made::with_facts(measured.clocks, measured.clocks)
            .figure("clocks", measured.clocks)
            .figure("worker_turns", measured.worker_turns)
            .figure("supervisor_instructions", measured.supervisor_instructions))
    })
}

/// Memory of the measuring tile, and where the kernel starts.
fn bench(kernel: &Kernel, object: &Object, parameters: &std::collections::BTreeMap<String, i64>) -> Result<(Vec<Segment>, u32), Failure> {
    let entry = object.symbols().get(&kernel.entry).copied();
    let entry =
        entry.ok_or_else(|| Failure::input(format!("{}: the entry symbol `{}` is not defined", object.source_name(), kernel.entry)))?;
    let text = object.link_at(CODE, &std::collections::BTreeMap::new()).map_err(|cause| Failure::input(cause.to_string()))?;
    let code_end = (CODE + text.len() as u32 + memory::FETCH_LOOK_AHEAD).next_multiple_of(memory::UNIT0);
    let addresses = kernel.place_operands(parameters, code_end);
    let addresses = addresses.map_err(|fault| Failure::build(format!("kernel {}: {fault}", kernel.name)))?;
    let mut block: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
    block.extend(kernel.values.iter().flat_map(|_| 0_u32.to_le_bytes()));
    let mut segments = vec![segment(CODE, text), segment(ARGUMENTS, block)];
    for (operand, address) in kernel.operands.iter().zip(&addresses) {
        let reach = operand.reach(parameters).map_err(|fault| Failure::input(format!("kernel {}: {fault}", kernel.name)))?;
        segments.push(segment(*address, vec![HALVES; reach.next_multiple_of(4) as usize]));
    }
    Ok((segments, CODE + entry))
}

fn segment(address: u32, data: Vec<u8>) -> Segment {
    let memory_bytes = data.len() as u32;
    Segment { address, data: Arc::from(data), memory_bytes }
}
