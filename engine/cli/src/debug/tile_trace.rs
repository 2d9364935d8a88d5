//! Compute, exchange and barriers of all tiles as a Chrome trace: a row for each tile, a span for each step it takes and for each
//! wait. Chrome's and Perfetto's viewers open it; a clock is shown as a microsecond.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ipu21::tile::PhysTile;
use package::{Package, StepKind, TileSetId};
use serde_json::json;
use simulator::Chip;
use simulator::debug::Barrier;

/// A span of a tile, in clocks.
struct Span<'a> {
    name: &'a str,
    category: &'static str,
    start: u64,
    end: u64,
}

/// Writes what the chip did so far, span by span.
pub(crate) fn write(out: &mut dyn Write, package: &Package, chip: &Chip, barriers: &[Barrier]) -> io::Result<()> {
    let names = step_names(package);
    let starts = starts(package);
    let mut hits: BTreeMap<PhysTile, Vec<(u64, u32)>> = BTreeMap::new();
    for hit in chip.watched() {
        hits.entry(hit.tile).or_default().push((hit.clock, hit.pc));
    }
    writeln!(out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"unit\":\"1 clock as 1 us\"}},\"traceEvents\":[")?;
    write!(out, "{}", json!({ "ph": "M", "pid": 1, "name": "process_name", "args": { "name": "IPU21" } }))?;
    for tile in PhysTile::all() {
        let passed = hits.get(&tile).map_or(&[][..], Vec::as_slice);
        let spans = spans(package, chip, tile, passed, barriers, &names, &starts);
        if spans.is_empty() {
            continue;
        }
        let name = format!("tile {tile} (logical {})", tile.logical());
        let row = json!({ "ph": "M", "pid": 1, "tid": tile.get(), "name": "thread_name", "args": { "name": name } });
        write!(out, ",\n{row}")?;
        for span in spans.iter().filter(|span| span.end > span.start) {
            let Span { name, category, start, end } = span;
            let (pid, tid, length) = (1, tile.get(), end - start);
            let event = json!({ "ph": "X", "pid": pid, "tid": tid, "ts": start, "dur": length, "name": name, "cat": category });
            write!(out, ",\n{event}")?;
        }
    }
    writeln!(out, "\n]}}")
}

/// `output: attention` for each step.
fn step_names(package: &Package) -> Vec<String> {
    let operation = |number: Option<u32>| package.profile.operations.get(number? as usize);
    let steps = package.profile.steps.iter();
    steps.map(|step| operation(step.operation).map_or_else(|| step.name.clone(), |name| format!("{name}: {}", step.name))).collect()
}

/// By tile set and address the step that begins there; the end of the program has none.
fn starts(package: &Package) -> BTreeMap<(u32, TileSetId), Option<usize>> {
    let steps = package.profile.steps.iter().enumerate().flat_map(|(index, step)| step.starts.iter().map(move |at| (at, Some(index))));
    // Where steps of a tile begin at one place, those before the last are empty.
    steps.chain(package.profile.end.iter().map(|at| (at, None))).map(|(at, step)| ((at.address, at.tiles), step)).collect()
}

fn spans<'a>(
    package: &'a Package,
    chip: &Chip,
    tile: PhysTile,
    passed: &[(u64, u32)],
    barriers: &[Barrier],
    names: &'a [String],
    starts: &BTreeMap<(u32, TileSetId), Option<usize>>,
) -> Vec<Span<'a>> {
    let mut spans = Vec::new();
    let waits: Vec<(u64, u64, bool)> = barriers
        .iter()
        .filter_map(|barrier| Some((*barrier.arrivals.get(tile.index())?.as_ref()?, barrier.release, barrier.internal)))
        .collect();
    let step_at = |pc: u32| {
        let here = starts.range((pc, TileSetId(0))..=(pc, TileSetId(u32::MAX)));
        here.filter(|((_, set), _)| package.set_contains(*set, tile)).map(|(_, step)| *step).next_back().flatten()
    };
    let ends = passed.iter().skip(1).map(|(clock, _)| *clock).chain([chip.clock(tile)]);
    for (&(start, pc), end) in passed.iter().zip(ends) {
        let Some(step) = step_at(pc) else { continue };
        let category = match package.profile.steps[step].kind {
            StepKind::Exchange { .. } => "exchange",
            StepKind::Checkpoint { .. } => "checkpoint",
            StepKind::Compute | StepKind::Synchronisation | StepKind::Idle => "compute",
        };
        // Waiting is no part of what a step does.
        let mut from = start;
        for &(arrival, release, _) in waits.iter().filter(|(arrival, release, _)| *release > start && *arrival < end) {
            spans.push(Span { name: &names[step], category, start: from, end: arrival.max(from).min(end) });
            from = release.max(from);
        }
        spans.push(Span { name: &names[step], category, start: from, end: end.max(from) });
    }
    for (arrival, release, internal) in waits {
        let name = if internal { "barrier" } else { "barrier with the host" };
        spans.push(Span { name, category: "barrier", start: arrival, end: release });
    }
    spans.sort_by_key(|span| (span.start, span.end));
    spans
}
