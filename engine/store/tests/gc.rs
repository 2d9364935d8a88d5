//! Eviction: what goes, what stays, and that builds which run meanwhile lose nothing.

mod place;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use store::{Batch, Defect, Digest, GcPolicy, RecordKind, References, Store};

use crate::place::Place;

fn key(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// A body of so many bytes, the record of the stage that made it, and the record of a target over it.
fn build(store: &Store, name: &str, bytes: usize) -> Digest {
    let body = name.repeat(bytes / name.len() + 1).into_bytes();
    let mut batch = Batch::default();
    let blob = batch.blob(body.into());
    batch.record(RecordKind::Action, key(name), &blob, References::blobs([blob])).expect("encodes");
    let stages = References { blobs: Vec::new(), records: vec![(RecordKind::Action, key(name))] };
    batch.record(RecordKind::Target, key(name), &1_u32, stages).expect("encodes");
    store.commit(&batch).expect("stored");
    store.add_run(name.as_bytes(), &[(RecordKind::Target, key(name))]).expect("stored");
    blob
}

fn has(store: &Store, name: &str) -> bool {
    let body: Option<Digest> = store.record(RecordKind::Action, &key(name)).expect("read");
    body.is_some_and(|body| store.blob(&body).is_ok())
}

#[test]
fn least_recently_used_goes_first_and_sizes_are_told() {
    let place = Place::new();
    let store = place.open();
    ["one", "two", "three"].iter().for_each(|name| {
        build(&store, name, 100_000);
    });
    // `one` is used again.
    store.add_run(b"again", &[(RecordKind::Target, key("one"))]).expect("stored");
    let dry = GcPolicy { max_bytes: Some(300_000), dry_run: true, ..GcPolicy::default() };
    let told = store.gc(&dry).expect("collects");
    assert!(["one", "two", "three"].iter().all(|name| has(&store, name)));
    drop(store);
    let store = place.open();
    let report = store.gc(&GcPolicy { dry_run: false, ..dry }).expect("collects");
    assert_eq!((report.records, report.blobs, report.bytes_before > 300_000), (told.records, told.blobs, true));
    assert!(report.bytes_after.abs_diff(told.bytes_after) < 20_000 && report.bytes_after < 300_000, "{report:?}, told {told:?}");
    assert_eq!(report.bytes_after, store.statistics().expect("counts").disk_bytes);
    assert!((100_000..110_000).contains(&report.working_set), "{report:?}");
    assert_eq!([has(&store, "one"), has(&store, "two"), has(&store, "three")], [true, false, true]);
    assert_eq!(store.check(false).expect("checks").defects, []);
}

#[test]
fn runs_keep_what_they_reach_and_the_rest_goes() {
    let place = Place::new();
    let store = place.open();
    ["one", "two", "three"].iter().for_each(|name| {
        build(&store, name, 10);
    });
    drop(store);
    let store = place.open();
    let report = store.gc(&GcPolicy { keep_runs: Some(2), ..GcPolicy::default() }).expect("collects");
    assert_eq!((report.records, report.runs), (2, 1));
    assert_eq!([has(&store, "one"), has(&store, "two"), has(&store, "three")], [false, true, true]);
    let report = store.gc(&GcPolicy { older_than: Some(Duration::from_secs(3600)), ..GcPolicy::default() }).expect("collects");
    assert_eq!(report.records, 0);
    std::thread::sleep(Duration::from_millis(5));
    drop(store);
    let store = place.open();
    let report = store.gc(&GcPolicy { older_than: Some(Duration::ZERO), ..GcPolicy::default() }).expect("collects");
    assert_eq!(report.records, 4);
    assert_eq!(store.statistics().expect("counts").records.len(), 0);
}

#[test]
fn nothing_goes_without_a_bound_but_blobs_that_no_record_needs() {
    let place = Place::new();
    let store = place.open();
    build(&store, "one", 100_000);
    let orphan = store.put_blob(&vec![7; 80_000]).expect("stored");
    drop(store);
    let store = place.open();
    let report = store.gc(&GcPolicy::default()).expect("collects");
    assert_eq!((report.records, report.blobs), (0, 1));
    assert!(store.blob(&orphan).is_err() && has(&store, "one"));
}

#[test]
fn what_another_process_looked_up_stays_until_it_ends() {
    let place = Place::new();
    build(&place.open(), "one", 100_000);
    let builder = place.open();
    let body: Digest = builder.record(RecordKind::Action, &key("one")).expect("read").expect("recorded");
    let everything = GcPolicy { max_bytes: Some(0), ..GcPolicy::default() };
    let collector = place.open();
    let report = collector.gc(&everything).expect("collects");
    assert_eq!((report.processes, report.in_use), (1, 1));
    assert!(builder.blob(&body).is_ok());
    drop(builder);
    assert_eq!(collector.gc(&everything).expect("collects").in_use, 0);
    assert_eq!(collector.statistics().expect("counts").large_blobs.count, 0);
}

#[test]
fn builders_never_miss_a_body_while_everything_is_evicted_again_and_again() {
    const BUILDERS: usize = 3;
    const ROUNDS: usize = 60;
    let place = Place::new();
    let done = AtomicUsize::new(0);
    let (missed, found) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for builder in 0..BUILDERS {
            let (place, done, missed, found) = (&place, &done, &missed, &found);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    // A store of its own, as another process has.
                    let store = place.open();
                    for piece in 0..8 {
                        // Small and large bodies, the same ones for all builders.
                        let (name, bytes) = (format!("piece {}", (round + piece) % 20), if piece % 2 == 0 { 40 } else { 70_000 });
                        let recorded: Option<Digest> = store.record(RecordKind::Action, &key(&name)).expect("read");
                        let body = match recorded {
                            Some(body) => {
                                found.fetch_add(1, Ordering::Relaxed);
                                body
                            }
                            None => build(&store, &name, bytes),
                        };
                        if (builder + round) % 3 == 0 {
                            std::thread::yield_now();
                        }
                        missed.fetch_add(usize::from(store.blob(&body).is_err()), Ordering::Relaxed);
                    }
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        let (place, done, is_over) = (&place, &done, &is_over);
        scope.spawn(move || {
            while done.load(Ordering::Relaxed) < BUILDERS {
                let policy = GcPolicy { max_bytes: Some(0), ..GcPolicy::default() };
                place.open().gc(&policy).expect("collects");
            }
            is_over.store(true, Ordering::Relaxed);
        });
    });
    assert!(is_over.load(Ordering::Relaxed));
    assert_eq!(missed.load(Ordering::Relaxed), 0);
    assert_eq!(place.open().check(false).expect("checks").defects, []);
    assert!(found.load(Ordering::Relaxed) > 0, "records were met, too");
}

#[test]
fn check_finds_what_is_wrong_and_repair_forgets_it() {
    let place = Place::new();
    let store = place.open();
    let (large, small) = (build(&store, "large", 100_000), build(&store, "small", 10));
    build(&store, "fine", 10);
    let hex = large.to_string();
    let file = place.root.join("cas").join(&hex[..2]).join(&hex[2..]);
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("set");
    std::fs::write(&file, "flipped").expect("written");
    std::fs::write(place.root.join("cas").join(&hex[..2]).join(".writing-x"), "half").expect("written");
    let database = rusqlite::Connection::open(place.root.join("records.sqlite")).expect("opens");
    database.execute("DELETE FROM small_blob WHERE digest = ?1", [small.as_bytes()]).expect("deleted");
    drop(database);
    let report = store.check(true).expect("checks");
    let stray = place.root.join("cas").join(&hex[..2]).join(".writing-x");
    assert_eq!(report.defects, {
        let mut expected = vec![
            Defect::MissingBlob { kind: RecordKind::Action, key: key("large"), blob: large },
            Defect::MissingBlob { kind: RecordKind::Action, key: key("small"), blob: small },
            Defect::Blob(large),
            Defect::Stray(stray),
        ];
        expected.sort();
        expected
    });
    assert_eq!(store.check(false).expect("checks").defects, []);
    assert!(has(&store, "fine") && !has(&store, "large") && !has(&store, "small"));
}
