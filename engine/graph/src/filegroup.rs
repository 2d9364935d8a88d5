//! The rule `filegroup`: files under one name.

use std::sync::Arc;

use serde::Deserialize;

use crate::{Declaration, Field, Input, Rule, RuleData};

/// The fields of a `filegroup`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FileGroup {
    /// Files of the package, or labels of other filegroups.
    pub srcs: Vec<Input>,
}

pub(crate) struct FileGroupRule;

impl Rule for FileGroupRule {
    fn name(&self) -> &'static str {
        "filegroup"
    }

    fn summary(&self) -> &'static str {
        "Files under one name."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[Field::required(
            "srcs",
            "list of files and labels of `filegroup`s",
            "The files, in this order; a label stands for its files.",
        )
        .accepting(&["filegroup"])];
        FIELDS
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        Some(Arc::new(declaration.read::<FileGroup>()?))
    }
}
