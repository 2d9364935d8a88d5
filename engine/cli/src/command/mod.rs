//! The commands, one a file.

mod asm;
mod build;
mod clean;
mod debug;
mod doctor;
mod exchange_lab;
mod gc;
mod graph;
mod inspect;
mod link;
mod log;
mod make;
mod query;
mod run;
mod show;
mod store;
mod test;
mod verify;
mod watch;
mod why;

use std::sync::Arc;

use ::graph::{Label, Pattern, RuleKind, Workspace};
use toolchain::listing;

use crate::arguments::{Arguments, Command, Options};
use crate::console::Console;
use crate::exit::{Exit, Fault};

/// Does what the arguments say, prints the outcome, and says how to end.
pub(crate) fn execute(arguments: Arguments) -> Exit {
    let Arguments { labels, command, options } = arguments;
    let console = match Console::new(&options, shows_progress(command.as_ref())) {
        Ok(console) => Arc::new(console),
        Err(fault) => return complain(&fault),
    };
    let outcome = dispatch(&labels, command.as_ref(), &options, &console);
    let finished = console.finish();
    match outcome.and_then(|exit| finished.map(|()| exit)) {
        Ok(exit) => exit,
        Err(fault) => {
            console.fault(&fault);
            fault.exit
        }
    }
}

/// Whether a command builds.
fn shows_progress(command: Option<&Command>) -> bool {
    use Command::{Build, Run, Test, Verify, Watch};
    matches!(command, None | Some(Build { .. } | Run { .. } | Test { .. } | Verify { .. } | Watch { .. }))
}

/// A fault before there is a console.
fn complain(fault: &Fault) -> Exit {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{}", fault.message);
    fault.exit
}

fn dispatch(labels: &[String], command: Option<&Command>, options: &Options, console: &Arc<Console>) -> Result<Exit, Fault> {
    match (command, labels) {
        (None, []) => Err(Fault::input("no target and no command; `ipubuild --help` lists what can be done")),
        (None, labels) => make::make(labels, options, console),
        (Some(_), [label, ..]) => Err(Fault::input(format!("`{label}` stands before the command; expected labels after it"))),
        (Some(Command::Build { labels }), _) => build::build(labels, options, console),
        (Some(Command::Run { labels }), _) => run::run(labels, options, console),
        (Some(Command::Test { labels, junit }), _) => test::test(labels, junit.as_deref(), options, console),
        (Some(Command::Watch { labels, scan }), _) => watch::watch(labels, *scan, options, console),
        (Some(Command::Query { query, output }), _) => query::query(query, *output, options, console),
        (Some(Command::Show { what, json, tsv, part }), _) => show::show(what, show::Form::of(*json, *tsv), *part, options, console),
        (Some(Command::Why { label, not, since, json }), _) => {
            why::why(&why::Question { label, not: *not, since: *since, json: *json }, options, console)
        }
        (Some(Command::Log { run, limit, json }), _) => log::log(*run, *limit, *json, options, console),
        (Some(Command::Verify { labels, repro }), _) => verify::verify(labels, *repro, options, console),
        (Some(Command::Graph { label, svg, html, dot }), _) => {
            let form = match (svg, html, dot) {
                (Some(path), ..) => graph::Form::Svg(path.clone()),
                (_, Some(path), _) => graph::Form::Html(path.clone()),
                (_, _, true) => graph::Form::Dot,
                _ => graph::Form::Tree,
            };
            graph::graph(label, &form, options, console)
        }
        (Some(Command::Gc { max_size, older_than, keep_runs, dry_run }), _) => {
            let (max_size, older_than) = (max_size.as_deref(), older_than.as_deref());
            gc::gc(&gc::Bounds { max_size, older_than, keep_runs: *keep_runs, dry_run: *dry_run }, options, console)
        }
        (Some(Command::Store { command }), _) => store::store(command, options, console),
        (Some(Command::Debug(arguments)), _) => debug::debug(arguments, options, console),
        (Some(Command::Exchange { command }), _) => exchange_lab::exchange(command, options, console),
        (Some(Command::Asm(arguments)), _) => asm::asm(arguments, options, console),
        (Some(Command::Link(arguments)), _) => link::link(arguments, options, console),
        (Some(Command::Disasm { file }), _) => inspect::inspect(file, listing::source, options, console),
        (Some(Command::Objdump { file }), _) => inspect::inspect(file, listing::object, options, console),
        (Some(Command::Nm { file }), _) => inspect::inspect(file, listing::symbols, options, console),
        (Some(Command::Size { files }), _) => inspect::size(files, options, console),
        (Some(Command::Doctor), _) => doctor::doctor(options, console),
        (Some(Command::Clean { labels }), _) => clean::clean(labels, options, console),
    }
}

/// The requested labels of these kinds, suites replaced by their members; a label that was named itself and is of
/// another kind is a fault, one that a pattern named is left out.
fn of_kinds(workspace: &Workspace, patterns: &[Pattern], kinds: &[RuleKind], wanted: &str) -> Result<Vec<Label>, Fault> {
    let kind_of = |label: &Label| workspace.target(label).map(|target| target.rule().kind());
    for pattern in patterns {
        if let Pattern::One(label) = pattern
            && let Some(target) = workspace.target(label)
            && target.rule().kind() != RuleKind::Suite
            && !kinds.contains(&target.rule().kind())
        {
            let rule = target.rule().name();
            return Err(Fault::input(format!("`{label}` is a `{rule}`\n --> {}     expected {wanted}", target.place())));
        }
    }
    let mut labels = workspace.expand_suites(workspace.requested());
    labels.retain(|label| kind_of(label).is_some_and(|kind| kinds.contains(&kind)));
    Ok(labels)
}

/// The requested targets that are built or run, suites replaced by their members.
fn built_targets(workspace: &Workspace) -> Vec<Label> {
    let mut labels = workspace.expand_suites(workspace.requested());
    labels.retain(|label| workspace.target(label).is_some_and(|target| target.rule().kind().is_built()));
    labels
}

/// The fault of patterns that name nothing of what a command is for.
fn nothing_named(patterns: &[Pattern], wanted: &str) -> Fault {
    let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    Fault::input(format!("`{}` names no {wanted}", patterns.join(" ")))
}
