//! Bytes in buffers on each tile.

use compiler::program::Expanded;
use ipu21::tile::COUNT;

/// By tile number; buffers that follow one another in time count each.
pub(super) fn tile_bytes(program: &Expanded) -> Vec<u64> {
    let mut bytes = vec![0; COUNT];
    for buffer in &program.buffers {
        buffer.tiles.iter().for_each(|tile| bytes[tile.index()] += u64::from(buffer.bytes));
    }
    bytes
}
