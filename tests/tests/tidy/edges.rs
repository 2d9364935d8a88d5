//! Which crate may depend on which, and where versions are written.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Tree, nothing};

/// Every crate and the crates of ours it is built with.
const EDGES: &[(&str, &[&str])] = &[
    ("engine/store", &[]),
    ("engine/graph", &["engine/store"]),
    (
        "engine/cli",
        &[
            "engine/graph",
            "engine/store",
            "device/ipu21",
            "device/toolchain",
            "device/package",
            "device/simulator",
            "device/driver",
            "rules/exchange",
            "rules/pipeline",
        ],
    ),
    ("device/ipu21", &[]),
    ("device/toolchain", &["device/ipu21"]),
    ("device/package", &["device/ipu21"]),
    ("device/simulator", &["device/ipu21"]),
    ("device/driver", &["device/ipu21", "device/package", "device/simulator"]),
    ("device/kernels", &[]),
    ("rules/exchange", &["device/ipu21"]),
    ("rules/reference", &[]),
    ("rules/compiler", &["device/ipu21", "device/toolchain", "device/package", "rules/exchange"]),
    (
        "rules/pipeline",
        &[
            "engine/graph",
            "device/ipu21",
            "device/toolchain",
            "device/package",
            "device/simulator",
            "device/driver",
            "device/kernels",
            "rules/exchange",
            "rules/reference",
            "rules/compiler",
        ],
    ),
];
/// The crate on top of everything.
const TOP: &str = "tests";

/// Tests of a layer use that layer and the one below it.
const TEST_LAYERS: &[(&str, &[&str])] = &[("device/", &["device/"]), ("engine/", &["engine/"]), ("rules/", &["rules/", "device/"])];

/// The dependencies in sections of a crate's manifest: name, and whether the version is the workspace's.
fn dependencies(manifest: &toml::Table, sections: &[&str]) -> Vec<(String, bool)> {
    let tables = sections.iter().filter_map(|section| manifest.get(*section)?.as_table()).flatten();
    tables
        .map(|(name, value)| {
            let shared = value.get("workspace").and_then(toml::Value::as_bool) == Some(true);
            (name.clone(), shared && value.get("version").is_none() && value.get("path").is_none())
        })
        .collect()
}

/// The manifests of the workspace's members, by folder.
fn members(tree: &Tree) -> BTreeMap<String, toml::Table> {
    let manifest = |path: &str| -> toml::Table { tree.named(path).expect(path).text.parse().expect(path) };
    let root = manifest("Cargo.toml");
    let folders = root["workspace"]["members"].as_array().expect("a list of members");
    folders
        .iter()
        .map(|folder| {
            let folder = folder.as_str().expect("a folder");
            (folder.to_owned(), manifest(&format!("{folder}/Cargo.toml")))
        })
        .collect()
}

/// The folder of each crate of ours, by name.
fn folders(members: &BTreeMap<String, toml::Table>) -> BTreeMap<String, String> {
    let name = |manifest: &toml::Table| manifest["package"]["name"].as_str().expect("a name").to_owned();
    members.iter().map(|(folder, manifest)| (name(manifest), folder.clone())).collect()
}

/// The crates of ours in sections of a manifest.
fn ours(manifest: &toml::Table, sections: &[&str], folders: &BTreeMap<String, String>) -> BTreeSet<String> {
    dependencies(manifest, sections).iter().filter_map(|(name, _)| folders.get(name).cloned()).collect()
}

#[test]
fn crates_depend_on_each_other_as_the_table_says() {
    let members = members(&Tree::here());
    let folders = folders(&members);
    let declared: BTreeSet<&str> = members.keys().map(String::as_str).filter(|folder| *folder != TOP).collect();
    assert_eq!(declared, EDGES.iter().map(|(folder, _)| *folder).collect());
    for (folder, wanted) in EDGES {
        let found = ours(&members[*folder], &["dependencies", "build-dependencies"], &folders);
        assert_eq!(found, wanted.iter().map(|name| (*name).to_owned()).collect(), "{folder}");
    }
}

#[test]
fn tests_of_a_crate_stay_in_their_layers() {
    let members = members(&Tree::here());
    let folders = folders(&members);
    for (layer, allowed) in TEST_LAYERS {
        for (folder, manifest) in members.iter().filter(|(folder, _)| folder.starts_with(layer)) {
            let used = ours(manifest, &["dev-dependencies"], &folders);
            nothing(
                used.iter().filter(|name| !allowed.iter().any(|layer| name.starts_with(layer))).map(|name| format!("{folder}: {name}")),
            );
        }
    }
}

#[test]
fn versions_are_written_in_the_workspace_alone() {
    let members = members(&Tree::here());
    let sections = ["dependencies", "dev-dependencies", "build-dependencies"];
    for (folder, manifest) in &members {
        let own = dependencies(manifest, &sections).into_iter().filter(|(_, shared)| !shared);
        nothing(own.map(|(name, _)| format!("{folder}: {name}")));
        assert!(manifest.get("target").is_none(), "{folder}: dependencies of one target are not looked at here");
    }
}

#[test]
fn every_crate_says_what_it_is() {
    let tree = Tree::here();
    for folder in members(&tree).keys() {
        let roots = ["src/lib.rs", "src/main.rs"].map(|root| tree.named(&format!("{folder}/{root}")));
        let root = roots.into_iter().flatten().next().expect(folder);
        assert!(root.text.starts_with("//! "), "{}", root.path);
    }
}
