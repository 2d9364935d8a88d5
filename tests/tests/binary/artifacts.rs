//! `show LABEL[stage/index]`: every artifact of a small run as text and as JSON, and what is refused.

use graph::{Digest, Label, PackageName, Selection, Shown, StageEntry, StageFacts, kept_stages};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde_json::Value;
use store::{RecordKind, Store};

use crate::good;
use crate::place::Place;

fn json(place: &Place, arguments: &[&str]) -> Value {
    serde_json::from_str(&good(place.run(&[&["show", "--json"], arguments].concat())).out).expect("JSON")
}

/// A built workspace, its store, and the stages of a target.
fn stages(place: &Place, label: &str) -> (Store, Vec<StageEntry>) {
    let store = Store::open(camino::Utf8Path::from_path(&place.beside("cache/ipubuild")).expect("UTF-8")).expect("the store opens");
    let key: Digest = json(place, &[label])["key"].as_str().and_then(|key| key.parse().ok()).expect("a key");
    let entries = kept_stages(&store, label, key).expect("readable").expect("built");
    (store, entries)
}

const TARGETS: [&str; 4] = ["//:program", "//:run", "//:input", "//:model"];

#[test]
fn every_artifact_of_a_run_is_shown_with_the_figures_that_the_build_told() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    let mut seen = std::collections::BTreeSet::new();
    for label in TARGETS {
        let (store, entries) = stages(&place, label);
        for entry in entries.iter().filter(|entry| seen.insert(entry.name.stage.clone())) {
            let name = format!("{label}{}", entry.name);
            assert!(good(place.run(&["show", &name])).out.starts_with(&format!("{name}\n\n")), "{name}");
            let document = json(&place, &[&name]);
            assert_eq!(document["facts"]["digest"], entry.digest.to_string(), "{name}");
            let facts = StageFacts::read(&store, &entry.key).expect("readable").expect("recorded");
            for (figure, value) in facts.figures.iter().filter(|(figure, _)| figure != "parameters_read") {
                assert_eq!(document["facts"][figure], serde_json::to_value(value).expect("JSON"), "{name} {figure}");
            }
        }
    }
    let stages: Vec<&str> = seen.iter().map(String::as_str).collect();
    for stage in ["expanded", "finalists", "images", "kernel_object", "model", "placement", "tensor", "verdict"] {
        assert!(stages.contains(&stage), "{stages:?}");
    }
    let package = json(&place, &["//:program[package]"]);
    let file = json(&place, &["artifacts/program/model.ipuexe"]);
    for fact in ["tiles", "segments", "memory_bytes", "largest_tile_bytes", "planned_clocks", "symbols"] {
        assert_eq!(package["facts"][fact], file[fact], "{fact}");
    }
    assert_eq!(json(&place, &["//:program[images]"])["facts"]["segments"], file["segments"]);
    let tensor = json(&place, &["//:input[tensor/hidden]"]);
    assert_eq!((&tensor["facts"]["shape"], &tensor["facts"]["minimum"]), (&"1x16x16".into(), &(-0.375).into()));
}

#[test]
fn damaged_artifacts_are_refused_or_shown_and_never_panic() {
    let place = Place::small();
    good(place.run(&["//:run"]));
    let registry = pipeline::rule::registry();
    let mut random = ChaCha8Rng::seed_from_u64(11);
    for label in TARGETS {
        let (store, entries) = stages(&place, label);
        let parsed = Label::parse(label, &PackageName::in_workspace("")).expect("a label");
        let blob = |digest: &Digest| store.blob(digest).ok();
        let facts_of = |key: &Digest| store.record::<StageFacts>(RecordKind::Action, key).ok().flatten();
        for entry in &entries {
            let renderer = registry.renderer(&entry.name.stage).expect("every stage has a renderer");
            let facts = facts_of(&entry.key);
            let sound = store.blob(&entry.digest).expect("kept");
            for round in 0..12 {
                let mut body = sound.clone();
                let at = random.next_u64() as usize % body.len();
                if round % 4 == 0 {
                    body.truncate(at);
                } else {
                    body[at] = random.next_u64() as u8;
                }
                let selection = Selection { tile: (round % 3 == 1).then_some(0), from: None };
                let shown = Shown {
                    label: &parsed,
                    entry,
                    body: &body,
                    facts: facts.as_ref(),
                    entries: &entries,
                    selection,
                    blob: &blob,
                    facts_of: &facts_of,
                };
                if let Ok(document) = renderer.show(&shown) {
                    serde_json::to_string(&document).expect("JSON");
                }
            }
        }
    }
}

#[test]
fn what_is_not_there_is_told_with_what_there_is() {
    let place = Place::small();
    let ran = place.run(&["show", "//:program[package]"]);
    let message = "error: `//:program` has no artifacts: it was not built as it is declared now; `ipubuild build //:program` builds it\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), message));
    good(place.run(&["build", "//:program"]));
    let ran = place.run(&["show", "//:program[pakage]"]);
    assert!(ran.code == Some(2) && ran.err.ends_with("; nearest package\n"), "{}", ran.err);
    let ran = place.run(&["show", "--tile", "3", "//:program[package]"]);
    assert_eq!(ran.err, "error: `//:program[package]`: `--tile` means nothing for an application package\n");
    let ran = place.run(&["show", "--limit", "3", "//:program"]);
    assert_eq!(ran.err, "error: `--tile`, `--from` and `--limit` are for artifacts; expected `LABEL[stage/index]`\n");
    let ran = place.run(&["show", "--tile", "1471", "//:program[expanded/0]"]);
    let start = "error: `//:program[expanded/0]`: there is no tile 1471 in it; expected one of ";
    assert!(ran.code == Some(2) && ran.err.starts_with(start), "{}", ran.err);
    let list = json(&place, &["//:program[expanded]", "--limit", "1"]);
    assert_eq!(list["tables"][0]["rows"].as_array().map(Vec::len), Some(1));
}
