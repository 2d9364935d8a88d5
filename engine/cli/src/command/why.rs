//! `ipubuild why`: what made a target be built again, or not, or what an artifact's key is made of.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use graph::{
    Change, Digest, Effect, FailedRun, History, Label, Pattern, Reason, RunRecord, Runs, StageChange, StageEntry, StageFacts, TargetInputs,
    TargetRecord, Why, WhyFault, Workspace,
};
use serde_json::json;
use store::{RecordKind, Store};

use crate::arguments::Options;
use crate::builder::silent_engine;
use crate::command::log::no_such_run;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::Surroundings;
use crate::show::table::table;
use crate::show::to_json;

/// What is asked.
pub(crate) struct Question<'a> {
    pub(crate) label: &'a str,
    pub(crate) not: bool,
    pub(crate) since: Option<i64>,
    pub(crate) json: bool,
}

pub(crate) fn why(question: &Question<'_>, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let label = Label::parse(question.label, surroundings.package()).map_err(Fault::input)?;
    let store = surroundings.store()?;
    let runs = Runs::newest(&store, u32::MAX)?.newest_first;
    let text = if question.not {
        why_not(&surroundings, store, &runs, &label, question.json)?
    } else {
        let history = History::new(&store, &runs, surroundings.root().as_str());
        if label.stage().is_some() {
            spell_out(&store, &history, &label, question.json)?
        } else {
            let answer = history.why(&label.to_string(), question.since).map_err(|fault| explain(fault, &label, &history, &runs))?;
            if question.json { to_json(&answer)? } else { tell(&answer) }
        }
    };
    console.result(text.trim_end());
    Ok(Exit::Success)
}

fn explain(fault: WhyFault, label: &Label, history: &History<'_>, runs: &[(i64, RunRecord)]) -> Fault {
    match fault {
        WhyFault::NeverBuilt(Some(FailedRun { run, message })) => {
            Fault::input(format!("no run built `{label}` yet; run {run} was to, and failed:\n{message}"))
        }
        WhyFault::NeverBuilt(None) => never_built(label, history),
        WhyFault::NoSuchRun(run) if runs.iter().any(|(number, _)| *number == run) => {
            Fault::input(format!("`{label}` was in no run up to {run}; expected a later one, `ipubuild log` lists them"))
        }
        WhyFault::NoSuchRun(run) => no_such_run(run, runs),
        WhyFault::Store(fault) => fault.into(),
    }
}

fn never_built(label: &Label, history: &History<'_>) -> Fault {
    let text = label.to_string();
    let nearest = graph::nearest(&text, history.labels());
    let hint = if nearest.is_empty() { String::new() } else { format!("; nearest {}", nearest.join(", ")) };
    Fault::input(format!("no run of this workspace built `{label}`{hint}"))
}

fn tell(answer: &Why) -> String {
    let Why { label, run, before, made, answered, failed, reasons, stages, kept } = answer;
    let mut text = String::new();
    if let Some(FailedRun { run, message }) = failed {
        let _ = writeln!(text, "run {run} was to build {label} and failed:\n{message}\n");
    }
    match (answered, made) {
        (Some(answered), None) => _ = writeln!(text, "run {answered} answered {label} from its record; it was built in run {run}"),
        (None, Some(made)) => _ = writeln!(text, "run {run} answered {label} from the record that run {made} had made"),
        (Some(answered), Some(made)) => {
            _ = writeln!(text, "runs {run} to {answered} answered {label} from the record that run {made} had made");
        }
        (None, None) => {}
    }
    let Some(before) = before else {
        let _ = writeln!(text, "{label} has this key since run {run}: no earlier run of this workspace has it with another one");
        return text;
    };
    let _ = writeln!(text, "{label} in run {run}, against run {before}:");
    if reasons.is_empty() {
        let _ = writeln!(text, "  nothing it is made from differs");
    }
    reasons.iter().for_each(|reason| tell_reason(reason, &mut text));
    if !stages.is_empty() {
        let _ = write!(text, "\n{}", table(&["stage", "pieces", "because of", "executed", "ms", "result"], &stage_rows(stages)));
    }
    let _ = writeln!(text, "\n{kept} stages have the keys they had");
    text
}

/// A line for the pieces of a stage that changed alike.
fn stage_rows(stages: &[StageChange]) -> Vec<Vec<String>> {
    let mut groups: Vec<(String, &StageChange, usize, usize, f64)> = Vec::new();
    for stage in stages {
        let name = format!("{}[{}]", stage.label, stage.stage.trim_matches(['[', ']']).split('/').next().unwrap_or_default());
        let alike = |(known, first, ..): &&mut (String, &StageChange, usize, usize, f64)| {
            *known == name && (first.effect, &first.because) == (stage.effect, &stage.because)
        };
        match groups.iter_mut().find(alike) {
            Some((_, _, pieces, executed, elapsed_ms)) => {
                *pieces += 1;
                *executed += usize::from(stage.executed);
                *elapsed_ms += stage.elapsed_ms;
            }
            None => groups.push((name, stage, 1, usize::from(stage.executed), stage.elapsed_ms)),
        }
    }
    let row = |(name, first, pieces, executed, elapsed_ms): (String, &StageChange, usize, usize, f64)| {
        let effect = match first.effect {
            Effect::Changed => "changed",
            Effect::CutOff => "same as before: cut off here",
            Effect::New => "new",
        };
        let because = first.because.join(", ");
        vec![name, pieces.to_string(), because, executed.to_string(), format!("{elapsed_ms:.2}"), effect.to_owned()]
    };
    groups.into_iter().map(row).collect()
}

fn tell_reason(reason: &Reason, text: &mut String) {
    let path = reason.path.join(" -> ");
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not given".to_owned());
    let digest = |digest: &Option<Digest>| digest.map_or("none".to_owned(), |digest| digest.short());
    let _ = match &reason.change {
        Change::Field { field, old, new } => writeln!(text, "  {field}: {} -> {}", value(old), value(new)),
        Change::Source { path, old, new } => writeln!(text, "  file {path}: {} -> {}", digest(old), digest(new)),
        Change::Code { part, old, new } => writeln!(text, "  code of {part}: {} -> {}", digest(old), digest(new)),
        Change::Unknown => writeln!(text, "  something that no record tells any more"),
    };
    let _ = writeln!(text, "    in {path}");
}

/// The key of an artifact of the newest build: everything in it, and where it comes from.
fn spell_out(store: &Store, history: &History<'_>, label: &Label, json: bool) -> Result<String, Fault> {
    let Some(name) = label.stage() else { return Err(Fault::input(format!("`{label}` names no artifact"))) };
    let target = label.target();
    let (stages, entry) = newest_stage(history, &target, label)?;
    let facts = StageFacts::read(store, &entry.key)?;
    let facts = facts.ok_or_else(|| Fault::failed(format!("the record of `{label}` is gone from the store; build it again")))?;
    let producers = |digest: &Digest| -> Vec<String> {
        let made = stages.iter().filter(|(_, stage)| stage.digest == *digest && stage.key != entry.key);
        made.map(|((label, name), _)| format!("{label}{name}")).collect()
    };
    if json {
        let inputs: Vec<_> =
            facts.inputs.iter().map(|(name, digest)| json!({ "name": name, "digest": digest, "made_by": producers(digest) })).collect();
        return to_json(&json!({
            "artifact": label.to_string(), "stage": name.stage, "key": entry.key, "digest": entry.digest, "bytes": facts.bytes,
            "elapsed_ms": facts.elapsed_ms, "code": facts.fingerprint, "inputs": inputs,
        }));
    }
    let mut text = format!("{label}\n  key       {}\n  artifact  {}, {} bytes\n", entry.key, entry.digest, facts.bytes);
    let _ = writeln!(text, "  the key is the digest of the stage's name `{}`, its code and these inputs:\n", name.stage);
    let mut rows = vec![vec!["code".to_owned(), facts.fingerprint.short(), String::new()]];
    rows.extend(facts.inputs.iter().map(|(name, digest)| vec![name.clone(), digest.short(), producers(digest).join(", ")]));
    let _ = write!(text, "{}", table(&["input", "digest", "made by"], &rows));
    Ok(text)
}

type Stages = BTreeMap<(String, String), StageEntry>;

/// The stages of the newest build of `target` and of what it depends on, and the one that `label` names.
fn newest_stage(history: &History<'_>, target: &Label, label: &Label) -> Result<(Stages, StageEntry), Fault> {
    let text = target.to_string();
    let (run, _) = history.newest(&text)?.ok_or_else(|| never_built(target, history))?;
    // A target that is only read has its stages in the records of those that use it.
    let stages = history.stages_of(run)?;
    let wanted = label.stage().map(ToString::to_string).unwrap_or_default();
    if let Some(stage) = stages.get(&(text.clone(), wanted.clone())).cloned() {
        return Ok((stages, stage));
    }
    let names: Vec<&str> = stages.keys().filter(|(label, _)| *label == text).map(|(_, name)| name.as_str()).collect();
    let nearest = graph::nearest(&wanted, names.iter().copied());
    let hint = if nearest.is_empty() { names.join(" ") } else { nearest.join(", ") };
    Err(Fault::input(format!("`{target}` has no artifact `{wanted}`; expected one of its stages, nearest {hint}")))
}

/// Compares a target as it stands now with what the store has.
fn why_not(surroundings: &Surroundings, store: Store, runs: &[(i64, RunRecord)], label: &Label, json: bool) -> Result<String, Fault> {
    let workspace: Workspace = surroundings.load(&[Pattern::One(label.target())])?;
    let explained = |failure| Fault::build(&workspace, &failure);
    let mut engine = silent_engine(store, surroundings)?;
    let (key, now) = engine.inputs_now(&workspace, &label.target()).map_err(explained)?;
    let store = engine.store();
    let text = label.to_string();
    let history = History::new(store, runs, surroundings.root().as_str());
    let Some((run, recorded)) = history.newest(&text)? else { return Err(never_built(label, &history)) };
    let reasons = graph::reasons(store, &text, (recorded, key), &now)?;
    let inputs = now.get(&key).cloned();
    // Nothing is kept of a target that is only read.
    let is_built = workspace.target(&label.target()).is_some_and(|target| target.rule().kind().is_built());
    let is_recorded = store.record::<TargetRecord>(RecordKind::Target, &key)?.is_some();
    if json {
        return to_json(&json!({
            "label": text, "key": key, "recorded_key": recorded, "run": run, "would_build": is_built && !is_recorded, "inputs": inputs,
            "reasons": reasons,
        }));
    }
    let mut answer = String::new();
    if !is_recorded {
        let _ = match (is_built, reasons.is_empty()) {
            (true, true) => {
                writeln!(answer, "{label} would be built now: nothing it is made from differs from run {run}, but its record is gone")
            }
            (true, false) => writeln!(answer, "{label} would be built now; against run {run}:"),
            (false, true) => writeln!(answer, "{label} is only read, and nothing it is made from differs from run {run}"),
            (false, false) => writeln!(answer, "{label} is only read; against run {run}:"),
        };
        reasons.iter().for_each(|reason| tell_reason(reason, &mut answer));
        return Ok(answer);
    }
    let with_key = |run: &RunRecord| run.targets.iter().any(|target| target.label == text && target.key == key);
    let newest = runs.iter().find(|(_, run)| with_key(run)).map_or("one that is gone".to_owned(), |(number, _)| number.to_string());
    let _ = writeln!(answer, "{label} is not built again: its key {} has a record", key.short());
    let _ = writeln!(answer, "the newest run with this key is {newest}; compared and equal are:\n");
    if let Some(TargetInputs { rule, code, fields, sources, dependencies }) = inputs {
        let mut rows = vec![vec!["rule".to_owned(), rule]];
        rows.extend(code.iter().map(|(part, digest)| vec![format!("code of {part}"), digest.short()]));
        rows.extend(fields.into_iter().map(|(field, value)| vec![field, value]));
        rows.extend(sources.iter().map(|(field, path, digest)| vec![field.clone(), format!("{path} {}", digest.short())]));
        rows.extend(dependencies.iter().map(|(field, label, key)| vec![field.clone(), format!("{label} {}", key.short())]));
        let _ = write!(answer, "{}", table(&["input", "value"], &rows));
    }
    let _ = writeln!(answer, "\ncomments, order and form of BUILD.toml and times of files are in no key");
    Ok(answer)
}
