//! What the pipeline does with an expanded program, each stage checked: from buffers to a package.

use std::collections::BTreeMap;
use std::sync::Arc;

use compiler::{
    assemble::{self, Description},
    code_blocks, host_plan,
    images::{self, Images, KernelObject, Objects, Parts},
    placement::{self, Demand, Placement},
    program::{Expanded, Variant},
    rows, runtime,
    tile_code::{self, TileCode},
};
use driver::SessionOptions;
use exchange::{Problem, Schedule};
use ipu21::parameters::Parameters;
use package::Package;
use simulator::ChipOptions;
use toolchain::{manifest::Kernel, object::Object};

/// Everything that the stages make of a program.
pub(crate) struct Built {
    pub(crate) expanded: Expanded,
    pub(crate) code: TileCode,
    pub(crate) placement: Placement,
    pub(crate) images: Images,
    pub(crate) package: Package,
}

/// Options of a session on the simulated chip.
pub(crate) fn options(seed: u64, threads: usize) -> SessionOptions {
    let chip = ChipOptions { seed, threads, clock_limit: 20_000_000 };
    SessionOptions { parameters: Arc::new(Parameters::shipped()), chip }
}

/// All stages behind planning. Phases whose pairs placement gives up are scheduled a second time.
pub(crate) fn build(expanded: Expanded) -> Built {
    let plan = host_plan::plan(&expanded);
    assert_eq!(host_plan::check(&expanded, &plan), Ok(()));
    let code = tile_code::generate(&expanded, &plan).expect("a sound program");
    assert_eq!(tile_code::check(&expanded, &plan, &code), Ok(()));
    assert_eq!(rows::check_entries(&expanded, &code), Ok(()));
    let objects = objects(&expanded);
    let mut schedules: Vec<Schedule> = expanded.phases.iter().map(scheduled).collect();
    let mut placement = place(&expanded, &code_blocks_of(&plan, &code, &objects, &schedules), &schedules);
    if !placement.given_up.is_empty() {
        schedules = expanded.phases.iter().map(|problem| scheduled(&serialised(problem, &placement))).collect();
        placement = place(&expanded, &code_blocks_of(&plan, &code, &objects, &schedules), &schedules);
        assert_eq!(placement.given_up, []);
    }
    let phase_rows: images::Rows = schedules.iter().map(|schedule| rows::relocate(schedule, &placement).expect("encodable rows")).collect();
    for (phase, (schedule, rows)) in (0..).zip(schedules.iter().zip(&phase_rows)) {
        assert_eq!(rows::check(schedule, &placement, phase, rows), Ok(()));
    }
    let parts = Parts { expanded: &expanded, plan: &plan, code: &code, objects: &objects, placement: &placement, rows: &phase_rows };
    let images = images::build(&parts).expect("everything links");
    let row_bytes: Vec<u32> = schedules.iter().map(rows::row_bytes).collect();
    assert_eq!(images::check(&placement, &row_bytes, &images), Ok(()));
    let horizons: Vec<u64> = schedules.iter().map(|schedule| u64::from(schedule.figures.horizon)).collect();
    let planned_clocks = vec![1; expanded.steps.len()];
    let description =
        Description { producer: "test", parameters: [0; 32], code_parameters: &[], planned_clocks: &planned_clocks, horizons: &horizons };
    let package = assemble::assemble(&parts, &images, &description);
    assert_eq!(package.check(), Ok(()));
    Built { expanded, code, placement, images, package }
}

fn scheduled(problem: &Problem) -> Schedule {
    let schedule = exchange::schedule(problem).expect("a sound problem");
    assert_eq!(exchange::validate(problem, &schedule), Ok(()));
    schedule
}

/// The problem with the pairs that placement gave up; a pair is unordered, so both directions are kept apart in time.
fn serialised(problem: &Problem, placement: &Placement) -> Problem {
    let pairs = placement.given_up.iter().flat_map(|(tile, first, second)| [(*first, *second, *tile), (*second, *first, *tile)]);
    Problem { serial: pairs.collect(), ..problem.clone() }
}

fn code_blocks_of(plan: &host_plan::HostPlan, code: &TileCode, objects: &Objects, schedules: &[Schedule]) -> Vec<placement::BlockDemand> {
    let row_bytes: Vec<u32> = schedules.iter().map(rows::row_bytes).collect();
    code_blocks::demands(plan, code, objects, &row_bytes)
}

fn place(expanded: &Expanded, blocks: &[placement::BlockDemand], schedules: &[Schedule]) -> Placement {
    let kernel_apart = code_blocks::kernel_apart(expanded, &manifests()).expect("the manifest knows the kernels");
    let schedule_apart: Vec<_> = schedules.iter().flat_map(|schedule| schedule.apart.iter().copied()).collect();
    let demand = Demand { expanded, blocks, kernel_apart: &kernel_apart, schedule_apart: &schedule_apart };
    let placement = placement::place(&demand).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(placement::check(&demand, &placement), Ok(()));
    placement
}

fn objects(expanded: &Expanded) -> Objects {
    let manifests = manifests();
    let kernel = |variant: &Variant| {
        let manifest = &manifests[&variant.kernel];
        let text = kernels::files().iter().find(|file| file.name == manifest.source).expect("a source of the library").text;
        KernelObject { object: assembled(&manifest.source, text, &variant.parameters), entry: manifest.entry.clone() }
    };
    let source = runtime::source(expanded.checkpoints.len());
    Objects {
        kernels: expanded.variants.iter().map(kernel).collect(),
        copy: kernel(&Variant { kernel: "copy".to_owned(), parameters: BTreeMap::new() }),
        runtime: assembled(&source.name, &source.text, &runtime::defines()),
    }
}

fn assembled(name: &str, text: &str, defines: &BTreeMap<String, i64>) -> Object {
    let source = toolchain::Source { name: name.to_owned(), text: text.to_owned() };
    let bytes = toolchain::assemble(&source, defines, &Parameters::shipped()).expect("the source is right");
    Object::parse(&bytes).expect("an object")
}

fn manifests() -> BTreeMap<String, Kernel> {
    let kernels = toolchain::manifest::parse(kernels::manifest()).expect("the library's manifest is right");
    kernels.into_iter().map(|kernel| (kernel.name.clone(), kernel)).collect()
}
