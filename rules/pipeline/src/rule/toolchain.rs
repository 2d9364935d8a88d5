//! The rule `toolchain`: a compiler that is no part of this project, such as that of an installed SDK.

use std::collections::BTreeMap;
use std::sync::Arc;

use graph::{Declaration, Field, Rule, RuleData, ToolPath};
use serde::Deserialize;

/// The fields of a `toolchain`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Toolchain {
    /// Compiles one source.
    pub compiler: ToolPath,
    /// Takes the object out of what the compiler wrote; without it that is the object.
    pub extractor: Option<ToolPath>,
    /// Further files that decide what the compiler gives.
    #[serde(default)]
    pub identity: Vec<ToolPath>,
    /// Arguments of the compiler.
    #[serde(default = "optimised")]
    pub flags: Vec<String>,
    /// All the compiler sees of the environment besides a search path.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

fn optimised() -> Vec<String> {
    vec!["-O3".to_owned()]
}

pub(crate) struct ToolchainRule;

impl Rule for ToolchainRule {
    fn name(&self) -> &'static str {
        "toolchain"
    }

    fn summary(&self) -> &'static str {
        "A compiler of an installed SDK, for kernels that are not in this project's assembly."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::required("compiler", "file", "Compiles one source, as `popc` does; an absolute path, or a file of the workspace."),
            Field::optional("extractor", "file", "Takes the object out of what the compiler wrote, as `pop-objdump` does."),
            Field::optional("identity", "list of files", "Further files of the SDK that decide what the compiler gives."),
            Field::optional("flags", "list of strings", "Arguments of the compiler; `-O3` unless set."),
            Field::optional("environment", "table: name = string", "All that the programs see of the environment."),
        ];
        FIELDS
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        let toolchain = declaration.read::<Toolchain>()?;
        let broken = |text: &str| text.contains('\0');
        let flags = toolchain.flags.iter().enumerate().filter(|(_, flag)| broken(flag)).map(|(index, _)| format!("flags[{index}]"));
        let names =
            toolchain.environment.iter().filter(|(name, value)| name.is_empty() || name.contains('=') || broken(name) || broken(value));
        let faulty: Vec<String> = flags.chain(names.map(|(name, _)| format!("environment.{name}"))).collect();
        for field in &faulty {
            declaration.fault(field, "no program can be given this", "text without zero bytes, names without `=`");
        }
        faulty.is_empty().then(|| Arc::new(toolchain) as RuleData)
    }
}
