//! A standing chip as lines of text.

use std::collections::BTreeSet;
use std::fmt::Write;

use half::f16;
use ipu21::tile::PhysTile;
use package::Package;
use simulator::debug::{Barrier, Breakpoint, Executed, Registers, TileSelection, Trigger};
use simulator::{Chip, Context, Message, Way};
use toolchain::disassembler::disassemble;

use crate::debug::places;
use crate::debug::request::Form;
use crate::show::table::table;

/// All contexts of a tile.
pub(crate) const CONTEXTS: [Context; 7] = [
    Context::Supervisor,
    Context::Worker(0),
    Context::Worker(1),
    Context::Worker(2),
    Context::Worker(3),
    Context::Worker(4),
    Context::Worker(5),
];

/// `0.supervisor`, `0.3`.
pub(crate) fn name(tile: PhysTile, context: Context) -> String {
    match context {
        Context::Supervisor => format!("{tile}.supervisor"),
        Context::Worker(number) => format!("{tile}.{number}"),
    }
}

/// The instruction at an address as it is in memory now.
pub(crate) fn instruction(chip: &Chip, tile: PhysTile, pc: u32) -> String {
    let words = [pc, pc.wrapping_add(4)].map(|at| chip.words(tile, at, 1).ok().and_then(|words| words.first().copied().flatten()));
    text_of(words, pc)
}

fn text_of(words: [Option<u32>; 2], pc: u32) -> String {
    let [Some(first), second] = words else { return "nothing that was written".to_owned() };
    let bytes: Vec<u8> = [Some(first), second].into_iter().flatten().flat_map(u32::to_le_bytes).collect();
    disassemble(&bytes, pc).into_iter().next().map_or_else(String::new, |line| line.text)
}

/// A traced instruction.
pub(crate) fn traced(package: &Package, executed: &Executed) -> String {
    let text = text_of(executed.words, executed.pc);
    let (at, place) = (name(executed.tile, executed.context), places::words(package, executed.tile, executed.pc));
    format!("{at} clock {} {:#x}: {text}  {place}", executed.clock, executed.pc)
}

/// Instructions from an address on; the next one of `context` is marked.
pub(crate) fn disassembly(package: &Package, chip: &Chip, (tile, context): (PhysTile, Context), from: u32, count: u32) -> String {
    let pc = chip.registers(tile, context).map(|registers| registers.pc);
    let words = chip.words(tile, from, 2 * count).or_else(|_| chip.words(tile, from, 1)).unwrap_or_default();
    let written: Vec<u8> = words.iter().map_while(|word| *word).flat_map(u32::to_le_bytes).collect();
    let mut text = String::new();
    for line in disassemble(&written, from & !3).into_iter().take(count as usize) {
        let mark = if Some(line.address) == pc { "=>" } else { "  " };
        let _ = writeln!(text, "{mark} {:#x}: {}  {}", line.address, line.text, places::words(package, tile, line.address));
    }
    if text.is_empty() { format!("nobody wrote the word at {from:#x} of tile {tile}\n") } else { text }
}

/// Where each context of a tile is.
pub(crate) fn whereabouts(package: &Package, chip: &Chip, tile: PhysTile, current: Context) -> String {
    let mut text = format!("tile {tile} (logical {}) at clock {}: {}\n", tile.logical(), chip.clock(tile), chip.standing(tile));
    for context in CONTEXTS {
        let Some(registers) = chip.registers(tile, context).filter(|registers| registers.is_running) else { continue };
        let mark = if context == current { "=>" } else { "  " };
        let _ = writeln!(text, "{mark} {}", place(package, chip, tile, context, &registers));
    }
    text
}

/// Context, clock, address, instruction and place in one line.
pub(crate) fn place(package: &Package, chip: &Chip, tile: PhysTile, context: Context, registers: &Registers) -> String {
    let Registers { pc, clock, .. } = *registers;
    format!("{} clock {clock} {pc:#x}: {}  {}", name(tile, context), instruction(chip, tile, pc), places::words(package, tile, pc))
}

/// Registers of a context; those that nobody wrote are `-`.
pub(crate) fn registers(tile: PhysTile, context: Context, registers: &Registers) -> String {
    let running = if registers.is_running { "" } else { ", not running" };
    let mut text = format!("{} pc {:#x} clock {}{running}\n", name(tile, context), registers.pc, registers.clock);
    for (row, values) in registers.main.chunks(4).enumerate() {
        let cells = values.iter().enumerate().map(|(column, value)| {
            let number = 4 * row + column;
            let is_written = registers.main_written >> number & 1 == 1;
            format!("{:>4} {:<10}", format!("$m{number}"), if is_written { format!("{value:#010x}") } else { "-".to_owned() })
        });
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join(" ").trim_end());
    }
    let Some(worker) = &registers.worker else { return text };
    for (number, value) in worker.aux.iter().enumerate().take(8) {
        let line = if worker.aux_written >> number & 1 == 1 {
            format!("{value:#010x}  f32 {}  f16 {} {}", f32::from_bits(*value), half(*value as u16), half((value >> 16) as u16))
        } else {
            "-".to_owned()
        };
        let _ = writeln!(text, " $a{number} {line}");
    }
    for (number, value) in worker.accumulators.iter().enumerate().filter(|(number, _)| worker.accumulators_written >> number & 1 == 1) {
        let _ = writeln!(text, " $AACC[{number}] {}", f32::from_bits(*value));
    }
    let (first, end, count) = worker.repeat;
    if count > 0 {
        let _ = writeln!(text, " repeat {first:#x}..{end:#x}, {count} passes left");
    }
    if let Some(scale) = worker.scale {
        let _ = writeln!(text, " $TAS {scale:#010x}");
    }
    let _ = writeln!(text, " $FP_CTL {:#010x} $FP_STS {:#010x}", worker.float.0, worker.float.1);
    text
}

fn half(bits: u16) -> f16 {
    f16::from_bits(bits)
}

/// Elements of memory; words that nobody wrote are `-`.
pub(crate) fn memory(chip: &Chip, tile: PhysTile, address: u32, count: u32, form: Form) -> Result<String, String> {
    let (bytes, in_line) = match form {
        Form::F16 => (2, 8),
        Form::F32 | Form::U32 | Form::Hex => (4, 4),
    };
    if !address.is_multiple_of(bytes) {
        return Err(format!("an element of {bytes} bytes cannot lie at {address:#x}"));
    }
    let words = (address % 4 + count * bytes).div_ceil(4);
    let words = chip.words(tile, address, words).map_err(|fault| fault.to_string())?;
    let element = |index: u32| {
        let offset = address % 4 + index * bytes;
        let Some(word) = words.get((offset / 4) as usize).copied().flatten() else { return "-".to_owned() };
        match form {
            Form::F16 => half((word >> (8 * (offset % 4))) as u16).to_string(),
            Form::F32 => f32::from_bits(word).to_string(),
            Form::U32 => word.to_string(),
            Form::Hex => format!("{word:#010x}"),
        }
    };
    let mut text = String::new();
    for first in (0..count).step_by(in_line) {
        let line: Vec<String> = (first..count.min(first + in_line as u32)).map(element).collect();
        let _ = writeln!(text, "{:#x}: {}", address + first * bytes, line.join(" "));
    }
    Ok(text)
}

/// What a tile sent and received in an exchange phase, in order of clocks.
pub(crate) fn messages(
    package: &Package,
    chip: &Chip,
    tile: PhysTile,
    barriers: &[Barrier],
    phase: Option<usize>,
) -> Result<String, String> {
    let mut releases: Vec<u64> = barriers.iter().filter(|barrier| barrier.internal).map(|barrier| barrier.release).collect();
    // A barrier behind which no tile sent anything, as that of the greeting, begins no phase.
    let last = |release: u64| releases.partition_point(|other| *other <= release);
    let clocks = PhysTile::all().flat_map(|tile| chip.messages(tile)).map(|message| message.clock);
    let used: BTreeSet<usize> = clocks.map(last).collect();
    releases = used.into_iter().filter_map(|number| releases.get(number.checked_sub(1)?).copied()).collect();
    if releases.is_empty() {
        return Err("no exchange phase has begun".to_owned());
    }
    let phase = phase.unwrap_or(releases.len() - 1);
    let Some(from) = releases.get(phase).copied() else {
        return Err(format!("there was no exchange phase {phase} so far; expected 0 to {}", releases.len() - 1));
    };
    let to = releases.get(phase + 1).copied().unwrap_or(u64::MAX);
    let mut messages: Vec<&Message> = chip.messages(tile).iter().filter(|message| (from..to).contains(&message.clock)).collect();
    messages.sort_by_key(|message| message.clock);
    let rows: Vec<Vec<String>> = messages
        .iter()
        .map(|message| {
            let (way, other) = match message.way {
                Way::Sent { directions } => ("sent", ["", "east", "west", "both ways"][directions as usize & 3].to_owned()),
                Way::Received { source } => ("received", format!("from tile {source}")),
            };
            let buffer = buffer(package, tile, message.address);
            vec![
                message.clock.to_string(),
                (message.clock - from).to_string(),
                way.to_owned(),
                message.words.to_string(),
                format!("{:#x}", message.address),
                other,
                buffer,
            ]
        })
        .collect();
    let head = format!("tile {tile}, exchange phase {phase}, released at clock {from}\n");
    Ok(head + &table(&["clock", "event", "way", "words", "address", "peer", "buffer"], &rows))
}

/// The buffer around an address.
fn buffer(package: &Package, tile: PhysTile, address: u32) -> String {
    let around = package.symbols.iter().filter(|symbol| address >= symbol.address && address - symbol.address < symbol.bytes);
    let on_tile = around.filter(|symbol| package.set_contains(symbol.tiles, tile));
    on_tile.min_by_key(|symbol| symbol.bytes).map_or_else(String::new, |symbol| format!("{}+{:#x}", symbol.name, address - symbol.address))
}

/// Tiles by what they do.
pub(crate) fn tiles(chip: &Chip) -> String {
    let mut kinds: Vec<(String, Vec<PhysTile>)> = Vec::new();
    for tile in PhysTile::all() {
        let standing = chip.standing(tile);
        match kinds.iter_mut().find(|(known, _)| *known == standing) {
            Some((_, tiles)) => tiles.push(tile),
            None => kinds.push((standing, vec![tile])),
        }
    }
    let rows: Vec<Vec<String>> = kinds
        .iter()
        .map(|(standing, tiles)| {
            let clocks = tiles.iter().map(|tile| chip.clock(*tile));
            let (least, most) = (clocks.clone().min().unwrap_or(0), clocks.max().unwrap_or(0));
            vec![standing.clone(), tiles.len().to_string(), ranges(&tiles.iter().copied().collect()), format!("{least}..{most}")]
        })
        .collect();
    table(&["state", "count", "tiles", "clocks"], &rows)
}

/// `0-3,7,…`, at most eight ranges.
pub(crate) fn ranges(tiles: &TileSelection) -> String {
    if *tiles == TileSelection::all() {
        return "all".to_owned();
    }
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for tile in tiles.tiles().map(PhysTile::get) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == tile => *last = tile,
            _ => ranges.push((tile, tile)),
        }
    }
    let words = ranges.iter().take(8).map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    let words = words.collect::<Vec<_>>().join(",");
    if ranges.len() > 8 { format!("{words},…") } else { words }
}

/// A breakpoint in words.
pub(crate) fn breakpoint(package: &Package, breakpoint: &Breakpoint) -> String {
    let what = match &breakpoint.trigger {
        Trigger::Address(places) => {
            let places = places.iter().map(|(address, tiles)| {
                let named = tiles.tiles().next().map_or_else(String::new, |tile| format!(" {}", places::words(package, tile, *address)));
                format!("{address:#x}{named} on tiles {}", ranges(tiles))
            });
            places.collect::<Vec<_>>().join("\n   ")
        }
        Trigger::Mnemonic(name) => format!("instruction {name} on tiles {}", ranges(&breakpoint.tiles)),
        Trigger::Write { address, bytes } => {
            format!("writes to {address:#x}..{:#x} on tiles {}", address + bytes, ranges(&breakpoint.tiles))
        }
    };
    let context = breakpoint.context.map_or_else(String::new, |context| format!(", {context}"));
    format!("{}: {what}{context}, {} hits", breakpoint.id, breakpoint.hits)
}
