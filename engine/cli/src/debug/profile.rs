//! What instructions cost, by instruction, source line and kernel.

use std::collections::BTreeMap;

use ipu21::tile::PhysTile;
use package::Package;
use simulator::Chip;
use simulator::debug::{Count, Debugger};

use crate::debug::{listing, places};
use crate::show::table::{grouped, table};

/// Clocks of a worker are those of its slot, one of six.
const SLOTS: u64 = 6;

/// What was counted of one instruction on all tiles.
struct Line {
    place: String,
    text: String,
    supervisor: Count,
    workers: Count,
}

impl Line {
    /// Clocks of tiles: a worker has one slot of six.
    fn clocks(&self) -> u64 {
        self.supervisor.clocks + self.workers.clocks / SLOTS
    }
}

/// The costliest instructions with their source lines.
pub(crate) fn instructions(package: &Package, chip: &Chip, debugger: &Debugger, rows: usize) -> Option<String> {
    // Where code has no name, its address is one.
    let mut lines: BTreeMap<(String, u32), Line> = BTreeMap::new();
    for tile in PhysTile::all() {
        for (part, counts) in debugger.profile(tile).into_iter().enumerate() {
            for (pc, count) in counts {
                let located = package.locate(tile, *pc);
                let key = located.map_or_else(|| (String::new(), *pc), |located| (located.symbol.name.clone(), located.offset));
                let line = lines.entry(key).or_insert_with(|| Line {
                    place: places::words(package, tile, *pc),
                    text: listing::instruction(chip, tile, *pc),
                    supervisor: Count::default(),
                    workers: Count::default(),
                });
                add(if part == 0 { &mut line.supervisor } else { &mut line.workers }, count);
            }
        }
    }
    if lines.is_empty() {
        return None;
    }
    let total: u64 = lines.values().map(Line::clocks).sum();
    let mut lines: Vec<Line> = lines.into_values().collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.clocks()));
    let cells: Vec<Vec<String>> = lines
        .iter()
        .take(rows)
        .map(|line| {
            vec![
                percent(line.clocks(), total),
                grouped(line.clocks()),
                grouped(line.supervisor.executed + line.workers.executed),
                line.text.clone(),
                line.place.clone(),
            ]
        })
        .collect();
    let head = format!("{} instructions, {} clocks of tiles\n", grouped(lines.len() as u64), grouped(total));
    Some(head + &table(&["share", "clocks", "executed", "instruction", "place"], &cells))
}

/// Clocks by kernel, and for each the source lines that cost most.
pub(crate) fn hot_spots(package: &Package, debugger: &Debugger, rows: usize) -> Option<String> {
    let mut kernels: BTreeMap<String, Kernel> = BTreeMap::new();
    for tile in PhysTile::all() {
        for (part, counts) in debugger.profile(tile).into_iter().enumerate() {
            for (pc, count) in counts {
                let located = package.locate(tile, *pc);
                let name = located.map_or_else(|| "no name".to_owned(), |located| located.symbol.name.clone());
                let line = located.and_then(|located| Some(format!("{}:{}", located.listing?.source, located.line?)));
                kernels.entry(name).or_default().add(part, count, line, tile);
            }
        }
    }
    if kernels.is_empty() {
        return None;
    }
    let total: u64 = kernels.values().map(Kernel::clocks).sum();
    let mut kernels: Vec<(String, Kernel)> = kernels.into_iter().collect();
    kernels.sort_by_key(|(_, kernel)| std::cmp::Reverse(kernel.clocks()));
    let cells: Vec<Vec<String>> = kernels
        .iter()
        .take(rows)
        .map(|(name, kernel)| {
            let hottest = kernel.lines.iter().max_by_key(|(_, clocks)| **clocks);
            let hottest = hottest.map_or_else(|| "-".to_owned(), |(line, clocks)| format!("{line} {}", percent(*clocks, kernel.clocks())));
            vec![
                percent(kernel.clocks(), total),
                name.clone(),
                grouped(kernel.tiles.into()),
                grouped(kernel.supervisor.clocks),
                grouped(kernel.supervisor.waited),
                grouped(kernel.workers.clocks / SLOTS),
                grouped(kernel.supervisor.executed + kernel.workers.executed),
                hottest,
            ]
        })
        .collect();
    let header = ["share", "code", "tiles", "supervisor", "waiting", "workers", "executed", "hottest line"];
    Some(table(&header, &cells))
}

#[derive(Default)]
struct Kernel {
    supervisor: Count,
    workers: Count,
    lines: BTreeMap<String, u64>,
    tiles: u32,
    last: Option<PhysTile>,
}

impl Kernel {
    fn clocks(&self) -> u64 {
        self.supervisor.clocks + self.workers.clocks / SLOTS
    }

    fn add(&mut self, part: usize, count: &Count, line: Option<String>, tile: PhysTile) {
        add(if part == 0 { &mut self.supervisor } else { &mut self.workers }, count);
        if let Some(line) = line {
            *self.lines.entry(line).or_default() += if part == 0 { count.clocks } else { count.clocks / SLOTS };
        }
        self.tiles += u32::from(self.last != Some(tile));
        self.last = Some(tile);
    }
}

fn add(sum: &mut Count, count: &Count) {
    sum.executed += count.executed;
    sum.clocks += count.clocks;
    sum.waited += count.waited;
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}
