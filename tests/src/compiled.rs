//! Programs compiled by the pure functions alone, without a database, and run on the simulated chip.
//!
//! The order of the stages is the pipeline's. Behind every stage stands a hook of [`Mutation`]: a stage's own checks judge its
//! result first, then the hook may damage it, and everything behind is made from the damaged result, checksums included. Kernels
//! are not measured: the first finalist that can be placed is taken.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use compiler::assemble::{Description, assemble};
use compiler::clocks::{Clocks, Costs};
use compiler::host_plan::{self, HostPlan};
use compiler::images::{self, Images, KernelObject, Objects, Parts, Rows};
use compiler::kernel_table::KernelTable;
use compiler::layout::Layout;
use compiler::model::{Declaration, ElementType, Kind, Model, OperationDeclaration, Source, TensorDeclaration};
use compiler::placement::{self, Demand, Placement};
use compiler::program::{Binding, Expanded, Group};
use compiler::spread::Threads;
use compiler::tile_code::{self, TileCode};
use compiler::{code_blocks, finalists, host_files, mapping, runtime, selected};
use driver::{Files, Reading, Session, SessionFault, SessionOptions};
use exchange::{Problem, Schedule};
use half::f16;
use ipu21::parameters::Parameters;
use package::Package;
use pipeline::tensor::{Draw, draw};
use reference::{Graph, Matrix, Operation};
use simulator::ChipOptions;
use toolchain::manifest::Kernel;
use toolchain::object::Object;

/// Clocks after which a small program is given up.
const CLOCK_LIMIT: u64 = 20_000_000;
/// Rounds of schedules and placement: the second knows the pairs that the first gave up.
const ROUNDS: usize = 2;

/// What to compile.
#[derive(Clone, Debug)]
pub struct Task {
    /// The model.
    pub declaration: Declaration,
    /// The layout.
    pub layout: Layout,
    /// Operations with a checkpoint.
    pub checkpoints: Vec<u32>,
}

/// What may be changed behind a stage. Nothing is, unless a method says so.
pub trait Mutation {
    /// The planned program over buffers.
    fn expanded(&self, _program: &mut Expanded) {}
    /// The schedules, by phase.
    fn schedules(&self, _schedules: &mut [Schedule]) {}
    /// Host traffic.
    fn host_plan(&self, _plan: &mut HostPlan) {}
    /// The programs of the tiles.
    fn code(&self, _code: &mut TileCode) {}
    /// The ELF file of a kernel.
    fn object(&self, _kernel: &str, _object: &Object, _file: &mut Vec<u8>) {}
    /// The addresses.
    fn placement(&self, _placement: &mut Placement) {}
    /// The exchange rows, by phase and tile.
    fn rows(&self, _rows: &mut Rows) {}
    /// The images of the tiles.
    fn images(&self, _images: &mut Images) {}
    /// The package, before it is written.
    fn package(&self, _package: &mut Package) {}
    /// A host file, by the name of its binding.
    fn host_file(&self, _binding: &Binding, _file: &mut Vec<u8>) {}
}

/// No change.
#[derive(Clone, Copy, Debug)]
pub struct Unchanged;

impl Mutation for Unchanged {}

/// Everything the stages made.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The program over buffers.
    pub expanded: Expanded,
    /// The schedules, by phase.
    pub schedules: Vec<Schedule>,
    /// Host traffic.
    pub plan: HostPlan,
    /// The programs of the tiles.
    pub code: TileCode,
    /// The addresses.
    pub placement: Placement,
    /// The exchange rows.
    pub rows: Rows,
    /// The package as read back from its file.
    pub package: Package,
    /// The package's file.
    pub file: Vec<u8>,
}

/// Why a program was not compiled: the stage, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The stage.
    pub stage: &'static str,
    /// What it said, one line a fault.
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.stage, self.message)
    }
}

impl std::error::Error for Refusal {}

fn refusal(stage: &'static str) -> impl Fn(String) -> Refusal {
    move |message| Refusal { stage, message }
}

fn all<F: fmt::Display>(faults: &[F]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The manifests of the embedded kernels, by name.
#[must_use]
pub fn manifests() -> BTreeMap<String, Kernel> {
    let kernels = toolchain::manifest::parse(kernels::manifest()).expect("the library's manifest is right");
    kernels.into_iter().map(|kernel| (kernel.name.clone(), kernel)).collect()
}

/// The model of a task.
///
/// # Errors
/// What the declaration is refused for.
pub fn model(task: &Task) -> Result<Model, Refusal> {
    compiler::model::check(&task.declaration).map_err(|faults| refusal("model")(all(&faults)))
}

/// The programs of the finalists of a task, best first, mapped to tiles.
///
/// # Errors
/// What the stage that refused says.
pub fn expanded(task: &Task) -> Result<Vec<Expanded>, Refusal> {
    let (model, kernels) = (model(task)?, KernelTable::new(manifests().into_values()));
    let costs = Costs::new(&Parameters::shipped());
    let found = finalists::finalists(&model, &task.layout, &kernels, &costs, &task.checkpoints, &Threads::new(1));
    let found = found.map_err(|faults| refusal("finalists")(all(&faults)))?;
    let planned = |finalist: &finalists::Finalist| {
        let expand = |mapping| compiler::expand::expand(&model, &finalist.plan, mapping, &kernels, &task.checkpoints);
        let fault = |stage| move |fault: compiler::plan_fault::Fault| refusal(stage)(fault.to_string());
        let identity = mapping::identity(task.layout.tiles);
        let first = expand(&identity).map_err(fault("expanded"))?;
        let chosen = mapping::map(&first, &task.layout).map_err(fault("mapping"))?;
        mapping::check(&task.layout, &chosen).map_err(|fault| refusal("mapping")(fault.to_string()))?;
        let program = expand(&chosen).map_err(fault("expanded"))?;
        compiler::expanded_check::check(&program, &kernels).map_err(|faults| refusal("expanded")(all(&faults)))?;
        Ok(program)
    };
    found.plans.iter().map(planned).collect()
}

/// Compiles the best finalist that can be placed.
///
/// # Errors
/// What the stage that refused the last of them says.
pub fn compile(task: &Task, mutation: &dyn Mutation) -> Result<Compiled, Refusal> {
    let mut refused = refusal("finalists")("there is none".to_owned());
    for program in expanded(task)? {
        match lower(program, mutation) {
            Ok(compiled) => return Ok(compiled),
            Err(refusal) => refused = refusal,
        }
    }
    Err(refused)
}

/// Lowers a program over buffers to its package.
///
/// # Errors
/// What the stage that refused says.
pub fn lower(program: Expanded, mutation: &dyn Mutation) -> Result<Compiled, Refusal> {
    let mut expanded = program;
    mutation.expanded(&mut expanded);
    let (plan, code) = programs(&expanded, mutation)?;
    let objects = objects(&expanded, mutation)?;
    let placed = placed(&expanded, &plan, &code, &objects, mutation)?;
    let (schedules, mut placement, row_bytes) = (placed.schedules, placed.placement, placed.row_bytes);
    mutation.placement(&mut placement);
    let mut rows = relocated(&schedules, &placement)?;
    mutation.rows(&mut rows);
    let parts = Parts { expanded: &expanded, plan: &plan, code: &code, objects: &objects, placement: &placement, rows: &rows };
    let mut images = images::build(&parts).map_err(|fault| refusal("images")(fault.to_string()))?;
    images::check(&placement, &row_bytes, &images).map_err(|faults| refusal("images")(all(&faults)))?;
    mutation.images(&mut images);
    let clocks = modelled(&expanded)?.steps;
    let horizons: Vec<u64> = schedules.iter().map(|schedule| u64::from(schedule.figures.horizon)).collect();
    let description =
        Description { producer: "tests", parameters: [0; 32], code_parameters: &[], planned_clocks: &clocks, horizons: &horizons };
    let mut package = assemble(&parts, &images, &description);
    package.check().map_err(|faults| refusal("package")(all(&faults)))?;
    mutation.package(&mut package);
    let file = package.write();
    let package = Package::read(&file).map_err(|fault| refusal("package")(fault.to_string()))?;
    Ok(Compiled { expanded, schedules, plan, code, placement, rows, package, file })
}

/// Host traffic and tile programs.
fn programs(expanded: &Expanded, mutation: &dyn Mutation) -> Result<(HostPlan, TileCode), Refusal> {
    let mut plan = host_plan::plan(expanded);
    host_plan::check(expanded, &plan).map_err(|faults| refusal("tile_code")(all(&faults)))?;
    mutation.host_plan(&mut plan);
    let mut code = tile_code::generate(expanded, &plan).map_err(|fault| refusal("tile_code")(fault.to_string()))?;
    tile_code::check(expanded, &plan, &code).map_err(|faults| refusal("tile_code")(all(&faults)))?;
    compiler::rows::check_entries(expanded, &code).map_err(|faults| refusal("tile_code")(all(&faults)))?;
    mutation.code(&mut code);
    Ok((plan, code))
}

/// The kernels of a program, the copy and the runtime.
fn objects(expanded: &Expanded, mutation: &dyn Mutation) -> Result<Objects, Refusal> {
    let known = manifests();
    let parameters = Parameters::shipped();
    let object = |name: &str, text: String, defines: &BTreeMap<String, i64>| {
        let source = toolchain::Source { name: name.to_owned(), text };
        let mut file = toolchain::assemble(&source, defines, &parameters).map_err(|faults| refusal("kernel_object")(all(&faults)))?;
        let parse = |file: &[u8]| Object::parse(file).map_err(|fault| refusal("kernel_object")(format!("{name}: {fault}")));
        let object = parse(&file)?;
        mutation.object(name.trim_end_matches(".S"), &object, &mut file);
        parse(&file)
    };
    let kernel = |name: &str, defines: &BTreeMap<String, i64>| {
        let manifest = known.get(name).ok_or_else(|| refusal("kernel_object")(format!("no kernel {name}")))?;
        let source = kernels::files().iter().find(|file| file.name == manifest.source);
        let source = source.ok_or_else(|| refusal("kernel_object")(format!("no source {}", manifest.source)))?;
        Ok(KernelObject { object: object(source.name, source.text.to_owned(), defines)?, entry: manifest.entry.clone() })
    };
    let runtime = runtime::source(expanded.checkpoints.len());
    Ok(Objects {
        kernels: expanded.variants.iter().map(|variant| kernel(&variant.kernel, &variant.parameters)).collect::<Result<_, _>>()?,
        copy: kernel("copy", &BTreeMap::new())?,
        runtime: object(&runtime.name, runtime.text.clone(), &runtime::defines())?,
    })
}

struct Placed {
    schedules: Vec<Schedule>,
    placement: Placement,
    row_bytes: Vec<u32>,
}

/// Schedules and placement, in as many rounds as it takes.
fn placed(expanded: &Expanded, plan: &HostPlan, code: &TileCode, objects: &Objects, mutation: &dyn Mutation) -> Result<Placed, Refusal> {
    let kernel_apart = code_blocks::kernel_apart(expanded, &manifests()).map_err(|fault| refusal("placement")(fault.to_string()))?;
    let mut serial = Vec::new();
    for _ in 0..ROUNDS {
        let scheduled = |problem: &Problem| {
            let problem = Problem { serial: serial.clone(), ..problem.clone() };
            let schedule = exchange::schedule(&problem).map_err(|faults| refusal("schedule")(all(&faults)))?;
            exchange::validate(&problem, &schedule).map_err(|faults| refusal("schedule")(all(&faults)))?;
            Ok(schedule)
        };
        let mut schedules = expanded.phases.iter().map(scheduled).collect::<Result<Vec<_>, _>>()?;
        mutation.schedules(&mut schedules);
        let row_bytes: Vec<u32> = schedules.iter().map(|schedule| 4 * schedule.figures.largest_row_words).collect();
        let blocks = code_blocks::demands(plan, code, objects, &row_bytes);
        let mut apart: Vec<_> = schedules.iter().flat_map(|schedule| schedule.apart.iter().copied()).collect();
        apart.sort_unstable();
        apart.dedup();
        let demand = Demand { expanded, blocks: &blocks, kernel_apart: &kernel_apart, schedule_apart: &apart };
        let placement = placement::place(&demand).map_err(|fault| refusal("placement")(fault.to_string()))?;
        placement::check(&demand, &placement).map_err(|faults| refusal("placement")(all(&faults)))?;
        if placement.given_up.is_empty() {
            return Ok(Placed { schedules, placement, row_bytes });
        }
        serial = placement.given_up.iter().map(|(tile, one, other)| (*one, *other, *tile)).collect();
    }
    Err(refusal("placement")("does not fit: both rounds of placement give pairs up".to_owned()))
}

fn relocated(schedules: &[Schedule], placement: &Placement) -> Result<Rows, Refusal> {
    let phase = |(number, schedule): (u32, &Schedule)| {
        let rows = compiler::rows::relocate(schedule, placement).map_err(|faults| refusal("rows")(all(&faults)))?;
        compiler::rows::check(schedule, placement, number, &rows).map_err(|faults| refusal("rows")(all(&faults)))?;
        Ok(rows)
    };
    (0..).zip(schedules).map(phase).collect()
}

/// What a program is thought to take, by the manifests' models and the route bounds of its phases: what the planner ranks by.
///
/// # Errors
/// A kernel that the library does not have.
pub fn modelled(expanded: &Expanded) -> Result<Clocks, Refusal> {
    let kernels = KernelTable::new(manifests().into_values());
    let costs = Costs::new(&Parameters::shipped());
    selected::modelled(expanded, &kernels, &costs).map_err(|fault| refusal("expanded")(fault.to_string()))
}

/// Row-major f16 tensors by the names of inputs and parameters.
pub type Tensors = BTreeMap<String, Vec<f16>>;

/// Tensors for a model, drawn by name. Inputs have variance 1; weights the one that keeps a result's deviation near a half.
#[must_use]
pub fn drawn(model: &Model, seed: u64) -> Tensors {
    let given = model.values.iter().filter(|value| !matches!(value.source, Source::Result(_)));
    let tensor = |value: &compiler::model::Value| {
        let variance = if value.source == Source::Input { 1.0 } else { 0.25 / f64::from(value.shape[0]) };
        let drawn = draw(seed, &value.name, &Draw { shape: value.shape.clone(), mean: 0.0, variance });
        (value.name.clone(), drawn.f16_bits().into_iter().map(f16::from_bits).collect())
    };
    given.map(tensor).collect()
}

/// The float64 values of every operation of a model, by number.
///
/// # Panics
/// When a tensor is missing or has another number of elements than its shape.
#[must_use]
pub fn expectation(model: &Model, tensors: &Tensors) -> Vec<Vec<f64>> {
    let given: Vec<_> = model.values.iter().filter(|value| !matches!(value.source, Source::Result(_))).collect();
    let matrix = |value: &&compiler::model::Value| {
        let values = tensors[&value.name].iter().map(|element| element.to_f64()).collect();
        Matrix::new(value.rows() as usize, value.columns() as usize, values).expect("as many elements as the shape asks for")
    };
    let operation = |operation: &compiler::model::Operation| match operation.kind {
        Kind::Product { x, weight, bias, transposed } => {
            Operation::Product { x: x.index(), w: weight.index(), bias: bias.map(|bias| bias.index()), transposed }
        }
        Kind::Split { value, .. } => Operation::View { x: value.index() },
        Kind::Attention { queries, keys, values, heads, scale } => {
            Operation::Attention { q: queries.index(), k: keys.index(), v: values.index(), heads: heads as usize, scale: f64::from(scale) }
        }
    };
    let graph = Graph { inputs: given.len(), operations: model.operations.iter().map(operation).collect() };
    let results = reference::evaluate(&graph, given.iter().map(matrix).collect()).expect("a checked model");
    results[given.len()..].iter().map(|matrix| matrix.values().to_vec()).collect()
}

/// The host files of a group of bindings.
///
/// # Panics
/// When a tensor is missing or has the wrong size.
#[must_use]
pub fn files(expanded: &Expanded, group: Group, tensors: &Tensors, mutation: &dyn Mutation) -> Files {
    let bindings = expanded.bindings.iter().filter(|binding| binding.group == group);
    let file = |binding: &Binding| {
        let bytes: Vec<u8> = tensors[&binding.name].iter().flat_map(|element| element.to_le_bytes()).collect();
        let mut file = host_files::file_of(binding, &bytes).expect("a whole tensor");
        mutation.host_file(binding, &mut file);
        (binding.name.clone(), file)
    };
    bindings.map(file).collect()
}

/// Session options for small programs.
#[must_use]
pub fn options(seed: u64) -> SessionOptions {
    let chip = ChipOptions { seed, threads: 0, clock_limit: CLOCK_LIMIT };
    SessionOptions { parameters: Arc::new(Parameters::shipped()), chip }
}

/// A tensor that a run gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Number of its operation.
    pub operation: u32,
    /// Name of the operation, also of the result.
    pub name: String,
    /// Row-major.
    pub values: Vec<f16>,
}

/// Tensors of the checkpoints, then outputs; and the clocks of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Of checkpoints, in order.
    pub checkpoints: Vec<Found>,
    /// Of outputs, by name.
    pub outputs: Vec<Found>,
    /// Clocks of the run.
    pub clocks: u64,
}

/// Opens, initialises and runs a package.
///
/// # Errors
/// What stopped the session.
///
/// # Panics
/// When the session gives files of the wrong size.
pub fn run(compiled: &Compiled, tensors: &Tensors, mutation: &dyn Mutation) -> Result<Results, SessionFault> {
    let mut session = Session::open(&compiled.package, &options(1))?;
    session.initialize(&files(&compiled.expanded, Group::Weight, tensors, mutation))?;
    run_from(&mut session, compiled, tensors, mutation)
}

/// The call `run` of a session whose weights are there, or not.
///
/// # Errors
/// What stopped the session.
///
/// # Panics
/// When the session gives files of the wrong size.
pub fn run_from(
    session: &mut Session<'_>,
    compiled: &Compiled,
    tensors: &Tensors,
    mutation: &dyn Mutation,
) -> Result<Results, SessionFault> {
    let program = &compiled.expanded;
    let mut readings: Vec<Reading> = Vec::new();
    let inputs = files(program, Group::Input, tensors, mutation);
    let outcome = session.run(&inputs, &mut |reading| readings.push(reading))?;
    let found = |binding: &Binding, operation, name: &str, file: &[u8]| {
        let bytes = host_files::tensor_of(binding, file).expect("a whole file");
        let values = bytes.as_chunks::<2>().0.iter().map(|pair| f16::from_le_bytes(*pair)).collect();
        Found { operation, name: name.to_owned(), values }
    };
    let checkpoint = |reading: &Reading| {
        let checkpoint = &program.checkpoints[reading.checkpoint];
        found(&checkpoint.tensor, checkpoint.operation, &checkpoint.name, &reading.tensors[0].1)
    };
    let number = |name: &str| program.operations.iter().position(|operation| operation == name).map_or(0, |index| index as u32);
    let outputs = program.bindings.iter().filter(|binding| binding.group == Group::Output);
    Ok(Results {
        checkpoints: readings.iter().map(checkpoint).collect(),
        outputs: outputs.map(|binding| found(binding, number(&binding.name), &binding.name, &outcome.outputs[&binding.name])).collect(),
        clocks: outcome.clocks.total,
    })
}

/// A tensor beside its expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Name of the result.
    pub name: String,
    /// Largest absolute error over all elements; infinite for a NaN.
    pub maximum_absolute_error: f64,
    /// Allowed.
    pub tolerance: f64,
}

impl Comparison {
    /// Whether the tensor is within its tolerance.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.maximum_absolute_error <= self.tolerance
    }
}

/// Compares everything a run gave. `tolerance` by name of the result.
#[must_use]
pub fn judge(results: &Results, expectation: &[Vec<f64>], tolerance: &dyn Fn(&str) -> f64) -> Vec<Comparison> {
    let compare = |found: &Found| {
        let expected = &expectation[found.operation as usize];
        let error = |(found, expected): (&f16, &f64)| (found.to_f64() - expected).abs();
        let errors = found.values.iter().zip(expected).map(error).map(|error| if error.is_nan() { f64::INFINITY } else { error });
        let missing = if found.values.len() == expected.len() { 0.0 } else { f64::INFINITY };
        let maximum_absolute_error = errors.fold(missing, f64::max);
        Comparison { name: found.name.clone(), maximum_absolute_error, tolerance: tolerance(&found.name) }
    };
    results.checkpoints.iter().chain(&results.outputs).map(compare).collect()
}

/// A tensor declaration of f16 elements.
#[must_use]
pub fn tensor(shape: &[u32]) -> TensorDeclaration {
    TensorDeclaration { element: ElementType::F16, shape: shape.to_vec() }
}

/// An operation declaration; `matmul` with a weight as `[in, out]`.
#[must_use]
pub fn operation(name: &str, op: &str, args: &[&str]) -> OperationDeclaration {
    OperationDeclaration {
        name: name.to_owned(),
        op: op.to_owned(),
        args: args.iter().map(|name| (*name).to_owned()).collect(),
        transposed: None,
        heads: None,
        scale: None,
    }
}

/// Self-attention as in the reference workload: products `q`, `k`, `v` (0, 1, 2), views (3, 4, 5), `output` (6), with checkpoints after
/// 0, 1, 2 and 6.
#[must_use]
pub fn attention(tokens: u32, width: u32, heads: u32, layout: Layout) -> Task {
    let split = |name, value| OperationDeclaration { heads: Some(heads), ..operation(name, "split", &[value]) };
    let weight = |name: &str| (name.to_owned(), tensor(&[width, width]));
    let declaration = Declaration {
        inputs: BTreeMap::from([("hidden".to_owned(), tensor(&[1, tokens, width]))]),
        parameters: ["wq", "wk", "wv"].map(weight).into(),
        op: vec![
            operation("q", "matmul", &["hidden", "wq"]),
            operation("k", "matmul", &["hidden", "wk"]),
            operation("v", "matmul", &["hidden", "wv"]),
            split("queries", "q"),
            split("keys", "k"),
            split("values", "v"),
            operation("output", "attention", &["queries", "keys", "values"]),
        ],
        outputs: None,
    };
    Task { declaration, layout, checkpoints: vec![0, 1, 2, 6] }
}

/// Tolerances of the reference workload.
#[must_use]
pub fn reference_tolerance(name: &str) -> f64 {
    if name == "output" { 5e-4 } else { 3e-3 }
}
