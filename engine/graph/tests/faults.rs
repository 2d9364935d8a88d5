//! Each call of the store on files fails in turn under a whole build: it says so or goes on, and the next build, without failures, gives
//! what an empty store gives.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use graph::{
    Artifact, Bytes, Db, Declaration, Digest, Engine, EngineOptions, Event, EventSink, Export, Failure, Field, Label, LoadRequest, Made,
    Outcome, PackageName, Pattern, Registry, Rule, RuleData, RuleKind, RunOutcome, RunRecorder, Shared, SourcePath, SourceReader,
    StageNote, StageSpec, WaveFunction, Workspace, data_of, load, read_source, stage,
};
use serde::Deserialize;
use store::{Defect, GcPolicy, Store, faults};

const ERRORS: [(&str, i32); 3] = [("ENOSPC", 28), ("EIO", 5), ("EMFILE", 24)];

/// A text, of which each line is repeated by a stage of its own, and all are joined.
#[derive(Debug, PartialEq, Deserialize)]
struct Text {
    src: SourcePath,
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

#[salsa::tracked(returns(clone))]
fn lines<'db>(db: &'db dyn Db, key: TextKey<'db>) -> Result<Artifact<Vec<String>, usize>, Failure> {
    let label = key.label(db);
    let file = db.source(&data_of::<Text>(db, label)?.src);
    stage(db, &spec("lines", label), &[("src", file.digest(db))], || {
        let lines: Vec<String> = String::from_utf8_lossy(&read_source(db, file)?).lines().map(str::to_owned).collect();
        let count = lines.len();
        Ok(Made::with_facts(lines, count))
    })
}

/// The first line becomes a large blob, the others small ones.
#[salsa::tracked(returns(clone))]
fn repeated<'db>(db: &'db dyn Db, key: LineKey<'db>) -> Result<Artifact<String>, Failure> {
    let (label, number) = (key.text(db), key.line(db));
    let lines = lines(db, TextKey::new(db, label.clone()))?;
    let place = Digest::of(&number.to_le_bytes());
    stage(db, &spec("repeated", label).index(number), &[("lines", lines.digest()), ("number", place)], || {
        Ok(Made::new(load(db, &lines)?[number].repeat(if number == 0 { 70_000 } else { 100 })))
    })
}

#[salsa::tracked(returns(clone))]
fn joined<'db>(db: &'db dyn Db, key: TextKey<'db>) -> Result<Artifact<Bytes>, Failure> {
    let label = key.label(db);
    let count = *lines(db, key)?.facts();
    let parts = (0..count).map(|number| repeated(db, LineKey::new(db, label.clone(), number))).collect::<Result<Vec<_>, Failure>>()?;
    let inputs: Vec<_> = parts.iter().map(|part| ("part", part.digest())).collect();
    stage(db, &spec("joined", label), &inputs, || {
        let parts = parts.iter().map(|part| load(db, part)).collect::<Result<Vec<_>, Failure>>()?;
        Ok(Made::new(Bytes::from(parts.iter().flat_map(|part| part.bytes()).collect::<Vec<u8>>())))
    })
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
            let numbers: Vec<usize> = (0..*lines(engine, TextKey::new(engine, label.clone()))?.facts()).collect();
            engine.wave(label, "repeated", &numbers, |engine, number| {
                let _ = repeated(engine, LineKey::new(engine, label.clone(), *number));
            });
            Ok(())
        }]
    }

    fn stages(&self, engine: &Engine, label: &Label) -> Vec<StageNote> {
        joined::accumulated::<StageNote>(engine, TextKey::new(engine, label.clone())).into_iter().cloned().collect()
    }

    fn finish(&self, engine: &Engine, label: &Label) -> Result<Outcome, Failure> {
        let joined = joined(engine, TextKey::new(engine, label.clone()))?;
        Ok(Outcome { exports: vec![Export::of_artifact(engine, "joined.txt", &joined)?], ..Outcome::default() })
    }
}

struct Silence;

impl EventSink for Silence {
    fn event(&self, _: &Event) {}
}

/// Digests of stages and the bytes of what was exported.
type Built = (BTreeMap<String, Digest>, Vec<u8>);

struct Place {
    _directory: tempfile::TempDir,
    root: Utf8PathBuf,
    store: Utf8PathBuf,
}

impl Place {
    fn new() -> Place {
        // In memory where there is such a place: hundreds of new databases wait for a disk.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary directory");
        let base = Utf8Path::from_path(directory.path()).expect("UTF-8").canonicalize_utf8().expect("a directory");
        let place = Place { _directory: directory, root: base.join("workspace"), store: base.join("store") };
        let text: String = (0..20).map(|number| format!("line {number}\n")).collect();
        let build = "[poem]\nrule = \"text\"\nsrc = \"poem.txt\"\n";
        fs::create_dir_all(place.root.join("words")).expect("created");
        for (file, text) in [("WORKSPACE.toml", ""), ("words/BUILD.toml", build), ("words/poem.txt", &text)] {
            fs::write(place.root.join(file), text).expect("written");
        }
        place
    }

    /// As a process does: the digest of each stage, and the bytes that were exported.
    fn build(&self) -> Result<Built, String> {
        self.build_with(&mut self.engine()?)
    }

    fn engine(&self) -> Result<Engine, String> {
        let store = Store::open(&self.store).map_err(|fault| fault.to_string())?;
        let shared = Shared::new(store, Arc::new(Silence), SourceReader::new(&self.root, &[]));
        Engine::new(shared, EngineOptions { threads: 2, shuffle: None }).map_err(|failure| failure.to_string())
    }

    fn build_with(&self, engine: &mut Engine) -> Result<Built, String> {
        let mut registry = Registry::with_generic_rules();
        registry.add(TextRule);
        let patterns = [Pattern::Below(PackageName::in_workspace(""))];
        let request = LoadRequest { root: &self.root, registry: &registry, repositories: &[], patterns: &patterns, overrides: &[] };
        let workspace = Workspace::load(&request).map_err(|faults| faults.to_string())?;
        let recorder = RunRecorder::start(Arc::new(Silence), "/workspace", vec!["build".to_owned()]);
        let label = Label::parse("//words:poem", &PackageName::in_workspace("")).expect("a label");
        engine.build_targets(&workspace, &[label]).map_err(|failure| failure.to_string())?;
        RunRecorder::keep(engine.shared().store(), &recorder.record(RunOutcome::Succeeded), &[]).map_err(|fault| fault.to_string())?;
        let digests = engine.shared().stage_digests().into_iter().map(|(id, digest)| (id.to_string(), digest)).collect();
        Ok((digests, fs::read(self.root.join("artifacts/words/poem/joined.txt")).map_err(|error| error.to_string())?))
    }

    fn remove_exports(&self) {
        let removed = fs::remove_dir_all(self.root.join("artifacts"));
        assert!(removed.is_ok() || !self.root.join("artifacts").exists());
    }

    fn defects(&self) -> Vec<Defect> {
        Store::open(&self.store).expect("opens").check(false).expect("checks").defects
    }
}

/// Builds in places made by `prepare` with each call failing, once or all from then on.
fn sweep(what: &str, stride: usize, prepare: impl Fn(&Place)) {
    let (_, bytes) = Place::new().build().expect("builds");
    let first = Place::new();
    prepare(&first);
    faults::fail(u64::MAX..=u64::MAX, 0);
    let (digests, _) = first.build().expect("builds");
    let calls = faults::stop();
    for (name, errno) in ERRORS {
        let (mut failed, mut succeeded) = (0, 0);
        for call in (0..calls).step_by(stride) {
            for last in [call, u64::MAX] {
                let place = Place::new();
                prepare(&place);
                faults::fail(call..=last, errno);
                let result = place.build();
                faults::stop();
                let context = format!("{what}, {name} at calls {call} to {last} of {calls}: {:?}", result.as_ref().err());
                match result {
                    Ok((_, found)) => {
                        assert_eq!(found, bytes, "{context}");
                        succeeded += 1;
                    }
                    Err(message) => {
                        assert!(!message.is_empty());
                        failed += 1;
                    }
                }
                let again = place.build().unwrap_or_else(|failure| panic!("{context}, then {failure}"));
                assert_eq!(again.1, bytes, "{context}");
                assert!(again.0.iter().all(|(id, digest)| digests.get(id).is_none_or(|known| known == digest)), "{context}");
                Store::open(&place.store).expect("opens").gc(&GcPolicy::default()).expect("collects");
                assert_eq!(place.defects(), [], "{context}");
                place.remove_exports();
                assert_eq!(place.build().expect("builds").1, bytes, "from the store alone; {context}");
            }
        }
        eprintln!("{what}, {name}: {} failures at {calls} calls, {failed} told, {succeeded} overcome", failed + succeeded);
    }
}

/// An engine goes on after all its calls failed from some moment on, and what it made meanwhile is in the store all the same.
fn go_on(stride: usize) {
    let (_, bytes) = Place::new().build().expect("builds");
    faults::fail(u64::MAX..=u64::MAX, 0);
    Place::new().build().expect("builds");
    let calls = faults::stop();
    for call in (0..calls).step_by(stride) {
        let place = Place::new();
        let mut engine = place.engine().expect("an engine");
        faults::fail(call..=u64::MAX, ERRORS[0].1);
        let failed = place.build_with(&mut engine);
        faults::stop();
        let again = place.build_with(&mut engine).unwrap_or_else(|failure| panic!("call {call}: {:?}, then {failure}", failed.err()));
        assert_eq!(again.1, bytes, "call {call}");
        engine.shared().flush().expect("written");
        drop(engine);
        place.remove_exports();
        let mut next = place.engine().expect("an engine");
        assert_eq!(place.build_with(&mut next).expect("builds").1, bytes, "call {call}");
        assert_eq!(next.shared().take_executed().len(), 0, "call {call}");
    }
}

/// `STORE_FAULTS=all` for each call of a first build; else every third.
#[test]
fn any_call_on_files_may_fail_under_a_build() {
    let is_all = std::env::var("STORE_FAULTS").is_ok_and(|value| value == "all");
    sweep("first build", if is_all { 1 } else { 3 }, |_| {});
    go_on(if is_all { 1 } else { 3 });
    sweep("build after an export was removed", 1, |place| {
        place.build().expect("builds");
        place.remove_exports();
    });
}
