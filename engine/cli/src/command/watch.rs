//! `ipubuild watch`: builds, and builds again whenever a file is saved.
//!
//! One loop hears of touched files, of the end of the build, and of the user. The build runs on a thread of its own, which
//! takes the engine and gives it back, so that what the engine knows serves the next build. A file that changes under a
//! running build stops it between stages.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use graph::{
    Engine, Event, EventSink, Failure, InterruptHandle, NotBegun, Pattern, RunOutcome, Session, SourcePath, TargetReport, Workspace,
};

use crate::arguments::Options;
use crate::builder::{self, Run};
use crate::command::built_targets;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::interruption;
use crate::opened::Surroundings;
use crate::watch::{Changes, Heard, Known, SCAN, Watcher};

pub(crate) fn watch(labels: &[String], scan: bool, options: &Options, console: &Arc<Console>) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let patterns = surroundings.patterns(labels)?;
    let rounds = Arc::new(Rounds::new(&surroundings, options, console)?);
    let engine = plain_engine(&surroundings, options, &rounds)?;
    Watch::new(surroundings, patterns, scan, rounds, &engine)?.run(engine, options)
}

fn plain_engine(surroundings: &Surroundings, options: &Options, rounds: &Arc<Rounds>) -> Result<Engine, Fault> {
    builder::plain_engine(surroundings.store()?, surroundings.sources(), options.threads(), rounds.clone())
}

/// How often declarations are read at most while new files come to be watched.
const LOADS: usize = 4;

/// Every build is a run of its own, with a record of its own.
struct Rounds {
    console: Arc<Console>,
    current: Mutex<Arc<Run>>,
}

impl Rounds {
    fn new(surroundings: &Surroundings, options: &Options, console: &Arc<Console>) -> Result<Rounds, Fault> {
        Ok(Rounds { console: console.clone(), current: Mutex::new(Run::start(surroundings, options, console, None)?) })
    }

    fn begin(&self, surroundings: &Surroundings, options: &Options) -> Result<(), Fault> {
        *self.lock() = Run::start(surroundings, options, &self.console, None)?;
        Ok(())
    }

    fn current(&self) -> Arc<Run> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Run>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for Rounds {
    fn event(&self, event: &Event) {
        self.current().event(event);
    }
}

/// What serves one build after the other.
enum Held {
    /// No declarations were loaded yet.
    Engine(Box<Engine>),
    Session(Box<Session>),
}

impl Held {
    fn engine(&self) -> &Engine {
        match self {
            Held::Engine(engine) => engine,
            Held::Session(session) => session.engine(),
        }
    }
}

struct Watch {
    surroundings: Surroundings,
    patterns: Vec<Pattern>,
    rounds: Arc<Rounds>,
    console: Arc<Console>,
    handle: InterruptHandle,
    known: Known,
    watcher: Watcher,
    changes: Changes,
    hears: Receiver<Heard>,
    tells: Sender<Heard>,
    /// Whether the declarations are loaded as they are.
    is_loaded: bool,
    /// Whether the workspace's root was not where it should be when it was looked for last.
    is_root_gone: bool,
    /// What was said of declarations with faults, so that it is said once.
    complaint: Option<String>,
}

/// What a build thread gives back.
type Built = (Box<Session>, Result<Vec<TargetReport>, Failure>);

/// How a round of the loop ended.
enum Ending {
    /// Everything was built, and every verdict is a pass.
    Pass,
    /// A verdict failed.
    Fail,
    /// Something could not be built.
    Error,
    /// The declarations still have the faults that were told.
    Told,
    /// A change stopped the build.
    Stopped,
}

/// Why the loop goes on.
enum Next {
    Build,
    End(Exit),
}

impl Watch {
    fn new(surroundings: Surroundings, patterns: Vec<Pattern>, scan: bool, rounds: Arc<Rounds>, engine: &Engine) -> Result<Watch, Fault> {
        let (tells, hears) = channel();
        let root = surroundings.root();
        let known = Known::new(root, surroundings.store_directory(), &patterns);
        let (watcher, why) = if scan { (Watcher::scanning(tells.clone()), None) } else { Watcher::new(root, tells.clone()) };
        let watch = Watch {
            surroundings,
            patterns,
            console: rounds.console.clone(),
            rounds,
            handle: engine.interrupt_handle(),
            known,
            watcher,
            changes: Changes::default(),
            hears,
            tells,
            is_loaded: false,
            is_root_gone: false,
            complaint: None,
        };
        watch.tell_scanning(why);
        Ok(watch)
    }

    fn run(mut self, engine: Engine, options: &Options) -> Result<Exit, Fault> {
        let mut changed = Vec::new();
        let mut held = Held::Engine(Box::new(engine));
        loop {
            if !held.engine().store().is_in_place() {
                self.console.tell("the store was deleted or replaced: everything is built again");
                let engine = plain_engine(&self.surroundings, options, &self.rounds)?;
                self.handle = engine.interrupt_handle();
                held = Held::Engine(Box::new(engine));
                self.is_loaded = false;
            }
            self.rounds.begin(&self.surroundings, options)?;
            interruption::arm(self.handle.clone(), self.console.clone(), self.rounds.current());
            let (started, before) = (Instant::now(), self.console.counts());
            let ending;
            (held, ending) = self.round(held, &mut changed);
            let outcome = match ending {
                Ending::Pass => Some(RunOutcome::Succeeded),
                Ending::Fail => Some(RunOutcome::VerdictFailed),
                Ending::Error | Ending::Told => None,
                Ending::Stopped => Some(RunOutcome::Interrupted),
            };
            if let Some(outcome) = outcome.or_else(|| self.complaint.clone().map(RunOutcome::Failed)) {
                self.rounds.current().keep(held.engine().store(), outcome, &self.console);
            }
            let goes_on = if matches!(ending, Ending::Stopped) { !interruption::is_signalled() } else { self.rest() };
            if !goes_on {
                return Ok(Exit::Interrupted);
            }
            let word = match ending {
                Ending::Stopped => continue,
                Ending::Pass => Some("PASS"),
                Ending::Fail => Some("FAIL"),
                Ending::Error => Some("ERROR"),
                Ending::Told => None,
            };
            if let Some(word) = word {
                let after = self.console.counts();
                let (executed, found) = (after.0 - before.0, after.1 - before.1);
                let seconds = started.elapsed().as_secs_f64();
                let what = subject(&changed);
                self.console.result(&format!("{what}: {executed} stages executed, {found} found in the store, {seconds:.2} s: {word}"));
            }
            changed.clear();
            match self.wait(&mut changed) {
                Next::Build => {}
                Next::End(exit) => return Ok(exit),
            }
        }
    }

    fn round(&mut self, held: Held, changed: &mut Vec<String>) -> (Held, Ending) {
        match self.prepare(held, changed) {
            Ok(session) => {
                self.rounds.current().request(&session.requested());
                let (session, ending) = self.build(session, changed);
                (Held::Session(session), ending)
            }
            Err((held, fault)) => {
                let known = changed.iter().any(|name| self.known.is_known(name));
                let told = self.complaint.as_ref() == Some(&fault.message);
                if !told {
                    self.console.fault(&fault);
                    self.complaint = Some(fault.message);
                }
                (held, if told && !known { Ending::Told } else { Ending::Error })
            }
        }
    }

    /// A session that knows the files as they are: only the changed sources are read again where that is enough.
    fn prepare(&mut self, held: Held, changed: &[String]) -> Result<Box<Session>, (Held, Fault)> {
        let sources: Vec<SourcePath> = changed.iter().map(|path| SourcePath { repository: String::new(), path: path.clone() }).collect();
        let held = match held {
            Held::Session(mut session) if self.is_loaded && session.knows(&sources) => {
                return match session.change_sources(&sources) {
                    Ok(_) => Ok(session),
                    Err(failure) => {
                        // Other sources that changed at the same time were not taken over.
                        self.is_loaded = false;
                        let fault = Fault::build(session.workspace(), &failure);
                        Err((Held::Session(session), fault))
                    }
                };
            }
            held => held,
        };
        let workspace = match self.load() {
            Ok(workspace) => workspace,
            Err(fault) => return Err((held, fault)),
        };
        let labels = built_targets(&workspace);
        match held {
            Held::Engine(engine) => match Session::begin(*engine, workspace, &labels) {
                Ok(session) => Ok(Box::new(session)),
                Err(fault) => {
                    self.is_loaded = false;
                    let NotBegun { failure, engine, workspace } = *fault;
                    Err((Held::Engine(Box::new(engine)), Fault::build(&workspace, &failure)))
                }
            },
            Held::Session(mut session) => match session.reload(workspace, &labels) {
                Ok(()) => Ok(session),
                Err(failure) => {
                    self.is_loaded = false;
                    let fault = Fault::build(session.workspace(), &failure);
                    Err((Held::Session(session), fault))
                }
            },
        }
    }

    /// The declarations, read again.
    fn load(&mut self) -> Result<Workspace, Fault> {
        let mut loads = 0;
        loop {
            let loading = SystemTime::now();
            let workspace = self.load_now()?;
            let new = self.known.learn(&workspace);
            self.watch_folders();
            loads += 1;
            // Files that changed while they were not watched are read once more, now that they are.
            if self.known.settle(new, loading) || loads == LOADS {
                self.complaint = None;
                self.is_loaded = true;
                return Ok(workspace);
            }
        }
    }

    fn load_now(&mut self) -> Result<Workspace, Fault> {
        self.surroundings.load(&self.patterns).inspect_err(|_| {
            self.known.learn_fault();
            self.watch_folders();
        })
    }

    fn watch_folders(&mut self) {
        let why = self.watcher.watch(self.known.folders());
        self.tell_scanning(why);
    }

    fn tell_scanning(&self, why: Option<String>) {
        if let Some(why) = why {
            self.console.tell(&format!("{why}; all files are looked at five times a second instead"));
        }
    }

    /// Builds, unless a change stops it: then the changed files are added to `changed`.
    fn build(&mut self, session: Box<Session>, changed: &mut Vec<String>) -> (Box<Session>, Ending) {
        let running = self.start(session);
        let (mut stopped, mut ended) = (false, false);
        // A file that was touched before the end is looked at: a build of what it held before is of no interest.
        while !ended || (!stopped && self.changes.due().is_some()) {
            match self.hear() {
                Some(Heard::Ended) => ended = true,
                Some(heard) => self.note(heard),
                None => {}
            }
            if let Some(names) = self.due_changes() {
                add_names(changed, names);
                stopped = true;
                self.handle.interrupt();
            }
        }
        let (session, result) = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if stopped && !interruption::is_signalled() {
            self.handle.reset();
        }
        let ending = if stopped { Ending::Stopped } else { self.conclude(&session, &result) };
        (session, ending)
    }

    fn start(&self, mut session: Box<Session>) -> JoinHandle<Built> {
        let ended = Ended(self.tells.clone());
        std::thread::spawn(move || {
            let _ended = ended;
            let mut reports = Vec::new();
            let built = session.requested().iter().try_for_each(|label| {
                reports.extend(session.build(label)?);
                Ok(())
            });
            (session, built.map(|()| reports))
        })
    }

    fn conclude(&mut self, session: &Session, result: &Result<Vec<TargetReport>, Failure>) -> Ending {
        match result {
            Err(failure) => {
                let fault = Fault::build(session.workspace(), failure);
                self.console.fault(&fault);
                self.complaint = Some(fault.message);
                Ending::Error
            }
            Ok(reports) => {
                self.complaint = None;
                for report in reports {
                    self.console.target(report);
                    self.rounds.current().target(report);
                }
                if reports.iter().all(|report| report.success) { Ending::Pass } else { Ending::Fail }
            }
        }
    }

    /// A signal is heard between builds from here on, before anyone reads that a build ended. False when there was one.
    fn rest(&self) -> bool {
        let tells = self.tells.clone();
        interruption::rest(Arc::new(move || drop(tells.send(Heard::Stop))))
    }

    /// Waits for a change.
    fn wait(&mut self, changed: &mut Vec<String>) -> Next {
        loop {
            match self.hear() {
                Some(Heard::Stop) => {
                    self.console.tell("stopped");
                    return Next::End(Exit::Success);
                }
                Some(heard) => self.note(heard),
                None => {}
            }
            if let Some(names) = self.due_changes() {
                add_names(changed, names);
                return Next::Build;
            }
        }
    }

    /// The next message, or nothing when it is time to look at files.
    fn hear(&self) -> Option<Heard> {
        let now = Instant::now();
        let scan = (self.watcher.is_scanning() || self.is_root_gone || !self.known.has_root()).then_some(SCAN);
        let due = self.changes.due().map(|due| due.saturating_duration_since(now));
        match scan.into_iter().chain(due).min() {
            None => self.hears.recv().ok(),
            Some(longest) => self.hears.recv_timeout(longest).ok(),
        }
    }

    fn note(&mut self, heard: Heard) {
        let now = Instant::now();
        match heard {
            Heard::Touched(paths) => {
                paths.into_iter().filter(|path| self.known.concerns(path)).for_each(|path| self.changes.add(path, now));
            }
            Heard::Lost => {
                self.console.tell("too many files changed at once to be told of each; all files are looked at");
                self.changes.add_everything(now);
            }
            Heard::Unable(why) => {
                self.watcher.scan();
                self.tell_scanning(Some(why));
                self.changes.add_everything(now);
            }
            Heard::Ended | Heard::Stop => {}
        }
    }

    /// Files that changed, when it is time to look and there are some.
    fn due_changes(&mut self) -> Option<Vec<String>> {
        let now = Instant::now();
        let was_gone = std::mem::replace(&mut self.is_root_gone, !self.known.has_root());
        if was_gone && !self.is_root_gone {
            // Nobody told of what happened there meanwhile, nor is it watched any more.
            self.changes.add_everything(now);
        }
        if self.changes.due().is_none() && (self.watcher.is_scanning() || !self.known.has_root()) {
            self.changes.add_everything(now);
            if self.known.look(&self.changes).is_empty() {
                self.changes = Changes::default();
            }
            return None;
        }
        if self.changes.due().is_none_or(|due| due > now) {
            return None;
        }
        let mut look = self.known.look(&self.changes);
        if look.lost && self.changes.wait_for_return(now) {
            return None;
        }
        if look.folders && !self.watcher.is_scanning() {
            let why = self.watcher.renew();
            self.tell_scanning(why);
            self.known.name_folders();
            self.watch_folders();
            // What happened before the folders were watched again was not told.
            self.changes.add_everything(now);
            look.merge(self.known.look(&self.changes));
        }
        self.changes = Changes::default();
        if look.is_empty() {
            return None;
        }
        if look.declares {
            self.is_loaded = false;
        }
        Some(self.known.accept(look))
    }
}

/// Says that the build ended, also when it panics.
struct Ended(Sender<Heard>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.send(Heard::Ended);
    }
}

/// What a build is about: the changed files, the first by name.
fn subject(changed: &[String]) -> String {
    match changed {
        [] => "built".to_owned(),
        [first] => format!("{first} changed"),
        [first, second] => format!("{first} and {second} changed"),
        [first, rest @ ..] => format!("{first} and {} others changed", rest.len()),
    }
}

fn add_names(changed: &mut Vec<String>, names: Vec<String>) {
    for name in names {
        if !changed.contains(&name) {
            changed.push(name);
        }
    }
}
