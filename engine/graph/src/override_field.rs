//! A one-off change of a field: `--set layout.tiles=32`.

use crate::toml_tree::{self, Entry, Node, NodeValue, Span};

/// One change, as the user wrote it and taken apart.
#[derive(Clone, Debug)]
pub struct Override {
    text: String,
    path: Vec<String>,
    value: NodeValue,
}

/// Text that is not a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideFault {
    /// The text.
    pub text: String,
}

impl std::fmt::Display for OverrideFault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "`{}` is not a change: expected FIELD=VALUE, as in layout.tiles=32", self.text)
    }
}

impl std::error::Error for OverrideFault {}

impl Override {
    /// Parses `FIELD.FIELD=VALUE`; the value is TOML, or text when it is not.
    pub fn parse(text: &str) -> Result<Override, OverrideFault> {
        let fault = || OverrideFault { text: text.to_owned() };
        let (path, value) = text.split_once('=').ok_or_else(fault)?;
        let path: Vec<String> = path.trim().split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) || path == ["rule"] {
            return Err(fault());
        }
        Ok(Override { text: text.to_owned(), path, value: parse_value(value.trim()) })
    }

    /// The change as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The field of the target that changes.
    pub(crate) fn field(&self) -> &str {
        &self.path[0]
    }

    /// Changes `target`; a table that is not there is made. A value in the way is replaced by a table.
    pub(crate) fn apply(&self, target: &mut Node, number: usize) {
        let span = Span::Override(number);
        let mut value = Node { span: span.clone(), value: self.value.clone() };
        mark(&mut value, &span);
        target.set(&self.path, value);
    }
}

fn parse_value(text: &str) -> NodeValue {
    let (entries, faults) = toml_tree::parse(&format!("value = {text}"));
    match <[Entry; 1]>::try_from(entries) {
        Ok([entry]) if faults.is_empty() && entry.key == "value" => entry.node.value,
        _ => NodeValue::Text(text.to_owned()),
    }
}

/// Everything below the change stands on the command line.
fn mark(node: &mut Node, span: &Span) {
    node.span = span.clone();
    match &mut node.value {
        NodeValue::Array(nodes) => nodes.iter_mut().for_each(|node| mark(node, span)),
        NodeValue::Table(entries) => {
            for entry in entries {
                entry.key_span = span.clone();
                mark(&mut entry.node, span);
            }
        }
        _ => {}
    }
}
