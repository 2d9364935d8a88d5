//! The verdict of a run: every element of every checkpointed tensor and output against the reference.

use std::collections::BTreeMap;

use compiler::clocks::OperationClocks;
use compiler::program::{Expanded, Step};
use compiler::selected::Refined;
use graph::{Artifact, Db, Failure, Made, Target, data_of, load, stage};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::fingerprint::Crate;
use crate::key::{FinalistKey, TensorKey, digest_of, spec};
use crate::rule::{Device, Run};
use crate::stage::expanded::expanded;
use crate::stage::kernel_object::machine_of;
use crate::stage::reference::{Expectation, reference};
use crate::stage::selected::{refined, selected};
use crate::stage::simulation::{Sample, Simulation, simulation};
use crate::stage::tensor::tensor;

/// Most elements of a tensor listed in a report.
pub const SAMPLE_LIMIT: usize = 256;

/// How a tensor compares with its expectation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Name of the result.
    pub name: String,
    /// Number of the operation, for checkpoints.
    pub operation: Option<u32>,
    /// Elements compared: all.
    pub elements: usize,
    /// Largest absolute error.
    pub maximum_absolute_error: f64,
    /// Row-major index of the largest error.
    pub worst_element: usize,
    /// Allowed.
    pub tolerance: f64,
    /// Within the tolerance.
    pub passed: bool,
    /// A seeded choice of elements: index, value found, value expected.
    pub samples: Vec<(usize, f64, f64)>,
}

/// Clocks of an operation by source of knowledge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationReport {
    /// Name of the operation.
    pub name: String,
    /// Measured kernels and route bounds.
    pub planned: u64,
    /// Measured kernels and scheduled phases.
    pub scheduled: u64,
    /// As the simulator ran it.
    pub simulated: u64,
}

/// A run's report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Everything within its tolerance, and not more clocks than allowed.
    pub passed: bool,
    /// The most clocks that are allowed.
    pub max_clocks: Option<u64>,
    /// Tensors of the checkpoints, in order.
    pub checkpoints: Vec<Comparison>,
    /// Outputs as the host received them.
    pub outputs: Vec<Comparison>,
    /// Results compared with given values.
    pub expected: Vec<Comparison>,
    /// By operation number.
    pub operations: Vec<OperationReport>,
    /// Sums over the operations.
    pub total: OperationReport,
    /// Parts of the scheduled clocks: computing, horizons of phases, barriers around them.
    pub parts: (u64, u64, u64),
    /// Exchange phases.
    pub phases: usize,
    /// Digest of the parameters that clocks and results stand on.
    pub parameters_digest: String,
    /// What the simulation depended on that is not certain: values of parameters.toml, and `isa.ID` for forms of doubtful meaning.
    pub parameters_read: Vec<String>,
    /// Results that saturated because binary16 ended.
    pub f16_overflows: u64,
    /// Poison seed of the device.
    pub device_seed: u64,
}

/// The report; the fact is whether it passed. Key: simulation, reference, clocks, tolerances, given values.
#[salsa::tracked(returns(clone))]
pub fn verdict(db: &dyn Db, target: Target) -> Result<Artifact<Report, bool>, Failure> {
    let label = target.label(db);
    let run = data_of::<Run>(db, label)?;
    let device = data_of::<Device>(db, &run.device)?;
    let program = db.target(&run.program);
    let machine = machine_of(db, program)?;
    let key = FinalistKey::new(db, program, selected(db, program)?.facts().finalist);
    let (expanded, clocks) = (expanded(db, key)?, refined(db, key)?);
    let (simulation, reference) = (simulation(db, target)?, reference(db, target)?);
    let mut given = Vec::new();
    for (name, from) in &run.expected {
        given.push((name.clone(), tensor(db, TensorKey::new(db, db.target(from), name.clone()))?));
    }
    let mut inputs = vec![
        ("simulation", simulation.digest()),
        ("reference", reference.digest()),
        ("clocks", clocks.digest()),
        ("expanded", expanded.digest()),
        ("parameters", machine.digest),
        ("tolerance", digest_of(&(&run.tolerance, run.sample_seed, run.max_clocks, device.seed))),
    ];
    inputs.extend(given.iter().map(|(_, tensor)| ("expected", tensor.digest())));
    stage(db, &spec("verdict", &[Crate::Compiler], label), &inputs, || {
        let (simulation, reference) = (load(db, &simulation)?, load(db, &reference)?);
        let (expanded, clocks) = (load(db, &expanded)?, load(db, &clocks)?);
        let judge = Judge { run: &run, program: &expanded, reference: &reference };
        let checkpoints = simulation.checkpoints.iter().map(|sample| judge.checkpoint(sample)).collect::<Result<Vec<_>, _>>()?;
        let outputs = simulation.outputs.iter().map(|sample| judge.output(sample)).collect::<Result<Vec<_>, _>>()?;
        let mut expected = Vec::new();
        for (name, tensor) in &given {
            expected.push(judge.given(name, &simulation, &load(db, tensor)?.to_f64())?);
        }
        let is_exact = checkpoints.iter().chain(&outputs).chain(&expected).all(|comparison| comparison.passed);
        let barrier = u64::from(machine.parameters.barrier.internal_empty_phase) * expanded.phases.len() as u64;
        let (operations, total) = operations(&expanded, &clocks, &simulation);
        let exchange = clocks.refined.exchange;
        let simulated = total.simulated;
        let passed = is_exact && run.max_clocks.is_none_or(|most| simulated <= most);
        let report = Report {
            passed,
            max_clocks: run.max_clocks,
            checkpoints,
            outputs,
            expected,
            operations,
            total,
            parts: (clocks.refined.total - exchange, exchange.saturating_sub(barrier), barrier),
            phases: expanded.phases.len(),
            parameters_digest: machine.digest.to_string(),
            parameters_read: simulation.parameters_read.clone(),
            f16_overflows: simulation.f16_overflows,
            device_seed: device.seed,
        };
        Ok(Made::with_facts(report, passed).figure("passed", passed).figure("simulated_cycles", simulated))
    })
}

struct Judge<'a> {
    run: &'a Run,
    program: &'a Expanded,
    reference: &'a [Expectation],
}

impl Judge<'_> {
    fn checkpoint(&self, sample: &Sample) -> Result<Comparison, Failure> {
        let operation = sample.operation.unwrap_or_default();
        let expectation = self.reference.iter().find(|expectation| expectation.operation == operation);
        let expectation = expectation.ok_or_else(|| Failure::build(format!("operation {operation} has no reference")))?;
        self.compare(&sample.name, Some(operation), &sample.tensor.to_f64(), &expectation.values)
    }

    fn output(&self, sample: &Sample) -> Result<Comparison, Failure> {
        let operation = self.operation_named(&sample.name)?;
        let compared = self.checkpoint(&Sample { operation: Some(operation), ..sample.clone() })?;
        Ok(Comparison { operation: None, ..compared })
    }

    fn given(&self, name: &str, simulation: &Simulation, values: &[f64]) -> Result<Comparison, Failure> {
        let operation = self.operation_named(name)?;
        let outputs = simulation.outputs.iter().filter(|sample| sample.name == name);
        let found = outputs.chain(simulation.checkpoints.iter().filter(|sample| sample.operation == Some(operation))).next();
        let missing = || Failure::input(format!("`{name}` is neither given back nor checkpointed")).at_field(format!("expected.{name}"));
        self.compare(name, None, &found.ok_or_else(missing)?.tensor.to_f64(), values)
    }

    fn operation_named(&self, name: &str) -> Result<u32, Failure> {
        let position = self.program.operations.iter().position(|operation| operation == name);
        position.map(|index| index as u32).ok_or_else(|| Failure::build(format!("the program has no operation `{name}`")))
    }

    fn compare(&self, name: &str, operation: Option<u32>, found: &[f64], expected: &[f64]) -> Result<Comparison, Failure> {
        if found.len() != expected.len() {
            return Err(Failure::input(format!("`{name}`: expected {} elements, found {}", expected.len(), found.len())));
        }
        let errors = found.iter().zip(expected).map(|(found, expected)| (found - expected).abs());
        // A NaN is an error larger than any other.
        let order = |error: f64| if error.is_nan() { f64::INFINITY } else { error };
        let worst =
            errors.map(order).enumerate().fold((0, 0.0), |worst, (index, error)| if error > worst.1 { (index, error) } else { worst });
        let tolerance = self.run.tolerance.get(name).or_else(|| self.run.tolerance.get("default")).copied().unwrap_or_default();
        let samples = choose(self.run.sample_seed, found.len()).into_iter().map(|index| (index, found[index], expected[index])).collect();
        Ok(Comparison {
            name: name.to_owned(),
            operation,
            elements: found.len(),
            maximum_absolute_error: worst.1,
            worst_element: worst.0,
            tolerance,
            passed: worst.1 <= tolerance,
            samples,
        })
    }
}

/// A seeded choice of distinct elements, ascending.
fn choose(seed: u64, elements: usize) -> Vec<usize> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut chosen: BTreeMap<usize, ()> = BTreeMap::new();
    while chosen.len() < SAMPLE_LIMIT.min(elements) {
        chosen.insert((random.next_u64() % elements as u64) as usize, ());
    }
    chosen.into_keys().collect()
}

fn operations(program: &Expanded, clocks: &Refined, simulation: &Simulation) -> (Vec<OperationReport>, OperationReport) {
    let mut simulated = vec![0; program.operations.len()];
    let mut last = 0;
    for (step, clocks) in program.steps.iter().zip(&simulation.steps) {
        if let Step::Exchange { operation, .. } | Step::Compute { operation, .. } = step {
            last = *operation as usize;
        }
        simulated[last] += clocks;
    }
    let sum = |clocks: &OperationClocks| clocks.compute + clocks.exchange;
    let of = |table: &[OperationClocks], index: usize| table.get(index).map_or(0, sum);
    let reports: Vec<OperationReport> = program
        .operations
        .iter()
        .enumerate()
        .map(|(index, name)| OperationReport {
            name: name.clone(),
            planned: of(&clocks.planned.operations, index),
            scheduled: of(&clocks.refined.operations, index),
            simulated: simulated[index],
        })
        .collect();
    let total = OperationReport {
        name: "total".to_owned(),
        planned: clocks.planned.total,
        scheduled: clocks.refined.total,
        simulated: simulation.clocks,
    };
    (reports, total)
}
