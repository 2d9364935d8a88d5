//! Time to schedule the known phases, and transfers by the second: 3,000 in 0.05 s are 60,000.

#[path = "../tests/phases/mod.rs"]
mod phases;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("schedule");
    group.sample_size(10);
    let recorded = phases::RECORDED.map(|(name, text, _)| (name, phases::parse(text)));
    for (name, problem) in recorded.into_iter().chain([("gather", phases::gather())]) {
        group.throughput(Throughput::Elements(problem.transfers.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| exchange::schedule(&problem)));
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
