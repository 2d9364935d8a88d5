//! Whatever a disk does to the bytes of a store, the next build gives what an empty store gives, without anyone cleaning up.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use store::{Batch, Digest, RecordKind, References, Store};

struct Place {
    _directory: tempfile::TempDir,
    root: Utf8PathBuf,
}

impl Place {
    fn new() -> Place {
        // In memory where there is such a place: hundreds of new databases wait for a disk.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary directory");
        let root = Utf8Path::from_path(directory.path()).expect("UTF-8").join("store");
        Place { _directory: directory, root }
    }

    /// A copy of a store that nobody uses.
    fn copy_of(other: &Utf8Path) -> Place {
        let place = Place::new();
        for file in files_below(other) {
            let to = place.root.join(file.strip_prefix(other).expect("below"));
            fs::create_dir_all(to.parent().expect("a folder")).expect("made");
            fs::copy(&file, &to).expect("copied");
        }
        place
    }
}

fn files_below(directory: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = directory.read_dir_utf8().into_iter().flatten().map(|entry| entry.expect("an entry"));
    let mut files: Vec<Utf8PathBuf> =
        entries.flat_map(|entry| if entry.path().is_dir() { files_below(entry.path()) } else { vec![entry.path().to_owned()] }).collect();
    files.sort();
    files
}

/// Results of 30 stages, from the store or made and stored: a large blob, a pack, and small blobs and records.
fn build(root: &Utf8Path) -> Result<Vec<Digest>, String> {
    let store = Store::open(root).map_err(|fault| fault.to_string())?;
    let results = (0..30).map(|number| stage(&store, number)).collect();
    store.add_run(b"run", &[(RecordKind::Action, Digest::of(&[0]))]).map_err(|fault| fault.to_string())?;
    store.runs(5).map_err(|fault| fault.to_string())?;
    results
}

fn stage(store: &Store, number: u8) -> Result<Digest, String> {
    let key = Digest::of(&[number]);
    let recorded: Option<Vec<Digest>> = store.record(RecordKind::Action, &key).map_err(|fault| fault.to_string())?;
    let found = recorded.map(|digests| digests.iter().map(|digest| store.blob(digest)).collect::<Result<Vec<_>, _>>());
    if let Some(Ok(bodies)) = found {
        return Ok(Digest::of(&bodies.concat()));
    }
    let (bytes, count) = match number {
        0 => (70_000, 1),
        1 => (100, 20),
        _ => (200, 2),
    };
    let bodies: Vec<Vec<u8>> = (0..count).map(|blob| vec![number ^ blob; bytes + usize::from(blob)]).collect();
    let mut batch = Batch::default();
    let digests: Vec<Digest> = bodies.iter().map(|body| batch.blob(body.as_slice().into())).collect();
    batch.record(RecordKind::Action, key, &digests, References::blobs(digests.iter().copied())).map_err(|fault| fault.to_string())?;
    store.commit(&batch).map_err(|fault| fault.to_string())?;
    Ok(Digest::of(&bodies.concat()))
}

/// Which of the store's files, in which state.
struct Damage {
    file: Utf8PathBuf,
    bytes: Vec<u8>,
    what: String,
}

impl Damage {
    fn do_to(&self, root: &Utf8Path) {
        let path = root.join(&self.file);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("set");
        fs::write(&path, &self.bytes).expect("written");
    }
}

/// So many places of `length`, from the first to the last, each in another bit.
fn places(length: usize, count: usize) -> impl Iterator<Item = usize> {
    let count = count.min(length);
    (0..count).map(move |number| number * length / count)
}

/// Every file of the store cut short, and with single bits flipped. Bits of `user_version` are left out: with one flipped the
/// database is that of a newer program, and refused.
fn damages(root: &Utf8Path, count: usize) -> Vec<Damage> {
    const USER_VERSION: std::ops::Range<usize> = 60..64;
    let mut damages = Vec::new();
    let is_data = |path: &Utf8PathBuf| !path.as_str().contains("/locks/") && !path.ends_with("VERSION");
    for path in files_below(root).into_iter().filter(is_data) {
        let whole = fs::read(&path).expect("read");
        let file = path.strip_prefix(root).expect("below").to_owned();
        let mut add = |bytes: Vec<u8>, what: String| damages.push(Damage { file: file.clone(), what: format!("{what} of {file}"), bytes });
        for length in places(whole.len(), count / 4) {
            add(whole[..length].to_vec(), format!("the first {length} bytes"));
        }
        let header = if file.as_str().ends_with(".sqlite") { 0..100 } else { 0..0 };
        for (number, at) in header.chain(places(whole.len(), count)).enumerate() {
            let is_version = file.as_str().ends_with(".sqlite") && USER_VERSION.contains(&at);
            if !is_version {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << (number % 8);
                add(bytes, format!("bit {} of byte {at}", number % 8));
            }
        }
    }
    damages
}

/// `STORE_FAULTS=all` for a hundred times as many flipped bits.
#[test]
fn damaged_files_are_made_again_by_the_next_build() {
    let clean = Place::new();
    let expected = build(&clean.root).expect("builds");
    let count = if std::env::var("STORE_FAULTS").is_ok_and(|value| value == "all") { 4000 } else { 40 };
    // Once with the records in the database's log, once with them in the database.
    let moved = Place::copy_of(&clean.root);
    let database = rusqlite::Connection::open(moved.root.join("records.sqlite")).expect("opens");
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("moved");
    drop(database);
    let mut wrong = Vec::new();
    let mut points = 0;
    for from in [&clean, &moved] {
        for damage in damages(&from.root, count) {
            points += 1;
            let place = Place::copy_of(&from.root);
            damage.do_to(&place.root);
            let found = build(&place.root);
            if found.as_ref() != Ok(&expected) {
                wrong.push(format!("{}: {:?}", damage.what, found.err()));
                continue;
            }
            // What no build looks at may stay damaged, and is found by a check.
            let store = Store::open(&place.root).expect("opens");
            if let Err(fault) = store.check(true) {
                wrong.push(format!("{}, check: {fault}", damage.what));
                continue;
            }
            let left = store.check(false).map(|report| report.defects);
            let again = build(&place.root);
            if left != Ok(Vec::new()) || again.as_ref() != Ok(&expected) {
                wrong.push(format!("{}, after the repair: {left:?} {again:?}", damage.what));
            }
        }
    }
    eprintln!("{points} damaged files, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{} of {points} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
