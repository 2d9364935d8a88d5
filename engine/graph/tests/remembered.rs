//! Builds that go on from what is remembered give what a build from nothing gives.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use graph::{
    Engine, EngineOptions, Label, LoadRequest, Look, PackageName, Pattern, Registry, Remembered, Request, Session, Shared, Silent,
    SourceReader, TargetReport, Workspace,
};
use proptest::prelude::*;
use store::{FileStamp, Store};

struct Place {
    _directory: tempfile::TempDir,
    root: Utf8PathBuf,
    store: Utf8PathBuf,
}

/// How a build began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Known,
    Resumed,
    Loaded,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let base = Utf8Path::from_path(directory.path()).expect("UTF-8").canonicalize_utf8().expect("a directory");
        let place = Place { _directory: directory, root: base.join("workspace"), store: base.join("store") };
        place.write("WORKSPACE.toml", "");
        place
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, text).expect("written");
    }

    /// As the command line builds `pattern`: by what is remembered where it can.
    fn build(&self, pattern: &str, store: &Utf8Path) -> Result<(Way, Vec<TargetReport>), String> {
        let registry = Registry::with_generic_rules();
        let patterns = [Pattern::parse(pattern, &PackageName::in_workspace("")).expect("a pattern")];
        let load = LoadRequest { root: &self.root, registry: &registry, repositories: &[], patterns: &patterns, overrides: &[] };
        let key = Request { load: &load, command: "make", program: FileStamp::default() }.key();
        let store = Store::open(store).expect("a store");
        let sources = SourceReader::new(&self.root, &[]);
        let engine = |store, sources| {
            Engine::new(Shared::new(store, Arc::new(Silent), sources), EngineOptions { threads: 1, shuffle: None }).expect("an engine")
        };
        let full = |engine: Engine| {
            let workspace = Workspace::load(&load).map_err(|faults| faults.to_string())?;
            let labels = workspace.requested().to_vec();
            Session::begin(engine, workspace, &labels).map_err(|fault| fault.0.to_string())
        };
        let (way, mut session) = match Remembered::find(&store, key) {
            None => (Way::Loaded, full(engine(store, sources))?),
            Some(mut remembered) => match remembered.look(&store, &sources) {
                Look::Unchanged => return Ok((Way::Known, remembered.reports(&self.root))),
                Look::Unclear => (Way::Loaded, full(engine(store, sources))?),
                Look::Sources(changed) => {
                    match Session::resume(engine(store, sources), remembered, &changed, &load).map_err(|fault| format!("{fault:?}"))? {
                        Ok(session) => (Way::Resumed, session),
                        Err(engine) => (Way::Loaded, full(engine)?),
                    }
                }
            },
        };
        let mut reports = Vec::new();
        for label in session.requested() {
            reports.extend(session.build(&label).map_err(|failure| failure.to_string())?.pop());
        }
        session.remember(key).expect("remembered");
        Ok((way, reports))
    }

    fn outcomes(&self, pattern: &str) -> Result<(Way, BTreeMap<Label, store::Digest>), String> {
        let (way, reports) = self.build(pattern, &self.store)?;
        Ok((way, reports.into_iter().map(|report| (report.label, report.outcome)).collect()))
    }

    /// What a build from nothing gives.
    fn clean(&self, pattern: &str) -> Result<BTreeMap<Label, store::Digest>, String> {
        let store = tempfile::tempdir().expect("a temporary directory");
        let (way, reports) = self.build(pattern, Utf8Path::from_path(store.path()).expect("UTF-8"))?;
        assert_eq!(way, Way::Loaded);
        Ok(reports.into_iter().map(|report| (report.label, report.outcome)).collect())
    }

    #[track_caller]
    fn check(&self, expected: Way) {
        let (way, outcomes) = self.outcomes("//:root").expect("builds");
        assert_eq!(way, expected);
        assert_eq!(outcomes, self.clean("//:root").expect("builds"));
    }
}

fn small() -> Place {
    let place = Place::new();
    place.write("BUILD.toml", "root = { rule = \"filegroup\", srcs = [\"//a:group\", \"//b:group\"] }");
    for package in ["a", "b"] {
        place.write(
            &format!("{package}/BUILD.toml"),
            "group = { rule = \"filegroup\", srcs = [\":leaf\", \"two.txt\"] }\nleaf = { rule = \"filegroup\", srcs = [\"one.txt\"] }",
        );
        place.write(&format!("{package}/one.txt"), "1");
        place.write(&format!("{package}/two.txt"), "2");
    }
    place
}

#[test]
fn each_sort_of_edit_goes_its_way() {
    let place = small();
    place.check(Way::Loaded);
    place.check(Way::Known);
    place.write("a/one.txt", "3");
    place.check(Way::Resumed);
    place.check(Way::Known);
    // The same bytes again, and back to what was there before.
    place.write("a/one.txt", "3");
    place.check(Way::Known);
    place.write("a/one.txt", "1");
    place.check(Way::Resumed);
    place.write("b/BUILD.toml", "group = { rule = \"filegroup\", srcs = [\"two.txt\"] }");
    place.check(Way::Loaded);
    place.write("b/one.txt", "nobody reads it now");
    place.check(Way::Known);
    fs::rename(place.root.join("a/two.txt"), place.root.join("a/three.txt")).expect("renamed");
    let fault = place.outcomes("//:root").expect_err("a source is missing");
    assert!(fault.starts_with("error: //a:group, srcs[1]: there is no file `a/two.txt`"), "{fault}");
    fs::rename(place.root.join("a/three.txt"), place.root.join("a/two.txt")).expect("renamed");
    place.check(Way::Known);
}

#[test]
fn patterns_see_new_packages() {
    let place = small();
    assert_eq!(place.outcomes("//...").expect("builds").0, Way::Loaded);
    assert_eq!(place.outcomes("//...").expect("builds").0, Way::Known);
    place.write("c/d/BUILD.toml", "new = { rule = \"filegroup\", srcs = [] }");
    let (way, outcomes) = place.outcomes("//...").expect("builds");
    assert_eq!((way, outcomes.len()), (Way::Loaded, 6));
    // A folder without a package changes the walk, and nothing else.
    fs::create_dir(place.root.join("c/empty")).expect("created");
    assert_eq!(place.outcomes("//...").expect("builds").1, outcomes);
}

#[test]
fn damaged_memory_is_a_slow_build() {
    let place = small();
    place.check(Way::Loaded);
    for entry in walkdir(&place.store) {
        let bytes = fs::read(&entry).expect("read");
        if entry.file_name() == Some("records.sqlite-wal") || entry.file_name() == Some("records.sqlite") {
            fs::write(&entry, &bytes[..bytes.len() / 2]).expect("written");
        }
    }
    let (_, outcomes) = place.outcomes("//:root").expect("builds");
    assert_eq!(outcomes, place.clean("//:root").expect("builds"));
}

fn walkdir(root: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = root.read_dir_utf8().expect("a folder").map(|entry| entry.expect("an entry").path().to_owned());
    entries.filter(|path| path.is_file()).collect()
}

/// One change of a workspace of three packages.
#[derive(Clone, Debug)]
enum Edit {
    Content { file: usize, text: usize },
    Members { package: usize, files: Vec<usize>, groups: Vec<usize> },
    Comment { package: usize },
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        4 => (0..6_usize, 0..3_usize).prop_map(|(file, text)| Edit::Content { file, text }),
        2 => (0..3_usize, proptest::collection::vec(0..6_usize, 0..4), proptest::collection::vec(0..3_usize, 0..3))
            .prop_map(|(package, files, groups)| Edit::Members { package, files, groups }),
        1 => (0..3_usize).prop_map(|package| Edit::Comment { package }),
    ];
    proptest::collection::vec(edit, 1..8)
}

impl Edit {
    fn apply(&self, place: &Place) {
        match self {
            Edit::Content { file, text } => place.write(&format!("p{}/s{}", file % 3, file / 3), &"x".repeat(*text)),
            Edit::Comment { package } => {
                let path = place.root.join(format!("p{package}/BUILD.toml"));
                let text = fs::read_to_string(&path).expect("read");
                fs::write(path, format!("# a remark\n{text}")).expect("written");
            }
            Edit::Members { package, files, groups } => {
                // Groups name packages before their own: no circles.
                let files = files.iter().map(|file| format!("\"s{}\"", file / 3));
                let groups = groups.iter().filter(|group| *group < package).map(|group| format!("\"//p{group}:group\""));
                let members: Vec<String> = files.chain(groups).collect();
                let text = format!("group = {{ rule = \"filegroup\", srcs = [{}] }}", members.join(", "));
                place.write(&format!("p{package}/BUILD.toml"), &text);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_edits_give_what_a_build_from_nothing_gives(edits in edits()) {
        let place = Place::new();
        (0..6).for_each(|file| Edit::Content { file, text: 0 }.apply(&place));
        for package in 0..3 {
            Edit::Members { package, files: vec![package], groups: vec![0, 1] }.apply(&place);
        }
        place.write("BUILD.toml", "root = { rule = \"filegroup\", srcs = [\"//p2:group\", \"//p1:group\"] }");
        for edit in edits {
            edit.apply(&place);
            let (_, outcomes) = place.outcomes("//:root").expect("builds");
            prop_assert_eq!(&outcomes, &place.clean("//:root").expect("builds"));
            let (way, again) = place.outcomes("//:root").expect("builds");
            prop_assert_eq!((way, again), (Way::Known, outcomes));
        }
    }
}
