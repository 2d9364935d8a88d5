//! BUILD.toml and WORKSPACE.toml, loaded with every rule of the product.
#![no_main]

use camino::Utf8PathBuf;
use graph::{LoadRequest, PackageName, Pattern, Workspace};
use libfuzzer_sys::fuzz_target;

const WORKSPACE: &str = "name = \"fuzz\"\n";

fuzz_target!(|text: &str| {
    let (build, workspace) = text.split_once('\0').unwrap_or((text, WORKSPACE));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize().expect("a directory")).expect("a UTF-8 path");
    std::fs::write(root.join("BUILD.toml"), build).expect("written");
    std::fs::write(root.join("WORKSPACE.toml"), workspace).expect("written");
    let everything = Pattern::parse("//...", &PackageName::in_workspace("")).expect("a pattern");
    let request = LoadRequest {
        root: &root,
        registry: &pipeline::rule::registry(),
        repositories: &[pipeline::repository()],
        patterns: &[everything],
        overrides: &[],
    };
    if let Err(diagnostics) = Workspace::load(&request) {
        assert!(!diagnostics.0.is_empty(), "refused without a reason");
        for diagnostic in &diagnostics.0 {
            let _ = diagnostic.to_string();
        }
    }
});
