//! Builds that are killed, and builds beside each other: the next one gives what a build from nothing gives, without a word from the user.
//!
//! `IPUBUILD_KILLS=200 cargo test --release -p tests --test robustness -- --nocapture` is the long form.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tests::place::Place;

/// Exported files by path, without those on their way that a killed process left.
fn exported(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![place.root().join("artifacts")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if !entry.file_name().to_string_lossy().starts_with(".writing-") {
                files.insert(relative(&path, &place.root()), fs::read(&path).expect("read"));
            }
        }
    }
    files
}

fn relative(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned()
}

/// The small program on one tile or two, with a verdict of its own.
fn configure(place: &Place, number: usize) {
    place.restore_small();
    place.replace("BUILD.toml", "layout = { tiles = 2 }", &format!("layout = {{ tiles = {} }}", 1 + number % 2));
    place.replace("BUILD.toml", "default = 3e-3", &format!("default = {}", 0.003 + number as f64 * 1e-6));
}

/// What a build from nothing gives.
fn clean(number: usize) -> BTreeMap<String, Vec<u8>> {
    let place = Place::small();
    configure(&place, number);
    build(&place);
    exported(&place)
}

#[track_caller]
fn build(place: &Place) {
    let ran = place.run(&["//:run"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
}

#[test]
fn killed_builds_leave_nothing_that_the_next_one_trips_over() {
    let kills: usize = std::env::var("IPUBUILD_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20);
    let expected = [clean(0), clean(1)];
    let place = Place::small();
    let started = Instant::now();
    configure(&place, 0);
    build(&place);
    let whole = started.elapsed();
    let (mut killed, mut ended) = (0, 0);
    for number in 0..kills {
        // Every fifth time from an empty store, else on what the builds before left.
        if number % 5 == 0 {
            fs::remove_dir_all(place.beside("cache")).expect("removed");
        }
        configure(&place, number);
        let mut child = place.command(&["//:run"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
        // A golden-ratio sequence covers the length of a build evenly, whatever the number of kills; most builds find some
        // of their stages in the store and end sooner than the first.
        let point = (number as f64 * 0.618_033_988_75).fract();
        std::thread::sleep(Duration::from_secs_f64(whole.as_secs_f64() * 0.6 * point));
        child.kill().expect("killed or ended");
        match child.wait().expect("waited for").code() {
            None => killed += 1,
            Some(_) => ended += 1,
        }
        // What is there is whole: of this build, or of the one before it.
        for (path, bytes) in exported(&place) {
            let is_whole = expected.iter().any(|files| files.get(&path).is_some_and(|whole| is_same(&path, whole, &bytes)));
            assert!(is_whole, "{path} after kill {number}");
        }
        build(&place);
        let files = exported(&place);
        let wanted = &expected[number % 2];
        assert!(files.keys().eq(wanted.keys()), "after kill {number}");
        for (path, bytes) in &files {
            assert!(is_same(path, &wanted[path], bytes), "{path} after kill {number}");
        }
        let check = place.run(&["store", "check"]);
        let harmless = |line: &str| line.ends_with("is no part of a store") || line.contains("records and");
        assert!(check.out.lines().all(harmless), "after kill {number}: {}", check.out);
    }
    eprintln!("{killed} builds killed, {ended} had ended, of {kills}");
    assert!(killed > kills / 4, "{killed} of {kills}");
}

/// Reports hold the tolerance, which differs in each configuration; everything else is the same bytes.
fn is_same(path: &str, left: &[u8], right: &[u8]) -> bool {
    if !path.ends_with("report.json") {
        return left == right;
    }
    let value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).map(without_tolerances);
    matches!((value(left), value(right)), (Ok(left), Ok(right)) if left == right)
}

fn without_tolerances(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(fields) => {
            fields.into_iter().filter(|(name, _)| name != "tolerance").map(|(name, value)| (name, without_tolerances(value))).collect()
        }
        serde_json::Value::Array(values) => values.into_iter().map(without_tolerances).collect(),
        other => other,
    }
}

#[test]
fn builds_of_one_target_beside_each_other_give_the_same() {
    let expected = clean(0);
    for round in 0..5 {
        let place = Place::small();
        configure(&place, 0);
        let children: Vec<_> =
            (0..4).map(|_| place.command(&["//:run"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts")).collect();
        for child in children {
            let output = child.wait_with_output().expect("waited for");
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert!(exported(&place) == expected, "round {round}");
        let check = place.run(&["store", "check"]);
        assert_eq!(check.code, Some(0), "{}", check.out);
    }
}

#[test]
fn few_open_files_are_enough() {
    let place = Place::small();
    let program = place.command(&["//:run"]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 48; exec \"$@\"", "sh"]).arg(program.get_program()).args(program.get_args());
    command.current_dir(place.root()).env_clear().env("XDG_CACHE_HOME", place.beside("cache"));
    let output = command.output().expect("sh starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    // With hardly any it says what is missing, and keeps what is there.
    for limit in 4..12 {
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", &format!("ulimit -n {limit}; exec \"$@\""), "sh"])
            .arg(program.get_program())
            .arg("--set")
            .arg("tolerance.default=0.5");
        command.args(program.get_args()).current_dir(place.root()).env_clear().env("XDG_CACHE_HOME", place.beside("cache"));
        let output = command.output().expect("sh starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!told.contains("panicked"), "{limit}: {told}");
    }
    let check = place.run(&["store", "check"]);
    assert_eq!(check.code, Some(0), "{}", check.out);
    let ran = place.run(&["//:run"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), "//:run cached=true\n"));
}
