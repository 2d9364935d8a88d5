//! Fingerprints of stages: digests of the crates and tables they are made of, computed when this crate is built.

use graph::{Digest, KeyBuilder};

/// A crate that stages call.
#[derive(Clone, Copy)]
pub(crate) enum Crate {
    Ipu21,
    Toolchain,
    Package,
    Simulator,
    Driver,
    Exchange,
    Reference,
    Compiler,
}

impl Crate {
    const fn digest(self) -> &'static str {
        match self {
            Self::Ipu21 => env!("FINGERPRINT_IPU21"),
            Self::Toolchain => env!("FINGERPRINT_TOOLCHAIN"),
            Self::Package => env!("FINGERPRINT_PACKAGE"),
            Self::Simulator => env!("FINGERPRINT_SIMULATOR"),
            Self::Driver => env!("FINGERPRINT_DRIVER"),
            Self::Exchange => env!("FINGERPRINT_EXCHANGE"),
            Self::Reference => env!("FINGERPRINT_REFERENCE"),
            Self::Compiler => env!("FINGERPRINT_COMPILER"),
        }
    }
}

/// What the stages of a program's compilation are made of.
pub(crate) const COMPILATION: &[Crate] = &[Crate::Ipu21, Crate::Toolchain, Crate::Exchange, Crate::Compiler];

/// The fingerprint of a stage that calls these crates; the stages' own crate and the locked library versions always count.
pub(crate) fn of(crates: &[Crate]) -> Digest {
    let mut key = KeyBuilder::new("fingerprint");
    key.text(env!("FINGERPRINT_PIPELINE")).text(env!("FINGERPRINT_LOCK"));
    for name in crates {
        key.text(name.digest());
    }
    key.finish()
}

/// Everything a `program` target runs.
pub(crate) fn program() -> Digest {
    of(&[Crate::Ipu21, Crate::Toolchain, Crate::Exchange, Crate::Compiler, Crate::Package, Crate::Simulator])
}

/// Everything a `run` target runs.
pub(crate) fn run() -> Digest {
    let crates = [Crate::Ipu21, Crate::Toolchain, Crate::Exchange, Crate::Compiler, Crate::Package, Crate::Simulator];
    of(&[&crates[..], &[Crate::Driver, Crate::Reference]].concat())
}
