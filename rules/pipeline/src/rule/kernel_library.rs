//! The rule `kernel_library`: assembly sources and the manifest that says how they may be called.

use std::sync::Arc;

use graph::{Declaration, Field, Label, Rule, RuleData, SourcePath};
use serde::Deserialize;

/// The fields of a `kernel_library`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KernelLibrary {
    /// The manifest.
    pub manifest: SourcePath,
    /// The sources that the manifest names.
    pub srcs: Vec<SourcePath>,
    /// The compiler of the sources; without it they are in this project's assembly.
    pub toolchain: Option<Label>,
    /// Files that the sources include, for that compiler.
    #[serde(default)]
    pub headers: Vec<SourcePath>,
}

pub(crate) struct KernelLibraryRule;

impl Rule for KernelLibraryRule {
    fn name(&self) -> &'static str {
        "kernel_library"
    }

    fn summary(&self) -> &'static str {
        "Kernels, with a manifest of their parameters, operands, constraints and costs."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::required("manifest", "file", "The manifest, TOML: what the planner may call and what it costs."),
            Field::required("srcs", "list of files", "The sources that the manifest names by their file names."),
            Field::optional("toolchain", "label of a `toolchain`", "Compiles the sources; without it they are assembled.")
                .accepting(&["toolchain"]),
            Field::optional("headers", "list of files", "Files that the sources include; with `toolchain` only."),
        ];
        FIELDS
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        let library = declaration.read::<KernelLibrary>()?;
        if library.toolchain.is_none() && !library.headers.is_empty() {
            declaration.fault("headers", "files for a compiler without a compiler", "a field `toolchain`, or no `headers`");
            return None;
        }
        Some(Arc::new(library))
    }
}
