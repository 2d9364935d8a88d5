//! `ipubuild watch` beside an editor: what is built again, when, and what the user hears.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use tests::place::{LARGE, Place, safetensors};
use tests::watching::Watching;

/// Twice as long as a change can need to be noticed.
const QUIET: Duration = Duration::from_millis(500);

fn watching(place: &Place, labels: &[&str]) -> Watching {
    Watching::start(place.command(&[&["watch"], labels].concat()))
}

/// A small program whose results are not exact: with no tolerance its verdict fails.
fn inexact() -> Place {
    let place = Place::small();
    let weights: Vec<u8> = (0..256_u16).flat_map(|index| half::f16::from_f32(f32::from(index) / 255.0).to_le_bytes()).collect();
    place.write("weights.safetensors", &safetensors(r#"{"weight":{"dtype":"F16","shape":[16,16],"data_offsets":[0,512]}}"#, &weights));
    place
}

fn small() -> (Place, Watching) {
    let place = inexact();
    let mut watch = watching(&place, &["//:run"]);
    let built = watch.build();
    assert_eq!((built.what.as_str(), built.verdict.as_str()), ("built", "PASS"));
    assert!(built.executed > 0);
    (place, watch)
}

#[test]
fn saved_files_are_built_and_what_they_do_not_reach_is_kept() {
    let (place, mut watch) = small();
    place.replace("BUILD.toml", "[model]", "# A comment.\n[model]");
    let built = watch.build();
    assert_eq!((built.what.as_str(), built.executed, built.verdict.as_str()), ("BUILD.toml changed", 0, "PASS"));
    place.replace("BUILD.toml", "default = 3e-3", "default = 0.0");
    let built = watch.build();
    assert_eq!((built.executed, built.verdict.as_str()), (1, "FAIL"), "the verdict alone");
    place.replace("BUILD.toml", "default = 0.0", "default = 3e-3");
    let built = watch.build();
    assert_eq!((built.executed, built.verdict.as_str()), (0, "PASS"));
    place.replace("gemm.S", "# ", "# Another comment. ");
    let built = watch.build();
    assert_eq!((built.what.as_str(), built.verdict.as_str()), ("gemm.S changed", "PASS"));
    assert_eq!(watch.lines_within(QUIET), Vec::<String>::new(), "nothing is built without a change");
}

#[test]
fn faults_of_the_declarations_are_told_and_heal() {
    let (place, mut watch) = small();
    place.replace("BUILD.toml", "tiles = 2", "tils = 2");
    assert_eq!(watch.fault("error: //:program, layout: unknown field `tils`").verdict, "ERROR");
    place.replace("BUILD.toml", "tils = 2", "tiles = 2");
    let built = watch.build();
    assert_eq!((built.executed, built.verdict.as_str()), (0, "PASS"));
}

#[test]
fn first_build_may_fail_and_a_file_that_was_missing_heals_it() {
    let place = Place::small();
    let kernel = place.read("gemm.S");
    fs::remove_file(place.root().join("gemm.S")).expect("removed");
    let mut watch = watching(&place, &["//:run"]);
    assert_eq!(watch.fault("expected a file below the workspace root").verdict, "ERROR");
    place.write("notes.txt", b"of no interest");
    assert_eq!(watch.lines_within(QUIET), Vec::<String>::new(), "what was told is not told again");
    place.write("gemm.S", &kernel);
    assert_eq!(watch.build().verdict, "PASS");
}

#[test]
fn deleted_files_and_folders_are_noticed_when_they_go_and_when_they_come_back() {
    let place = Place::small();
    place.write("data/hidden.npy", &place.read("hidden.npy"));
    place.replace("BUILD.toml", "\"hidden.npy\"", "\"data/hidden.npy\"");
    let bytes = place.read("hidden.npy");
    let mut watch = watching(&place, &["//:run"]);
    assert_eq!(watch.build().verdict, "PASS");
    for round in 0..3_u8 {
        fs::remove_dir_all(place.root().join("data")).expect("removed");
        assert_eq!(watch.fault("data/hidden.npy").verdict, "ERROR", "{round}");
        place.write("data/hidden.npy", &bytes);
        let built = watch.build();
        assert_eq!((built.executed, built.verdict.as_str()), (0, "PASS"), "{round}");
        // The new folder is watched, not the old one.
        let mut other = bytes.clone();
        *other.last_mut().expect("data") ^= 1 + round;
        place.write("data/hidden.npy", &other);
        let built = watch.build();
        assert!(built.executed > 0, "{round} {built:?} {:?}", watch.lines_within(QUIET));
        place.write("data/hidden.npy", &bytes);
        assert_eq!(watch.build().executed, 0, "{round}");
    }
}

#[test]
fn patterns_find_packages_that_are_new_and_neither_hidden_nor_ignored() {
    let place = Place::small();
    place.write(".gitignore", b"ignored/\n");
    place.write("nets/BUILD.toml", b"[files]\nrule = \"filegroup\"\nsrcs = [\"BUILD.toml\"]\n");
    let mut watch = watching(&place, &["//..."]);
    assert_eq!(watch.build().verdict, "PASS");
    let broken = b"[files]\nrule = \"filegroup\"\nsrcs = [\"nowhere\"]\n";
    place.write(".hidden/deep/BUILD.toml", broken);
    place.write("ignored/deep/BUILD.toml", broken);
    place.write("artifacts/deep/BUILD.toml", broken);
    assert_eq!(watch.lines_within(QUIET), Vec::<String>::new());
    fs::remove_dir_all(place.root().join("ignored")).expect("removed");
    place.write("more/deep/BUILD.toml", broken);
    assert_eq!(watch.fault("more/deep/nowhere").verdict, "ERROR");
    fs::remove_dir_all(place.root().join("more")).expect("removed");
    assert_eq!(watch.build().verdict, "PASS");
}

#[test]
fn moved_root_is_missed_and_found_again() {
    let (place, mut watch) = small();
    fs::rename(place.root(), place.beside("elsewhere")).expect("moved");
    assert_eq!(watch.fault("WORKSPACE.toml").verdict, "ERROR");
    fs::rename(place.beside("elsewhere"), place.root()).expect("moved back");
    let built = watch.build();
    assert_eq!((built.executed, built.verdict.as_str()), (0, "PASS"));
    place.replace("BUILD.toml", "default = 3e-3", "default = 4e-3");
    assert_eq!(watch.build().what, "BUILD.toml changed");
}

#[test]
fn edit_during_a_build_stops_it_and_the_last_content_is_built() {
    let place = Place::small();
    place.write("large/BUILD.toml", LARGE.as_bytes());
    let mut watch = watching(&place, &["-v", "//large:run"]);
    for tolerance in ["0.2", "0.3", "0.4"] {
        // The first line of a stage says that the build runs.
        watch.line(" elapsed_ms=");
        let changed = LARGE.replace("default = 0.1", &format!("default = {tolerance}"));
        place.write("large/BUILD.toml", changed.as_bytes());
    }
    let built = watch.build();
    assert_eq!((built.what.as_str(), built.verdict.as_str()), ("large/BUILD.toml changed", "PASS"));
    assert_eq!(watch.lines_within(QUIET), Vec::<String>::new(), "stopped builds have no line");
    let ran = place.run(&["-v", "//large:run"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), "//large:run cached=true\n"));
}

#[test]
fn signal_ends_it_with_0_between_builds_and_with_130_during_one() {
    for name in ["INT", "TERM"] {
        let (_place, mut watch) = small();
        watch.signal(name);
        watch.line("stopped");
        assert_eq!(watch.end(), Some(0));
    }
    let place = Place::small();
    place.write("large/BUILD.toml", LARGE.as_bytes());
    let mut watch = watching(&place, &["-v", "//large:run"]);
    watch.line(" elapsed_ms=");
    watch.signal("INT");
    assert_eq!(watch.end(), Some(130));
}

#[test]
fn scanning_notices_the_same_changes() {
    let place = inexact();
    let mut watch = watching(&place, &["--scan", "//:run"]);
    assert_eq!(watch.build().verdict, "PASS");
    place.replace("BUILD.toml", "default = 3e-3", "default = 0.0");
    assert_eq!(watch.build().verdict, "FAIL");
    let kernel = place.read("gemm.S");
    fs::remove_file(place.root().join("gemm.S")).expect("removed");
    assert_eq!(watch.build().verdict, "ERROR");
    place.write("gemm.S", &kernel);
    place.replace("BUILD.toml", "default = 0.0", "default = 3e-3");
    let built = watch.build();
    assert_eq!((built.executed, built.verdict.as_str()), (0, "PASS"));
    assert_eq!(watch.lines_within(QUIET), Vec::<String>::new());
}

#[test]
fn without_watches_it_says_so_and_scans() {
    // In a user namespace of its own a process may lower the limits of inotify for itself.
    for limit in ["max_inotify_watches", "max_inotify_instances"] {
        let inside = format!("echo 0 > /proc/sys/user/{limit}");
        let allowed = Command::new("unshare").args(["-Ur", "sh", "-c", &inside]).stderr(Stdio::null()).status();
        if !allowed.is_ok_and(|status| status.success()) {
            eprintln!("the system allows no user namespaces: the limit {limit} is not tested");
            continue;
        }
        let place = inexact();
        let watch = place.command(&["watch", "//:run"]);
        let mut command = Command::new("unshare");
        command.args(["-Ur", "sh", "-c", &format!("{inside}; exec \"$@\"")]).arg("sh");
        command.arg(watch.get_program()).args(watch.get_args()).current_dir(place.root());
        command.env("XDG_CACHE_HOME", place.beside("cache"));
        let mut watch = Watching::start(command);
        watch.line("all files are looked at five times a second instead");
        assert_eq!(watch.build().verdict, "PASS");
        place.replace("BUILD.toml", "default = 3e-3", "default = 0.0");
        assert_eq!(watch.build().verdict, "FAIL", "{limit}");
    }
}

#[test]
fn lost_events_are_made_up_for_by_looking_at_all_files() {
    let queue = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("Linux has inotify");
    let queue: usize = queue.trim().parse().expect("a number");
    if queue > 100_000 {
        eprintln!("the queue of events is too long to be filled: {queue}");
        return;
    }
    let (place, mut watch) = small();
    watch.signal("STOP");
    for number in 0..queue {
        // Events of one file that follow each other are one.
        fs::write(place.root().join(format!("noise-{}", number % 2)), b"noise").expect("written");
    }
    place.replace("BUILD.toml", "default = 3e-3", "default = 0.0");
    watch.signal("CONT");
    watch.line("all files are looked at");
    assert_eq!(watch.build().verdict, "FAIL");
    place.replace("BUILD.toml", "default = 0.0", "default = 3e-3");
    assert_eq!(watch.build().verdict, "PASS", "it is watched as before");
}

#[test]
fn what_a_link_leads_to_is_noticed_also_when_another_target_names_it() {
    let place = inexact();
    fs::create_dir(place.root().join("links")).expect("a folder");
    std::os::unix::fs::symlink("../hidden.npy", place.root().join("links/hidden.npy")).expect("linked");
    place.replace("BUILD.toml", "\"hidden.npy\"", "\"links/hidden.npy\"");
    place.replace("BUILD.toml", "[model]", "[raw]\nrule = \"filegroup\"\nsrcs = [\"hidden.npy\"]\n\n[model]");
    let mut watch = watching(&place, &["//..."]);
    assert_eq!(watch.build().verdict, "PASS");
    let mut bytes = place.read("hidden.npy");
    *bytes.last_mut().expect("data") ^= 1;
    place.write("hidden.npy", &bytes);
    let built = watch.build();
    assert!(built.executed > 1, "the run and the group: {built:?}");
    assert_eq!(place.run(&["//:run"]).err, "//:run cached=true\n");
}

/// Makes a file a link that leaves the workspace, which no source may be; its bytes.
fn lead_astray(place: &Place, path: &str) -> Vec<u8> {
    let bytes = place.read(path);
    fs::remove_file(place.root().join(path)).expect("removed");
    std::os::unix::fs::symlink("/etc/hostname", place.root().join(path)).expect("linked");
    bytes
}

fn put_back(place: &Place, path: &str, bytes: &[u8]) {
    fs::remove_file(place.root().join(path)).expect("removed");
    place.write(path, bytes);
}

#[test]
fn first_build_heals_after_a_source_could_not_be_read() {
    let place = inexact();
    let bytes = lead_astray(&place, "hidden.npy");
    let mut watch = watching(&place, &["//:run"]);
    assert_eq!(watch.fault("not below the workspace root").verdict, "ERROR");
    put_back(&place, "hidden.npy", &bytes);
    assert_eq!(watch.build().verdict, "PASS");
}

#[test]
fn change_beside_one_that_could_not_be_read_is_built_afterwards() {
    let (place, mut watch) = small();
    watch.signal("STOP");
    let bytes = lead_astray(&place, "hidden.npy");
    let mut weights = place.read("weights.safetensors");
    *weights.last_mut().expect("data") ^= 1;
    place.write("weights.safetensors", &weights);
    watch.signal("CONT");
    assert_eq!(watch.fault("not below the workspace root").verdict, "ERROR");
    put_back(&place, "hidden.npy", &bytes);
    let built = watch.build();
    assert!(built.executed > 0, "{built:?}");
    assert_eq!(place.run(&["//:run"]).err, "//:run cached=true\n");
}

#[test]
fn files_that_git_ignores_are_watched_when_a_target_names_them() {
    let place = inexact();
    place.write(".gitignore", b"*.npy\n");
    let mut watch = watching(&place, &["//:run"]);
    assert_eq!(watch.build().verdict, "PASS");
    let mut bytes = place.read("hidden.npy");
    *bytes.last_mut().expect("data") ^= 1;
    place.write("hidden.npy", &bytes);
    let built = watch.build();
    assert_eq!(built.what, "hidden.npy changed");
    assert!(built.executed > 0, "{built:?}");
}

#[test]
fn two_configurations_in_turn_execute_nothing_after_the_first_time() {
    let (place, mut watch) = small();
    for turn in 0..10 {
        let (from, to) = if turn % 2 == 0 { ("tiles = 2", "tiles = 4") } else { ("tiles = 4", "tiles = 2") };
        place.replace("BUILD.toml", from, to);
        let built = watch.build();
        assert_eq!((built.verdict.as_str(), built.executed > 0), ("PASS", turn == 0), "turn {turn}: {built:?}");
    }
}

#[test]
fn temporary_files_renamed_every_10_ms_end_in_a_build_of_the_last_one() {
    let (place, mut watch) = small();
    let text = String::from_utf8(place.read("BUILD.toml")).expect("text");
    for round in 0..50 {
        let tolerance = if round == 49 { "0.0".to_owned() } else { format!("{}e-3", round + 3) };
        place.write("BUILD.toml~", text.replace("3e-3", &tolerance).as_bytes());
        fs::rename(place.root().join("BUILD.toml~"), place.root().join("BUILD.toml")).expect("renamed");
        std::thread::sleep(Duration::from_millis(10));
    }
    // Rounds between are built or not, as time allows; the last one is.
    while watch.build().verdict != "FAIL" {}
    assert_eq!(watch.lines_within(QUIET), Vec::<String>::new());
    let ran = place.run(&["//:run"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), "//:run cached=true\n"));
}

#[test]
fn store_that_is_deleted_under_watch_is_made_again_and_kept_from_then_on() {
    let (place, mut watch) = small();
    fs::remove_dir_all(place.beside("cache")).expect("removed");
    place.replace("BUILD.toml", "tiles = 2", "tiles = 4");
    watch.line("the store was deleted or replaced: everything is built again");
    let built = watch.build();
    assert_eq!((built.verdict.as_str(), built.executed > 0), ("PASS", true), "{built:?}");
    assert_eq!(place.run(&["//:run"]).err, "//:run cached=true\n");
}
