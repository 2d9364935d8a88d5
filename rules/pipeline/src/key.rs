//! Keys of queries that fan out, and the helpers all stages share.

#![allow(missing_docs, reason = "salsa's macro generates constructors and getters without documentation")]

use compiler::program::Variant;
use graph::{Digest, Failure, Label, StageSpec, Target};
use serde::Serialize;

use crate::fingerprint::{self, Crate};

/// A tensor of a `tensors` target.
#[salsa::interned(revisions = usize::MAX, debug)]
pub struct TensorKey<'db> {
    #[returns(copy)]
    pub target: Target,
    #[returns(ref)]
    pub name: String,
}

/// A kernel variant as a program sees it: the first of its libraries that has the kernel counts.
#[salsa::interned(revisions = usize::MAX, debug)]
pub struct KernelKey<'db> {
    #[returns(copy)]
    pub program: Target,
    #[returns(ref)]
    pub variant: Variant,
}

/// A finalist of a program, by rank.
#[salsa::interned(revisions = usize::MAX, debug)]
pub struct FinalistKey<'db> {
    #[returns(copy)]
    pub program: Target,
    #[returns(copy)]
    pub index: u32,
}

/// An exchange phase of a finalist; in round 1 with the pairs that placement gave up.
#[salsa::interned(revisions = usize::MAX, debug)]
pub struct PhaseKey<'db> {
    #[returns(copy)]
    pub program: Target,
    #[returns(copy)]
    pub finalist: u32,
    #[returns(copy)]
    pub phase: u32,
    #[returns(copy)]
    pub round: u32,
}

/// A graph input or parameter of a run.
#[salsa::interned(revisions = usize::MAX, debug)]
pub struct BindingKey<'db> {
    #[returns(copy)]
    pub run: Target,
    #[returns(ref)]
    pub name: String,
}

/// A stage made of these crates.
pub(crate) fn spec(name: &'static str, crates: &[Crate], label: &Label) -> StageSpec {
    StageSpec::new(name, fingerprint::of(crates), label)
}

/// The digest of a value by its encoding; for inputs of stages that are no artifacts.
pub(crate) fn digest_of(value: &impl Serialize) -> Digest {
    let bytes = postcard::to_stdvec(value).expect("plain values have an encoding");
    Digest::of(&bytes)
}

/// A build failure of several typed faults, in their order.
pub(crate) fn faults<F: std::fmt::Display>(faults: &[F]) -> Failure {
    Failure::all(graph::Cause::Build, faults.iter().map(ToString::to_string).collect())
}

/// An input failure of several typed faults, in their order.
pub(crate) fn input_faults<F: std::fmt::Display>(faults: &[F]) -> Failure {
    Failure::all(graph::Cause::Input, faults.iter().map(ToString::to_string).collect())
}
