//! The best operator plans of a program.

use compiler::finalists::Finalist;
use compiler::layout::Layout;
use compiler::spread::Threads;
use graph::{Artifact, Cause, Db, Digest, Failure, Made, Target, data_of, load, note_help, stage};

use crate::fingerprint::COMPILATION;
use crate::key::{digest_of, spec};
use crate::rule::Program;
use crate::stage::kernel_library::kernel_library;
use crate::stage::kernel_object::machine_of;
use crate::stage::model::model;
use crate::stage::selected::costs_of;

/// The plans, best first; the facts are their digests. Key: model, layout without the mapping and the effort it asks for, manifests, barrier costs, checkpoints. Kernel sources and
/// measured clocks do not count: manifests' models screen, measurements decide among the finalists.
#[salsa::tracked(returns(clone))]
pub fn finalists(db: &dyn Db, program: Target) -> Result<Artifact<Vec<Finalist>, Vec<Digest>>, Failure> {
    let label = program.label(db);
    let declared = data_of::<Program>(db, label)?;
    let model = model(db, db.target(&declared.model))?;
    let library = kernel_library(db, program)?;
    let costs = costs_of(&machine_of(db, program)?.parameters);
    let usual = Layout::on(declared.layout.tiles);
    let layout = Layout { mapping: usual.mapping, effort: usual.effort, ..declared.layout.clone() };
    let inputs = [
        ("model", model.digest()),
        ("layout", digest_of(&layout)),
        ("manifests", library.digest),
        ("costs", digest_of(&costs)),
        ("checkpoints", digest_of(&declared.checkpoints)),
    ];
    stage(db, &spec("finalists", COMPILATION, label), &inputs, || {
        let model = load(db, &model)?;
        let threads = Threads::new(db.threads());
        let found = compiler::finalists::finalists(&model, &layout, &library.table(), &costs, &declared.checkpoints, &threads);
        note_help(threads.helped());
        let found = found.map_err(|faults| Failure::all(Cause::Build, faults.iter().map(ToString::to_string).collect()))?;
        let facts: Vec<Digest> = found.plans.iter().map(|finalist| digest_of(&finalist.plan)).collect();
        let list =
            |value: fn(&Finalist) -> u64| found.plans.iter().map(|finalist| value(finalist).to_string()).collect::<Vec<_>>().join(",");
        let (cycles, exchange) = (list(|finalist| finalist.estimated_cycles), list(|finalist| finalist.estimated_exchange_cycles));
        let (standard, interleaved) = (list(|finalist| finalist.peaks.standard), list(|finalist| finalist.peaks.interleaved));
        let total = list(|finalist| finalist.peaks.total);
        let largest = list(|finalist| finalist.peaks.largest);
        let active = found.plans.iter().map(|finalist| format!("{:?}", finalist.active_tiles)).collect::<Vec<_>>().join(",");
        let (values, operations, considered) = (found.values, found.operations, found.considered);
        let (padding, sources) = (found.padding_groups, found.conversion_sources.join(","));
        let count = found.plans.len();
        Ok(Made::with_facts(found.plans, facts)
            .figure("finalists", count)
            .figure("values", values)
            .figure("operations", operations)
            .figure("considered", considered)
            .figure("estimated_cycles", cycles)
            .figure("estimated_exchange_cycles", exchange)
            .figure("peak_standard_bytes", standard)
            .figure("peak_interleaved_bytes", interleaved)
            .figure("peak_total_bytes", total)
            .figure("largest_allocation", largest)
            .figure("active_tiles", active)
            .figure("padding_groups", padding)
            .figure("conversion_sources", sources))
    })
}

/// Digest of a finalist's plan.
pub(crate) fn plan(finalists: &Artifact<Vec<Finalist>, Vec<Digest>>, index: u32) -> Result<Digest, Failure> {
    let found = finalists.facts().get(index as usize).copied();
    found.ok_or_else(|| Failure::build(format!("there is no finalist {index}; there are {}", finalists.facts().len())))
}
