//! Rows against recorded ones, word for word.

mod cases;

use exchange::timed_rows;

#[test]
fn every_recorded_row_is_reproduced_word_for_word() {
    for case in cases::legal() {
        let rows = timed_rows(&case.messages()).unwrap_or_else(|faults| panic!("{}: {}", case.name, faults[0]));
        let built: Vec<_> = rows.into_iter().map(|row| (row.tile.get(), row.horizon, row.words)).collect();
        let recorded: Vec<_> = case.row.iter().map(|row| (row.tile, row.horizon, row.words.clone())).collect();
        assert_eq!(built, recorded, "{}", case.name);
    }
}
