//! Blocks of code and rows by name.

use compiler::kernel_table::printed;
use compiler::placement::Block;
use compiler::program::{Expanded, VariantId};

/// A block in words; kernels by their variant when the program is known.
pub(super) fn block_name(block: Block, program: Option<&Expanded>) -> String {
    match block {
        Block::Runtime => "runtime".to_owned(),
        Block::Program => "program".to_owned(),
        Block::Copy => "copy".to_owned(),
        Block::Greeting => "greeting".to_owned(),
        Block::Kernel(variant) => format!("kernel {}", kernel_name(variant, program)),
        Block::Host(number) => format!("host phase {number}"),
        Block::Row(phase) => format!("exchange row {phase}"),
    }
}

/// A kernel variant as its object is indexed.
pub(super) fn kernel_name(variant: VariantId, program: Option<&Expanded>) -> String {
    let known = program.and_then(|program| program.variants.get(variant.0 as usize));
    known.map_or_else(|| variant.0.to_string(), printed)
}
