//! Addresses of buffers, rows and code: the memory map of the fullest tile, or of the one asked for.

use compiler::placement::{Block, Placement};
use compiler::program::Expanded;
use exchange::Schedule;
use graph::{Cell, Document, ShowFault, Shown};
use ipu21::memory;
use ipu21::tile::TileId;
use toolchain::object::Object;

use super::block_name::{block_name, kernel_name};
use super::selected_tile::selected_tile;
use super::tile_bytes::tile_bytes;
use crate::stage::tile_code::Code;

/// Something that lies in the memory of a tile.
struct Lying {
    address: u32,
    /// `None` when what tells the size is not in the store.
    bytes: Option<u32>,
    what: String,
    lives: String,
}

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let placement: Placement = shown.decode()?;
    let tile = selected_tile(shown)?;
    let Some(program) = shown.input::<Expanded>("expanded") else { return Ok(addresses(&placement)) };
    let tile = tile.or_else(|| fullest(&program)).unwrap_or_else(first_tile);
    let mut map = blocks(shown, &placement, &program, tile);
    map.extend(buffers(&placement, &program, tile));
    map.sort_by_key(|lying| lying.address);
    let used = covered(&map);
    let document = Document::default()
        .fact("code end", Cell::Address(placement.code_end))
        .fact("tile", Cell::Number(tile.get().into()))
        .fact("used bytes", used)
        .fact("memory bytes", memory::SIZE)
        .fact("utilisation percent", (used as f64 * 1000.0 / f64::from(memory::SIZE)).round() / 10.0);
    Ok(document.table("map", &["start", "end", "bytes", "region", "steps", "what"], map.iter().map(map_row)))
}

fn first_tile() -> TileId {
    TileId::all().next().expect("a chip has tiles")
}

/// What is known without the program.
fn addresses(placement: &Placement) -> Document {
    let blocks = placement.blocks.iter().map(|(block, address)| vec![block_name(*block, None).into(), Cell::Address(*address)]);
    let buffers =
        (0_u64..).zip(&placement.buffers).map(|(number, address)| vec![format!("buffer {number}").into(), Cell::Address(*address)]);
    Document::default().fact("code end", Cell::Address(placement.code_end)).table("addresses", &["what", "address"], blocks.chain(buffers))
}

/// The tile with the most bytes in buffers, the lowest one.
fn fullest(program: &Expanded) -> Option<TileId> {
    let bytes = tile_bytes(program);
    let used = TileId::all().filter(|tile| bytes[tile.index()] > 0);
    used.min_by_key(|tile| std::cmp::Reverse(bytes[tile.index()]))
}

fn buffers(placement: &Placement, program: &Expanded, tile: TileId) -> Vec<Lying> {
    let placed = program.buffers.iter().zip(&placement.buffers).filter(|(buffer, _)| buffer.tiles.contains(&tile));
    placed
        .map(|(buffer, address)| {
            let step = |step: Option<u32>| step.map_or_else(String::new, |step| step.to_string());
            let lives = format!("{}-{}", step(buffer.first_step), step(buffer.last_step));
            Lying { address: *address, bytes: Some(buffer.bytes), what: buffer.name.clone(), lives }
        })
        .collect()
}

fn blocks(shown: &Shown<'_>, placement: &Placement, program: &Expanded, tile: TileId) -> Vec<Lying> {
    let code: Option<Code> = shown.input("code");
    let class = code.as_ref().and_then(|code| code.code.classes.iter().find(|class| class.tiles.contains(&tile)));
    let has = |block: &Block| match (block, class) {
        (_, None) | (Block::Runtime | Block::Program | Block::Greeting, _) => true,
        (Block::Kernel(variant), Some(class)) => class.kernels.contains(variant),
        (Block::Copy, Some(class)) => class.copies,
        (Block::Host(number), Some(class)) => class.host_phases.contains(number),
        (Block::Row(phase), Some(class)) => class.phases.contains(phase),
    };
    let lying = |(block, address): (&Block, &u32)| {
        let bytes = match block {
            Block::Program => class.and_then(|class| u32::try_from(class.words.len() * 4).ok()),
            Block::Kernel(variant) => kernel_bytes(shown, &kernel_name(*variant, Some(program))),
            Block::Copy => kernel_bytes(shown, "copy"),
            Block::Runtime => kernel_bytes(shown, "runtime"),
            Block::Row(phase) => row_bytes(shown, *phase, tile),
            Block::Greeting | Block::Host(_) => None,
        };
        let what = block_name(*block, Some(program));
        Lying { address: *address, bytes, what, lives: String::new() }
    };
    placement.blocks.iter().filter(|(block, _)| has(block)).map(lying).collect()
}

fn kernel_bytes(shown: &Shown<'_>, index: &str) -> Option<u32> {
    let object: Object = shown.other("kernel_object", Some(index))?;
    u32::try_from(object.text().len()).ok()
}

/// Bytes of a tile's row, as the schedule of the phase says.
fn row_bytes(shown: &Shown<'_>, phase: u32, tile: TileId) -> Option<u32> {
    let schedules = shown.facts?.inputs.iter().filter(|(name, _)| name == "schedule");
    let (_, digest) = schedules.into_iter().nth(phase as usize)?;
    let schedule: Schedule = shown.read(digest)?;
    schedule.tiles.iter().find(|plan| plan.tile == tile)?.row_words.checked_mul(4)
}

fn map_row(lying: &Lying) -> Vec<Cell> {
    let end = lying.bytes.and_then(|bytes| lying.address.checked_add(bytes));
    let region = if lying.address < memory::REGION1 { "standard" } else { "interleaved" };
    vec![
        Cell::Address(lying.address),
        end.map_or(Cell::None, Cell::Address),
        lying.bytes.into(),
        region.into(),
        lying.lives.as_str().into(),
        lying.what.as_str().into(),
    ]
}

/// Bytes under anything; buffers that follow one another in time may share them. `map` ascends by address.
fn covered(map: &[Lying]) -> u64 {
    let (mut total, mut reached) = (0, 0);
    for lying in map {
        let (start, end) = (u64::from(lying.address), u64::from(lying.address) + u64::from(lying.bytes.unwrap_or(0)));
        total += end.saturating_sub(start.max(reached));
        reached = reached.max(end);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::{Lying, covered};

    #[test]
    fn shared_bytes_count_once() {
        let lying = |address, bytes| Lying { address, bytes: Some(bytes), what: String::new(), lives: String::new() };
        assert_eq!(covered(&[lying(0, 10), lying(4, 2), lying(8, 4), lying(100, 1)]), 13);
    }
}
