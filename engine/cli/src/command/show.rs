//! `ipubuild show`: a target or a package file at a glance.

use package::Package;

use crate::arguments::Options;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::{self, Surroundings};
use crate::show::{package_listing, target_listing, to_json};

pub(crate) fn show(what: &str, json: bool, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let listing = if what.starts_with(['/', ':', '@']) && !what.ends_with(".ipuexe") {
        show_target(what, json, options)?
    } else {
        show_package(what, json, options)?
    };
    console.result(listing.trim_end());
    Ok(Exit::Success)
}

fn show_target(text: &str, json: bool, options: &Options) -> Result<String, Fault> {
    let surroundings = Surroundings::find(options)?;
    let label = surroundings.label(text)?;
    let workspace = surroundings.load(&[graph::Pattern::One(label.clone())])?;
    let facts = target_listing::facts(&surroundings, &workspace, &label)?;
    if json { to_json(&facts) } else { Ok(facts.to_string()) }
}

fn show_package(text: &str, json: bool, options: &Options) -> Result<String, Fault> {
    let path = opened::directory(options)?.join(text);
    let bytes = std::fs::read(&path).map_err(|error| Fault::input(format!("cannot read {text}: {error}")))?;
    let package = Package::read(&bytes).map_err(|fault| Fault::input(format!("{text}: {fault}")))?;
    package.check().map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(|fault| format!("{text}: {fault}")).collect();
        Fault::input(lines.join("\nerror: "))
    })?;
    let summary = package.summary();
    if json { to_json(&summary) } else { Ok(package_listing::listing(&summary, bytes.len())) }
}
