//! Files that targets read.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::PackageName;

/// A source file: a path below the root of the workspace or of an embedded repository, `/` between names, no `..`.
///
/// As a field of a rule's schema it deserialises from a path relative to the declaring package (or, with a leading
/// `//`, to the root), and becomes one of the target's sources (see [`crate::Declaration`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourcePath {
    /// Empty for the workspace itself, else the name after `@`.
    pub repository: String,
    /// Path below the repository's root.
    pub path: String,
}

/// The name by which [`crate::Declaration`] recognises a source while reading a declaration.
pub(crate) const SOURCE_MARK: &str = "$ipubuild::source";

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

    /// The path as it is displayed: below the workspace root, or `@repository//` and a path.
    pub(crate) fn parse_full(text: &str) -> Result<SourcePath, &'static str> {
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
        let text = deserializer.deserialize_newtype_struct(SOURCE_MARK, Text)?;
        SourcePath::parse_full(&text).map_err(serde::de::Error::custom)
    }
}
