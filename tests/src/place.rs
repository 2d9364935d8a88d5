//! A workspace in a temporary directory, and the program to run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::binary::ipubuild;
use crate::kernel_files::{manifest, source};
use tempfile::TempDir;

/// The folder that holds README.md.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the repository").to_owned()
}

/// What a run of the program gave.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the program writes UTF-8");
        Ran { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

/// A workspace and a store of its own.
pub struct Place {
    directory: TempDir,
}

impl Place {
    /// A workspace with nothing but a WORKSPACE.toml.
    #[allow(clippy::new_without_default, reason = "it makes files")]
    pub fn new() -> Place {
        let place = Place { directory: tempfile::tempdir().expect("a temporary directory") };
        place.write("WORKSPACE.toml", b"name = \"tested\"\n");
        place
    }

    /// The workspace's root.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    /// A folder beside the workspace; the store is `cache/ipubuild`.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file of the workspace.
    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("folders can be made");
        fs::write(path, bytes).expect("files can be written");
    }

    /// Bytes of a file of the workspace.
    pub fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Text of a file with `old`, which it must hold, replaced by `new`.
    pub fn replace(&self, path: &str, old: &str, new: &str) {
        let text = String::from_utf8(self.read(path)).expect("text");
        assert!(text.contains(old), "{path} has no {old}");
        self.write(path, text.replacen(old, new, 1).as_bytes());
    }

    /// Runs the program in the workspace with the store beside it.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().expect("the program starts").into()
    }

    /// The program with these arguments, in the workspace, with the store beside it; no other environment reaches it.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(ipubuild());
        command.args(arguments).current_dir(self.root()).env_clear().env("XDG_CACHE_HOME", self.beside("cache"));
        command
    }
}

/// A small program with every kind of file: 16 tokens of 16 channels, one product, 2 tiles.
pub const SMALL: &str = r#"[model]
rule = "model"
inputs.hidden = { type = "f16", shape = [1, 16, 16] }
parameters.weight = { type = "f16", shape = [16, 16] }

[[model.op]]
name = "output"
op = "matmul"
args = ["hidden", "weight"]

[input]
rule = "tensors"
files = ["hidden.npy"]

[weights]
rule = "tensors"
files = ["weights.safetensors"]

[mine]
rule = "kernel_library"
manifest = "kernels.toml"
srcs = ["gemm.S"]

[machine]
rule = "machine"
chip = "c600"
parameters = "parameters.toml"

[program]
rule = "program"
model = ":model"
machine = ":machine"
kernels = [":mine", "@ipu//kernels"]
layout = { tiles = 2 }
checkpoints = [0]

[run]
rule = "run"
program = ":program"
device = "@ipu//devices:simulator"
tensors = { hidden = ":input" }
parameters = ":weights"
tolerance = { default = 3e-3 }
"#;

impl Place {
    /// A workspace with [`SMALL`] and its files in the root package.
    pub fn small() -> Place {
        let place = Place::new();
        place.restore_small();
        place
    }

    /// Writes the files of [`Place::small`] again.
    pub fn restore_small(&self) {
        self.write("WORKSPACE.toml", b"name = \"tested\"\n");
        self.write("BUILD.toml", SMALL.as_bytes());
        self.write("hidden.npy", &npy("<f2", "(1, 16, 16)", &halves(256)));
        self.write(
            "weights.safetensors",
            &safetensors(r#"{"weight":{"dtype":"F16","shape":[16,16],"data_offsets":[0,512]}}"#, &halves(256)),
        );
        self.write("kernels.toml", manifest(&["gemm"]).as_bytes());
        self.write("gemm.S", source("gemm.S").as_bytes());
        self.write("parameters.toml", ipu21::data::PARAMETERS.as_bytes());
    }
}

/// An .npy file of version 1.0, C order.
pub fn npy(element: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{element}', 'fortran_order': False, 'shape': {shape}, }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let length = u16::try_from(header.len()).expect("a short header");
    [b"\x93NUMPY\x01\x00", &length.to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// A .safetensors file.
pub fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// `count` small f16 values.
pub fn halves(count: u16) -> Vec<u8> {
    (0..count).flat_map(|index| half::f16::from_f32(f32::from(index % 13) / 16.0 - 0.375).to_le_bytes()).collect()
}

/// A package large enough that what happens after its first stage happens before its last.
pub const LARGE: &str = r#"
model = { rule = "model", inputs.x = { type = "f16", shape = [1, 729, 72] }, parameters.w = { type = "f16", shape = [72, 72] }, op = [
    { name = "a", op = "matmul", args = ["x", "w"] },
    { name = "b", op = "matmul", args = ["a", "w"] },
    { name = "queries", op = "split", args = ["a"], heads = 1 },
    { name = "keys", op = "split", args = ["b"], heads = 1 },
    { name = "c", op = "attention", args = ["queries", "keys", "keys"] },
] }
input = { rule = "tensors", seed = 1, normal.x = { shape = [1, 729, 72] } }
weights = { rule = "tensors", seed = 2, normal.w = { shape = [72, 72], variance = 0.01 } }
[program]
rule = "program"
model = ":model"
machine = "@ipu//machines:c600"
kernels = ["@ipu//kernels"]
layout = { tiles = 64 }
[run]
rule = "run"
program = ":program"
device = "@ipu//devices:simulator"
tensors = { x = ":input" }
parameters = ":weights"
tolerance = { default = 0.1 }
"#;
