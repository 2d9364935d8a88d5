//! An assembled kernel: symbols, measured clocks against its lower bound, and its instructions with the cycles of their slots.
//!
//! A worker issues one instruction, or one bundle, in each of its slots, and has one slot of six (machine.md a). Its instructions
//! are counted from the symbol before, as if it never branched; what a call takes in all was measured.

use graph::{Cell, Document, ShowFault, Shown};
use ipu21::tile::WORKERS;
use toolchain::disassembler::{Line, disassemble};
use toolchain::object::Object;

use super::kernel_bound::with_bound;
use super::words::digits;
use crate::stage::kernel_bound::KernelBound;

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let object: Object = shown.decode()?;
    let index = shown.entry.name.index.as_deref();
    let bound: Option<KernelBound> = shown.other("kernel_bound", index);
    let symbols = object.symbols().iter().map(|(name, offset)| vec![name.as_str().into(), Cell::Address(*offset)]);
    let relocations = object.relocations().iter().map(|relocation| {
        let symbol = relocation.symbol.clone().unwrap_or_else(|| "start".to_owned());
        vec![Cell::Address(relocation.offset), format!("{:?}", relocation.kind).into(), symbol.into(), relocation.addend.to_string().into()]
    });
    let document = Document::default()
        .fact("source", object.source_name())
        .fact("text bytes", object.text().len())
        .fact("align bytes", object.align());
    Ok(with_bound(document, shown.other("measured", index), bound.as_ref())
        .table("symbols", &["name", "offset"], symbols)
        .table("relocations", &["offset", "kind", "symbol", "addend"], relocations)
        .table("listing", &["offset", "words", "cycle", "line", "symbol", "instruction"], instructions(&object)))
}

fn instructions(object: &Object) -> Vec<Vec<Cell>> {
    let mut slot = 0;
    let row = |line: Line| {
        let symbols = object.symbols().iter().filter(|(_, offset)| **offset == line.address);
        let symbols: Vec<&str> = symbols.map(|(name, _)| name.as_str()).collect();
        slot = if symbols.is_empty() { slot } else { 0 };
        let cycle = slot * u64::from(WORKERS);
        slot += 1;
        vec![
            Cell::Address(line.address),
            digits(&line.words).into(),
            cycle.into(),
            object.line_of(line.address).map_or(Cell::None, |(_, line)| Cell::Number(line.into())),
            symbols.join(" ").into(),
            line.text.into(),
        ]
    };
    disassemble(object.text(), 0).into_iter().map(row).collect()
}
