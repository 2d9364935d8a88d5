//! The source of what every tile starts with: the prologue of machine.md d.7 and the routines its program calls.

use std::collections::BTreeMap;

use toolchain::assembler::Source;

use crate::placement::STAGING;

/// Written by a tile that has passed its last barrier; see [`COMPLETION_VALUE`].
pub const COMPLETION: u32 = 0x5_3ff8;
/// Value of the completion word at the end; 0 before.
pub const COMPLETION_VALUE: u32 = 1;
/// Six worker scratch areas, contiguous.
pub const SCRATCH: u32 = 0x5_2000;
/// Bytes of one worker scratch area.
pub const SCRATCH_BYTES: u32 = 0x100;

/// Assembler source of the runtime of a program with `checkpoints` checkpoints. Traps alternate, so that a late tile cannot be
/// mistaken, and lie at the same addresses on all tiles (machine.md f.11).
pub fn source(checkpoints: usize) -> Source {
    let mut text = include_str!("runtime.S").to_owned();
    for number in 0..checkpoints {
        text.push_str(&format!(
            "        .globl checkpoint_{number}\ncheckpoint_{number}:\n        trap {}\n        br $m10\n",
            trap_number(number)
        ));
    }
    Source { name: "runtime.S".to_owned(), text }
}

/// Trap number of a checkpoint.
pub fn trap_number(checkpoint: usize) -> u8 {
    (checkpoint % 2) as u8
}

/// Assembler defines of the runtime.
pub fn defines() -> BTreeMap<String, i64> {
    let values = [
        ("NEUTRAL", ipu21::exchange_word::NEUTRAL),
        ("STAGING", STAGING.0),
        ("SCRATCH", SCRATCH),
        ("SCRATCH_BYTES", SCRATCH_BYTES),
        ("COMPLETION", COMPLETION),
    ];
    values.into_iter().map(|(name, value)| (name.to_owned(), i64::from(value))).collect()
}
