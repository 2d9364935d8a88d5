//! `softmax`, `normalise` and `merge`.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::bench::{Call, Outcome};
use crate::matrix::{Draw, Matrix, single_bytes, singles, spans};

const STATS: u32 = 0x60000;
const S: u32 = 0x90000;
const PARTS: u32 = 0x64000;
const OUT: u32 = 0xd0000;

/// Rows, groups of 16 keys, keys of the last group, scale, spare rows between panels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Softmax {
    pub(crate) rows: usize,
    pub(crate) groups: usize,
    pub(crate) tail: usize,
    pub(crate) scale: f32,
    pub(crate) spare: usize,
}

impl Softmax {
    fn panel(self) -> u32 {
        32 * (self.rows + self.spare) as u32
    }

    fn call(self) -> Call {
        let defines = [
            ("ROWS", self.rows as i64),
            ("KG", self.groups as i64),
            ("TAIL", self.tail as i64),
            ("S_PANEL", i64::from(self.panel())),
            ("SCALE", i64::from(self.scale.to_bits())),
        ];
        Call::new("softmax", &defines, &[S, STATS])
    }

    /// What the manifest's expressions may read.
    pub(crate) fn symbols(self) -> BTreeMap<String, i64> {
        self.call().symbols()
    }

    pub(crate) fn run(self) -> (Matrix, Outcome) {
        let mut draw = Draw::new((self.rows * 100 + self.tail) as u64);
        let s = Matrix::normal(self.rows, 16 * self.groups, 2.0, &mut draw);
        let outcome = self.call().with(s.panels(S, self.panel())).run();
        (s, outcome)
    }
}

fn check_softmax(case: Softmax) {
    let (s, outcome) = case.run();
    let keys = 16 * (case.groups - 1) + case.tail;
    let scale = f64::from(case.scale);
    let p = Matrix::from_panels(case.rows, 16 * case.groups, S, case.panel(), |address, bytes| outcome.read(address, bytes));
    let largest = |row| (0..keys).map(|key| s.at(row, key)).fold(f64::NEG_INFINITY, f64::max);
    let expected = |row, key| if key < keys { (scale * (s.at(row, key) - largest(row))).exp() } else { 0.0 };
    let error = p.error(expected);
    assert!(error <= 1.5e-3, "{case:?}: error {error}");
    let stats = singles(&outcome.read(STATS, 8 * case.rows as u32));
    for row in 0..case.rows {
        let sum: f64 = (0..16 * case.groups).map(|key| p.at(row, key)).sum();
        assert!((stats[2 * row] - scale * largest(row)).abs() <= 1e-6 * (1.0 + largest(row).abs()), "{case:?}: maximum of row {row}");
        assert!((stats[2 * row + 1] - sum).abs() <= 1e-5 * sum, "{case:?}: sum of row {row}");
        assert!((case.groups * 16 == keys) || p.at(row, keys) == 0.0, "{case:?}: padding of row {row}");
    }
    outcome.untouched(S, 0xe8000, &spans(case.rows, case.groups, S, case.panel()));
    outcome.untouched(STATS, PARTS, &[(STATS, 8 * case.rows as u32)]);
}

#[test]
fn softmax_matches_its_definition_for_every_tail() {
    for tail in 1..=16 {
        check_softmax(Softmax { rows: 7, groups: 1, tail, scale: 1.0, spare: 0 });
        check_softmax(Softmax { rows: 6, groups: 3, tail, scale: 0.117_851_13, spare: 1 });
    }
}

#[test]
fn softmax_matches_its_definition_for_every_share() {
    for rows in [1, 2, 5, 12, 13, 16, 46, 92] {
        check_softmax(Softmax { rows, groups: 2, tail: 5, scale: 0.25, spare: 2 });
    }
}

fn check_normalise(rows: usize, cg: usize, spare: usize) {
    let mut draw = Draw::new(rows as u64);
    let panel = 32 * (rows + spare) as u32;
    let o = Matrix::normal(rows, 16 * cg, 20.0, &mut draw);
    let sums: Vec<f64> = (0..rows).map(|_| f64::from((60.0 + 50.0 * draw.unit()) as f32)).collect();
    let stats = single_bytes(sums.iter().flat_map(|sum| [0.0, *sum]));
    let defines = [("ROWS", rows as i64), ("CG", cg as i64), ("O_PANEL", i64::from(panel))];
    let outcome = Call::new("normalise", &defines, &[S, STATS]).with(o.panels(S, panel)).with([(STATS, stats)]).run();
    let got = Matrix::from_panels(rows, 16 * cg, S, panel, |address, bytes| outcome.read(address, bytes));
    let relative =
        |row: usize, column: usize| (got.at(row, column) * sums[row] - o.at(row, column)).abs() / o.at(row, column).abs().max(1.0);
    let error = (0..rows).flat_map(|row| (0..16 * cg).map(move |column| (row, column))).map(|(row, column)| relative(row, column));
    assert!(error.fold(0.0, f64::max) <= 1.1e-3, "normalise rows={rows} cg={cg}");
    outcome.untouched(S, 0xe8000, &spans(rows, cg, S, panel));
}

#[test]
fn normalise_divides_each_row_by_its_sum() {
    for (rows, cg, spare) in [(1, 1, 0), (2, 3, 1), (5, 2, 1), (6, 1, 0), (7, 2, 0), (13, 3, 0), (46, 2, 3), (92, 5, 0)] {
        check_normalise(rows, cg, spare);
    }
}

fn check_merge(rows: usize, cg: usize, parts: usize, spare: usize) {
    let mut draw = Draw::new((rows * 10 + parts) as u64);
    let (dense, panel) = (32 * rows as u32, 32 * (rows + spare) as u32);
    let outputs: Vec<Matrix> = (0..parts).map(|_| Matrix::normal(rows, 16 * cg, 20.0, &mut draw)).collect();
    let stats: Vec<f64> =
        (0..parts * rows).flat_map(|_| [draw.normal(), 60.0 + 40.0 * draw.unit()]).map(|value| f64::from(value as f32)).collect();
    let defines = [("ROWS", rows as i64), ("CG", cg as i64), ("PARTS", parts as i64), ("OUT_PANEL", i64::from(panel))];
    let mut call = Call::new("merge", &defines, &[PARTS, STATS, OUT]).with([(STATS, single_bytes(stats.iter().copied()))]);
    for (part, output) in outputs.iter().enumerate() {
        call = call.with(output.panels(PARTS + part as u32 * cg as u32 * dense, dense));
    }
    let outcome = call.run();
    let got = Matrix::from_panels(rows, 16 * cg, OUT, panel, |address, bytes| outcome.read(address, bytes));
    let error = got.error(|row, column| {
        let weight = |part: usize| stats[2 * (part * rows + row)].exp();
        let above: f64 = (0..parts).map(|part| weight(part) * outputs[part].at(row, column)).sum();
        let below: f64 = (0..parts).map(|part| weight(part) * stats[2 * (part * rows + row) + 1]).sum();
        above / below
    });
    assert!(error <= 2e-3, "merge rows={rows} cg={cg} parts={parts}: error {error}");
    outcome.untouched(OUT, 0xe8000, &spans(rows, cg, OUT, panel));
}

#[test]
fn merge_joins_partial_attention_by_log_sum_exp() {
    for (rows, cg, parts, spare) in [
        (1, 1, 1, 0),
        (1, 5, 16, 2),
        (1, 3, 2, 0),
        (2, 1, 16, 0),
        (2, 5, 3, 1),
        (3, 4, 7, 0),
        (3, 5, 16, 1),
        (5, 2, 2, 1),
        (6, 1, 4, 0),
        (7, 1, 3, 5),
        (12, 5, 8, 0),
        (13, 2, 3, 0),
        (46, 3, 2, 0),
    ] {
        check_merge(rows, cg, parts, spare);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn drawn_softmaxes_match_their_definition(
        rows in 1_usize..60, groups in 1_usize..=6, tail in 1_usize..=16, scale in 0.05_f32..1.0, spare in 0_usize..4,
    ) {
        check_softmax(Softmax { rows, groups, tail, scale, spare });
    }
}
