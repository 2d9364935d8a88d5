//! `ipubuild exchange`: what it prints, writes and refuses.

use serde_json::Value;

use crate::good;
use crate::place::{LARGE, Place};

const HEADER: &str = "index\tsource_tile\twords\twidth\tsource_addresses\tdestinations\n";

fn place() -> Place {
    let place = Place::new();
    let transfers: String =
        (0..8).map(|tile| format!("{tile}\t{tile}\t100\t32\t0x60000\t{}:0x64000,{}:0x64000\n", 8 + tile, 16 + (tile + 3) % 8)).collect();
    place.write("phase.tsv", format!("{HEADER}{transfers}").as_bytes());
    place
}

#[test]
fn a_schedule_that_is_written_is_valid_and_a_changed_one_names_the_rules_it_breaks() {
    let place = place();
    let ran = good(place.run(&["exchange", "schedule", "phase.tsv", "--out", "found.tsv", "--timeline", "found.svg", "--json"]));
    let told: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(told["transfers"], 8);
    assert!(told["horizon"].as_u64() >= told["bound"].as_u64() && told["bound"].as_u64() > Some(100), "{told}");
    let checked = good(place.run(&["exchange", "check", "phase.tsv", "found.tsv", "--json"]));
    let checked: Value = serde_json::from_str(&checked.out).expect("JSON");
    assert_eq!((&checked["valid"], &checked["horizon"]), (&Value::Bool(true), &told["horizon"]));

    let picture = String::from_utf8(std::fs::read(place.root().join("found.svg")).expect("written")).expect("text");
    assert_eq!((picture.matches("class=\"s\"").count(), picture.matches("class=\"r\"").count()), (8, 16));

    let text = String::from_utf8(std::fs::read(place.root().join("found.tsv")).expect("written")).expect("text");
    assert_eq!(text.lines().count(), 9);
    let early: String = text.lines().map(|line| if line.starts_with("3\t") { "3\t0\n".to_owned() } else { format!("{line}\n") }).collect();
    place.write("early.tsv", early.as_bytes());
    let refused = place.run(&["exchange", "check", "phase.tsv", "early.tsv"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.out.contains("I5, tile") && refused.out.contains("message 3"), "{}", refused.out);
}

#[test]
fn what_is_wrong_with_a_table_is_said_with_its_place_and_nothing_is_written() {
    let place = place();
    place.write("bad.tsv", format!("{HEADER}0\t0\t100\t32\t0x60000\t0\n").as_bytes());
    place.write("itself.tsv", format!("{HEADER}0\t0\t100\t32\t0x60000\t0:0x64000\n").as_bytes());
    place.write("wide.tsv", format!("{HEADER}0\t0\t128\t64\t0x60000\t2:0x64000,3:0x64000\n").as_bytes());
    place.write("short.tsv", b"index\tstart\n0\t7\n");
    let cases: [(&[&str], &str); 6] = [
        (&["schedule", "bad.tsv", "--out", "out.tsv"], "error: bad.tsv:2:20: expected tile:address, found `0`"),
        (&["schedule", "itself.tsv", "--out", "out.tsv"], "error: itself.tsv: transfer 0: tile 0 sends to itself"),
        (
            &["schedule", "wide.tsv", "--out", "out.tsv"],
            "error: wide.tsv: transfer 0: expected width 32, found 64; `--pairs` allows pair mode",
        ),
        (&["schedule", "none.tsv", "--out", "out.tsv"], "error: none.tsv: No such file or directory"),
        (&["schedule", "phase.tsv", "--effort", "0", "--out", "out.tsv"], "error: --effort: expected 1 to 1000, found 0"),
        (&["check", "phase.tsv", "short.tsv"], "error: short.tsv:3:1: expected a start for each of 8 transfers, found none for 1"),
    ];
    for (arguments, expected) in cases {
        let ran = place.run(&[&["exchange"], arguments].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?}");
        assert!(ran.err.starts_with(expected), "{arguments:?}: {}", ran.err);
    }
    assert!(!place.root().join("out.tsv").exists());
}

#[test]
fn a_phase_of_a_program_can_be_taken_to_the_laboratory() {
    let place = Place::new();
    place.write("BUILD.toml", LARGE.as_bytes());
    good(place.run(&["build", "//:program"]));
    let table = good(place.run(&["show", "--tsv", "//:program[exchange/0]"])).out;
    place.write("phase.tsv", table.as_bytes());
    let told: Value = serde_json::from_str(&good(place.run(&["exchange", "schedule", "phase.tsv", "--json"])).out).expect("JSON");
    let shown: Value = serde_json::from_str(&good(place.run(&["show", "--json", "//:program[exchange/0]"])).out).expect("JSON");
    assert_eq!(told["transfers"], shown["facts"]["messages"]);
    assert!(shown["title"].as_str().expect("a title").starts_with("//:program[schedule/"), "{}", shown["title"]);
    assert!(told["bound"].as_u64() >= Some(100), "{told}");
    for (name, expected) in
        [("//:program[placement]", "has no table"), ("//:program[exchange/77]", "has no artifact"), ("//:program", "--tsv")]
    {
        let ran = place.run(&["show", "--tsv", name]);
        assert!(ran.code == Some(2) && ran.err.contains(expected), "{name}: {}", ran.err);
    }
}
