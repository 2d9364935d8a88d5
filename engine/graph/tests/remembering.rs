//! Builds that begin with what an earlier process remembered, against builds from the start: whatever was edited in
//! between, both give the same.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use graph::{
    Artifact, Bytes, Db, Declaration, Digest, Engine, EngineOptions, Export, Failure, Field, Input, Label, LoadRequest, Look, Made,
    Outcome, Override, PackageName, Pattern, Registry, Remembered, Request, Rule, RuleData, RuleKind, Session, Shared, Silent,
    SourceReader, StageNote, StageSpec, Target, TargetReport, Workspace, data_of, load, read_source, stage,
};
use proptest::prelude::*;
use serde::Deserialize;
use store::{FileStamp, RecordKind, References, Store};

/// Files and other joins, end to end, with a mark in front. It looks into the joins that it names.
#[derive(Debug, PartialEq, Deserialize)]
struct Join {
    parts: Vec<Input>,
    #[serde(default)]
    mark: u32,
}

#[salsa::tracked(returns(clone))]
fn joined(db: &dyn Db, target: Target) -> Result<Artifact<Bytes>, Failure> {
    let label = target.label(db);
    let join = data_of::<Join>(db, label)?;
    let mut used = Vec::new();
    let mut inputs = vec![("mark", Digest::of(&join.mark.to_le_bytes()))];
    for part in &join.parts {
        match part {
            Input::File(path) => inputs.push(("file", db.source(path).digest(db))),
            Input::Target(label) => {
                let artifact = joined(db, db.target(label))?;
                inputs.push(("join", artifact.digest()));
                used.push(artifact);
            }
        }
    }
    stage(db, &StageSpec::new("joined", Digest::of(b"code"), label), &inputs, || {
        let mut bytes = vec![b'0' + (join.mark % 10) as u8];
        let mut used = used.iter();
        for part in &join.parts {
            match part {
                Input::File(path) => bytes.extend_from_slice(&read_source(db, db.source(path))?),
                Input::Target(_) => bytes.extend_from_slice(&load(db, used.next().expect("one for each join"))?),
            }
        }
        Ok(Made::new(Bytes::from(bytes)))
    })
}

struct JoinRule;

impl Rule for JoinRule {
    fn name(&self) -> &'static str {
        "join"
    }

    fn summary(&self) -> &'static str {
        "Parts end to end."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::required("parts", "list of files and labels of `join`s", "The parts.").accepting(&["join"]),
            Field::optional("mark", "an integer", "What stands in front."),
        ];
        FIELDS
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        Some(Arc::new(declaration.read::<Join>()?))
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Built
    }

    fn stages(&self, engine: &Engine, label: &Label) -> Vec<StageNote> {
        joined::accumulated::<StageNote>(engine, engine.target(label)).into_iter().cloned().collect()
    }

    fn finish(&self, engine: &Engine, label: &Label) -> Result<Outcome, Failure> {
        let artifact = joined(engine, engine.target(label))?;
        Ok(Outcome { exports: vec![Export::of_artifact(engine, "joined", &artifact)?], ..Outcome::default() })
    }
}

fn registry() -> Registry {
    let mut registry = Registry::with_generic_rules();
    registry.add(JoinRule);
    registry
}

fn named(text: &str) -> Label {
    Label::parse(text, &PackageName::in_workspace("")).expect("a label")
}

/// How a build began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// With reports, from stamps of files alone.
    Known,
    /// With the declarations that changed sources reach.
    Part,
    /// With everything.
    Whole,
}

/// What a build gave: outcomes of requested targets and contents of exported files, or what was wrong.
type Given = Result<BTreeMap<String, (Digest, bool, Vec<String>)>, String>;

/// What one process did.
#[derive(Debug)]
struct Build {
    way: Way,
    executed: usize,
    given: Given,
}

struct Fixture {
    _directory: tempfile::TempDir,
    root: Utf8PathBuf,
    base: Utf8PathBuf,
}

impl Fixture {
    fn new() -> Fixture {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let base = Utf8Path::from_path(directory.path()).expect("UTF-8").canonicalize_utf8().expect("a directory");
        let fixture = Fixture { _directory: directory, root: base.join("workspace"), base };
        fixture.write("WORKSPACE.toml", "");
        fixture
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, text).expect("written");
    }

    fn store(&self) -> Store {
        Store::open(&self.base.join("store")).expect("the store opens")
    }

    /// A build as a new process does it, with the shared store.
    fn build(&self, pattern: &str, changes: &[&str]) -> Build {
        let registry = registry();
        let patterns = [Pattern::parse(pattern, &PackageName::in_workspace("")).expect("a pattern")];
        let overrides: Vec<Override> = changes.iter().map(|text| Override::parse(text).expect("a change")).collect();
        let request = LoadRequest { root: &self.root, registry: &registry, repositories: &[], patterns: &patterns, overrides: &overrides };
        let key = Request { load: &request, command: "build", program: FileStamp::default() }.key();
        let store = self.store();
        let sources = SourceReader::new(&self.root, &[]);
        let mut resumed = None;
        if let Some(mut remembered) = Remembered::find(&store, key) {
            match remembered.look(&store, &sources) {
                Look::Unchanged => {
                    return Build { way: Way::Known, executed: 0, given: Ok(given(&remembered.reports(&self.root))) };
                }
                Look::Sources(changed) => resumed = Some((remembered, changed)),
                Look::Unclear => {}
            }
        }
        let mut engine = self.engine(store);
        if let Some((remembered, changed)) = resumed {
            engine = match Session::resume(engine, remembered, &changed, &request) {
                Ok(session) => return run(session, key, Way::Part),
                Err(engine) => *engine,
            };
        }
        match Workspace::load(&request) {
            Err(faults) => Build { way: Way::Whole, executed: 0, given: Err(faults.to_string()) },
            Ok(workspace) => {
                let labels = workspace.requested().to_vec();
                match Session::begin(engine, workspace, &labels) {
                    Ok(session) => run(session, key, Way::Whole),
                    Err(fault) => Build { way: Way::Whole, executed: 0, given: Err(fault.failure.to_string()) },
                }
            }
        }
    }

    fn engine(&self, store: Store) -> Engine {
        let shared = Shared::new(store, Arc::new(Silent), SourceReader::new(&self.root, &[]));
        Engine::new(shared, EngineOptions { threads: 1, shuffle: None }).expect("an engine")
    }

    /// The same with nothing remembered and nothing stored.
    fn build_from_nothing(&self, pattern: &str) -> Given {
        let registry = registry();
        let patterns = [Pattern::parse(pattern, &PackageName::in_workspace("")).expect("a pattern")];
        let request = LoadRequest { root: &self.root, registry: &registry, repositories: &[], patterns: &patterns, overrides: &[] };
        let workspace = Workspace::load(&request).map_err(|faults| faults.to_string())?;
        let directory = tempfile::tempdir_in(&self.base).expect("a directory");
        let store = Store::open(Utf8Path::from_path(directory.path()).expect("UTF-8")).expect("a store");
        let reports = self.engine(store).build_targets(&workspace, workspace.requested());
        let mut reports = reports.map_err(|failure| failure.to_string())?;
        reports.retain(|report| workspace.requested().contains(&report.label));
        Ok(given(&reports))
    }
}

fn given(reports: &[TargetReport]) -> BTreeMap<String, (Digest, bool, Vec<String>)> {
    let read = |path: &Utf8PathBuf| fs::read_to_string(path).unwrap_or_else(|error| format!("{path}: {error}"));
    let one = |report: &TargetReport| (report.outcome, report.success, report.exports.iter().map(read).collect());
    reports.iter().map(|report| (report.label.to_string(), one(report))).collect()
}

fn run(mut session: Session, key: Digest, way: Way) -> Build {
    let mut reports = Vec::new();
    let labels = session.requested();
    let mut fault = None;
    for label in &labels {
        match session.build(label) {
            Ok(built) => reports.extend(built.into_iter().filter(|report| labels.contains(&report.label))),
            Err(failure) => {
                fault = Some(failure.to_string());
                break;
            }
        }
    }
    session.remember(key).expect("the store is well");
    let executed = session.engine().shared().take_executed().len();
    Build { way, executed, given: fault.map_or(Ok(given(&reports)), Err) }
}

/// Two packages: `//a:low` and `//a:other` of files, `//b:high` of `//a:low`, and `//b:all` over everything.
fn small() -> Fixture {
    let fixture = Fixture::new();
    fixture.write("a/BUILD.toml", "[low]\nrule = \"join\"\nparts = [\"x\"]\n[other]\nrule = \"join\"\nparts = [\"y\"]\n");
    let high = "[high]\nrule = \"join\"\nparts = [\"//a:low\", \"z\"]\nmark = 1\n";
    fixture.write("b/BUILD.toml", &format!("{high}[all]\nrule = \"filegroup\"\nsrcs = [\":high\", \"//a:other\", \"z\"]\n"));
    ["a/x", "a/y", "b/z"].iter().for_each(|path| fixture.write(path, &format!("{path};")));
    fixture
}

/// Builds `//b:all` before and after `edit`; how the second build began and how many stages it executed.
#[track_caller]
fn after(edit: impl Fn(&Fixture)) -> (Way, usize) {
    let fixture = small();
    let first = fixture.build("//b:all", &[]);
    assert_eq!((first.way, first.executed), (Way::Whole, 4));
    edit(&fixture);
    let second = fixture.build("//b:all", &[]);
    assert_eq!(second.given, fixture.build_from_nothing("//b:all"));
    (second.way, second.executed)
}

#[test]
fn build_without_changes_loads_nothing() {
    assert_eq!(after(|_| {}), (Way::Known, 0));
}

#[test]
fn file_that_nothing_names_changes_nothing() {
    assert_eq!(after(|fixture| fixture.write("a/unnamed", "x")), (Way::Known, 0));
}

#[test]
fn touched_and_replaced_files_of_the_same_bytes_execute_nothing() {
    assert_eq!(after(|fixture| fixture.write("a/x", "a/x;")), (Way::Known, 0));
    let replaced = after(|fixture| {
        fixture.write("a/.x.swp", "a/x;");
        fs::rename(fixture.root.join("a/.x.swp"), fixture.root.join("a/x")).expect("renamed");
    });
    assert_eq!(replaced, (Way::Known, 0));
}

#[test]
fn edited_source_executes_what_uses_it_and_loads_a_part() {
    assert_eq!(after(|fixture| fixture.write("a/x", "other")), (Way::Part, 3));
    assert_eq!(after(|fixture| fixture.write("a/y", "other")), (Way::Part, 2));
    assert_eq!(after(|fixture| fixture.write("b/z", "other")), (Way::Part, 2));
}

#[test]
fn form_of_a_build_file_loads_everything_and_executes_nothing() {
    let edit = |fixture: &Fixture| {
        fixture.write("a/BUILD.toml", "# Low.\n[other]\nparts = ['y']\nrule = 'join'\n[low]\nrule = 'join'\nparts = [ 'x' ]\n");
    };
    assert_eq!(after(edit), (Way::Whole, 0));
}

#[test]
fn changed_declaration_executes_its_target_and_the_users() {
    let edit = |fixture: &Fixture| {
        let text = fs::read_to_string(fixture.root.join("b/BUILD.toml")).expect("read");
        fixture.write("b/BUILD.toml", &text.replace("mark = 1", "mark = 2"));
    };
    assert_eq!(after(edit), (Way::Whole, 2));
}

#[test]
fn missing_and_altered_exports_come_back_without_executing() {
    let place = |fixture: &Fixture| fixture.root.join("artifacts/a/low/joined");
    for edit in [|path: Utf8PathBuf| fs::remove_file(path), |path: Utf8PathBuf| fs::write(path, "broken")] {
        let fixture = small();
        fixture.build("//b:all", &[]);
        edit(place(&fixture)).expect("edited");
        assert_eq!(fixture.build("//b:all", &[]).executed, 0);
        assert_eq!(fs::read_to_string(place(&fixture)).expect("is there"), "0a/x;");
    }
}

#[test]
fn new_package_is_found_by_a_pattern() {
    let fixture = small();
    fixture.build("//...", &[]);
    fixture.write("c/BUILD.toml", "[new]\nrule = \"join\"\nparts = [\"//a:low\"]\n");
    let build = fixture.build("//...", &[]);
    assert_eq!(build.way, Way::Whole);
    assert!(build.given.expect("builds").contains_key("//c:new"));
}

#[test]
fn link_turned_out_of_the_workspace_is_refused() {
    let fixture = small();
    fs::write(fixture.base.join("outside"), "a/x;").expect("written");
    fixture.build("//b:all", &[]);
    fs::remove_file(fixture.root.join("a/x")).expect("removed");
    std::os::unix::fs::symlink(fixture.base.join("outside"), fixture.root.join("a/x")).expect("linked");
    let fault = fixture.build("//b:all", &[]).given.expect_err("refused");
    assert!(fault.contains("not below the workspace root"), "{fault}");
}

#[test]
fn old_stamps_are_trusted_and_an_edit_with_the_old_time_and_size_is_seen() {
    let fixture = small();
    let path = fixture.root.join("a/x");
    fixture.build("//b:all", &[]);
    // Younger stamps prove nothing, so that every file would be read.
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(fixture.build("//b:all", &[]).way, Way::Known);
    assert_eq!(fixture.build("//b:all", &[]).way, Way::Known);
    let time = fs::metadata(&path).expect("is there").modified().expect("a time");
    fixture.write("a/x", "A/X;");
    fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(time)).expect("set back");
    let build = fixture.build("//b:all", &[]);
    assert_eq!((build.way, build.executed), (Way::Part, 3));
    assert_eq!(build.given, fixture.build_from_nothing("//b:all"));
}

#[test]
fn damaged_memory_is_a_build_from_the_start() {
    let fixture = small();
    let registry = registry();
    let patterns = [Pattern::One(named("//b:all"))];
    let request = LoadRequest { root: &fixture.root, registry: &registry, repositories: &[], patterns: &patterns, overrides: &[] };
    let key = Request { load: &request, command: "build", program: FileStamp::default() }.key();
    let whole = fixture.build("//b:all", &[]).given;
    let store = fixture.store();
    let (glance, table): (Digest, Digest) = store.record(RecordKind::Graph, &key).expect("read").expect("remembered");
    let garbage = store.put_blob(b"\xff\xff\xff\xff").expect("stored");
    let absent = Digest::of(b"never stored");
    for (glance, table, edit) in
        [(garbage, table, false), (absent, table, false), (glance, garbage, true), (glance, absent, true), (table, glance, true)]
    {
        store.put_record(RecordKind::Graph, key, &(glance, table), References::none()).expect("stored");
        if edit {
            // Only then is the table read.
            fixture.write("a/y", &format!("{glance}{table}"));
        }
        let build = fixture.build("//b:all", &[]);
        assert_eq!(build.way, Way::Whole);
        assert_eq!(build.given, if edit { fixture.build_from_nothing("//b:all") } else { whole.clone() });
    }
}

#[test]
fn build_file_edited_behind_the_look_is_loaded_from_the_start() {
    let fixture = small();
    let registry = registry();
    let patterns = [Pattern::One(named("//b:all"))];
    let request = LoadRequest { root: &fixture.root, registry: &registry, repositories: &[], patterns: &patterns, overrides: &[] };
    let key = Request { load: &request, command: "build", program: FileStamp::default() }.key();
    fixture.build("//b:all", &[]);
    fixture.write("a/x", "other");
    for (edit, is_resumed) in [(false, true), (true, false)] {
        let store = fixture.store();
        let mut remembered = Remembered::find(&store, key).expect("remembered");
        let Look::Sources(changed) = remembered.look(&store, &SourceReader::new(&fixture.root, &[])) else { panic!("a source changed") };
        if edit {
            fixture
                .write("a/BUILD.toml", "[low]\nrule = \"join\"\nparts = [\"x\", \":other\"]\n[other]\nrule = \"join\"\nparts = [\"y\"]\n");
        }
        assert_eq!(Session::resume(fixture.engine(store), remembered, &changed, &request).is_ok(), is_resumed);
    }
}

#[test]
fn two_configurations_by_turns_execute_nothing_after_the_first_of_each() {
    let fixture = small();
    let executed: Vec<usize> = (0..20).map(|turn| fixture.build("//b:high", &[["mark=1", "mark=2"][turn % 2]]).executed).collect();
    // Of `//a:low`, which has a mark too, and of `//b:high`.
    assert_eq!(executed[..2], [2, 2]);
    assert_eq!(executed[2..], [0; 18]);
    assert_eq!(fs::read_to_string(fixture.root.join("artifacts/b/high/joined")).expect("exported"), "22a/x;b/z;");
}

#[test]
fn two_configurations_by_turns_in_one_process_execute_nothing_after_the_first_of_each() {
    let fixture = small();
    let registry = registry();
    let patterns = [Pattern::One(named("//b:high"))];
    let workspace = |turn: usize| {
        let overrides = [Override::parse(["mark=1", "mark=2"][turn % 2]).expect("a change")];
        let request =
            LoadRequest { root: &fixture.root, registry: &registry, repositories: &[], patterns: &patterns, overrides: &overrides };
        Workspace::load(&request).unwrap_or_else(|faults| panic!("{faults}"))
    };
    let label = named("//b:high");
    let Ok(mut session) = Session::begin(fixture.engine(fixture.store()), workspace(0), std::slice::from_ref(&label)) else {
        panic!("sources can be read")
    };
    let mut executed = Vec::new();
    for turn in 0..20 {
        session.reload(workspace(turn), std::slice::from_ref(&label)).expect("sources can be read");
        session.build(&label).expect("builds");
        executed.push(session.engine().shared().take_executed().len());
        let mark = turn % 2 + 1;
        let exported = fs::read_to_string(fixture.root.join("artifacts/b/high/joined")).expect("exported");
        assert_eq!(exported, format!("{mark}{mark}a/x;b/z;"));
    }
    assert_eq!(executed[..2], [2, 2]);
    assert_eq!(executed[2..], [0; 18]);
}

#[test]
fn reloaded_session_builds_what_changed() {
    let fixture = small();
    let registry = registry();
    let patterns = [Pattern::One(named("//b:all"))];
    let workspace = || {
        let request = LoadRequest { root: &fixture.root, registry: &registry, repositories: &[], patterns: &patterns, overrides: &[] };
        Workspace::load(&request).unwrap_or_else(|faults| panic!("{faults}"))
    };
    let label = named("//b:all");
    let Ok(mut session) = Session::begin(fixture.engine(fixture.store()), workspace(), std::slice::from_ref(&label)) else {
        panic!("sources can be read")
    };
    assert_eq!(session.build(&label).expect("builds").len(), 4);
    session.reload(workspace(), std::slice::from_ref(&label)).expect("sources can be read");
    assert!(session.build(&label).expect("builds").iter().all(|report| report.cached));
    let text = fs::read_to_string(fixture.root.join("b/BUILD.toml")).expect("read");
    fixture.write("b/BUILD.toml", &text.replace("mark = 1", "mark = 2"));
    session.reload(workspace(), std::slice::from_ref(&label)).expect("sources can be read");
    let reports = session.build(&label).expect("builds");
    let labels: Vec<String> = reports.iter().map(|report| report.label.to_string()).collect();
    assert_eq!(labels, ["//b:high", "//b:all"]);
    assert_eq!(Ok(given(&reports[1..])), fixture.build_from_nothing("//b:all"));
}

/// A drawn workspace: targets in an order in which each names earlier ones only.
#[derive(Clone, Debug)]
struct Drawn {
    targets: Vec<DrawnTarget>,
}

#[derive(Clone, Debug)]
struct DrawnTarget {
    is_group: bool,
    files: Vec<usize>,
    uses: Vec<usize>,
    mark: u32,
}

const PACKAGES: usize = 3;
const FILES: usize = 6;

fn file_name(file: usize) -> String {
    format!("p{}/f{file}", file % PACKAGES)
}

impl Drawn {
    fn label(target: usize) -> String {
        format!("//p{}:t{target}", target % PACKAGES)
    }

    fn write(&self, fixture: &Fixture, form: usize) {
        let mut files = vec!["# form\n".repeat(form); PACKAGES];
        for (number, target) in self.targets.iter().enumerate() {
            let (rule, field) = if target.is_group { ("filegroup", "srcs") } else { ("join", "parts") };
            let mut parts: Vec<String> = target.files.iter().map(|file| format!("\"//{}\"", file_name(*file))).collect();
            // A join looks into joins only.
            let uses = target.uses.iter().map(|used| used % number.max(1)).filter(|used| *used < number);
            let uses = uses.filter(|used| target.is_group || !self.targets[*used].is_group);
            parts.extend(uses.map(|used| format!("\"{}\"", Drawn::label(used))));
            let mark = if target.is_group { String::new() } else { format!("mark = {}\n", target.mark) };
            files[number % PACKAGES] += &format!("[t{number}]\nrule = \"{rule}\"\n{field} = [{}]\n{mark}", parts.join(", "));
        }
        files.iter().enumerate().for_each(|(package, text)| fixture.write(&format!("p{package}/BUILD.toml"), text));
    }
}

#[derive(Clone, Debug)]
enum Edit {
    Write(usize, String),
    Replace(usize, String),
    Touch(usize),
    Delete(usize),
    Old(usize, String),
    Target(usize, DrawnTarget),
    Add(DrawnTarget),
    Form(usize),
    Export(usize, bool),
    NewPackage(bool),
}

fn target() -> impl Strategy<Value = DrawnTarget> {
    let parts = (prop::collection::vec(0..FILES, 0..3), prop::collection::vec(0_usize..16, 0..3));
    (any::<bool>(), parts, 0_u32..3).prop_map(|(is_group, (files, uses), mark)| DrawnTarget { is_group, files, uses, mark })
}

fn edit() -> impl Strategy<Value = Edit> {
    let file = 0..FILES;
    let text = "[ab]{1,2}";
    prop_oneof![
        4 => (file.clone(), text).prop_map(|(file, text)| Edit::Write(file, text)),
        2 => (file.clone(), text).prop_map(|(file, text)| Edit::Replace(file, text)),
        1 => file.clone().prop_map(Edit::Touch),
        1 => file.clone().prop_map(Edit::Delete),
        2 => (file, text).prop_map(|(file, text)| Edit::Old(file, text)),
        1 => (0_usize..8, target()).prop_map(|(index, target)| Edit::Target(index, target)),
        1 => target().prop_map(Edit::Add),
        1 => (0_usize..3).prop_map(Edit::Form),
        1 => (0_usize..8, any::<bool>()).prop_map(|(target, is_removed)| Edit::Export(target, is_removed)),
        1 => any::<bool>().prop_map(Edit::NewPackage),
    ]
}

impl Edit {
    fn apply(&self, fixture: &Fixture, drawn: &mut Drawn) {
        match self {
            Edit::Write(file, text) => fixture.write(&file_name(*file), text),
            Edit::Replace(file, text) => {
                fixture.write("p0/.writing", text);
                fs::rename(fixture.root.join("p0/.writing"), fixture.root.join(file_name(*file))).expect("renamed");
            }
            Edit::Touch(file) => {
                if let Ok(text) = fs::read_to_string(fixture.root.join(file_name(*file))) {
                    fixture.write(&file_name(*file), &text);
                }
            }
            Edit::Delete(file) => drop(fs::remove_file(fixture.root.join(file_name(*file)))),
            Edit::Old(file, text) => {
                fixture.write(&file_name(*file), text);
                let file = fs::File::options().write(true).open(fixture.root.join(file_name(*file))).expect("is there");
                file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).expect("set back");
            }
            Edit::Target(index, target) => {
                let index = index % drawn.targets.len();
                drawn.targets[index] = target.clone();
                drawn.write(fixture, 0);
            }
            Edit::Add(target) => {
                drawn.targets.push(target.clone());
                drawn.write(fixture, 0);
            }
            Edit::Form(form) => drawn.write(fixture, *form),
            Edit::Export(target, is_removed) => {
                let path = fixture.root.join(format!("artifacts/p{}/t{target}/joined", target % PACKAGES));
                if path.is_file() {
                    let edited = if *is_removed { fs::remove_file(&path) } else { fs::write(&path, "broken") };
                    edited.expect("edited");
                }
            }
            Edit::NewPackage(true) => fixture.write("deep/new/BUILD.toml", "[n]\nrule = \"filegroup\"\nsrcs = [\"//p0/f0\"]\n"),
            Edit::NewPackage(false) => drop(fs::remove_dir_all(fixture.root.join("deep"))),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Every file is younger than stamps are trusted at here; the test of old stamps does the other half.
    #[test]
    fn edits_of_drawn_graphs_give_what_a_build_from_nothing_gives(
        targets in prop::collection::vec(target(), 1..8),
        edits in prop::collection::vec(prop::collection::vec(edit(), 0..3), 1..6),
    ) {
        let fixture = Fixture::new();
        let mut drawn = Drawn { targets };
        (0..FILES).for_each(|file| fixture.write(&file_name(file), "a"));
        drawn.write(&fixture, 0);
        let last = Drawn::label(drawn.targets.len() - 1);
        for step in std::iter::once(&Vec::new()).chain(&edits) {
            step.iter().for_each(|edit| edit.apply(&fixture, &mut drawn));
            for pattern in [last.as_str(), "//..."] {
                let build = fixture.build(pattern, &[]);
                prop_assert_eq!(&build.given, &fixture.build_from_nothing(pattern), "{} after {:?}, {:?}", pattern, step, build.way);
            }
            // At once again: unless something is wrong, nothing is loaded.
            let again = fixture.build("//...", &[]);
            prop_assert!(again.way == Way::Known || again.given.is_err(), "{:?}", again);
        }
    }
}
