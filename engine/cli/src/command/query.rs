//! `ipubuild query`: targets of the graph, as labels, as JSON or for Graphviz.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use graph::{Label, LoadedTarget, Query, Workspace};
use serde_json::{Map, Value, json};

use crate::arguments::{Options, QueryOutput};
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::Surroundings;
use crate::show::to_json;

pub(crate) fn query(text: &str, output: QueryOutput, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let query = Query::parse(text, surroundings.package()).map_err(Fault::input)?;
    let workspace = surroundings.load(&query.patterns())?;
    let labels = query.answer(&workspace);
    match output {
        QueryOutput::Labels => labels.iter().for_each(|label| console.result(&label.to_string())),
        QueryOutput::Json => console.result(&to_json(&described(&workspace, &labels))?),
        QueryOutput::Dot => console.result(to_dot(&workspace, &labels).trim_end()),
    }
    Ok(Exit::Success)
}

fn described(workspace: &Workspace, labels: &[Label]) -> Vec<Value> {
    let target = |target: &LoadedTarget| {
        let fields: Map<String, Value> = target.leaves().into_iter().map(|(field, value)| (field, json!(value))).collect();
        let dependencies: Vec<Value> =
            target.dependencies().iter().map(|used| json!({ "field": used.field, "label": used.label.to_string() })).collect();
        let sources: Vec<Value> =
            target.sources().iter().map(|used| json!({ "field": used.field, "path": used.path.to_string() })).collect();
        json!({
            "label": target.label().to_string(), "rule": target.rule().name(), "place": target.place().to_string(), "fields": fields,
            "dependencies": dependencies, "sources": sources,
        })
    };
    labels.iter().filter_map(|label| workspace.target(label)).map(target).collect()
}

/// Arrows from targets to what they depend on. No character of a label needs more than the quotes.
fn to_dot(workspace: &Workspace, labels: &[Label]) -> String {
    let shown: BTreeSet<&Label> = labels.iter().collect();
    let mut text = "digraph targets {\n  node [shape=box];\n".to_owned();
    for target in labels.iter().filter_map(|label| workspace.target(label)) {
        let _ = writeln!(text, "  \"{}\" [label=\"{}\\n{}\"];", target.label(), target.label(), target.rule().name());
        let used: BTreeSet<Label> = target.dependencies().iter().map(|used| used.label.target()).collect();
        for used in used.iter().filter(|used| shown.contains(used)) {
            let _ = writeln!(text, "  \"{}\" -> \"{used}\";", target.label());
        }
    }
    text + "}\n"
}
