//! The file: magic, version, lengths, metadata, contents, checksum.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | [`MAGIC`] |
//! | 4 | [`VERSION`] |
//! | 8 | bytes of the metadata |
//! | 4 | number of blobs, then 4 bytes for the size of each |
//! | | metadata, postcard |
//! | | blobs |
//! | 32 | blake3 of everything before |
//!
//! Integers are little-endian. A reader refuses another version, so every change of a stored type raises [`VERSION`].

use std::fmt;
use std::sync::Arc;

use crate::image::Blobs;
use crate::package::Package;

/// First bytes of every package.
pub const MAGIC: [u8; 8] = *b"IPUEXE\r\n";
/// Version of the format that this crate writes and reads.
pub const VERSION: u32 = 1;

const CHECKSUM_BYTES: usize = 32;

/// Why bytes are not a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFault {
    /// It does not start like one.
    Magic {
        /// First bytes, at most 8.
        found: Vec<u8>,
    },
    /// A version this crate does not know.
    Version {
        /// The version this crate reads.
        expected: u32,
        /// The file's.
        found: u32,
    },
    /// The file ends early or is longer than its own lengths say.
    Length {
        /// What is being read.
        part: &'static str,
        /// Bytes that the lengths in the file ask for.
        expected_bytes: u64,
        /// Bytes there are.
        found_bytes: u64,
    },
    /// Some byte differs from what was written.
    Checksum {
        /// blake3 of the contents, hexadecimal.
        expected: String,
        /// blake3 stored at the end, hexadecimal.
        found: String,
    },
    /// The checksum is right but the metadata cannot be read.
    Metadata {
        /// The decoder's message.
        message: String,
    },
}

impl fmt::Display for ReadFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { found } => write!(out, "not an .ipuexe package: it starts with {found:02x?}, expected {MAGIC:02x?}"),
            Self::Version { expected, found } => write!(out, "package format {found}, this program reads format {expected}"),
            Self::Length { part, expected_bytes, found_bytes } => {
                write!(out, "{part}: expected {expected_bytes} bytes, found {found_bytes}: the package is cut short or has bytes added")
            }
            Self::Checksum { expected, found } => {
                write!(out, "checksum is {found}, the contents have {expected}: the package was changed or damaged")
            }
            Self::Metadata { message } => write!(out, "metadata: {message}"),
        }
    }
}

impl std::error::Error for ReadFault {}

impl Package {
    /// The file's bytes; the same package always gives the same.
    ///
    /// # Panics
    /// When a blob has 4 GiB or more.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let metadata = postcard::to_stdvec(self).expect("plain data without maps of unknown length always serialises");
        let blobs = self.blobs.contents();
        let sizes: Vec<u32> = blobs.iter().map(|blob| u32::try_from(blob.len()).expect("a blob is smaller than tile memory")).collect();
        let mut file = Vec::new();
        file.extend(MAGIC);
        file.extend(VERSION.to_le_bytes());
        file.extend((metadata.len() as u64).to_le_bytes());
        file.extend((blobs.len() as u32).to_le_bytes());
        file.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
        file.extend(metadata);
        blobs.iter().for_each(|blob| file.extend_from_slice(blob));
        let checksum = blake3::hash(&file);
        file.extend(checksum.as_bytes());
        file
    }

    /// The package in a file's bytes. Its contents are not judged: see [`Package::check`].
    ///
    /// # Errors
    /// [`ReadFault`] when the bytes are not what [`Package::write`] wrote; never panics, whatever the bytes.
    pub fn read(file: &[u8]) -> Result<Self, ReadFault> {
        let mut reader = Reader { rest: file };
        if !file.starts_with(&MAGIC) {
            return Err(ReadFault::Magic { found: file[..file.len().min(MAGIC.len())].to_vec() });
        }
        reader.take("magic", MAGIC.len() as u64)?;
        let found = reader.u32("version")?;
        if found != VERSION {
            return Err(ReadFault::Version { expected: VERSION, found });
        }
        verify(file)?;
        let metadata_bytes = u64::from(reader.u32("metadata size")?) | u64::from(reader.u32("metadata size")?) << 32;
        let count = reader.u32("number of blobs")?;
        let sizes = reader.take("blob sizes", u64::from(count) * 4)?;
        let metadata = reader.take("metadata", metadata_bytes)?;
        let mut package = decode(metadata)?;
        package.blobs = blobs(&mut reader, sizes)?;
        match reader.rest.len() {
            CHECKSUM_BYTES => Ok(package),
            found => Err(ReadFault::Length { part: "checksum", expected_bytes: CHECKSUM_BYTES as u64, found_bytes: found as u64 }),
        }
    }
}

fn verify(file: &[u8]) -> Result<(), ReadFault> {
    let Some((contents, stored)) = file.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(ReadFault::Length { part: "checksum", expected_bytes: CHECKSUM_BYTES as u64, found_bytes: file.len() as u64 });
    };
    let (computed, stored) = (blake3::hash(contents), blake3::Hash::from(*stored));
    match computed == stored {
        true => Ok(()),
        false => Err(ReadFault::Checksum { expected: computed.to_hex().to_string(), found: stored.to_hex().to_string() }),
    }
}

fn decode(metadata: &[u8]) -> Result<Package, ReadFault> {
    match postcard::take_from_bytes::<Package>(metadata) {
        Ok((package, [])) => Ok(package),
        Ok((_, rest)) => Err(ReadFault::Metadata { message: format!("{} bytes too many", rest.len()) }),
        Err(fault) => Err(ReadFault::Metadata { message: fault.to_string() }),
    }
}

fn blobs(reader: &mut Reader<'_>, sizes: &[u8]) -> Result<Blobs, ReadFault> {
    let mut blobs = Blobs::default();
    for size in sizes.as_chunks::<4>().0 {
        let contents = reader.take("blob", u64::from(u32::from_le_bytes(*size)))?;
        blobs.push(Arc::from(contents));
    }
    Ok(blobs)
}

/// What is left of the file.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, part: &'static str, bytes: u64) -> Result<&'a [u8], ReadFault> {
        let short = ReadFault::Length { part, expected_bytes: bytes, found_bytes: self.rest.len() as u64 };
        let Some((taken, rest)) = usize::try_from(bytes).ok().and_then(|bytes| self.rest.split_at_checked(bytes)) else {
            return Err(short);
        };
        self.rest = rest;
        Ok(taken)
    }

    fn u32(&mut self, part: &'static str) -> Result<u32, ReadFault> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(part, 4)?);
        Ok(u32::from_le_bytes(bytes))
    }
}
