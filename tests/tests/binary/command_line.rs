//! Commands, options, exit codes and where output goes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::good;
use crate::place::{LARGE, Place, Ran, SMALL};

#[track_caller]
fn bad(ran: Ran, code: i32, message: &str) {
    assert_eq!((ran.code, ran.out.as_str(), ran.err.trim_end()), (Some(code), "", message));
}

#[test]
fn label_alone_builds_and_runs_and_prints_the_verdict() {
    let place = Place::small();
    let ran = good(place.run(&["//:run"]));
    let last: Vec<&str> = ran.out.lines().rev().take(3).collect();
    assert!(last[2].starts_with("checkpoint=0 operation=0 tensors=1 samples=256 maximumAbsoluteError=0."), "{}", ran.out);
    assert_eq!(last[1], "diagnosticCheckpoints=1 sampleLimit=256 numericalTest=PASS");
    assert_eq!(last[0], "package=artifacts/program/model.ipuexe tiles=1472 simulatorTest=PASS");
    assert!(place.root().join("artifacts/program/model.ipuexe").is_file());
    assert!(place.root().join("artifacts/run/report.json").is_file());
}

#[test]
fn second_time_the_verdict_is_found_and_no_stage_executes() {
    let place = Place::small();
    let first = good(place.run(&["//:run"]));
    let second = good(place.run(&["-v", "//:run"]));
    assert_eq!((second.out, second.err.as_str()), (first.out, "//:run cached=true\n"));
}

#[test]
fn failed_verdict_exits_with_1_and_prints_it() {
    let place = Place::small();
    place.replace("BUILD.toml", "default = 3e-3", "default = 0.0");
    place.write(
        "weights.safetensors",
        &crate::place::safetensors(
            r#"{"weight":{"dtype":"F16","shape":[16,16],"data_offsets":[0,512]}}"#,
            &(0..256_u16).flat_map(|index| half::f16::from_f32(f32::from(index) / 255.0).to_le_bytes()).collect::<Vec<u8>>(),
        ),
    );
    let ran = place.run(&["//:run"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.out.ends_with("package=artifacts/program/model.ipuexe tiles=1472 simulatorTest=FAIL\n"), "{}", ran.out);
}

#[test]
fn build_gives_the_package_without_running() {
    let place = Place::small();
    let ran = good(place.run(&["build", "//:run"]));
    assert_eq!(ran.out, "");
    assert!(place.root().join("artifacts/program/model.ipuexe").is_file());
    assert!(!place.root().join("artifacts/run").exists());
}

#[test]
fn run_takes_run_targets_alone() {
    let place = Place::small();
    bad(place.run(&["run", "//:model"]), 2, "error: `//:model` is a `model`\n --> BUILD.toml:1:2     expected a run target or a sweep");
    good(place.run(&["run", "//..."]));
}

#[test]
fn relative_labels_are_those_of_the_directory() {
    let place = Place::small();
    place.write("nets/BUILD.toml", b"[files]\nrule = \"filegroup\"\nsrcs = [\"BUILD.toml\"]\n");
    let ran = good(place.run(&["-C", "nets", "query", ":files"]));
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("//nets:files\n", ""));
}

#[test]
fn suite_runs_every_test_whatever_fails() {
    let place = Place::small();
    let suite = "\n[all]\nrule = \"test_suite\"\ntests = [\":broken\", \":run\"]\n";
    let broken = SMALL[SMALL.find("[run]").expect("a run target")..].replace("[run]", "[broken]").replace("hidden = \":input\"", "");
    place.write("BUILD.toml", format!("{SMALL}{suite}{broken}").as_bytes());
    let ran = place.run(&["test", "--color", "never", "//:all"]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.out.ends_with("simulatorTest=PASS\n"), "{}", ran.out);
    let told: Vec<&str> = ran.err.lines().rev().take(4).collect();
    assert!(told[0].starts_with("1 of 2 tests pass, 0 cached, ") && told[1] == "PASS //:run", "{}", ran.err);
    assert!(told[2].starts_with("     //:broken") && told[3] == "FAIL //:broken", "{}", ran.err);
}

#[test]
fn a_run_with_more_clocks_than_allowed_fails_with_both_figures_and_junit_tells_it() {
    let place = Place::small();
    let slow = SMALL[SMALL.find("[run]").expect("a run target")..].replace("[run]", "[slow]");
    place.write(
        "BUILD.toml",
        format!("{SMALL}\n[all]\nrule = \"test_suite\"\ntests = [\":slow\", \":run\"]\n{slow}max_clocks = 1\n").as_bytes(),
    );
    good(place.run(&["//:run"]));
    let ran = place.run(&["test", "--color", "never", "--junit", "tests.xml", "//:all"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let line = ran.out.lines().find(|line| line.contains("maxClocks=1 ")).expect("a line of clocks");
    assert!(line.starts_with("clocks=") && line.ends_with(" clocksTest=FAIL"), "{line}");
    assert!(ran.err.contains(&format!("FAIL //:slow\n     {line}\nPASS //:run cached=true\n1 of 2 tests pass, 1 cached, ")), "{}", ran.err);
    let xml = std::fs::read_to_string(place.root().join("tests.xml")).expect("written");
    for part in ["tests=\"2\" failures=\"1\" errors=\"0\"", "classname=\"//\" name=\"slow\"", &format!("<failure message=\"{line}\">")] {
        assert!(xml.contains(part), "{part}: {xml}");
    }
    let refused = place.run(&["--set", "max_clocks=0", "//:slow"]);
    assert!(refused.code == Some(2) && refused.err.contains("max_clocks"), "{}", refused.err);
}

#[test]
fn unknown_target_is_told_with_its_neighbours() {
    let place = Place::small();
    bad(
        place.run(&["//:rum"]),
        2,
        "error: unknown target `//:rum`\n     expected one of `input`, `machine`, `mine`, `model`, `program`, `run`, `weights`; nearest run",
    );
}

#[test]
fn query_lists_labels() {
    let place = Place::small();
    let answer = |query: &str| good(place.run(&["query", query])).out;
    assert_eq!(answer("//..."), "//:input\n//:machine\n//:mine\n//:model\n//:program\n//:run\n//:weights\n");
    assert_eq!(answer("deps(//:program)"), "//:machine\n//:mine\n//:model\n//:program\n@ipu//kernels:kernels\n");
    assert_eq!(answer("rdeps(//..., @ipu//kernels)"), "//:program\n//:run\n@ipu//kernels:kernels\n");
}

#[test]
fn events_are_json_lines_with_figures_and_the_target() {
    let place = Place::small();
    good(place.run(&["--events", "events.jsonl", "//:run"]));
    let text = String::from_utf8(place.read("events.jsonl")).expect("text");
    let events: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: BTreeSet<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert!(kinds.is_superset(&BTreeSet::from(["stage", "target", "wave"])), "{kinds:?}");
    let stages: Vec<&serde_json::Value> = events.iter().filter(|event| event["event"] == "stage").collect();
    assert!(stages.iter().all(|stage| stage["elapsed_ms"].is_number() && stage["success"] == true && stage["figures"].is_object()));
    assert_eq!((&events[0]["event"], &events[0]["version"]), (&"schema".into(), &1.into()));
    let [.., verdict, run] = events.as_slice() else { panic!("two events at the end") };
    assert_eq!((&run["event"], &run["run"], &run["outcome"]), (&"run".into(), &1.into(), &"success".into()));
    assert_eq!((&verdict["event"], &verdict["label"], &verdict["cached"]), (&"target".into(), &"//:run".into(), &false.into()));
}

#[test]
fn verbose_tells_stages_with_their_figures() {
    let place = Place::small();
    let ran = good(place.run(&["-v", "-j", "1", "//:run"]));
    let stages: Vec<&str> =
        ran.err.lines().filter(|line| line.contains(" elapsed_ms=")).filter_map(|line| line.split(' ').next()).collect();
    assert!(stages.contains(&"//:program[package]") && stages.contains(&"//:run[verdict]"), "{}", ran.err);
}

#[test]
fn one_off_change_reaches_the_program_and_leaves_the_file_alone() {
    let place = Place::small();
    let ran = good(place.run(&["--set", "layout.tiles=1", "show", "//:program"]));
    assert!(ran.out.contains("  layout      = { tiles = 1 }\n"), "{}", ran.out);
    good(place.run(&["--set", "layout.tiles=1", "//:run"]));
    assert_eq!(String::from_utf8(place.read("BUILD.toml")).expect("text"), SMALL);
    bad(
        place.run(&["--set", "layuot.tiles=1", "//:run"]),
        2,
        "error: unknown field `layuot`\n --> --set layuot.tiles=1     expected one of `checkpoints`, `chip`, `device`, `expected`, `files`, \
         `headers`, `inputs`, `kernels`, `layout`, `machine`, `manifest`, `max_clocks`, `model`, `normal`, `op`, `outputs`, `parameters`, \
         `program`, `sample_seed`, `seed`, `select`, `srcs`, `tensors`, `tolerance`, `toolchain`; nearest layout",
    );
}

#[test]
fn clean_removes_files_and_the_store_brings_them_back() {
    let place = Place::small();
    let first = good(place.run(&["//:run"]));
    let ran = good(place.run(&["clean", "//..."]));
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", "//:program removed artifacts/program\n//:run removed artifacts/run\n"));
    assert!(!place.root().join("artifacts").exists());
    let again = good(place.run(&["-v", "//:run"]));
    assert_eq!((again.out, again.err.as_str()), (first.out, "//:run cached=true\n"));
    assert!(place.root().join("artifacts/run/report.json").is_file());
}

#[test]
fn show_lists_a_target_and_a_package() {
    let place = Place::small();
    assert!(good(place.run(&["show", "//:program"])).out.ends_with("\nnot built as it is declared now\n"));
    good(place.run(&["//:run"]));
    assert!(good(place.run(&["show", "//:program"])).out.contains("artifacts/program/model.ipuexe\n"));
    let ran = good(place.run(&["show", "artifacts/program/model.ipuexe"]));
    assert!(ran.out.contains("\nchip          IPU21, 1472 tiles of 638,976 bytes\n"), "{}", ran.out);
    for section in ["tensors", "calls", "pages", "checkpoints", "steps"] {
        assert!(ran.out.contains(&format!("\n{section}\n")), "{}", ran.out);
    }
    let ran = good(place.run(&["show", "--json", "artifacts/program/model.ipuexe"]));
    let summary: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(summary["tiles"], 1472);
}

#[test]
fn store_is_where_the_options_say() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    assert!(place.beside("cache/ipubuild/records.sqlite").is_file());
    let elsewhere = place.beside("elsewhere");
    good(place.run(&["--store", elsewhere.to_str().expect("UTF-8"), "build", "//:program"]));
    assert!(elsewhere.join("records.sqlite").is_file());
    let home = place.beside("home");
    let ran = place.command(&["query", "//..."]).env_remove("XDG_CACHE_HOME").env("HOME", &home).output().expect("the program starts");
    assert!(ran.status.success());
    assert!(!home.exists(), "a query needs no store");
    good(place.command(&["build", "//:program"]).env_remove("XDG_CACHE_HOME").env("HOME", &home).output().expect("starts").into());
    assert!(home.join(".cache/ipubuild/records.sqlite").is_file());
}

#[test]
fn help_and_version_succeed_and_wrong_usage_exits_with_2() {
    let place = Place::new();
    assert!(
        good(place.run(&["--help"]))
            .out
            .contains("Exit codes: 0 success, 1 build or verdict failed, 2 bad input or usage, 130 interrupted.")
    );
    assert!(good(place.run(&["--version"])).out.starts_with("ipubuild "));
    assert_eq!(place.run(&["--frobnicate"]).code, Some(2));
    bad(place.run(&[]), 2, "error: no target and no command; `ipubuild --help` lists what can be done");
    bad(place.run(&["biuld"]), 2, "error: `biuld` is neither a command nor a label; `ipubuild --help` lists commands");
}

#[test]
fn reader_that_stops_early_is_no_fault() {
    let place = Place::small();
    let mut command = place.command(&["query", "//..."]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}

#[test]
fn interrupted_build_exits_with_130_and_can_be_repeated() {
    let place = Place::small();
    place.write("large/BUILD.toml", LARGE.as_bytes());
    // The first line of a stage says that the build runs.
    let (code, _, said) = stopped_at(&place, &["-v", "//large:run"], " elapsed_ms=");
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("error: //large:") && said.contains(": interrupted\n"), "{said}");
    good(place.run(&["//:run"]));
}

#[test]
fn graph_is_a_tree_a_picture_or_a_page_of_its_own() {
    let place = Place::small();
    let tree = good(place.run(&["graph", "//:run"])).out;
    assert!(tree.starts_with("//:run  run\n  //:input  tensors\n  //:program  program\n    "), "{tree}");
    good(place.run(&["//:run"]));
    let tree = good(place.run(&["graph", "//:run"])).out;
    assert!(tree.starts_with("//:run  run  [host_file×2 reference simulation verdict]\n"), "{tree}");
    good(place.run(&["graph", "--svg", "run.svg", "//:run"]));
    let svg = String::from_utf8(place.read("run.svg")).expect("text");
    // A box for each target that the tree has.
    let targets = tree.lines().filter(|line| !line.ends_with("(above)")).count();
    assert_eq!((svg.matches("<rect").count(), svg.matches("</g>").count()), (targets, targets));
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains(">simulation  "), "{svg}");
    good(place.run(&["graph", "--html", "run.html", "//:run"]));
    let html = String::from_utf8(place.read("run.html")).expect("text");
    assert!(html.contains(&svg) && html.contains("<td>//:run</td><td>verdict</td><td>1</td>"), "{html}");
    // Nothing is fetched from elsewhere.
    assert_eq!(html.matches("http").count(), 1, "the name space of the picture");
    assert!(!html.contains("src=") && !html.contains("href="));
}

/// Starts a build, waits for the first line that holds `line`, and stops it; code, time until the end, what it said.
fn stopped_at(place: &Place, arguments: &[&str], line: &str) -> (Option<i32>, Duration, String) {
    let mut child = place.command(arguments).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped"));
    let mut said = String::new();
    while !said.contains(line) {
        assert!(lines.read_line(&mut said).expect("text") > 0, "it ended without {line}: {said}");
    }
    let stopped = Instant::now();
    tests::watching::signal(child.id(), "INT");
    lines.read_to_string(&mut said).expect("text");
    (child.wait().expect("ends").code(), stopped.elapsed(), said)
}

/// What ends within a second on a machine that does nothing else.
const PROMPT: Duration = Duration::from_secs(3);

#[test]
fn long_stage_is_given_up_and_what_was_finished_is_kept() {
    let place = Place::small();
    place.write("large/BUILD.toml", LARGE.as_bytes());
    let (code, elapsed, said) = stopped_at(&place, &["-v", "//large:run"], "//large:program[package] ");
    assert_eq!(code, Some(130), "{said}");
    assert!(elapsed < PROMPT, "{elapsed:?}");
    let again = good(place.run(&["-v", "//large:run"])).err;
    let cached = |stage: &str| again.lines().find(|line| line.contains(stage)).map(|line| line.ends_with("cached=true"));
    // The target may have been finished as well; then nobody asks for its stages.
    assert!(cached("//large:program[package] ").unwrap_or(true) && cached("//large:run[verdict] ") == Some(false), "{again}");
}

#[test]
fn stopped_verify_leaves_nothing_behind() {
    let place = Place::small();
    place.write("large/BUILD.toml", LARGE.as_bytes());
    good(place.run(&["//large:run"]));
    let (code, elapsed, said) = stopped_at(&place, &["-v", "verify", "//large:run"], "cached=false");
    assert_eq!(code, Some(130), "{said}");
    assert!(elapsed < PROMPT, "{elapsed:?}");
    let store = place.beside("cache/ipubuild");
    let names = std::fs::read_dir(&store).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("verify-")).collect();
    assert!(left.is_empty(), "{left:?}");
    good(place.run(&["verify", "//large:run"]));
}
