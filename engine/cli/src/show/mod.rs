//! Listings for `show`: facts in, text out.

pub(crate) mod artifact_listing;
pub(crate) mod document_text;
pub(crate) mod package_listing;
pub(crate) mod table;
pub(crate) mod target_listing;

use crate::exit::Fault;

/// A value as indented JSON, for the commands that answer so.
pub(crate) fn to_json(value: &impl serde::Serialize) -> Result<String, Fault> {
    serde_json::to_string_pretty(value).map_err(|error| Fault::failed(format!("cannot write JSON: {error}")))
}
