//! A document as text.

use std::fmt::Write;

use graph::{Block, Cell, Document, Table};

use crate::show::table::{grouped, table};

/// Title, facts, blocks, tables.
pub(crate) fn text(document: &Document) -> String {
    let mut text = format!("{}\n\n", document.title);
    let facts: Vec<(&String, String)> = document.facts.iter().map(|(name, value)| (name, cell(value))).collect();
    let facts: Vec<_> = facts.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in facts {
        let _ = writeln!(text, "{name:<width$}  {value}");
    }
    document.tables.iter().for_each(|table| text.push_str(&table_text(table)));
    document.blocks.iter().for_each(|block| text.push_str(&block_text(block)));
    text
}

fn table_text(part: &Table) -> String {
    let columns: Vec<&str> = part.columns.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = part.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let more = if part.left_out > 0 { format!("  … and {} more\n", grouped(part.left_out as u64)) } else { String::new() };
    if rows.is_empty() && part.left_out == 0 { String::new() } else { format!("\n{}\n{}{more}", part.title, table(&columns, &rows)) }
}

fn block_text(block: &Block) -> String {
    let lines: String = block.lines.iter().map(|line| format!("  {line}\n")).collect();
    let more = if block.left_out > 0 { format!("  … and {} more\n", grouped(block.left_out as u64)) } else { String::new() };
    format!("\n{}\n{lines}{more}", block.title)
}

fn cell(value: &Cell) -> String {
    match value {
        Cell::None => String::new(),
        Cell::Text(text) => text.clone(),
        Cell::Count(count) => grouped(*count),
        Cell::Number(number) => number.to_string(),
        Cell::Measure(measure) => measured(*measure),
        Cell::Address(address) => format!("{address:#07x}"),
        Cell::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        Cell::Digest(digest) => digest.short(),
    }
}

/// Six digits behind the point at most.
fn measured(value: f64) -> String {
    let text = format!("{value:.6}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "" | "-" | "-0" => "0".to_owned(),
        short => short.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use graph::{Cell, Document};

    use super::text;

    #[test]
    fn document_is_title_facts_tables_and_blocks() {
        let rows =
            (0..3_u64).map(|row| vec![Cell::Number(1000 + row), Cell::Count(1000 + row), Cell::Address(0x4_c010), Cell::Measure(0.25)]);
        let document = Document::new("//a:b[c]")
            .fact("horizon cycles", 3697_u64)
            .fact("nothing", Cell::None)
            .table("rows", &["tile", "bytes", "address", "error"], rows)
            .block("grid", vec!["0  .".to_owned()])
            .limited(2);
        let expected = "//a:b[c]\n\nhorizon cycles  3,697\n\nrows\n  tile  bytes  address  error\n  1000  1,000  0x4c010   0.25\n  \
                        1001  1,001  0x4c010   0.25\n  … and 1 more\n\ngrid\n  0  .\n";
        assert_eq!(text(&document), expected);
    }
}
