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
    let ran = place.run(&["why", "//:program[pakage]"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("`//:program` has no artifact `[pakage]`") && ran.err.contains("nearest [package]"), "{}", ran.err);
    let ran = place.run(&["why", "//:nowhere"]);
    assert_eq!((ran.code, ran.err.contains("no run of this store built `//:nowhere`")), (Some(2), true), "{}", ran.err);
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
