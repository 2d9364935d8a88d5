//! An expanded program: its steps, its exchange phases with their transfers, its buffers.

use compiler::program::{Buffer, Expanded, Step};
use exchange::{Place, Problem, Transfer};
use graph::{Cell, Document, ShowFault, Shown};
use ipu21::tile::TileId;

use super::refined::step_name;
use super::selected_tile::{not_among, selected_tile};

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let program: Expanded = shown.decode()?;
    let tile = selected_tile(shown)?;
    if let Some(tile) = tile.filter(|tile| !program.buffers.iter().any(|buffer| buffer.tiles.contains(tile))) {
        return Err(not_among(tile, tiles(&program)));
    }
    let steps = (0_u64..).zip(&program.steps).map(|(number, step)| step_row(&program, number, step));
    let phases = (0_u64..).zip(&program.phases).map(|(number, phase)| phase_row(number, phase));
    let transfers = (0_u64..).zip(&program.phases).flat_map(|(number, phase)| transfer_rows(&program, number, phase, tile));
    let buffers = program.buffers.iter().filter(|buffer| tile.is_none_or(|tile| buffer.tiles.contains(&tile)));
    Ok(Document::default()
        .fact("operations", program.operations.join(", "))
        .fact("kernel variants", program.variants.len())
        .table("steps", &["step", "operation", "what", "tiles", "calls"], steps)
        .table("phases", &["phase", "transfers", "words sent", "words received", "senders", "receivers"], phases)
        .table("transfers", &["phase", "transfer", "words", "from tile", "buffer", "offset", "to tiles", "to buffer"], transfers)
        .table("buffers", &["buffer", "bytes", "tiles", "region", "align bytes", "first step", "last step"], buffers.map(buffer_row)))
}

fn tiles(program: &Expanded) -> std::collections::BTreeSet<TileId> {
    program.buffers.iter().flat_map(|buffer| buffer.tiles.iter().copied()).collect()
}

fn step_row(program: &Expanded, number: u64, step: &Step) -> Vec<Cell> {
    let name = |operation: u32| Cell::from(program.operations.get(operation as usize).cloned());
    let (operation, tiles, calls) = match step {
        Step::Exchange { operation, .. } => (name(*operation), Cell::None, Cell::None),
        Step::Compute { operation, groups, .. } => {
            let tiles: usize = groups.iter().map(|group| group.tiles.len()).sum();
            let calls: usize = groups.iter().map(|group| group.tiles.len() * group.calls.len()).sum();
            (name(*operation), tiles.into(), calls.into())
        }
        Step::Checkpoint { .. } => (Cell::None, Cell::None, Cell::None),
    };
    vec![Cell::Number(number), operation, step_name(step).into(), tiles, calls]
}

fn phase_row(number: u64, phase: &Problem) -> Vec<Cell> {
    let sent: u64 = phase.transfers.iter().map(|transfer| u64::from(transfer.words)).sum();
    let received: u64 = phase.transfers.iter().map(|transfer| u64::from(transfer.words) * transfer.destinations.len() as u64).sum();
    let senders: std::collections::BTreeSet<TileId> = phase.transfers.iter().map(|transfer| transfer.source.tile).collect();
    let receivers: std::collections::BTreeSet<TileId> =
        phase.transfers.iter().flat_map(|transfer| &transfer.destinations).map(|place| place.tile).collect();
    let counts = [phase.transfers.len() as u64, sent, received, senders.len() as u64, receivers.len() as u64];
    std::iter::once(Cell::Number(number)).chain(counts.map(Cell::Count)).collect()
}

fn transfer_rows(program: &Expanded, number: u64, phase: &Problem, tile: Option<TileId>) -> Vec<Vec<Cell>> {
    let touches = |transfer: &Transfer| {
        tile.is_none_or(|tile| transfer.source.tile == tile || transfer.destinations.iter().any(|place| place.tile == tile))
    };
    let transfers = (0_u64..).zip(&phase.transfers).filter(|(_, transfer)| touches(transfer));
    transfers.map(|(index, transfer)| transfer_row(program, number, index, transfer)).collect()
}

fn transfer_row(program: &Expanded, phase: u64, index: u64, transfer: &Transfer) -> Vec<Cell> {
    let buffer = |place: &Place| Cell::from(program.buffers.get(place.buffer.0 as usize).map(|buffer| buffer.name.clone()));
    vec![
        Cell::Number(phase),
        Cell::Number(index),
        transfer.words.into(),
        Cell::Number(transfer.source.tile.get().into()),
        buffer(&transfer.source),
        Cell::Address(transfer.source.offset),
        receivers(&transfer.destinations).into(),
        transfer.destinations.first().map_or(Cell::None, buffer),
    ]
}

/// Tiles as words, with stretches of neighbours as `3-7`.
pub(super) fn receivers(places: &[Place]) -> String {
    let mut numbers: Vec<u16> = places.iter().map(|place| place.tile.get()).collect();
    numbers.sort_unstable();
    let mut stretches: Vec<(u16, u16)> = Vec::new();
    for number in numbers {
        match stretches.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => stretches.push((number, number)),
        }
    }
    let word = |(first, last): (u16, u16)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    stretches.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

fn buffer_row(buffer: &Buffer) -> Vec<Cell> {
    let step = |step: Option<u32>| step.map_or(Cell::None, |step| Cell::Number(step.into()));
    vec![
        buffer.name.as_str().into(),
        buffer.bytes.into(),
        buffer.tiles.len().into(),
        format!("{:?}", buffer.region).to_lowercase().into(),
        buffer.align.into(),
        step(buffer.first_step),
        step(buffer.last_step),
    ]
}
