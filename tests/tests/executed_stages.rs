//! What an edit executes: for every row of the architecture's table the exact set of stages, in the process that built before and in
//! a new one on the same store.
//!
//! Two things are finer than that table. The planner screens with the cycle models of the manifests, so measured clocks enter at
//! `refined`: a kernel that becomes slower changes which finalist is selected, never which finalists there are. And every stage is
//! cut off where its result is equal, so each row is an upper bound that the tests below make exact: a run whose samples and clocks
//! did not change gives its old verdict.

use std::collections::{BTreeMap, BTreeSet};

use compiler::kernel_table::printed;
use graph::{Db, Digest, EngineOptions, Label, PackageName, StageId};
use pipeline::{FinalistKey, stage};
use tests::fake_sdk;
use tests::kernel_files::{manifest, source};
use tests::place::{halves, npy};
use tests::{Session, TemporaryWorkspace};

/// 60 tokens of 40 channels, one head, on 8 tiles; `softmax` and `normalise` come from the workspace.
const PROGRAM: &str = r#"
[kernels]
rule = "kernel_library"
manifest = "kernels.toml"
srcs = ["softmax.S", "normalise.S"]

[model]
rule = "model"
inputs.hidden = { type = "f16", shape = [1, 60, 40] }
parameters.wq = { type = "f16", shape = [40, 40] }
parameters.wk = { type = "f16", shape = [40, 40] }
parameters.wv = { type = "f16", shape = [40, 40] }
op = [
    { name = "q", op = "matmul", args = ["hidden", "wq"] },
    { name = "k", op = "matmul", args = ["hidden", "wk"] },
    { name = "v", op = "matmul", args = ["hidden", "wv"] },
    { name = "queries", op = "split", args = ["q"], heads = 1 },
    { name = "keys", op = "split", args = ["k"], heads = 1 },
    { name = "values", op = "split", args = ["v"], heads = 1 },
    { name = "output", op = "attention", args = ["queries", "keys", "values"] },
]

[input]
rule = "tensors"
seed = 1
normal.hidden = { shape = [1, 60, 40] }

[weights]
rule = "tensors"
seed = 2
normal.wq = { shape = [40, 40], variance = 0.00625 }
normal.wk = { shape = [40, 40], variance = 0.00625 }
normal.wv = { shape = [40, 40], variance = 0.00625 }

[program]
rule = "program"
model = ":model"
machine = "@ipu//machines:c600"
kernels = [":kernels", "@ipu//kernels"]
layout = { tiles = 8 }
checkpoints = [0, 1, 2, 6]

[run]
rule = "run"
program = ":program"
device = "@ipu//devices:simulator"
tensors = { hidden = ":input" }
parameters = ":weights"
tolerance = { default = 3e-3 }
"#;

/// The same declarations in another order and form.
const REWRITTEN: &str = r#"
# Nothing below means anything else.
[run]
tolerance.default = 0.003
parameters = ':weights'
tensors.hidden = '//:input'
device = "@ipu//devices:simulator"
program = "//:program"
rule = 'run'

[program.layout]
tiles = 0x8

[program]
checkpoints = [
    0, # q
    1,
    2,
    6, # output
]
kernels = [":kernels", "@ipu//kernels:kernels"]
machine = "@ipu//machines:c600"
model = ":model"
rule = "program"

[weights]
seed = 2
rule = "tensors"
normal.wv = { variance = 6.25e-3, shape = [40, 40] }
normal.wk = { variance = 6.25e-3, shape = [40, 40] }
normal.wq = { variance = 6.25e-3, shape = [40, 40] }

[input]
rule = "tensors"
seed = 1
[input.normal.hidden]
shape = [1, 60, 40]
mean = 0.0

[model]
rule = "model"
[model.parameters]
wv = { shape = [40, 40], type = "f16" }
wk = { shape = [40, 40], type = "f16" }
wq = { shape = [40, 40], type = "f16" }
[model.inputs.hidden]
shape = [1, 60, 40]
type = "f16"
[[model.op]]
op = "matmul"
name = "q"
args = ["hidden", "wq"]
[[model.op]]
op = "matmul"
name = "k"
args = ["hidden", "wk"]
[[model.op]]
op = "matmul"
name = "v"
args = ["hidden", "wv"]
[[model.op]]
op = "split"
name = "queries"
args = ["q"]
heads = 1
[[model.op]]
op = "split"
name = "keys"
args = ["k"]
heads = 1
[[model.op]]
op = "split"
name = "values"
args = ["v"]
heads = 1
[[model.op]]
op = "attention"
name = "output"
args = ["queries", "keys", "values"]

[kernels]
srcs = ["softmax.S", "normalise.S"]
manifest = "kernels.toml"
rule = "kernel_library"
"#;

/// One worker thread: of two phases with equal problems the first one is scheduled.
const OPTIONS: EngineOptions = EngineOptions { threads: 1, shuffle: None };

/// The program, built once, with the store as it was then.
struct Fixture {
    before: TemporaryWorkspace,
    workspace: TemporaryWorkspace,
    session: Session,
}

impl Fixture {
    fn new() -> Self {
        Self::of(PROGRAM)
    }

    fn of(build: &str) -> Self {
        Self::with(build, |_| ())
    }

    /// The same with files that `add` writes.
    fn with(build: &str, add: impl Fn(&TemporaryWorkspace)) -> Self {
        let workspace = TemporaryWorkspace::new(build);
        add(&workspace);
        workspace.write("kernels.toml", manifest(&["softmax", "normalise"]));
        workspace.write("softmax.S", source("softmax.S"));
        workspace.write("normalise.S", source("normalise.S"));
        let mut session = workspace.session(OPTIONS);
        let report = session.build("//:run").unwrap_or_else(|failure| panic!("{failure}")).pop().expect("a report");
        assert!(report.success, "{}", report.lines.join("\n"));
        assert_one_execution_each(&session);
        Self { before: workspace.copy(), workspace, session }
    }

    /// Asserts what executes after `edit`: in the process that built before, in a new one on the store as it was, and nothing when the
    /// edit is taken back. In `expected` a `*` stands for the rest of any index that the program has before or after the edit.
    #[track_caller]
    fn check(&mut self, edit: impl Fn(&TemporaryWorkspace), expected: &str) {
        edit(&self.workspace);
        let (here, known) = executed(&mut self.session);
        let there = self.before.copy();
        edit(&there);
        let (elsewhere, _) = executed(&mut there.session(OPTIONS));
        let expected = expand(expected, &known);
        assert_same(&here, &expected, "in the same process");
        assert_same(&elsewhere, &expected, "in a new process");
        self.workspace.restore(&self.before);
        assert_eq!(executed(&mut self.session).0, [""; 0], "after the edit was taken back");
    }

    /// The same for an edit of BUILD.toml that replaces a text.
    #[track_caller]
    fn check_declaration(&mut self, old: &str, new: &str, expected: &str) {
        self.check_file("BUILD.toml", old, new, expected);
    }

    #[track_caller]
    fn check_file(&mut self, path: &str, old: &str, new: &str, expected: &str) {
        let edit = |workspace: &TemporaryWorkspace| {
            let text = String::from_utf8(workspace.read(path)).expect("UTF-8");
            assert_eq!(text.matches(old).count(), 1, "`{old}` in {path}");
            workspace.write(path, text.replace(old, new));
        };
        self.check(edit, expected);
    }
}

/// From an empty store every result is made once: of stages with equal inputs one executes.
fn assert_one_execution_each(session: &Session) {
    let (executed, digests) = (session.executed(), session.digests());
    let results = |ids: &mut dyn Iterator<Item = &StageId>| -> BTreeSet<(String, Digest)> {
        ids.map(|id| (id.stage.stage.clone(), digests[id])).collect()
    };
    assert_eq!(results(&mut executed.iter()), results(&mut digests.keys()));
    let shared: BTreeSet<&str> = digests.keys().filter(|id| !executed.contains(id)).map(|id| id.stage.stage.as_str()).collect();
    assert!(shared.iter().all(|stage| ["schedule", "mapping"].contains(stage)), "{shared:?}");
}

/// Builds the run: what executed, and all stages seen so far.
fn executed(session: &mut Session) -> (Vec<String>, BTreeSet<String>) {
    session.build("//:run").unwrap_or_else(|failure| panic!("{failure}"));
    let text = |id: &StageId| format!("{}{}", id.label.name(), id.stage);
    (session.executed().iter().map(text).collect(), session.digests().keys().map(text).collect())
}

#[track_caller]
fn assert_same(executed: &[String], expected: &[String], place: &str) {
    let without =
        |list: &[String], other: &[String]| list.iter().filter(|stage| !other.contains(stage)).cloned().collect::<Vec<_>>().join(" ");
    let (unexpected, missing) = (without(executed, expected), without(expected, executed));
    assert!(unexpected.is_empty() && missing.is_empty(), "{place}: executed and should not: {unexpected}\nshould and did not: {missing}");
}

/// The stages of a list; `softmax*` is every known index that begins so.
fn expand(expected: &str, known: &BTreeSet<String>) -> Vec<String> {
    let mut stages = BTreeSet::new();
    for pattern in expected.split_whitespace() {
        match pattern.strip_suffix("*]") {
            None => {
                stages.insert(pattern.to_owned());
            }
            Some(start) => {
                let before = stages.len();
                stages.extend(known.iter().filter(|stage| stage.starts_with(start)).cloned());
                assert!(stages.len() > before, "no stage is like {pattern}");
            }
        }
    }
    stages.into_iter().collect()
}

#[test]
fn form_of_declarations_place_and_threads_execute_nothing() {
    let mut fixture = Fixture::new();
    fixture.check(|_| (), "");
    fixture.check(|workspace| workspace.write("BUILD.toml", format!("# A comment.\n{PROGRAM}# Another.\n")), "");
    fixture.check(|workspace| workspace.write("BUILD.toml", REWRITTEN), "");
    fixture.check(|workspace| workspace.write("unused.S", "nothing reads this\n"), "");
    let mut moved = fixture.before.copy();
    moved.move_to("elsewhere/below");
    for threads in [1, 2, 7] {
        let mut session = moved.session(EngineOptions { threads, shuffle: Some(threads as u64) });
        assert_eq!(executed(&mut session).0, [""; 0], "moved, with {threads} threads");
    }
}

#[test]
fn tolerance_executes_the_verdict() {
    let mut fixture = Fixture::new();
    fixture.check_declaration("default = 3e-3", "default = 1e-7", "run[verdict]");
    fixture.check_declaration("default = 3e-3", "default = 3e-3, output = 4e-3", "run[verdict]");
}

#[test]
fn tensors_execute_their_host_files_reference_simulation_and_verdict() {
    let mut fixture = Fixture::new();
    fixture.check_declaration(
        "seed = 1\n",
        "seed = 3\n",
        "input[tensor/hidden] run[host_file/hidden] run[reference] run[simulation] run[verdict]",
    );
    fixture.check_declaration(
        "normal.wk = { shape = [40, 40], variance = 0.00625 }",
        "normal.wk = { shape = [40, 40], variance = 0.00626 }",
        "run[host_file/wk] run[reference] run[simulation] run[verdict] weights[tensor/wk]",
    );
    fixture.check_declaration(
        "seed = 2\n",
        "seed = 4\n",
        "run[host_file/wk] run[host_file/wq] run[host_file/wv] run[reference] run[simulation] run[verdict] \
         weights[tensor/wk] weights[tensor/wq] weights[tensor/wv]",
    );
}

#[test]
fn kernel_source_executes_its_object_and_what_its_result_reaches() {
    let mut fixture = Fixture::new();
    // Same words and lines: cut off at the objects.
    fixture.check_file("softmax.S", "setzi   $m6, KG-1", "setzi   $m6, KG-1   # panels", "program[kernel_object/softmax*]");
    // Same words on other lines: the package's listings change, what it does not.
    fixture.check_file(
        "softmax.S",
        ".Lworker:\n",
        "# A line.\n.Lworker:\n",
        "program[images] program[kernel_object/softmax*] program[measured/softmax*] program[package] run[simulation]",
    );
    // Two independent instructions change places: other words, same cost and same results.
    fixture.check_file(
        "softmax.S",
        "        setzi   $m4, S_PANEL/8-3\n        setzi   $m6, KG-1\n",
        "        setzi   $m6, KG-1\n        setzi   $m4, S_PANEL/8-3\n",
        "program[images] program[kernel_object/softmax*] program[measured/softmax*] program[package] run[simulation]",
    );
    // Same size and cost, other results: the maximum is that of two of the four columns of lanes, good enough for a softmax.
    fixture.check_file(
        "softmax.S",
        "          f16v2maxc $a4, $a4 }",
        "          fnop }",
        "program[images] program[kernel_object/softmax*] program[measured/softmax*] program[package] run[simulation] run[verdict]",
    );
}

#[test]
fn kernel_source_with_other_cycles_executes_the_choice_too() {
    let mut fixture = Fixture::new();
    // A bundle taken apart: the same bytes, one turn more for each row. No finalist is drawn up again, no phase scheduled, nothing placed.
    fixture.check_file(
        "softmax.S",
        "        { mov     $m2, $m0\n          f32mul  $a5, $a5, $a6 }\n",
        "        mov     $m2, $m0\n        f32mul  $a5, $a5, $a6\n",
        "program[images] program[kernel_object/softmax*] program[measured/softmax*] program[package] program[planned/*] program[refined/*] \
         program[selected] run[simulation] run[verdict]",
    );
    // Other size as well: addresses, and so rows, are made again. As many nops as give clocks that the edit above did not give.
    fixture.check_file(
        "softmax.S",
        "        setzi   $m6, KG-1\n",
        &format!("        setzi   $m6, KG-1\n{}", "        nop\n".repeat(8)),
        "program[images] program[kernel_object/softmax*] program[measured/softmax*] program[package] program[placement/*] \
         program[planned/*] program[refined/*] program[rows/*] program[selected] run[simulation] run[verdict]",
    );
}

#[test]
fn manifest_executes_the_planner_and_is_cut_off_behind_equal_plans() {
    let mut fixture = Fixture::new();
    fixture.check_file(
        "kernels.toml",
        "cycles = \"168+6",
        "cycles = \"168+0+6",
        "program[finalists] program[kernel_bound/softmax*] program[refined/*]",
    );
}

#[test]
fn floor_of_a_kernel_executes_what_is_shown_of_it_and_nothing_else() {
    let mut fixture = Fixture::new();
    fixture.check_file("kernels.toml", "(13+2*(SCALE", "(12+3*(SCALE", "program[kernel_bound/softmax*]");
}

#[test]
fn layout_field_that_changes_no_plan_executes_the_planner_alone() {
    let mut fixture = Fixture::new();
    fixture.check_declaration("layout = { tiles = 8 }", "layout = { tiles = 8, accuracy = 2.9e-3 }", "program[finalists]");
}

#[test]
fn effort_executes_the_schedules_and_what_follows_from_those_that_differ() {
    let mut fixture = Fixture::new();
    fixture.check_declaration(
        "layout = { tiles = 8 }",
        "layout = { tiles = 8, effort = 2 }",
        "program[images] program[package] program[placement/0] program[refined/0] program[refined/2] program[rows/0] program[schedule/*] \
         program[selected] run[simulation] run[verdict]",
    );
}

#[test]
fn seed_of_the_device_executes_the_simulation_and_seed_of_samples_the_verdict() {
    let device = "\n[device]\nrule = \"device\"\nkind = \"simulator\"\nseed = 1\n";
    let mut fixture = Fixture::of(&(PROGRAM.replace("@ipu//devices:simulator", ":device") + device));
    fixture.check_declaration("kind = \"simulator\"\nseed = 1\n", "kind = \"simulator\"\nseed = 2\n", "run[simulation] run[verdict]");
    fixture.check_declaration("tolerance = { default = 3e-3 }", "tolerance = { default = 3e-3 }\nsample_seed = 5", "run[verdict]");
}

/// The program with tensors, expected values and machine parameters from files.
fn with_files() -> Fixture {
    let machine = "\n[machine]\nrule = \"machine\"\nchip = \"c600\"\nparameters = \"parameters.toml\"\n";
    let known = "\n[known]\nrule = \"tensors\"\nfiles = [\"output.npy\"]\n";
    let text = PROGRAM
        .replace("seed = 1\nnormal.hidden = { shape = [1, 60, 40] }", "files = [\"hidden.npy\"]")
        .replace("machine = \"@ipu//machines:c600\"", "machine = \":machine\"")
        .replace("tolerance = { default = 3e-3 }", "tolerance = { default = 3e-3, output = 10.0 }\nexpected = { output = \":known\" }");
    Fixture::with(&(text + machine + known), |workspace| {
        workspace.write("hidden.npy", npy("<f2", "(1, 60, 40)", &halves(2400)));
        workspace.write("output.npy", npy("<f2", "(1, 60, 40)", &halves(2400)));
        workspace.write("parameters.toml", ipu21::data::PARAMETERS);
    })
}

fn flip_last_bit(path: &str) -> impl Fn(&TemporaryWorkspace) {
    move |workspace| {
        let mut bytes = workspace.read(path);
        *bytes.last_mut().expect("data") ^= 1;
        workspace.write(path, bytes);
    }
}

#[test]
fn files_of_tensors_execute_what_is_made_from_them() {
    let mut fixture = with_files();
    fixture.check(flip_last_bit("hidden.npy"), "input[tensor/hidden] run[host_file/hidden] run[reference] run[simulation] run[verdict]");
    fixture.check(flip_last_bit("output.npy"), "known[tensor/output] run[verdict]");
}

#[test]
fn parameters_of_the_machine_execute_what_reads_them() {
    let mut fixture = with_files();
    fixture.check_file("parameters.toml", "\n[barrier] ", "\n# A comment changes no value.\n[barrier] ", "");
    // Packages and verdicts name the digest of the parameters.
    fixture.check_file(
        "parameters.toml",
        "\nhost = 2000 ",
        "\nhost = 2001 ",
        "program[measured/*] program[package] run[simulation] run[verdict]",
    );
}

/// The program with its own kernels made by a compiler.
fn compiled() -> Fixture {
    let sdk = "\n[sdk]\nrule = \"toolchain\"\ncompiler = \"sdk/popc\"\nextractor = \"sdk/pop-objdump\"\nidentity = [\"sdk/clang\"]\n";
    let srcs = "srcs = [\"softmax.S\", \"normalise.S\"]";
    let text = PROGRAM.replace(srcs, &format!("{srcs}\ntoolchain = \":sdk\"\nheaders = [\"shapes.h\"]"));
    Fixture::with(&(text + sdk), |workspace| {
        fake_sdk::install(workspace.root().join("sdk").as_std_path());
        workspace.write("sdk/clang", "what the compiler calls\n");
        workspace.write("sdk/unused", "\n");
        workspace.write("shapes.h", "\n");
    })
}

#[test]
fn the_toolchain_executes_the_objects_it_makes_and_what_reads_them() {
    let mut fixture = compiled();
    let objects = "program[kernel_object/normalise*] program[kernel_object/softmax*]";
    let append = |path: &'static str| {
        move |workspace: &TemporaryWorkspace| workspace.write(path, [workspace.read(path), b"# newer\n".to_vec()].concat())
    };
    fixture.check(append("sdk/popc"), objects);
    fixture.check(append("sdk/pop-objdump"), objects);
    fixture.check(append("sdk/clang"), objects);
    fixture.check(append("shapes.h"), objects);
    fixture.check_declaration("extractor = ", "flags = [\"-O2\"]\nextractor = ", objects);
    fixture.check_declaration("extractor = ", "environment = { LICENCE = \"x\" }\nextractor = ", objects);
    // Neither what lies beside the compiler, nor its time, nor where it lies.
    fixture.check(append("sdk/unused"), "");
    fixture.check(|workspace| workspace.write("sdk/popc", workspace.read("sdk/popc")), "");
    let elsewhere = |workspace: &TemporaryWorkspace| {
        for name in ["popc", "pop-objdump"] {
            let text = String::from_utf8(workspace.read(&format!("sdk/{name}"))).expect("UTF-8");
            fake_sdk::program(workspace.root().join(format!("elsewhere/{name}")).as_std_path(), &text);
        }
        let text = String::from_utf8(workspace.read("BUILD.toml")).expect("UTF-8");
        let there = |name: &str| workspace.root().join(format!("elsewhere/{name}")).to_string();
        workspace.write("BUILD.toml", text.replace("sdk/popc", &there("popc")).replace("sdk/pop-objdump", &there("pop-objdump")));
    };
    fixture.check(elsewhere, "");
    // One source is one kernel's.
    fixture.check_file("softmax.S", "setzi   $m6, KG-1", "setzi   $m6, KG-1   # panels", "program[kernel_object/softmax*]");
}

#[test]
fn checkpoints_execute_the_program_and_its_run() {
    let mut fixture = Fixture::new();
    // The plans are the same ones; every phase and every kernel but the runtime is the old one.
    fixture.check_declaration(
        "checkpoints = [0, 1, 2, 6]",
        "checkpoints = [0, 1, 6]",
        "program[expanded/*] program[finalists] program[images] program[kernel_object/runtime] program[package] program[placement/0] \
         program[planned/*] program[refined/*] program[rows/0] program[tile_code/0] run[reference] run[simulation] run[verdict]",
    );
}

/// What later stages read of a program's finalists.
struct Finalists {
    /// By finalist: digests of plan, mapping and expanded program.
    made: Vec<[Digest; 3]>,
    /// Whether it may still win by its planned clocks and so is scheduled, by finalist.
    scheduled: Vec<bool>,
    /// Planned clocks, and refined ones if it is scheduled, by finalist: what the choice is made by.
    clocks: Vec<(u64, Option<u64>)>,
    /// Digests of phases, by finalist and phase.
    phases: Vec<Vec<Digest>>,
    variants: BTreeSet<String>,
    /// How graph inputs and parameters lie on the tiles, by finalist.
    given: Vec<BTreeMap<String, Digest>>,
    selected: usize,
}

impl Finalists {
    fn of(session: &Session) -> Self {
        let engine = session.engine();
        let program = engine.target(&Label::parse("//:program", &PackageName::in_workspace("")).expect("a label"));
        let plans = stage::finalists::finalists(engine, program).expect("found before").facts().clone();
        let keys = (0..plans.len() as u32).map(|index| FinalistKey::new(engine, program, index));
        let first = *stage::selected::refined(engine, FinalistKey::new(engine, program, 0)).expect("found before").facts();
        let mut found = Self {
            made: Vec::new(),
            scheduled: Vec::new(),
            clocks: Vec::new(),
            phases: Vec::new(),
            variants: BTreeSet::new(),
            given: Vec::new(),
            selected: 0,
        };
        for (key, plan) in keys.zip(plans) {
            let mapping = stage::mapping::mapping(engine, key).expect("found before");
            let expanded = stage::expanded::expanded(engine, key).expect("found before");
            let planned = *stage::planned::planned(engine, key).expect("found before").facts();
            let is_scheduled = found.made.is_empty() || planned <= first;
            let refined = is_scheduled.then(|| *stage::selected::refined(engine, key).expect("found before").facts());
            found.scheduled.push(is_scheduled);
            found.clocks.push((planned, refined));
            found.made.push([plan, mapping.digest(), expanded.digest()]);
            found.phases.push(expanded.facts().phases.iter().map(|phase| phase.problem).collect());
            found.given.push(expanded.facts().given.clone());
            found.variants.extend(expanded.facts().variants.iter().map(printed));
        }
        found.selected = stage::selected::selected(engine, program).expect("found before").facts().finalist as usize;
        found
    }

    fn problems(&self) -> BTreeSet<Digest> {
        let scheduled = self.phases.iter().zip(&self.scheduled).filter(|(_, scheduled)| **scheduled);
        scheduled.flat_map(|(phases, _)| phases).copied().collect()
    }

    /// Whether the finalist with this program is scheduled.
    fn schedules(&self, expanded: Digest) -> bool {
        self.made.iter().zip(&self.scheduled).any(|(made, scheduled)| *scheduled && made[2] == expanded)
    }

    /// What a change of the layout from `before` to this executes: a finalist's stages where it is a new one, one schedule for each new
    /// problem of those that may still win, one measurement for each new variant, and what follows the choice when another program is chosen.
    fn executed_after(&self, before: &Self) -> Vec<String> {
        let mut stages = vec!["program[finalists]".to_owned()];
        if self.clocks != before.clocks {
            stages.push("program[selected]".to_owned());
        }
        let mut problems = before.problems();
        for (index, [plan, mapping, expanded]) in self.made.iter().enumerate() {
            if !before.made.iter().any(|known| known[0] == *plan) {
                stages.push(format!("program[mapping/{index}]"));
            }
            if !before.made.iter().any(|known| known[..2] == [*plan, *mapping]) {
                stages.push(format!("program[expanded/{index}]"));
            }
            if !before.made.iter().any(|known| known[2] == *expanded) {
                stages.push(format!("program[planned/{index}]"));
            }
            if self.scheduled[index] && !before.schedules(*expanded) {
                stages.push(format!("program[refined/{index}]"));
            }
            // The code of the first finalist is made while the choice is not known.
            if [0, self.selected].contains(&index) && ![0, before.selected].iter().any(|known| before.made[*known][2] == *expanded) {
                stages.push(format!("program[tile_code/{index}]"));
            }
            let phases = self.phases[index].iter().enumerate();
            let phases = phases.filter(|(_, problem)| self.scheduled[index] && problems.insert(**problem));
            stages.extend(phases.map(|(phase, _)| format!("program[schedule/{index}.{phase}]")));
        }
        for variant in self.variants.difference(&before.variants) {
            stages.extend(["kernel_bound", "kernel_object", "measured"].map(|stage| format!("program[{stage}/{variant}]")));
        }
        if self.made[self.selected][2] != before.made[before.selected][2] {
            stages.extend(["program[images]", "program[package]", "run[simulation]", "run[verdict]"].map(str::to_owned));
            stages.push(format!("program[placement/{}]", self.selected));
            let (given, known) = (&self.given[self.selected], &before.given[before.selected]);
            let moved = given.iter().filter(|(name, lie)| known.get(*name) != Some(*lie));
            stages.extend(moved.map(|(name, _)| format!("run[host_file/{name}]")));
            stages.extend((0..self.phases[self.selected].len()).map(|phase| format!("program[rows/{phase}]")));
        }
        stages.sort_unstable();
        stages
    }
}

/// What the layout field `new` in place of `tiles = 8` executes; the finalists before and after.
#[track_caller]
fn check_layout(new: &str) -> [Finalists; 2] {
    let attention = "{ name = \"output\", op = \"attention\", args = [\"queries\", \"keys\", \"values\"] },\n";
    let text = PROGRAM
        .replace(attention, &format!("{attention}    {{ name = \"projected\", op = \"matmul\", args = [\"output\", \"wo\"] }},\n"))
        .replace("parameters.wq", "parameters.wo = { type = \"f16\", shape = [40, 24] }\nparameters.wq")
        .replace("normal.wq", "normal.wo = { shape = [40, 24], variance = 0.00625 }\nnormal.wq");
    let mut fixture = Fixture::of(&text);
    let before = Finalists::of(&fixture.session);
    let edit = |workspace: &TemporaryWorkspace| workspace.write("BUILD.toml", text.replace("tiles = 8", new));
    edit(&fixture.workspace);
    let (here, _) = executed(&mut fixture.session);
    let there = fixture.before.copy();
    edit(&there);
    let (elsewhere, _) = executed(&mut there.session(OPTIONS));
    let after = Finalists::of(&fixture.session);
    let expected = after.executed_after(&before);
    assert_same(&here, &expected, "in the same process");
    assert_same(&elsewhere, &expected, "in a new process");
    [before, after]
}

#[test]
fn layout_executes_new_finalists_and_schedules_new_problems_alone() {
    let mut shared = 0;
    for new in ["tiles = 7", "tiles = 8, finalists = 2", "tiles = 8, finalists = 6", "tiles = 8, grids.projected.columns = 2"] {
        let [before, after] = check_layout(new);
        let known = before.problems();
        let is_new = |index: &usize| !before.made.iter().any(|known| known[2] == after.made[*index][2]);
        let phases = (0..after.made.len()).filter(is_new).flat_map(|index| &after.phases[index]);
        shared += phases.filter(|problem| known.contains(problem)).count();
    }
    assert!(shared > 0, "no new finalist has a phase of an old one: choose other layouts");
}

/// Four products one after the other.
const CHAIN: &str = r#"
[model]
rule = "model"
inputs.x = { type = "f16", shape = [96, 48] }
parameters.w1 = { type = "f16", shape = [48, 64] }
parameters.w2 = { type = "f16", shape = [64, 80] }
parameters.w3 = { type = "f16", shape = [80, 64] }
parameters.w4 = { type = "f16", shape = [64, 48] }
op = [
    { name = "one", op = "matmul", args = ["x", "w1"] },
    { name = "two", op = "matmul", args = ["one", "w2"] },
    { name = "three", op = "matmul", args = ["two", "w3"] },
    { name = "four", op = "matmul", args = ["three", "w4"] },
]

[program]
rule = "program"
model = ":model"
machine = "@ipu//machines:c600"
kernels = ["@ipu//kernels"]
layout = { tiles = 16, finalists = 1, mapping = "identity", grids.one = { rows = 3, columns = 2 }, grids.two = { rows = 2, columns = 5 }, grids.three = { rows = 3, columns = 4 }, grids.four = { rows = 4, columns = 3 } }
"#;

#[test]
fn layout_of_one_operation_leaves_phases_and_kernels_of_the_others_alone() {
    let workspace = TemporaryWorkspace::new(CHAIN);
    let mut session = workspace.session(OPTIONS);
    let mut build = |text: &str| {
        workspace.write("BUILD.toml", text);
        session.build("//:program").unwrap_or_else(|failure| panic!("{failure}"));
        let executed: Vec<String> = session.executed().iter().map(|id| id.stage.to_string()).collect();
        let of = |stage: &str| executed.iter().filter(|name| name.starts_with(&format!("[{stage}/"))).cloned().collect::<Vec<_>>();
        (of("schedule"), of("kernel_object").len(), of("measured").len())
    };
    let (phases, objects, measurements) = build(CHAIN);
    // `two` gathers the result of `one`, and `three` that of `two`: these phases are new ones, that of `four` is the old one.
    let edited = CHAIN.replace("grids.two = { rows = 2", "grids.two = { rows = 3");
    let (phases_after, objects_after, measurements_after) = build(&edited);
    assert!(phases_after.len() < phases.len(), "{phases_after:?} of {phases:?}");
    assert!(objects_after < objects && measurements_after < measurements);
    assert!(!phases_after.is_empty());
    assert_eq!(build(CHAIN), (Vec::new(), 0, 0), "back again");
}
