//! Whole builds and runs, in this process: `cargo bench -p tests`, about a minute.
//!
//! `cold` builds and runs from an empty store; `null` builds again in a new session on the store of the first, where no stage
//! executes. The command line adds its start and the reading of its arguments.

use std::num::NonZeroUsize;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use graph::EngineOptions;
use tests::TemporaryWorkspace;

const REFERENCE: &str = include_str!("../../workspaces/attention/sweeps/attention-packed/BUILD.toml");
const RUN: &str = "//:run";

/// The reference workload with 60 tokens on 8 tiles.
fn small() -> String {
    REFERENCE.replace("729", "60").replace("tiles = 64", "tiles = 8")
}

fn build(workspace: &TemporaryWorkspace) -> usize {
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut session = workspace.session(EngineOptions { threads, shuffle: None });
    session.build(RUN).unwrap_or_else(|failure| panic!("{failure}"));
    session.executed().len()
}

fn builds(criterion: &mut Criterion) {
    for (name, declaration) in [("small", small()), ("reference", REFERENCE.to_owned())] {
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10);
        group.bench_function("cold", |bencher| {
            bencher.iter_batched_ref(|| TemporaryWorkspace::new(&declaration), |workspace| build(workspace), BatchSize::PerIteration);
        });
        let workspace = TemporaryWorkspace::new(&declaration);
        assert!(build(&workspace) > 0, "a build from an empty store executes stages");
        group.bench_function("null", |bencher| bencher.iter(|| assert_eq!(build(&workspace), 0)));
        group.finish();
    }
}

criterion_group!(benches, builds);
criterion_main!(benches);
