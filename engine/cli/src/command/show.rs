//! `ipubuild show`: a target, an artifact of one, or a package file at a glance.

use graph::Selection;

use crate::arguments::{Options, Part};
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::{self, Surroundings};
use crate::show::{artifact_listing, document_text, package_listing, target_listing, to_json};

/// Rows of a table that are shown as text unless an option says otherwise.
const ROWS: usize = 40;

/// How an artifact is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
    /// The table that another command reads.
    Tsv,
}

impl Form {
    pub(crate) fn of(json: bool, tsv: bool) -> Form {
        match (json, tsv) {
            (_, true) => Form::Tsv,
            (true, false) => Form::Json,
            (false, false) => Form::Text,
        }
    }
}

pub(crate) fn show(what: &str, form: Form, part: Part, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let json = form == Form::Json;
    let is_label = what.starts_with(['/', ':', '@']);
    let listing = if let Some((label, stage)) = artifact_listing::split(what).filter(|_| is_label) {
        show_artifact(label, stage, form, part, options)?
    } else if form == Form::Tsv {
        return Err(Fault::input("`--tsv` is for exchange phases; expected `LABEL[exchange/P]` or `LABEL[schedule/F.P]`"));
    } else if part != (Part { tile: None, from: None, limit: None }) {
        return Err(Fault::input("`--tile`, `--from` and `--limit` are for artifacts; expected `LABEL[stage/index]`"));
    } else if is_label && !what.ends_with(".ipuexe") {
        show_target(what, json, options)?
    } else {
        show_package(what, json, options)?
    };
    console.result(listing.trim_end());
    Ok(Exit::Success)
}

fn show_artifact(label: &str, stage: &str, form: Form, part: Part, options: &Options) -> Result<String, Fault> {
    let surroundings = Surroundings::find(options)?;
    let label = surroundings.label(label)?;
    let selection = Selection { tile: part.tile, from: part.from.map(u64::from) };
    let document = artifact_listing::document(&surroundings, &label, stage, selection)?;
    let limited = |rows| document.clone().limited(part.limit.unwrap_or(rows));
    match form {
        Form::Text => Ok(document_text::text(&limited(ROWS))),
        Form::Json => to_json(&limited(usize::MAX)),
        Form::Tsv => document.tsv.ok_or_else(|| {
            Fault::input(format!("`{label}[{stage}]` has no table for `--tsv`; expected an exchange phase of a finalist that was placed"))
        }),
    }
}

fn show_target(text: &str, json: bool, options: &Options) -> Result<String, Fault> {
    let surroundings = Surroundings::find(options)?;
    let label = surroundings.label(text)?;
    let workspace = surroundings.load(&[graph::Pattern::One(label.clone())])?;
    let facts = target_listing::facts(&surroundings, &workspace, &label)?;
    if json { to_json(&facts) } else { Ok(facts.to_string()) }
}

fn show_package(text: &str, json: bool, options: &Options) -> Result<String, Fault> {
    let (package, bytes) = opened::package(text, options)?;
    let summary = package.summary();
    if json { to_json(&summary) } else { Ok(package_listing::listing(&summary, bytes)) }
}
