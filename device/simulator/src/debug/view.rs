//! What can be looked at while a chip stands.

use ipu21::tile::PhysTile;

use crate::chip::{Chip, describe};
use crate::debug::Barrier;
use crate::exchange::Message;
use crate::fault::Context;
use crate::memory::{ReadFault, span};

/// The registers of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Whether it runs; a supervisor always does.
    pub is_running: bool,
    /// Byte address of its next instruction.
    pub pc: u32,
    /// Clock of its next issue, at the earliest.
    pub clock: u64,
    /// `$m0..$m15`.
    pub main: [u32; 16],
    /// A bit for each main register that somebody wrote.
    pub main_written: u16,
    /// What only workers have.
    pub worker: Option<WorkerRegisters>,
}

/// Registers that only workers have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerRegisters {
    /// `$a0..$a15`.
    pub aux: [u32; 16],
    /// A bit for each aux register that was written.
    pub aux_written: u16,
    /// First byte of the repeat body, first byte behind it, passes left; passes are 0 when no repeat runs.
    pub repeat: (u32, u32, u32),
    /// `$AACC`, bits of f32: 16 active ones, then 16 staged ones.
    pub accumulators: [u32; 32],
    /// A bit for each accumulator that was written.
    pub accumulators_written: u32,
    /// `$TAS`, once written.
    pub scale: Option<u32>,
    /// `$FP_CTL` and `$FP_STS`.
    pub float: (u32, u32),
}

impl Chip {
    /// The registers of a context; of a worker that was never launched `None`.
    #[must_use]
    pub fn registers(&self, tile: PhysTile, context: Context) -> Option<Registers> {
        let tile = &self.tiles[tile.index()];
        let Context::Worker(number) = context else {
            let (main, main_written) = (*tile.main.values(), tile.main.written());
            return Some(Registers { is_running: true, pc: tile.pc, clock: tile.clock, main, main_written, worker: None });
        };
        let worker = tile.workers.as_ref()?.get(usize::from(number))?;
        let (accumulators, accumulators_written) = worker.accumulators.contents();
        Some(Registers {
            is_running: worker.active,
            pc: worker.pc,
            clock: worker.next,
            main: *worker.main.values(),
            main_written: worker.main.written(),
            worker: Some(WorkerRegisters {
                aux: worker.aux,
                aux_written: worker.aux_written,
                repeat: (worker.repeat.first, worker.repeat.end, worker.repeat.count),
                accumulators,
                accumulators_written,
                scale: worker.scale_written.then_some(worker.scale),
                float: (worker.float.control, worker.float.status),
            }),
        })
    }

    /// What a tile does or waits for, in words.
    #[must_use]
    pub fn standing(&self, tile: PhysTile) -> String {
        describe(&self.tiles[tile.index()])
    }

    /// Words of a tile, `None` where nobody wrote all four bytes.
    ///
    /// # Errors
    /// [`ReadFault::Outside`] outside memory.
    pub fn words(&self, tile: PhysTile, address: u32, count: u32) -> Result<Vec<Option<u32>>, ReadFault> {
        let memory = &self.tiles[tile.index()].memory;
        let address = address & !3;
        span(address, count.saturating_mul(4))?;
        let word = |at| memory.load_word(at).ok().filter(|(_, written)| *written == 1).map(|(word, _)| word);
        Ok((0..count).map(|i| word(address + 4 * i)).collect())
    }

    /// The barriers completed since its debugger began.
    #[must_use]
    pub fn barriers(&self) -> &[Barrier] {
        self.barriers.as_deref().unwrap_or_default()
    }

    /// What a tile sent and received since its debugger began, in the order in which it was settled.
    #[must_use]
    pub fn messages(&self, tile: PhysTile) -> &[Message] {
        self.tiles[tile.index()].exchange.messages.as_deref().unwrap_or_default()
    }
}
