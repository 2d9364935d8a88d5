//! The manifest's cycle models against measured calls: the relative error over a spread of shapes, its mean and its largest.

use std::collections::BTreeMap;

use crate::attention::Softmax;
use crate::bench::{Call, Outcome};
use crate::copies;
use crate::figures::kernel;
use crate::product::Shape;

/// What a model's expression reads, and the call.
type Case = (BTreeMap<String, i64>, Outcome);

/// A model, and how far it may be off: on average and at most, as parts of the measured clocks.
pub(crate) struct Model {
    pub(crate) name: &'static str,
    mean: f64,
    largest: f64,
    cases: fn(&'static str) -> Vec<Case>,
}

/// How far a model is off.
pub(crate) struct Errors {
    pub(crate) cases: usize,
    pub(crate) mean: f64,
    pub(crate) largest: f64,
    /// Where, with the clocks.
    pub(crate) worst: String,
}

#[rustfmt::skip]
pub(crate) const MODELS: &[Model] = &[
    Model { name: "gemm",         mean: 0.02, largest: 0.05, cases: products },
    Model { name: "gemm_add",     mean: 0.02, largest: 0.05, cases: products },
    Model { name: "gemm_f32",     mean: 0.02, largest: 0.05, cases: products },
    Model { name: "copy",         mean: 0.03, largest: 0.05, cases: dense },
    Model { name: "clear",        mean: 0.03, largest: 0.05, cases: dense },
    Model { name: "scale",        mean: 0.03, largest: 0.05, cases: scaled },
    Model { name: "join",         mean: 0.0,  largest: 0.0,  cases: |name| vec![(symbols(&[]), Call::new(name, &[], &[]).run())] },
    Model { name: "copy_panels",  mean: 0.04, largest: 0.10, cases: panels },
    Model { name: "softmax",      mean: 0.04, largest: 0.10, cases: softmaxes },
    Model { name: "normalise",    mean: 0.04, largest: 0.10, cases: |name| rows(name, "O_PANEL") },
    Model { name: "bias_columns", mean: 0.04, largest: 0.10, cases: |name| rows(name, "OUT_PANEL") },
    Model { name: "bias_rows",    mean: 0.04, largest: 0.10, cases: |name| rows(name, "OUT_PANEL") },
    Model { name: "merge",        mean: 0.04, largest: 0.10, cases: merges },
    Model { name: "reduce",       mean: 0.04, largest: 0.10, cases: sums },
    Model { name: "transpose",    mean: 0.04, largest: 0.10, cases: transposes },
];

impl Model {
    pub(crate) fn errors(&self) -> Errors {
        let known = kernel(self.name);
        let (mut sum, mut largest, mut worst) = (0.0, 0.0, String::new());
        let cases = (self.cases)(self.name);
        for (symbols, outcome) in &cases {
            let planned = known.cycles.evaluate(symbols).expect("the model evaluates");
            let measured = outcome.clocks() as f64;
            let error = (planned as f64 - measured) / measured;
            sum += error.abs();
            if error.abs() >= largest {
                (largest, worst) = (error.abs(), format!("{symbols:?}: planned {planned}, measured {measured}, {:+.1} %", 100.0 * error));
            }
        }
        Errors { cases: cases.len(), mean: sum / cases.len() as f64, largest, worst }
    }
}

#[test]
fn every_model_is_as_near_as_it_says() {
    for model in MODELS {
        let errors = model.errors();
        assert!(errors.cases > 0, "{}", model.name);
        assert!(errors.largest <= model.largest, "{} {}", model.name, errors.worst);
        assert!(errors.mean <= model.mean, "{}: mean error {:.1} %", model.name, 100.0 * errors.mean);
    }
}

#[test]
fn every_kernel_of_the_manifest_has_its_model_tested() {
    let kernels = toolchain::manifest::parse(kernels::manifest()).expect("the manifest is sound");
    let tested = |name: &str| MODELS.iter().any(|model| model.name == name);
    assert!(kernels.iter().all(|kernel| tested(&kernel.name)) && kernels.len() == MODELS.len());
}

fn symbols(pairs: &[(&str, i64)]) -> BTreeMap<String, i64> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

fn zeros(name: &str, defines: &[(&str, i64)]) -> Case {
    let call = Call::zeros(name, defines);
    (call.symbols(), call.run())
}

#[rustfmt::skip]
const PRODUCTS: &[(usize, usize, usize, bool, usize)] = &[
    (1, 1, 1, false, 0), (1, 5, 5, true, 0),  (6, 5, 2, true, 0),   (7, 2, 1, false, 0),  (12, 5, 5, true, 0),   (12, 5, 6, false, 0),
    (13, 3, 2, true, 0), (16, 1, 4, false, 0), (16, 6, 3, true, 0), (18, 4, 1, true, 0),  (23, 2, 1, false, 0),  (24, 24, 2, true, 0),
    (25, 1, 3, false, 0), (29, 3, 3, true, 0), (46, 6, 2, true, 0), (46, 2, 1, false, 140), (64, 2, 4, true, 0), (80, 5, 1, false, 0),
    (92, 1, 1, true, 0), (92, 5, 6, true, 0), (96, 5, 5, false, 0), (180, 3, 2, true, 0), (300, 5, 1, true, 0),
];

fn products(name: &'static str) -> Vec<Case> {
    let shapes = PRODUCTS.iter().filter(|(rows, ..)| name != "gemm_add" || *rows >= 25);
    let shapes = shapes.map(|&(rows, kb, cg, wide, spare)| Shape { rows, kb, cg, wide, spare });
    shapes.map(|shape| (shape.call(name).symbols(), shape.run(name).3)).collect()
}

fn dense(name: &'static str) -> Vec<Case> {
    let run = if name == "copy" { copies::copy } else { copies::clear };
    [0, 8, 40, 96, 1000, 2944, 8192, 65536].map(|count| (symbols(&[("bytes", i64::from(count))]), run(count))).into()
}

fn panels(_: &'static str) -> Vec<Case> {
    let run = |(runs, count, src_panel, dst_panel)| {
        let call = copies::panels_call(runs, count, src_panel, dst_panel);
        (call.symbols(), copies::copy_panels(runs, count, src_panel, dst_panel))
    };
    copies::PANELS.map(run).into()
}

fn softmaxes(_: &'static str) -> Vec<Case> {
    let mut cases = Vec::new();
    for rows in [1, 5, 6, 13, 46, 92] {
        for (groups, tail) in [(1, 1), (1, 16), (2, 7), (3, 12), (6, 5), (6, 12), (6, 16)] {
            cases.extend([1.0, 0.125].map(|scale| Softmax { rows, groups, tail, scale, spare: 0 }));
        }
    }
    cases.into_iter().map(|case| (case.symbols(), case.run().1)).collect()
}

fn rows(name: &'static str, panel: &'static str) -> Vec<Case> {
    let shapes = [(1, 1), (5, 2), (6, 5), (13, 3), (16, 24), (46, 2), (92, 5)];
    shapes.map(|(rows, cg)| zeros(name, &[("ROWS", rows), ("CG", cg), (panel, 32 * rows)])).into()
}

fn scaled(_: &'static str) -> Vec<Case> {
    let counts = [8, 40, 96, 1000, 2560, 8192];
    let symbols = |count| symbols(&[("BYTES", i64::from(count)), ("SCALE", i64::from(0.125_f32.to_bits()))]);
    counts.map(|count| (symbols(count), copies::scale(count, 0.125))).into()
}

fn merges(name: &'static str) -> Vec<Case> {
    let few = [(1, 1, 1), (1, 5, 16), (1, 6, 46), (2, 5, 16), (2, 3, 4), (3, 5, 9), (3, 2, 3)];
    let shapes = few.into_iter().chain([(5, 2, 2), (7, 1, 3), (12, 5, 8), (46, 3, 2)]);
    shapes.map(|(rows, cg, parts)| zeros(name, &[("ROWS", rows), ("CG", cg), ("PARTS", parts), ("OUT_PANEL", 32 * rows)])).collect()
}

#[rustfmt::skip]
const SUMS: [(i64, i64); 17] = [
    (1, 8), (1, 2944), (2, 16), (2, 48), (2, 96), (2, 23_552), (3, 56), (3, 4096), (4, 40), (4, 1024),
    (4, 23_552), (8, 640), (8, 104), (16, 2048), (16, 200), (17, 600), (40, 1024),
];

fn sums(name: &'static str) -> Vec<Case> {
    SUMS.map(|(parts, bytes)| zeros(name, &[("PARTS", parts), ("BYTES", bytes)])).into()
}

fn transposes(name: &'static str) -> Vec<Case> {
    let shapes = [(16, 1), (16, 5), (48, 3), (96, 6), (80, 2)];
    shapes.map(|(rows, cg)| zeros(name, &[("ROWS", rows), ("CG", cg), ("SRC_PANEL", 32 * rows), ("DST_PANEL", 512 * cg)])).into()
}
