//! `transpose`.

use crate::bench::Call;
use crate::matrix::{Draw, Matrix, spans};

const SRC: u32 = 0x60000;
const DST: u32 = 0x90000;

fn check(rows: usize, cg: usize, spare: (usize, usize)) {
    let mut draw = Draw::new(rows as u64);
    let src_panel = 32 * (rows + spare.0) as u32;
    let dst_panel = 32 * (16 * cg + spare.1) as u32;
    let src = Matrix::normal(rows, 16 * cg, 1.0, &mut draw);
    let defines = [("ROWS", rows as i64), ("CG", cg as i64), ("SRC_PANEL", i64::from(src_panel)), ("DST_PANEL", i64::from(dst_panel))];
    let outcome = Call::new("transpose", &defines, &[SRC, DST]).with(src.panels(SRC, src_panel)).run();
    let got = Matrix::from_panels(16 * cg, rows, DST, dst_panel, |address, bytes| outcome.read(address, bytes));
    assert_eq!(got.error(|row, column| src.at(column, row)), 0.0, "transpose rows={rows} cg={cg}");
    outcome.untouched(DST, 0xe8000, &spans(16 * cg, rows / 16, DST, dst_panel));
}

#[test]
fn panels_are_transposed_exactly() {
    for (rows, cg, spare) in [(16, 1, (0, 0)), (16, 5, (0, 0)), (32, 1, (1, 2)), (48, 3, (2, 0)), (80, 2, (0, 3)), (96, 6, (0, 0))] {
        check(rows, cg, spare);
    }
}
