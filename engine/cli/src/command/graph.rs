//! `ipubuild graph`: the targets below a label and the stages they are made of, as a tree, for Graphviz, or as a picture.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use camino::Utf8PathBuf;
use graph::{Label, Pattern, StageFacts, TargetRecord, Workspace};
use store::{RecordKind, Store};

use crate::arguments::Options;
use crate::builder::silent_engine;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::{self, Surroundings};

/// Where the graph goes.
pub(crate) enum Form {
    Tree,
    Dot,
    Svg(Utf8PathBuf),
    Html(Utf8PathBuf),
}

/// A target and what is known of its last build.
struct Box {
    label: String,
    rule: String,
    /// Name, pieces, milliseconds of the last executions, bytes.
    stages: Vec<(String, usize, f64, u64)>,
    uses: Vec<usize>,
    /// Longest way down from the top.
    layer: usize,
}

pub(crate) fn graph(text: &str, form: &Form, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let label = surroundings.label(text)?;
    let workspace = surroundings.load(&[Pattern::One(label.clone())])?;
    let boxes = boxes(&surroundings, &workspace, &label)?;
    match form {
        Form::Tree => console.result(tree(&boxes).trim_end()),
        Form::Dot => console.result(dot(&boxes).trim_end()),
        Form::Svg(path) => write(options, path, &svg(&boxes))?,
        Form::Html(path) => write(options, path, &html(&label, &boxes))?,
    }
    Ok(Exit::Success)
}

fn write(options: &Options, path: &Utf8PathBuf, text: &str) -> Result<(), Fault> {
    let path = opened::directory(options)?.join(path);
    std::fs::write(&path, text).map_err(|error| Fault::failed(format!("cannot write {path}: {error}")))
}

/// The closure of `label`, itself first; users stand before what they use.
fn boxes(surroundings: &Surroundings, workspace: &Workspace, label: &Label) -> Result<Vec<Box>, Fault> {
    let mut engine = silent_engine(surroundings.store()?, surroundings)?;
    let keys = engine.apply(workspace, std::slice::from_ref(label)).map_err(|failure| Fault::build(workspace, &failure))?;
    let store = engine.store();
    let mut targets = workspace.closure([label]);
    targets.reverse();
    let numbers: BTreeMap<&Label, usize> = targets.iter().enumerate().map(|(number, target)| (target.label(), number)).collect();
    let mut boxes = Vec::with_capacity(targets.len());
    for target in &targets {
        let record = match keys.get(target.label()) {
            Some(key) => store.record::<TargetRecord>(RecordKind::Target, key)?,
            None => None,
        };
        let mut uses: Vec<usize> = target.dependencies().iter().filter_map(|used| numbers.get(&used.label.target()).copied()).collect();
        uses.sort_unstable();
        uses.dedup();
        boxes.push(Box {
            label: target.label().to_string(),
            rule: target.rule().name().to_owned(),
            stages: stages(store, record.as_ref())?,
            uses,
            layer: 0,
        });
    }
    // Users come first, so one pass finds the longest ways.
    for number in 0..boxes.len() {
        let below = boxes[number].layer + 1;
        for used in boxes[number].uses.clone() {
            boxes[used].layer = boxes[used].layer.max(below);
        }
    }
    Ok(boxes)
}

fn stages(store: &Store, record: Option<&TargetRecord>) -> Result<Vec<(String, usize, f64, u64)>, Fault> {
    let mut stages: BTreeMap<&str, (usize, f64, u64)> = BTreeMap::new();
    for entry in record.iter().flat_map(|record| &record.stages) {
        let sum = stages.entry(&entry.name.stage).or_default();
        sum.0 += 1;
        if let Some(facts) = StageFacts::read(store, &entry.key)? {
            sum.1 += facts.elapsed_ms;
            sum.2 += facts.bytes;
        }
    }
    Ok(stages.into_iter().map(|(name, (pieces, elapsed_ms, bytes))| (name.to_owned(), pieces, elapsed_ms, bytes)).collect())
}

/// Indented, every target once; where it is named again, only its label.
fn tree(boxes: &[Box]) -> String {
    let mut text = String::new();
    let mut seen = vec![false; boxes.len()];
    let mut path = vec![(0, 0)];
    while let Some((number, depth)) = path.pop() {
        let Box { label, rule, stages, uses, .. } = &boxes[number];
        let indent = "  ".repeat(depth);
        if std::mem::replace(&mut seen[number], true) {
            let _ = writeln!(text, "{indent}{label}  (above)");
            continue;
        }
        let stages: Vec<String> = stages.iter().map(named).collect();
        let stages = if stages.is_empty() { String::new() } else { format!("  [{}]", stages.join(" ")) };
        let _ = writeln!(text, "{indent}{label}  {rule}{stages}");
        path.extend(uses.iter().rev().map(|used| (*used, depth + 1)));
    }
    text
}

fn named((name, pieces, ..): &(String, usize, f64, u64)) -> String {
    if *pieces == 1 { name.clone() } else { format!("{name}×{pieces}") }
}

fn dot(boxes: &[Box]) -> String {
    let mut text = "digraph targets {\n  node [shape=box];\n".to_owned();
    for Box { label, rule, uses, .. } in boxes {
        let _ = writeln!(text, "  \"{label}\" [label=\"{label}\\n{rule}\"];");
        for used in uses {
            let _ = writeln!(text, "  \"{label}\" -> \"{}\";", boxes[*used].label);
        }
    }
    text + "}\n"
}

/// Lengths in pixels.
const WIDTH: f64 = 300.0;
const LINE: f64 = 16.0;
const GAP: (f64, f64) = (24.0, 56.0);

/// Where each box stands: left, top, height.
struct Layout {
    places: Vec<(f64, f64, f64)>,
    size: (f64, f64),
}

/// Layers from top to bottom; in each, boxes in the order of the middle of those that use them, which keeps lines short.
fn layout(boxes: &[Box]) -> Layout {
    let layers = boxes.iter().map(|shown| shown.layer + 1).max().unwrap_or(0);
    let mut places = vec![(0.0, 0.0, 0.0); boxes.len()];
    let (mut top, mut width) = (GAP.1 / 2.0, 0.0_f64);
    for layer in 0..layers {
        let mut members: Vec<usize> = (0..boxes.len()).filter(|number| boxes[*number].layer == layer).collect();
        let middle = |number: usize| {
            let users: Vec<f64> = (0..boxes.len()).filter(|user| boxes[*user].uses.contains(&number)).map(|user| places[user].0).collect();
            if users.is_empty() { 0.0 } else { users.iter().sum::<f64>() / users.len() as f64 }
        };
        let mut ordered: Vec<(f64, usize)> = members.drain(..).map(|number| (middle(number), number)).collect();
        ordered.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
        let mut deepest = 0.0_f64;
        for (column, (_, number)) in ordered.iter().enumerate() {
            let height = LINE * (2.0 + boxes[*number].stages.len() as f64) + LINE / 2.0;
            places[*number] = (GAP.0 + column as f64 * (WIDTH + GAP.0), top, height);
            deepest = deepest.max(height);
        }
        width = width.max(GAP.0 + ordered.len() as f64 * (WIDTH + GAP.0));
        top += deepest + GAP.1;
    }
    Layout { places, size: (width, top) }
}

fn svg(boxes: &[Box]) -> String {
    let Layout { places, size: (width, height) } = layout(boxes);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"monospace\" font-size=\"11\">\n"
    );
    for (number, shown) in boxes.iter().enumerate() {
        let (left, top, tall) = places[number];
        for used in &shown.uses {
            let (to, below, _) = places[*used];
            let (x, y) = (left + WIDTH / 2.0, top + tall);
            let (end, bend) = (to + WIDTH / 2.0, f64::midpoint(y, below));
            let _ = writeln!(
                text,
                "<path class=\"edge\" data-from=\"{number}\" data-to=\"{used}\" d=\"M{x:.0},{y:.0} C{x:.0},{bend:.0} {end:.0},{bend:.0} {end:.0},{below:.0}\" \
                 fill=\"none\" stroke=\"#999\"/>"
            );
        }
    }
    for (number, shown) in boxes.iter().enumerate() {
        let (left, top, tall) = places[number];
        let fill = if shown.stages.is_empty() { "#f4f4f4" } else { "#e8f1fb" };
        let _ = writeln!(text, "<g class=\"box\" data-number=\"{number}\"><title>{}</title>", escaped(&shown.label));
        let _ = writeln!(
            text,
            "<rect x=\"{left:.0}\" y=\"{top:.0}\" width=\"{WIDTH:.0}\" height=\"{tall:.0}\" rx=\"4\" fill=\"{fill}\" stroke=\"#456\"/>"
        );
        let mut line = |row: usize, weight: &str, words: &str| {
            let y = top + LINE * (row as f64 + 1.0);
            let _ =
                writeln!(text, "<text x=\"{:.0}\" y=\"{y:.0}\" font-weight=\"{weight}\">{}</text>", left + 8.0, escaped(&shortened(words)));
        };
        line(0, "bold", &shown.label);
        line(1, "normal", &shown.rule);
        for (row, stage) in shown.stages.iter().enumerate() {
            line(row + 2, "normal", &format!("{}  {:.1} ms", named(stage), stage.2));
        }
        text.push_str("</g>\n");
    }
    text + "</svg>\n"
}

/// The end of a label tells more than its beginning.
fn shortened(words: &str) -> String {
    const LONGEST: usize = 42;
    let count = words.chars().count();
    if count <= LONGEST { words.to_owned() } else { format!("…{}", words.chars().skip(count - LONGEST + 1).collect::<String>()) }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// One file without anything from elsewhere: the picture, a table, and a script that marks what a box uses.
fn html(label: &Label, boxes: &[Box]) -> String {
    let mut rows = String::new();
    for shown in boxes {
        for (name, pieces, elapsed_ms, bytes) in &shown.stages {
            let _ = writeln!(
                rows,
                "<tr><td>{}</td><td>{}</td><td>{pieces}</td><td>{elapsed_ms:.2}</td><td>{bytes}</td></tr>",
                escaped(&shown.label),
                escaped(name)
            );
        }
    }
    let title = escaped(&label.to_string());
    let picture = svg(boxes);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>\nbody {{ font-family: sans-serif; margin: 1em }}\n\
         table {{ border-collapse: collapse; font-family: monospace; font-size: 12px }}\ntd, th {{ padding: 2px 10px; text-align: left; border-bottom: 1px solid #ddd }}\n\
         .marked rect {{ stroke: #c33; stroke-width: 2 }}\npath.marked {{ stroke: #c33; stroke-width: 2 }}\n</style></head><body>\n<h1>{title}</h1>\n\
         {picture}<table><tr><th>target</th><th>stage</th><th>pieces</th><th>ms</th><th>bytes</th></tr>\n{rows}</table>\n<script>\n{SCRIPT}</script>\n</body></html>\n"
    )
}

const SCRIPT: &str = "\
const edges = [...document.querySelectorAll('.edge')];
const boxes = [...document.querySelectorAll('.box')];
for (const box of boxes) box.addEventListener('mouseenter', () => {
  for (const marked of document.querySelectorAll('.marked')) marked.classList.remove('marked');
  const queue = [box.dataset.number], seen = new Set();
  while (queue.length) {
    const number = queue.pop();
    if (seen.has(number)) continue;
    seen.add(number);
    boxes.find(other => other.dataset.number === number).classList.add('marked');
    for (const edge of edges) if (edge.dataset.from === number) { edge.classList.add('marked'); queue.push(edge.dataset.to); }
  }
});
";
