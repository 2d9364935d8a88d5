//! What the store's operations cost, with its directory in the place for temporary files.

#[path = "../tests/place/mod.rs"]
mod place;

use std::hint::black_box;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use store::{Batch, Digest, GcPolicy, RecordKind, References, Store};

use crate::place::Place;

fn key(number: u32) -> Digest {
    Digest::of(&number.to_le_bytes())
}

/// `count` records from `first` on, each with a blob of `bytes`.
fn batch(first: u32, count: u32, bytes: usize) -> Batch {
    let mut batch = Batch::default();
    for number in first..first + count {
        let mut body = vec![7; bytes];
        body[..4].copy_from_slice(&number.to_le_bytes());
        let blob = batch.blob(body.into());
        batch.record(RecordKind::Action, key(number), &blob, References::blobs([blob])).expect("encodes");
    }
    batch
}

fn blobs(criterion: &mut Criterion) {
    let place = Place::new();
    let store = place.open();
    let mut next = 0_u32;
    for (name, bytes) in [("small", 1000), ("large", 1 << 20)] {
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20).throughput(Throughput::Bytes(bytes as u64));
        group.bench_function("put", |bencher| {
            let new = || {
                next += 1;
                let mut body = vec![0; bytes];
                body[..4].copy_from_slice(&next.to_le_bytes());
                body
            };
            bencher.iter_batched(new, |body| store.put_blob(&body).expect("stored"), BatchSize::SmallInput);
        });
        let digest = store.put_blob(&vec![1; bytes]).expect("stored");
        group.bench_function("get", |bencher| bencher.iter(|| store.blob(black_box(&digest)).expect("found")));
        group.finish();
    }
}

fn records(criterion: &mut Criterion) {
    let place = Place::new();
    let store = place.open();
    let mut next = 0;
    let mut group = criterion.benchmark_group("records");
    group.sample_size(20);
    group.bench_function("commit of 1,472 with a pack", |bencher| {
        let new = || {
            next += 1472;
            batch(next, 1472, 200)
        };
        bencher.iter_batched(new, |batch| store.commit(&batch).expect("stored"), BatchSize::LargeInput);
    });
    let lookup = |store: &Store, number: u32| store.record::<Digest>(RecordKind::Action, &key(number)).expect("read").expect("recorded");
    group.bench_function("lookup of one announced before", |bencher| bencher.iter(|| lookup(&store, 2000)));
    group.bench_function("1,000 first lookups of a process", |bencher| {
        bencher.iter_batched(|| place.open(), |store| (1472..2472).for_each(|number| _ = lookup(&store, number)), BatchSize::PerIteration);
    });
    group.finish();
}

fn stat_cache(criterion: &mut Criterion) {
    const FILES: usize = 1000;
    let place = Place::new();
    let files: Vec<Utf8PathBuf> = (0..FILES).map(|number| place.root.with_file_name(format!("source {number}"))).collect();
    files.iter().for_each(|file| std::fs::write(file, file.as_str()).expect("written"));
    // Stamps of files that were just written are not trusted.
    std::thread::sleep(Duration::from_millis(2100));
    let ask = |store: &Store| files.iter().for_each(|file| _ = store.source_digest(file).expect("read"));
    let store = place.open();
    ask(&store);
    store.commit(&Batch::default()).expect("stored");
    let mut group = criterion.benchmark_group("stat cache");
    group.sample_size(20);
    group.bench_function("1,000 unchanged files in a new process", |bencher| {
        bencher.iter_batched(|| place.open(), |store| ask(&store), BatchSize::PerIteration);
    });
    group.finish();
}

/// Of 100,000 blobs in packs, and of 2,000 that are files, half is evicted; measured once each, since it takes as long to fill a store.
fn collections(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gc");
    group.sample_size(10);
    for (name, count, bytes) in [("half of 100,000 packed blobs", 100_000_u32, 200), ("half of 2,000 files", 2000, 70_000)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                (0..rounds.min(2)).map(|_| collection(count, bytes)).sum::<Duration>() * rounds as u32 / rounds.min(2) as u32
            });
        });
    }
    group.finish();
}

fn collection(count: u32, bytes: usize) -> Duration {
    let place = Place::new();
    let store = place.open();
    for first in (0..count).step_by(1000) {
        store.commit(&batch(first, 1000, bytes)).expect("stored");
    }
    let used: Vec<_> = (0..count).step_by(2).map(|number| (RecordKind::Action, key(number))).collect();
    store.add_run(b"", &used).expect("stored");
    drop(store);
    let store = place.open();
    let started = Instant::now();
    let report = store.gc(&GcPolicy { keep_runs: Some(1), ..GcPolicy::default() }).expect("collects");
    let elapsed = started.elapsed();
    assert_eq!(report.blobs, count as usize / 2);
    elapsed
}

criterion_group!(benches, blobs, records, stat_cache, collections);
criterion_main!(benches);
