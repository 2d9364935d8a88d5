//! The chip: 1472 tiles, their barriers, and the host.

use std::fmt;
use std::sync::Arc;

use ipu21::parameters::Parameters;
use ipu21::tile::{COUNT, PhysTile};
use rayon::prelude::*;

use crate::barrier::Latency;
use crate::debug::Barrier;
use crate::fabric;
use crate::fault::Fault;
use crate::host_port::HostPort;
use crate::image::{self, LoadFault, Segment};
use crate::memory::ReadFault;
use crate::tile::{Environment, State, Tile};

/// Choices of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChipOptions {
    /// Chooses the poison.
    pub seed: u64,
    /// Threads; 0 means one for each processor. Results do not depend on it.
    pub threads: usize,
    /// The run stops when a tile's clock passes this.
    pub clock_limit: u64,
}

/// Where a tile stands when nobody can move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The tile.
    pub tile: PhysTile,
    /// Program counter of its supervisor.
    pub pc: u32,
    /// Its clock.
    pub clock: u64,
    /// What it waits for, in words.
    pub what: String,
}

/// Why [`Chip::run`] returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All tiles wait at a host barrier and the host granted none.
    HostBarrier,
    /// All supervisors stand at this trap.
    Trap {
        /// Its operand.
        number: u32,
    },
    /// All tiles ended: they branch to themselves or wait for barriers that nobody will enter.
    Finished,
    /// A tile failed: the one with the smallest clock, then the smallest number.
    Fault(Fault),
    /// Nobody can move: one entry for each distinct kind of waiting, with the first tile found so.
    Stuck(Vec<Waiting>),
    /// A tile passed the clock limit.
    ClockLimit {
        /// The tile.
        tile: PhysTile,
    },
    /// A debugger gave the run up.
    GivenUp,
}

/// A note of a watched program counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchHit {
    /// The tile.
    pub tile: PhysTile,
    /// The watched program counter of its supervisor.
    pub pc: u32,
    /// Clock at which the instruction issued.
    pub clock: u64,
}

/// Figures of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Results that saturated, or became NaN, because binary16 ended.
    pub f16_overflows: u64,
    /// Supervisor instructions executed.
    pub supervisor_instructions: u64,
    /// Worker bundles and solo instructions executed.
    pub worker_turns: u64,
    /// Bytes of memory pages in which somebody wrote.
    pub touched_memory_bytes: u64,
}

/// A simulated chip.
pub struct Chip {
    pub(crate) tiles: Vec<Tile>,
    pub(crate) environment: Environment,
    latency: Latency,
    host: HostPort,
    pool: Option<rayon::ThreadPool>,
    /// Completed barriers, while a debugger asks for them.
    pub(crate) barriers: Option<Vec<Barrier>>,
}

impl fmt::Debug for Chip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chip").field("tiles", &self.tiles.len()).finish_non_exhaustive()
    }
}

impl Chip {
    /// A chip full of poison.
    #[must_use]
    pub fn new(parameters: Arc<Parameters>, options: ChipOptions) -> Chip {
        let environment = Environment::new(&parameters, options.clock_limit);
        let tiles = PhysTile::all().map(|id| Tile::new(id, options.seed, environment.fp_ictl)).collect();
        Chip {
            tiles,
            latency: Latency::of(&parameters),
            environment,
            host: HostPort::new(),
            pool: rayon::ThreadPoolBuilder::new().num_threads(options.threads).build().ok(),
            barriers: None,
        }
    }

    /// Takes every turn of a worker by the reference interpreter from now on: slower, same results.
    pub fn use_reference_interpreter(&mut self) {
        self.environment.reference = true;
    }

    /// Places the segments of a tile.
    ///
    /// # Errors
    /// [`LoadFault`] for a segment that is not inside memory or overlaps another.
    pub fn load(&mut self, tile: PhysTile, segments: &[Segment]) -> Result<(), LoadFault> {
        image::load(&mut self.tiles[tile.index()].memory, segments)
    }

    /// Starts all supervisors at 0x4c010.
    pub fn start(&mut self) {
        for tile in &mut self.tiles {
            tile.pc = ipu21::memory::ENTRY;
            tile.state = State::Running;
        }
    }

    /// Attaches a host page; pages in between that are missing become empty.
    pub fn attach_page(&mut self, index: usize, bytes: Vec<u8>) {
        if self.host.pages.len() <= index {
            self.host.pages.resize(index + 1, Vec::new());
        }
        self.host.pages[index] = bytes;
    }

    /// A host page; empty if none is attached.
    #[must_use]
    pub fn page(&self, index: usize) -> &[u8] {
        self.host.pages.get(index).map_or(&[], Vec::as_slice)
    }

    /// A host page to write; empty if none is attached.
    pub fn page_mut(&mut self, index: usize) -> &mut [u8] {
        self.host.pages.get_mut(index).map_or(&mut [], Vec::as_mut_slice)
    }

    /// Permits this many more barriers of group 2 with the host.
    pub fn grant(&mut self, barriers: u32) {
        self.host.credits += barriers;
    }

    /// Permits this many more barriers of group 1 with the host.
    pub fn grant_group_1(&mut self, barriers: u32) {
        self.host.credits_of_group_1 += barriers;
    }

    /// Runs until nobody can move.
    pub fn run(&mut self) -> Stop {
        loop {
            self.run_tiles();
            if let Some(stop) = self.failure() {
                return stop;
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return self.standstill(),
                Err(fault) => return Stop::Fault(*fault),
            }
        }
    }

    fn run_tiles(&mut self) {
        let environment = &self.environment;
        let tiles = &mut self.tiles;
        spread(self.pool.as_ref(), || {
            tiles.par_iter_mut().filter(|tile| tile.can_go()).for_each(|tile| tile.run(environment));
        });
    }

    /// Runs every tile that can go on alone by `run`, which gets the tile's part of `parts`, too.
    pub(crate) fn run_each<P: Send>(&mut self, parts: &mut [P], run: impl Fn(&mut Tile, &mut P, &Environment) + Sync) {
        let environment = &self.environment;
        let tiles = &mut self.tiles;
        spread(self.pool.as_ref(), || {
            let pairs = tiles.par_iter_mut().zip(parts.par_iter_mut());
            pairs.filter(|(tile, _)| tile.can_go()).for_each(|(tile, part)| run(tile, part, environment));
        });
    }

    pub(crate) fn failure(&self) -> Option<Stop> {
        let faults = self.tiles.iter().filter_map(|tile| match &tile.state {
            State::Failed(fault) => Some(fault),
            _ => None,
        });
        if let Some(fault) = faults.min_by_key(|fault| (fault.clock, fault.tile)) {
            return Some(Stop::Fault(Fault::clone(fault)));
        }
        let limited = self.tiles.iter().find(|tile| tile.state == State::Limited);
        limited.map(|tile| Stop::ClockLimit { tile: tile.id })
    }

    /// Settles the exchange, serves the host port, or completes a barrier; whether somebody can move now.
    pub(crate) fn advance(&mut self) -> Result<bool, Box<Fault>> {
        if self.tiles.iter().any(|tile| tile.state == State::Paused) {
            return fabric::resolve(&mut self.tiles);
        }
        if self.tiles.iter().any(|tile| tile.state == State::Receiving) {
            return self.serve();
        }
        self.complete_barrier()
    }

    fn serve(&mut self) -> Result<bool, Box<Fault>> {
        for tile in &mut self.tiles {
            self.host.serve(tile).map_err(|cause| tile.supervisor_fault(*cause))?;
        }
        Ok(self.tiles.iter().any(|tile| tile.state == State::Running))
    }

    /// The zone all arrived tiles wait at, if all tiles arrived and at least one did so by a real `sync`.
    fn agreed_zone(&self) -> Option<u32> {
        let mut zone = None;
        for tile in &self.tiles {
            match tile.state {
                // Zones 12 to 15 are the master variants of 4 to 7.
                State::Barrier { zone: z } if zone.is_none_or(|agreed| agreed == z & 7) => zone = Some(z & 7),
                State::Barrier { .. } => return None,
                _ if tile.credits > 0 => {}
                _ => return None,
            }
        }
        zone
    }

    fn complete_barrier(&mut self) -> Result<bool, Box<Fault>> {
        let Some(zone) = self.agreed_zone() else { return Ok(false) };
        let internal = zone == 3;
        match zone {
            3 => _ = fabric::resolve(&mut self.tiles)?,
            // Groups 1 and 2 without the host: the chip is alone in both.
            4 | 6 => {}
            _ => {
                if *self.host.credits_for(zone) == 0 {
                    return Ok(false);
                }
                self.serve()?;
                self.host.close(&self.tiles).map_err(|(index, cause)| self.tiles[index].supervisor_fault(cause))?;
                *self.host.credits_for(zone) -= 1;
            }
        }
        let latest = self.tiles.iter().map(|tile| tile.arrival).max().unwrap_or(0);
        let release = latest + if internal { self.latency.internal } else { self.latency.host };
        let branch = self.environment.timing.taken_branch;
        if let Some(barriers) = &mut self.barriers {
            barriers.push(Barrier::of(&self.tiles, internal, release));
        }
        for tile in &mut self.tiles {
            pass_barrier(tile, release, branch, internal);
        }
        Ok(true)
    }

    pub(crate) fn standstill(&self) -> Stop {
        if let Some(number) = self.common_trap() {
            return Stop::Trap { number };
        }
        if matches!(self.agreed_zone(), Some(5 | 7)) {
            return Stop::HostBarrier;
        }
        let ended = |tile: &Tile| matches!(tile.state, State::Halted | State::Announced | State::Idle);
        if self.tiles.iter().all(ended) {
            return Stop::Finished;
        }
        Stop::Stuck(self.report())
    }

    fn common_trap(&self) -> Option<u32> {
        let number = |tile: &Tile| match tile.state {
            State::Trapped { number } => Some(number),
            _ => None,
        };
        let first = number(self.tiles.first()?)?;
        self.tiles.iter().all(|tile| number(tile) == Some(first)).then_some(first)
    }

    fn report(&self) -> Vec<Waiting> {
        let mut kinds: Vec<String> = Vec::new();
        let mut out = Vec::new();
        for tile in &self.tiles {
            let what = describe(tile);
            if !kinds.contains(&what) {
                kinds.push(what.clone());
                out.push(Waiting { tile: tile.id, pc: tile.pc, clock: tile.clock, what });
            }
        }
        out
    }

    /// Goes on behind the traps, as if each trap word were a nop.
    pub fn resume_traps(&mut self) {
        for tile in &mut self.tiles {
            tile.resume_trap(&self.environment);
        }
    }

    /// Reads bytes that somebody wrote.
    ///
    /// # Errors
    /// [`ReadFault`] outside memory, or for poison.
    pub fn read_memory(&self, tile: PhysTile, address: u32, bytes: u32) -> Result<Vec<u8>, ReadFault> {
        match self.tiles[tile.index()].memory.bytes(address, bytes)? {
            (bytes, None) => Ok(bytes),
            (_, Some(address)) => Err(ReadFault::Poison { address }),
        }
    }

    /// Reads bytes, poison or not.
    ///
    /// # Errors
    /// [`ReadFault::Outside`] outside memory.
    pub fn read_raw(&self, tile: PhysTile, address: u32, bytes: u32) -> Result<Vec<u8>, ReadFault> {
        Ok(self.tiles[tile.index()].memory.bytes(address, bytes)?.0)
    }

    /// Notes every execution of a supervisor program counter; costs and changes nothing.
    pub fn watch(&mut self, tile: PhysTile, pc: u32) {
        self.tiles[tile.index()].watch.push(pc);
    }

    /// All notes, by tile, in the order of execution.
    #[must_use]
    pub fn watched(&self) -> Vec<WatchHit> {
        let hits = |tile: &Tile| -> Vec<WatchHit> { tile.hits.iter().map(|&(pc, clock)| WatchHit { tile: tile.id, pc, clock }).collect() };
        self.tiles.iter().flat_map(hits).collect()
    }

    /// Clock of a tile.
    #[must_use]
    pub fn clock(&self, tile: PhysTile) -> u64 {
        self.tiles[tile.index()].clock
    }

    /// What the run depended on that is not certain, ascending: values of parameters.toml, and `isa.ID` for forms whose meaning
    /// isa.toml doubts. Counted are the instructions of the 256-byte blocks of code that tiles executed something of.
    #[must_use]
    pub fn parameters_read(&self) -> Vec<String> {
        let mut names = self.environment.decoder.depended_on();
        names.extend(ALWAYS_READ.iter().map(|name| (*name).to_owned()));
        names.into_iter().collect()
    }

    /// Figures of the run so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.tiles.iter().fold(Counters::default(), |sum, tile| Counters {
            f16_overflows: sum.f16_overflows + tile.overflows(),
            supervisor_instructions: sum.supervisor_instructions + tile.instructions,
            worker_turns: sum.worker_turns + tile.turns,
            touched_memory_bytes: sum.touched_memory_bytes + 4096 * tile.memory.touched_pages() as u64,
        })
    }
}

/// Values of parameters.toml that the clocks of every program come from.
const ALWAYS_READ: [&str; 3] = ["supervisor.csr_latency", "supervisor.independent_instruction", "supervisor.result_latency"];

fn spread(pool: Option<&rayon::ThreadPool>, work: impl FnOnce() + Send) {
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Takes a tile through a completed barrier: waiting tiles are released, announced ones lose a credit.
fn pass_barrier(tile: &mut Tile, release: u64, branch: u64, internal: bool) {
    match tile.state {
        State::Barrier { .. } => tile.release(release, branch, internal),
        _ => {
            tile.credits -= 1;
            tile.arrival = release;
            if tile.state == State::Announced && tile.credits == 0 {
                tile.release(release, branch, internal);
            }
        }
    }
}

pub(crate) fn describe(tile: &Tile) -> String {
    match &tile.state {
        State::Receiving => {
            let expected = tile.csr[ipu21::csr::INCOMING_DCOUNT as usize];
            format!("{} with {} of {expected} words", tile.state, tile.arrived)
        }
        State::Announced => format!("{} with {} announced barriers", tile.state, tile.credits),
        state => state.to_string(),
    }
}

const _: () = assert!(COUNT == 1472);
