//! The engine against ninja on the same graphs, side by side: `cargo bench -p tests --bench engine [-- --small]`.
//!
//! A graph of N leaves has N copied files for ninja and N filegroups of a file for ipubuild, in packages of 100, a node for each
//! package over its leaves and one root over the packages. Whole processes alternate; medians and their ratio are printed, and
//! the process fails when a median misses its bound, in the small form three times over. `--small` leaves out the graph of 100,000 leaves (ninja copies files for two
//! minutes before it is measured). Without ninja, which is the Debian package ninja-build, ours is measured alone.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use graph::{
    Engine, EngineOptions, Event, EventSink, Label, LoadRequest, PackageName, Pattern, Progress, Registry, Session, Shared, SourcePath,
    SourceReader, Workspace,
};
use store::Store;
use tests::binary::{WorkspaceCopy, ipubuild};
use tests::bounds::{Report, median};

/// Leaves of a package.
const GROUP: usize = 100;

/// A generated graph, for both tools, gone when dropped.
struct Synthetic {
    directory: tempfile::TempDir,
    edits: usize,
}

impl Synthetic {
    fn new(leaves: usize) -> Synthetic {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let synthetic = Synthetic { directory, edits: 0 };
        let root = synthetic.root();
        let mut ninja = "rule cp\n  command = cp $in $out\nrule stamp\n  command = touch $out\n".to_owned();
        let mut packages = String::new();
        for package in 0..leaves / GROUP {
            let (mut targets, mut members, mut copies) = (String::new(), String::new(), String::new());
            fs::create_dir_all(root.join(format!("p{package}"))).expect("created");
            for leaf in 0..GROUP {
                fs::write(root.join(format!("p{package}/s{leaf}")), format!("{package} {leaf}\n")).expect("written");
                writeln!(targets, "[l{leaf}]\nrule = \"filegroup\"\nsrcs = [\"s{leaf}\"]").expect("text");
                write!(members, "\":l{leaf}\", ").expect("text");
                writeln!(ninja, "build out/p{package}/s{leaf}: cp p{package}/s{leaf}").expect("text");
                write!(copies, " out/p{package}/s{leaf}").expect("text");
            }
            writeln!(targets, "[group]\nrule = \"filegroup\"\nsrcs = [{members}]").expect("text");
            fs::write(root.join(format!("p{package}/BUILD.toml")), targets).expect("written");
            writeln!(ninja, "build out/p{package}/group: stamp{copies}").expect("text");
            write!(packages, "\"//p{package}:group\", ").expect("text");
        }
        let groups: String = (0..leaves / GROUP).map(|package| format!(" out/p{package}/group")).collect();
        writeln!(ninja, "build out/root: stamp{groups}").expect("text");
        fs::write(root.join("BUILD.toml"), format!("[root]\nrule = \"filegroup\"\nsrcs = [{packages}]\n")).expect("written");
        fs::write(root.join("WORKSPACE.toml"), "").expect("written");
        fs::write(root.join("build.ninja"), ninja).expect("written");
        synthetic
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    fn ours(&self) -> Duration {
        timed(Command::new(ipubuild()).arg("-C").arg(self.root()).arg("--store").arg(self.store()).arg("//:root"))
    }

    fn ninja(&self) -> Duration {
        timed(Command::new("ninja").arg("-C").arg(self.root()))
    }

    /// Gives one leaf a content that it never had.
    fn edit(&mut self) {
        self.edits += 1;
        fs::write(self.root().join("p7/s7"), format!("edit {}\n", self.edits)).expect("written");
    }
}

fn timed(command: &mut Command) -> Duration {
    let started = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("the program starts");
    assert!(status.success(), "{command:?}: {status}");
    started.elapsed()
}

fn against_ninja(report: &mut Report, leaves: usize, has_ninja: bool) {
    let mut graph = Synthetic::new(leaves);
    graph.ours();
    if has_ninja {
        graph.ninja();
    }
    // Stamps of files younger than two seconds prove nothing.
    std::thread::sleep(Duration::from_millis(2100));
    graph.ours();
    let repetitions = if leaves > 20_000 { 9 } else { 21 };
    for edited in [false, true] {
        let (mut ours, mut ninja) = (Vec::new(), Vec::new());
        for _ in 0..repetitions {
            if edited {
                graph.edit();
            }
            ours.push(graph.ours());
            if has_ninja {
                ninja.push(graph.ninja());
            }
        }
        let what = format!("{leaves} leaves, {}", if edited { "one leaf edited" } else { "nothing changed" });
        match has_ninja {
            true => report.line(&what, median(ours), "ms", Some(("ninja", median(ninja))), 0.65),
            false => report.line(&what, median(ours), "ms", None, f64::INFINITY),
        }
    }
}

/// The reference workload without changes, against ninja on as many nodes.
fn reference(report: &mut Report, has_ninja: bool) {
    let copy = WorkspaceCopy::of("attention");
    let label = "//sweeps/attention-packed:run";
    assert_eq!(copy.run(&[label]).code, Some(0));
    let graph = Synthetic::new(1500);
    if has_ninja {
        graph.ninja();
    }
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(copy.run(&[label]).code, Some(0));
    let (mut ours, mut ninja) = (Vec::new(), Vec::new());
    for _ in 0..41 {
        ours.push(timed(Command::new(ipubuild()).arg("-C").arg(copy.root()).arg("--store").arg(copy.store()).arg(label)));
        if has_ninja {
            ninja.push(graph.ninja());
        }
    }
    let ours = median(ours);
    report.line("reference workload, nothing changed", ours, "ms", None, 10.0);
    if has_ninja {
        report.line("the same against 1,500 nodes", ours, "ms", Some(("ninja", median(ninja))), 1.0);
    }
}

/// Adds up what stages take by themselves.
#[derive(Default)]
struct Work {
    nanoseconds: AtomicU64,
    stages: AtomicU64,
}

impl EventSink for Work {
    fn event(&self, event: &Event) {
        if let Event::Stage(event) = event
            && event.progress == Progress::Executed
        {
            self.nanoseconds.fetch_add((event.elapsed_ms * 1e6) as u64, Ordering::Relaxed);
            self.stages.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// One process that holds a graph: executed stages, memory, and edits as `watch` sees them.
fn in_one_process(report: &mut Report, leaves: usize) {
    let mut graph = Synthetic::new(leaves);
    let utf8 = |path: PathBuf| Utf8PathBuf::from_path_buf(path.canonicalize().expect("is there")).expect("UTF-8");
    let (root, work) = (utf8(graph.root()), Arc::new(Work::default()));
    let store = Store::open(&Utf8PathBuf::from_path_buf(graph.store()).expect("UTF-8")).expect("a store");
    let registry = Registry::with_generic_rules();
    let label = Label::parse("//:root", &PackageName::in_workspace("")).expect("a label");
    let before = resident();
    let patterns = [Pattern::One(label.clone())];
    let load = LoadRequest { root: &root, registry: &registry, repositories: &[], patterns: &patterns, overrides: &[] };
    let workspace = Workspace::load(&load).unwrap_or_else(|faults| panic!("{faults}"));
    let shared = Shared::new(store, work.clone(), SourceReader::new(&root, &[]));
    let engine = Engine::new(shared, EngineOptions { threads: 2, shuffle: None }).expect("an engine");
    let Ok(mut session) = Session::begin(engine, workspace, std::slice::from_ref(&label)) else { panic!("sources can be read") };
    let started = Instant::now();
    session.build(&label).expect("builds");
    let elapsed = started.elapsed();
    let stages = work.stages.load(Ordering::Relaxed);
    let overhead = elapsed.as_secs_f64() * 1e6 - work.nanoseconds.load(Ordering::Relaxed) as f64 / 1e3;
    report.line(&format!("{leaves} leaves, engine for an executed stage"), overhead / stages as f64, "µs", None, 50.0);
    // Targets, sources and stages.
    let nodes = stages as f64 * 2.0 + leaves as f64;
    report.line(&format!("{leaves} leaves, memory for a node"), (resident() - before) / nodes / 1024.0, "KB", None, 2.0);
    let source = SourcePath { repository: String::new(), path: "p7/s7".to_owned() };
    let times = (0..21).map(|_| {
        graph.edit();
        let started = Instant::now();
        assert_eq!(session.change_sources(std::slice::from_ref(&source)).expect("read"), 3);
        assert_eq!(session.build(&label).expect("builds").len(), 3);
        started.elapsed()
    });
    report.line(&format!("{leaves} leaves, watched, one leaf edited"), median(times.collect()), "ms", None, 20.0);
}

/// Resident bytes of this process.
fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line for it");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
}

#[allow(clippy::print_stdout, reason = "the report of a benchmark")]
fn main() {
    let small = std::env::args().any(|argument| argument == "--small");
    let has_ninja = Command::new("ninja").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    if !has_ninja {
        println!("ninja is not installed (Debian package ninja-build): nothing to compare with");
    }
    let mut report = Report::new(small);
    // Memory is measured while the allocator is fresh.
    in_one_process(&mut report, if small { 10_000 } else { 100_000 });
    reference(&mut report, has_ninja);
    let sizes: &[usize] = if small { &[10_000] } else { &[10_000, 100_000] };
    sizes.iter().for_each(|leaves| against_ninja(&mut report, *leaves, has_ninja));
    report.finish();
}
