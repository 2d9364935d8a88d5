//! What other programs, other processes and a failing disk do to a store, and what holds all the same.

mod place;

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use store::{Batch, BlobMiss, Defect, Digest, GcPolicy, RecordKind, References, Store};

use crate::place::Place;

const LARGE: usize = 100_000;

fn database(place: &Place) -> rusqlite::Connection {
    rusqlite::Connection::open(place.root.join("records.sqlite")).expect("opens")
}

fn key(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn body(name: &str) -> Vec<u8> {
    name.repeat(LARGE / name.len() + 1).into_bytes()
}

/// Stores `body` and a record that needs it.
fn build(store: &Store, name: &str, body: Vec<u8>) -> Digest {
    let mut batch = Batch::default();
    let blob = batch.blob(body.into());
    batch.record(RecordKind::Action, key(name), &blob, References::blobs([blob])).expect("encodes");
    store.commit(&batch).expect("stored");
    blob
}

/// Runs `test` of this file again in a shell that did `prepare`.
fn in_child(prepare: &str, test: &str, root: &Utf8Path) {
    let program = std::env::current_exe().expect("this test");
    let output = Command::new("bash")
        .args(["-c", &format!("{prepare}; exec \"$0\" --exact {test} --nocapture --test-threads=1")])
        .arg(program)
        .env("HAZARD_ROOT", root)
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    let told = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "{told}");
}

/// The store's directory in a child of [`in_child`].
fn root_of_child() -> Option<Utf8PathBuf> {
    std::env::var("HAZARD_ROOT").ok().map(Utf8PathBuf::from)
}

#[test]
fn database_of_a_newer_program_is_refused_and_left_as_it_is() {
    let place = Place::new();
    drop(place.open());
    database(&place).pragma_update(None, "user_version", 99).expect("set");
    let fault = Store::open(&place.root).err().expect("refused").to_string();
    assert!(fault.contains("has format `version 99 of the records`, this program needs `version "), "{fault}");
    let version: i64 = database(&place).pragma_query_value(None, "user_version", |row| row.get(0)).expect("read");
    assert_eq!(version, 99);
}

#[test]
fn version_file_that_was_cut_short_is_written_again() {
    let place = Place::new();
    drop(place.open());
    let version = place.root.join("VERSION");
    let whole = fs::read(&version).expect("read");
    for length in 0..whole.len() {
        fs::remove_file(&version).expect("removed");
        fs::write(&version, &whole[..length]).expect("written");
        drop(place.open());
        assert_eq!(fs::read(&version).expect("read"), whole);
    }
}

#[test]
fn version_file_that_holds_no_version_is_written_again_beside_a_database_alone() {
    let place = Place::new();
    drop(place.open());
    let version = place.root.join("VERSION");
    let whole = fs::read(&version).expect("read");
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x80;
        fs::remove_file(&version).expect("removed");
        fs::write(&version, &damaged).expect("written");
        drop(place.open());
        assert_eq!(fs::read(&version).expect("read"), whole);
    }
    // A directory that was never a store is left alone.
    let other = place.root.join("other");
    fs::create_dir(&other).expect("made");
    fs::write(other.join("VERSION"), b"1.2.\xff3\n").expect("written");
    let fault = Store::open(&other).err().expect("refused").to_string();
    assert!(fault.contains("has format `1.2.\u{fffd}3`"), "{fault}");
    assert_eq!(fs::read(other.join("VERSION")).expect("read"), b"1.2.\xff3\n");
}

#[test]
fn folder_in_place_of_a_blob_gives_way() {
    let place = Place::new();
    let store = place.open();
    let bytes = vec![7; 1 << 20];
    let digest = store.put_blob(&bytes).expect("stored");
    let name = digest.to_string();
    let blob = place.root.join("cas").join(&name[..2]).join(&name[2..]);
    fs::remove_file(&blob).expect("removed");
    fs::create_dir_all(blob.join("inside")).expect("made");
    assert!(store.blob(&digest).is_err());
    store.put_blob(&bytes).expect("stored");
    assert_eq!(store.blob(&digest), Ok(bytes));
}

#[test]
fn child_without_descriptors() {
    let Some(root) = root_of_child() else { return };
    let store = Store::open(&root).expect("opens");
    let blob = Digest::of(&body("one"));
    let mut held = Vec::new();
    while let Ok(file) = fs::File::open("/dev/null") {
        held.push(file);
    }
    let without = store.blob(&blob);
    drop(held);
    assert!(matches!(without, Err(BlobMiss::Unreadable { fault, .. }) if fault.may_pass()));
    assert_eq!(store.blob(&blob), Ok(body("one")));
}

#[test]
fn blob_outlives_a_moment_without_descriptors() {
    let place = Place::new();
    build(&place.open(), "one", body("one"));
    in_child("ulimit -n 40", "child_without_descriptors", &place.root);
}

#[test]
fn blob_that_cannot_be_read_stays_and_is_written_again_by_its_producer() {
    let place = Place::new();
    let store = place.open();
    let large = build(&store, "one", body("one"));
    let small = store.put_pack((0..20_u8).map(|number| vec![number; 10].into()).collect()).expect("stored")[3];
    let packs: Vec<Utf8PathBuf> = files_below(&place.root.join("packs"));
    let files = [files_below(&place.root.join("cas")), packs].concat();
    // No error that a file system gives on demand says as little as an I/O error, but a loop of links.
    files.iter().for_each(|file| {
        fs::rename(file, format!("{file}.sound")).expect("renamed");
        std::os::unix::fs::symlink(file, file).expect("linked");
    });
    for digest in [large, small] {
        assert!(matches!(store.blob(&digest), Err(BlobMiss::Unreadable { fault, .. }) if !fault.may_pass()));
    }
    assert!(files.iter().all(|file| file.is_symlink()), "what cannot be read is left alone");
    store.put_blob(&body("one")).expect("stored");
    store.put_blob(&[3; 10]).expect("stored");
    assert_eq!((store.blob(&large), store.blob(&small)), (Ok(body("one")), Ok(vec![3; 10])));
}

#[test]
fn check_tells_of_a_blob_that_cannot_be_read_and_goes_on() {
    let place = Place::new();
    let store = place.open();
    let (blob, damaged) = (build(&store, "one", body("one")), build(&store, "two", body("two")));
    let file_of = |digest: &Digest| {
        let hex = digest.to_string();
        place.root.join("cas").join(&hex[..2]).join(&hex[2..])
    };
    fs::remove_file(file_of(&blob)).expect("removed");
    fs::create_dir(file_of(&blob)).expect("made");
    fs::remove_file(file_of(&damaged)).expect("removed");
    fs::write(file_of(&damaged), "flipped").expect("written");
    let defects = store.check(true).expect("checks").defects;
    assert_eq!(defects.len(), 4, "{defects:?}");
    let unreadable =
        |defect: &Defect| matches!(defect, Defect::Unreadable { blob: found, reason } if *found == blob && reason.contains("directory"));
    assert!(defects.iter().any(unreadable) && defects.contains(&Defect::Blob(damaged)), "{defects:?}");
    assert_eq!(store.check(false).expect("checks").defects, []);
}

#[test]
fn flipped_bits_beside_a_value_are_found() {
    let place = Place::new();
    let store = place.open();
    build(&store, "one", b"one".to_vec());
    let two = build(&store, "two", b"two".to_vec());
    store.add_run(b"run", &[(RecordKind::Action, key("one"))]).expect("stored");
    store.add_run(b"run", &[(RecordKind::Action, key("two"))]).expect("stored");
    // In the digest of the blob that a record needs, and in that of the record that a run used.
    let flip = |table: &str, column: &str, at: usize| {
        let row: (i64, Vec<u8>) = database(&place)
            .query_row(&format!("SELECT max(written), {column} FROM {table}"), [], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("read");
        let mut flipped = row.1.clone();
        flipped[at] ^= 4;
        let sql = format!("UPDATE {table} SET {column} = ?1 WHERE {column} = ?2");
        assert_eq!(database(&place).execute(&sql, rusqlite::params![flipped, row.1]).expect("written"), 1);
    };
    flip("record", "refers", 7);
    flip("run", "used", 20);
    assert_eq!(store.runs(10).expect("read").len(), 1);
    let damaged = store.check(true).expect("checks").defects;
    assert!(matches!(damaged[..], [Defect::Record(RecordKind::Action, _), Defect::Run(_)]), "{damaged:?}");
    assert_eq!(store.check(false).expect("checks").defects, []);
    assert_eq!(store.blob(&two), Ok(b"two".to_vec()), "a repair takes nothing that is sound");
}

#[test]
fn damaged_record_is_evicted_and_takes_nothing_sound_with_it() {
    let place = Place::new();
    build(&place.open(), "one", b"one".to_vec());
    database(&place).execute("UPDATE record SET refers = zeroblob(length(refers))", []).expect("written");
    let store = place.open();
    assert_eq!(store.record::<Digest>(RecordKind::Action, &key("one")), Ok(None));
    assert_eq!(store.references(RecordKind::Action, &key("one")), Ok(None));
    assert_eq!(store.gc(&GcPolicy::default()).expect("collects").records, 1);
}

const EVERYTHING: GcPolicy = GcPolicy { max_bytes: Some(0), older_than: None, keep_runs: None, dry_run: false };

#[test]
fn what_a_build_looked_up_survives_any_number_of_collections() {
    let place = Place::new();
    let blobs = [build(&place.open(), "one", body("one")), build(&place.open(), "two", b"two".to_vec())];
    let other = place.open();
    // Another record needs the same blob; a target is made of both stages.
    other.put_record(RecordKind::Inputs, key("one"), &1_u32, References::blobs([blobs[0]])).expect("stored");
    let stages = References { blobs: Vec::new(), records: vec![(RecordKind::Action, key("one")), (RecordKind::Action, key("two"))] };
    other.put_record(RecordKind::Target, key("both"), &1_u32, stages).expect("stored");
    drop(other);
    let builder = place.open();
    builder.record::<u32>(RecordKind::Target, &key("both")).expect("read").expect("recorded");
    for round in 0..4 {
        let report = place.open().gc(&EVERYTHING).expect("collects");
        assert_eq!((report.records, report.blobs, report.in_use), (usize::from(round == 0), 0, 3), "{report:?}");
        // What is found later, through what was found first, is there too; and what a record promises stays when it is lost.
        if round == 1 {
            let found = |name| builder.record::<Digest>(RecordKind::Action, &key(name)).expect("read");
            assert_eq!([found("one"), found("two")], blobs.map(Some));
        }
    }
    place.open().remove_record(RecordKind::Action, &key("one")).expect("removed");
    place.open().gc(&EVERYTHING).expect("collects");
    assert_eq!((builder.blob(&blobs[0]), builder.blob(&blobs[1])), (Ok(body("one")), Ok(b"two".to_vec())));
    drop(builder);
    let report = place.open().gc(&EVERYTHING).expect("collects");
    assert_eq!((report.records, report.blobs, report.processes), (2, 2, 0), "{report:?}");
}

#[test]
fn child_whose_lease_is_cut_short() {
    let Some(root) = root_of_child() else { return };
    let builder = Store::open(&root).expect("opens");
    // The lease file meets the limit in the middle of an entry.
    let found = |number: u32| builder.record::<u32>(RecordKind::Action, &key(&number.to_string()));
    let failed = (0..3000).find_map(|number| found(number).err()).expect("the limit was met");
    assert!(failed.may_pass(), "{failed}");
    let raised = Command::new("prlimit").args(["--fsize=unlimited:unlimited", "--pid", &std::process::id().to_string()]).status();
    assert!(raised.expect("runs").success());
    let one: Digest = builder.record(RecordKind::Action, &key("one")).expect("read").expect("recorded");
    Store::open(&root).expect("opens").gc(&EVERYTHING).expect("collects");
    assert_eq!(builder.blob(&one), Ok(body("one")));
}

#[test]
fn lease_protects_after_a_write_to_it_was_cut_short() {
    let place = Place::new();
    let store = place.open();
    build(&store, "one", body("one"));
    let mut batch = Batch::default();
    for number in 0..3000_u32 {
        batch.record(RecordKind::Action, key(&number.to_string()), &number, References::none()).expect("encodes");
    }
    store.commit(&batch).expect("stored");
    drop(store);
    // 64 blocks of 1,024 bytes are no multiple of an entry.
    in_child("trap '' XFSZ; ulimit -S -f 64", "child_whose_lease_is_cut_short", &place.root);
}

#[test]
fn checks_and_repairs_beside_builds_find_nothing_wrong_and_do_no_harm() {
    let place = Place::new();
    drop(place.open());
    let is_over = AtomicBool::new(false);
    let (checks, collections) = std::thread::scope(|scope| {
        let checks = scope.spawn(|| {
            let checker = place.open();
            let mut checks = 0;
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(checker.check(checks % 2 == 0).expect("checks").defects, []);
                checks += 1;
            }
            checks
        });
        let collections = scope.spawn(|| {
            let mut collections = 0;
            while !is_over.load(Ordering::Relaxed) {
                place.open().gc(&EVERYTHING).expect("collects");
                collections += 1;
            }
            collections
        });
        let store = place.open();
        for number in 0..100_u32 {
            let name = number.to_string();
            build(&store, &name, number.to_le_bytes().to_vec());
            let large = build(&store, &name, body(&name));
            assert_eq!(store.blob(&large), Ok(body(&name)));
        }
        is_over.store(true, Ordering::Relaxed);
        (checks.join().expect("no panic"), collections.join().expect("no panic"))
    });
    assert!(checks > 0 && collections > 0, "{checks} checks, {collections} collections");
}

#[test]
fn what_killed_processes_and_replaced_databases_leave_behind_is_collected() {
    let place = Place::new();
    build(&place.open(), "one", body("one"));
    // As after a kill between a pack and its index, between a file and its name, and after the database was damaged.
    let hex = key("pack").to_string();
    let below = |name: &str| place.root.join(name).join(&hex[..2]);
    let rests = [
        below("packs").join(&hex[2..]),
        below("packs").join(".writing-abc"),
        below("cas").join(".writing-def"),
        place.root.join(".writing-ghi"),
        place.root.join("records.sqlite.damaged-1"),
    ];
    for rest in &rests {
        fs::create_dir_all(rest.parent().expect("a folder")).expect("made");
        fs::write(rest, vec![0; 1000]).expect("written");
    }
    let before = files_below(&place.root).len();
    let report = place.open().gc(&GcPolicy::default()).expect("collects");
    assert!(rests.iter().all(|rest| !rest.exists()), "{report:?}");
    assert!(files_below(&place.root).len() >= before - rests.len(), "nothing else");
    assert_eq!(place.open().blob(&Digest::of(&body("one"))), Ok(body("one")));
}

#[test]
fn cap_holds_for_the_disk_when_packs_are_mostly_dead() {
    let place = Place::new();
    let mut batch = Batch::default();
    for number in 0..50_u8 {
        let blob = batch.blob(vec![number; 60_000].into());
        batch.record(RecordKind::Action, key(&number.to_string()), &blob, References::blobs([blob])).expect("encodes");
    }
    let store = place.open();
    store.commit(&batch).expect("stored");
    let used = |numbers: std::ops::Range<u8>| numbers.map(|number| (RecordKind::Action, key(&number.to_string()))).collect::<Vec<_>>();
    store.add_run(b"", &used(7..47)).expect("stored");
    drop(store);
    let packs = || place.open().statistics().expect("counts").packs;
    let collect = |policy| place.open().gc(&policy).expect("collects");
    // Most of the pack is needed.
    collect(GcPolicy { keep_runs: Some(1), ..GcPolicy::default() });
    assert_eq!((packs().count, packs().bytes), (1, 3_000_000));
    // The cap needs what is left of it.
    let report = collect(GcPolicy { max_bytes: Some(2_600_000), ..GcPolicy::default() });
    assert_eq!((report.records, packs().bytes), (0, 2_400_000), "{report:?}");
    place.open().add_run(b"", &used(7..9)).expect("stored");
    collect(GcPolicy { keep_runs: Some(1), ..GcPolicy::default() });
    assert_eq!((packs().count, packs().bytes), (1, 120_000));
    let store = place.open();
    (7..9).for_each(|number| assert_eq!(store.blob(&Digest::of(&vec![number; 60_000])), Ok(vec![number; 60_000])));
    assert_eq!(store.check(false).expect("checks").defects, []);
    drop(store);
    let report = collect(GcPolicy { max_bytes: Some(100_000), ..GcPolicy::default() });
    assert!(report.bytes_after <= 100_000, "{report:?}");
}

#[test]
fn pack_is_written_anew_under_readers() {
    let place = Place::new();
    let store = place.open();
    let blobs: Vec<Vec<u8>> = (0..200_u8).map(|number| vec![number; 500]).collect();
    let mut batch = Batch::default();
    for blob in &blobs {
        let digest = batch.blob(blob.as_slice().into());
        batch.record(RecordKind::Action, digest, &digest, References::blobs([digest])).expect("encodes");
    }
    store.commit(&batch).expect("stored");
    drop(store);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = place.open();
        let kept = &blobs[..20];
        // Announced, so that they stay.
        kept.iter().for_each(|blob| assert!(reader.record::<Digest>(RecordKind::Action, &Digest::of(blob)).expect("read").is_some()));
        let is_over = &is_over;
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                kept.iter().for_each(|blob| assert_eq!(reader.blob(&Digest::of(blob)).as_ref(), Ok(blob)));
            }
        });
        for round in 0..5 {
            place.open().gc(&EVERYTHING).expect("collects");
            place.open().put_pack((0..100_u8).map(|number| vec![number; 600 + round].into()).collect()).expect("stored");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(place.open().check(false).expect("checks").defects, []);
}

/// Every file, the database and its log too, may grow to a bound only: SQLite meets it in the middle of what it writes.
#[test]
fn child_whose_files_meet_a_bound() {
    let Some(root) = root_of_child() else { return };
    let Ok(store) = Store::open(&root) else { return };
    for number in 0..200_u32 {
        let mut batch = Batch::default();
        let blob = batch.blob(number.to_le_bytes().repeat(200).into());
        batch.record(RecordKind::Action, key(&number.to_string()), &blob, References::blobs([blob])).expect("encodes");
        if let Err(fault) = store.commit(&batch) {
            assert!(fault.may_pass(), "{fault}");
            return;
        }
    }
}

#[test]
fn store_whose_files_met_a_bound_is_sound_and_works_on() {
    for blocks in [1, 8, 32, 50, 90, 200] {
        let place = Place::new();
        in_child(&format!("trap '' XFSZ; ulimit -S -f {blocks}"), "child_whose_files_meet_a_bound", &place.root);
        let store = place.open();
        assert_eq!(store.check(false).expect("checks").defects, [], "{blocks} blocks");
        build(&store, "one", body("one"));
        assert_eq!(store.record(RecordKind::Action, &key("one")), Ok(Some(Digest::of(&body("one")))), "{blocks} blocks");
    }
}

fn files_below(directory: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = directory.read_dir_utf8().into_iter().flatten().map(|entry| entry.expect("an entry"));
    entries.flat_map(|entry| if entry.path().is_dir() { files_below(entry.path()) } else { vec![entry.path().to_owned()] }).collect()
}
