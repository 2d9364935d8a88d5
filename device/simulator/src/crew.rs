//! The six workers of a tile, in the order of their slots.
//!
//! Two ways to run them, with the same results, clocks and faults. The *reference interpreter* takes one turn of one worker
//! at a time ([`Worker::turn`]). The *fast path* takes one instruction for all workers that stand at it, in the order of their
//! slots, so that fetching and dispatching are paid once for up to six turns (`plain`); where an instruction may fault or
//! changes code, it hands over to the reference interpreter before anything happened.

use ipu21::tile::PhysTile;
use multiversion::multiversion;

use crate::barrier::SLOT;

use crate::code::{BLOCK_BYTES, Block, CodeTable, Decoder, Operation};
use crate::coefficients::Coefficients;
use crate::context::Worker;
use crate::fault::{Cause, Context, Fault};
use crate::memory::TileMemory;
use crate::operation::Kind;
use crate::plain::{self, Group, Outcome, lanes_of};
use crate::products::Chains;
use crate::register_file::Files;
use crate::tile::Environment;
use crate::worker::{Shared, Turn};

/// Workers of a tile.
pub(crate) const WORKERS: usize = 6;
const SLOTS: u64 = SLOT as u64;

/// How far workers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// All have ended.
    AllEnded,
    /// One of six has ended.
    OneEnded,
    /// Every turn before this clock has been taken.
    Clock(u64),
}

impl Until {
    /// Whether a turn at `clock` is not taken any more.
    fn stops(self, active: u8, clock: u64) -> bool {
        match self {
            Until::AllEnded => false,
            Until::OneEnded => active != 0x3f,
            Until::Clock(limit) => clock >= limit,
        }
    }
}

/// The workers of a tile and what they work on.
pub(crate) struct Crew<'a> {
    pub(crate) tile: PhysTile,
    pub(crate) workers: &'a mut [Worker; WORKERS],
    pub(crate) memory: &'a mut TileMemory,
    pub(crate) code: &'a mut CodeTable,
    pub(crate) coefficients: &'a Coefficients,
    pub(crate) environment: &'a Environment,
    /// A bit for each running worker.
    pub(crate) active: &'a mut u8,
    /// Bundles and instructions executed.
    pub(crate) turns: &'a mut u64,
    /// The statuses of exits, ANDed.
    pub(crate) consensus: &'a mut bool,
    /// Clock at which the last worker was done.
    pub(crate) done: &'a mut u64,
}

impl Crew<'_> {
    /// Runs workers in the order of their slots. Returns the clock at which the clock limit was passed, if it was.
    pub(crate) fn run(&mut self, until: Until) -> Result<Option<u64>, Box<Fault>> {
        let Some(mut round) = self.first_round() else { return Ok(None) };
        while *self.active != 0 {
            let may_go = !self.environment.reference && !until.stops(*self.active, round);
            if may_go && self.are_together(round) && self.together(round, until)? {
                round = self.first_round().unwrap_or(round);
                continue;
            }
            if self.round(round, until)? {
                return Ok(None);
            }
            round += SLOTS;
            if round > self.environment.clock_limit {
                return Ok(Some(round));
            }
        }
        Ok(None)
    }

    fn first_round(&self) -> Option<u64> {
        self.workers.iter().filter(|worker| worker.active).map(Worker::round).min()
    }

    /// One round of slots, a turn for every worker that is ready. Returns whether `until` stopped it.
    fn round(&mut self, round: u64, until: Until) -> Result<bool, Box<Fault>> {
        for n in 0..WORKERS {
            if !self.workers[n].active || self.workers[n].round() > round {
                continue;
            }
            let clock = round + n as u64;
            if until.stops(*self.active, clock) {
                return Ok(true);
            }
            self.turn(n, clock)?;
        }
        Ok(false)
    }

    /// A turn of worker `n` by the reference interpreter.
    pub(crate) fn turn(&mut self, n: usize, clock: u64) -> Result<(), Box<Fault>> {
        let worker = &mut self.workers[n];
        let pc = worker.pc;
        *self.turns += 1;
        let mut shared = Shared { memory: self.memory, coefficients: self.coefficients };
        let turn = match self.code.fetch(shared.memory, &self.environment.decoder, pc) {
            Ok(fetched) => worker.turn(fetched, &mut shared),
            Err(cause) => Err(cause),
        };
        match turn {
            Ok(Turn::Took(slots)) => worker.next = clock + SLOTS * u64::from(slots),
            Ok(Turn::Exited(status)) => {
                *self.active &= !(1 << n);
                worker.next = clock + SLOTS;
                worker.forget(self.environment.survival);
                *self.consensus &= status;
                *self.done = (*self.done).max(clock + SLOTS);
            }
            Err(cause) => {
                let context = Context::Worker(n as u8);
                return Err(Box::new(Fault { tile: self.tile, context, pc, clock, cause: *cause }));
            }
        }
        Ok(())
    }

    /// Whether all running workers stand at one instruction and are ready in this round.
    fn are_together(&self, round: u64) -> bool {
        let mut running = self.workers.iter().filter(|worker| worker.active);
        let Some(lead) = running.next() else { return false };
        lead.round() == round && running.all(|worker| worker.stands_with(lead))
    }

    /// Runs all running workers, which are together, as long as they stay so. Returns whether they went on at all.
    fn together(&mut self, start: u64, until: Until) -> Result<bool, Box<Fault>> {
        let limit = match until {
            Until::Clock(limit) => limit.min(self.environment.clock_limit),
            _ => self.environment.clock_limit,
        };
        let mut files = Files::gather(self.workers, *self.active);
        let mut chains = Chains::new();
        let mut way = Way { members: *self.active, round: start, pc: 0, limit, passes: Passes::default() };
        way.take_bearings(self.workers);
        loop {
            let Crew { workers, memory, code, coefficients, environment, turns, .. } = &mut *self;
            let decoder = &environment.decoder;
            let is_plain = plain::floats_are_plain(workers, way.members);
            let mut group = Group { workers, members: way.members, files: &mut files, memory, coefficients, is_plain, chains: &mut chains };
            let stop = stretch(&mut group, &mut way, code, decoder, turns);
            way.passes.settle(self.workers, way.members, way.pc, way.round);
            if matches!(stop, Stop::Parted) && self.are_together(way.round) {
                way.take_bearings(self.workers);
                continue;
            }
            files.scatter(self.workers);
            chains.give_back(self.workers);
            match stop {
                Stop::Left | Stop::Parted => {}
                Stop::Failed { n, cause, next, slots } => {
                    for (other, worker) in members_of(self.workers, way.members).take_while(|(other, _)| *other < n) {
                        worker.go_on(next);
                        worker.next = way.round + other as u64 + SLOTS * slots;
                    }
                    let (context, clock) = (Context::Worker(n as u8), way.round + n as u64);
                    return Err(Box::new(Fault { tile: self.tile, context, pc: way.pc, clock, cause: *cause }));
                }
                Stop::Unusual { ends } if !ends || until == Until::AllEnded => {
                    // One worker's turn can end another's: it may store over this very instruction.
                    for n in lanes_of(way.members) {
                        let clock = way.round + n as u64;
                        if until.stops(*self.active, clock) {
                            return Ok(true);
                        }
                        self.turn(n, clock)?;
                    }
                    let next = self.first_round();
                    let Some(next) = next.filter(|&next| *self.active == way.members && self.are_together(next)) else {
                        return Ok(true);
                    };
                    way.round = next;
                    way.take_bearings(self.workers);
                    files = Files::gather(self.workers, way.members);
                    continue;
                }
                Stop::Unusual { .. } => {}
            }
            return Ok(way.round != start);
        }
    }
}

/// Where workers that are together stand.
struct Way {
    members: u8,
    /// Clock of worker 0's slot.
    round: u64,
    pc: u32,
    /// Rounds are taken together that end before this clock.
    limit: u64,
    passes: Passes,
}

impl Way {
    fn take_bearings(&mut self, workers: &mut [Worker; WORKERS]) {
        self.pc = workers[self.members.trailing_zeros() as usize % WORKERS].pc;
        self.passes = Passes::of(workers, self.members);
    }

    /// Goes on behind an instruction; whether all are still together.
    #[inline(always)]
    fn advance(&mut self, next: u32) -> bool {
        self.pc = next;
        let passes = &mut self.passes;
        if passes.left > 0 && next == passes.end {
            passes.left -= 1;
            passes.taken += 1;
            if passes.left == 0 {
                return false;
            }
            self.pc = passes.first;
        }
        true
    }
}

/// Why a stretch ended.
enum Stop {
    /// The next instruction is not one to take together.
    Left,
    /// Branches may have parted the workers.
    Parted,
    /// The next instruction is for the reference interpreter. `ends`: it ends workers.
    Unusual { ends: bool },
    /// Worker `n` failed; the others' next program counter, and the slots of the instruction.
    Failed { n: usize, cause: Box<Cause>, next: u32, slots: u64 },
}

/// Takes instructions together until something else has to be done.
#[multiversion(targets("x86_64+avx+avx2+bmi1+bmi2"))]
fn stretch(group: &mut Group<'_>, way: &mut Way, code: &mut CodeTable, decoder: &Decoder, turns: &mut u64) -> Stop {
    while code.prepare(group.memory, decoder, way.pc).is_ok()
        && let Some(block) = code.block(way.pc).filter(|_| way.pc.is_multiple_of(4))
    {
        if let Some(stop) = stretch_in(group, way, block, turns) {
            return stop;
        }
    }
    Stop::Left
}

/// Takes instructions of one block together, which none of them changes; nothing once the way leads out of it.
#[inline(always)]
fn stretch_in(group: &mut Group<'_>, way: &mut Way, block: &Block, turns: &mut u64) -> Option<Stop> {
    let count = u64::from(way.members.count_ones());
    let number = way.pc / BLOCK_BYTES;
    while way.pc / BLOCK_BYTES == number && way.pc.is_multiple_of(4) {
        let Ok((operation, partner)) = block.fetch(way.pc) else { return Some(Stop::Left) };
        let slots = slots(operation, partner);
        let may_go_on = way.passes.left == 0 || may_repeat(operation, partner);
        if !may_go_on || way.round + SLOTS * slots > way.limit.saturating_sub(SLOTS) {
            return Some(Stop::Left);
        }
        let next = way.pc + if partner.is_some() { 8 } else { 4 };
        let (target, parted) = match plain::execute(group, operation, partner, way.pc) {
            Outcome::Done => (next, false),
            Outcome::Goes(target) => (target, false),
            Outcome::Parts => (next, true),
            Outcome::Unusual => return Some(Stop::Unusual { ends: matches!(operation.kind, Kind::Exit(_)) }),
            Outcome::Failed(n, cause) => {
                *turns += u64::from((way.members & ((2u8 << n) - 1)).count_ones());
                return Some(Stop::Failed { n, cause, next, slots });
            }
        };
        way.round += SLOTS * slots;
        *turns += count;
        if parted {
            members_of(group.workers, way.members).for_each(|(n, worker)| worker.next = way.round + n as u64);
            way.passes.are_known = true;
            return Some(Stop::Parted);
        }
        if !way.advance(target) {
            return Some(Stop::Parted);
        }
    }
    None
}

/// The passes of a repeat that all members take before one of them is through.
#[derive(Default)]
struct Passes {
    first: u32,
    end: u32,
    /// Passes left, the running one included; 0 when no repeat runs.
    left: u32,
    /// Passes completed that the workers' counts do not know of yet.
    taken: u32,
    /// The workers know their places themselves.
    are_known: bool,
}

impl Passes {
    /// Of workers that stand together.
    fn of(workers: &mut [Worker; WORKERS], members: u8) -> Passes {
        let left = members_of(workers, members).map(|(_, worker)| worker.repeat.count).min().unwrap_or(0);
        let lead = &workers[members.trailing_zeros() as usize % WORKERS].repeat;
        Passes { first: lead.first, end: lead.end, left, taken: 0, are_known: false }
    }

    /// Gives the workers their places, clocks and counts; one whose repeat goes on at its end goes back to its start.
    fn settle(&mut self, workers: &mut [Worker; WORKERS], members: u8, pc: u32, round: u64) {
        if self.are_known {
            return;
        }
        let at_end = self.taken > 0 && self.left == 0;
        for (n, worker) in members_of(workers, members) {
            worker.repeat.count -= self.taken;
            worker.pc = if at_end && worker.repeat.is_running() { self.first } else { pc };
            worker.next = round + n as u64;
        }
        self.taken = 0;
    }
}

fn slots(operation: &Operation, partner: Option<&Operation>) -> u64 {
    u64::from(partner.map_or(operation.slots, |aux| operation.slots.max(aux.slots)))
}

/// Whether an instruction may stand in a repeat body.
fn may_repeat(operation: &Operation, partner: Option<&Operation>) -> bool {
    partner.is_some_and(|aux| !operation.is_barred_from_repeat && !aux.is_barred_from_repeat)
}

/// The members of a set with their numbers, in the order of their slots.
#[inline]
pub(crate) fn members_of(workers: &mut [Worker; WORKERS], members: u8) -> impl Iterator<Item = (usize, &mut Worker)> {
    workers.iter_mut().enumerate().filter(move |(n, _)| members >> n & 1 == 1)
}
