//! One tile by itself: kernel tests, and the measurement of a kernel call.

use ipu21::parameters::Parameters;
use ipu21::tile::PhysTile;

use crate::debug;
use crate::fault::{Cause, Fault};
use crate::image::{self, LoadFault, Segment};
use crate::memory::{self, ReadFault};
use crate::tile::{Environment, State, Tile};

/// Where a measured call returns to: an address that nothing is loaded at.
const RETURN: u32 = memory::BASE;
/// Worker scratch areas: six of 0x100 bytes (`$m12` of the workers), just below region 1.
const SCRATCH: u32 = memory::REGION_1 - 6 * SCRATCH_BYTES;
const SCRATCH_BYTES: u32 = 0x100;
/// A call that takes longer is given up.
const CALL_CLOCKS_MAX: u64 = 1 << 26;

/// What a call cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallMeasurement {
    /// Clocks from the issue of `setzi $m0` to the first instruction behind the call.
    pub clocks: u64,
    /// Supervisor instructions executed inside the call.
    pub supervisor_instructions: u64,
    /// Worker bundles and solo instructions executed.
    pub worker_turns: u64,
    /// Results that saturated because binary16 ended.
    pub f16_overflows: u64,
}

/// One tile without a chip.
#[derive(Debug)]
pub struct SingleTile {
    tile: Tile,
    environment: Environment,
    entry_clocks: u64,
    by_steps: bool,
}

impl SingleTile {
    /// A tile full of poison chosen by `seed`, with the six worker bases set to 256-byte scratch areas.
    #[must_use]
    pub fn new(parameters: &Parameters, seed: u64) -> SingleTile {
        let environment = Environment::new(parameters, CALL_CLOCKS_MAX);
        let mut tile = Tile::new(PhysTile::all().next().unwrap_or_else(|| unreachable!("there are tiles")), seed, environment.fp_ictl);
        for worker in 0..6 {
            tile.csr[ipu21::csr::WORKER0_BASE as usize + worker] = SCRATCH + SCRATCH_BYTES * worker as u32;
        }
        let supervisor = &parameters.supervisor;
        let entry_clocks = u64::from(supervisor.independent_instruction + supervisor.taken_branch);
        SingleTile { tile, environment, entry_clocks, by_steps: false }
    }

    /// Takes every turn of a worker by the reference interpreter from now on: slower, same results.
    pub fn use_reference_interpreter(&mut self) {
        self.environment.reference = true;
    }

    /// Takes every turn as a debugger does from now on: slower, same results.
    pub fn use_debugger_steps(&mut self) {
        self.by_steps = true;
    }

    /// Places segments.
    ///
    /// # Errors
    /// [`LoadFault`] for a segment that is not inside memory or overlaps another.
    pub fn load(&mut self, segments: &[Segment]) -> Result<(), LoadFault> {
        image::load(&mut self.tile.memory, segments)
    }

    /// Writes bytes; every word touched counts as written.
    ///
    /// # Errors
    /// [`ReadFault::Outside`] for a span that is not inside memory.
    pub fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), ReadFault> {
        self.tile.memory.write_bytes(address, bytes)
    }

    /// Reads bytes that somebody wrote.
    ///
    /// # Errors
    /// [`ReadFault`] outside memory, or for poison.
    pub fn read(&self, address: u32, bytes: u32) -> Result<Vec<u8>, ReadFault> {
        match self.tile.memory.bytes(address, bytes)? {
            (bytes, None) => Ok(bytes),
            (_, Some(address)) => Err(ReadFault::Poison { address }),
        }
    }

    /// Reads bytes, poison or not.
    ///
    /// # Errors
    /// [`ReadFault::Outside`] outside memory.
    pub fn read_raw(&self, address: u32, bytes: u32) -> Result<Vec<u8>, ReadFault> {
        Ok(self.tile.memory.bytes(address, bytes)?.0)
    }

    /// Executes `setzi $m0, argument_block; call $m10, entry` and the call until it returns.
    ///
    /// # Errors
    /// The tile's [`Fault`]; [`Cause::CallDidNotReturn`] and [`Cause::CallTooLong`] for a call that ends in anything but its return.
    pub fn run_call(&mut self, entry: u32, argument_block: u32) -> Result<CallMeasurement, Fault> {
        let (start, instructions, turns) = (self.tile.clock, self.tile.instructions, self.tile.turns);
        let overflows = self.tile.overflows();
        self.environment.clock_limit = start + CALL_CLOCKS_MAX;
        self.tile.call(entry, argument_block, RETURN);
        self.tile.ready[0] = start + self.environment.timing.result_latency;
        self.tile.clock = start + self.entry_clocks;
        self.tile.ready[10] = start + self.environment.timing.instruction + self.environment.timing.result_latency;
        if self.by_steps {
            debug::run_by_steps(&mut self.tile, &self.environment);
        } else {
            self.tile.run(&self.environment);
        }
        match std::mem::replace(&mut self.tile.state, State::Idle) {
            State::Returned => Ok(CallMeasurement {
                clocks: self.tile.clock - start,
                supervisor_instructions: self.tile.instructions - instructions,
                worker_turns: self.tile.turns - turns,
                f16_overflows: self.tile.overflows() - overflows,
            }),
            State::Failed(fault) => Err(*fault),
            State::Limited => Err(*self.tile.running_fault(Cause::CallTooLong { limit: CALL_CLOCKS_MAX })),
            state => Err(*self.tile.supervisor_fault(Cause::CallDidNotReturn { state: state.to_string() })),
        }
    }

    /// Worker bundles and solo instructions executed so far.
    #[must_use]
    pub fn worker_turns(&self) -> u64 {
        self.tile.turns
    }

    /// What differs first between two tiles of the same seed: clocks and counts, memory, then the registers and the
    /// floating-point, accumulator and repeat state of each worker; both sides in words.
    #[must_use]
    pub fn first_difference(&self, other: &SingleTile) -> Option<[String; 2]> {
        self.tile.first_difference(&other.tile)
    }

    /// Tile clock.
    #[must_use]
    pub fn clock(&self) -> u64 {
        self.tile.clock
    }
}

/// Measures one kernel call on a tile of its own: `setzi $m0, argument_block; call $m10, entry` up to the return.
///
/// # Errors
/// The tile's [`Fault`]; segments that cannot be placed give a fault of the supervisor at clock 0.
pub fn measure_call(segments: &[Segment], entry: u32, argument_block: u32, parameters: &Parameters) -> Result<CallMeasurement, Fault> {
    let mut tile = SingleTile::new(parameters, 0);
    if let Err(fault) = tile.load(segments) {
        let address = match fault {
            LoadFault::Outside { address, .. } | LoadFault::DataLongerThanMemory { address, .. } => address,
            LoadFault::Overlap { second, .. } => second,
        };
        let access = crate::fault::Access::Store;
        return Err(*tile.tile.supervisor_fault(Cause::AddressOutside { address, access }));
    }
    tile.run_call(entry, argument_block)
}
