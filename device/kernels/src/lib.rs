//! The kernels of the standard library: assembly sources and the manifest that says how they may be called.
//!
//! A kernel is assembled once per shape; its parameters are the assembler's defines. The calling convention: the supervisor enters at the
//! kernel's entry symbol with `$m0` = the address of the argument block (operand addresses in manifest order, then the
//! values), `$m10` = the return address; `$m0` to `$m9` may change; all workers have joined when it returns. The worker base
//! addresses name six scratch areas of 256 bytes, and `$FP_ICTL` is 0.
//!
//! This crate only carries the texts. It knows no plan, no tile and no address; the toolchain assembles, the simulator measures.

/// A source file of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// File name, without a directory.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        &[$(File { name: $name, text: include_str!(concat!("../", $name)) }),*]
    };
}

#[rustfmt::skip]
const FILES: &[File] = embedded![
    "bias_columns.S", "bias_rows.S", "clear.S", "copy.S", "copy_panels.S", "gemm.S", "gemm_f32.S", "join.S", "merge.S",
    "normalise.S", "reduce.S", "scale.S", "softmax.S", "transpose.S",
];

/// The assembly sources, by name in ascending order. The manifest's `source` fields name them.
#[must_use]
pub const fn files() -> &'static [File] {
    FILES
}

/// The text of `manifest.toml`, in the format of `toolchain::manifest`.
#[must_use]
pub const fn manifest() -> &'static str {
    include_str!("../manifest.toml")
}
