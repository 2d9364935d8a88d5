//! Each call on files in turn fails: the store says so or goes on, and afterwards it is as good as before.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use store::{Batch, Digest, GcPolicy, RecordKind, References, SourceRead, Store, StoreFault, faults};

const ERRORS: [(&str, i32); 3] = [("ENOSPC", 28), ("EIO", 5), ("EMFILE", 24)];

/// What a build does with a store: it looks up what it makes, makes what is not there, reads it back, and leaves a run.
fn build(root: &Utf8Path) -> Result<BTreeMap<String, Digest>, String> {
    let told = |fault: StoreFault| fault.to_string();
    let store = Store::open(root).map_err(told)?;
    let source = root.with_file_name("source");
    let SourceRead::Found(source) = store.source_digest(&source).map_err(told)? else { return Err("no source".to_owned()) };
    let mut results = BTreeMap::new();
    for (name, bytes) in [("large", 70_000), ("small", 50)] {
        results.insert(name.to_owned(), stage(&store, name, source, bytes, 1)?);
    }
    results.insert("pack".to_owned(), stage(&store, "pack", source, 300, 20)?);
    store.add_run(b"run", &[(RecordKind::Action, Digest::of(b"large"))]).map_err(told)?;
    Ok(results)
}

/// The digest of all results of a stage, from the store or made and stored.
fn stage(store: &Store, name: &str, source: Digest, bytes: usize, count: u8) -> Result<Digest, String> {
    let told = |fault: StoreFault| fault.to_string();
    let key = Digest::of(name.as_bytes());
    let _lock = store.lock_key(&key).map_err(told)?;
    let recorded: Option<Vec<Digest>> = store.record(RecordKind::Action, &key).map_err(told)?;
    if let Some(digests) = recorded {
        let found: Result<Vec<_>, _> = digests.iter().map(|digest| store.blob(digest)).collect();
        match found {
            Ok(bodies) => return Ok(Digest::of(&bodies.concat())),
            Err(miss) if is_passing(&miss) => return Err(miss.to_string()),
            Err(_) => {}
        }
    }
    let bodies: Vec<Vec<u8>> = (0..count).map(|number| source.as_bytes().repeat(bytes / 32 + 1 + usize::from(number))).collect();
    let mut batch = Batch::default();
    let digests: Vec<Digest> = bodies.iter().map(|body| batch.blob(body.as_slice().into())).collect();
    batch.record(RecordKind::Action, key, &digests, References::blobs(digests.iter().copied())).map_err(told)?;
    store.commit(&batch).map_err(told)?;
    Ok(Digest::of(&bodies.concat()))
}

fn is_passing(miss: &store::BlobMiss) -> bool {
    matches!(miss, store::BlobMiss::Unreadable { fault, .. } if fault.may_pass())
}

fn collect(root: &Utf8Path) -> Result<(), String> {
    let policy = GcPolicy { max_bytes: Some(130_000), ..GcPolicy::default() };
    Store::open(root).and_then(|store| store.gc(&policy)).map(|_| ()).map_err(|fault| fault.to_string())
}

struct Place {
    _directory: tempfile::TempDir,
    root: Utf8PathBuf,
}

fn place() -> Place {
    // In memory where there is such a place: hundreds of new databases wait for a disk.
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary directory");
    let root = Utf8Path::from_path(directory.path()).expect("UTF-8").join("store");
    std::fs::write(root.with_file_name("source"), "source").expect("written");
    Place { _directory: directory, root }
}

#[derive(Default)]
struct Counts {
    points: u64,
    failed: u64,
    succeeded: u64,
}

/// Does `work` in a place made by `prepare` with each of its calls failing, once or from then on, and looks at what is left.
fn sweep(what: &str, stride: u64, prepare: impl Fn(&Utf8Path), work: impl Fn(&Utf8Path) -> Result<(), String>) {
    let clean = place();
    let expected = build(&clean.root).expect("builds");
    let first = place();
    prepare(&first.root);
    faults::fail(u64::MAX..=u64::MAX, 0);
    work(&first.root).expect("works");
    let calls = faults::stop();
    for (name, errno) in ERRORS {
        let mut counts = Counts::default();
        for call in (0..calls).step_by(stride as usize) {
            for last in [call, u64::MAX] {
                let place = place();
                prepare(&place.root);
                faults::fail(call..=last, errno);
                let result = work(&place.root);
                faults::stop();
                counts.points += 1;
                match &result {
                    Ok(()) => counts.succeeded += 1,
                    Err(message) => {
                        counts.failed += 1;
                        assert!(!message.is_empty());
                    }
                }
                let context = format!("{what}, {name} at calls {call} to {last} of {calls}: {result:?}");
                assert_eq!(build(&place.root), Ok(expected.clone()), "{context}");
                let store = Store::open(&place.root).expect("opens");
                let is_rest = |defect: &store::Defect| matches!(defect, store::Defect::Stray(_));
                let mut defects = store.check(false).expect("checks").defects;
                // A file that could not be removed any more goes with the next collection.
                defects.retain(|defect| last == call || !is_rest(defect));
                assert_eq!(defects, [], "{context}");
                store.gc(&GcPolicy::default()).expect("collects");
                assert_eq!(store.check(false).expect("checks").defects, [], "{context}");
            }
        }
        let Counts { points, failed, succeeded } = counts;
        eprintln!("{what}, {name}: {points} failures at {calls} calls, {failed} told, {succeeded} overcome");
    }
}

/// `STORE_FAULTS=all` for each call; else every third.
#[test]
fn every_call_may_fail_and_the_next_build_is_that_of_an_empty_store() {
    let stride = if std::env::var("STORE_FAULTS").is_ok_and(|value| value == "all") { 1 } else { 3 };
    sweep("first build", stride, |_| {}, |root| build(root).map(|_| ()));
    sweep("second build", stride, |root| drop(build(root).expect("builds")), |root| build(root).map(|_| ()));
    sweep("collection", stride, |root| drop(build(root).expect("builds")), collect);
}
