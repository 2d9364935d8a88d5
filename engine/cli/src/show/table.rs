//! Text in columns.

/// Rows of equal length; numbers are aligned to the right, words to the left.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(|word| (*word).to_owned()).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain(std::iter::once(&header)).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let right: Vec<bool> =
        (0..header.len()).map(|column| rows.iter().all(|row| row.get(column).is_some_and(|cell| is_number(cell)))).collect();
    let mut text = String::new();
    for row in std::iter::once(&header).chain(rows) {
        let cells = row.iter().zip(&widths).zip(&right);
        let line: Vec<String> =
            cells.map(|((cell, width), right)| if *right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }).collect();
        text.push_str(format!("  {}", line.join("  ")).trim_end());
        text.push('\n');
    }
    text
}

fn is_number(cell: &str) -> bool {
    !cell.is_empty() && cell.chars().all(|character| character.is_ascii_digit() || ",.-".contains(character))
}

/// Digits in groups of three, `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{grouped, table};

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn numbers_stand_right_and_words_left() {
        let rows = [vec!["q".to_owned(), "1,000".to_owned()], vec!["output".to_owned(), "7".to_owned()]];
        assert_eq!(table(&["name", "clocks"], &rows), "  name    clocks\n  q        1,000\n  output       7\n");
    }

    #[test]
    fn table_without_rows_is_its_header() {
        assert_eq!(table(&["name", "clocks"], &[]), "  name  clocks\n");
    }
}
