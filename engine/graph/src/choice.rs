//! Values of fields that have two forms.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Label, PackageName, SourcePath};

/// A field that says `"auto"` or gives a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Auto<T> {
    /// The program chooses.
    #[default]
    Auto,
    /// The user chose.
    Value(T),
}

impl<T> Auto<T> {
    /// The user's choice.
    pub fn value(&self) -> Option<&T> {
        match self {
            Auto::Auto => None,
            Auto::Value(value) => Some(value),
        }
    }
}

/// The name by which [`crate::Declaration`] recognises an [`Auto`].
pub(crate) const AUTO_MARK: &str = "$ipubuild::auto";

impl<T: Serialize> Serialize for Auto<T> {
    /// `"auto"` or the value in readable formats, an option elsewhere.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Auto::Auto if serializer.is_human_readable() => serializer.serialize_str("auto"),
            Auto::Value(value) if serializer.is_human_readable() => value.serialize(serializer),
            Auto::Auto => serializer.serialize_none(),
            Auto::Value(value) => serializer.serialize_some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Auto<T> {
    /// In readable formats only from a declaration, which knows the mark.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Auto<T>, D::Error> {
        struct Choice<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Choice<T> {
            type Value = Auto<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("\"auto\" or a value")
            }

            fn visit_none<E: serde::de::Error>(self) -> Result<Auto<T>, E> {
                Ok(Auto::Auto)
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Auto<T>, D::Error> {
                T::deserialize(deserializer).map(Auto::Value)
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Auto<T>, D::Error> {
                self.visit_some(deserializer)
            }
        }
        if deserializer.is_human_readable() {
            deserializer.deserialize_newtype_struct(AUTO_MARK, Choice(std::marker::PhantomData))
        } else {
            deserializer.deserialize_option(Choice(std::marker::PhantomData))
        }
    }
}

/// A file of the package, or the label of another target. Text with a leading `:`, `//` or `@` is a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Input {
    /// A source.
    File(SourcePath),
    /// A dependency.
    Target(Label),
}

/// The name by which [`crate::Declaration`] recognises an [`Input`].
pub(crate) const INPUT_MARK: &str = "$ipubuild::input";

/// Whether text in an [`Input`] is a label.
pub(crate) fn is_label(text: &str) -> bool {
    text.starts_with([':', '@']) || text.starts_with("//")
}

impl fmt::Display for Input {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::File(path) => path.fmt(formatter),
            Input::Target(label) => label.fmt(formatter),
        }
    }
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Input, D::Error> {
        struct Text;
        impl<'de> serde::de::Visitor<'de> for Text {
            type Value = Input;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a file's path or a label")
            }

            /// The declaration's reader has resolved the text and says in front of it what it is.
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Input, E> {
                match text.split_once(' ') {
                    Some(("label", text)) => Label::parse(text, &PackageName::in_workspace("")).map(Input::Target).map_err(E::custom),
                    Some(("file", text)) => SourcePath::parse_full(text).map(Input::File).map_err(E::custom),
                    _ => Err(E::custom("an input is read from a declaration only")),
                }
            }
        }
        deserializer.deserialize_newtype_struct(INPUT_MARK, Text)
    }
}
