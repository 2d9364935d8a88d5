//! `ipubuild verify`: builds again without anything that is kept, and compares every stage with what is.

use std::sync::Arc;

use graph::{
    Digest, Engine, EngineOptions, Label, Pattern, RunOutcome, RunRecorder, Shared, StageFacts, StageRun, TargetRecord, TargetReport,
    Workspace,
};
use store::{RecordKind, Store};

use crate::arguments::Options;
use crate::builder::Builder;
use crate::command::built_targets;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::interruption;
use crate::opened::Surroundings;
use crate::scratch::Scratch;

/// Builds `labels` as usual, then `times` times in stores of their own beside the usual one.
pub(crate) fn verify(labels: &[String], times: u32, options: &Options, console: &Arc<Console>) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let patterns = surroundings.patterns(labels)?;
    let mut builder = Builder::open(&surroundings, options, console, ("make", choose), &patterns)?;
    let (exit, lasting) = builder.build_all_and_tell_lasting()?;
    drop(builder);
    let workspace = surroundings.load(&patterns)?;
    // What no record may answer, as a run on hardware, is not repeated.
    let mut labels = choose(&workspace, &patterns, console)?;
    labels.retain(|label| lasting.contains(label));
    let store = surroundings.store()?;
    for number in 0..times {
        let rebuilt = rebuild(&surroundings, options, console, &workspace, (&labels, number))?;
        if let Some(difference) = first_difference(&store, &rebuilt)? {
            console.result(&difference);
            return Ok(Exit::Failed);
        }
        let files: usize = rebuilt.reports.iter().map(|report| report.contents.len()).sum();
        console.result(&format!("{} stages and {files} files agree", rebuilt.stages.len()));
    }
    Ok(exit)
}

fn choose(workspace: &Workspace, _: &[Pattern], _: &Console) -> Result<Vec<Label>, Fault> {
    let labels = built_targets(workspace);
    if labels.is_empty() { Err(Fault::input("the patterns name nothing that is built")) } else { Ok(labels) }
}

/// What a build from nothing gave.
struct Rebuilt {
    stages: Vec<StageRun>,
    reports: Vec<TargetReport>,
}

/// Builds in an empty store, which is gone afterwards. Every build after the first visits pieces in another order.
fn rebuild(
    surroundings: &Surroundings,
    options: &Options,
    console: &Arc<Console>,
    workspace: &Workspace,
    (labels, number): (&[Label], u32),
) -> Result<Rebuilt, Fault> {
    let scratch = Scratch::beside(surroundings.store_directory(), "verify")?;
    let sources = surroundings.sources();
    let recorder = Arc::new(RunRecorder::start(console.clone(), surroundings.root().as_str(), Vec::new()));
    let shared = Shared::new(Store::open(scratch.path())?, recorder.clone(), sources);
    let shuffle = (number > 0).then_some(u64::from(number));
    // Other numbers of threads as well, from the second build on.
    let threads = if number == 0 { options.threads() } else { 1 + number as usize % options.threads().max(2) };
    let engine = Engine::new(shared, EngineOptions { threads, shuffle });
    let mut engine = engine.map_err(|failure| Fault::build(workspace, &failure))?.without_exports();
    interruption::arm_rebuild(engine.interrupt_handle());
    let reports = engine.build_targets(workspace, labels).map_err(|failure| Fault::build(workspace, &failure))?;
    Ok(Rebuilt { stages: recorder.record(RunOutcome::Succeeded).stages, reports })
}

/// The first stage, in the order in which they ended, and then the first file that is not as the usual store has it.
fn first_difference(store: &Store, rebuilt: &Rebuilt) -> Result<Option<String>, Fault> {
    let words = |digest: Option<Digest>| digest.map_or("nothing".to_owned(), |digest| digest.to_string());
    for stage in &rebuilt.stages {
        let kept = StageFacts::read(store, &stage.key)?.map(|facts| facts.digest);
        if kept != stage.digest {
            let name = format!("{}{}", stage.label, stage.name);
            return Ok(Some(format!(
                "{name} differs, the first of {} stages\n  key      {}\n  kept     {}\n  rebuilt  {}",
                rebuilt.stages.len(),
                stage.key,
                words(kept),
                words(stage.digest)
            )));
        }
    }
    for report in rebuilt.reports.iter().filter(|report| report.recorded) {
        let record = store.record::<TargetRecord>(RecordKind::Target, &report.shallow_key)?;
        let kept: Vec<Digest> = record.iter().flat_map(|record| &record.exports).map(|export| export.content).collect();
        let differing = report.contents.iter().enumerate().find(|(index, content)| kept.get(*index) != Some(content));
        if let Some((index, content)) = differing {
            let file = report.exports.get(index).and_then(|path| path.file_name()).unwrap_or_default();
            return Ok(Some(format!(
                "{} {file} differs\n  kept     {}\n  rebuilt  {content}",
                report.label,
                words(kept.get(index).copied())
            )));
        }
    }
    Ok(None)
}
