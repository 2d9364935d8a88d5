//! Stages, targets and the store together: what executes, what does not, and what happens when bodies are lost.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use camino::{Utf8Path, Utf8PathBuf};
use graph::{
    Artifact, Bytes, Db, Declaration, Digest, Engine, EngineOptions, Event, EventSink, Export, Failure, Field, Figure, InterruptHandle,
    Label, LoadRequest, Made, Outcome, PackageName, Pattern, Progress, Registry, Rule, RuleData, RuleKind, Shared, SourcePath,
    SourceReader, StageId, StageNote, StageSpec, TargetReport, WaveFunction, Workspace, data_of, load, read_source, stage,
};
use serde::Deserialize;
use store::{RecordKind, Store};

/// A text whose words are counted and whose lines are joined in upper case.
#[derive(Debug, PartialEq, Deserialize)]
struct Text {
    src: SourcePath,
}

/// A report over a text.
#[derive(Debug, PartialEq, Deserialize)]
struct Report {
    text: Label,
    #[serde(default)]
    limit: usize,
    #[serde(default)]
    board: bool,
}

#[salsa::interned(revisions = usize::MAX)]
struct LineKey<'db> {
    #[returns(ref)]
    text: Label,
    #[returns(copy)]
    line: usize,
}

#[salsa::interned(revisions = usize::MAX)]
struct TextKey<'db> {
    #[returns(ref)]
    label: Label,
}

fn spec(name: &'static str, label: &Label) -> StageSpec {
    StageSpec::new(name, Digest::of(b"code"), label)
}

thread_local! {
    /// What a user writes while `lines` runs in this thread.
    static EDIT_WHILE_READING: RefCell<Option<(Utf8PathBuf, &'static str)>> = const { RefCell::new(None) };
}

/// The lines of a text, comments left out: an edit of a comment stops here.
#[salsa::tracked(returns(clone))]
fn lines<'db>(db: &'db dyn Db, key: TextKey<'db>) -> Result<Artifact<Vec<String>, usize>, Failure> {
    let label = key.label(db);
    let text = data_of::<Text>(db, label)?;
    let file = db.source(&text.src);
    stage(db, &spec("lines", label), &[("src", file.digest(db))], || {
        let bytes = read_source(db, file)?;
        if let Some((path, text)) = EDIT_WHILE_READING.take() {
            fs::write(path, text).map_err(|error| Failure::build(error.to_string()))?;
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<String> = text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
        if lines.is_empty() {
            return Err(Failure::input("the text is empty").at_field("src"));
        }
        let count = lines.len();
        Ok(Made::with_facts(lines, count).figure("lines", count))
    })
}

/// One line, so that a change of one line does not reach the others.
#[salsa::tracked(returns(clone))]
fn line<'db>(db: &'db dyn Db, key: LineKey<'db>) -> Result<Artifact<String>, Failure> {
    let label = key.text(db);
    let lines = lines(db, TextKey::new(db, label.clone()))?;
    let number = key.line(db);
    let place = Digest::of(&number.to_le_bytes());
    stage(db, &spec("line", label).index(number), &[("lines", lines.digest()), ("number", place)], || {
        Ok(Made::new(load(db, &lines)?[number].clone()))
    })
}

#[salsa::tracked(returns(clone))]
fn upper<'db>(db: &'db dyn Db, key: LineKey<'db>) -> Result<Artifact<String>, Failure> {
    let line = line(db, key)?;
    stage(db, &spec("upper", key.text(db)).index(key.line(db)), &[("line", line.digest())], || {
        Ok(Made::new(load(db, &line)?.to_uppercase()))
    })
}

#[salsa::tracked(returns(clone))]
fn joined<'db>(db: &'db dyn Db, key: TextKey<'db>) -> Result<Artifact<Bytes>, Failure> {
    let label = key.label(db);
    let count = *lines(db, key)?.facts();
    let uppers = (0..count).map(|number| upper(db, LineKey::new(db, label.clone(), number))).collect::<Result<Vec<_>, Failure>>()?;
    let inputs: Vec<_> = uppers.iter().map(|upper| ("upper", upper.digest())).collect();
    stage(db, &spec("joined", label), &inputs, || {
        let parts = uppers.iter().map(|upper| load(db, upper)).collect::<Result<Vec<_>, Failure>>()?;
        let joined: String = parts.iter().map(|part| format!("{part}\n")).collect();
        Ok(Made::new(Bytes::from(joined.into_bytes())))
    })
}

#[salsa::tracked(returns(clone))]
fn verdict<'db>(db: &'db dyn Db, key: TextKey<'db>) -> Result<Artifact<bool>, Failure> {
    let label = key.label(db);
    let report = data_of::<Report>(db, label)?;
    let joined = joined(db, TextKey::new(db, report.text.clone()))?;
    let limit = Digest::of(&report.limit.to_le_bytes());
    let mut spec = spec("verdict", label);
    if report.board {
        spec = spec.never_cached();
    }
    stage(db, &spec, &[("joined", joined.digest()), ("limit", limit)], || Ok(Made::new(load(db, &joined)?.len() >= report.limit)))
}

struct TextRule;

impl Rule for TextRule {
    fn name(&self) -> &'static str {
        "text"
    }

    fn summary(&self) -> &'static str {
        "A text."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[Field::required("src", "a file", "The text.")];
        FIELDS
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        Some(Arc::new(declaration.read::<Text>()?))
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Built
    }

    fn waves(&self) -> &'static [WaveFunction] {
        &[|engine, label| {
            let count = *lines(engine, TextKey::new(engine, label.clone()))?.facts();
            let numbers: Vec<usize> = (0..count).collect();
            engine.wave(label, "upper", &numbers, |engine, number| {
                let _ = upper(engine, LineKey::new(engine, label.clone(), *number));
            });
            Ok(())
        }]
    }

    fn stages(&self, engine: &Engine, label: &Label) -> Vec<StageNote> {
        joined::accumulated::<StageNote>(engine, TextKey::new(engine, label.clone())).into_iter().cloned().collect()
    }

    fn finish(&self, engine: &Engine, label: &Label) -> Result<Outcome, Failure> {
        let joined = joined(engine, TextKey::new(engine, label.clone()))?;
        let exports = vec![Export::of_artifact(engine, "upper.txt", &joined)?, Export::of_bytes(engine, "note", *b"x")];
        Ok(Outcome { exports, ..Outcome::default() })
    }
}

struct ReportRule;

impl Rule for ReportRule {
    fn name(&self) -> &'static str {
        "report"
    }

    fn summary(&self) -> &'static str {
        "A report."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::required("text", "label of a `text`", "The text.").accepting(&["text"]),
            Field::optional("limit", "an integer", "The least length that passes."),
            Field::optional("board", "a boolean", "Whether it is never answered from a record."),
        ];
        FIELDS
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        Some(Arc::new(declaration.read::<Report>()?))
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Run
    }

    fn stages(&self, engine: &Engine, label: &Label) -> Vec<StageNote> {
        verdict::accumulated::<StageNote>(engine, TextKey::new(engine, label.clone())).into_iter().cloned().collect()
    }

    fn finish(&self, engine: &Engine, label: &Label) -> Result<Outcome, Failure> {
        let success = *load(engine, &verdict(engine, TextKey::new(engine, label.clone()))?)?;
        let recorded = !data_of::<Report>(engine, label)?.board;
        Ok(Outcome { success, lines: vec![format!("pass={success}")], recorded, ..Outcome::default() })
    }
}

/// Remembers events as lines, without times.
#[derive(Default)]
struct Lines {
    lines: Mutex<Vec<String>>,
    /// Stops the build when so many stages have ended.
    stop: Mutex<Option<(usize, InterruptHandle)>>,
}

impl Lines {
    fn count_down(&self) {
        let mut stop = self.stop.lock().expect("no panic");
        if let Some((left, handle)) = &mut *stop {
            *left = left.saturating_sub(1);
            if *left == 0 {
                handle.interrupt();
            }
        }
    }
}

impl EventSink for Lines {
    fn event(&self, event: &Event) {
        let line = match event {
            Event::Stage(event) if event.progress != Progress::Started => {
                let figures: String = event.figures.iter().map(|(name, value)| format!(" {name}={value}")).collect();
                format!("{:?} {} {}{figures}", event.progress, event.id, event.success)
            }
            Event::Notice { message, .. } => format!("store: {message}"),
            Event::Store(report) => format!("store: {}", report.to_string().split(' ').nth(2).unwrap_or_default()),
            _ => return,
        };
        if line.starts_with("Executed") {
            self.count_down();
        }
        self.lines.lock().expect("no panic").push(line);
    }
}

struct Fixture {
    _directory: tempfile::TempDir,
    root: Utf8PathBuf,
    store: Utf8PathBuf,
}

const BUILD: &str = "[poem]\nrule = \"text\"\nsrc = \"poem.txt\"\n[check]\nrule = \"report\"\ntext = \":poem\"\nlimit = 3\n";

impl Fixture {
    fn new() -> Fixture {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let base = Utf8Path::from_path(directory.path()).expect("UTF-8").canonicalize_utf8().expect("a directory");
        let fixture = Fixture { _directory: directory, root: base.join("workspace"), store: base.join("store") };
        fixture.write("WORKSPACE.toml", "");
        fixture.write("words/BUILD.toml", BUILD);
        fixture.write("words/poem.txt", "one\ntwo\nthree\n");
        fixture
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, text).expect("written");
    }

    fn export(&self) -> Utf8PathBuf {
        self.root.join("artifacts/words/poem/upper.txt")
    }

    fn workspace(&self) -> Workspace {
        let mut registry = Registry::with_generic_rules();
        registry.add(TextRule);
        registry.add(ReportRule);
        let patterns = [Pattern::Below(PackageName::in_workspace(""))];
        let request = LoadRequest { root: &self.root, registry: &registry, repositories: &[], patterns: &patterns, overrides: &[] };
        Workspace::load(&request).unwrap_or_else(|faults| panic!("{faults}"))
    }

    /// A new process: own engine, the same store.
    fn session(&self) -> Session<'_> {
        self.session_with(EngineOptions { threads: 2, shuffle: None })
    }

    fn session_with(&self, options: EngineOptions) -> Session<'_> {
        let sink = Arc::new(Lines::default());
        let store = Store::open(&self.store).expect("the store opens");
        let shared = Shared::new(store, sink.clone(), SourceReader::new(&self.root, &[]));
        Session { fixture: self, engine: Engine::new(shared, options).expect("an engine"), sink }
    }
}

struct Session<'a> {
    fixture: &'a Fixture,
    engine: Engine,
    sink: Arc<Lines>,
}

impl Session<'_> {
    fn build(&mut self, label: &str) -> Result<Vec<TargetReport>, Failure> {
        self.engine.build_targets(&self.fixture.workspace(), &[named(label)])
    }

    /// Builds the check and gives the stages that executed.
    #[track_caller]
    fn executed(&mut self) -> String {
        self.build("//words:check").unwrap_or_else(|failure| panic!("{failure}"));
        let executed = self.engine.shared().take_executed();
        let names: Vec<String> = executed.iter().map(|id| format!("{}{}", id.label.name(), id.stage)).collect();
        names.join(" ")
    }

    fn events(&self) -> Vec<String> {
        std::mem::take(&mut *self.sink.lines.lock().expect("no panic"))
    }
}

fn named(text: &str) -> Label {
    Label::parse(text, &PackageName::in_workspace("")).expect("a label")
}

const ALL: &str =
    "check[verdict] poem[joined] poem[line/0] poem[line/1] poem[line/2] poem[lines] poem[upper/0] poem[upper/1] poem[upper/2]";

#[test]
fn first_build_executes_every_stage_and_exports_files() {
    let fixture = Fixture::new();
    let mut session = fixture.session();
    let reports = session.build("//words:check").expect("builds");
    let names: Vec<String> = reports.iter().map(|report| format!("{} {}", report.label, report.cached)).collect();
    assert_eq!(names, ["//words:poem false", "//words:check false"]);
    assert_eq!(reports[1].lines, ["pass=true"]);
    assert_eq!(reports[0].exports[0], fixture.export());
    assert_eq!(fs::read_to_string(fixture.export()).expect("exported"), "ONE\nTWO\nTHREE\n");
    assert_eq!(session.engine.shared().take_executed().len(), 9);
    assert!(session.events().contains(&"Executed //words:poem[lines] true lines=3".to_owned()));
}

#[test]
fn second_build_executes_nothing_in_this_process_and_in_another() {
    let fixture = Fixture::new();
    let mut first = fixture.session();
    assert_eq!(first.executed(), ALL);
    assert_eq!(first.executed(), "");
    let mut second = fixture.session();
    assert_eq!(second.executed(), "");
    assert_eq!(second.events(), [""; 0]);
    let reports = second.build("//words:check").expect("builds");
    assert!(reports.iter().all(|report| report.cached));
    assert_eq!(reports[1].lines, ["pass=true"]);
}

/// The stages in the record of the poem.
fn recorded_stages(session: &mut Session<'_>) -> Vec<String> {
    let reports = session.build("//words:poem").expect("builds");
    let record = session.engine.shared().store().record::<graph::TargetRecord>(RecordKind::Target, &reports[0].shallow_key);
    record.expect("read").expect("recorded").stages.iter().map(|stage| stage.name.to_string()).collect()
}

#[test]
fn record_lists_the_stages_of_now_and_not_those_of_before() {
    let fixture = Fixture::new();
    let mut session = fixture.session();
    session.executed();
    fixture.write("words/poem.txt", "one\n");
    let expected = ["[joined]", "[line/0]", "[lines]", "[upper/0]"];
    assert_eq!(recorded_stages(&mut session), expected);
    // In another process all of them come from the store.
    let key = session.build("//words:poem").expect("builds")[0].shallow_key;
    session.engine.shared().store().remove_record(RecordKind::Target, &key).expect("removed");
    assert_eq!(recorded_stages(&mut fixture.session()), expected);
}

/// What `edit` makes execute, in the same process and, on a copy, in a new one.
#[track_caller]
fn check_edit(edit: impl Fn(&Fixture), expected: &str) {
    for new_process in [false, true] {
        let fixture = Fixture::new();
        let mut session = fixture.session();
        assert_eq!(session.executed(), ALL);
        edit(&fixture);
        if new_process {
            session = fixture.session();
        }
        assert_eq!(session.executed(), expected, "new process: {new_process}");
    }
}

#[test]
fn form_of_a_build_file_executes_nothing() {
    check_edit(
        |fixture| {
            let text = "# moved\n[check]\nlimit = 0x3\ntext = ':poem'\nrule = 'report'\n[poem]\nsrc = 'poem.txt'\nrule = 'text'\n";
            fixture.write("words/BUILD.toml", text);
        },
        "",
    );
}

#[test]
fn comment_in_a_source_executes_the_reader_alone() {
    check_edit(|fixture| fixture.write("words/poem.txt", "# by nobody\none\ntwo\nthree\n"), "poem[lines]");
}

#[test]
fn one_changed_line_executes_its_own_stages_and_their_users() {
    check_edit(
        |fixture| fixture.write("words/poem.txt", "one\n2\nthree\n"),
        "check[verdict] poem[joined] poem[line/0] poem[line/1] poem[line/2] poem[lines] poem[upper/1]",
    );
}

#[test]
fn line_with_an_equal_result_is_cut_off() {
    check_edit(
        |fixture| fixture.write("words/poem.txt", "One\ntwo\nthree\n"),
        "poem[line/0] poem[line/1] poem[line/2] poem[lines] poem[upper/0]",
    );
}

#[test]
fn limit_of_the_report_executes_the_verdict_alone() {
    check_edit(|fixture| fixture.write("words/BUILD.toml", &BUILD.replace("limit = 3", "limit = 300")), "check[verdict]");
}

#[test]
fn failed_verdict_is_recorded_and_told_again() {
    let fixture = Fixture::new();
    fixture.write("words/BUILD.toml", &BUILD.replace("limit = 3", "limit = 300"));
    for cached in [false, true] {
        let report = fixture.session().build("//words:check").expect("builds").pop().expect("a report");
        assert_eq!((report.success, report.cached), (false, cached));
        assert_eq!(report.lines, ["pass=false"]);
    }
}

#[test]
fn unrecorded_stage_executes_in_every_build() {
    let fixture = Fixture::new();
    fixture.write("words/BUILD.toml", &format!("{BUILD}board = true\n"));
    let mut session = fixture.session();
    assert_eq!(session.executed(), ALL);
    assert_eq!(session.executed(), "check[verdict]");
    assert_eq!(fixture.session().executed(), "check[verdict]");
}

#[test]
fn input_fault_names_target_stage_field_and_place_and_heals() {
    let fixture = Fixture::new();
    fixture.write("words/poem.txt", "# nothing\n");
    let mut session = fixture.session();
    for _ in 0..2 {
        let failure = session.build("//words:check").expect_err("fails");
        assert_eq!(failure.exit_code(), 2);
        assert_eq!(fixture.workspace().explain(&failure), "error: //words:poem[lines], src: the text is empty\n --> words/BUILD.toml:3:7");
    }
    fixture.write("words/poem.txt", "one\ntwo\nthree\n");
    session.engine.shared().take_executed();
    assert_eq!(session.executed(), ALL);
}

#[test]
fn missing_and_altered_exports_are_restored_without_executing() {
    let fixture = Fixture::new();
    assert_eq!(fixture.session().executed(), ALL);
    for damage in [None, Some("altered")] {
        match damage {
            None => fs::remove_file(fixture.export()).expect("removed"),
            Some(text) => fs::write(fixture.export(), text).expect("written"),
        }
        assert_eq!(fixture.session().executed(), "");
        assert_eq!(fs::read_to_string(fixture.export()).expect("exported"), "ONE\nTWO\nTHREE\n");
    }
}

fn blob_files(directory: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut files = Vec::new();
    for entry in directory.read_dir_utf8().into_iter().flatten().map(|entry| entry.expect("an entry")) {
        match entry.file_type().expect("a type").is_dir() {
            true => files.extend(blob_files(entry.path())),
            false => files.push(entry.path().to_owned()),
        }
    }
    files
}

/// A text so long that its artifacts are files of their own.
fn long_text() -> String {
    let line = "word ".repeat(20_000);
    format!("{line}a\n{line}b\n")
}

#[test]
fn lost_and_corrupt_bodies_are_made_again_in_a_new_and_in_the_same_process() {
    for (same_process, corrupt) in [(false, false), (false, true), (true, false), (true, true)] {
        let fixture = Fixture::new();
        fixture.write("words/poem.txt", &long_text());
        let mut session = fixture.session();
        session.executed();
        let files = blob_files(&fixture.store.join("cas"));
        assert_eq!(files.len(), 6, "lines, two lines, two in upper case, joined");
        for file in files {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("changed");
            if corrupt { fs::write(&file, "damaged").expect("written") } else { fs::remove_file(&file).expect("removed") }
        }
        fs::remove_file(fixture.export()).expect("removed");
        if !same_process {
            session = fixture.session();
        }
        session.build("//words:check").unwrap_or_else(|failure| panic!("{failure}"));
        let exported = fs::read_to_string(fixture.export()).expect("exported");
        assert_eq!(exported, long_text().to_uppercase());
        assert!(session.events().iter().any(|event| event.starts_with("store: ")), "the loss is reported");
    }
}

#[test]
fn record_whose_blob_was_never_written_is_recovered() {
    let fixture = Fixture::new();
    fixture.write("words/poem.txt", &long_text());
    fixture.session().executed();
    for file in blob_files(&fixture.store.join("cas")) {
        fs::remove_file(file).expect("removed");
    }
    // The shallow record answers; only a change makes the stages look for bodies.
    fixture.write("words/poem.txt", &format!("{}c\n", long_text()));
    let mut session = fixture.session();
    session.build("//words:check").unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(fs::read_to_string(fixture.export()).expect("exported"), format!("{}C\n", long_text().to_uppercase()));
    // Not a plain miss: the user hears what is gone although there is a record of it.
    let events = session.events();
    let told = |event: &&String| {
        event.starts_with("store: the record of //words:poem[") && event.contains("is there, but its result is gone: blob ")
    };
    assert!(events.iter().any(|event| told(&event)), "{events:?}");
}

#[test]
fn source_changed_after_hashing_stores_nothing_and_says_so() {
    let fixture = Fixture::new();
    let mut session = fixture.session();
    let workspace = fixture.workspace();
    let label = named("//words:poem");
    session.engine.apply(&workspace, std::slice::from_ref(&label)).expect("applied");
    fixture.write("words/poem.txt", "other\n");
    let failure = session.engine.build(|engine| lines(engine, TextKey::new(engine, named("//words:poem")))).expect_err("the file moved");
    assert_eq!(
        failure.to_string(),
        "//words:poem[lines]: words/poem.txt changed while it was being built; nothing was stored for it, build again"
    );
    session.engine.shared().take_executed();
    session.build("//words:check").expect("builds");
    assert_eq!(fs::read_to_string(fixture.export()).expect("exported"), "OTHER\n");
}

#[test]
fn source_changed_while_its_stage_runs_stores_nothing_and_says_so() {
    for edited in ["other\n", "owe\ntwo\nthree\n"] {
        let fixture = Fixture::new();
        let mut session = fixture.session();
        session.engine.apply(&fixture.workspace(), &[named("//words:poem")]).expect("applied");
        EDIT_WHILE_READING.set(Some((fixture.root.join("words/poem.txt"), edited)));
        let built = |session: &mut Session<'_>| session.engine.build(|engine| lines(engine, TextKey::new(engine, named("//words:poem"))));
        let failure = built(&mut session).expect_err("the file moved");
        assert_eq!(
            failure.to_string(),
            "//words:poem[lines]: words/poem.txt changed while it was being built; nothing was stored for it, build again"
        );
        assert_eq!(session.engine.shared().take_executed().len(), 1);
        assert!(fixture.session().executed().contains("poem[lines]"));
        // Under the key of the first text nothing was stored.
        fixture.write("words/poem.txt", "one\ntwo\nthree\n");
        assert!(fixture.session().executed().contains("poem[lines]"));
        fixture.write("words/poem.txt", edited);
        assert_eq!(session.executed(), "");
        assert_eq!(fs::read_to_string(fixture.export()).expect("exported"), edited.to_uppercase());
    }
}

#[test]
fn link_that_leaves_the_workspace_is_refused() {
    let fixture = Fixture::new();
    let outside = fixture.store.with_file_name("outside.txt");
    fs::write(&outside, "secret").expect("written");
    fs::remove_file(fixture.root.join("words/poem.txt")).expect("removed");
    std::os::unix::fs::symlink(&outside, fixture.root.join("words/poem.txt")).expect("linked");
    let failure = fixture.session().build("//words:check").expect_err("refused");
    assert_eq!(
        failure.to_string(),
        format!("//words:poem, src: words/poem.txt is a link to {outside}, which is not below the workspace root")
    );
    assert_eq!(failure.exit_code(), 2);
}

#[test]
fn threads_order_and_place_of_the_checkout_do_not_reach_a_digest() {
    let digests = |options: EngineOptions| -> BTreeMap<String, Digest> {
        let fixture = Fixture::new();
        let mut session = fixture.session_with(options);
        session.executed();
        let digests = session.engine.shared().stage_digests();
        let keys = session.build("//words:check").expect("builds").into_iter();
        let keys = keys.map(|report| (report.label.to_string(), report.shallow_key));
        digests.into_iter().map(|(id, digest)| (id.to_string(), digest)).chain(keys).collect()
    };
    let plain = digests(EngineOptions { threads: 1, shuffle: None });
    assert_eq!(plain.len(), 11);
    for seed in 0..4 {
        assert_eq!(digests(EngineOptions { threads: 1 + seed as usize % 3, shuffle: Some(seed) }), plain);
    }
}

#[test]
fn two_engines_on_one_store_build_the_same_at_once() {
    let fixture = Fixture::new();
    fixture.write("words/poem.txt", &long_text());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| fixture.session().build("//words:check").expect("builds"));
        }
    });
    assert_eq!(fixture.session().executed(), "");
    assert_eq!(fs::read_to_string(fixture.export()).expect("exported"), long_text().to_uppercase());
}

#[test]
fn interrupted_build_starts_no_stage_and_goes_on_later() {
    let fixture = Fixture::new();
    let mut session = fixture.session();
    let handle = session.engine.interrupt_handle();
    handle.interrupt();
    let failure = session.build("//words:check").expect_err("interrupted");
    assert_eq!(failure.exit_code(), 130);
    assert!(session.engine.shared().take_executed().is_empty());
    handle.reset();
    assert_eq!(session.executed(), ALL);
}

static FLAKY_FAILS: AtomicBool = AtomicBool::new(true);
static FLAKY_RUNS: AtomicUsize = AtomicUsize::new(0);

/// Fails the first time, as a full disk does.
#[salsa::tracked(returns(clone))]
fn flaky<'db>(db: &'db dyn Db, key: TextKey<'db>) -> Result<Artifact<u32>, Failure> {
    stage(db, &spec("flaky", key.label(db)), &[], || {
        FLAKY_RUNS.fetch_add(1, Ordering::Relaxed);
        if FLAKY_FAILS.swap(false, Ordering::Relaxed) {
            return Err(Failure::new(graph::Cause::Disk, "no space left on device"));
        }
        Ok(Made::new(1))
    })
}

#[test]
fn build_stopped_behind_any_stage_keeps_the_finished_ones_in_memory_and_in_the_store() {
    let all: BTreeSet<String> = ALL.split(' ').map(str::to_owned).collect();
    for (stage, same_process) in (1..all.len()).flat_map(|stage| [(stage, true), (stage, false)]) {
        let fixture = Fixture::new();
        let mut session = fixture.session();
        let handle = session.engine.interrupt_handle();
        *session.sink.stop.lock().expect("no panic") = Some((stage, handle.clone()));
        assert_eq!(session.build("//words:check").expect_err("stopped").exit_code(), 130);
        *session.sink.stop.lock().expect("no panic") = None;
        let names = |executed: BTreeSet<StageId>| -> BTreeSet<String> {
            executed.iter().map(|id| format!("{}{}", id.label.name(), id.stage)).collect()
        };
        let finished = names(session.engine.shared().take_executed());
        assert!(finished.len() >= stage && finished.len() < all.len(), "{finished:?}");
        session.events();
        if same_process {
            handle.reset();
        } else {
            session = fixture.session();
        }
        let later: BTreeSet<String> = session.executed().split(' ').map(str::to_owned).collect();
        assert_eq!(later, all.difference(&finished).cloned().collect(), "stopped after {stage} stages");
        let found = session.events().iter().filter(|event| event.starts_with("Cached")).count();
        assert!(!same_process || found == 0, "{found} finished stages were looked up again in the same process");
    }
}

#[test]
fn passing_disk_failure_is_not_remembered() {
    let fixture = Fixture::new();
    let mut session = fixture.session();
    for expected in [false, true, true] {
        let built = session.engine.build(|engine| flaky(engine, TextKey::new(engine, named("//a:b"))));
        assert_eq!(built.is_ok(), expected);
    }
    assert_eq!(FLAKY_RUNS.load(Ordering::Relaxed), 2);
}

#[test]
fn figures_are_plain_in_json() {
    let figures = [Figure::from(3_u32), Figure::from(0.5), Figure::from("fast"), Figure::from(true)];
    assert_eq!(serde_json::to_string(&figures).expect("encodes"), "[3,0.5,\"fast\",true]");
}
