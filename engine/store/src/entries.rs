//! Lists of keys in bytes, 33 for each: a family's number, 0 for blobs, and a digest. Leases, references of records and what runs used
//! are such lists.

use crate::Digest;

/// One key.
pub(crate) type Entry = (u8, Digest);

/// Bytes of an entry.
pub(crate) const BYTES: usize = 33;

pub(crate) fn encode(entries: impl IntoIterator<Item = Entry>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (family, digest) in entries {
        bytes.push(family);
        bytes.extend_from_slice(digest.as_bytes());
    }
    bytes
}

/// The whole entries in `bytes`.
pub(crate) fn decode(bytes: &[u8]) -> impl Iterator<Item = Entry> {
    bytes.as_chunks::<BYTES>().0.iter().map(|[family, digest @ ..]| (*family, Digest::from_bytes(*digest)))
}
