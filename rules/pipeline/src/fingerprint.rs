//! Fingerprints of stages: digests of the crates and tables they are made of, computed when this crate is built.

use std::collections::BTreeSet;

use graph::{Digest, KeyBuilder};

/// A crate that stages call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

    const fn folder(self) -> &'static str {
        match self {
            Self::Ipu21 => "device/ipu21",
            Self::Toolchain => "device/toolchain",
            Self::Package => "device/package",
            Self::Simulator => "device/simulator",
            Self::Driver => "device/driver",
            Self::Exchange => "rules/exchange",
            Self::Reference => "rules/reference",
            Self::Compiler => "rules/compiler",
        }
    }

    /// The crates it is built with: their code is its code too.
    const fn built_with(self) -> &'static [Crate] {
        match self {
            Self::Ipu21 | Self::Reference => &[],
            Self::Toolchain | Self::Package | Self::Simulator | Self::Exchange => &[Self::Ipu21],
            Self::Driver => &[Self::Ipu21, Self::Package, Self::Simulator],
            Self::Compiler => &[Self::Ipu21, Self::Toolchain, Self::Package, Self::Exchange],
        }
    }
}

/// What the stages of a program's compilation are made of.
pub(crate) const COMPILATION: &[Crate] = &[Crate::Ipu21, Crate::Toolchain, Crate::Exchange, Crate::Compiler];

/// The fingerprint of a stage that calls these crates, and so all they are built with; the stages' own crate and the locked library versions always count.
pub(crate) fn of(crates: &[Crate]) -> Digest {
    let mut key = KeyBuilder::new("fingerprint");
    key.text(env!("FINGERPRINT_PIPELINE")).text(env!("FINGERPRINT_LOCK"));
    for name in all(crates) {
        key.text(name.digest());
    }
    key.finish()
}

/// `crates` and all they are built with, each once.
fn all(crates: &[Crate]) -> BTreeSet<Crate> {
    crates.iter().flat_map(|name| name.built_with().iter().chain([name])).copied().collect()
}

/// The parts of [`of`] by name, for explanations.
pub(crate) fn parts(crates: &[Crate]) -> Vec<(&'static str, Digest)> {
    let own = [("rules/pipeline", env!("FINGERPRINT_PIPELINE")), ("Cargo.lock", env!("FINGERPRINT_LOCK"))];
    let others = all(crates).into_iter().map(|name| (name.folder(), name.digest()));
    // Written by the build script as hexadecimal digits.
    own.into_iter().chain(others).filter_map(|(name, digest)| Some((name, digest.parse().ok()?))).collect()
}

/// Everything a `program` target runs.
pub(crate) const PROGRAM: &[Crate] = &[Crate::Ipu21, Crate::Toolchain, Crate::Exchange, Crate::Compiler, Crate::Package, Crate::Simulator];

/// Everything a `run` target runs.
pub(crate) const RUN: &[Crate] =
    &[Crate::Ipu21, Crate::Toolchain, Crate::Exchange, Crate::Compiler, Crate::Package, Crate::Simulator, Crate::Driver, Crate::Reference];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Crate;

    /// Every crate by its name, with its manifest.
    const MANIFESTS: [(&str, Crate, &str); 8] = [
        ("ipu21", Crate::Ipu21, include_str!("../../../device/ipu21/Cargo.toml")),
        ("toolchain", Crate::Toolchain, include_str!("../../../device/toolchain/Cargo.toml")),
        ("package", Crate::Package, include_str!("../../../device/package/Cargo.toml")),
        ("simulator", Crate::Simulator, include_str!("../../../device/simulator/Cargo.toml")),
        ("driver", Crate::Driver, include_str!("../../../device/driver/Cargo.toml")),
        ("exchange", Crate::Exchange, include_str!("../../exchange/Cargo.toml")),
        ("reference", Crate::Reference, include_str!("../../reference/Cargo.toml")),
        ("compiler", Crate::Compiler, include_str!("../../compiler/Cargo.toml")),
    ];

    #[test]
    fn fingerprints_hold_every_crate_that_a_crate_is_built_with() {
        for (name, of, manifest) in MANIFESTS {
            let manifest: toml::Table = manifest.parse().expect("a manifest");
            let dependencies = manifest["dependencies"].as_table().expect("a table");
            let ours = MANIFESTS.iter().filter(|(other, ..)| dependencies.contains_key(*other));
            let needed: BTreeSet<Crate> = ours.flat_map(|(_, other, _)| other.built_with().iter().chain([other])).copied().collect();
            assert!(needed == of.built_with().iter().copied().collect(), "{name}");
        }
    }
}
