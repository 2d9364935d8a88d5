//! Sweeps: which points there are, what executes for them, and what is left when some of them fail.

use std::fs;
use std::sync::{Arc, Mutex};

use camino::{Utf8Path, Utf8PathBuf};
use graph::{
    Artifact, Db, Declaration, Digest, Engine, EngineOptions, Event, EventSink, Failure, Field, Label, LoadRequest, Made, Outcome,
    PackageName, Pattern, Registry, Rule, RuleData, RuleKind, Shared, SourcePath, SourceReader, StageNote, StageSpec, Target, TargetReport,
    Workspace, data_of, load, read_source, stage,
};
use serde::Deserialize;
use serde_json::Value;
use store::Store;

/// Something made of a file, of some size; 13 is impossible.
#[derive(Debug, PartialEq, Deserialize)]
struct Part {
    src: SourcePath,
    shape: Shape,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Shape {
    size: u64,
    #[serde(default)]
    colour: String,
}

/// Measures a part; it should weigh no more than the limit.
#[derive(Debug, PartialEq, Deserialize)]
struct Check {
    part: Label,
    limit: u64,
}

fn spec(name: &'static str, db: &dyn Db, target: Target) -> StageSpec {
    StageSpec::new(name, Digest::of(b"code"), target.label(db))
}

/// The same at every point.
#[salsa::tracked(returns(clone))]
fn weight(db: &dyn Db, target: Target) -> Result<Artifact<u64>, Failure> {
    let part = data_of::<Part>(db, target.label(db))?;
    let file = db.source(&part.src);
    stage(db, &spec("weight", db, target), &[("src", file.digest(db))], || Ok(Made::new(read_source(db, file)?.len() as u64)))
}

#[salsa::tracked(returns(clone))]
fn shaped(db: &dyn Db, target: Target) -> Result<Artifact<u64>, Failure> {
    let part = data_of::<Part>(db, target.label(db))?;
    let weight = weight(db, target)?;
    let shape = Digest::of(format!("{:?}", part.shape).as_bytes());
    stage(db, &spec("shaped", db, target), &[("weight", weight.digest()), ("shape", shape)], || match part.shape.size {
        13 => Err(Failure::build("does not fit: 13 bytes on tile 5\n  nearest that fits: 12")),
        size => Ok(Made::new(*load(db, &weight)? * size)),
    })
}

#[salsa::tracked(returns(clone))]
fn measured(db: &dyn Db, target: Target) -> Result<Artifact<bool>, Failure> {
    let check = data_of::<Check>(db, target.label(db))?;
    let shaped = shaped(db, db.target(&check.part))?;
    let limit = Digest::of(&check.limit.to_le_bytes());
    stage(db, &spec("measured", db, target), &[("shaped", shaped.digest()), ("limit", limit)], || {
        Ok(Made::new(*load(db, &shaped)? <= check.limit))
    })
}

struct PartRule;

impl Rule for PartRule {
    fn name(&self) -> &'static str {
        "part"
    }

    fn summary(&self) -> &'static str {
        "A part."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[Field::required("src", "a file", "The source."), Field::required("shape", "a table", "The shape.")];
        FIELDS
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Built
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        let part = declaration.read::<Part>()?;
        if part.shape.size == 0 {
            declaration.fault("shape.size", "found 0", "a size of at least 1");
            return None;
        }
        Some(Arc::new(part))
    }

    fn stages(&self, engine: &Engine, label: &Label) -> Vec<StageNote> {
        shaped::accumulated::<StageNote>(engine, engine.target(label)).into_iter().cloned().collect()
    }

    fn finish(&self, engine: &Engine, label: &Label) -> Result<Outcome, Failure> {
        shaped(engine, engine.target(label)).map(|_| Outcome::default())
    }
}

struct CheckRule;

impl Rule for CheckRule {
    fn name(&self) -> &'static str {
        "check"
    }

    fn summary(&self) -> &'static str {
        "A check."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::required("part", "label of a `part`", "The part.").accepting(&["part"]),
            Field::required("limit", "an integer", "The most that it may weigh."),
        ];
        FIELDS
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Run
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        Some(Arc::new(declaration.read::<Check>()?))
    }

    fn stages(&self, engine: &Engine, label: &Label) -> Vec<StageNote> {
        measured::accumulated::<StageNote>(engine, engine.target(label)).into_iter().cloned().collect()
    }

    fn finish(&self, engine: &Engine, label: &Label) -> Result<Outcome, Failure> {
        let check = data_of::<Check>(engine, label)?;
        let success = *load(engine, &measured(engine, engine.target(label))?)?;
        let weight = *load(engine, &shaped(engine, engine.target(&check.part))?)?;
        let figures = vec![("clocks".to_owned(), (1000 - weight).into()), ("weight".to_owned(), weight.into())];
        Ok(Outcome { success, lines: vec![format!("weight {weight}")], figures, ..Outcome::default() })
    }
}

/// The points that were told, as lines.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl EventSink for Told {
    fn event(&self, event: &Event) {
        if let Event::Point(point) = event {
            let message = point.message.as_deref().unwrap_or(if point.is_best { "best" } else { "" });
            let cached = if point.cached { " cached" } else { "" };
            self.0.lock().expect("no panic").push(format!("{}/{} {}{cached} {message}", point.done, point.total, point.label.point_text()));
        }
    }
}

const BUILD: &str = r#"[part]
rule = "part"
src = "part.txt"
shape = { size = 2 }
[check]
rule = "check"
part = ":part"
limit = 70
[sizes]
rule = "sweep"
of = ":check"
axes.size = { field = "shape.size", values = [1, 5, 13] }
axes.limit = { field = "limit", values = [70, 20] }
"#;

struct Fixture {
    _directory: tempfile::TempDir,
    root: Utf8PathBuf,
    store: Utf8PathBuf,
}

/// What a build did: its reports, what was told of points, and the stages that executed.
struct Built {
    reports: Vec<TargetReport>,
    told: Vec<String>,
    executed: Vec<String>,
}

impl Fixture {
    fn new(build: &str) -> Fixture {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let base = Utf8Path::from_path(directory.path()).expect("UTF-8").canonicalize_utf8().expect("a directory");
        let fixture = Fixture { _directory: directory, root: base.join("workspace"), store: base.join("store") };
        fixture.write("WORKSPACE.toml", "");
        fixture.write("BUILD.toml", build);
        fixture.write("part.txt", "ten bytes\n");
        fixture
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, text).expect("written");
    }

    fn load(&self, patterns: &[Pattern]) -> Result<Workspace, String> {
        let mut registry = Registry::with_generic_rules();
        registry.add(PartRule);
        registry.add(CheckRule);
        let request = LoadRequest { root: &self.root, registry: &registry, repositories: &[], patterns, overrides: &[] };
        Workspace::load(&request).map_err(|faults| faults.to_string())
    }

    /// Builds in a new process, on one thread: points are told in their order.
    fn build(&self, label: &str, change: impl Fn(Engine) -> Engine) -> Result<Built, Failure> {
        let label = named(label);
        let workspace = self.load(&[Pattern::One(label.clone())]).unwrap_or_else(|faults| panic!("{faults}"));
        let sink = Arc::new(Told::default());
        let shared = Shared::new(Store::open(&self.store).expect("the store opens"), sink.clone(), SourceReader::new(&self.root, &[]));
        let mut engine = change(Engine::new(shared, EngineOptions { threads: 1, shuffle: None }).expect("an engine"));
        let reports = engine.build_targets(&workspace, &[label])?;
        let executed = engine.shared().take_executed().iter().map(|id| format!("{}{}", id.label, id.stage)).collect();
        let told = std::mem::take(&mut *sink.0.lock().expect("no panic"));
        Ok(Built { reports, told, executed })
    }

    #[track_caller]
    fn swept(&self) -> Built {
        self.build("//:sizes", |engine| engine).unwrap_or_else(|failure| panic!("{failure}"))
    }

    fn csv(&self) -> String {
        fs::read_to_string(self.root.join("artifacts/sizes/sweep.csv")).expect("the table is exported")
    }

    /// The data of the page, which end where their element does.
    fn page(&self) -> Value {
        let page = fs::read_to_string(self.root.join("artifacts/sizes/report.html")).expect("the page is exported");
        let (_, data) = page.split_once(r#"<script type="application/json" id="data">"#).expect("data");
        serde_json::from_str(data.split_once("</script>").expect("an end").0).expect("JSON")
    }

    #[track_caller]
    fn refused(build: &str, expected: &str) {
        let fixture = Fixture::new(&BUILD.replace("axes.size = { field = \"shape.size\", values = [1, 5, 13] }\n", build));
        match fixture.load(&[Pattern::One(named("//:sizes"))]) {
            Ok(_) => panic!("it loads"),
            Err(faults) => assert_eq!(faults, expected),
        }
    }

    /// The points of a sweep over `axes` of the part.
    fn points(axes: &str) -> String {
        let fixture =
            Fixture::new(&BUILD.split("axes.size").next().expect("a part").replace("of = \":check\"", &format!("of = \":part\"\n{axes}")));
        let workspace = fixture.load(&[Pattern::One(named("//:sizes"))]).unwrap_or_else(|faults| panic!("{faults}"));
        let sweep = workspace.target(&named("//:sizes")).expect("a target").data::<graph::Sweep>().expect("a sweep");
        let points = sweep.expanded.iter().map(|point| named("//:sizes").at_point(&point.names).point_text());
        points.collect::<Vec<_>>().join(" ")
    }
}

fn named(text: &str) -> Label {
    Label::parse(text, &PackageName::in_workspace("")).expect("a label")
}

#[test]
fn shared_prefix_runs_once_and_failed_points_are_results() {
    let fixture = Fixture::new(BUILD);
    let built = fixture.swept();
    assert_eq!(built.executed.iter().filter(|stage| stage.contains("[weight]")).count(), 1, "{:?}", built.executed);
    assert_eq!(
        built.told,
        [
            "1/6 [limit=70,size=1] best",
            "2/6 [limit=70,size=5] best",
            "3/6 [limit=70,size=13] does not fit: 13 bytes on tile 5; nearest that fits: 12",
            "4/6 [limit=20,size=1] ",
            "5/6 [limit=20,size=5] the verdict is a failure: weight 50",
            "6/6 [limit=20,size=13] does not fit: 13 bytes on tile 5; nearest that fits: 12",
        ]
    );
    let sweep = built.reports.last().expect("a report");
    assert_eq!(
        sweep.lines,
        [
            "points=6 pass=3 fail=1 failed=2",
            "failed //:sizes[limit=70,size=13]: does not fit: 13 bytes on tile 5; nearest that fits: 12",
            "fail //:sizes[limit=20,size=5]: the verdict is a failure: weight 50",
            "failed //:sizes[limit=20,size=13]: does not fit: 13 bytes on tile 5; nearest that fits: 12",
            "best=//:sizes[limit=70,size=5] clocks=950, 3.06 % less than 980 of //:check",
        ]
    );
    assert!(sweep.success);
    assert_eq!(
        fixture.csv(),
        "limit,size,result,clocks,weight,message\n70,1,pass,990,10,\n70,5,pass,950,50,\n\
         70,13,failed,,,does not fit: 13 bytes on tile 5; nearest that fits: 12\n20,1,pass,990,10,\n\
         20,5,fail,950,50,the verdict is a failure: weight 50\n\
         20,13,failed,,,does not fit: 13 bytes on tile 5; nearest that fits: 12\n"
    );
}

#[test]
fn unchanged_sweep_executes_nothing_and_gives_the_same_bytes() {
    let fixture = Fixture::new(BUILD);
    fixture.swept();
    let before = fixture.csv();
    fs::remove_dir_all(fixture.root.join("artifacts")).expect("removed");
    let built = fixture.swept();
    assert_eq!(built.executed, Vec::<String>::new());
    assert_eq!(built.told.iter().filter(|line| line.contains(" cached ")).count(), 6, "failed points, too: {:?}", built.told);
    assert_eq!(fixture.csv(), before);
    let points = fixture.root.join("artifacts/sizes/points");
    assert!(!points.exists(), "files of points are written when a point is asked for");
}

/// The page holds what the table holds, and a message that looks like markup does not end its data.
#[test]
fn page_shows_the_table() {
    let fixture = Fixture::new(BUILD);
    fixture.swept();
    let page = fixture.page();
    let csv = fixture.csv();
    let mut lines = csv.lines();
    let text =
        |value: &Value| value.as_str().map_or_else(|| if value.is_null() { String::new() } else { value.to_string() }, str::to_owned);
    let list = |value: &Value| value.as_array().expect("a list").iter().map(text).collect::<Vec<_>>();
    let head = [list(&page["axes"]), vec!["result".to_owned()], list(&page["figures"]), vec!["message".to_owned()]].concat();
    assert_eq!(lines.next().expect("a head"), head.join(","));
    let points = page["points"].as_array().expect("points");
    let shown = points.iter().map(|point| {
        [list(&point["values"]), vec![text(&point["result"])], list(&point["figures"]), vec![text(&point["message"])]].concat().join(",")
    });
    assert_eq!(shown.collect::<Vec<_>>(), lines.collect::<Vec<_>>());
    assert_eq!((text(&page["best"]), text(&page["gain"])), ("1".to_owned(), "3.06 % less than 980 of //:check".to_owned()));
    assert_eq!(text(&points[1]["settings"]), r#"[["limit","70"],["shape.size","5"]]"#);
    assert_eq!(list(&page["stages"]), ["[measured]"], "a stage of all points is named once");
}

#[test]
fn markup_in_a_value_does_not_end_the_data() {
    let markup = "</script><script>alert(1)</script>";
    let axis = format!(
        "axes.limit = {{ field = \"limit\", values = [70, 20] }}\naxes.colour = {{ field = \"shape.colour\", values = ['{markup}'], names = ['odd'] }}"
    );
    let fixture = Fixture::new(&BUILD.replace("axes.limit = { field = \"limit\", values = [70, 20] }", &axis));
    fixture.swept();
    assert_eq!(fixture.page()["points"][0]["settings"][0], serde_json::json!(["shape.colour", markup]));
}

#[test]
fn added_value_executes_its_points_alone() {
    let fixture = Fixture::new(BUILD);
    fixture.swept();
    fixture.write("BUILD.toml", &BUILD.replace("values = [1, 5, 13]", "values = [1, 3, 5, 13]"));
    let mut executed = fixture.swept().executed;
    executed.sort();
    // What differs in the limit alone has the same part.
    assert_eq!(
        executed,
        ["//:sizes[limit=20,size=3][measured]", "//:sizes[limit=70,size=3]:part[shaped]", "//:sizes[limit=70,size=3][measured]"]
    );
}

#[test]
fn edit_executes_the_points_that_it_reaches() {
    let fixture = Fixture::new(BUILD);
    fixture.swept();
    fixture.write("BUILD.toml", &BUILD.replace("values = [70, 20]", "values = [70, 30]"));
    let executed = fixture.swept().executed;
    assert_eq!(executed, ["//:sizes[limit=30,size=1][measured]", "//:sizes[limit=30,size=5][measured]"]);
    fixture.write("part.txt", "eleven byte\n");
    assert_eq!(fixture.swept().executed.iter().filter(|stage| stage.ends_with("[weight]")).count(), 1);
}

#[test]
fn point_is_a_target_of_its_own() {
    let fixture = Fixture::new(BUILD);
    let built = fixture.build("//:sizes[limit=70,size=5]", |engine| engine).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(built.reports.last().expect("a report").lines, ["weight 50"]);
    let executed =
        ["//:sizes[limit=70,size=5][measured]", "//:sizes[limit=70,size=5]:part[shaped]", "//:sizes[limit=70,size=5]:part[weight]"];
    assert_eq!(built.executed, executed);
    let failure = |label| fixture.build(label, |engine| engine).err().map(|failure| failure.to_string());
    let expected = "//:sizes[limit=70,size=13]:part[shaped]: does not fit: 13 bytes on tile 5\n  nearest that fits: 12";
    assert_eq!(failure("//:sizes[limit=70,size=13]").as_deref(), Some(expected));
    fixture.swept();
    assert_eq!(failure("//:sizes[limit=70,size=13]").as_deref(), Some(expected), "from the record");
}

#[test]
fn first_failed_point_ends_a_build_that_fails_fast() {
    let fixture = Fixture::new(BUILD);
    let failure = fixture.build("//:sizes", Engine::failing_fast).err().expect("a failure");
    assert_eq!(failure.to_string(), "//:sizes[limit=70,size=13]:part[shaped]: does not fit: 13 bytes on tile 5\n  nearest that fits: 12");
    let told = fixture.swept().told;
    assert_eq!(told.iter().filter(|line| line.contains(" cached ")).count(), 3, "what was done is kept: {told:?}");
}

#[test]
fn points_are_all_combinations_that_meet_the_conditions() {
    let check = |axes: &str, expected: &str| assert_eq!(Fixture::points(axes), expected, "{axes}");
    check("axes.size = { field = \"shape.size\", range = { from = 1, to = 7, step = 3 } }", "[size=1] [size=4] [size=7]");
    check("axes.size = { field = \"shape.size\", range = { from = 3, to = 13, times = 2 } }", "[size=3] [size=6] [size=12]");
    check("axes.a = { fields = [\"shape.size\", \"shape.colour\"], values = [[3, \"red\"], [4, \"blue\"]] }", "[a=3xred] [a=4xblue]");
    check("axes.a = { field = \"shape.size\", values = [3, 4], names = [\"low\", \"high\"] }", "[a=low] [a=high]");
    let two = "axes.b = { field = \"shape.colour\", values = [\"red\", \"blue\"] }\naxes.a = { field = \"shape.size\", values = [1, 2] }\n";
    check(two, "[a=1,b=red] [a=1,b=blue] [a=2,b=red] [a=2,b=blue]");
    check(&format!("{two}where = [\"a == 1 || b != 'red'\"]"), "[a=1,b=red] [a=1,b=blue] [a=2,b=blue]");
    check(
        "axes.a.field = \"shape.size\"\naxes.b.field = \"shape.colour\"\npoints = [{ a = 3 }, { a = 1, b = \"red\" }]",
        "[a=3] [a=1,b=red]",
    );
}

#[test]
fn sample_keeps_its_points_when_others_come_and_go() {
    let sample = |to: u32| {
        let axes =
            format!("axes.a = {{ field = \"shape.size\", range = {{ from = 1, to = {to} }} }}\nsample = {{ points = 10, seed = 3 }}");
        Fixture::points(&axes).split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let (few, many) = (sample(50), sample(55));
    assert_eq!((few.len(), many.len()), (10, 10));
    assert_eq!(sample(50), few);
    let kept = few.iter().filter(|point| many.contains(point)).count();
    assert!(kept >= 5, "{few:?} {many:?}");
}

#[test]
fn wrong_sweeps_are_refused_with_the_place() {
    let check = Fixture::refused;
    check(
        "axes.size = { field = \"shape.size\", values = [2, 0] }\n",
        "error: //:sizes[limit=70,size=0]:part, shape.size: found 0\n --> BUILD.toml:12:50     expected a size of at least 1",
    );
    check(
        "axes.size = { field = \"shape.size\", values = [\"big\"] }\n",
        "error: //:sizes[limit=70,size=big]:part, shape.size: found string \"big\"\n --> BUILD.toml:12:47     expected an integer from 0 on",
    );
    check(
        "axes.size = { field = \"shape.sise\", values = [1] }\n",
        "error: //:sizes[limit=70,size=1]:part, shape: unknown field `sise`\n --> BUILD.toml:12:47     expected one of `size`, `colour`; nearest size",
    );
    check(
        "axes.size = { field = \"shap.size\", values = [1] }\n",
        "error: //:sizes, axes.size.field: unknown field `shap`\n --> BUILD.toml:12:23     expected one of `limit`, `part`, `shape`, `src`; nearest shape",
    );
    check(
        "axes.size = { fields = [\"shape.size\", \"shape.colour\"], values = [[1, \"a\"], [2]] }\n",
        "error: //:sizes, axes.size.values[1]: found 2\n --> BUILD.toml:12:76     expected a list of 2 values, one for each field",
    );
    check(
        "axes.size = { field = \"shape.colour\", values = [\"a b\", \"c\", \"c\"] }\n",
        "error: //:sizes, axes.size.values[0]: `a b` cannot stand in a label\n --> BUILD.toml:12:49     expected letters, digits and `_ - . +`; `names` gives other ones\n\
         error: //:sizes, axes.size.values[2]: `c` is there twice\n --> BUILD.toml:12:61     expected values that differ, or `names`",
    );
    check(
        "axes.size = { field = \"shape.size\", range = { from = 1, to = 100000 } }\n",
        "error: //:sizes, axes: more than 20000 combinations\n --> BUILD.toml:12:1     expected fewer values, or `points`",
    );
    check(
        "axes.size = { field = \"shape.size\", values = [1], range = { from = 9, to = 1 } }\naxes.a-b = { field = \"limit\", values = [1] }\n",
        "error: //:sizes, axes: `a-b` is no name of an axis\n --> BUILD.toml:12:1     expected letters, digits and `_`, the first no digit\n\
         error: //:sizes, axes.size: `values` and `range` are both given\n --> BUILD.toml:12:13     expected one of them",
    );
    check(
        "axes.size = { field = \"shape.size\", values = [1] }\nwhere = [\"sise < 3\", \"size <\"]\n",
        "error: //:sizes, where[0]: there is no axis `sise`\n --> BUILD.toml:13:10     expected one of `limit`, `size`; nearest size\n\
         error: //:sizes, where[1]: `size <` is no condition\n --> BUILD.toml:13:22     expected a number, an axis, `'text'` or `(` at column 7",
    );
    check(
        "axes.size = { field = \"shape.size\", values = [1] }\nwhere = [\"size / (size - 1) < 3\"]\n",
        "error: //:sizes, where[0]: at [limit=70,size=1]: 1 and 0 have no result in 64 bits\n --> BUILD.toml:13:10     expected true or false at every point",
    );
    check(
        "axes.size = { field = \"shape.size\", values = [1] }\nwhere = [\"size > 3\"]\n",
        "error: //:sizes, where: no point meets the conditions\n --> BUILD.toml:13:9     expected conditions that some combination of the axes' values meets",
    );
    check(
        "axes.size = { field = \"shape.size\", values = [1] }\nsample = { points = 0 }\n",
        "error: //:sizes, sample.points: a sample of 0 points\n --> BUILD.toml:13:21     expected at least 1",
    );
    check(
        "axes.size = { field = \"shape.size\", values = [1] }\n[more]\nrule = \"sweep\"\nof = \":sizes\"\n",
        "error: //:more, of: `//:sizes` is a `sweep`\n --> BUILD.toml:15:6     expected a target that gives something, as a `run` or a `program`",
    );
}

#[test]
fn parquet_needs_its_feature() {
    let build = BUILD.replace("of = \":check\"", "of = \":check\"\nparquet = true");
    let fixture = Fixture::new(&build);
    if cfg!(feature = "parquet") {
        fixture.swept();
        let bytes = fs::read(fixture.root.join("artifacts/sizes/sweep.parquet")).expect("the table is exported");
        assert_eq!((&bytes[..4], &bytes[bytes.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    } else {
        let faults = fixture.load(&[Pattern::One(named("//:sizes"))]).err().expect("a fault");
        let expected = "error: //:sizes, parquet: this ipubuild was built without the feature `parquet`\n --> BUILD.toml:12:11     \
                        expected one built with it: `cargo build --release -p ipubuild --features parquet`";
        assert_eq!(faults, expected);
    }
}

#[test]
fn objective_that_nothing_gives_is_told_with_what_there_is() {
    let fixture = Fixture::new(&BUILD.replace("of = \":check\"", "of = \":check\"\nobjective = { maximize = \"speed\" }"));
    let failure = fixture.build("//:sizes", |engine| engine).err().expect("a failure");
    assert_eq!(failure.to_string(), "//:sizes, objective: no point gives a figure `speed`; there are `clocks`, `weight`");
    fixture.write("BUILD.toml", &BUILD.replace("of = \":check\"", "of = \":check\"\nobjective = { maximize = \"weight\" }"));
    let lines = fixture.swept().reports.pop().expect("a report").lines;
    assert_eq!(lines.last().expect("a line"), "best=//:sizes[limit=70,size=5] weight=50, 150.00 % more than 20 of //:check");
}
