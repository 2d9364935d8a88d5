//! An artifact for reading: plain data that a command prints as text or JSON.
//!
//! Names of facts and columns carry their units (`start cycle`, `text bytes`); in JSON their blanks are `_` and numbers stay numbers.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use store::Digest;

use crate::Figure;

/// One value of a fact or of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing to say.
    None,
    /// Words.
    Text(String),
    /// A number of things, bytes or cycles, as its name says.
    Count(u64),
    /// A number of a thing, as a tile's or a step's: never grouped by thousands.
    Number(u64),
    /// A measure.
    Measure(f64),
    /// A byte address.
    Address(u32),
    /// Yes or no.
    Flag(bool),
    /// A digest, in text its first digits.
    Digest(Digest),
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::None => serializer.serialize_none(),
            Cell::Text(text) => serializer.serialize_str(text),
            Cell::Count(number) | Cell::Number(number) => serializer.serialize_u64(*number),
            Cell::Measure(measure) => serializer.serialize_f64(*measure),
            Cell::Address(address) => serializer.serialize_u32(*address),
            Cell::Flag(flag) => serializer.serialize_bool(*flag),
            Cell::Digest(digest) => serializer.collect_str(digest),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Cell {
        Cell::Flag(flag)
    }
}

impl From<f64> for Cell {
    fn from(measure: f64) -> Cell {
        Cell::Measure(measure)
    }
}

impl From<Digest> for Cell {
    fn from(digest: Digest) -> Cell {
        Cell::Digest(digest)
    }
}

impl From<u32> for Cell {
    fn from(count: u32) -> Cell {
        Cell::Count(count.into())
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Cell {
        Cell::Count(count)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Cell {
        Cell::Count(count as u64)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::None, Into::into)
    }
}

impl From<&Figure> for Cell {
    fn from(figure: &Figure) -> Cell {
        match figure {
            Figure::Integer(value) => u64::try_from(*value).map_or_else(|_| Cell::Measure(*value as f64), Cell::Count),
            Figure::Float(value) => Cell::Measure(*value),
            Figure::Text(text) => Cell::Text(text.clone()),
            Figure::Flag(flag) => Cell::Flag(*flag),
        }
    }
}

/// What is shown of an artifact.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Document {
    /// What it is.
    pub title: String,
    /// Names and values, in order.
    #[serde(serialize_with = "as_map")]
    pub facts: Vec<(String, Cell)>,
    /// Tables, in order.
    pub tables: Vec<Table>,
    /// Pictures and listings of fixed form.
    pub blocks: Vec<Block>,
    /// The artifact as a table in the text format that another command reads.
    #[serde(skip)]
    pub tsv: Option<String>,
}

/// Lines of fixed form: a grid, a timeline, a disassembly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// What it is.
    pub title: String,
    /// Its lines.
    pub lines: Vec<String>,
    /// Lines that are left out at the end.
    pub left_out: usize,
}

/// A table of a [`Document`].
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What its rows are.
    pub title: String,
    /// Headings, units included.
    pub columns: Vec<String>,
    /// As many cells a row as there are columns.
    pub rows: Vec<Vec<Cell>>,
    /// Rows that are left out at the end.
    pub left_out: usize,
}

impl Serialize for Table {
    /// Every row as an object with the columns' names.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows: Vec<Row<'_>> = self.rows.iter().map(|row| Row(&self.columns, row)).collect();
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("title", &self.title)?;
        map.serialize_entry("rows", &rows)?;
        map.serialize_entry("left_out", &self.left_out)?;
        map.end()
    }
}

struct Row<'a>(&'a [String], &'a [Cell]);

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|name| key(name)).zip(self.1))
    }
}

fn as_map<S: Serializer>(facts: &[(String, Cell)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(facts.iter().map(|(name, value)| (key(name), value)))
}

fn key(name: &str) -> String {
    name.replace(' ', "_")
}

impl Document {
    /// A document without content.
    pub fn new(title: impl Into<String>) -> Document {
        Document { title: title.into(), ..Document::default() }
    }

    /// Adds a name and a value.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl Into<Cell>) -> Document {
        self.facts.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, title: &str, columns: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> Document {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        self.tables.push(Table { title: title.to_owned(), columns, rows: rows.into_iter().collect(), left_out: 0 });
        self
    }

    /// Adds lines of fixed form.
    #[must_use]
    pub fn block(mut self, title: &str, lines: Vec<String>) -> Document {
        self.blocks.push(Block { title: title.to_owned(), lines, left_out: 0 });
        self
    }

    /// Keeps the first `limit` rows of every table, and counts the others.
    #[must_use]
    pub fn limited(mut self, limit: usize) -> Document {
        for table in &mut self.tables {
            table.left_out += table.rows.len().saturating_sub(limit);
            table.rows.truncate(limit);
        }
        self
    }

    /// The fact of this name.
    pub fn fact_of(&self, name: &str) -> Option<&Cell> {
        self.facts.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The table of this title.
    pub fn table_of(&self, title: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.title == title)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Document};

    #[test]
    fn json_has_numbers_under_names_with_units_and_counts_what_is_left_out() {
        let rows = (0..3_u64).map(|row| vec![Cell::Number(row), Cell::Address(0x4_c000), Cell::None]);
        let document = Document::new("a schedule")
            .fact("horizon cycles", 3697_u64)
            .fact("kind", "ring")
            .table("rows", &["tile", "start address", "note"], rows)
            .limited(1);
        assert_eq!(
            serde_json::to_value(&document).expect("JSON"),
            serde_json::json!({
                "title": "a schedule",
                "facts": { "horizon_cycles": 3697, "kind": "ring" },
                "tables": [{ "title": "rows", "rows": [{ "tile": 0, "start_address": 0x4_c000, "note": null }], "left_out": 2 }],
                "blocks": [],
            })
        );
    }
}
