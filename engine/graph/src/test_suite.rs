//! The rule `test_suite`: targets that are tested together.

use std::sync::Arc;

use serde::Deserialize;

use crate::{Declaration, Field, Label, Rule, RuleData, RuleKind};

/// The fields of a `test_suite`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TestSuite {
    /// Run targets and other suites.
    pub tests: Vec<Label>,
}

pub(crate) struct TestSuiteRule;

impl Rule for TestSuiteRule {
    fn name(&self) -> &'static str {
        "test_suite"
    }

    fn summary(&self) -> &'static str {
        "Targets that are tested together."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] =
            &[Field::required("tests", "list of labels", "The targets, in this order; a suite stands for its targets.")];
        FIELDS
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Suite
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        Some(Arc::new(declaration.read::<TestSuite>()?))
    }
}
