//! The program `ipubuild` as users run it, on copies of workspaces.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

/// The binary, built by cargo with the profile of the running test; built once.
///
/// # Panics
/// When it cannot be built.
#[must_use]
pub fn ipubuild() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let test = std::env::current_exe().expect("a test knows its file");
        let profile = test.ancestors().nth(2).expect("tests lie below target/<profile>/deps");
        let target = profile.parent().expect("the target directory");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "--package", "ipubuild", "--bin", "ipubuild", "--target-dir"]).arg(target);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let status = cargo.current_dir(repository()).status().expect("cargo starts");
        assert!(status.success(), "cargo build --package ipubuild: {status}");
        profile.join(format!("ipubuild{}", std::env::consts::EXE_SUFFIX))
    })
}

/// The root of the repository.
fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository")
}

/// A copy of a workspace of the repository with a store of its own, gone when dropped.
pub struct WorkspaceCopy {
    directory: TempDir,
}

impl WorkspaceCopy {
    /// Copies `workspaces/<name>` without its artifacts; the store is empty.
    ///
    /// # Panics
    /// When files cannot be copied.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        copy(&repository().join("workspaces").join(name), &directory.path().join("workspace"));
        Self { directory }
    }

    /// The copy.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    /// Its store.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    /// The file for the events of [`WorkspaceCopy::run`].
    fn events(&self) -> PathBuf {
        self.directory.path().join("events.jsonl")
    }

    /// Runs `ipubuild -C <copy> --store <own> --events <own> <arguments>`.
    ///
    /// # Panics
    /// When the program cannot be started.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Run {
        let mut command = Command::new(ipubuild());
        command.arg("-C").arg(self.root()).arg("--store").arg(self.store());
        command.arg("--events").arg(self.events()).args(arguments);
        let Output { status, stdout, stderr } = command.output().expect("ipubuild starts");
        let events = fs::read_to_string(self.events()).unwrap_or_default();
        let events = events.lines().map(|line| serde_json::from_str(line).expect("events are JSON")).collect();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("messages are UTF-8");
        Run { code: status.code(), stdout: text(stdout), stderr: text(stderr), events }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("folders can be made");
    for entry in fs::read_dir(from).expect("the workspace is there") {
        let entry = entry.expect("its entries can be read");
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if !source.is_dir() {
            fs::copy(&source, &target).expect("files can be copied");
        } else if entry.file_name() != "artifacts" {
            copy(&source, &target);
        }
    }
}

/// What a run of the program gave.
#[derive(Clone, Debug)]
pub struct Run {
    /// Exit code; none when killed.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Lines of the event file.
    pub events: Vec<serde_json::Value>,
}

impl Run {
    /// Events of a kind: `stage`, `target`.
    pub fn events_of(&self, kind: &str) -> impl Iterator<Item = &serde_json::Value> {
        self.events.iter().filter(move |event| event["event"] == kind)
    }

    /// Names of the stages that ran, not those found in the store.
    #[must_use]
    pub fn executed(&self) -> Vec<&str> {
        let ran = self.events_of("stage").filter(|event| event["cached"] == false);
        ran.filter_map(|event| event["stage"].as_str()).collect()
    }
}
