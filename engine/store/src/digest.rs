//! The identity of bytes: a BLAKE3 hash, and the one way to combine several into a key.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// BLAKE3 of some bytes, 32 bytes; ordered by its bytes, written as 64 lower-case hexadecimal digits.
///
/// Serialised as the hexadecimal text in readable formats and as 32 raw bytes elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest that stands for a file that is not there; no known bytes hash to it.
    pub const ABSENT: Digest = Digest([0; 32]);

    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(*blake3::hash(bytes).as_bytes())
    }

    /// A digest computed elsewhere.
    pub const fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 12 hexadecimal digits, enough to tell digests apart in a message.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(formatter, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({})", self.short())
    }
}

/// Text that is not 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestFault {
    /// The text found.
    pub found: String,
}

impl fmt::Display for DigestFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` is not a digest: expected 64 hexadecimal digits", self.found)
    }
}

impl std::error::Error for DigestFault {}

impl FromStr for Digest {
    type Err = DigestFault;

    fn from_str(text: &str) -> Result<Digest, DigestFault> {
        let fault = || DigestFault { found: text.to_owned() };
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(fault());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).map_err(|_| fault())?;
        }
        Ok(Digest(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            text.parse().map_err(serde::de::Error::custom)
        } else {
            <[u8; 32]>::deserialize(deserializer).map(Digest)
        }
    }
}

/// Combines named parts into one digest. Every part is preceded by its length, so that no two
/// different lists of parts give the same bytes.
#[derive(Clone)]
pub struct KeyBuilder(blake3::Hasher);

impl KeyBuilder {
    /// Starts a key of the kind `domain`; keys of different domains never meet.
    pub fn new(domain: &str) -> KeyBuilder {
        let mut builder = KeyBuilder(blake3::Hasher::new());
        builder.text(domain);
        builder
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut KeyBuilder {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) -> &mut KeyBuilder {
        self.bytes(text.as_bytes())
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) -> &mut KeyBuilder {
        self.bytes(&number.to_le_bytes())
    }

    /// Adds a digest.
    pub fn digest(&mut self, digest: &Digest) -> &mut KeyBuilder {
        self.bytes(digest.as_bytes())
    }

    /// The digest of all parts so far.
    pub fn finish(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}
