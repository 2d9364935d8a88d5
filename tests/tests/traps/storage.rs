//! The store: what it costs, what it says, and who may answer from it.

use std::fs;
use std::path::Path;

use camino::Utf8PathBuf;
use graph::{Digest, StageFacts};
use store::{RecordKind, References, Store};
use tests::place::Place;

use crate::{executed, good};

fn store(place: &Place) -> Store {
    Store::open(&Utf8PathBuf::from_path_buf(place.beside("cache/ipubuild")).expect("UTF-8")).expect("a store")
}

#[test]
fn tile_images_cost_no_file_or_record_each() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    let statistics = store(&place).statistics().expect("counts");
    let records: u64 = statistics.records.values().map(|records| records.count).sum();
    // All 1,472 tiles of the chip are in the package.
    assert!(records < 100, "{statistics:?}");
    assert!(statistics.large_blobs.count + statistics.packs.count < 50, "{statistics:?}");
}

#[test]
fn store_tells_its_size_and_shrinks_when_told_to() {
    let place = Place::small();
    for tiles in ["1", "2"] {
        good(place.run(&["--set", &format!("layout.tiles={tiles}"), "//:run"]));
    }
    let before = store(&place).statistics().expect("counts").disk_bytes;
    let told = good(place.run(&["store", "stats"])).out;
    assert!(told.contains(" bytes on disk, 2 runs, "), "{told}");
    let ran = good(place.run(&["gc", "--keep-runs", "1"]));
    assert!(ran.out.contains("and 1 runs gone"), "{}", ran.out);
    assert!(store(&place).statistics().expect("counts").disk_bytes < before);
    assert_eq!(executed(&place, &["--set", "layout.tiles=2", "//:run"]), 0, "the newest run's results are kept");
    place.replace("BUILD.toml", "default = 3e-3", "default = 4e-3");
    assert_eq!(executed(&place, &["--set", "layout.tiles=2", "//:run"]), 1, "the verdict alone: tensors and model are kept as well");
    let ran = good(place.run(&["gc", "--max-size", "1K", "--dry-run"]));
    assert!(ran.err.contains("is below the working set"), "{}", ran.err);
    good(place.run(&["store", "check"]));
}

/// Whether a rebuild notices that the store lies: a record whose checksum is right and whose digest is another stage's.
#[test]
fn build_without_what_is_kept_is_not_answered_from_it() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    good(place.run(&["verify", "//:run"]));
    let kept = store(&place);
    let key = |stage: &str| -> Digest {
        let text = good(place.run(&["why", "--json", stage])).out;
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        json["key"].as_str().and_then(|key| key.parse().ok()).expect("a key")
    };
    let (images, model) = (key("//:program[images]"), key("//:program[finalists]"));
    let facts = |key: &Digest| StageFacts::read(&kept, key).expect("read").expect("recorded");
    let planted = StageFacts { digest: facts(&model).digest, ..facts(&images) };
    kept.put_record(RecordKind::Action, images, &(planted.clone(), ()), References::blobs([planted.digest])).expect("stored");
    drop(kept);
    let ran = place.run(&["verify", "//:run"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("//:program[images] differs, the first of "), "{}", ran.out);
    assert!(ran.out.contains(&planted.digest.to_string()), "{}", ran.out);
    let left = std::fs::read_dir(place.beside("cache/ipubuild")).expect("a folder");
    let names = left.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    assert_eq!(names.filter(|name| name.starts_with("verify-")).count(), 0);
}

/// Paths of the files below `folder`, hidden ones left out, in order.
fn files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(folder).expect("below").to_string_lossy().into_owned();
            match path.is_dir() {
                true => folders.push(path),
                false if name.starts_with('.') => {}
                false => files.push(name),
            }
        }
    }
    files.sort_unstable();
    files
}

/// Files of one configuration would pass for results of another one that does not have them.
#[test]
fn artifacts_of_another_configuration_do_not_stay() {
    let place = Place::small();
    let folder = place.root().join("artifacts/run");
    let (all, none) = (["--set", "checkpoints=[0]", "//:run"], ["--set", "checkpoints=[]", "//:run"]);
    good(place.run(&all));
    let with_checkpoint = files(&folder);
    assert!(with_checkpoint.iter().any(|name| name.starts_with("checkpoints/")), "{with_checkpoint:?}");
    good(place.run(&none));
    let without = files(&folder);
    assert!(!without.iter().any(|name| name.starts_with("checkpoints/")), "{without:?}");
    assert!(!folder.join("checkpoints").exists());
    // Both are known by now, and nothing is loaded: the files come and go all the same, and a user's own stay.
    fs::write(folder.join("notes.txt"), "kept").expect("written");
    let and_notes = |mut files: Vec<String>| {
        files.push("notes.txt".to_owned());
        files.sort_unstable();
        files
    };
    for _ in 0..2 {
        assert_eq!((executed(&place, &all), files(&folder)), (0, and_notes(with_checkpoint.clone())));
        assert_eq!((executed(&place, &none), files(&folder)), (0, and_notes(without.clone())));
    }
}

/// As `verify` leaves it when it is killed.
#[test]
fn folders_left_behind_by_killed_processes_go_with_a_collection() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    let folder = place.beside("cache/ipubuild/verify-killed");
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join("in-use"), "").expect("written");
    good(place.run(&["gc", "--dry-run"]));
    assert!(folder.exists());
    good(place.run(&["gc"]));
    assert!(!folder.exists());
}
