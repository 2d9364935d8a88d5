//! Values on the axes of a sweep.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

use crate::toml_tree::{Node, NodeValue, Span};

/// A value of an axis, as in TOML.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// A choice.
    Flag(bool),
    /// Text, also a label.
    Text(String),
    /// One value for each field of the axis, or the value of a field that is a list.
    List(Vec<Value>),
}

impl Value {
    /// As a number, if it is one.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// As it would stand in a declaration, at `span`.
    pub(crate) fn node(&self, span: &Span) -> Node {
        let value = match self {
            Value::Integer(value) => NodeValue::Integer(*value),
            Value::Float(value) => NodeValue::Float(*value),
            Value::Flag(value) => NodeValue::Flag(*value),
            Value::Text(value) => NodeValue::Text(value.clone()),
            Value::List(values) => NodeValue::Array(values.iter().map(|value| value.node(span)).collect()),
        };
        Node { span: span.clone(), value }
    }
}

impl fmt::Display for Value {
    /// As it stands in the name of a point: the values of a list with `x` between them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(value) => value.fmt(formatter),
            Value::Float(value) => write!(formatter, "{value:?}"),
            Value::Flag(value) => value.fmt(formatter),
            Value::Text(value) => formatter.write_str(value),
            Value::List(values) => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                formatter.write_str(&values.join("x"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl<'de> de::Visitor<'de> for Visitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number, a string, a boolean or a list of these")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Flag(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value).map(Value::Integer).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut values: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(Value::List(list))
    }
}
