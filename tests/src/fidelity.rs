//! FIDELITY.md, written from the data files of `device/ipu21`: what is known of the machine, how surely, and which tests pin it.

use std::collections::BTreeMap;
use std::fmt::Write;

use ipu21::data;
use ipu21::parameters::{Entry, Kind, Parameters};
use serde::Deserialize;

/// A group of facts (`device/ipu21/data/fidelity.toml`).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// What it is about.
    pub facts: String,
    /// How sure the facts are.
    pub confidence: String,
    /// Where they come from.
    pub source: String,
    /// Sections or single values of parameters.toml that belong to it.
    pub parameters: Vec<String>,
    /// Tests that pin it, as `file::function`.
    pub tests: Vec<String>,
    /// What nobody published.
    pub unknown: String,
}

#[derive(Deserialize)]
struct Groups {
    group: Vec<Group>,
}

/// The groups in the order of the file.
///
/// # Panics
/// When the compiled-in file is not of its form.
#[must_use]
pub fn groups() -> Vec<Group> {
    let groups: Groups = toml::from_str(data::FIDELITY).expect("fidelity.toml is of its form");
    groups.group
}

impl Group {
    /// Whether a value of parameters.toml belongs to the group.
    #[must_use]
    pub fn owns(&self, entry: &Entry) -> bool {
        let section = entry.name.split('.').next().unwrap_or_default();
        self.parameters.iter().any(|name| *name == entry.name || name == section)
    }
}

/// Text of a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The whole document.
#[must_use]
pub fn document() -> String {
    let mut out = String::from(
        "# Fidelity\n\nWhat the simulator claims of the machine. Written by `cargo run -p tests --example fidelity > FIDELITY.md` from \
         `fidelity.toml`,\n`isa.toml` and `parameters.toml` of `device/ipu21/data`; a test fails when it is stale. No board has confirmed any figure.\n\n",
    );
    out += "## Groups of facts\n\n";
    for group in groups() {
        let _ = writeln!(out, "### {}\n", group.facts);
        let _ = writeln!(out, "| | |\n|---|---|\n| confidence | {} |\n| source | {} |", cell(&group.confidence), cell(&group.source));
        let _ = writeln!(out, "| not known | {} |", cell(&group.unknown));
        let owned: Vec<String> = entries().iter().filter(|entry| group.owns(entry)).map(|entry| format!("`{}`", entry.name)).collect();
        if !owned.is_empty() {
            let _ = writeln!(out, "| parameters | {} |", owned.join(", "));
        }
        let tests: Vec<String> = group.tests.iter().map(|test| format!("`{test}`")).collect();
        let _ = writeln!(out, "| tests | {} |\n", tests.join("<br>"));
    }
    out += "## Values left open\n\n| parameter | value | appears in code | standing |\n|---|---|---|---|\n";
    for entry in entries() {
        let in_code = if entry.kind == Kind::Code { "yes" } else { "no" };
        let _ = writeln!(out, "| `{}` | {} | {in_code} | {} |", entry.name, cell(&entry.value), cell(&entry.status));
    }
    out + &forms()
}

/// Every value of parameters.toml.
#[must_use]
pub fn entries() -> Vec<Entry> {
    Parameters::shipped().entries()
}

/// Encodings by standing, and every form whose meaning is not plainly documented.
fn forms() -> String {
    let table: toml::Table = data::ISA.parse().expect("isa.toml is read by the build of ipu21");
    let forms: Vec<&toml::Table> = table["instruction"].as_array().into_iter().flatten().filter_map(toml::Value::as_table).collect();
    let text = |form: &toml::Table, key: &str| form.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
    let mut standing: BTreeMap<String, usize> = BTreeMap::new();
    for form in &forms {
        let encoding = form["encoding"].get("status").and_then(toml::Value::as_str).unwrap_or("unknown");
        *standing.entry(encoding.to_owned()).or_default() += 1;
    }
    let mut out = format!("\n## Forms\n\n{} forms, by standing of their encoding:\n\n| standing | forms |\n|---|---|\n", forms.len());
    for (name, count) in &standing {
        let _ = writeln!(out, "| {name} | {count} |");
    }
    out += "\nForms whose meaning is not plainly documented:\n\n| form | what is doubtful |\n|---|---|\n";
    for form in forms.iter().filter(|form| form.contains_key("semantics_confidence")) {
        let id = if form.contains_key("id") { text(form, "id") } else { text(form, "mnemonic") };
        let _ = writeln!(out, "| `{id}` | {} |", cell(&text(form, "semantics_confidence")));
    }
    out
}
