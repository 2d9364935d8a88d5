//! FIDELITY.md is what the data files say, and what it says of parameters and tests is so.

use tests::fidelity::{document, entries, groups};

use crate::tree::{Tree, nothing};

#[test]
fn the_document_is_not_stale() {
    let tree = Tree::here();
    let written = tree.named("FIDELITY.md").expect("FIDELITY.md");
    assert!(written.text == document(), "cargo run -p tests --example fidelity > FIDELITY.md");
}

#[test]
fn every_parameter_belongs_to_one_group() {
    let owners = |entry: &_| groups().iter().filter(|group| group.owns(entry)).count();
    nothing(entries().iter().filter(|entry| owners(entry) != 1).map(|entry| &entry.name));
}

#[test]
fn every_named_parameter_exists() {
    let known = |name: &str| entries().iter().any(|entry| entry.name == name || entry.name.split('.').next() == Some(name));
    nothing(groups().iter().flat_map(|group| &group.parameters).filter(|name| !known(name)));
}

#[test]
fn every_named_test_exists() {
    let tree = Tree::here();
    let exists = |test: &str| {
        let (path, function) = test.split_once("::").expect("file::function");
        tree.named(path).is_some_and(|file| {
            file.text.contains(&format!("#[test]\n    fn {function}(")) || file.text.contains(&format!("#[test]\nfn {function}("))
        })
    };
    nothing(groups().iter().flat_map(|group| &group.tests).filter(|test| !exists(test)));
}
