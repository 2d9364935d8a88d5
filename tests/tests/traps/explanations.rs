//! An explanation says what changed, and a key can be looked into afterwards.

use tests::place::Place;

use crate::good;

#[test]
fn explanation_names_field_and_file_with_old_and_new() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    place.replace("BUILD.toml", "layout = { tiles = 2 }", "layout = { tiles = 1 }");
    good(place.run(&["//:run"]));
    let why = good(place.run(&["why", "//:run"])).out;
    assert!(why.starts_with("//:run in run 2, against run 1:\n  layout.tiles: 2 -> 1\n    in //:program -> //:run\n"), "{why}");
    assert!(why.contains("//:program[finalists]") && why.contains("layout"), "{why}");
    place.replace("gemm.S", "# ", "# Another word. ");
    good(place.run(&["//:run"]));
    let why = good(place.run(&["why", "//:run"])).out;
    let file = why.lines().nth(1).expect("a reason");
    assert!(file.starts_with("  file gemm.S: ") && file.contains(" -> "), "{why}");
    assert_eq!(why.lines().nth(2), Some("    in //:mine -> //:program -> //:run"));
    assert!(why.contains("same as before: cut off here"), "{why}");
    // In yet another process, and after an answer from the record.
    good(place.run(&["//:run"]));
    let again = good(place.run(&["why", "//:run"])).out;
    assert!(again.starts_with("run 4 answered //:run from its record; it was built in run 3\n"), "{again}");
    let json: serde_json::Value = serde_json::from_str(&good(place.run(&["why", "--json", "--since", "1", "//:run"])).out).expect("JSON");
    let changes: Vec<&str> = json["reasons"].as_array().expect("a list").iter().filter_map(|reason| reason["change"].as_str()).collect();
    assert_eq!(changes, ["field", "source"]);
}

#[test]
fn key_of_an_artifact_is_spelled_out_after_the_run() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    let text = good(place.run(&["why", "//:program[package]"])).out;
    for part in ["key       ", "artifact  ", "  code  ", "images", "//:program[images]"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let listed = good(place.run(&["show", "//:program[kernel_object]", "--json"])).out;
    let kernel = listed.split('"').find(|word| word.starts_with("gemm{")).unwrap_or_else(|| panic!("no gemm in {listed}"));
    let text = good(place.run(&["why", &format!("//:program[kernel_object/{kernel}]")])).out;
    assert!(text.contains("  source ") && text.contains("  variant "), "{text}");
    let ran = place.run(&["why", "//:program[pakage]"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("`//:program` has no artifact `[pakage]`") && ran.err.contains("nearest [package]"), "{}", ran.err);
    let ran = place.run(&["why", "//:nowhere"]);
    assert_eq!((ran.code, ran.err.contains("no run of this workspace built `//:nowhere`")), (Some(2), true), "{}", ran.err);
}

#[test]
fn touched_file_is_no_reason_and_it_is_said_what_was_compared() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    place.write("gemm.S", &place.read("gemm.S"));
    let why = good(place.run(&["why", "--not", "//:run"])).out;
    assert!(why.starts_with("//:run is not built again: its key "), "{why}");
    place.replace("BUILD.toml", "default = 3e-3", "default = 4e-3");
    let why = good(place.run(&["why", "--not", "//:run"])).out;
    assert!(why.starts_with("//:run would be built now; against run 1:\n  tolerance.default: 0.003 -> 0.004\n"), "{why}");
}

#[test]
fn target_that_is_only_read_is_never_said_to_be_built() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    let why = || good(place.run(&["why", "--not", "//:weights"])).out;
    assert_eq!(why(), "//:weights is only read, and nothing it is made from differs from run 1\n");
    let mut bytes = place.read("weights.safetensors");
    *bytes.last_mut().expect("data") ^= 1;
    place.write("weights.safetensors", &bytes);
    assert!(why().starts_with("//:weights is only read; against run 1:\n  file weights.safetensors: "), "{}", why());
}

fn first_line(place: &Place, arguments: &[&str]) -> String {
    good(place.run(arguments)).out.lines().next().expect("a line").to_owned()
}

#[test]
fn way_back_to_an_older_layout_is_explained_by_the_run_that_made_it() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    place.replace("BUILD.toml", "tiles = 2", "tiles = 1");
    good(place.run(&["//:run"]));
    place.replace("BUILD.toml", "tiles = 1", "tiles = 2");
    good(place.run(&["//:run"]));
    let why = good(place.run(&["why", "//:run"])).out;
    assert!(why.starts_with("run 3 answered //:run from the record that run 1 had made\n//:run in run 3, against run 2:\n"), "{why}");
    assert!(why.contains("  layout.tiles: 1 -> 2\n"), "{why}");
    let json: serde_json::Value = serde_json::from_str(&good(place.run(&["why", "--json", "//:run"])).out).expect("JSON");
    assert_eq!((&json["run"], &json["before"], &json["made"]), (&3.into(), &2.into(), &1.into()));
    let stages = json["stages"].as_array().expect("a list");
    assert!(!stages.is_empty() && stages.iter().all(|stage| stage["executed"] == false), "{json}");
}

#[test]
fn workspaces_that_share_a_store_have_histories_of_their_own() {
    let (one, other) = (Place::small(), Place::small());
    let store = one.beside("shared").display().to_string();
    good(one.run(&["--store", &store, "//:run"]));
    other.replace("BUILD.toml", "tiles = 2", "tiles = 1");
    good(other.run(&["--store", &store, "//:run"]));
    assert!(first_line(&other, &["--store", &store, "why", "//:run"]).starts_with("//:run has this key since run 2"));
    one.replace("BUILD.toml", "tiles = 2", "tiles = 1");
    good(one.run(&["--store", &store, "//:run"]));
    let why = good(one.run(&["--store", &store, "why", "//:run"])).out;
    assert!(why.starts_with("run 3 answered //:run from the record that run 2 had made\n//:run in run 3, against run 1:\n"), "{why}");
    let log: serde_json::Value = serde_json::from_str(&good(one.run(&["--store", &store, "log", "--json"])).out).expect("JSON");
    let roots: Vec<&str> = log.as_array().expect("a list").iter().filter_map(|run| run["workspace"].as_str()).collect();
    assert_eq!(roots.len(), 3);
    assert!(roots[0] == roots[2] && roots[0] != roots[1], "{roots:?}");
    let listed = good(one.run(&["--store", &store, "log"])).out;
    assert!(listed.lines().skip(1).filter(|line| line.contains(roots[0])).count() == 2 && listed.contains(roots[1]), "{listed}");
}

#[test]
fn failed_run_is_told_with_its_message() {
    let place = Place::small();
    place.replace("gemm.S", "# ", "nonsense $m99\n# ");
    assert_eq!(place.run(&["//:run"]).code, Some(2));
    let ran = place.run(&["why", "//:run"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("no run built `//:run` yet; run 1 was to, and failed:") && ran.err.contains("gemm.S:"), "{}", ran.err);
    place.replace("gemm.S", "nonsense $m99\n", "");
    good(place.run(&["//:run"]));
    place.replace("BUILD.toml", "tiles = 2", "tils = 2");
    assert_eq!(place.run(&["//:run"]).code, Some(2));
    let why = good(place.run(&["why", "//:run"])).out;
    assert!(why.starts_with("run 3 was to build //:run and failed:\n") && why.contains("unknown field `tils`"), "{why}");
    assert!(good(place.run(&["log", "3"])).out.contains("unknown field `tils`"));
}

#[test]
fn targets_that_are_only_read_are_explained_like_those_that_are_built() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    let mut bytes = place.read("hidden.npy");
    *bytes.last_mut().expect("data") ^= 1;
    place.write("hidden.npy", &bytes);
    good(place.run(&["//:run"]));
    let why = good(place.run(&["why", "//:input"])).out;
    assert!(why.starts_with("//:input in run 2, against run 1:\n  file hidden.npy: "), "{why}");
    let key = good(place.run(&["why", "//:input[tensor/hidden]"])).out;
    assert!(key.starts_with("//:input[tensor/hidden]\n  key       "), "{key}");
}

#[test]
fn log_knows_the_chain_of_stages_that_took_longest_through_parts_of_artifacts() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    let log: serde_json::Value = serde_json::from_str(&good(place.run(&["log", "1", "--json"])).out).expect("JSON");
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let stages = |field: &str| -> Vec<(String, f64)> {
        let named = |stage: &serde_json::Value| (stage["stage"].as_str().expect("a name").to_owned(), number(&stage["elapsed_ms"]));
        log[field].as_array().expect("a list").iter().map(named).collect()
    };
    let (path, all) = (stages("critical_path"), stages("stages"));
    assert_eq!(path.last().map(|(name, _)| name.as_str()), Some("[verdict]"), "{path:?}");
    // A mapping reads one plan of the finalists; whichever chain took longest, it took no less than this one.
    let took = |name: &str| all.iter().find(|(stage, _)| stage == name).unwrap_or_else(|| panic!("no {name} in {all:?}")).1;
    let chain = ["finalists", "mapping/0", "expanded/0", "refined/0", "selected", "images", "package", "simulation", "verdict"];
    let known: f64 = chain.iter().map(|name| took(&format!("[{name}]"))).sum();
    assert!(path.iter().map(|(_, elapsed)| elapsed).sum::<f64>() >= known, "{known} {path:?}");
    let (work, engine, wall) = (&log["work_ms"], &log["engine_ms"], &log["elapsed_ms"]);
    assert!(number(engine) > 0.0 && number(engine) <= number(wall) && number(work) > 0.0, "{log}");
    let spans: Vec<&str> = log["spans"].as_array().expect("a list").iter().filter_map(|span| span["name"].as_str()).collect();
    assert!(["finalists", "store"].iter().all(|name| spans.contains(name)), "{spans:?}");
    good(place.run(&["//:run"]));
    assert!(!good(place.run(&["log", "2"])).out.contains("-0.0"));
}

#[test]
fn run_beyond_the_newest_is_refused_with_those_there_are() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    let ran = place.run(&["why", "--since", "9", "//:run"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), "error: there is no run 9: expected a run from 1 to 1\n"));
}
