//! Everything that must hold before a package may touch a device (package.md 9).
//!
//! Rules, each a variant of [`Fault`]: the target is this chip; one record for each tile, ascending; segments as the loader needs
//! them; contents stored once; bindings and checkpoint tensors cover their files; calls move every binding once, within their
//! pages; configuration writes are allowed ones; checkpoints alternate their traps on all tiles, at executable addresses that
//! hold the trap word; names, sets and numbers refer to something. All independent faults are reported, in the order of the
//! package's parts.

use std::collections::BTreeSet;

use ipu21::{memory, tile};

use crate::fault::Fault;
use crate::package::{LOADER_BATCH, Package};
use crate::target::c600_tile_table;
use crate::{check_calls, check_tensors, check_tiles};

/// Credit registers of the host barriers, which only the session writes (machine.md e.2).
const CREDIT_REGISTERS: [u32; 2] = [0x302c, 0x3030];
/// Bytes of the configuration space (machine.md f.1).
const CONFIGURATION_BYTES: u32 = 0x80000;

impl Package {
    /// Judges the contents; see the list at the head of `check.rs`.
    ///
    /// # Errors
    /// Every rule that does not hold.
    pub fn check(&self) -> Result<(), Vec<Fault>> {
        let mut faults = Vec::new();
        target(self, &mut faults);
        check_tiles::check(self, &mut faults);
        check_tensors::bindings(self, &mut faults);
        check_calls::check(self, &mut faults);
        configuration(self, &mut faults);
        code_parameters(self, &mut faults);
        check_tiles::names(self, &mut faults);
        check_tiles::checkpoints(self, &mut faults);
        check_tensors::checkpoints(self, &mut faults);
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }
}

fn target(package: &Package, faults: &mut Vec<Fault>) {
    let target = &package.target;
    if target.name != "IPU21" {
        faults.push(Fault::Target { what: "chip", expected: "IPU21".to_owned(), found: target.name.clone() });
    }
    for (what, expected, found) in [
        ("memory base", memory::BASE, target.memory_base),
        ("memory size", memory::SIZE, target.memory_bytes),
        ("tile count", tile::COUNT as u32, target.tiles),
    ] {
        if expected != found {
            faults.push(Fault::Target { what, expected: format!("{expected:#x}"), found: format!("{found:#x}") });
        }
    }
    if target.tile_table != c600_tile_table() {
        faults.push(Fault::TileTable);
    }
    let expected = (tile::COUNT as u32).div_ceil(LOADER_BATCH);
    if package.start_mark != expected {
        faults.push(Fault::StartMark { expected, found: package.start_mark });
    }
}

fn configuration(package: &Package, faults: &mut Vec<Fault>) {
    let mut seen = BTreeSet::new();
    for write in &package.configuration {
        let offset = write.offset;
        let refused = [
            (!offset.is_multiple_of(4), "not a multiple of 4"),
            (offset >= CONFIGURATION_BYTES, "beyond the configuration space"),
            (CREDIT_REGISTERS.contains(&offset), "barrier credits belong to the session"),
            (!seen.insert(offset), "written twice"),
        ];
        faults.extend(refused.into_iter().filter(|(refused, _)| *refused).map(|(_, why)| Fault::Configuration { offset, why }));
    }
}

fn code_parameters(package: &Package, faults: &mut Vec<Fault>) {
    let mut previous = "";
    for name in &package.code_parameters {
        if name.as_str() <= previous {
            faults.push(Fault::CodeParameters { name: name.clone() });
        }
        previous = name;
    }
}
