//! The command line as typed.

use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Builds, runs and checks IPU programs described by BUILD.toml files.
#[derive(Debug, Parser)]
#[command(name = "ipubuild", version, after_help = EXIT_CODES, override_usage = USAGE)]
pub(crate) struct Arguments {
    /// Targets to build, and to run when they are run targets: `//package:target`, `:target`, `//package/...`
    #[arg(value_name = "LABEL")]
    pub(crate) labels: Vec<String>,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) options: Options,
}

const USAGE: &str = "ipubuild [OPTIONS] LABEL...\n       ipubuild [OPTIONS] COMMAND ...";

const EXIT_CODES: &str = "Exit codes: 0 success, 1 build or verdict failed, 2 bad input or usage, 130 interrupted.";

/// Options that every command takes.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Work as if started in this directory
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) directory: Option<Utf8PathBuf>,

    /// Where results are kept [default: $XDG_CACHE_HOME/ipubuild, else ~/.cache/ipubuild]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) store: Option<Utf8PathBuf>,

    /// Number of worker threads [default: one for each processor]
    #[arg(short, long, value_name = "N", global = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,

    /// Tell every stage with its figures
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,

    /// Write every event to this file, one JSON object a line
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) events: Option<Utf8PathBuf>,

    /// Write the run as a Chrome trace, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) trace: Option<Utf8PathBuf>,

    /// When messages are coloured
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto")]
    pub(crate) color: Color,

    /// End at the first point of a sweep that fails; otherwise all points are built, and those that fail are results
    #[arg(long, global = true, conflicts_with = "keep_going")]
    pub(crate) fail_fast: bool,

    /// Build the other targets of the command when one fails, too
    #[arg(long, global = true)]
    pub(crate) keep_going: bool,

    /// Change a field of the targets that have it, for this command only: `--set layout.tiles=32`
    #[arg(long = "set", value_name = "FIELD=VALUE", global = true)]
    pub(crate) changes: Vec<String>,
}

impl Options {
    /// Number of worker threads.
    pub(crate) fn threads(&self) -> usize {
        match self.jobs {
            Some(jobs) => jobs.into(),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// When messages are coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Which part of an artifact to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub(crate) struct Part {
    /// Of an artifact: what concerns this tile, by its logical number
    #[arg(long, value_name = "N")]
    pub(crate) tile: Option<u32>,
    /// Of a schedule: what happens from this cycle on
    #[arg(long, value_name = "CYCLE")]
    pub(crate) from: Option<u32>,
    /// Of an artifact: so many rows of each table [default: 40, with --json all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

/// What to do with a phase.
#[derive(Debug, Subcommand)]
pub(crate) enum ExchangeCommand {
    /// Find a schedule, and tell its horizon, the bound that no schedule can be below, and the work it took
    Schedule {
        /// The phase: index, source_tile, words, width, source_addresses, destinations
        #[arg(value_name = "PHASE.tsv")]
        phase: Utf8PathBuf,
        /// Write the start events here: index, start
        #[arg(long, value_name = "SCHEDULE.tsv")]
        out: Option<Utf8PathBuf>,
        /// Write a picture of all tiles over time here, as SVG
        #[arg(long, value_name = "FILE.svg")]
        timeline: Option<Utf8PathBuf>,
        /// So many times the usual work; above 1 until the bound itself is met
        #[arg(long, default_value_t = 1, value_name = "N")]
        effort: u32,
        /// 64-bit items to whole pairs of tiles where that is legal; not confirmed on hardware
        #[arg(long)]
        pairs: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Check a schedule against all rules of a phase, and name those it breaks
    Check {
        /// The phase
        #[arg(value_name = "PHASE.tsv")]
        phase: Utf8PathBuf,
        /// Its start events
        #[arg(value_name = "SCHEDULE.tsv")]
        schedule: Utf8PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// What to do with the store.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Count what it holds
    Stats {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Read all of it, and name what is damaged
    Check {
        /// Remove what is damaged, so that builds make it again
        #[arg(long)]
        repair: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// What to assemble, and with what.
#[derive(Debug, Args)]
pub(crate) struct AsmArguments {
    /// The source
    #[arg(value_name = "FILE")]
    pub(crate) file: Utf8PathBuf,
    /// The object file [default: the source's name with the ending .o]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<Utf8PathBuf>,
    /// Look for included files here, too
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    pub(crate) include: Vec<Utf8PathBuf>,
    /// Define a macro of the preprocessor; without a value it is 1
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE")]
    pub(crate) define: Vec<String>,
    /// A table of the values that only the vendor has, in place of the shipped one
    #[arg(long, value_name = "FILE")]
    pub(crate) vendor_names: Option<Utf8PathBuf>,
}

/// What to link, and how.
#[derive(Debug, Args)]
pub(crate) struct LinkArguments {
    /// Object files, and archives of them
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<Utf8PathBuf>,
    /// The executable file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Utf8PathBuf,
    /// Address of the first section
    #[arg(long, value_name = "ADDRESS", default_value = "0x4c010")]
    pub(crate) base: String,
    /// Start at this symbol, and leave out what is not reached from it
    #[arg(long, value_name = "SYMBOL")]
    pub(crate) entry: Option<String>,
    /// Keep this symbol with all it needs
    #[arg(long, value_name = "SYMBOL")]
    pub(crate) keep: Vec<String>,
    /// Keep what nothing reaches, too
    #[arg(long)]
    pub(crate) keep_all: bool,
    /// Write what lies where to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<Utf8PathBuf>,
}

/// What to debug, and how.
#[derive(Debug, Args)]
pub(crate) struct DebugArguments {
    /// A label of a run or a program, which is built first, or a file `FILE.ipuexe`; without a run all tensors are zeros
    #[arg(value_name = "LABEL|FILE")]
    pub(crate) what: String,
    /// Do this instead of reading standard input; may be repeated
    #[arg(short = 'x', long = "command", value_name = "COMMAND")]
    pub(crate) commands: Vec<String>,
    /// Do what is in this file, a command a line, before those of `--command`
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<Utf8PathBuf>,
    /// Count every instruction; at the end print the costliest with their source lines, and the clocks of each kernel
    #[arg(long)]
    pub(crate) profile: bool,
    /// At the end write compute, exchange and barriers of all tiles to this file, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub(crate) trace_tiles: Option<Utf8PathBuf>,
}

/// How the answer to a query looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QueryOutput {
    /// A label a line
    Labels,
    /// Label, rule, place and dependencies of each target
    Json,
    /// The graph of the targets, for Graphviz
    Dot,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build targets, and what run targets need, without running
    Build {
        /// Labels and patterns
        #[arg(required = true, value_name = "LABEL")]
        labels: Vec<String>,
    },
    /// Build and run run targets
    Run {
        /// Labels of run targets, and patterns
        #[arg(required = true, value_name = "LABEL")]
        labels: Vec<String>,
    },
    /// Run run targets and test suites, all of them whatever fails, and count verdicts
    Test {
        /// Labels of run targets and test suites, and patterns
        #[arg(required = true, value_name = "LABEL")]
        labels: Vec<String>,
        /// Write the verdicts here as JUnit XML
        #[arg(long, value_name = "FILE")]
        junit: Option<Utf8PathBuf>,
    },
    /// Build and run targets, and again whenever a file they are made of is saved; Ctrl-C ends it
    Watch {
        /// Labels and patterns
        #[arg(required = true, value_name = "LABEL")]
        labels: Vec<String>,
        /// Look at all files five times a second instead of waiting to be told of changes
        #[arg(long)]
        scan: bool,
    },
    /// List targets: patterns, `deps(X)`, `rdeps(UNIVERSE, X)`, `allpaths(A, B)`, `kind(RULE, X)`, …
    Query {
        /// The question
        #[arg(value_name = "QUERY")]
        query: String,
        /// How the answer looks
        #[arg(long, value_name = "FORM", default_value = "labels")]
        output: QueryOutput,
    },
    /// Draw the targets below a label and their stages; without option as a tree
    #[command(group = clap::ArgGroup::new("form"))]
    Graph {
        /// A label
        #[arg(value_name = "LABEL")]
        label: String,
        /// As a picture
        #[arg(long, value_name = "FILE", group = "form")]
        svg: Option<Utf8PathBuf>,
        /// As a page with the picture and a table
        #[arg(long, value_name = "FILE", group = "form")]
        html: Option<Utf8PathBuf>,
        /// For Graphviz
        #[arg(long, group = "form")]
        dot: bool,
    },
    /// Say why a target was built again: what changed, what executed, where it was cut off
    Why {
        /// A label, or an artifact as `LABEL[stage/index]`: then what its key is made of
        #[arg(value_name = "LABEL")]
        label: String,
        /// Why it is not built again, as it stands now
        #[arg(long)]
        not: bool,
        /// Compare with what it was in this run
        #[arg(long, value_name = "RUN", conflicts_with = "not")]
        since: Option<i64>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// List runs, or tell one: targets, stages, critical path
    Log {
        /// The number of a run
        #[arg(value_name = "RUN")]
        run: Option<i64>,
        /// List so many, the newest
        #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 20)]
        limit: u32,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Build again without anything that is kept, and compare every stage with what is
    Verify {
        /// Labels and patterns
        #[arg(required = true, value_name = "LABEL")]
        labels: Vec<String>,
        /// So often, each time with the pieces of a stage in another order
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        repro: u32,
    },
    /// Take back the space of results that are not used any more
    Gc {
        /// Evict the least recently used until the store is this small, as in 10G
        #[arg(long, value_name = "SIZE")]
        max_size: Option<String>,
        /// Evict what no run used for so long, as in 30d
        #[arg(long, value_name = "AGE")]
        older_than: Option<String>,
        /// Keep what the newest runs used; without another bound everything else goes
        #[arg(long, value_name = "N")]
        keep_runs: Option<u32>,
        /// Only say what would go
        #[arg(long)]
        dry_run: bool,
    },
    /// Look into the store
    Store {
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Say whether machine, store and workspace are fit
    Doctor,
    /// Show a target's declaration and results, an artifact of it, or what a package file holds
    Show {
        /// A label, an artifact `LABEL[stage/index]`, the artifacts of a stage `LABEL[stage]`, or a file `FILE.ipuexe`
        #[arg(value_name = "LABEL|FILE")]
        what: String,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Of an exchange phase: its transfers as the table that `ipubuild exchange` reads
        #[arg(long, conflicts_with_all = ["json", "tile", "from", "limit"])]
        tsv: bool,
        #[command(flatten)]
        part: Part,
    },
    /// Run a program on the simulated chip, stop where something is to be seen, and look at it; `help` lists what can be asked
    Debug(DebugArguments),
    /// Schedule exchange phases given as tables, or check schedules of them
    Exchange {
        #[command(subcommand)]
        command: ExchangeCommand,
    },
    /// Assemble a source to an object file
    Asm(AsmArguments),
    /// Write the code of an object or executable file as a source that assembles to the same bytes
    Disasm {
        /// An ELF file
        #[arg(value_name = "FILE")]
        file: Utf8PathBuf,
    },
    /// Link object files to an executable file
    Link(LinkArguments),
    /// Show sections, symbols and code of an object or executable file
    Objdump {
        /// An ELF file
        #[arg(value_name = "FILE")]
        file: Utf8PathBuf,
    },
    /// List the symbols of an object or executable file
    Nm {
        /// An ELF file
        #[arg(value_name = "FILE")]
        file: Utf8PathBuf,
    },
    /// Count the bytes of code, constants, data and zeros in files
    Size {
        /// ELF files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<Utf8PathBuf>,
    },
    /// Remove the exported files of targets; the store keeps its results
    Clean {
        /// Labels and patterns
        #[arg(required = true, value_name = "LABEL")]
        labels: Vec<String>,
    },
}
