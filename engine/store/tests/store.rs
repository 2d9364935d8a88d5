//! The store as its users see it: what was written is read back or reported missing, never something else.

mod place;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use store::{Batch, BlobMiss, Digest, KeyBuilder, RecordKind, References, SourceRead, Store, StoreFault, StoreReport};

use crate::place::Place;

const LARGE: usize = 100_000;

fn large_place(place: &Place, digest: &Digest) -> Utf8PathBuf {
    let name = digest.to_string();
    place.root.join("cas").join(&name[..2]).join(&name[2..])
}

fn small_blobs(count: usize) -> Vec<Arc<[u8]>> {
    (0..count).map(|number| Arc::from(format!("image of tile {number}").into_bytes())).collect()
}

fn overwrite(path: &Utf8Path, bytes: &[u8]) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("the mode can be changed");
    fs::write(path, bytes).expect("the file can be written");
}

#[test]
fn blobs_of_every_size_are_read_back_by_another_process_of_the_store() {
    let fixture = Place::new();
    let blobs: Vec<Vec<u8>> = [0, 1, 1000, LARGE].iter().map(|&length| vec![7; length]).collect();
    let digests: Vec<Digest> = blobs.iter().map(|blob| fixture.open().put_blob(blob).expect("stored")).collect();
    let store = fixture.open();
    for (blob, digest) in blobs.iter().zip(&digests) {
        assert_eq!(*digest, Digest::of(blob));
        assert_eq!(store.blob(digest).as_ref(), Ok(blob));
    }
    let mode = fs::metadata(large_place(&fixture, &digests[3])).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o444);
}

#[test]
fn a_pack_holds_many_small_blobs_in_one_file() {
    let fixture = Place::new();
    let blobs = small_blobs(1472);
    let digests = fixture.open().put_pack(blobs.clone()).expect("stored");
    let store = fixture.open();
    for (blob, digest) in blobs.iter().zip(&digests) {
        assert_eq!(store.blob(digest).as_deref(), Ok(&blob[..]));
    }
    let folders: Vec<_> = fs::read_dir(fixture.root.join("packs")).expect("packs").collect();
    assert_eq!(folders.len(), 1);
}

#[test]
fn unknown_blob_is_absent() {
    let digest = Digest::of(b"never stored");
    assert_eq!(Place::new().open().blob(&digest), Err(BlobMiss::Absent { digest }));
}

#[test]
fn flipped_or_truncated_large_blob_is_reported_once_and_can_be_stored_again() {
    for damaged in [vec![8; LARGE], vec![7; LARGE - 1], Vec::new()] {
        let fixture = Place::new();
        let store = fixture.open();
        let digest = store.put_blob(&vec![7; LARGE]).expect("stored");
        let place = large_place(&fixture, &digest);
        overwrite(&place, &damaged);
        let miss = BlobMiss::Corrupt { digest, place: place.to_string(), found: Digest::of(&damaged) };
        assert_eq!(store.blob(&digest), Err(miss.clone()));
        assert_eq!(store.take_reports(), [StoreReport::Blob(miss)]);
        assert_eq!(store.blob(&digest), Err(BlobMiss::Absent { digest }));
        store.put_blob(&vec![7; LARGE]).expect("stored again");
        assert_eq!(store.blob(&digest), Ok(vec![7; LARGE]));
        assert_eq!(store.take_reports(), []);
    }
}

#[test]
fn damaged_or_missing_pack_is_a_miss_of_its_blobs_alone() {
    for remove in [false, true] {
        let fixture = Place::new();
        let store = fixture.open();
        let other = store.put_blob(b"alone").expect("stored");
        let blobs = small_blobs(20);
        let digests = store.put_pack(blobs.clone()).expect("stored");
        let pack = walk_files(&fixture.root.join("packs")).pop().expect("one pack");
        if remove {
            fs::remove_file(&pack).expect("removed");
        } else {
            overwrite(&pack, &vec![0; fs::metadata(&pack).expect("a file").len() as usize]);
        }
        for (digest, blob) in digests.iter().zip(&blobs) {
            assert!(store.blob(digest).is_err());
            store.put_blob(blob).expect("stored again");
            assert_eq!(store.blob(digest).as_deref(), Ok(&blob[..]));
        }
        assert_eq!(store.blob(&other).as_deref(), Ok(&b"alone"[..]));
    }
}

fn walk_files(directory: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut files = Vec::new();
    for entry in directory.read_dir_utf8().expect("a directory").map(|entry| entry.expect("an entry")) {
        match entry.file_type().expect("a type").is_dir() {
            true => files.extend(walk_files(entry.path())),
            false => files.push(entry.path().to_owned()),
        }
    }
    files
}

#[test]
fn records_of_two_kinds_do_not_meet_and_survive_reopening() {
    let fixture = Place::new();
    let key = Digest::of(b"key");
    fixture.open().put_record(RecordKind::Action, key, &("schedule", 12_u32), References::none()).expect("stored");
    let store = fixture.open();
    assert_eq!(store.record(RecordKind::Action, &key), Ok(Some(("schedule".to_owned(), 12_u32))));
    assert_eq!(store.record::<(String, u32)>(RecordKind::Target, &key), Ok(None));
    store.remove_record(RecordKind::Action, &key).expect("removed");
    assert_eq!(store.record::<(String, u32)>(RecordKind::Action, &key), Ok(None));
}

#[test]
fn record_of_another_type_is_a_reported_miss() {
    let fixture = Place::new();
    let store = fixture.open();
    let key = Digest::of(b"key");
    store.put_record(RecordKind::Action, key, &300_u32, References::none()).expect("stored");
    assert_eq!(store.record::<String>(RecordKind::Action, &key), Ok(None));
    assert_eq!(store.take_reports(), [StoreReport::Record { kind: RecordKind::Action, key }]);
}

#[test]
fn damaged_database_is_set_aside_and_the_store_works_on() {
    let fixture = Place::new();
    let key = Digest::of(b"key");
    let large = fixture.open().put_blob(&vec![7; LARGE]).expect("stored");
    fixture.open().put_record(RecordKind::Action, key, &1_u32, References::none()).expect("stored");
    let database = fixture.root.join("records.sqlite");
    fs::write(&database, vec![b'x'; 8192]).expect("damaged");
    // The log alone would repair the file.
    fs::remove_file(format!("{database}-wal")).expect("removed");
    let store = fixture.open();
    let aside = Utf8PathBuf::from(format!("{database}.damaged-1"));
    assert_eq!(store.take_reports(), [StoreReport::RecordsSetAside(aside)]);
    assert_eq!(store.record::<u32>(RecordKind::Action, &key), Ok(None));
    store.put_record(RecordKind::Action, key, &2_u32, References::none()).expect("stored");
    assert_eq!(store.record(RecordKind::Action, &key), Ok(Some(2_u32)));
    assert_eq!(store.blob(&large), Ok(vec![7; LARGE]));
}

#[test]
fn store_of_another_format_is_refused_with_both_versions() {
    let fixture = Place::new();
    drop(fixture.open());
    let version = fixture.root.join("VERSION");
    overwrite(&version, b"ipubuild store 99\n");
    let fault = Store::open(&fixture.root).err().expect("refused");
    assert_eq!(
        fault.to_string(),
        format!("{} has format `ipubuild store 99`, this program needs `ipubuild store 1`; use another --store directory", fixture.root)
    );
}

#[test]
fn store_below_a_file_is_a_fault_that_names_the_path() {
    let fixture = Place::new();
    fs::write(&fixture.root, b"a file").expect("written");
    let root = fixture.root.join("below");
    match Store::open(&root).err() {
        Some(StoreFault::File { operation: "create the store", path, .. }) => assert_eq!(path, root),
        other => panic!("unexpected: {other:?}"),
    }
}

#[test]
fn two_handles_write_the_same_and_other_things_at_once() {
    let fixture = Place::new();
    let root = &fixture.root;
    std::thread::scope(|scope| {
        for writer in 0..4_u32 {
            scope.spawn(move || {
                let store = Store::open(root).expect("opens");
                for round in 0..20_u32 {
                    let mut batch = Batch::default();
                    batch.blob(Arc::from(format!("shared {round}").into_bytes()));
                    let own = batch.blob(Arc::from(vec![writer as u8; LARGE + round as usize]));
                    let key = Digest::of(format!("{writer} {round}").as_bytes());
                    batch.record(RecordKind::Action, key, &own, References::none()).expect("encodes");
                    store.commit(&batch).expect("stored");
                }
            });
        }
    });
    let store = fixture.open();
    for writer in 0..4_u32 {
        for round in 0..20_u32 {
            let key = Digest::of(format!("{writer} {round}").as_bytes());
            let digest: Digest = store.record(RecordKind::Action, &key).expect("read").expect("recorded");
            assert_eq!(store.blob(&digest), Ok(vec![writer as u8; LARGE + round as usize]));
        }
    }
}

const CHILD: &str = "STORE_TEST_CHILD";

/// Not a test of its own: the process that the next test kills. Without its variable it does nothing.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Ok(root) = std::env::var(CHILD) else { return };
    let store = Store::open(Utf8Path::new(&root)).expect("opens");
    for number in 0..1_000_000_u64 {
        let mut batch = Batch::default();
        let digests: Vec<Digest> = (0..20).map(|blob| batch.blob(Arc::from(vec![blob; 1000 + number as usize * 100]))).collect();
        batch.record(RecordKind::Action, Digest::of(&number.to_le_bytes()), &digests, References::none()).expect("encodes");
        store.commit(&batch).expect("stored");
    }
}

#[test]
fn after_a_kill_every_record_has_its_blobs() {
    for delay_ms in [30, 80, 150, 260] {
        let fixture = Place::new();
        let mut child = std::process::Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "child_that_writes_until_it_is_killed"])
            .env(CHILD, &fixture.root)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("starts");
        std::thread::sleep(Duration::from_millis(delay_ms));
        child.kill().expect("killed");
        child.wait().expect("waited for");
        let store = fixture.open();
        let records = (0_u64..)
            .map_while(|number| store.record::<Vec<Digest>>(RecordKind::Action, &Digest::of(&number.to_le_bytes())).expect("readable"));
        for digest in records.flatten() {
            assert!(store.blob(&digest).is_ok(), "{digest} is missing");
        }
        assert_eq!(store.take_reports(), []);
    }
}

#[test]
fn key_lock_is_waited_for_and_says_so() {
    let fixture = Place::new();
    let key = Digest::of(b"key");
    let store = fixture.open();
    let held = store.lock_key(&key).expect("locked");
    assert!(!held.waited());
    std::thread::scope(|scope| {
        let second = scope.spawn(|| fixture.open().lock_key(&key).expect("locked").waited());
        std::thread::sleep(Duration::from_millis(100));
        drop(held);
        assert!(second.join().expect("no panic"));
    });
}

#[test]
fn source_digest_follows_content_and_presence() {
    let fixture = Place::new();
    let store = fixture.open();
    let file = fixture.root.join("source.npy");
    assert_eq!(store.source_digest(&file), Ok(SourceRead::Absent));
    for content in ["one", "two", "two"] {
        fs::write(&file, content).expect("written");
        assert_eq!(store.source_digest(&file), Ok(SourceRead::Found(Digest::of(content.as_bytes()))));
    }
    assert_eq!(store.source_digest(&fixture.root), Ok(SourceRead::NotAFile));
}

#[test]
fn edit_of_the_same_size_within_the_clock_grain_is_seen() {
    let fixture = Place::new();
    let file = fixture.root.join("source.npy");
    let store = fixture.open();
    fs::write(&file, "aaaa").expect("written");
    store.source_digest(&file).expect("read");
    let modified = fs::metadata(&file).expect("a file").modified().expect("a time");
    fs::write(&file, "bbbb").expect("written");
    fs::File::options().write(true).open(&file).expect("opens").set_modified(modified).expect("set");
    assert_eq!(store.source_digest(&file), Ok(SourceRead::Found(Digest::of(b"bbbb"))));
}

#[test]
fn file_with_a_time_in_the_future_is_always_read() {
    let fixture = Place::new();
    let file = fixture.root.join("source.npy");
    let store = fixture.open();
    let future = SystemTime::now() + Duration::from_secs(3600);
    for content in ["aaaa", "bbbb"] {
        fs::write(&file, content).expect("written");
        fs::File::options().write(true).open(&file).expect("opens").set_modified(future).expect("set");
        assert_eq!(store.source_digest(&file), Ok(SourceRead::Found(Digest::of(content.as_bytes()))));
    }
}

#[test]
fn runs_are_numbered_and_listed_newest_first() {
    let fixture = Place::new();
    let store = fixture.open();
    assert_eq!(store.add_run(b"first", &[]), Ok(1));
    assert_eq!(store.add_run(b"second", &[]), Ok(2));
    let values: Vec<Vec<u8>> = store.runs(10).expect("read").into_iter().map(|run| run.value).collect();
    assert_eq!(values, [b"second".to_vec(), b"first".to_vec()]);
}

#[test]
fn key_parts_are_told_apart_by_their_lengths() {
    let key = |parts: &[&str]| {
        let mut builder = KeyBuilder::new("test");
        for part in parts {
            builder.text(part);
        }
        builder.finish()
    };
    assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
    assert_ne!(key(&["ab"]), key(&["ab", ""]));
    assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn digest_text_is_read_back_and_other_text_refused(bytes: [u8; 32], text in ".{0,70}") {
        let digest = Digest::from_bytes(bytes);
        proptest::prop_assert_eq!(digest.to_string().parse(), Ok(digest));
        if let Ok(parsed) = text.parse::<Digest>() {
            proptest::prop_assert_eq!(parsed.to_string(), text.to_lowercase());
        }
    }
}

#[test]
fn references_of_a_record_are_kept_with_it() {
    let fixture = Place::new();
    let store = fixture.open();
    let (blob, action) = (store.put_blob(b"body").expect("stored"), Digest::of(b"action"));
    let references = References { blobs: vec![blob], records: vec![(RecordKind::Action, action)] };
    store.put_record(RecordKind::Target, Digest::of(b"target"), &1_u32, references.clone()).expect("stored");
    assert_eq!(store.references(RecordKind::Target, &Digest::of(b"target")), Ok(Some(references)));
    assert_eq!(store.references(RecordKind::Action, &Digest::of(b"target")), Ok(None));
}

#[test]
fn records_of_the_first_format_are_dropped_and_blobs_are_kept() {
    let fixture = Place::new();
    let blob = fixture.open().put_blob(b"body").expect("stored");
    let database = rusqlite::Connection::open(fixture.root.join("records.sqlite")).expect("opens");
    let old = "DROP TABLE record; DROP TABLE run; PRAGMA user_version = 1;
        CREATE TABLE record (kind INTEGER, key BLOB, value BLOB, PRIMARY KEY (kind, key)) WITHOUT ROWID;
        CREATE TABLE run (number INTEGER PRIMARY KEY AUTOINCREMENT, value BLOB);
        INSERT INTO record VALUES (1, x'00', x'00'); INSERT INTO run (value) VALUES (x'00');";
    database.execute_batch(old).expect("an old database");
    drop(database);
    let store = fixture.open();
    assert_eq!(store.blob(&blob), Ok(b"body".to_vec()));
    assert_eq!(store.runs(10), Ok(Vec::new()));
    store.put_record(RecordKind::Action, Digest::of(b"key"), &1_u32, References::none()).expect("stored");
}

#[test]
fn new_files_and_folders_are_for_those_who_may_use_the_stores_directory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let root = Utf8Path::from_path(directory.path()).expect("UTF-8").join("store");
    fs::create_dir(&root).expect("made");
    let mode = |path: &Utf8Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
    // Neither is what a umask of 022 or 077 gives.
    fs::set_permissions(&root, fs::Permissions::from_mode(0o775)).expect("set");
    let store = Store::open(&root).expect("opens");
    let mut batch = Batch::default();
    let blobs = [batch.blob(vec![1; 100_000].into()), batch.blob(vec![2; 5000].into()), batch.blob(vec![3; 5000].into())];
    batch.record(RecordKind::Action, Digest::of(b"key"), &1_u32, References::blobs(blobs)).expect("encodes");
    store.commit(&batch).expect("stored");
    drop(store.lock_key(&Digest::of(b"key")).expect("locked"));
    let found: Option<u32> = store.record(RecordKind::Action, &Digest::of(b"key")).expect("read");
    assert_eq!(found, Some(1), "which takes a lease");
    let (mut folders, mut files, mut queue) = (0, 0, vec![root.clone()]);
    while let Some(folder) = queue.pop() {
        assert_eq!(mode(&folder), 0o775, "{folder}");
        folders += 1;
        for entry in folder.read_dir_utf8().expect("a folder") {
            let path = entry.expect("an entry").into_path();
            if path.is_dir() {
                queue.push(path);
            } else {
                // Blobs and the version are never written again.
                assert!([0o664, 0o444].contains(&mode(&path)), "{path} {:o}", mode(&path));
                files += 1;
            }
        }
    }
    assert!(folders >= 5 && files >= 5, "{folders} folders, {files} files");
}
