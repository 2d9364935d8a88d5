//! The artifacts of a built target: one of them, or the list of a stage's. No stage runs.

use std::collections::BTreeSet;

use graph::{Cell, Digest, Document, Label, Pattern, Selection, Shown, StageEntry, StageFacts, kept_stages};
use store::{RecordKind, Store};

use crate::exit::Fault;
use crate::opened::Surroundings;
use crate::show::target_listing;

/// A label with the words in its last bracket, as `schedule/0.3`; `None` when it names no artifact.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let (label, stage) = text.strip_suffix(']')?.rsplit_once('[')?;
    let family = stage.split('/').next().unwrap_or_default();
    // `[key=value]` is a point of a sweep.
    (!family.contains('=')).then_some((label, stage))
}

/// The artifact that `stage` names, or the list of those that it may mean.
pub(crate) fn document(surroundings: &Surroundings, label: &Label, stage: &str, selection: Selection) -> Result<Document, Fault> {
    let workspace = surroundings.load(&[Pattern::One(label.clone())])?;
    if workspace.target(label).is_none() {
        return Err(Fault::input(format!("there is no target `{label}`")));
    }
    let (key, _) = target_listing::record_of(surroundings, &workspace, label)?;
    let store = surroundings.store()?;
    let entries = kept_stages(&store, &label.to_string(), key)?.unwrap_or_default();
    if entries.is_empty() {
        return Err(not_built(&workspace, label));
    }
    let stage = &chosen(surroundings, &store, &entries, stage)?;
    match &matching(&entries, stage)[..] {
        [] => Err(no_such_artifact(label, stage, &entries)),
        [entry] => one(surroundings, &store, label, entry, &entries, selection),
        several if selection == Selection::default() => family(&store, label, stage, several),
        several => Err(Fault::input(format!(
            "`{label}[{stage}]` stands for {} artifacts, and `--tile` and `--from` are for one: `{}`",
            several.len(),
            label.with_stage(&several[0].name.stage, Some(&short_name(several[0], several)))
        ))),
    }
}

fn not_built(workspace: &graph::Workspace, label: &Label) -> Fault {
    let is_built = workspace.target(label).is_some_and(|target| target.rule().kind().is_built());
    let command = if is_built { format!("`ipubuild build {label}` builds it") } else { "build a target that uses it".to_owned() };
    Fault::input(format!("`{label}` has no artifacts: it was not built as it is declared now; {command}"))
}

/// What a name of what was chosen stands for; any other name as it is.
fn chosen(surroundings: &Surroundings, store: &Store, entries: &[StageEntry], stage: &str) -> Result<String, Fault> {
    let name = stage.split_once('/').and_then(|(name, index)| Some((surroundings.registry().chosen_name(name)?, index)));
    let Some((name, index)) = name else { return Ok(stage.to_owned()) };
    let (choice, figure) = name.choice;
    let Some(entry) = entries.iter().find(|entry| entry.name.stage == choice) else { return Ok(stage.to_owned()) };
    let facts = StageFacts::read(store, &entry.key)?;
    let made = facts.iter().flat_map(|facts| &facts.figures).find(|(known, _)| known == figure);
    Ok(made.map_or_else(|| stage.to_owned(), |(_, made)| format!("{}/{made}.{index}", name.stage)))
}

/// Those with this name, else those of this stage, else those of this stage whose digest begins so.
fn matching<'a>(entries: &'a [StageEntry], stage: &str) -> Vec<&'a StageEntry> {
    let named = |test: &dyn Fn(&StageEntry) -> bool| -> Vec<&'a StageEntry> { entries.iter().filter(|entry| test(entry)).collect() };
    let exact = named(&|entry| name(entry) == stage);
    if !exact.is_empty() {
        return exact;
    }
    match stage.split_once('/') {
        None => named(&|entry| entry.name.stage == stage),
        Some((family, digits)) if digits.len() >= 8 => {
            named(&|entry| entry.name.stage == family && entry.digest.to_string().starts_with(digits))
        }
        Some(_) => Vec::new(),
    }
}

/// The name without brackets.
fn name(entry: &StageEntry) -> String {
    entry.name.to_string().trim_start_matches('[').strip_suffix(']').unwrap_or_default().to_owned()
}

/// The index, or the first digits of the digest where several have it.
fn short_name(entry: &StageEntry, among: &[&StageEntry]) -> String {
    match &entry.name.index {
        Some(index) if among.iter().filter(|other| other.name == entry.name).count() == 1 => index.clone(),
        _ => entry.digest.short(),
    }
}

fn no_such_artifact(label: &Label, stage: &str, entries: &[StageEntry]) -> Fault {
    let family = stage.split('/').next().unwrap_or_default();
    let of_family: BTreeSet<String> = entries.iter().filter(|entry| entry.name.stage == family).map(name).collect();
    let wanted = if of_family.is_empty() { family } else { stage };
    let known = if of_family.is_empty() { entries.iter().map(|entry| entry.name.stage.clone()).collect() } else { of_family };
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let shown = names.iter().take(24).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let more = if names.len() > 24 { format!(" and {} more", names.len() - 24) } else { String::new() };
    let nearest = graph::nearest(wanted, names);
    let nearest = if nearest.is_empty() { String::new() } else { format!("; nearest {}", nearest.join(", ")) };
    Fault::input(format!("`{label}` has no artifact `{stage}`\n     expected one of {shown}{more}{nearest}"))
}

fn one(
    surroundings: &Surroundings,
    store: &Store,
    label: &Label,
    entry: &StageEntry,
    entries: &[StageEntry],
    selection: Selection,
) -> Result<Document, Fault> {
    let renderer = surroundings.registry().renderer(&entry.name.stage);
    let renderer = renderer.ok_or_else(|| Fault::failed(format!("artifacts of the stage `{}` cannot be shown", entry.name.stage)))?;
    let evicted = |miss| Fault::failed(format!("`{label}{}` is not in the store any more ({miss}); `ipubuild build {label}`", entry.name));
    let body = store.blob(&entry.digest).map_err(evicted)?;
    let facts = StageFacts::read(store, &entry.key)?;
    let blob = |digest: &Digest| store.blob(digest).ok();
    let facts_of = |key: &Digest| store.record::<StageFacts>(RecordKind::Action, key).ok().flatten();
    let shown = Shown { label, entry, body: &body, facts: facts.as_ref(), entries, selection, blob: &blob, facts_of: &facts_of };
    renderer.show(&shown).map_err(|fault| Fault::input(format!("`{label}{}`: {fault}", entry.name)))
}

/// The artifacts of a stage with their figures.
fn family(store: &Store, label: &Label, stage: &str, entries: &[&StageEntry]) -> Result<Document, Fault> {
    let facts: Vec<Option<StageFacts>> = entries.iter().map(|entry| StageFacts::read(store, &entry.key)).collect::<Result<_, _>>()?;
    let figures: Vec<&str> =
        facts.iter().flatten().next().map_or_else(Vec::new, |first| first.figures.iter().map(|(name, _)| &**name).collect());
    let rows = entries.iter().zip(&facts).map(|(entry, facts)| {
        let mut row = vec![short_name(entry, entries).into(), entry.digest.into(), facts.as_ref().map(|facts| facts.bytes).into()];
        row.extend(figures.iter().map(|name| figure(facts.as_ref(), name)));
        row
    });
    let words: Vec<String> = figures.iter().map(|name| name.replace('_', " ")).collect();
    let columns: Vec<&str> = ["index", "digest", "artifact bytes"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let title = format!("{label}[{stage}]");
    Ok(Document::new(title).fact("artifacts", entries.len()).table("artifacts", &columns, rows))
}

fn figure(facts: Option<&StageFacts>, name: &str) -> Cell {
    facts.and_then(|facts| facts.figures.iter().find(|(known, _)| known == name)).map_or(Cell::None, |(_, value)| value.into())
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn last_bracket_names_an_artifact_unless_it_is_a_point() {
        assert_eq!(split("//a:b[schedule/0.1]"), Some(("//a:b", "schedule/0.1")));
        assert_eq!(split("//a:b[kernel_object/gemm{n=3}]"), Some(("//a:b", "kernel_object/gemm{n=3}")));
        assert_eq!(split("//a:b[tiles=3][placement]"), Some(("//a:b[tiles=3]", "placement")));
        assert_eq!(split("//a:b[tiles=3]"), None);
        assert_eq!(split("//a:b"), None);
    }
}
