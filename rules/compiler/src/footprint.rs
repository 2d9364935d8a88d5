//! Which bytes of an operand a kernel touches: equal runs at equal distances.
//!
//! A panel operand inside a larger buffer has gaps between its panels that belong to others. The manifest says how far
//! an operand reaches; this table says which bytes inside that reach are its own. Kernels not in the table are taken to
//! touch all of it.

use crate::program::Variant;

/// `count` runs of `bytes`, `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Runs, at least 1.
    pub count: u32,
    /// Bytes of a run.
    pub bytes: u32,
    /// Bytes from the start of a run to the next.
    pub stride: u32,
}

/// The footprint of an operand by kernel and operand name, if known.
#[must_use]
pub fn of(variant: &Variant, operand: &str) -> Option<Footprint> {
    let parameter = |name: &str| variant.parameters.get(name).and_then(|value| u32::try_from(*value).ok());
    let panels = |count: u32, rows: u32, stride: &str| Some(Footprint { count, bytes: rows * 32, stride: parameter(stride)? });
    let dense = |bytes: u32| Some(Footprint { count: 1, bytes, stride: bytes });
    let rows = parameter("ROWS");
    let groups = parameter("CG");
    #[rustfmt::skip]
    let found = match (variant.kernel.as_str(), operand) {
        ("gemm" | "gemm_add" | "gemm_f32", "x") => panels(parameter("KB")?, rows?, "X_PANEL"),
        ("gemm" | "gemm_add" | "gemm_f32", "w") => panels(parameter("KB")?, groups? * 16, "W_PANEL"),
        ("gemm" | "gemm_add" | "gemm_f32", "out") => panels(groups?, rows?, "OUT_PANEL"),
        ("bias_columns", "bias")               => dense(groups? * 32),
        ("bias_rows", "bias")                  => dense(rows?.next_multiple_of(4) * 2),
        ("bias_columns" | "bias_rows", "out")  => panels(groups?, rows?, "OUT_PANEL"),
        ("softmax", "s")                       => panels(parameter("KG")?, rows?, "S_PANEL"),
        ("softmax" | "normalise", "stats")     => dense(rows? * 8),
        ("normalise", "o")                     => panels(groups?, rows?, "O_PANEL"),
        ("merge", "parts")                     => dense(parameter("PARTS")? * groups? * rows? * 32),
        ("merge", "stats")                     => dense(parameter("PARTS")? * rows? * 8),
        ("merge", "out")                       => panels(groups?, rows?, "OUT_PANEL"),
        ("reduce", "parts")                    => dense(parameter("PARTS")? * parameter("BYTES")?),
        ("reduce", "out")                      => dense(parameter("BYTES")?),
        ("transpose", "src")                   => panels(groups?, rows?, "SRC_PANEL"),
        ("transpose", "dst")                   => panels(rows? / 16, groups? * 16, "DST_PANEL"),
        ("copy_panels", "src")                 => Some(Footprint { count: parameter("G")?, bytes: parameter("BYTES")?, stride: parameter("SRC_PANEL")? }),
        ("copy_panels", "dst")                 => Some(Footprint { count: parameter("G")?, bytes: parameter("BYTES")?, stride: parameter("DST_PANEL")? }),
        _ => None,
    };
    found
}
