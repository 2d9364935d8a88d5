//! Runs a chip up to what somebody wants to see.

use std::collections::BTreeMap;

use ipu21::tile::{COUNT, PhysTile};

use crate::chip::{Chip, Stop};
use crate::code::Operation;
use crate::debug::selection::{TileSelection, TraceFilter};
use crate::debug::stepper::{Next, Stepper, store};
use crate::debug::trigger::{Breakpoint, Trigger, overlap};
use crate::exchange::{Message, Way};
use crate::fault::{Cause, Context};
use crate::tile::{Environment, State, Tile};

/// A completed barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// Of the tiles alone; otherwise with the host.
    pub internal: bool,
    /// Clock at which waiting tiles went on.
    pub release: u64,
    /// By tile the clock of its arrival; `None` for tiles that had announced it and ran on.
    pub arrivals: Vec<Option<u64>>,
}

impl Barrier {
    pub(crate) fn of(tiles: &[Tile], internal: bool, release: u64) -> Barrier {
        let waits = |tile: &Tile| match tile.state {
            State::Barrier { .. } => true,
            State::Announced => tile.credits == 1,
            _ => false,
        };
        Barrier { internal, release, arrivals: tiles.iter().map(|tile| waits(tile).then_some(tile.arrival)).collect() }
    }
}

/// Who wrote to watched bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The instruction at [`Hit::pc`].
    Instruction,
    /// The exchange.
    Exchange {
        /// Who sent the words.
        source: PhysTile,
    },
    /// The host, which changed some of the bytes.
    Host,
}

/// Why a debugged chip stopped on a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The next instruction is that of a breakpoint.
    Breakpoint {
        /// Its number.
        id: u32,
    },
    /// Watched bytes were written.
    Write {
        /// Number of the watchpoint.
        id: u32,
        /// First byte written.
        address: u32,
        /// Bytes written.
        bytes: u32,
        /// By whom.
        writer: Writer,
    },
    /// The steps asked for were made.
    Stepped,
}

/// A stop on a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The tile.
    pub tile: PhysTile,
    /// The context that came to it.
    pub context: Context,
    /// Byte address: of the next instruction, of the one that stored, or of the step that was made last.
    pub pc: u32,
    /// Clock.
    pub clock: u64,
    /// What stopped it.
    pub why: Why,
}

/// Why a debugged chip stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// As a chip without a debugger would.
    Stopped(Stop),
    /// On a tile.
    Hit(Hit),
}

/// An instruction or bundle that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The tile.
    pub tile: PhysTile,
    /// The context.
    pub context: Context,
    /// Byte address.
    pub pc: u32,
    /// Clock of its issue.
    pub clock: u64,
    /// The word there and the one behind it.
    pub words: [Option<u32>; 2],
}

/// Is told of traced instructions.
pub trait Observer {
    /// An instruction that passes a filter was executed.
    fn executed(&mut self, instruction: &Executed);
}

/// How often an instruction was executed, and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Executions.
    pub executed: u64,
    /// Clocks of the context from its issue to the next one.
    pub clocks: u64,
    /// Clocks that a supervisor waited for its workers behind it.
    pub waited: u64,
}

/// Steps to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRequest {
    /// On this tile.
    pub tile: PhysTile,
    /// Of this context; `None`: of all.
    pub context: Option<Context>,
    /// So many instructions or bundles, not 0.
    pub left: u64,
}

/// What is kept of a tile.
#[derive(Debug, Default)]
struct Probe {
    stepper: Stepper,
    /// The breakpoint at this context's next instruction was told.
    told: Option<Context>,
    /// By program counter, for supervisor and workers.
    profile: [BTreeMap<u32, Count>; 2],
    /// Messages that watchpoints looked at.
    seen: usize,
}

/// What a tile's instructions are compared with.
struct Plan<'a> {
    addresses: Vec<(u32, &'a Breakpoint)>,
    mnemonics: Vec<(&'a str, &'a Breakpoint)>,
    writes: Vec<((u32, u32), &'a Breakpoint)>,
    traces: Vec<&'a TraceFilter>,
    profiles: bool,
    steps: bool,
}

impl Plan<'_> {
    /// Whether a turn at a time is needed at all.
    fn is_needed(&self) -> bool {
        self.can_stop() || self.profiles
    }

    fn can_stop(&self) -> bool {
        let stops = [self.addresses.is_empty(), self.mnemonics.is_empty(), self.writes.is_empty(), self.traces.is_empty()];
        stops.contains(&false) || self.steps
    }

    /// Whether instructions have to be looked at, besides their addresses.
    fn looks_at_operations(&self) -> bool {
        !(self.mnemonics.is_empty() && self.writes.is_empty() && self.traces.is_empty())
    }

    /// The breakpoint at an instruction.
    fn stop_at(&self, issue: &Issue) -> Option<u32> {
        let applies = |breakpoint: &&Breakpoint| breakpoint.context.is_none_or(|context| context == issue.context);
        let at = self.addresses.iter().filter(|(address, _)| *address == issue.pc).map(|(_, breakpoint)| *breakpoint);
        let mnemonics = issue.mnemonics();
        let named = self.mnemonics.iter().filter(|(name, _)| mnemonics.contains(&Some(name))).map(|(_, breakpoint)| *breakpoint);
        at.chain(named).find(applies).map(|breakpoint| breakpoint.id)
    }

    /// The watchpoint that a store to these bytes meets.
    fn stop_behind(&self, context: Context, stored: (u32, u32)) -> Option<u32> {
        let applies = |breakpoint: &Breakpoint| breakpoint.context.is_none_or(|wanted| wanted == context);
        let meets = |(watched, breakpoint): &&((u32, u32), &Breakpoint)| overlap(*watched, stored) && applies(breakpoint);
        self.writes.iter().find(meets).map(|(_, breakpoint)| breakpoint.id)
    }
}

/// An instruction about to be executed.
struct Issue {
    context: Context,
    pc: u32,
    /// Clock of its issue, as far as it is known.
    clock: u64,
    lanes: Option<(Operation, Option<Operation>)>,
}

impl Issue {
    fn of(tile: &mut Tile, context: Context, plan: &Plan<'_>, environment: &Environment) -> Issue {
        let worker = |n: u8| tile.workers.as_deref().map(|workers| (workers[usize::from(n)].pc, workers[usize::from(n)].next));
        let (pc, mut clock) = match context {
            Context::Supervisor => (tile.pc, tile.clock),
            Context::Worker(n) => worker(n).unwrap_or_default(),
        };
        let fetched = plan.looks_at_operations().then(|| tile.code.fetch(&mut tile.memory, &environment.decoder, pc).ok()).flatten();
        let lanes = fetched.map(|(main, aux)| (*main, aux.copied()));
        if let (Context::Supervisor, Some((operation, _))) = (context, &lanes) {
            clock = tile.issue_clock(operation);
        }
        Issue { context, pc, clock, lanes }
    }

    fn mnemonics(&self) -> [Option<&'static str>; 2] {
        match &self.lanes {
            None => [None; 2],
            Some((main, aux)) => [main.mnemonic(), aux.as_ref().and_then(Operation::mnemonic)],
        }
    }
}

/// Breakpoints, traces, steps and counts, and where each tile stands between two instructions.
#[derive(Debug)]
pub struct Debugger {
    breakpoints: Vec<Breakpoint>,
    last_id: u32,
    /// Which instructions an observer is told of.
    pub traces: Vec<TraceFilter>,
    /// Whose instructions are counted.
    pub profiled: TileSelection,
    step: Option<StepRequest>,
    probes: Vec<Probe>,
}

impl Default for Debugger {
    fn default() -> Debugger {
        Debugger {
            breakpoints: Vec::new(),
            last_id: 0,
            traces: Vec::new(),
            profiled: TileSelection::none(),
            step: None,
            probes: (0..COUNT).map(|_| Probe::default()).collect(),
        }
    }
}

impl Debugger {
    /// Adds a breakpoint and gives it a number.
    pub fn add(&mut self, trigger: Trigger, tiles: TileSelection, context: Option<Context>, once: bool) -> &Breakpoint {
        self.last_id += 1;
        self.breakpoints.push(Breakpoint { id: self.last_id, trigger, tiles, context, once, hits: 0 });
        &self.breakpoints[self.breakpoints.len() - 1]
    }

    /// Removes a breakpoint; whether there was one.
    pub fn delete(&mut self, id: u32) -> bool {
        let before = self.breakpoints.len();
        self.breakpoints.retain(|breakpoint| breakpoint.id != id);
        self.breakpoints.len() != before
    }

    /// The breakpoints by number.
    #[must_use]
    pub fn breakpoints(&self) -> &[Breakpoint] {
        &self.breakpoints
    }

    /// Stops the next run behind so many instructions, or not.
    pub fn step(&mut self, request: Option<StepRequest>) {
        self.step = request;
    }

    /// What was counted of a tile so far, by program counter: of its supervisor and of its workers.
    #[must_use]
    pub fn profile(&self, tile: PhysTile) -> [&BTreeMap<u32, Count>; 2] {
        let [supervisor, workers] = &self.probes[tile.index()].profile;
        [supervisor, workers]
    }

    /// Begins anew with another chip: breakpoints, traces and what is to be counted stay.
    pub fn restart(&mut self) {
        self.step = None;
        self.probes.iter_mut().for_each(|probe| *probe = Probe::default());
        self.breakpoints.iter_mut().for_each(|breakpoint| breakpoint.hits = 0);
    }

    /// Runs until nobody can move, as [`Chip::run`] does, or until something is to be seen. Called again it goes on from there.
    pub fn run(&mut self, chip: &mut Chip, observer: &mut dyn Observer) -> Halt {
        chip.barriers.get_or_insert_default();
        chip.tiles.iter_mut().for_each(|tile| _ = tile.exchange.messages.get_or_insert_default());
        if let Some(stop) = chip.failure() {
            return Halt::Stopped(stop);
        }
        loop {
            self.run_quietly(chip);
            for index in 0..COUNT {
                if let Some(hit) = self.run_tile(chip, index, observer) {
                    return Halt::Hit(self.counted(hit));
                }
            }
            if let Some(hit) = self.written_from_outside(chip) {
                return Halt::Hit(self.counted(hit));
            }
            if let Some(stop) = chip.failure() {
                return Halt::Stopped(stop);
            }
            let before = self.watched(chip);
            match chip.advance() {
                Ok(true) => {}
                Ok(false) => return Halt::Stopped(chip.standstill()),
                Err(fault) => return Halt::Stopped(Stop::Fault(*fault)),
            }
            if let Some(hit) = self.written_from_outside(chip).or_else(|| self.changed(chip, &before)) {
                return Halt::Hit(self.counted(hit));
            }
        }
    }

    /// Lets a worker that stopped at a `trap` go on behind it; whether there was one. The trap costs one turn.
    pub fn resume_worker_trap(&mut self, chip: &mut Chip) -> bool {
        let Some(Stop::Fault(fault)) = chip.failure() else { return false };
        let tile = &mut chip.tiles[fault.tile.index()];
        let (Cause::Breakpoint { .. }, Context::Worker(n)) = (&fault.cause, fault.context) else { return false };
        let Some(worker) = tile.workers.as_deref_mut().map(|workers| &mut workers[usize::from(n)]) else { return false };
        worker.pc = fault.pc + 4;
        worker.next = fault.clock + u64::from(crate::barrier::SLOT);
        tile.state = std::mem::replace(&mut tile.failed_in, State::Idle);
        true
    }

    fn counted(&mut self, hit: Hit) -> Hit {
        if let Why::Breakpoint { id } | Why::Write { id, .. } = hit.why {
            self.breakpoints.iter_mut().filter(|breakpoint| breakpoint.id == id).for_each(|breakpoint| breakpoint.hits += 1);
            self.breakpoints.retain(|breakpoint| breakpoint.id != id || !breakpoint.once);
        }
        hit
    }

    fn plan(&self, tile: PhysTile) -> Plan<'_> {
        let mut plan = Plan {
            addresses: Vec::new(),
            mnemonics: Vec::new(),
            writes: Vec::new(),
            traces: self.traces.iter().filter(|trace| trace.tiles.contains(tile)).collect(),
            profiles: self.profiled.contains(tile),
            steps: self.step.is_some_and(|step| step.tile == tile),
        };
        for breakpoint in self.breakpoints.iter().filter(|breakpoint| breakpoint.tiles.contains(tile)) {
            match &breakpoint.trigger {
                Trigger::Address(places) => {
                    let here = places.iter().filter(|(_, tiles)| tiles.contains(tile));
                    plan.addresses.extend(here.map(|(address, _)| (*address, breakpoint)));
                }
                Trigger::Mnemonic(name) => plan.mnemonics.push((name, breakpoint)),
                Trigger::Write { address, bytes } => plan.writes.push(((*address, *bytes), breakpoint)),
            }
        }
        plan
    }

    /// Runs the tiles that cannot stop; those that are counted a turn at a time.
    fn run_quietly(&mut self, chip: &mut Chip) {
        let mut probes = std::mem::take(&mut self.probes);
        let this = &*self;
        chip.run_each(&mut probes, |tile, probe, environment| {
            let plan = this.plan(tile.id);
            if plan.can_stop() {
                return;
            }
            if plan.is_needed() || probe.stepper.is_between() {
                go(tile, probe, &plan, environment, &mut None, &mut Nobody);
            } else {
                tile.run(environment);
            }
        });
        self.probes = probes;
    }

    /// Runs a tile that may stop.
    fn run_tile(&mut self, chip: &mut Chip, index: usize, observer: &mut dyn Observer) -> Option<Hit> {
        let (tile, environment) = (&mut chip.tiles[index], &chip.environment);
        if !tile.can_go() {
            return None;
        }
        let mut probe = std::mem::take(&mut self.probes[index]);
        let mut step = self.step;
        let hit = go(tile, &mut probe, &self.plan(tile.id), environment, &mut step, observer);
        self.step = step.filter(|_| hit.is_none());
        self.probes[index] = probe;
        hit
    }

    /// Watched bytes that the exchange wrote since they were looked at last.
    fn written_from_outside(&mut self, chip: &Chip) -> Option<Hit> {
        for (tile, probe) in chip.tiles.iter().zip(&mut self.probes) {
            let messages = tile.exchange.messages.as_deref().unwrap_or_default();
            while let Some(message) = messages.get(probe.seen) {
                probe.seen += 1;
                let Message { way: Way::Received { source }, address, words, clock } = *message else { continue };
                let meets = |breakpoint: &&Breakpoint| {
                    let watched =
                        matches!(breakpoint.trigger, Trigger::Write { address: at, bytes } if overlap((at, bytes), (address, 4 * words)));
                    watched && breakpoint.tiles.contains(tile.id) && breakpoint.context.is_none()
                };
                if let Some(breakpoint) = self.breakpoints.iter().find(meets) {
                    let why = Why::Write { id: breakpoint.id, address, bytes: 4 * words, writer: Writer::Exchange { source } };
                    return Some(Hit { tile: tile.id, context: Context::Supervisor, pc: tile.pc, clock, why });
                }
            }
        }
        None
    }

    /// The contents of all watched bytes, while the host may write.
    fn watched(&self, chip: &Chip) -> Vec<(u32, PhysTile, Vec<u8>)> {
        let mut contents = Vec::new();
        for breakpoint in self.breakpoints.iter().filter(|breakpoint| breakpoint.context.is_none()) {
            let Trigger::Write { address, bytes } = breakpoint.trigger else { continue };
            for tile in breakpoint.tiles.tiles() {
                contents.push((breakpoint.id, tile, chip.read_raw(tile, address, bytes).unwrap_or_default()));
            }
        }
        contents
    }

    fn changed(&self, chip: &Chip, before: &[(u32, PhysTile, Vec<u8>)]) -> Option<Hit> {
        before.iter().find_map(|(id, tile, contents)| {
            let breakpoint = self.breakpoints.iter().find(|breakpoint| breakpoint.id == *id)?;
            let Trigger::Write { address, bytes } = breakpoint.trigger else { return None };
            let now = chip.read_raw(*tile, address, bytes).ok()?;
            let differs = |(now, before): (&u8, &u8)| now != before;
            let first = now.iter().zip(contents).position(differs)? as u32;
            let last = now.iter().zip(contents).rposition(differs)? as u32;
            let state = &chip.tiles[tile.index()];
            let why = Why::Write { id: *id, address: address + first, bytes: last + 1 - first, writer: Writer::Host };
            Some(Hit { tile: *tile, context: Context::Supervisor, pc: state.pc, clock: state.clock, why })
        })
    }
}

/// Nobody watches.
struct Nobody;

impl Observer for Nobody {
    fn executed(&mut self, _: &Executed) {}
}

/// Runs a tile until it needs the chip, ends, fails or stops.
fn go(
    tile: &mut Tile,
    probe: &mut Probe,
    plan: &Plan<'_>,
    environment: &Environment,
    step: &mut Option<StepRequest>,
    observer: &mut dyn Observer,
) -> Option<Hit> {
    while tile.can_go() && !matches!(tile.state, State::Failed(_) | State::Limited | State::Returned) {
        let next = probe.stepper.next(tile);
        let Some(context) = next.context() else {
            wait(tile, probe, plan, next, environment);
            continue;
        };
        let issue = Issue::of(tile, context, plan, environment);
        let hit = |tile: &Tile, clock, why| Some(Hit { tile: tile.id, context, pc: issue.pc, clock, why });
        if probe.told != Some(context)
            && let Some(id) = plan.stop_at(&issue)
        {
            probe.told = Some(context);
            return hit(tile, issue.clock, Why::Breakpoint { id });
        }
        let stored = issue.lanes.as_ref().filter(|_| !plan.writes.is_empty()).and_then(|(main, _)| store(tile, context, main));
        let (executed, clock) = (tile.instructions + tile.turns, tile.clock);
        probe.stepper.execute(tile, next, environment);
        if tile.instructions + tile.turns == executed {
            continue;
        }
        probe.told = None;
        if plan.profiles {
            count(tile, probe, &issue, clock);
        }
        if plan.traces.iter().any(|trace| trace.passes(context, issue.pc, issue.mnemonics())) {
            let word = |at: u32| tile.memory.load_word(at).ok().map(|(word, _)| word);
            let words = [word(issue.pc), word(issue.pc.wrapping_add(4))];
            observer.executed(&Executed { tile: tile.id, context, pc: issue.pc, clock: issue.clock, words });
        }
        if matches!(tile.state, State::Failed(_)) {
            return None;
        }
        if let Some((address, bytes)) = stored
            && let Some(id) = plan.stop_behind(context, (address, bytes))
        {
            return hit(tile, issue.clock, Why::Write { id, address, bytes, writer: Writer::Instruction });
        }
        if is_last_step(step, tile.id, context) {
            return hit(tile, issue.clock, Why::Stepped);
        }
    }
    None
}

/// What a supervisor does behind its workers' end.
fn wait(tile: &mut Tile, probe: &mut Probe, plan: &Plan<'_>, next: Next, environment: &Environment) {
    let clock = tile.clock;
    probe.stepper.execute(tile, next, environment);
    if plan.profiles {
        probe.profile[0].entry(tile.pc.wrapping_sub(4)).or_default().waited += tile.clock.saturating_sub(clock);
    }
}

fn count(tile: &Tile, probe: &mut Probe, issue: &Issue, before: u64) {
    let (part, clocks) = match issue.context {
        Context::Supervisor => (0, tile.clock.saturating_sub(before)),
        Context::Worker(n) => {
            let worker = tile.workers.as_deref().map(|workers| &workers[usize::from(n)]);
            let next = worker.filter(|worker| worker.active).map_or(issue.clock, |worker| worker.next);
            (1, next.saturating_sub(issue.clock).max(u64::from(crate::barrier::SLOT)))
        }
    };
    let count = probe.profile[part].entry(issue.pc).or_default();
    count.executed += 1;
    count.clocks += clocks;
}

/// Takes an instruction off the steps asked for; whether it was the last.
fn is_last_step(step: &mut Option<StepRequest>, tile: PhysTile, context: Context) -> bool {
    let Some(request) = step else { return false };
    if request.tile != tile || request.context.is_some_and(|wanted| wanted != context) {
        return false;
    }
    request.left = request.left.saturating_sub(1);
    request.left == 0
}
