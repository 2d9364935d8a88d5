//! Rules of bindings and of tensors read at checkpoints (package.md 3 and 8).

use std::collections::{BTreeMap, BTreeSet};

use ipu21::memory;
use ipu21::tile::PhysTile;

use crate::binding::{Axis, Element, Layout, Order, Panels, Piece, Slice};
use crate::fault::Fault;
use crate::package::Package;

/// What bindings and checkpoint tensors have in common.
struct Described<'a> {
    owner: String,
    element: Element,
    shape: &'a [u32],
    file_bytes: u64,
    slices: &'a [Slice],
    layout: &'a Layout,
}

pub(crate) fn bindings(package: &Package, faults: &mut Vec<Fault>) {
    let mut names = BTreeSet::new();
    for (index, binding) in (0..).zip(&package.bindings) {
        if binding.name.is_empty() {
            faults.push(Fault::EmptyName { what: "binding", index });
        }
        if !names.insert(&binding.name) {
            faults.push(Fault::RepeatedName { what: "binding", name: binding.name.clone() });
        }
        let described = Described {
            owner: format!("binding {}", binding.name),
            element: binding.element,
            shape: &binding.shape,
            file_bytes: binding.file_bytes,
            slices: &binding.slices,
            layout: &binding.layout,
        };
        check(&described, faults);
    }
}

pub(crate) fn checkpoints(package: &Package, faults: &mut Vec<Fault>) {
    for checkpoint in &package.checkpoints {
        for tensor in &checkpoint.tensors {
            let described = Described {
                owner: format!("checkpoint {}, tensor {}", checkpoint.name, tensor.name),
                element: tensor.element,
                shape: &tensor.shape,
                file_bytes: tensor.file_bytes,
                slices: &tensor.slices,
                layout: &tensor.layout,
            };
            check(&described, faults);
        }
    }
}

fn check(tensor: &Described<'_>, faults: &mut Vec<Fault>) {
    slices(tensor, faults);
    overlaps(tensor, faults);
    let ranges = tensor.slices.iter().map(|slice| (slice.file_offset, slice.bytes, slice.tile)).collect();
    cover(&tensor.owner, tensor.file_bytes, ranges, faults);
    match tensor.layout {
        Layout::RowMajor => {
            let expected = elements(tensor.shape).saturating_mul(u64::from(tensor.element.bytes()));
            expect(tensor, "bytes of the file of a row-major tensor", expected, tensor.file_bytes, faults);
        }
        Layout::Panels(panels) => check_panels(tensor, panels, faults),
    }
}

fn elements(shape: &[u32]) -> u64 {
    shape.iter().fold(1, |product, extent| u64::saturating_mul(product, u64::from(*extent)))
}

fn slices(tensor: &Described<'_>, faults: &mut Vec<Fault>) {
    for (number, slice) in (0..).zip(tensor.slices) {
        let &Slice { tile, address, bytes, file_offset } = slice;
        if bytes == 0 || !bytes.is_multiple_of(4) || !address.is_multiple_of(4) || !file_offset.is_multiple_of(4) {
            faults.push(Fault::SliceUnit { owner: tensor.owner.clone(), slice: number, address, bytes });
        }
        if !memory::contains(address, bytes) {
            faults.push(Fault::SliceMemory { owner: tensor.owner.clone(), slice: number, tile, address, bytes });
        }
    }
}

/// Slices of one tile do not share memory.
fn overlaps(tensor: &Described<'_>, faults: &mut Vec<Fault>) {
    let mut places: Vec<(PhysTile, u32, u32)> = tensor.slices.iter().map(|slice| (slice.tile, slice.address, slice.bytes)).collect();
    places.sort_unstable();
    for pair in places.windows(2) {
        let ((tile, first, bytes), (next, second, _)) = (pair[0], pair[1]);
        if tile == next && u64::from(first) + u64::from(bytes) > u64::from(second) {
            faults.push(Fault::SliceOverlap { owner: tensor.owner.clone(), tile, first, second });
        }
    }
}

/// The ranges cover the file; two may hold the same bytes only for different holders.
pub(crate) fn cover<Holder: Ord + Copy>(owner: &str, file_bytes: u64, ranges: Vec<(u64, u32, Holder)>, faults: &mut Vec<Fault>) {
    let mut ranges = ranges;
    ranges.sort_unstable();
    let mut covered = 0_u64;
    let mut ends: BTreeMap<Holder, u64> = BTreeMap::new();
    for (start, bytes, holder) in ranges {
        let end = start.saturating_add(u64::from(bytes));
        if start > covered {
            faults.push(Fault::Uncovered { owner: owner.to_owned(), file_offset: covered, bytes: start - covered });
        }
        let held = ends.entry(holder).or_insert(0);
        if start < *held {
            faults.push(Fault::CoveredTwice { owner: owner.to_owned(), file_offset: start });
        }
        *held = end.max(*held);
        covered = end.max(covered);
    }
    if covered > file_bytes {
        faults.push(Fault::SliceFile { owner: owner.to_owned(), end: covered, file_bytes });
    } else if covered < file_bytes {
        faults.push(Fault::Uncovered { owner: owner.to_owned(), file_offset: covered, bytes: file_bytes - covered });
    }
}

fn expect(tensor: &Described<'_>, what: &'static str, expected: u64, found: u64, faults: &mut Vec<Fault>) {
    if expected != found {
        faults.push(Fault::Layout { owner: tensor.owner.clone(), what, expected, found });
    }
}

/// Panels of f16: axes hold the real extents, pieces lie in padded space, the file is their sum.
fn check_panels(tensor: &Described<'_>, panels: &Panels, faults: &mut Vec<Fault>) {
    expect(tensor, "bytes of an element in panels", 2, u64::from(tensor.element.bytes()), faults);
    let columns = panels.column_axis.extent();
    expect(tensor, "elements of the shape", elements(tensor.shape), u64::from(panels.rows).saturating_mul(columns), faults);
    let short = u64::from(panels.rows).max(panels.row_axis.extent());
    expect(tensor, "rows of the row axis", short, panels.row_axis.extent(), faults);
    for axis in [panels.row_axis, panels.column_axis] {
        let padded = axis.padded.max(axis.width).max(1);
        expect(tensor, "padded width of an axis", u64::from(padded), u64::from(axis.padded), faults);
        expect(tensor, "blocks of an axis", u64::from(axis.parts.max(1)), u64::from(axis.parts), faults);
    }
    let starts: BTreeSet<_> = tensor.slices.iter().map(|slice| (slice.tile, slice.address, slice.file_offset)).collect();
    let mut file_offset = 0;
    for piece in &panels.pieces {
        check_piece(tensor, panels, piece, faults);
        let slices = u64::from(starts.contains(&(piece.tile, piece.address, piece.file_offset)));
        expect(tensor, "slices that start with a piece", 1, slices, faults);
        expect(tensor, "file offset of a piece", file_offset, piece.file_offset, faults);
        file_offset = file_offset.saturating_add(piece.file_bytes());
    }
    expect(tensor, "bytes of the pieces", tensor.file_bytes, file_offset, faults);
}

fn check_piece(tensor: &Described<'_>, panels: &Panels, piece: &Piece, faults: &mut Vec<Fault>) {
    for (span, axis) in [(piece.rows, panels.row_axis), (piece.columns, panels.column_axis)] {
        // Whole panels may reach past an axis that is not a multiple of sixteen.
        let limit = Axis::padded_extent(axis).next_multiple_of(16);
        expect(tensor, "first position of a piece", u64::from(span.0.min(span.1)), u64::from(span.0), faults);
        expect(tensor, "end of a piece", u64::from(span.1).min(limit), u64::from(span.1), faults);
    }
    let across = if piece.order == Order::ByColumn { piece.columns } else { piece.rows };
    for position in [across.0, across.1] {
        expect(tensor, "alignment of a panel", u64::from(position / 16 * 16), u64::from(position), faults);
    }
    let least = piece.dense_panel_bytes().max(u64::from(piece.panel_bytes));
    expect(tensor, "bytes from panel to panel", least, u64::from(piece.panel_bytes), faults);
}
