//! What a stage query returns: the digest of a body in the store and the few facts later stages branch on.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use store::Digest;

use crate::Figure;

/// A body that can be stored.
pub trait Body: Serialize + DeserializeOwned + Send + Sync + 'static {}
impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Body for T {}

/// Small facts kept beside the digest, as the number of phases; a function of the body alone.
pub trait Facts: Serialize + DeserializeOwned + Clone + PartialEq + fmt::Debug + Send + Sync + 'static {}
impl<F: Serialize + DeserializeOwned + Clone + PartialEq + fmt::Debug + Send + Sync + 'static> Facts for F {}

/// A stage's result: its body is had by [`crate::load`].
pub struct Artifact<T, F = ()> {
    digest: Digest,
    facts: F,
    body: PhantomData<fn() -> T>,
}

impl<T, F> Artifact<T, F> {
    pub(crate) fn new(digest: Digest, facts: F) -> Artifact<T, F> {
        Artifact { digest, facts, body: PhantomData }
    }

    /// The digest of the body's encoding; what stages that read the body put into their keys.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The facts.
    pub fn facts(&self) -> &F {
        &self.facts
    }
}

impl<T, F: Clone> Clone for Artifact<T, F> {
    fn clone(&self) -> Self {
        Artifact::new(self.digest, self.facts.clone())
    }
}

impl<T, F: Copy> Copy for Artifact<T, F> {}

impl<T, F: PartialEq> PartialEq for Artifact<T, F> {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest && self.facts == other.facts
    }
}

impl<T, F: Eq> Eq for Artifact<T, F> {}

impl<T, F: std::hash::Hash> std::hash::Hash for Artifact<T, F> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
        self.facts.hash(state);
    }
}

impl<T, F: fmt::Debug> fmt::Debug for Artifact<T, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Artifact({}, {:?})", self.digest.short(), self.facts)
    }
}

/// What a stage's function gives to the engine.
#[derive(Debug)]
pub struct Made<T, F = ()> {
    pub(crate) body: T,
    pub(crate) facts: F,
    pub(crate) figures: Vec<(String, Figure)>,
}

impl<T> Made<T> {
    /// A body without facts.
    pub fn new(body: T) -> Made<T> {
        Made { body, facts: (), figures: Vec::new() }
    }
}

impl<T, F> Made<T, F> {
    /// A body with facts.
    pub fn with_facts(body: T, facts: F) -> Made<T, F> {
        Made { body, facts, figures: Vec::new() }
    }

    /// Adds a named figure to the stage's event; figures keep their order and are kept with the record.
    #[must_use]
    pub fn figure(mut self, name: &str, value: impl Into<Figure>) -> Made<T, F> {
        self.figures.push((name.to_owned(), value.into()));
        self
    }
}

/// A body that is just bytes, such as a package file; its encoding is a length and the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Bytes(Arc<[u8]>);

impl Bytes {
    /// Shares the bytes.
    pub fn shared(&self) -> Arc<[u8]> {
        self.0.clone()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        Bytes(bytes.into())
    }
}

impl From<Arc<[u8]>> for Bytes {
    fn from(bytes: Arc<[u8]>) -> Bytes {
        Bytes(bytes)
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Bytes({})", self.0.len())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        struct Content;
        impl<'de> serde::de::Visitor<'de> for Content {
            type Value = Bytes;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("bytes")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(Arc::from(bytes)))
            }

            fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes(bytes.into()))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut bytes: A) -> Result<Bytes, A::Error> {
                let mut collected = Vec::new();
                while let Some(byte) = bytes.next_element()? {
                    collected.push(byte);
                }
                Ok(Bytes(collected.into()))
            }
        }
        deserializer.deserialize_bytes(Content)
    }
}
