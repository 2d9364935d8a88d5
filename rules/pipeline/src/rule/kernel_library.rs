//! The rule `kernel_library`: assembly sources and the manifest that says how they may be called.

use std::sync::Arc;

use graph::{Declaration, Field, Rule, RuleData, SourcePath};
use serde::Deserialize;

/// The fields of a `kernel_library`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KernelLibrary {
    /// The manifest.
    pub manifest: SourcePath,
    /// The sources that the manifest names.
    pub srcs: Vec<SourcePath>,
}

pub(crate) struct KernelLibraryRule;

impl Rule for KernelLibraryRule {
    fn name(&self) -> &'static str {
        "kernel_library"
    }

    fn summary(&self) -> &'static str {
        "Kernels in assembly, with a manifest of their parameters, operands, constraints and costs."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::required("manifest", "file", "The manifest, TOML: what the planner may call and what it costs."),
            Field::required("srcs", "list of files", "The sources that the manifest names by their file names."),
        ];
        FIELDS
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        Some(Arc::new(declaration.read::<KernelLibrary>()?))
    }
}
