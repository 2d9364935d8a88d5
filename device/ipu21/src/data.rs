//! The fact tables as text, for readers of their own and for fingerprints.

/// The instruction table.
pub const ISA: &str = include_str!("../data/isa.toml");
/// Recorded instruction words with their text.
pub const ENCODINGS: &str = include_str!("../data/encodings.tsv");
/// Values the public facts leave open.
pub const PARAMETERS: &str = include_str!("../data/parameters.toml");
/// Groups of facts with their confidence and the tests that pin them.
pub const FIDELITY: &str = include_str!("../data/fidelity.toml");

/// The rows of a tab-separated table without comment lines.
pub fn table_rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(|line| line.split('\t').collect())
}
