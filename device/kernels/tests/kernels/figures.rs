//! Clocks of complete calls against the manifest's floors, and the bounds on products, softmax and copies.

use std::collections::BTreeMap;

use toolchain::manifest::{self, Kernel};

use crate::bench::Call;

pub(crate) fn kernel(name: &str) -> Kernel {
    let kernels = manifest::parse(kernels::manifest()).expect("the manifest is sound");
    kernels.into_iter().find(|kernel| kernel.name == name).expect("the kernel is listed")
}

/// A call and what the manifest says of it.
pub(crate) struct Figure {
    /// The kernel and what tells its variant from others.
    pub(crate) call: String,
    /// Clocks that the call took.
    pub(crate) measured: u64,
    /// Least clocks by what takes them.
    pub(crate) components: Vec<(&'static str, i64)>,
    /// The unit of work, and how many the call did.
    pub(crate) per: (String, i64),
}

impl Figure {
    /// `values` are the run-time values of the call.
    pub(crate) fn of(name: &str, defines: &[(&str, i64)], values: &[u32]) -> Self {
        let known = kernel(name);
        let mut symbols: BTreeMap<String, i64> = defines.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        symbols.extend(known.values.iter().cloned().zip(values.iter().map(|value| i64::from(*value))));
        let measured = Call::zeros_with(name, defines, values).run().clocks();
        let floor = known.floor.expect("every kernel of the library has a floor");
        let evaluate = |expression: &toolchain::expression::Expression| expression.evaluate(&symbols).expect("the floor evaluates");
        let per = floor.per.as_ref().map_or((String::new(), 0), |unit| (unit.name.clone(), evaluate(&unit.count)));
        let shape = symbols.iter().filter(|(name, _)| !name.ends_with("PANEL") && !["WMEM", "ADD"].contains(&name.as_str()));
        let printed = |name: &str, value: i64| if name == "SCALE" { f32::from_bits(value as u32).to_string() } else { value.to_string() };
        let shape: Vec<String> = shape.map(|(name, value)| format!("{}={}", name.to_lowercase(), printed(name, *value))).collect();
        let components = floor.components().map(|(name, expression)| (name, evaluate(expression)));
        Figure { call: format!("{name} {}", shape.join(" ")), measured, components: components.to_vec(), per }
    }

    /// The lower bound, clocks.
    pub(crate) fn bound(&self) -> i64 {
        self.components.iter().map(|(_, clocks)| *clocks).max().expect("a floor has components")
    }

    /// Clocks for each unit of work.
    pub(crate) fn each(&self) -> f64 {
        self.measured as f64 / self.per.1 as f64
    }
}

pub(crate) const ROWS: [i64; 6] = [12, 36, 92, 128, 180, 256];

/// A product of `cg` groups and `kb` blocks each, coefficients in region 1, dense panels.
pub(crate) fn product(name: &str, rows: i64, kb: i64, cg: i64) -> Figure {
    let mut defines = vec![("ROWS", rows), ("KB", kb), ("CG", cg), ("X_PANEL", 32 * rows), ("W_PANEL", 512 * cg), ("OUT_PANEL", 32 * rows)];
    defines.push(("WMEM", 1));
    if name == "gemm_add" {
        defines.push(("ADD", 1));
    }
    Figure::of(name, &defines, &[])
}

/// Clocks of one block more in each chain of a product of 6 groups.
pub(crate) fn product_block(rows: i64) -> f64 {
    let [five, six] = [5, 6].map(|kb| product("gemm", rows, kb, 6).measured as f64);
    (six - five) / 6.0
}

/// The bound on a block of 16 x 16 coefficients.
pub(crate) fn block_bound(rows: i64) -> f64 {
    (75 + 24 * rows.div_euclid(6) + 24 * i64::from(rows % 6 > 0)) as f64
}

/// Rows, keys, scale.
#[rustfmt::skip]
pub(crate) const SOFTMAXES: [(i64, i64, f32); 10] = [
    (92, 92, 1.0), (96, 96, 1.0), (48, 192, 1.0), (192, 48, 1.0), (46, 368, 1.0),
    (92, 92, 0.125), (96, 96, 0.125), (48, 192, 0.125), (192, 48, 0.125), (46, 368, 0.125),
];

pub(crate) fn softmax((rows, keys, scale): (i64, i64, f32)) -> Figure {
    let groups = (keys + 15) / 16;
    let defines =
        [("ROWS", rows), ("KG", groups), ("TAIL", keys - 16 * (groups - 1)), ("S_PANEL", 32 * rows), ("SCALE", i64::from(scale.to_bits()))];
    Figure::of("softmax", &defines, &[])
}

/// Runs, bytes of one, distances of sources and targets.
pub(crate) const PANELS: [(i64, i64, i64, i64); 9] = [
    (1, 8192, 8192, 8192),
    (5, 2944, 2944, 2944),
    (5, 2944, 3072, 2944),
    (5, 384, 384, 512),
    (6, 1472, 2944, 1472),
    (46, 512, 1024, 512),
    (92, 160, 192, 160),
    (23, 96, 128, 96),
    (2, 8192, 16384, 8192),
];

pub(crate) fn copy_panels((runs, bytes, src_panel, dst_panel): (i64, i64, i64, i64)) -> Figure {
    Figure::of("copy_panels", &[("G", runs), ("BYTES", bytes), ("SRC_PANEL", src_panel), ("DST_PANEL", dst_panel)], &[])
}

pub(crate) const COPIES: [u32; 5] = [0, 384, 2944, 8192, 65_536];

/// The bound on a copy of so many bytes.
pub(crate) fn copy_bound(bytes: i64) -> f64 {
    1.1 * bytes as f64 / 8.0 + 150.0
}

/// The other kernels at shapes of attention and of split products.
pub(crate) fn others() -> Vec<Figure> {
    let panels = |rows: i64, panel: &'static str| [("ROWS", rows), ("CG", 5), (panel, 32 * rows)];
    vec![
        product("gemm_add", 92, 5, 6),
        product("gemm_f32", 92, 5, 6),
        Figure::of("bias_columns", &panels(92, "OUT_PANEL"), &[]),
        Figure::of("bias_rows", &panels(92, "OUT_PANEL"), &[]),
        Figure::of("normalise", &panels(92, "O_PANEL"), &[]),
        Figure::of("merge", &[("ROWS", 12), ("CG", 5), ("PARTS", 8), ("OUT_PANEL", 384)], &[]),
        Figure::of("reduce", &[("PARTS", 2), ("BYTES", 23_552)], &[]),
        Figure::of("reduce", &[("PARTS", 4), ("BYTES", 23_552)], &[]),
        Figure::of("reduce", &[("PARTS", 8), ("BYTES", 8192)], &[]),
        Figure::of("transpose", &[("ROWS", 96), ("CG", 6), ("SRC_PANEL", 3072), ("DST_PANEL", 3072)], &[]),
        Figure::of("clear", &[], &[8192]),
    ]
}

#[test]
fn no_call_is_faster_than_its_floor() {
    let mut figures = others();
    figures.extend(ROWS.map(|rows| product("gemm", rows, 5, 6)));
    figures.extend(SOFTMAXES.map(softmax));
    figures.extend(PANELS.map(copy_panels));
    for figure in figures {
        assert!(figure.measured as i64 >= figure.bound(), "{}: {} < {}", figure.call, figure.measured, figure.bound());
    }
}

#[test]
fn every_kernel_has_a_floor() {
    let kernels = manifest::parse(kernels::manifest()).expect("the manifest is sound");
    assert!(kernels.iter().all(|kernel| kernel.floor.is_some()));
}

#[test]
fn a_block_of_a_product_takes_at_most_75_clocks_and_24_for_six_rows() {
    for rows in ROWS {
        let (block, bound) = (product_block(rows), block_bound(rows));
        assert!(block <= bound, "{rows} rows: {block} clocks a block, bound {bound}");
    }
}

/// A scale costs a quarter of a clock a score and takes most shapes beyond 2 clocks; a row of few keys does not pay for its own start.
#[test]
fn softmax_takes_at_most_2_clocks_a_score_without_scale_and_on_rows_of_92_keys_and_more() {
    for (rows, keys, scale) in SOFTMAXES {
        let bound = if keys < 92 { 2.2 } else { 2.0 } + if scale == 1.0 { 0.0 } else { 0.25 };
        let figure = softmax((rows, keys, scale));
        assert!(figure.each() <= bound, "{}: {} clocks a score, bound {bound}", figure.call, figure.each());
    }
}

/// Runs of less than 1,000 bytes take more: each starts and ends on its own.
#[test]
fn copies_take_at_most_a_tenth_more_than_their_words_and_150_clocks() {
    let dense = COPIES.map(|bytes| (Figure::of("copy", &[], &[bytes]), i64::from(bytes)));
    let panels = PANELS.iter().filter(|shape| shape.1 >= 1000).map(|shape| (copy_panels(*shape), shape.0 * shape.1));
    for (figure, bytes) in dense.into_iter().chain(panels) {
        let bound = copy_bound(bytes);
        assert!(figure.measured as f64 <= bound, "{}: {} clocks, bound {bound}", figure.call, figure.measured);
    }
}
