//! Files that targets read.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::PackageName;

/// A source file: a path below the root of the workspace or of an embedded repository, `/` between names, no `..`. A
/// [`ToolPath`] may also be an absolute one.
///
/// As a field of a rule's schema it deserialises from a path relative to the declaring package (or, with a leading
/// `//`, to the root), and becomes one of the target's sources (see [`crate::Declaration`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourcePath {
    /// Empty for the workspace itself, else the name after `@`.
    pub repository: String,
    /// Path below the repository's root; absolute for a tool outside of the workspace.
    pub path: String,
}

/// The name by which [`crate::Declaration`] recognises a source while reading a declaration.
pub(crate) const SOURCE_MARK: &str = "$ipubuild::source";

/// The same for a [`ToolPath`].
pub(crate) const TOOL_MARK: &str = "$ipubuild::tool";

impl SourcePath {
    /// `text` as it stands in `package`; the fault is what was expected.
    pub fn parse(text: &str, package: &PackageName) -> Result<SourcePath, &'static str> {
        let (base, relative) = match text.strip_prefix("//") {
            Some(rest) => ("", rest),
            None => (package.path.as_str(), text),
        };
        if relative.is_empty() || relative.contains(['\0', '\\']) {
            return Err("a file's path, `/` between names");
        }
        if relative.starts_with('/') {
            return Err("a path relative to the package, or `//` and a path below the workspace root");
        }
        if relative.split('/').any(|name| matches!(name, "" | "." | "..")) {
            return Err("a path without `.`, `..` and empty names: sources lie below the workspace root");
        }
        let path = if base.is_empty() { relative.to_owned() } else { format!("{base}/{relative}") };
        Ok(SourcePath { repository: package.repository.clone(), path })
    }

    /// `text` as a [`ToolPath`] stands in `package`.
    pub(crate) fn parse_tool(text: &str, package: &PackageName) -> Result<SourcePath, &'static str> {
        let Some(names) = text.strip_prefix('/').filter(|names| !names.starts_with('/')) else {
            return SourcePath::parse(text, package);
        };
        if text.contains(['\0', '\\']) || names.split('/').any(|name| matches!(name, "" | "." | "..")) {
            return Err("an absolute path without `.`, `..` and empty names, or the path of a source");
        }
        Ok(SourcePath { repository: String::new(), path: text.to_owned() })
    }

    /// Whether it is a file of the machine, which need not lie in the workspace.
    pub fn is_absolute(&self) -> bool {
        self.path.starts_with('/')
    }

    /// The path as it is displayed: below the workspace root, absolute, or `@repository//` and a path.
    pub(crate) fn parse_full(text: &str) -> Result<SourcePath, &'static str> {
        if text.starts_with('/') {
            return SourcePath::parse_tool(text, &PackageName::in_workspace(""));
        }
        let (repository, path) = match text.strip_prefix('@').and_then(|rest| rest.split_once("//")) {
            Some(parts) => parts,
            None => ("", text),
        };
        SourcePath::parse(path, &PackageName { repository: repository.to_owned(), path: String::new() })
    }

    /// The file's own name.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

impl fmt::Display for SourcePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.repository.is_empty() {
            write!(formatter, "@{}//", self.repository)?;
        }
        formatter.write_str(&self.path)
    }
}

impl Serialize for SourcePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SourcePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SourcePath, D::Error> {
        deserialize(SOURCE_MARK, deserializer)
    }
}

/// A program that stages call, or a file it reads: an absolute path, or that of a source. It is one of the target's sources
/// either way, so its bytes count and not where it lies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolPath(SourcePath);

impl ToolPath {
    /// The file as a source.
    pub fn source(&self) -> &SourcePath {
        &self.0
    }
}

impl<'de> Deserialize<'de> for ToolPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ToolPath, D::Error> {
        deserialize(TOOL_MARK, deserializer).map(ToolPath)
    }
}

fn deserialize<'de, D: Deserializer<'de>>(mark: &'static str, deserializer: D) -> Result<SourcePath, D::Error> {
    struct Text;
    impl<'de> serde::de::Visitor<'de> for Text {
        type Value = String;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a file's path")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
            deserializer.deserialize_str(self)
        }
    }
    let text = deserializer.deserialize_newtype_struct(mark, Text)?;
    SourcePath::parse_full(&text).map_err(serde::de::Error::custom)
}
