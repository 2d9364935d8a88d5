//! Names and lines of a program as addresses of its tiles, and back.

use std::collections::BTreeMap;

use ipu21::tile::PhysTile;
use package::{Package, Symbol, SymbolKind, TileSetId};
use simulator::debug::{TileSelection, Trigger};

use crate::debug::listing::ranges;
use crate::debug::request::{Address, Place};

/// Where a breakpoint is, and what is to be said about it.
pub(crate) struct Found {
    pub(crate) trigger: Trigger,
    pub(crate) remark: Option<String>,
}

/// The addresses that a place names, on the tiles that have it there.
pub(crate) fn find(package: &Package, place: &Place) -> Result<Found, String> {
    let found = |places: Places, remark| Found { trigger: Trigger::Address(places.merged()), remark };
    match place {
        Place::At(Address::Number(address)) if !address.is_multiple_of(4) => {
            Err(format!("no instruction begins at {address:#x}; expected a multiple of 4"))
        }
        Place::At(Address::Number(address)) => {
            Ok(Found { trigger: Trigger::Address(vec![(*address, TileSelection::all())]), remark: None })
        }
        Place::At(Address::Name { offset, .. }) if !offset.is_multiple_of(4) => {
            Err(format!("no instruction begins at an offset of {offset:#x}; expected a multiple of 4"))
        }
        Place::At(Address::Name { name, offset }) => {
            let places = named(package, name, *offset);
            if places.is_empty() { Err(unknown(package, name)) } else { Ok(found(places, None)) }
        }
        Place::Line { file, line } => line_of(package, file, *line).map(|(places, remark)| found(places, remark)),
        Place::Operation(name) => operation(package, name).map(|places| found(places, None)),
        Place::Mnemonic(name) => match ipu21::isa::forms_of(name).next() {
            Some(_) => Ok(Found { trigger: Trigger::Mnemonic(name.clone()), remark: None }),
            None => Err(format!("there is no instruction `{name}`")),
        },
    }
}

/// An address on one tile.
pub(crate) fn address(package: &Package, tile: PhysTile, wanted: &Address) -> Result<u32, String> {
    let (name, offset) = match wanted {
        Address::Number(address) => return Ok(*address),
        Address::Name { name, offset } => (name, *offset),
    };
    let on_tile = |symbol: &&Symbol| package.set_contains(symbol.tiles, tile);
    let data = package.symbols.iter().filter(on_tile).find(|symbol| symbol.name == *name).map(|symbol| symbol.address);
    let code = || named(package, name, 0).0.into_iter().find(|(_, set)| package.set_contains(*set, tile)).map(|(address, _)| address);
    match data.or_else(code) {
        Some(address) => Ok(address.wrapping_add(offset)),
        None => Err(elsewhere(package, tile, name).unwrap_or_else(|| unknown(package, name))),
    }
}

/// What is said of a name that other tiles have.
fn elsewhere(package: &Package, tile: PhysTile, name: &str) -> Option<String> {
    let data = package.symbols.iter().filter(|symbol| symbol.name == name).map(|symbol| symbol.tiles);
    let code = named(package, name, 0).0.into_iter().map(|(_, set)| set);
    let sets = data.chain(code).filter_map(|set| package.tile_sets.get(set.0 as usize));
    let tiles: TileSelection = sets.flat_map(|set| set.0.iter().copied()).collect();
    (tiles.count() != 0).then(|| format!("`{name}` is not on tile {tile}; it is on {}", ranges(&tiles)))
}

/// Addresses with the sets of tiles that have them.
struct Places(Vec<(u32, TileSetId)>, BTreeMap<TileSetId, TileSelection>);

impl Places {
    fn of(package: &Package, places: Vec<(u32, TileSetId)>) -> Places {
        let select = |set: &TileSetId| package.tile_sets.get(set.0 as usize).map(|tiles| tiles.0.iter().copied().collect());
        let sets = places.iter().filter_map(|(_, set)| Some((*set, select(set)?))).collect();
        Places(places, sets)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// By ascending address the tiles of all sets that have something there.
    fn merged(self) -> Vec<(u32, TileSelection)> {
        let Places(places, sets) = self;
        let mut merged: BTreeMap<u32, TileSelection> = BTreeMap::new();
        for (address, set) in places {
            if let Some(tiles) = sets.get(&set) {
                merged.entry(address).and_modify(|known| *known = known.union(tiles)).or_insert_with(|| tiles.clone());
            }
        }
        merged.into_iter().collect()
    }
}

fn is_code(symbol: &Symbol) -> bool {
    !matches!(symbol.kind, SymbolKind::Buffer { .. } | SymbolKind::Support)
}

/// Labels, pieces of code, and all variants of a kernel by its name alone.
fn named(package: &Package, name: &str, offset: u32) -> Places {
    let mut places = Vec::new();
    for symbol in package.symbols.iter().filter(|symbol| is_code(symbol)) {
        let kernel = symbol.name.split('{').next().unwrap_or_default();
        if symbol.name == name || kernel == name {
            places.push((symbol.address.wrapping_add(offset), symbol.tiles));
            continue;
        }
        if let SymbolKind::Code { listing } = symbol.kind
            && let Some(listing) = package.listings.get(listing as usize)
        {
            let labels = listing.labels.iter().filter(|(_, label)| label == name);
            places.extend(labels.map(|(at, _)| (symbol.address.wrapping_add(*at).wrapping_add(offset), symbol.tiles)));
        }
    }
    Places::of(package, places)
}

fn unknown(package: &Package, name: &str) -> String {
    let labels = package.listings.iter().flat_map(|listing| &listing.labels).map(|(_, label)| label.as_str());
    let symbols = package.symbols.iter().map(|symbol| symbol.name.as_str());
    let mut names: Vec<&str> = labels.chain(symbols).collect();
    names.sort_unstable();
    names.dedup();
    let nearest = graph::nearest(name, names);
    let nearest = if nearest.is_empty() { String::new() } else { format!("; nearest {}", nearest.join(", ")) };
    format!("there is no label, code or buffer `{name}`{nearest}")
}

/// The first instruction of a line, or of the next line that has one.
fn line_of(package: &Package, file: &str, wanted: u32) -> Result<(Places, Option<String>), String> {
    let is_file = |source: &str| source == file || source.strip_suffix(file).is_some_and(|rest| rest.ends_with('/'));
    let mut sources: Vec<&str> = package.listings.iter().map(|listing| listing.source.as_str()).collect();
    sources.sort_unstable();
    sources.dedup();
    if !sources.iter().any(|source| is_file(source)) {
        return Err(format!("no code comes from `{file}`; expected one of {}", sources.join(", ")));
    }
    let of_file = || package.listings.iter().enumerate().filter(|(_, listing)| is_file(&listing.source));
    let later = of_file().flat_map(|(_, listing)| &listing.lines).map(|line| line.line).filter(|line| *line >= wanted);
    let Some(line) = later.min() else {
        return Err(format!("no code comes from line {wanted} of `{file}` or from one behind it"));
    };
    let mut places = Vec::new();
    for (index, listing) in of_file() {
        let mut before = None;
        for entry in &listing.lines {
            // The instructions of a line that follow each other are one place.
            if entry.line == line && before != Some(line) {
                let here = |symbol: &&Symbol| symbol.kind == SymbolKind::Code { listing: index as u32 };
                places.extend(package.symbols.iter().filter(here).map(|symbol| (symbol.address + entry.offset, symbol.tiles)));
            }
            before = Some(entry.line);
        }
    }
    let remark = (line != wanted).then(|| format!("line {wanted} has no code, line {line} is the next that has"));
    Ok((Places::of(package, places), remark))
}

fn operation(package: &Package, name: &str) -> Result<Places, String> {
    let operations = &package.profile.operations;
    let Some(number) = operations.iter().position(|operation| operation == name) else {
        return Err(format!("there is no operation `{name}`; expected one of {}", operations.join(", ")));
    };
    let steps = package.profile.steps.iter().filter(|step| step.operation == Some(number as u32));
    let places: Vec<(u32, TileSetId)> = steps.flat_map(|step| &step.starts).map(|point| (point.address, point.tiles)).collect();
    if places.is_empty() { Err(format!("no tile does anything for `{name}`")) } else { Ok(Places::of(package, places)) }
}

/// A program counter in words of the sources: `gemm{…}+0x20 worker (gemm.S:41)`.
pub(crate) fn words(package: &Package, tile: PhysTile, pc: u32) -> String {
    let Some(located) = package.locate(tile, pc) else { return "no code with a name".to_owned() };
    let mut text = format!("{}+{:#x}", located.symbol.name, located.offset);
    if let Some(label) = located.label.filter(|label| *label != located.symbol.name) {
        text.push_str(&format!(" {label}"));
    }
    if let Some((listing, line)) = located.listing.zip(located.line) {
        text.push_str(&format!(" ({}:{line})", listing.source));
    }
    text
}
