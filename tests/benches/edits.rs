//! What an edit costs from the command to the new package: `cargo bench -p tests --bench edits [-- --small]`.
//!
//! Every measurement is a whole process on the store of the build before; clean builds alternate with the edits they are compared
//! with. The work of the stages and the time without any come from the records of the same runs. The process fails when a median
//! misses its bound, in the small form three times over.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tests::binary::{WorkspaceCopy, ipubuild};
use tests::bounds::{Report, median, middle};
use tests::kernel_files::{manifest, source};

/// The workload's program, which has no run.
const REFERENCE: &str = "sweeps/attention-packed";
/// Cores that a build may use.
const CORES: f64 = 2.0;

/// A package and a store with its program in it.
struct Bench {
    copy: WorkspaceCopy,
    package: &'static str,
    text: String,
}

/// A build of a program and what its record says.
struct Built {
    wall: Duration,
    work_ms: f64,
    /// Wall time in which no stage executed.
    engine_ms: f64,
    executed: u64,
}

impl Bench {
    /// A package of the shipped workspace.
    fn of(package: &'static str) -> Bench {
        let copy = WorkspaceCopy::of("attention");
        let text = fs::read_to_string(copy.root().join(package).join("BUILD.toml")).expect("it is shipped");
        Bench { copy, package, text }
    }

    /// A package of its own beside the shipped ones.
    fn with(package: &'static str, text: String) -> Bench {
        let copy = WorkspaceCopy::of("attention");
        fs::create_dir_all(copy.root().join(package)).expect("created");
        let bench = Bench { copy, package, text };
        bench.write("BUILD.toml", &bench.text);
        bench
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.copy.root().join(self.package).join(file), text).expect("written");
    }

    /// Saves BUILD.toml with `old` replaced, once, and builds.
    fn edited(&self, old: &str, new: &str) -> Built {
        assert_eq!(self.text.matches(old).count(), 1, "`{old}`");
        self.write("BUILD.toml", &self.text.replace(old, new));
        self.build()
    }

    /// Builds the program from an empty store.
    fn clean(&self) -> Built {
        fs::remove_dir_all(self.copy.store())
            .or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
            .expect("removed");
        self.write("BUILD.toml", &self.text);
        self.build()
    }

    fn build(&self) -> Built {
        let mut command = self.command();
        command.args(["build", &format!("//{}:program", self.package)]).stdout(Stdio::null()).stderr(Stdio::piped());
        let started = Instant::now();
        let output = command.output().expect("the program starts");
        let wall = started.elapsed();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let log = self.command().args(["log", "-n", "1", "--json"]).output().expect("the program starts").stdout;
        let log: serde_json::Value = serde_json::from_slice(&log).expect("JSON");
        let number = |name: &str| log[0][name].as_f64().expect("a number");
        let executed = log[0]["executed"].as_u64().expect("a number");
        // What the record does not see of the process, its start and its end, is the engine's as well.
        let unseen = wall.as_secs_f64() * 1e3 - number("elapsed_ms");
        Built { wall, work_ms: number("work_ms"), engine_ms: number("engine_ms") + unseen, executed }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(ipubuild());
        command.arg("-C").arg(self.copy.root()).arg("--store").arg(self.copy.store()).args(["-j", &CORES.to_string()]);
        command
    }
}

/// A field that changes the plan: wall time against the work of the stages.
fn layout_field(report: &mut Report, rounds: usize) {
    let bench = Bench::of(REFERENCE);
    bench.clean();
    let (mut walls, mut bounds) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let built = bench.edited("tiles = 64", &format!("tiles = {}", 63 - round));
        assert!(built.executed > 20, "a layout that was not built before");
        walls.push(built.wall);
        bounds.push(built.work_ms / CORES * 1.25 + 20.0);
    }
    report.line("another number of tiles, against work/2 x 1.25 + 20", median(walls), "ms", Some(("bound", middle(bounds))), 1.0);
}

/// A field that ends in the same plan, against a build from nothing.
fn same_plan(report: &mut Report, rounds: usize) {
    let bench = Bench::of(REFERENCE);
    let (mut edits, mut cleans) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        cleans.push(bench.clean().wall);
        let built = bench.edited("tiles = 64 }", &format!("tiles = 64, accuracy = 2.99{round}e-3 }}"));
        assert_eq!(built.executed, 1, "the planner");
        edits.push(built.wall);
    }
    report.line("a field that ends in the same plan, against clean", median(edits), "ms", Some(("clean", median(cleans))), 0.25);
}

/// Four products one after the other, each with a grid of its own.
fn chain() -> String {
    let widths = [72, 144, 288, 144, 72];
    let mut text = "[model]\nrule = \"model\"\ninputs.x = { type = \"f16\", shape = [729, 72] }\n".to_owned();
    for (number, pair) in widths.windows(2).enumerate() {
        writeln!(text, "parameters.w{number} = {{ type = \"f16\", shape = [{}, {}] }}", pair[0], pair[1]).expect("text");
    }
    for number in 0..4 {
        let before = if number == 0 { "x".to_owned() } else { format!("p{}", number - 1) };
        writeln!(text, "[[model.op]]\nname = \"p{number}\"\nop = \"matmul\"\nargs = [\"{before}\", \"w{number}\"]").expect("text");
    }
    text.push_str("[program]\nrule = \"program\"\nmodel = \":model\"\nmachine = \"@ipu//machines:c600\"\nkernels = [\"@ipu//kernels\"]\n");
    text.push_str("layout = { tiles = 64, grids.p0 = { rows = 16, columns = 4 }, grids.p1 = { rows = 16, columns = 4 }, ");
    text.push_str("grids.p2 = { rows = 16, columns = 4 }, grids.p3 = { rows = 16, columns = 3 } }\n");
    text
}

/// One operation of four laid out otherwise, against a build from nothing.
fn one_of_four(report: &mut Report, rounds: usize) {
    let bench = Bench::with("sweeps/chain", chain());
    let (mut edits, mut cleans) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        cleans.push(bench.clean().wall);
        let built = bench.edited("grids.p3 = { rows = 16", &format!("grids.p3 = {{ rows = {}", 15 - round % 6));
        assert!(built.executed > 1, "another plan");
        edits.push(built.wall);
    }
    report.line("one operation of four, against clean", median(edits), "ms", Some(("clean", median(cleans))), 0.6);
}

/// A kernel whose instructions change places, for the same clocks: what the process took besides stages.
fn kernel(report: &mut Report, rounds: usize) {
    let own = "[kernels]\nrule = \"kernel_library\"\nmanifest = \"kernels.toml\"\nsrcs = [\"softmax.S\", \"normalise.S\"]\n\n";
    let text = Bench::of(REFERENCE).text.replace("kernels = [\"@ipu", "kernels = [\":kernels\", \"@ipu");
    let bench = Bench::with("sweeps/own", format!("{own}{text}"));
    bench.write("kernels.toml", &manifest(&["softmax", "normalise"]));
    bench.write("normalise.S", source("normalise.S"));
    let softmax = source("softmax.S");
    let pair = "        setzi   $m4, S_PANEL/8-3\n        setzi   $m6, KG-1\n";
    assert!(softmax.contains(pair), "two independent instructions");
    let swapped = softmax.replace(pair, "        setzi   $m6, KG-1\n        setzi   $m4, S_PANEL/8-3\n");
    let mut engine = Vec::new();
    for _ in 0..rounds {
        bench.write("softmax.S", softmax);
        bench.clean();
        bench.write("softmax.S", &swapped);
        let built = bench.build();
        assert!(built.executed > 3, "object, measurement, images and package");
        engine.push(built.engine_ms);
    }
    report.line("kernel edited, same clocks, engine's share", middle(engine), "ms", None, 20.0);
}

fn main() {
    let small = std::env::args().any(|argument| argument == "--small");
    let rounds = if small { 3 } else { 9 };
    let mut report = Report::new(small);
    layout_field(&mut report, rounds);
    same_plan(&mut report, rounds);
    one_of_four(&mut report, rounds);
    kernel(&mut report, rounds);
    report.finish();
}
