//! Clocks that jump: answers stay right whatever time files, records and runs claim to be from.

mod place;

use std::fs;
use std::time::{Duration, SystemTime};

use store::{Batch, Digest, FileStamp, FileState, GcPolicy, RecordKind, References, SourceRead, Store};

use crate::place::Place;

const DAY: Duration = Duration::from_secs(86_400);
const SECOND_NS: i128 = 1_000_000_000;

/// Another process asks each time: what one learnt is in the database.
#[test]
fn edits_are_seen_whatever_time_the_file_claims() {
    let place = Place::new();
    drop(place.open());
    let file = place.root.with_file_name("source");
    let now = SystemTime::now();
    // Backwards and forwards, twice to the same time, and before 1970.
    let times = [now, now - DAY, now + DAY, now + DAY, now - DAY, now - DAY, SystemTime::UNIX_EPOCH - DAY, now + 400 * DAY, now];
    for (edit, time) in times.into_iter().enumerate() {
        // All of one size.
        let text = format!("edit {edit}");
        fs::write(&file, &text).expect("written");
        fs::File::options().write(true).open(&file).expect("opens").set_modified(time).expect("set");
        for _ in 0..2 {
            let store = place.open();
            assert_eq!(store.source_digest(&file), Ok(SourceRead::Found(Digest::of(text.as_bytes()))), "edit {edit}");
            store.commit(&Batch::default()).expect("stored");
        }
    }
}

#[test]
fn stamp_is_trusted_only_when_it_was_well_past_at_the_reading() {
    let stamp = |modified: i128, changed: i128| FileStamp {
        modified_ns: modified * SECOND_NS,
        changed_ns: changed * SECOND_NS,
        ..FileStamp::default()
    };
    let read_at = |seconds: i128, stamp| FileState { stamp, digest: Digest::of(b""), recorded_ns: seconds * SECOND_NS };
    let cases = [
        // Modified, changed, read, trusted.
        (100, 100, 103, true),
        (100, 100, 102, false),
        (100, 100, 100, false),
        // The clock was set back between the change and the reading.
        (100, 100, 50, false),
        (200, 100, 150, false),
        (50, 200, 150, false),
        // A file that was given an old time, read at once and later.
        (-100, 100, 101, false),
        (-100, 100, 200, true),
    ];
    for (modified, changed, read, is_trusted) in cases {
        let stamp = stamp(modified, changed);
        let state = read_at(read, stamp);
        assert_eq!(state.proves(&stamp), is_trusted, "{modified} {changed} {read}");
        assert!(!state.distrusted().proves(&stamp));
        // Neither time alone, nor an older one than was known, proves anything.
        for other in [(modified - 1, changed), (modified, changed - 1), (modified + 1, changed), (modified, changed + 1)] {
            assert!(!state.proves(&FileStamp { modified_ns: other.0 * SECOND_NS, changed_ns: other.1 * SECOND_NS, ..stamp }));
        }
        assert_eq!(FileState::from_bytes(&state.to_bytes()), state);
    }
}

#[test]
fn records_and_runs_from_the_future_and_the_past_are_found_and_collected() {
    let place = Place::new();
    let store = place.open();
    let key = |name: &str| Digest::of(name.as_bytes());
    for name in ["past", "future", "extreme"] {
        let blob = store.put_blob(name.as_bytes()).expect("stored");
        store.put_record(RecordKind::Action, key(name), &blob, References::blobs([blob])).expect("stored");
    }
    drop(store);
    let database = rusqlite::Connection::open(place.root.join("records.sqlite")).expect("opens");
    for (name, written) in [("past", -1), ("future", 4_000_000_000_000), ("extreme", i64::MIN)] {
        let set = "UPDATE record SET written = ?1 WHERE key = ?2";
        assert_eq!(database.execute(set, rusqlite::params![written, key(name).as_bytes()]).expect("set"), 1);
    }
    drop(database);
    let names = ["past", "future", "extreme"];
    let found = |store: &Store| names.map(|name| store.record::<Digest>(RecordKind::Action, &key(name)).expect("read").is_some());
    assert_eq!(found(&place.open()), [true; 3]);
    let old = GcPolicy { older_than: Some(DAY), ..GcPolicy::default() };
    assert_eq!(
        place.open().gc(&GcPolicy { older_than: Some(Duration::MAX), ..old }).expect("collects").records,
        1,
        "i64::MIN is older than all"
    );
    assert_eq!(place.open().gc(&old).expect("collects").records, 1);
    assert_eq!(found(&place.open()), [false, true, false]);
    assert_eq!(place.open().check(false).expect("checks").defects, []);
}
