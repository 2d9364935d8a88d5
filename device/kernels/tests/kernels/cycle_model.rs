//! The manifest's cycle models against measured calls.

use std::collections::BTreeMap;

use toolchain::manifest::{self, Kernel};

use crate::attention::Softmax;
use crate::bench::{Call, Outcome};
use crate::copies;
use crate::product::Shape;

fn kernel(name: &str) -> Kernel {
    let kernels = manifest::parse(kernels::manifest()).expect("the manifest is sound");
    kernels.into_iter().find(|kernel| kernel.name == name).expect("the kernel is listed")
}

/// The model's clocks for these parameters and values.
fn model(name: &str, symbols: &BTreeMap<String, i64>) -> f64 {
    kernel(name).cycles.evaluate(symbols).expect("the model evaluates") as f64
}

/// Largest relative error over the cases, which name themselves in the message.
fn check(name: &str, bound: f64, cases: impl IntoIterator<Item = (BTreeMap<String, i64>, Outcome)>) {
    for (symbols, outcome) in cases {
        let (planned, measured) = (model(name, &symbols), outcome.clocks() as f64);
        let error = (planned - measured) / measured;
        assert!(error.abs() <= bound, "{name} {symbols:?}: planned {planned}, measured {measured}, {:+.1} %", 100.0 * error);
    }
}

fn symbols(pairs: &[(&str, i64)]) -> BTreeMap<String, i64> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

#[rustfmt::skip]
const PRODUCTS: &[(usize, usize, usize, bool, usize)] = &[
    (1, 1, 1, false, 0), (1, 5, 5, true, 0),  (6, 5, 2, true, 0),   (7, 2, 1, false, 0),  (12, 5, 5, true, 0),   (12, 5, 6, false, 0),
    (13, 3, 2, true, 0), (16, 1, 4, false, 0), (16, 6, 3, true, 0), (18, 4, 1, true, 0),  (23, 2, 1, false, 0),  (24, 24, 2, true, 0),
    (25, 1, 3, false, 0), (29, 3, 3, true, 0), (46, 6, 2, true, 0), (46, 2, 1, false, 140), (64, 2, 4, true, 0), (80, 5, 1, false, 0),
    (92, 1, 1, true, 0), (92, 5, 6, true, 0), (96, 5, 5, false, 0), (180, 3, 2, true, 0), (300, 5, 1, true, 0),
];

#[test]
fn the_models_of_products_err_by_at_most_5_percent() {
    for name in ["gemm", "gemm_add", "gemm_f32"] {
        check(
            name,
            0.05,
            PRODUCTS.iter().filter(|(rows, ..)| name != "gemm_add" || *rows >= 25).map(|&(rows, kb, cg, wide, spare)| {
                let shape = Shape { rows, kb, cg, wide, spare };
                (shape.call(name).symbols(), shape.run(name).3)
            }),
        );
    }
}

#[test]
fn the_models_of_copies_err_by_at_most_5_percent() {
    let counts = [0, 8, 40, 96, 1000, 2944, 8192, 65536];
    check("copy", 0.05, counts.map(|count| (symbols(&[("bytes", i64::from(count))]), copies::copy(count))));
    check("clear", 0.05, counts.map(|count| (symbols(&[("bytes", i64::from(count))]), copies::clear(count))));
    check("join", 0.05, [(symbols(&[]), Call::new("join", &[], &[]).run())]);
}

#[test]
fn the_model_of_panel_copies_errs_by_at_most_10_percent() {
    check(
        "copy_panels",
        0.10,
        copies::PANELS.map(|(runs, count, src_panel, dst_panel)| {
            let call = copies::panels_call(runs, count, src_panel, dst_panel);
            (call.symbols(), copies::copy_panels(runs, count, src_panel, dst_panel))
        }),
    );
}

#[test]
fn the_model_of_softmax_errs_by_at_most_10_percent() {
    let mut cases = Vec::new();
    for rows in [1, 5, 6, 13, 46, 92] {
        for (groups, tail) in [(1, 1), (1, 16), (2, 7), (3, 12), (6, 5), (6, 12), (6, 16)] {
            cases.extend([1.0, 0.125].map(|scale| Softmax { rows, groups, tail, scale, spare: 0 }));
        }
    }
    check("softmax", 0.10, cases.into_iter().map(|case| (case.symbols(), case.run().1)));
}

#[test]
fn the_models_of_row_kernels_err_by_at_most_10_percent() {
    for (rows, cg) in [(1, 1), (5, 2), (6, 5), (13, 3), (16, 24), (46, 2), (92, 5)] {
        let case = |name: &str, panel: &str| {
            let call = Call::zeros(name, &[("ROWS", rows), ("CG", cg), (panel, 32 * rows)]);
            (call.symbols(), call.run())
        };
        check("normalise", 0.10, [case("normalise", "O_PANEL")]);
        check("bias_columns", 0.10, [case("bias_columns", "OUT_PANEL")]);
        check("bias_rows", 0.10, [case("bias_rows", "OUT_PANEL")]);
    }
}

#[test]
fn the_models_of_sums_and_transposes_err_by_at_most_10_percent() {
    let run = |name: &str, defines: &[(&str, i64)]| {
        let call = Call::zeros(name, defines);
        check(name, 0.10, [(call.symbols(), call.run())]);
    };
    for (rows, cg, parts) in
        [(1, 1, 1), (1, 5, 16), (1, 6, 46), (2, 5, 16), (2, 3, 4), (3, 5, 9), (3, 2, 3), (5, 2, 2), (7, 1, 3), (12, 5, 8), (46, 3, 2)]
    {
        run("merge", &[("ROWS", rows), ("CG", cg), ("PARTS", parts), ("OUT_PANEL", 32 * rows)]);
    }
    for (parts, bytes) in [(1, 8), (2, 48), (3, 56), (4, 1024), (8, 640), (16, 2048)] {
        run("reduce", &[("PARTS", parts), ("BYTES", bytes)]);
    }
    for (rows, cg) in [(16, 1), (16, 5), (48, 3), (96, 6), (80, 2)] {
        run("transpose", &[("ROWS", rows), ("CG", cg), ("SRC_PANEL", 32 * rows), ("DST_PANEL", 512 * cg)]);
    }
}
