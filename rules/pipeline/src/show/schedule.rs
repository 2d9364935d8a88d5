//! The schedule of an exchange phase: its messages in time and the tiles that take part; of one tile the timeline and its row.

use compiler::placement::Placement;
use compiler::program::Expanded;
use compiler::rows::PhaseRows;
use exchange::{Message, Place, PlacedTransfer, Schedule};
use graph::{Cell, Document, ShowFault, Shown};
use ipu21::route::route;
use ipu21::tile::TileId;

use super::expanded::receivers;
use super::selected_tile::{not_among, selected_tile};
use super::words::with_listing;
use crate::stage::selected::Selected;

/// Columns of a timeline.
const WIDTH: u64 = 64;

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let schedule: Schedule = shown.decode()?;
    let tile = selected_tile(shown)?;
    if let Some(tile) = tile.filter(|tile| !schedule.tiles.iter().any(|plan| plan.tile == *tile)) {
        return Err(not_among(tile, schedule.tiles.iter().map(|plan| plan.tile)));
    }
    let from = shown.selection.from.unwrap_or(0);
    let touches = |message: &&Message| {
        end(message) >= from
            && tile.is_none_or(|tile| message.source.tile == tile || message.destinations.iter().any(|place| place.tile == tile))
    };
    let mut messages: Vec<&Message> = schedule.messages.iter().filter(touches).collect();
    messages.sort_by_key(|message| (message.start, message.transfer, message.first_word));
    let tiles = schedule.tiles.iter().filter(|plan| tile.is_none_or(|tile| tile == plan.tile));
    let tiles = tiles.map(|plan| vec![Cell::Number(plan.tile.get().into()), plan.horizon.into(), plan.row_words.into()]);
    let figures = schedule.figures;
    let document = Document::default()
        .fact("horizon cycles", figures.horizon)
        .fact("bound cycles", figures.lower_bound)
        .fact("gap cycles", figures.gap())
        .fact("messages", schedule.messages.len())
        .fact("tiles", schedule.tiles.len())
        .table(
            "messages",
            &["transfer", "first word", "words", "start cycle", "end cycle", "from tile", "offset", "to tiles"],
            messages.iter().map(|message| message_row(message)),
        )
        .table("tiles", &["tile", "horizon cycles", "row words"], tiles);
    match tile {
        Some(tile) => Ok(of_tile(shown, document, &schedule, &messages, tile, from)),
        None => Ok(Document { tsv: placed(shown, &schedule), ..document }),
    }
}

/// The messages with the addresses of a finalist that was placed, as `ipubuild exchange` reads them.
fn placed(shown: &Shown<'_>, schedule: &Schedule) -> Option<String> {
    let (finalist, phase) = shown.index().split_once('.')?;
    let placement: Placement = shown.other("placement", Some(finalist))?;
    let expanded: Expanded = shown.other("expanded", Some(finalist))?;
    let buffers = expanded.phases.get(phase.parse::<usize>().ok()?)?.buffers();
    let spot = |place: &Place| {
        let address = placement.buffers.get(buffers.get(place.buffer.0 as usize)?.0 as usize)?;
        Some((place.tile, address.checked_add(place.offset)?))
    };
    let transfer = |message: &Message| {
        let destinations = message.destinations.iter().map(spot).collect::<Option<_>>()?;
        Some(PlacedTransfer { words: message.words, is_paired: false, source: spot(&message.source)?, destinations })
    };
    Some(exchange::phase_text(&schedule.messages.iter().map(transfer).collect::<Option<Vec<_>>>()?))
}

/// The cycle behind a message's last word, on the sender's counter.
fn end(message: &Message) -> u64 {
    u64::from(message.start) + u64::from(message.words)
}

fn message_row(message: &Message) -> Vec<Cell> {
    vec![
        Cell::Number(message.transfer.into()),
        message.first_word.into(),
        message.words.into(),
        message.start.into(),
        end(message).into(),
        Cell::Number(message.source.tile.get().into()),
        Cell::Address(message.source.offset),
        receivers(&message.destinations).into(),
    ]
}

fn of_tile(shown: &Shown<'_>, document: Document, schedule: &Schedule, messages: &[&Message], tile: TileId, from: u64) -> Document {
    let sends = messages.iter().filter(|message| message.source.tile == tile);
    let sends: Vec<(u64, u64)> = sends.map(|message| (message.start.into(), end(message))).collect();
    let arrivals: Vec<(u64, u64)> = messages.iter().filter_map(|message| arrival(message, tile)).collect();
    let to = u64::from(schedule.figures.horizon).max(from + 1);
    let lines =
        vec![scale(from, to), format!("send     {}", bar(&sends, from, to, 's')), format!("receive  {}", bar(&arrivals, from, to, 'r'))];
    let document = document.block(&format!("timeline of tile {tile}, cycles {from} to {to}"), lines);
    match row_of(shown, tile) {
        Some((words, address)) => with_listing(document, &format!("row of tile {tile}"), &words, address),
        None => document,
    }
}

/// When a tile's incoming mux passes a message on, on the receiver's counter: the select, and `words` cycles of it.
fn arrival(message: &Message, tile: TileId) -> Option<(u64, u64)> {
    message.destinations.iter().find(|place| place.tile == tile)?;
    let select = i64::from(message.start) + i64::from(route(message.source.tile.physical(), tile.physical()).offset) + 1;
    let select = u64::try_from(select).ok()?;
    Some((select, select + u64::from(message.words)))
}

/// A mark in each column in which something happens.
fn bar(spans: &[(u64, u64)], from: u64, to: u64, mark: char) -> String {
    let border = |column: u64| from + (u128::from(to - from) * u128::from(column) / u128::from(WIDTH)) as u64;
    let is_busy = |column: u64| {
        let (start, end) = (border(column), border(column + 1).max(border(column) + 1));
        spans.iter().any(|span| span.0 < end && start < span.1)
    };
    (0..WIDTH).map(|column| if is_busy(column) { mark } else { '.' }).collect()
}

fn scale(from: u64, to: u64) -> String {
    let width = WIDTH as usize / 2;
    format!("cycle    {:<width$}{:<width$}{to}", from, from + (to - from) / 2)
}

/// The words of a tile's row and their address, when this is a phase of the finalist that was chosen.
fn row_of(shown: &Shown<'_>, tile: TileId) -> Option<(Vec<u32>, u32)> {
    let (finalist, phase) = shown.index().split_once('.')?;
    let selected: Selected = shown.other("selected", None)?;
    if finalist.parse() != Ok(selected.finalist) {
        return None;
    }
    let entry = shown.others("rows").find(|entry| entry.name.index.as_deref() == Some(phase))?;
    let made = (shown.facts_of)(&entry.key)?;
    if !made.inputs.iter().any(|(name, digest)| name == "schedule" && *digest == shown.entry.digest) {
        return None;
    }
    let rows: PhaseRows = shown.read(&entry.digest)?;
    let address = super::rows::address(shown, finalist, phase).unwrap_or(0);
    Some((rows.get(&tile)?.clone(), address))
}

#[cfg(test)]
mod tests {
    use super::{bar, scale};

    #[test]
    fn timeline_marks_columns_in_which_something_happens() {
        let line = bar(&[(0, 1), (32, 64)], 0, 64, 's');
        assert_eq!(line, format!("s{}{}", ".".repeat(31), "s".repeat(32)));
        assert_eq!(bar(&[(0, 10)], 1000, 2000, 'r'), ".".repeat(64));
        assert_eq!(scale(0, 64).len(), 9 + 64 + 2);
    }
}
