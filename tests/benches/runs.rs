//! Runs of compiled programs on the simulated chip with two threads, from the opened session to the outputs: `cargo bench -p tests
//! --bench runs`. Compiling is not measured. Every figure is printed with the clocks of the program and the memory of the process.
//!
//! `-- product N` measures the product of two matrices of N x N instead, on all tiles.

use std::collections::BTreeMap;
use std::time::Instant;

use compiler::layout::Layout;
use compiler::model::Declaration;
use compiler::program::Group;
use driver::Session;
use tests::compiled::{self, Task, Tensors, Unchanged};

const THREADS: usize = 2;
const REPETITIONS: usize = 5;

/// A product of square matrices on all tiles.
fn product(size: u32) -> Task {
    let declaration = Declaration {
        inputs: BTreeMap::from([("a".to_owned(), compiled::tensor(&[1, size, size]))]),
        parameters: BTreeMap::from([("b".to_owned(), compiled::tensor(&[size, size]))]),
        op: vec![compiled::operation("c", "matmul", &["a", "b"])],
        outputs: None,
    };
    // With f16 partial sums: their error is below 3e-2 for results of variance 1.
    Task { declaration, layout: Layout { accuracy: 3e-2, ..Layout::on(1472) }, checkpoints: Vec::new() }
}

/// Small values, so that no sum leaves f16.
fn tensors(task: &Task, seed: u64) -> Tensors {
    compiled::drawn(&compiled::model(task).unwrap_or_else(|fault| panic!("{fault}")), seed)
}

fn resident_peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[expect(clippy::print_stdout, reason = "the figures are the purpose of the program")]
fn measure(name: &str, task: &Task, repetitions: usize) {
    let compiled = compiled::compile(task, &Unchanged).unwrap_or_else(|refusal| panic!("{refusal}"));
    let tensors = tensors(task, 1);
    let weights = compiled::files(&compiled.expanded, Group::Weight, &tensors, &Unchanged);
    for _ in 0..repetitions {
        let mut options = compiled::options(1);
        options.chip.threads = THREADS;
        options.chip.clock_limit = 1 << 40;
        let start = Instant::now();
        let mut session = Session::open(&compiled.package, &options).unwrap_or_else(|fault| panic!("{fault}"));
        let opened = start.elapsed();
        session.initialize(&weights).unwrap_or_else(|fault| panic!("{fault}"));
        let initialized = start.elapsed();
        let results = compiled::run_from(&mut session, &compiled, &tensors, &Unchanged).unwrap_or_else(|fault| panic!("{fault}"));
        let total = start.elapsed();
        println!(
            "{name}: open {opened:.3?} initialize {:.3?} run {:.3?} total {total:.3?}; {} clocks, peak {} MiB",
            initialized - opened,
            total - initialized,
            results.clocks,
            resident_peak_kib() / 1024
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().position(|argument| argument == "product").and_then(|at| arguments.get(at + 1)?.parse().ok()) {
        Some(size) => measure("product", &product(size), 1),
        None => measure("reference", &compiled::attention(729, 72, 1, Layout::on(64)), REPETITIONS),
    }
}
