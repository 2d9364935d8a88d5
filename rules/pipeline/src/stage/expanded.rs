//! A finalist's shards, buffers and exchange problems.

use std::collections::BTreeMap;

use compiler::expand::expand;
use compiler::expanded_check;
use compiler::program::{Expanded, Group, Variant};
use exchange::{BufferId, Problem};
use graph::{Artifact, Db, Digest, Failure, Made, data_of, load, stage};
use serde::{Deserialize, Serialize};

use crate::fingerprint::COMPILATION;
use crate::key::{FinalistKey, digest_of, faults, spec};
use crate::rule::Program;
use crate::stage::finalists::{finalists, plan};
use crate::stage::kernel_library::kernel_library;
use crate::stage::mapping::mapping;
use crate::stage::model::model;

/// What later stages branch on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpandedFacts {
    /// The exchange phases.
    pub phases: Vec<PhaseFacts>,
    /// Kernel variants called.
    pub variants: Vec<Variant>,
    /// Tiles that compute or exchange.
    pub active_tiles: u32,
    /// Digest of how each graph input and parameter lies on the tiles, by name.
    pub given: BTreeMap<String, Digest>,
    /// Digest of how outputs and checkpointed results lie on the tiles.
    pub results: Digest,
}

/// An exchange phase as later stages see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseFacts {
    /// Digest of the problem on its own: equal for equal transfers, wherever the phase stands in whatever program.
    pub problem: Digest,
    /// The program's numbers of the buffers that the problem numbers from 0.
    pub buffers: Vec<BufferId>,
    /// Number of its transfers.
    pub transfers: u32,
}

impl PhaseFacts {
    fn of(problem: &Problem) -> Self {
        Self { problem: digest_of(&problem.on_its_own()), buffers: problem.buffers(), transfers: problem.transfers.len() as u32 }
    }
}

/// The program over buffers. Key: plan, tiles of the mapping, model, interfaces of kernels, checkpoints.
#[salsa::tracked(returns(clone))]
pub fn expanded<'db>(db: &'db dyn Db, key: FinalistKey<'db>) -> Result<Artifact<Expanded, ExpandedFacts>, Failure> {
    let (program, index) = (key.program(db), key.index(db));
    let label = program.label(db);
    let declared = data_of::<Program>(db, label)?;
    let library = kernel_library(db, program)?;
    let model = model(db, db.target(&declared.model))?;
    let (finalists, mapping) = (finalists(db, program)?, mapping(db, key)?);
    let inputs = [
        ("plan", plan(&finalists, index)?),
        ("mapping", *mapping.facts()),
        ("model", model.digest()),
        ("interfaces", library.interfaces),
        ("checkpoints", digest_of(&declared.checkpoints)),
    ];
    stage(db, &spec("expanded", COMPILATION, label).index(index), &inputs, || {
        let (model, all, mapping) = (load(db, &model)?, load(db, &finalists)?, load(db, &mapping)?);
        let table = library.interface_table();
        let expanded = expand(&model, &all[index as usize].plan, &mapping, &table, &declared.checkpoints)
            .map_err(|fault| Failure::input(fault.to_string()))?;
        expanded_check::check(&expanded, &table).map_err(|found| faults(&found))?;
        let facts = ExpandedFacts {
            phases: expanded.phases.iter().map(PhaseFacts::of).collect(),
            variants: expanded.variants.clone(),
            active_tiles: active_tiles(&expanded),
            given: given(&expanded),
            results: results(&expanded),
        };
        let transfers: usize = expanded.phases.iter().map(|phase| phase.transfers.len()).sum();
        let (phases, buffers, steps) = (expanded.phases.len(), expanded.buffers.len(), expanded.steps.len());
        Ok(Made::with_facts(expanded, facts)
            .figure("phases", phases)
            .figure("shards", transfers)
            .figure("buffers", buffers)
            .figure("steps", steps))
    })
}

fn given(expanded: &Expanded) -> BTreeMap<String, Digest> {
    let given = expanded.bindings.iter().filter(|binding| binding.group != Group::Output);
    given.map(|binding| (binding.name.clone(), digest_of(binding))).collect()
}

fn results(expanded: &Expanded) -> Digest {
    let outputs: Vec<_> = expanded.bindings.iter().filter(|binding| binding.group == Group::Output).collect();
    digest_of(&(outputs, &expanded.checkpoints))
}

fn active_tiles(expanded: &Expanded) -> u32 {
    let mut tiles: Vec<_> = expanded.buffers.iter().flat_map(|buffer| &buffer.tiles).collect();
    tiles.sort_unstable();
    tiles.dedup();
    tiles.len() as u32
}
