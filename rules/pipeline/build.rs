//! Digests of the sources and tables that stages are made of, one for each crate: the fingerprints of stages.

use std::path::{Path, PathBuf};
use std::{env, fs};

#[rustfmt::skip]
const CRATES: [(&str, &str); 10] = [
    ("IPU21",     "device/ipu21"),     ("TOOLCHAIN", "device/toolchain"), ("PACKAGE",  "device/package"),
    ("SIMULATOR", "device/simulator"), ("DRIVER",    "device/driver"),    ("EXCHANGE", "rules/exchange"),
    ("REFERENCE", "rules/reference"),  ("COMPILER",  "rules/compiler"),   ("PIPELINE", "rules/pipeline"),
    ("LOCK",      "Cargo.lock"),
];

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR")).join("../..");
    for (name, folder) in CRATES {
        let mut files = Vec::new();
        if folder == "Cargo.lock" {
            // Library versions decide results too: the transcendentals, the random numbers.
            files.push(root.join(folder));
        }
        for part in ["src", "data", "build", "build.rs", "Cargo.toml"] {
            collect(&root.join(folder).join(part), &mut files);
        }
        files.sort();
        let mut hasher = blake3::Hasher::new();
        for file in &files {
            println!("cargo::rerun-if-changed={}", file.display());
            let path = file.strip_prefix(&root).expect("all files lie below the root").to_string_lossy().into_owned();
            let bytes = fs::read(file).expect("sources are readable");
            hasher.update(&(path.len() as u64).to_le_bytes()).update(path.as_bytes());
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(&bytes);
        }
        println!("cargo::rustc-env=FINGERPRINT_{name}={}", hasher.finalize().to_hex());
    }
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    // What is shown of artifacts decides nothing about them.
    if path.ends_with("rules/pipeline/src/show") {
        return;
    }
    if path.is_file() {
        files.push(path.to_owned());
    } else if let Ok(entries) = fs::read_dir(path) {
        println!("cargo::rerun-if-changed={}", path.display());
        entries.filter_map(Result::ok).for_each(|entry| collect(&entry.path(), files));
    }
}
