//! A real board under `/dev/ipuN`: opened, locked and mapped, with a clear word on everything that is missing.
//!
//! Three things must be there: the device node, and two vendor-derived files that this project cannot make, the secondary loader
//! and the board's configuration capture (machine.md f.5, f.6). [`Board::open`] reports all that are missing at once. The load
//! protocol itself (machine.md f.4 to f.8) is not spoken yet.

use std::{
    fs::{File, OpenOptions},
    io,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    ptr::NonNull,
};

use nix::{
    fcntl::{Flock, FlockArg},
    sys::mman::{MapFlags, ProtFlags, mmap, munmap},
};

/// Bytes of the configuration space (machine.md f.1).
const CONFIGURATION_BYTES: usize = 0x8_0000;
/// First bytes of a configuration capture (machine.md f.5).
const CAPTURE_MAGIC: &[u8; 8] = b"IPUCFG1\0";
/// First bytes of an ELF file.
const ELF_MAGIC: &[u8; 4] = b"\x7fELF";

/// Where the things are that a board needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardFiles {
    /// `/dev/ipu0` and so on.
    pub device: PathBuf,
    /// The vendor's secondary boot loader, an ELF file.
    pub secondary_loader: Option<PathBuf>,
    /// Capture of the configuration writes of a vendor initialisation of this very board.
    pub configuration: Option<PathBuf>,
    /// Advisory lock file of the board, held for the whole session.
    pub lock: PathBuf,
}

/// One thing a board session lacks.
#[derive(Debug)]
pub enum Missing {
    /// The device node cannot be opened.
    Device {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        cause: io::Error,
    },
    /// No secondary loader was named.
    LoaderUnnamed,
    /// The secondary loader cannot be read or is no ELF file.
    Loader {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
    /// No configuration capture was named.
    ConfigurationUnnamed,
    /// The configuration capture cannot be read or has a wrong form.
    Configuration {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
    /// Another session holds the board.
    Busy {
        /// The lock file.
        lock: PathBuf,
    },
    /// The lock file cannot be made.
    Lock {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        cause: io::Error,
    },
    /// The configuration space cannot be mapped.
    Mapping {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        cause: io::Error,
    },
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Device { path, cause } => write!(
                f,
                "device node {}: {cause}; it appears when the board's kernel driver is loaded, and the user needs read and write access to it",
                path.display()
            ),
            Self::LoaderUnnamed => f.write_str(
                "secondary loader: no file named; it is the secondary boot loader ELF that the vendor's software puts on a C600, copied from an installation of it",
            ),
            Self::Loader { path, cause } => write!(
                f,
                "secondary loader {}: {cause}; expected the ELF file of the vendor's secondary boot loader",
                path.display()
            ),
            Self::ConfigurationUnnamed => f.write_str(
                "board configuration: no file named; it is a capture of the configuration writes of a vendor initialisation of this very board (IPUCFG1, a count, pairs of offset and value)",
            ),
            Self::Configuration { path, cause } => write!(
                f,
                "board configuration {}: {cause}; expected a capture of the configuration writes of a vendor initialisation of this very board",
                path.display()
            ),
            Self::Busy { lock } => write!(f, "the board is in use: another session holds {}", lock.display()),
            Self::Lock { path, cause } => write!(f, "lock file {}: {cause}", path.display()),
            Self::Mapping { path, cause } => write!(f, "configuration space of {}: {cause}", path.display()),
        }
    }
}

/// Everything a board session lacks, in a fixed order.
#[derive(Debug)]
pub struct BoardFault {
    /// At least one.
    pub missing: Vec<Missing>,
}

impl std::fmt::Display for BoardFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, missing) in self.missing.iter().enumerate() {
            write!(f, "{}{missing}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for BoardFault {}

/// An opened board, held exclusively until dropped.
#[derive(Debug)]
pub struct Board {
    registers: Registers,
    loader: Vec<u8>,
    configuration: Vec<(u32, u32)>,
    _lock: Flock<File>,
}

impl Board {
    /// Checks the files, takes the lock, opens the device and maps its configuration space. Writes nothing to the board.
    pub fn open(files: &BoardFiles) -> Result<Self, BoardFault> {
        let loader = named(files.secondary_loader.as_deref(), Missing::LoaderUnnamed, read_loader);
        let configuration = named(files.configuration.as_deref(), Missing::ConfigurationUnnamed, read_configuration);
        let registers = Registers::open(&files.device);
        match (registers, loader, configuration) {
            (Ok(registers), Ok(loader), Ok(configuration)) => {
                let lock = take_lock(&files.lock).map_err(|missing| BoardFault { missing: vec![missing] })?;
                Ok(Self { registers, loader, configuration, _lock: lock })
            }
            (registers, loader, configuration) => {
                let missing = [registers.err(), loader.err(), configuration.err()];
                Err(BoardFault { missing: missing.into_iter().flatten().collect() })
            }
        }
    }

    /// Size of the secondary loader and number of configuration writes, for reports.
    pub fn figures(&self) -> (usize, usize) {
        (self.loader.len(), self.configuration.len())
    }

    /// A configuration register; `offset` is a multiple of 4 below 0x80000.
    pub fn register(&self, offset: usize) -> Option<u32> {
        self.registers.read(offset)
    }
}

fn named<T>(path: Option<&Path>, unnamed: Missing, read: impl FnOnce(&Path) -> Result<T, Missing>) -> Result<T, Missing> {
    read(path.ok_or(unnamed)?)
}

fn read_loader(path: &Path) -> Result<Vec<u8>, Missing> {
    let fault = |cause: String| Missing::Loader { path: path.to_owned(), cause };
    let bytes = std::fs::read(path).map_err(|cause| fault(cause.to_string()))?;
    match bytes.starts_with(ELF_MAGIC) {
        true => Ok(bytes),
        false => Err(fault("not an ELF file".to_owned())),
    }
}

/// Pairs of offset and value in order.
fn read_configuration(path: &Path) -> Result<Vec<(u32, u32)>, Missing> {
    let fault = |cause: String| Missing::Configuration { path: path.to_owned(), cause };
    let bytes = std::fs::read(path).map_err(|cause| fault(cause.to_string()))?;
    let Some(rest) = bytes.strip_prefix(CAPTURE_MAGIC) else { return Err(fault("does not start with IPUCFG1".to_owned())) };
    let words: Vec<u32> = rest.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    let count = words.first().copied().unwrap_or(0) as usize;
    let expected = 12 + 8 * count;
    match bytes.len() == expected && count > 0 {
        true => Ok(words[1..].chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()),
        false => Err(fault(format!("{count} records need {expected} bytes, found {}", bytes.len()))),
    }
}

fn take_lock(path: &Path) -> Result<Flock<File>, Missing> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(|cause| Missing::Lock { path: path.to_owned(), cause })?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        nix::errno::Errno::EWOULDBLOCK => Missing::Busy { lock: path.to_owned() },
        errno => Missing::Lock { path: path.to_owned(), cause: errno.into() },
    })
}

/// The mapped configuration space.
#[derive(Debug)]
struct Registers {
    base: NonNull<std::ffi::c_void>,
    _device: File,
}

impl Registers {
    fn open(path: &Path) -> Result<Self, Missing> {
        let device = OpenOptions::new().read(true).write(true).open(path);
        let device = device.map_err(|cause| Missing::Device { path: path.to_owned(), cause })?;
        let length = NonZeroUsize::new(CONFIGURATION_BYTES).expect("the configuration space is not empty");
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh shared mapping at an address of the kernel's choice aliases no Rust object; it lives as long as `Self`
        // and is reached only through `read`, within its length.
        #[allow(unsafe_code, reason = "device registers exist only as mapped memory")]
        let base = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, &device, 0) };
        let base = base.map_err(|errno| Missing::Mapping { path: path.to_owned(), cause: errno.into() })?;
        Ok(Self { base, _device: device })
    }

    fn read(&self, offset: usize) -> Option<u32> {
        if !offset.is_multiple_of(4) || offset >= CONFIGURATION_BYTES {
            return None;
        }
        // SAFETY: the offset is aligned and inside the mapping, which is valid while `self` lives; device registers may change at
        // any time, hence the volatile read.
        #[allow(unsafe_code, reason = "device registers exist only as mapped memory")]
        let value = unsafe { self.base.cast::<u32>().add(offset / 4).read_volatile() };
        Some(value)
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: base and length are those of the mapping made in `open`; nothing borrows from it.
        #[allow(unsafe_code, reason = "device registers exist only as mapped memory")]
        let unmapped = unsafe { munmap(self.base, CONFIGURATION_BYTES) };
        if let Err(errno) = unmapped {
            tracing::warn!(%errno, "the configuration space could not be unmapped");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(directory: &Path) -> BoardFiles {
        BoardFiles { device: directory.join("ipu0"), secondary_loader: None, configuration: None, lock: directory.join("ipu0.lock") }
    }

    fn capture(records: &[(u32, u32)], count: u32) -> Vec<u8> {
        let words = std::iter::once(count).chain(records.iter().flat_map(|record| [record.0, record.1]));
        CAPTURE_MAGIC.iter().copied().chain(words.flat_map(u32::to_le_bytes)).collect()
    }

    #[test]
    fn everything_missing_is_named_at_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let fault = Board::open(&files(directory.path())).expect_err("nothing is there");
        let kinds: Vec<&str> = fault
            .missing
            .iter()
            .map(|missing| match missing {
                Missing::Device { .. } => "device",
                Missing::LoaderUnnamed => "loader",
                Missing::ConfigurationUnnamed => "configuration",
                _ => "other",
            })
            .collect();
        assert_eq!(kinds, ["device", "loader", "configuration"]);
        assert_eq!(fault.to_string().lines().count(), 3);
    }

    #[test]
    fn a_capture_with_a_wrong_count_is_refused_with_both_sizes() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("board.cfg");
        std::fs::write(&path, capture(&[(0x2000, 1)], 2)).expect("written");
        let missing = read_configuration(&path).expect_err("one record of two");
        assert!(missing.to_string().contains("2 records need 28 bytes, found 20"), "{missing}");
    }

    #[test]
    fn a_complete_set_of_files_opens_and_the_second_session_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut files = files(directory.path());
        let device = File::create(&files.device).expect("a stand-in for the device node");
        device.set_len(CONFIGURATION_BYTES as u64).expect("its size");
        files.secondary_loader = Some(directory.path().join("loader.elf"));
        files.configuration = Some(directory.path().join("board.cfg"));
        std::fs::write(directory.path().join("loader.elf"), b"\x7fELF....").expect("written");
        std::fs::write(directory.path().join("board.cfg"), capture(&[(0x2000, 7)], 1)).expect("written");
        let board = Board::open(&files).expect("everything is there");
        assert_eq!(board.figures(), (8, 1));
        assert_eq!(board.register(0x302c), Some(0));
        assert_eq!(board.register(CONFIGURATION_BYTES), None);
        let fault = Board::open(&files).expect_err("the lock is held");
        assert!(matches!(fault.missing.as_slice(), [Missing::Busy { .. }]));
    }
}
