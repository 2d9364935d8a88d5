//! `ipubuild debug`: a program on the simulated chip, under somebody's eyes.

use std::cell::RefCell;
use std::sync::Arc;

use driver::{Files, Outcome, Session, SessionFault, SessionOptions};
use graph::{Failure, Label, Pattern, RuleKind, RunOutcome};
use package::{Group, Package};
use pipeline::{CLOCK_LIMIT, Debuggee};
use simulator::ChipOptions;

use crate::arguments::{DebugArguments, Options};
use crate::builder::{Run, engine};
use crate::composition;
use crate::console::Console;
use crate::debug::desk::{Desk, Wish};
use crate::debug::prompt::Prompt;
use crate::exit::{Exit, Fault};
use crate::interruption;
use crate::object_files::{machine, read_text};
use crate::opened::{self, Surroundings};

/// Rows of the tables of `--profile`.
const ROWS: usize = 40;

pub(crate) fn debug(arguments: &DebugArguments, options: &Options, console: &Arc<Console>) -> Result<Exit, Fault> {
    let directory = opened::directory(options)?;
    let prompt = prompt(arguments, options)?;
    let is_label = arguments.what.starts_with(['/', ':', '@']) && !arguments.what.ends_with(".ipuexe");
    let debuggee = if is_label { built(&arguments.what, options, console)? } else { read(&arguments.what, options)? };
    let files = [Group::Weight, Group::Input].map(|group| files_of(&debuggee, group));
    let chip = ChipOptions { seed: debuggee.seed, threads: options.jobs.map_or(0, usize::from), clock_limit: CLOCK_LIMIT };
    let session = SessionOptions { parameters: debuggee.parameters.clone(), chip };
    let mut desk = Desk::new(&debuggee.package, console, directory, prompt);
    if arguments.profile {
        desk.count_all();
    }
    let desk = RefCell::new(desk);
    loop {
        match run(&debuggee.package, &session, &files, &desk, arguments, console) {
            Ok(()) | Err(SessionFault::GivenUp) => {}
            Err(fault) => return Err(Fault::failed(fault)),
        }
        if desk.borrow().wish == Wish::End {
            return Ok(desk.into_inner().exit());
        }
        desk.borrow_mut().restart();
    }
}

/// One run from the start, as long as somebody wants it.
fn run(
    package: &Package,
    options: &SessionOptions,
    [weights, inputs]: &[Files; 2],
    desk: &RefCell<Desk<'_>>,
    arguments: &DebugArguments,
    console: &Console,
) -> Result<(), SessionFault> {
    let mut session = Session::open_with(package, options, Box::new(|chip| desk.borrow_mut().run(chip)))?;
    if package.call("initialize").is_some() {
        session.initialize(weights)?;
    }
    let outcome = session.run(inputs, &mut |_| ())?;
    told(&outcome, console);
    let chip = session.chip();
    if let (true, Some((instructions, hot_spots))) = (arguments.profile, desk.borrow().profiles(chip, ROWS)) {
        console.result(&format!("{instructions}\n{}", hot_spots.trim_end()));
    }
    if let Some(file) = &arguments.trace_tiles
        && let Err(error) = desk.borrow().export(chip, file.as_str())
    {
        desk.borrow_mut().refuse(&format!("cannot write {file}: {error}"));
    }
    let wish = desk.borrow_mut().ended(chip);
    desk.borrow_mut().wish = wish;
    Ok(())
}

fn told(outcome: &Outcome, console: &Console) {
    let counters = &outcome.counters;
    let (clocks, turns, overflows) = (outcome.clocks.total, counters.worker_turns, counters.f16_overflows);
    let supervisor = counters.supervisor_instructions;
    console
        .result(&format!("ended: {clocks} clocks, {supervisor} supervisor instructions, {turns} worker turns, {overflows} f16 overflows"));
}

/// Commands of the options, and of nobody when there is only something to be printed.
fn prompt(arguments: &DebugArguments, options: &Options) -> Result<Prompt, Fault> {
    let mut given = Vec::new();
    if let Some(script) = &arguments.script {
        given.extend(read_text(&opened::directory(options)?, script)?.lines().map(str::to_owned));
    }
    given.extend(arguments.commands.iter().cloned());
    let is_given = arguments.script.is_some() || !arguments.commands.is_empty();
    let only_prints = arguments.profile || arguments.trace_tiles.is_some();
    Ok(match (is_given, only_prints) {
        (true, _) => Prompt::new(Some(given)),
        (false, true) => Prompt::new(Some(vec!["run".to_owned()])),
        (false, false) => Prompt::new(None),
    })
}

/// Builds what a run needs, and runs nothing.
fn built(text: &str, options: &Options, console: &Arc<Console>) -> Result<Debuggee, Fault> {
    let surroundings = Surroundings::find(options)?;
    let label = surroundings.label(text)?;
    let workspace = surroundings.load(&[Pattern::One(label.clone())])?;
    let target = workspace.target(&label).ok_or_else(|| Fault::input(format!("there is no target `{label}`")))?;
    let (rule, place) = (target.rule().name(), target.place());
    if !composition::is_debugged(rule) {
        return Err(Fault::input(format!("`{label}` is a `{rule}`\n --> {place}     expected a `run`, a `program` or a file FILE.ipuexe")));
    }
    let needed = workspace.closure(workspace.requested()).into_iter();
    let needed = needed.filter(|target| target.rule().kind() == RuleKind::Built).map(|target| target.label().clone());
    let labels: Vec<Label> = needed.chain([label.clone()]).collect();
    let run = Run::start(&surroundings, options, console, None)?;
    run.request(&labels);
    let engine = engine(surroundings.store()?, surroundings.sources(), options, console, &run)?;
    let mut session = graph::Session::begin(engine, workspace, &labels).map_err(|not_begun| {
        let fault = Fault::build(&not_begun.workspace, &not_begun.failure);
        run.keep(not_begun.engine.store(), (&fault).into(), console);
        fault
    })?;
    let debuggee = debuggee(&mut session, &labels, &label, &run).map_err(|failure| Fault::build(session.workspace(), &failure));
    run.keep(session.engine().store(), debuggee.as_ref().map_or_else(Into::into, |_| RunOutcome::Succeeded), console);
    interruption::disarm();
    debuggee
}

fn debuggee(session: &mut graph::Session, labels: &[Label], label: &Label, run: &Run) -> Result<Debuggee, Failure> {
    for needed in labels.iter().filter(|needed| *needed != label) {
        session.build(needed)?.iter().for_each(|report| run.target(report));
    }
    composition::debuggee(session.engine(), label)
}

/// A package file; its parameters are the shipped ones.
fn read(text: &str, options: &Options) -> Result<Debuggee, Fault> {
    let (package, _) = opened::package(text, options)?;
    Ok(Debuggee { package, files: Files::new(), parameters: Arc::new(machine()), seed: 0 })
}

/// Host files of a group; zeros where there is no tensor.
fn files_of(debuggee: &Debuggee, group: Group) -> Files {
    let bindings = debuggee.package.bindings.iter().filter(|binding| binding.group == group);
    let file = |name: &String, bytes: u64| debuggee.files.get(name).cloned().unwrap_or_else(|| vec![0; bytes as usize]);
    bindings.map(|binding| (binding.name.clone(), file(&binding.name, binding.file_bytes))).collect()
}
