//! `bias_columns`, `bias_rows` and `reduce`.

use crate::bench::Call;
use crate::matrix::{Draw, Matrix, half_bytes, halves, spans};

const BIAS: u32 = 0x60000;
const OUT: u32 = 0x90000;

fn check_bias(kernel: &str, rows: usize, cg: usize, spare: usize) {
    let mut draw = Draw::new(rows as u64);
    let panel = 32 * (rows + spare) as u32;
    let out = Matrix::normal(rows, 16 * cg, 1.0, &mut draw);
    let count = if kernel == "bias_rows" { rows } else { 16 * cg };
    let bias = Matrix::normal(1, count, 1.0, &mut draw);
    let bytes = half_bytes((0..count).map(|at| bias.at(0, at)));
    let defines = [("ROWS", rows as i64), ("CG", cg as i64), ("OUT_PANEL", i64::from(panel))];
    let outcome = Call::new(kernel, &defines, &[BIAS, OUT]).with(out.panels(OUT, panel)).with([(BIAS, bytes)]).run();
    let got = Matrix::from_panels(rows, 16 * cg, OUT, panel, |address, bytes| outcome.read(address, bytes));
    let error = got.error(|row, column| out.at(row, column) + bias.at(0, if kernel == "bias_rows" { row } else { column }));
    assert!(error <= 2.0_f64.powi(-9), "{kernel} rows={rows} cg={cg}: error {error}");
    outcome.untouched(OUT, 0xe8000, &spans(rows, cg, OUT, panel));
}

#[test]
fn biases_are_added_to_columns_and_to_rows() {
    for (rows, cg, spare) in
        [(1, 1, 0), (2, 2, 1), (5, 2, 0), (6, 1, 0), (7, 3, 2), (12, 1, 0), (13, 3, 0), (16, 5, 0), (46, 2, 1), (92, 5, 0)]
    {
        check_bias("bias_columns", rows, cg, spare);
        check_bias("bias_rows", rows, cg, spare);
    }
}

fn check_reduce(parts: usize, bytes: usize) {
    let mut draw = Draw::new(bytes as u64);
    let values = Matrix::normal(parts, bytes / 2, 1.0, &mut draw);
    let flat = half_bytes((0..parts * bytes / 2).map(|at| values.at(at / (bytes / 2), at % (bytes / 2))));
    let defines = [("PARTS", parts as i64), ("BYTES", bytes as i64)];
    let outcome = Call::new("reduce", &defines, &[BIAS, OUT]).with([(BIAS, flat)]).run();
    for (at, got) in halves(&outcome.read(OUT, bytes as u32)).iter().enumerate() {
        let sum: f64 = (0..parts).map(|part| values.at(part, at)).sum();
        assert!((got - sum).abs() <= 2.0_f64.powi(-11) * sum.abs() + 1e-6, "reduce parts={parts} bytes={bytes} at {at}");
    }
    outcome.untouched(OUT, 0xe8000, &[(OUT, bytes as u32)]);
}

#[test]
fn partial_sums_are_added_in_f32() {
    for (parts, bytes) in [(1, 8), (2, 48), (3, 56), (4, 1024), (8, 40), (16, 640), (17, 600), (40, 96), (2, 16), (5, 104), (4, 23_552)] {
        check_reduce(parts, bytes);
    }
}

#[test]
fn every_number_of_parts_is_added_for_every_share_of_the_workers() {
    for parts in 1..=18 {
        for words in [1, 2, 3, 11, 12, 13, 14, 25, 36, 41] {
            check_reduce(parts, 8 * words);
        }
    }
}
