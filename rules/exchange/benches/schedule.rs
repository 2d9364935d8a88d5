//! Time to schedule the known phases, and transfers by the second: 3,000 in 0.05 s are 60,000.

#[path = "../tests/phases/mod.rs"]
mod phases;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use exchange::Problem;
use phases::generated::{Sort, phase};

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("schedule");
    group.sample_size(10);
    for (name, problem) in measured() {
        group.throughput(Throughput::Elements(problem.transfers.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| exchange::schedule(&problem)));
    }
    group.finish();
}

/// Recorded phases, one all-to-all, and phases of every sort on all tiles.
fn measured() -> Vec<(String, Problem)> {
    let recorded = phases::RECORDED.map(|(name, text, _)| (name.to_owned(), phases::parse(text)));
    let sized = |(sort, transfers)| (format!("{sort:?}/{transfers}").to_lowercase(), phase(sort, 1472, transfers));
    let generated = Sort::ALL.into_iter().flat_map(|sort| [(sort, 3000), (sort, 100_000)]).map(sized);
    recorded.into_iter().chain([("gather".to_owned(), phases::gather())]).chain(generated).collect()
}

criterion_group!(benches, bench);
criterion_main!(benches);
