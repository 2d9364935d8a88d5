//! `gemm`, `gemm_add` and `gemm_f32`.

use proptest::prelude::*;

use crate::bench::{Call, Outcome};
use crate::matrix::{Draw, Matrix, spans};

const X: u32 = 0x60000;
const W: u32 = 0x88000;
const PARTIALS: u32 = 0xb8000;
const OUT: u32 = 0xc0000;

/// A product: rows, blocks of inner channels, groups of channels, coefficients 128 bits at a time, spare rows between panels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    pub(crate) kb: usize,
    pub(crate) cg: usize,
    pub(crate) wide: bool,
    pub(crate) spare: usize,
}

impl Shape {
    fn x_panel(self) -> u32 {
        32 * (self.rows + self.spare) as u32
    }

    fn w_panel(self) -> u32 {
        512 * self.cg as u32 + 32 * self.spare as u32
    }

    fn out_panel(self) -> u32 {
        32 * (self.rows + 2 * self.spare) as u32
    }

    pub(crate) fn call(self, kernel: &str) -> Call {
        let mut defines = vec![
            ("ROWS", self.rows as i64),
            ("KB", self.kb as i64),
            ("CG", self.cg as i64),
            ("X_PANEL", i64::from(self.x_panel())),
            ("W_PANEL", i64::from(self.w_panel())),
            ("OUT_PANEL", i64::from(self.out_panel())),
            ("WMEM", i64::from(self.wide)),
        ];
        if kernel == "gemm_add" {
            defines.push(("ADD", 1));
        }
        let operands: &[u32] = if kernel == "gemm_f32" { &[X, W, OUT, PARTIALS] } else { &[X, W, OUT] };
        Call::new(kernel, &defines, operands)
    }

    /// The operands and what came of them; the last matrix is what `out` held before.
    pub(crate) fn run(self, kernel: &str) -> (Matrix, Matrix, Matrix, Outcome) {
        let mut draw = Draw::new((self.rows * 1000 + self.kb * 100 + self.cg) as u64);
        let x = Matrix::normal(self.rows, 16 * self.kb, 1.0, &mut draw);
        let w = Matrix::normal(16 * self.cg, 16 * self.kb, 0.25, &mut draw);
        let before = Matrix::normal(self.rows, 16 * self.cg, 1.0, &mut draw);
        let mut call = self.call(kernel).with(x.panels(X, self.x_panel())).with(w.panels(W, self.w_panel()));
        if kernel == "gemm_add" {
            call = call.with(before.panels(OUT, self.out_panel()));
        }
        (x, w, before, call.run())
    }
}

/// A result and the largest error that rounding explains: half an f16 step of every sum that is rounded to f16, which is the sum behind
/// each block of 16 inner channels, or the last one only, besides f32 sums.
fn expected(kernel: &str, kb: usize, before: f64, product: impl Fn(usize) -> f64) -> (f64, f64) {
    let (mut sum, mut slack) = (if kernel == "gemm_add" { before } else { 0.0 }, 1e-5);
    for block in 0..kb {
        sum += (0..16).map(|k| product(16 * block + k)).sum::<f64>();
        if kernel != "gemm_f32" || block + 1 == kb {
            slack += (sum.abs() + slack) * 2.0_f64.powi(-11);
        }
    }
    (sum, slack)
}

fn check(kernel: &str, shape: Shape) {
    let (x, w, before, outcome) = shape.run(kernel);
    let got = Matrix::from_panels(shape.rows, 16 * shape.cg, OUT, shape.out_panel(), |address, bytes| outcome.read(address, bytes));
    for row in 0..shape.rows {
        for channel in 0..16 * shape.cg {
            let (sum, slack) = expected(kernel, shape.kb, before.at(row, channel), |k| x.at(row, k) * w.at(channel, k));
            let error = (got.at(row, channel) - sum).abs();
            assert!(error <= slack, "{kernel} {shape:?}: row {row} channel {channel}: error {error}, expected at most {slack}");
        }
    }
    let mut written = spans(shape.rows, shape.cg, OUT, shape.out_panel());
    if kernel == "gemm_f32" {
        written.push((PARTIALS, 32 * shape.rows as u32));
    }
    outcome.untouched(PARTIALS, 0xe8000, &written);
}

const fn shape(rows: usize, kb: usize, cg: usize, wide: bool, spare: usize) -> Shape {
    Shape { rows, kb, cg, wide, spare }
}

/// Both schemes of the kernel, with equal and unequal shares, panels near and too far apart for a stride.
#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    shape(1, 1, 1, false, 0),  shape(2, 4, 1, true, 3),   shape(5, 3, 2, false, 1),  shape(6, 5, 2, true, 0),
    shape(7, 2, 1, false, 0),  shape(12, 5, 5, true, 0),  shape(12, 1, 3, false, 2), shape(13, 1, 2, true, 0),
    shape(13, 3, 2, true, 1),  shape(16, 2, 2, false, 0), shape(16, 6, 1, true, 9),  shape(18, 4, 1, true, 0),
    shape(19, 3, 2, true, 0),  shape(23, 2, 1, false, 0), shape(24, 3, 2, true, 4),  shape(25, 1, 3, false, 0),
    shape(25, 2, 3, true, 0),  shape(29, 3, 3, false, 2), shape(46, 6, 2, true, 0),  shape(46, 2, 1, false, 120),
    shape(92, 5, 3, true, 0),  shape(92, 2, 2, true, 60), shape(96, 3, 1, false, 0), shape(180, 3, 1, true, 0),
];

#[test]
fn products_with_f16_partial_sums_match_their_definition() {
    SHAPES.iter().for_each(|shape| check("gemm", *shape));
}

#[test]
fn products_that_are_added_match_their_definition() {
    SHAPES.iter().filter(|shape| shape.rows >= 25).for_each(|shape| check("gemm_add", *shape));
    check("gemm_add", shape(768, 2, 2, true, 0));
}

#[test]
fn products_with_f32_partial_sums_match_their_definition() {
    SHAPES.iter().for_each(|shape| check("gemm_f32", *shape));
}

#[test]
fn the_longest_stream_still_fits_its_strides() {
    check("gemm", shape(768, 2, 1, true, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn drawn_products_match_their_definition(
        rows in 1_usize..120, kb in 1_usize..=6, cg in 1_usize..=5, wide: bool, spare in 0_usize..6,
        kernel in prop::sample::select(vec!["gemm", "gemm_add", "gemm_f32"]),
    ) {
        check(kernel, shape(if kernel == "gemm_add" { rows.max(25) } else { rows }, kb, cg, wide, spare));
    }
}
