//! Reads a target's fields into a rule's schema, noting every fault instead of the first one.
//!
//! A schema is an ordinary `#[derive(Deserialize)]` struct. Labels, sources, [`crate::Input`] and [`crate::Auto`] in it
//! are recognised wherever they stand (not inside untagged, internally tagged or flattened types, through which serde
//! hides them): they are resolved against the package and noted as dependencies and sources. Keys that a struct does not
//! have are faults at every depth; `deny_unknown_fields` is not needed.
//!
//! serde stops at the first fault, so a read that fails is repeated with the faulty value left out, until the rest reads
//! or only follows from what was left out.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};

use crate::choice::{AUTO_MARK, INPUT_MARK, is_label};
use crate::diagnostic::Problem;
use crate::label::LABEL_MARK;
use crate::nearest::nearest;
use crate::source::{SOURCE_MARK, TOOL_MARK};
use crate::toml_tree::{Entry, Node, NodeValue, Span};
use crate::{Label, PackageName, SourcePath};

/// A label in a declaration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// The field it stands in, as in `tensors.hidden`.
    pub field: String,
    /// The target it names.
    pub label: Label,
}

/// A source file in a declaration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceUse {
    /// The field it stands in, as in `srcs[3]`.
    pub field: String,
    /// The file.
    pub path: SourcePath,
}

/// A target's fields on their way into a schema.
pub struct Declaration<'a> {
    package: &'a PackageName,
    name: &'a str,
    node: &'a Node,
    notes: RefCell<Notes>,
}

#[derive(Default)]
struct Notes {
    faults: Vec<FieldFault>,
    dependencies: Vec<(Dependency, Span)>,
    sources: Vec<(SourceUse, Span)>,
    /// Nodes left out of the next attempt.
    left_out: BTreeSet<NodeId>,
}

/// A node's identity while its tree is borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NodeId(usize);

impl NodeId {
    fn of(node: &Node) -> NodeId {
        NodeId(std::ptr::from_ref(node).addr())
    }
}

/// A fault in a field, not yet placed in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldFault {
    pub(crate) field: String,
    pub(crate) span: Span,
    pub(crate) problem: Problem,
}

/// What reading a declaration noted.
pub(crate) struct Noted {
    pub(crate) faults: Vec<FieldFault>,
    pub(crate) dependencies: Vec<(Dependency, Span)>,
    pub(crate) sources: Vec<(SourceUse, Span)>,
}

impl<'a> Declaration<'a> {
    pub(crate) fn new(package: &'a PackageName, name: &'a str, node: &'a Node) -> Declaration<'a> {
        Declaration { package, name, node, notes: RefCell::default() }
    }

    /// The target's label.
    pub fn label(&self) -> Label {
        Label::new(self.package.clone(), self.name)
    }

    /// The package the target is declared in.
    pub fn package(&self) -> &PackageName {
        self.package
    }

    /// All fields but `rule`, or `None` after every fault was noted.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        let attempts = count_nodes(self.node) + 1;
        for _ in 0..attempts {
            {
                let mut notes = self.notes.borrow_mut();
                notes.dependencies.clear();
                notes.sources.clear();
            }
            match T::deserialize(Reader { declaration: self, node: self.node, field: String::new() }) {
                Ok(value) => return self.notes.borrow().faults.is_empty().then_some(value),
                Err(fault) => {
                    if !self.note(fault) {
                        return None;
                    }
                }
            }
        }
        None
    }

    /// Notes a fault that the rule finds in `field`, as in `layout.tiles`.
    pub fn fault(&self, field: &str, message: impl Into<String>, expected: impl Into<String>) {
        let problem = Problem::Rule { message: message.into(), expected: expected.into() };
        let span = self.node.nearest(field).span.clone();
        self.add_fault(FieldFault { field: field.to_owned(), span, problem });
    }

    pub(crate) fn add_fault(&self, fault: FieldFault) {
        let mut notes = self.notes.borrow_mut();
        if let Problem::MissingField { name, value } = &fault.problem {
            // The rule's own list of fields says more than the schema does, and it says it first.
            let says_it = |known: &FieldFault| {
                known.field == fault.field && matches!(&known.problem, Problem::MissingField { name: known, .. } if known == name)
            };
            if value.is_none() && notes.faults.iter().any(says_it) {
                return;
            }
            let bare = Problem::MissingField { name: name.clone(), value: None };
            notes.faults.retain(|known| known.field != fault.field || known.problem != bare);
        }
        if !notes.faults.contains(&fault) {
            notes.faults.push(fault);
        }
    }

    pub(crate) fn into_noted(self) -> Noted {
        let Notes { faults, dependencies, sources, .. } = self.notes.into_inner();
        Noted { faults, dependencies, sources }
    }

    /// Notes the fault of an attempt and leaves its node out of the next; false when there is nothing left to try.
    fn note(&self, fault: ReadFault) -> bool {
        let ReadFault { problem, at } = fault;
        let (node, span, field) = match at {
            Some(at) => *at,
            None => (NodeId::of(self.node), self.node.span.clone(), String::new()),
        };
        if !self.follows_from_left_out(node) {
            self.add_fault(FieldFault { field, span, problem: *problem });
        }
        node != NodeId::of(self.node) && self.notes.borrow_mut().left_out.insert(node)
    }

    /// Whether something below `node` is left out, so that a fault of `node` itself says nothing new.
    fn follows_from_left_out(&self, node: NodeId) -> bool {
        let notes = self.notes.borrow();
        find(self.node, node).is_some_and(|found| any_below(found, &|below| notes.left_out.contains(&NodeId::of(below))))
    }

    fn is_left_out(&self, node: &Node) -> bool {
        self.notes.borrow().left_out.contains(&NodeId::of(node))
    }
}

fn children(node: &Node) -> Vec<&Node> {
    match &node.value {
        NodeValue::Array(nodes) => nodes.iter().collect(),
        NodeValue::Table(entries) => entries.iter().map(|entry| &entry.node).collect(),
        _ => Vec::new(),
    }
}

fn count_nodes(node: &Node) -> usize {
    1 + children(node).into_iter().map(count_nodes).sum::<usize>()
}

fn find(node: &Node, wanted: NodeId) -> Option<&Node> {
    if NodeId::of(node) == wanted { Some(node) } else { children(node).into_iter().find_map(|child| find(child, wanted)) }
}

fn any_below(node: &Node, holds: &dyn Fn(&Node) -> bool) -> bool {
    children(node).into_iter().any(|child| holds(child) || any_below(child, holds))
}

/// serde's error: what is wrong, and from the first reader it passes on, where.
#[derive(Debug)]
struct ReadFault {
    problem: Box<Problem>,
    at: Option<Box<(NodeId, Span, String)>>,
}

impl fmt::Display for ReadFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.problem)
    }
}

impl std::error::Error for ReadFault {}

impl From<Problem> for ReadFault {
    fn from(problem: Problem) -> ReadFault {
        ReadFault { problem: Box::new(problem), at: None }
    }
}

impl de::Error for ReadFault {
    fn custom<M: fmt::Display>(message: M) -> ReadFault {
        Problem::Rule { message: message.to_string(), expected: String::new() }.into()
    }

    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> ReadFault {
        ReadFault::invalid_value(found, expected)
    }

    fn invalid_value(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> ReadFault {
        let found = match found {
            de::Unexpected::Seq => "a list".to_owned(),
            de::Unexpected::Map => "a table".to_owned(),
            other => other.to_string().replace('`', ""),
        };
        Problem::Value { found, expected: in_words(&expected.to_string()), nearest: Vec::new() }.into()
    }

    fn invalid_length(length: usize, expected: &dyn de::Expected) -> ReadFault {
        let found = format!("{length} elements");
        Problem::Value { found, expected: in_words(&expected.to_string()), nearest: Vec::new() }.into()
    }

    fn unknown_variant(found: &str, known: &'static [&'static str]) -> ReadFault {
        let names: Vec<String> = known.iter().map(|name| format!("\"{name}\"")).collect();
        Problem::Value { found: format!("string {found:?}"), expected: names.join(" or "), nearest: nearest(found, known.iter().copied()) }
            .into()
    }

    fn unknown_field(found: &str, known: &'static [&'static str]) -> ReadFault {
        unknown_field(found, known).into()
    }

    fn missing_field(name: &'static str) -> ReadFault {
        Problem::MissingField { name: name.to_owned(), value: None }.into()
    }

    fn duplicate_field(name: &'static str) -> ReadFault {
        ReadFault::custom(format!("`{name}` is given twice"))
    }
}

pub(crate) fn unknown_field(found: &str, known: &[&str]) -> Problem {
    let known = known.iter().copied().filter(|name| *name != "rule");
    Problem::UnknownField { found: found.to_owned(), nearest: nearest(found, known.clone()), known: known.map(str::to_owned).collect() }
}

/// serde's name of a type as a user knows it.
fn in_words(expected: &str) -> String {
    match expected {
        "u8" => "an integer from 0 to 255".to_owned(),
        "u16" => "an integer from 0 to 65535".to_owned(),
        "u32" => "an integer from 0 to 4294967295".to_owned(),
        "u64" | "usize" => "an integer from 0 on".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a sequence" => "a list".to_owned(),
        other if other.starts_with("struct ") || other == "a map" => "a table".to_owned(),
        other => other.to_owned(),
    }
}

type PathParser = fn(&str, &PackageName) -> Result<SourcePath, &'static str>;

/// serde's view of one node.
#[derive(Clone)]
struct Reader<'a> {
    declaration: &'a Declaration<'a>,
    node: &'a Node,
    field: String,
}

impl<'a> Reader<'a> {
    fn is_root(&self) -> bool {
        self.field.is_empty()
    }

    /// Places a fault that has no place yet at this node.
    fn place<T>(&self, result: Result<T, ReadFault>) -> Result<T, ReadFault> {
        result.map_err(|fault| ReadFault {
            at: fault.at.or_else(|| Some(Box::new((NodeId::of(self.node), self.node.span.clone(), self.field.clone())))),
            ..fault
        })
    }

    fn text(&self, expected: &str) -> Result<&'a str, ReadFault> {
        match &self.node.value {
            NodeValue::Text(text) => Ok(text),
            _ => Err(self.unexpected(expected)),
        }
    }

    fn unexpected(&self, expected: &str) -> ReadFault {
        Problem::Value { found: self.node.describe(), expected: expected.to_owned(), nearest: Vec::new() }.into()
    }

    fn child(&self, node: &'a Node, step: &str) -> Reader<'a> {
        let separator = if self.field.is_empty() || step.starts_with('[') { "" } else { "." };
        Reader { declaration: self.declaration, node, field: format!("{}{separator}{step}", self.field) }
    }

    /// The entries to read, in the text's order; at the root `rule` is not one.
    fn entries(&self, entries: &'a [Entry]) -> Vec<&'a Entry> {
        let is_read = |entry: &&Entry| !(self.is_root() && entry.key == "rule");
        entries.iter().filter(is_read).filter(|entry| !self.declaration.is_left_out(&entry.node)).collect()
    }

    fn visit<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, ReadFault> {
        match &self.node.value {
            NodeValue::Text(text) => visitor.visit_str(text),
            NodeValue::Integer(integer) => match u64::try_from(*integer) {
                Ok(integer) => visitor.visit_u64(integer),
                Err(_) => visitor.visit_i64(*integer),
            },
            NodeValue::Float(float) => visitor.visit_f64(*float),
            NodeValue::Flag(flag) => visitor.visit_bool(*flag),
            NodeValue::Array(nodes) => {
                let nodes = nodes.iter().enumerate().filter(|(_, node)| !self.declaration.is_left_out(node)).collect();
                visitor.visit_seq(Elements { parent: self, nodes, at: 0 })
            }
            NodeValue::Table(entries) => visitor.visit_map(Entries { parent: self, entries: self.entries(entries), at: 0 }),
            NodeValue::Foreign(_) => {
                let expected = ExpectedBy(&visitor).to_string();
                Err(self.unexpected(&in_words(&expected)))
            }
        }
    }

    fn label(&self) -> Result<Label, ReadFault> {
        let text = self.text("a label")?;
        let label = Label::parse(text, self.declaration.package).map_err(Problem::Label)?;
        let dependency = Dependency { field: self.field.clone(), label: label.clone() };
        self.declaration.notes.borrow_mut().dependencies.push((dependency, self.node.span.clone()));
        Ok(label)
    }

    fn source(&self, parse: PathParser) -> Result<SourcePath, ReadFault> {
        let text = self.text("a file's path")?;
        let path = parse(text, self.declaration.package).map_err(|expected| Problem::SourcePath { found: text.to_owned(), expected })?;
        let source = SourceUse { field: self.field.clone(), path: path.clone() };
        self.declaration.notes.borrow_mut().sources.push((source, self.node.span.clone()));
        Ok(path)
    }

    fn input(&self) -> Result<String, ReadFault> {
        let text = self.text("a file's path or a label")?;
        Ok(if is_label(text) { format!("label {}", self.label()?) } else { format!("file {}", self.source(SourcePath::parse)?) })
    }
}

struct ExpectedBy<'v, V>(&'v V);

impl<'de, V: Visitor<'de>> fmt::Display for ExpectedBy<'_, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = ReadFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
        self.place(self.visit(visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
        self.place(visitor.visit_some(self.clone()))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, ReadFault> {
        let result = match name {
            LABEL_MARK => self.label().and_then(|label| visitor.visit_str(&label.to_string())),
            SOURCE_MARK => self.source(SourcePath::parse).and_then(|path| visitor.visit_str(&path.to_string())),
            TOOL_MARK => self.source(SourcePath::parse_tool).and_then(|path| visitor.visit_str(&path.to_string())),
            INPUT_MARK => self.input().and_then(|text| visitor.visit_str(&text)),
            AUTO_MARK => match &self.node.value {
                NodeValue::Text(text) if text == "auto" => visitor.visit_none(),
                _ => visitor.visit_some(self.clone()),
            },
            _ => visitor.visit_newtype_struct(self.clone()),
        };
        self.place(result)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadFault> {
        let NodeValue::Table(entries) = &self.node.value else {
            return self.place(Err(self.unexpected("a table")));
        };
        let (known, unknown): (Vec<_>, Vec<_>) = self.entries(entries).into_iter().partition(|entry| fields.contains(&entry.key.as_str()));
        // At the root the loader compares with the rule's own list of fields.
        for entry in unknown.into_iter().filter(|_| !self.is_root()) {
            self.declaration.add_fault(FieldFault {
                field: self.field.clone(),
                span: entry.key_span.clone(),
                problem: unknown_field(&entry.key, fields),
            });
        }
        self.place(visitor.visit_map(Entries { parent: &self, entries: known, at: 0 }))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadFault> {
        let result = match &self.node.value {
            NodeValue::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            NodeValue::Table(entries) if entries.len() == 1 => {
                visitor.visit_enum(Variant { name: &entries[0].key, content: self.child(&entries[0].node, &entries[0].key) })
            }
            _ => {
                let names: Vec<String> = variants.iter().map(|name| format!("\"{name}\"")).collect();
                Err(self.unexpected(&names.join(" or ")))
            }
        };
        self.place(result)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        bytes byte_buf unit unit_struct seq tuple tuple_struct map identifier
    }
}

struct Elements<'r, 'a> {
    parent: &'r Reader<'a>,
    nodes: Vec<(usize, &'a Node)>,
    at: usize,
}

impl<'de> de::SeqAccess<'de> for Elements<'_, '_> {
    type Error = ReadFault;

    fn next_element_seed<S: de::DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadFault> {
        let Some((index, node)) = self.nodes.get(self.at).copied() else { return Ok(None) };
        self.at += 1;
        let reader = self.parent.child(node, &format!("[{index}]"));
        reader.place(seed.deserialize(reader.clone())).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.nodes.len() - self.at)
    }
}

struct Entries<'r, 'a> {
    parent: &'r Reader<'a>,
    entries: Vec<&'a Entry>,
    at: usize,
}

impl<'de> de::MapAccess<'de> for Entries<'_, '_> {
    type Error = ReadFault;

    fn next_key_seed<S: de::DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadFault> {
        let Some(entry) = self.entries.get(self.at) else { return Ok(None) };
        let reader = self.parent.child(&entry.node, &entry.key);
        reader.place(seed.deserialize(entry.key.as_str().into_deserializer())).map(Some)
    }

    fn next_value_seed<S: de::DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ReadFault> {
        let Some(entry) = self.entries.get(self.at) else {
            return Err(de::Error::custom("a value without a key"));
        };
        self.at += 1;
        let reader = self.parent.child(&entry.node, &entry.key);
        reader.place(seed.deserialize(reader.clone()))
    }
}

struct Variant<'a> {
    name: &'a str,
    content: Reader<'a>,
}

impl<'de, 'a> de::EnumAccess<'de> for Variant<'a> {
    type Error = ReadFault;
    type Variant = Reader<'a>;

    fn variant_seed<S: de::DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Reader<'a>), ReadFault> {
        let deserializer: de::value::StrDeserializer<'_, ReadFault> = self.name.into_deserializer();
        Ok((seed.deserialize(deserializer)?, self.content))
    }
}

impl<'de> de::VariantAccess<'de> for Reader<'_> {
    type Error = ReadFault;

    fn unit_variant(self) -> Result<(), ReadFault> {
        self.place(Err(self.unexpected("the name alone, without a value")))
    }

    fn newtype_variant_seed<S: de::DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, ReadFault> {
        self.place(seed.deserialize(self.clone()))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, ReadFault> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, ReadFault> {
        self.deserialize_struct("", fields, visitor)
    }
}
