//! A TOML file as a tree that remembers where everything stands.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use store::KeyBuilder;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::Place;

/// Where something stands: bytes of the file's text, the command-line change that gave it, or a sweep's declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    Text(Range<usize>),
    Override(usize),
    Elsewhere(Arc<Place>),
}

impl Span {
    /// Sorts by place: text in its order, then command-line changes, then values of sweeps by line.
    pub(crate) fn order(&self) -> (u8, usize) {
        match self {
            Span::Text(range) => (0, range.start),
            Span::Override(number) => (1, *number),
            Span::Elsewhere(place) => (2, place.line),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: NodeValue,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeValue {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    Array(Vec<Node>),
    /// In the order of the text.
    Table(Vec<Entry>),
    /// A date or an integer beyond 64 bits: kept to say so where it is read.
    Foreign(&'static str),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

/// The whole text as one table, with every syntax fault: message and bytes.
pub(crate) fn parse(text: &str) -> (Vec<Entry>, Vec<(String, Range<usize>)>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let faults = errors.iter().map(|error| (error.message().to_owned(), error.span().unwrap_or(text.len()..text.len()))).collect();
    (entries(table.into_inner()), faults)
}

fn entries(table: DeTable<'_>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = table
        .into_iter()
        .map(|(key, value)| Entry { key_span: Span::Text(key.span()), key: key.into_inner().into_owned(), node: node(value) })
        .collect();
    entries.sort_by_key(|entry| entry.key_span.order());
    entries
}

fn node(value: Spanned<DeValue<'_>>) -> Node {
    let span = Span::Text(value.span());
    let value = match value.into_inner() {
        DeValue::String(text) => NodeValue::Text(text.into_owned()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map_or(NodeValue::Foreign("an integer beyond 64 bits"), NodeValue::Integer),
        DeValue::Float(float) => float.as_str().parse().map_or(NodeValue::Foreign("a float that cannot be read"), NodeValue::Float),
        DeValue::Boolean(flag) => NodeValue::Flag(flag),
        DeValue::Datetime(_) => NodeValue::Foreign("a date"),
        DeValue::Array(array) => NodeValue::Array(elements(array)),
        DeValue::Table(table) => NodeValue::Table(entries(table)),
    };
    Node { span, value }
}

fn elements(array: DeArray<'_>) -> Vec<Node> {
    array.into_iter().map(node).collect()
}

impl Node {
    /// The value as a message shows it.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            NodeValue::Text(text) => format!("string {text:?}"),
            NodeValue::Integer(integer) => format!("integer {integer}"),
            NodeValue::Float(float) => format!("float {float:?}"),
            NodeValue::Flag(flag) => format!("boolean {flag}"),
            NodeValue::Array(_) => "a list".to_owned(),
            NodeValue::Table(_) => "a table".to_owned(),
            NodeValue::Foreign(what) => (*what).to_owned(),
        }
    }

    /// The node `path` names below this one, as in `op[2].args`, or the last one on the way that exists.
    pub(crate) fn nearest(&self, path: &str) -> &Node {
        let mut node = self;
        for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
            let next = match &node.value {
                NodeValue::Table(entries) => entries.iter().find(|entry| entry.key == step).map(|entry| &entry.node),
                NodeValue::Array(nodes) => step.trim_end_matches(']').parse::<usize>().ok().and_then(|index| nodes.get(index)),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => return node,
            }
        }
        node
    }

    /// Sets the value below this node that `path` names; a table that is not there is made, and a value in the way is replaced
    /// by one.
    pub(crate) fn set(&mut self, path: &[String], value: Node) {
        let mut node = self;
        for step in path {
            let span = value.span.clone();
            if !matches!(node.value, NodeValue::Table(_)) {
                *node = Node { span: span.clone(), value: NodeValue::Table(Vec::new()) };
            }
            let NodeValue::Table(entries) = &mut node.value else { return };
            let position = entries.iter().position(|entry| entry.key == *step).unwrap_or_else(|| {
                let node = Node { span: span.clone(), value: NodeValue::Table(Vec::new()) };
                entries.push(Entry { key: step.clone(), key_span: span, node });
                entries.len() - 1
            });
            node = &mut entries[position].node;
        }
        *node = value;
    }

    /// Adds the values without parts, with their paths below `path`.
    pub(crate) fn add_leaves(&self, path: &str, leaves: &mut Vec<(String, String)>) {
        match &self.value {
            NodeValue::Table(entries) => {
                let separator = if path.is_empty() { "" } else { "." };
                entries.iter().for_each(|entry| entry.node.add_leaves(&format!("{path}{separator}{}", entry.key), leaves));
            }
            NodeValue::Array(nodes) if nodes.iter().any(|node| matches!(node.value, NodeValue::Table(_) | NodeValue::Array(_))) => {
                nodes.iter().enumerate().for_each(|(index, node)| node.add_leaves(&format!("{path}[{index}]"), leaves));
            }
            _ => leaves.push((path.to_owned(), self.to_string())),
        }
    }

    /// Adds the value without its form: table keys sorted, no positions.
    pub(crate) fn add_to(&self, key: &mut KeyBuilder) {
        match &self.value {
            NodeValue::Text(text) => key.text("text").text(text),
            NodeValue::Integer(integer) => key.text("integer").bytes(&integer.to_le_bytes()),
            NodeValue::Float(float) => key.text("float").bytes(&float.to_bits().to_le_bytes()),
            NodeValue::Flag(flag) => key.text("flag").number(u64::from(*flag)),
            NodeValue::Foreign(what) => key.text("foreign").text(what),
            NodeValue::Array(nodes) => {
                key.text("array").number(nodes.len() as u64);
                nodes.iter().for_each(|node| node.add_to(key));
                key
            }
            NodeValue::Table(entries) => {
                let mut sorted: Vec<&Entry> = entries.iter().collect();
                sorted.sort_by(|left, right| left.key.cmp(&right.key));
                key.text("table").number(sorted.len() as u64);
                for entry in sorted {
                    key.text(&entry.key);
                    entry.node.add_to(key);
                }
                key
            }
        };
    }
}

impl fmt::Display for Node {
    /// The value as TOML in one line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            NodeValue::Text(text) => write!(formatter, "{}", toml::Value::String(text.clone())),
            NodeValue::Integer(integer) => integer.fmt(formatter),
            NodeValue::Float(float) => write!(formatter, "{float:?}"),
            NodeValue::Flag(flag) => flag.fmt(formatter),
            NodeValue::Foreign(what) => formatter.write_str(what),
            NodeValue::Array(nodes) => {
                let values: Vec<String> = nodes.iter().map(Node::to_string).collect();
                write!(formatter, "[{}]", values.join(", "))
            }
            NodeValue::Table(entries) => {
                let fields: Vec<String> = entries.iter().map(|entry| format!("{} = {}", toml_key(&entry.key), entry.node)).collect();
                write!(formatter, "{{ {} }}", fields.join(", "))
            }
        }
    }
}

/// A key as TOML: bare where it can be.
fn toml_key(key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|character| character.is_ascii_alphanumeric() || "_-".contains(character));
    if is_bare { key.to_owned() } else { toml::Value::String(key.to_owned()).to_string() }
}
