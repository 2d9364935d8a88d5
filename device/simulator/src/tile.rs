//! One tile: a supervisor, six workers, memory. It runs alone until it needs the rest of the chip.

use ipu21::parameters::Parameters;
use ipu21::tile::PhysTile;

use crate::barrier::SLOT;
use crate::code::{CodeTable, Decoder};
use crate::coefficients::Coefficients;
use crate::context::{MainRegisters, Worker};
use crate::crew::{Crew, Until};
use crate::exchange::Exchange;
use crate::fault::{Cause, Context, Fault};
use crate::host_port::PacketStream;
use crate::memory::{TileMemory, scramble};

/// Clocks of supervisor instructions (parameters.toml `[supervisor]`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) instruction: u64,
    pub(crate) ld64putcs: u64,
    pub(crate) ld128putcs: u64,
    pub(crate) taken_branch: u64,
    pub(crate) runall: u64,
    pub(crate) local_sync_return: u64,
    pub(crate) result_latency: u64,
    pub(crate) csr_latency: u64,
}

impl Timing {
    fn of(parameters: &Parameters) -> Timing {
        let supervisor = &parameters.supervisor;
        Timing {
            instruction: supervisor.independent_instruction.into(),
            ld64putcs: supervisor.ld64putcs.into(),
            ld128putcs: supervisor.ld128putcs.into(),
            taken_branch: supervisor.taken_branch.into(),
            runall: supervisor.runall.into(),
            local_sync_return: supervisor.local_sync_return.into(),
            result_latency: supervisor.result_latency.into(),
            csr_latency: supervisor.csr_latency.into(),
        }
    }
}

/// What of a worker outlives its exit (parameters.toml `[state]`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Survival {
    /// `$m`, `$a` and `$TAS`.
    pub(crate) registers: bool,
    /// `$AACC`.
    pub(crate) accumulators: bool,
}

/// What all tiles share while they run.
#[derive(Debug)]
pub(crate) struct Environment {
    /// Turns words into operations.
    pub(crate) decoder: Decoder,
    /// Whether workers run by the reference interpreter.
    pub(crate) reference: bool,
    /// What a tile multiplies with that never loaded coefficients.
    pub(crate) no_coefficients: Coefficients,
    /// Clocks of supervisor instructions.
    pub(crate) timing: Timing,
    /// A tile whose clock passes this stops.
    pub(crate) clock_limit: u64,
    /// Initial `$FP_ICTL`.
    pub(crate) fp_ictl: u32,
    /// What of a worker outlives its exit.
    pub(crate) survival: Survival,
}

impl Environment {
    /// For these parameters.
    pub(crate) fn new(parameters: &Parameters, clock_limit: u64) -> Environment {
        Environment {
            decoder: Decoder::new(parameters),
            reference: false,
            no_coefficients: Coefficients::default(),
            timing: Timing::of(parameters),
            clock_limit,
            fp_ictl: parameters.state.fp_ictl_at_reset,
            survival: Survival {
                registers: parameters.state.registers_survive_exit_and_run,
                accumulators: parameters.state.accumulators_survive_exit_and_run,
            },
        }
    }
}

/// Where a tile stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not started.
    Idle,
    /// Can go on alone.
    Running,
    /// Waits for words of the exchange to be settled.
    Paused,
    /// Waits at `sync 0`.
    Receiving,
    /// Waits at `sync 1`.
    Announced,
    /// Waits at a barrier of all tiles.
    Barrier { zone: u32 },
    /// Stands at a trap.
    Trapped { number: u32 },
    /// Branches to itself with no worker running.
    Halted,
    /// Returned to the address given to [`Tile::call`].
    Returned,
    /// Passed the clock limit.
    Limited,
    /// Failed.
    Failed(Box<Fault>),
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            State::Idle => write!(f, "not started"),
            State::Running => write!(f, "can run"),
            State::Paused => write!(f, "waits for a source that has not come far enough"),
            State::Receiving => write!(f, "sync 0"),
            State::Announced => write!(f, "sync 1"),
            State::Barrier { zone } => write!(f, "sync {zone}"),
            State::Trapped { number } => write!(f, "trap {number}"),
            State::Halted => write!(f, "branches to itself"),
            State::Returned => write!(f, "returned"),
            State::Limited => write!(f, "clock limit"),
            State::Failed(fault) => fault.fmt(f),
        }
    }
}

/// One tile.
#[derive(Debug)]
pub(crate) struct Tile {
    pub(crate) id: PhysTile,
    pub(crate) memory: TileMemory,
    pub(crate) code: CodeTable,
    pub(crate) coefficients: Option<Box<Coefficients>>,
    pub(crate) workers: Option<Box<[Worker; 6]>>,
    salt: u64,
    pub(crate) state: State,
    /// What it did when it failed.
    pub(crate) failed_in: State,
    /// Supervisor program counter.
    pub(crate) pc: u32,
    /// Clock at which the supervisor can issue next.
    pub(crate) clock: u64,
    pub(crate) main: MainRegisters,
    /// Clock from which a main register of the supervisor can be used.
    pub(crate) ready: [u64; 16],
    /// Lower control registers by number.
    pub(crate) csr: Vec<u32>,
    /// The control register written last, and the clock from which it can be used.
    pub(crate) csr_ready: (u32, u64),
    /// A bit for each running worker.
    pub(crate) active: u8,
    /// Waits at `sync 2`.
    pub(crate) joining: bool,
    /// Clock of worker 0's slot, modulo 6.
    pub(crate) slot_base: u64,
    /// Clock of the last launch with no worker running.
    pub(crate) launched: u64,
    /// Clock at which the last worker was done.
    pub(crate) done: u64,
    /// `$SSR.LC`: the statuses of exits, ANDed.
    pub(crate) consensus: bool,
    /// Announced barriers outstanding.
    pub(crate) credits: u32,
    /// Clock of the arrival at the barrier.
    pub(crate) arrival: u64,
    /// Arrived at the last host barrier by `sync 15`.
    pub(crate) master: bool,
    pub(crate) exchange: Exchange,
    /// The next instruction was already settled with the exchange.
    pub(crate) pass: bool,
    /// Words sent to the host port and not yet understood.
    pub(crate) host_words: PacketStream,
    /// The host port may not be used before this clock.
    pub(crate) host_payload_until: u64,
    /// Words arrived since INCOMING_DCOUNT was set.
    pub(crate) arrived: u32,
    /// Program counters to note.
    pub(crate) watch: Vec<u32>,
    /// Notes: program counter and clock.
    pub(crate) hits: Vec<(u32, u64)>,
    /// A supervisor that reaches this address has returned.
    pub(crate) return_to: Option<u32>,
    /// Supervisor instructions executed.
    pub(crate) instructions: u64,
    /// Worker bundles and instructions executed.
    pub(crate) turns: u64,
}

impl Tile {
    /// A tile full of poison.
    pub(crate) fn new(id: PhysTile, seed: u64, fp_ictl: u32) -> Tile {
        let salt = scramble(seed ^ u64::from(id.get()) << 32);
        let mut csr = vec![0; 256];
        csr[0x20] = fp_ictl;
        Tile {
            id,
            memory: TileMemory::new(salt),
            code: CodeTable::default(),
            coefficients: None,
            workers: None,
            salt,
            state: State::Idle,
            failed_in: State::Idle,
            pc: ipu21::memory::ENTRY,
            clock: 0,
            main: MainRegisters::new(salt),
            ready: [0; 16],
            csr,
            csr_ready: (0, 0),
            active: 0,
            joining: false,
            slot_base: 0,
            launched: 0,
            done: 0,
            consensus: true,
            credits: 0,
            arrival: 0,
            master: false,
            exchange: Exchange::new(),
            pass: false,
            host_words: PacketStream::default(),
            host_payload_until: 0,
            arrived: 0,
            watch: Vec::new(),
            hits: Vec::new(),
            return_to: None,
            instructions: 0,
            turns: 0,
        }
    }

    /// The workers, made when first launched.
    pub(crate) fn workers(&mut self) -> &mut [Worker; 6] {
        let salt = self.salt;
        self.workers.get_or_insert_with(|| Box::new(std::array::from_fn(|n| Worker::new(n as u8, salt))))
    }

    /// Binary16 overflows of all workers.
    pub(crate) fn overflows(&self) -> u64 {
        self.workers.as_ref().map_or(0, |workers| workers.iter().map(|worker| worker.float.overflows).sum())
    }

    /// Whether it can go on alone.
    pub(crate) fn can_go(&self) -> bool {
        self.state == State::Running || self.active != 0
    }

    /// Runs until the tile needs the chip, ends or fails. Workers left running behind a waiting supervisor run to their end.
    pub(crate) fn run(&mut self, environment: &Environment) {
        while self.can_go() {
            let step = if self.state != State::Running || self.joining {
                self.join(environment)
            } else if self.return_to == Some(self.pc) && self.active == 0 {
                self.state = State::Returned;
                return;
            } else if self.active != 0 {
                self.share(environment)
            } else {
                self.supervisor_step(environment)
            };
            if let Err(fault) = step {
                self.fail(fault);
                return;
            }
            if self.clock > environment.clock_limit {
                self.state = State::Limited;
                return;
            }
        }
    }

    /// Stands still, failed.
    pub(crate) fn fail(&mut self, fault: Box<Fault>) {
        self.failed_in = std::mem::replace(&mut self.state, State::Failed(fault));
    }

    pub(crate) fn supervisor_step(&mut self, environment: &Environment) -> Result<(), Box<Fault>> {
        self.supervise(environment).map_err(|cause| self.fault(Context::Supervisor, self.pc, self.clock, *cause))
    }

    /// Runs all workers to their end; a joining supervisor goes on behind the last.
    pub(crate) fn join(&mut self, environment: &Environment) -> Result<(), Box<Fault>> {
        self.run_workers(environment, Until::AllEnded)?;
        if self.joining && self.active == 0 {
            self.joining = false;
            self.clock = self.clock.max(self.done) + environment.timing.local_sync_return;
        }
        Ok(())
    }

    /// Workers and supervisor share the slots: the supervisor issues in slots of inactive workers.
    fn share(&mut self, environment: &Environment) -> Result<(), Box<Fault>> {
        if self.active == 0x3f {
            self.run_workers(environment, Until::OneEnded)?;
            return Ok(());
        }
        let issue = self.free_slot(self.clock);
        self.run_workers(environment, Until::Clock(issue))?;
        if self.free_slot(self.clock) == issue || self.active == 0 {
            return self.supervisor_step(environment);
        }
        Ok(())
    }

    /// The first clock from `clock` on whose slot belongs to no running worker: the slot of one that ended is free from its next
    /// turn on, so a supervisor that goes on behind `runall` waits for the first that ends.
    pub(crate) fn free_slot(&self, clock: u64) -> u64 {
        if self.active == 0 && self.done <= clock {
            return clock;
        }
        if self.active == 0x3f {
            return clock.max(self.done);
        }
        let Some(workers) = self.workers.as_deref() else { return clock };
        let slots = u64::from(SLOT);
        let free = workers.iter().filter(|worker| !worker.active).map(|worker| {
            let from = clock.max(self.slot_base).max(worker.next);
            from + (u64::from(worker.number) + slots - (from - self.slot_base) % slots) % slots
        });
        free.min().unwrap_or(clock)
    }

    /// Runs workers in the order of their slots.
    fn run_workers(&mut self, environment: &Environment, until: Until) -> Result<(), Box<Fault>> {
        let Some(mut crew) = self.crew(environment) else { return Ok(()) };
        if let Some(clock) = crew.run(until)? {
            self.clock = clock;
        }
        Ok(())
    }

    /// The workers with what they work on, once they were launched.
    pub(crate) fn crew<'a>(&'a mut self, environment: &'a Environment) -> Option<Crew<'a>> {
        Some(Crew {
            tile: self.id,
            workers: self.workers.as_deref_mut()?,
            memory: &mut self.memory,
            code: &mut self.code,
            coefficients: self.coefficients.as_deref().unwrap_or(&environment.no_coefficients),
            environment,
            active: &mut self.active,
            turns: &mut self.turns,
            consensus: &mut self.consensus,
            done: &mut self.done,
        })
    }

    /// What differs first between two tiles, in words.
    pub(crate) fn first_difference(&self, other: &Tile) -> Option<[String; 2]> {
        let own = |tile: &Tile| {
            let counts = (tile.clock, tile.instructions, tile.turns, tile.done, tile.launched, tile.slot_base);
            format!("{counts:?} {:?} pc {:#x} active {:#x} consensus {}", tile.state, tile.pc, tile.active, tile.consensus)
        };
        let memory = |tile: &Tile, address| format!("memory {address:#x}: {:x?}", tile.memory.double(address));
        let main = |tile: &Tile| format!("supervisor {:x?} {:x?}", tile.main, tile.csr);
        let worker = |tile: &Tile, n: usize| tile.workers.as_ref().map_or_else(String::new, |workers| workers[n].in_words());
        let at = self.memory.first_difference(&other.memory);
        let mut pairs = vec![[own(self), own(other)], [main(self), main(other)]];
        pairs.extend(at.map(|address| [memory(self, address), memory(other, address)]));
        pairs.extend((0..6).map(|n| [worker(self, n), worker(other, n)]));
        pairs.into_iter().find(|[one, two]| one != two)
    }

    /// A fault of this tile.
    pub(crate) fn fault(&self, context: Context, pc: u32, clock: u64, cause: Cause) -> Box<Fault> {
        Box::new(Fault { tile: self.id, context, pc, clock, cause })
    }

    /// A fault of the supervisor at its present place.
    pub(crate) fn supervisor_fault(&self, cause: Cause) -> Box<Fault> {
        self.fault(Context::Supervisor, self.pc, self.clock, cause)
    }

    /// A fault of the first worker that runs, or of the supervisor when none does.
    pub(crate) fn running_fault(&self, cause: Cause) -> Box<Fault> {
        let lead = self.workers.as_ref().and_then(|workers| workers.iter().enumerate().find(|(_, worker)| worker.active));
        match lead {
            Some((n, worker)) => self.fault(Context::Worker(n as u8), worker.pc, self.clock, cause),
            None => self.supervisor_fault(cause),
        }
    }

    /// Lets the supervisor call `entry` with the argument block in `$m0`; it returns to `return_to`.
    pub(crate) fn call(&mut self, entry: u32, argument_block: u32, return_to: u32) {
        self.main.set(0, argument_block, true);
        self.main.set(10, return_to, true);
        self.pc = entry;
        self.return_to = Some(return_to);
        self.state = State::Running;
    }

    /// Goes on behind a trap, as if the trap word were a nop.
    pub(crate) fn resume_trap(&mut self, environment: &Environment) {
        if matches!(self.state, State::Trapped { .. }) {
            self.pc += 4;
            self.clock += environment.timing.instruction;
            self.state = State::Running;
        }
    }

    /// Goes on behind a barrier.
    pub(crate) fn release(&mut self, clock: u64, taken_branch: u64, internal: bool) {
        self.clock = clock;
        self.exchange.release(clock + taken_branch, internal);
        self.state = State::Running;
    }
}
