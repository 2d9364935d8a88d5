//! What other programs, other processes and a failing disk do to a store, and what holds all the same.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use store::Store;

struct Place {
    _directory: tempfile::TempDir,
    root: Utf8PathBuf,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = Utf8Path::from_path(directory.path()).expect("a UTF-8 path").join("store");
        Place { _directory: directory, root }
    }

    fn open(&self) -> Store {
        Store::open(&self.root).expect("a store")
    }

    fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.root.join("records.sqlite")).expect("opens")
    }
}

#[test]
fn database_of_a_newer_program_is_refused_and_left_as_it_is() {
    let place = Place::new();
    drop(place.open());
    place.database().pragma_update(None, "user_version", 99).expect("set");
    let fault = Store::open(&place.root).err().expect("refused").to_string();
    assert!(fault.contains("has format `version 99 of the records`, this program needs `version "), "{fault}");
    let version: i64 = place.database().pragma_query_value(None, "user_version", |row| row.get(0)).expect("read");
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
