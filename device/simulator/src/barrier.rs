//! What barriers cost.
//!
//! The latency of the internal barrier alone is not known (machine.md d.5). The planning constant is that of an *empty phase*:
//! join the workers, announce, barrier, call the row, return. The latency here is what is left of it after the clocks of those
//! instructions, so that an empty phase costs the constant in full.

use ipu21::parameters::Parameters;

/// Clocks from the last arrival at a barrier to the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Barrier of all tiles (`sync 3`).
    pub internal: u64,
    /// Barrier of a group of chips, with the host or without (`sync 4` to `sync 7`, `sync 12` to `sync 15`).
    pub host: u64,
}

/// Clocks of the instructions of an empty phase without the barrier itself:
/// `setzi; runall` (the launch waits for its register), the last worker's slot, `sync 2`, `setzi; put INCOMING_DCOUNT`,
/// `sync 3`, `call`, `br`.
#[must_use]
pub fn empty_phase_instructions(parameters: &Parameters) -> u64 {
    let supervisor = &parameters.supervisor;
    let last_worker = SLOT_SKEW + SLOT;
    let clocks = supervisor.result_latency
        + supervisor.runall
        + last_worker
        + supervisor.local_sync_return
        + supervisor.result_latency
        + supervisor.independent_instruction
        + 2 * supervisor.taken_branch;
    u64::from(clocks)
}

/// Clocks of one worker slot.
pub(crate) const SLOT: u32 = 6;
/// Clocks between the first and the last worker's slot.
pub(crate) const SLOT_SKEW: u32 = 5;

impl Latency {
    /// The latencies that these parameters imply.
    #[must_use]
    pub fn of(parameters: &Parameters) -> Latency {
        let phase = u64::from(parameters.barrier.internal_empty_phase);
        Latency { internal: phase.saturating_sub(empty_phase_instructions(parameters)), host: u64::from(parameters.barrier.host) }
    }
}
