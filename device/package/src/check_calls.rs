//! Rules of pages and calls (package.md 4).

use std::collections::{BTreeMap, BTreeSet};

use crate::binding::Group;
use crate::call::{Call, CallKind, CallSlice, Transfers};
use crate::check_tensors::cover;
use crate::fault::Fault;
use crate::package::Package;

pub(crate) fn check(package: &Package, faults: &mut Vec<Fault>) {
    let pages = pages(package, faults);
    let command = package.command;
    let holds = |bytes: &u32| command.offset.is_multiple_of(4) && u64::from(command.offset) + 4 <= u64::from(*bytes);
    if !pages.get(&command.page).is_some_and(holds) {
        faults.push(Fault::Command { page: command.page, offset: command.offset });
    }
    let mut names = BTreeSet::new();
    for (index, call) in (0..).zip(&package.calls) {
        if call.name.is_empty() {
            faults.push(Fault::EmptyName { what: "call", index });
        }
        if !names.insert(&call.name) {
            faults.push(Fault::RepeatedName { what: "call", name: call.name.clone() });
        }
        check_call(package, call, &pages, faults);
    }
    bindings_move_once(package, faults);
}

/// Sizes by page number.
fn pages(package: &Package, faults: &mut Vec<Fault>) -> BTreeMap<u32, u32> {
    let mut pages = BTreeMap::new();
    for page in &package.pages {
        if page.bytes == 0 || !page.bytes.is_multiple_of(ipu21::host::SLOT_BYTES) {
            faults.push(Fault::PageSize { page: page.index, bytes: page.bytes });
        }
        if pages.insert(page.index, page.bytes).is_some() {
            faults.push(Fault::RepeatedPage { page: page.index });
        }
    }
    pages
}

fn check_call(package: &Package, call: &Call, pages: &BTreeMap<u32, u32>, faults: &mut Vec<Fault>) {
    let expected = call.expected_phases();
    if expected != u64::from(call.phases) {
        faults.push(Fault::Phases { call: call.name.clone(), expected, found: call.phases });
    }
    if call.invocations == Some(0) {
        faults.push(Fault::Invocations { call: call.name.clone() });
    }
    let down = if call.kind == CallKind::Initialize { Group::Weight } else { Group::Input };
    for (transfers, group) in [(&call.inputs, Some(down)), (&call.outputs, (call.kind == CallKind::Run).then_some(Group::Output))] {
        batch_ends(call, transfers, faults);
        for slice in &transfers.slices {
            check_slice(package, call, slice, group, pages, faults);
        }
        for (number, batch) in (0..).zip(transfers.batches()) {
            page_overlaps(call, number, batch, faults);
        }
    }
}

fn batch_ends(call: &Call, transfers: &Transfers, faults: &mut Vec<Fault>) {
    let mut previous = 0_u64;
    let total = transfers.slices.len() as u64;
    let mut wrong = |batch, slices, end| faults.push(Fault::Batches { call: call.name.clone(), batch, slices, end });
    for (batch, end) in (0..).zip(transfers.batch_ends.iter().map(|end| u64::from(*end))) {
        if end <= previous || end > total {
            wrong(batch, if end > total { total } else { previous }, end);
        }
        previous = end;
    }
    if previous < total {
        wrong(transfers.batch_ends.len() as u64, total, previous);
    }
}

fn check_slice(
    package: &Package,
    call: &Call,
    slice: &CallSlice,
    group: Option<Group>,
    pages: &BTreeMap<u32, u32>,
    faults: &mut Vec<Fault>,
) {
    let &CallSlice { binding, page, page_offset, file_offset, bytes } = slice;
    let name = || call.name.clone();
    let bound = package.bindings.get(binding as usize);
    if group.is_none() || bound.map(|bound| bound.group) != group {
        faults.push(Fault::CallBinding { call: name(), binding });
    }
    if bytes == 0 || !bytes.is_multiple_of(4) || !page_offset.is_multiple_of(4) || !file_offset.is_multiple_of(4) {
        faults.push(Fault::SliceUnit { owner: format!("call {}", call.name), slice: file_offset, address: page_offset, bytes });
    }
    let end = u64::from(page_offset) + u64::from(bytes);
    if pages.get(&page).is_none_or(|size| end > u64::from(*size)) {
        faults.push(Fault::CallPage { call: name(), page, page_offset, bytes });
    }
}

fn page_overlaps(call: &Call, batch: u64, slices: &[CallSlice], faults: &mut Vec<Fault>) {
    let mut places: Vec<(u32, u32, u32)> = slices.iter().map(|slice| (slice.page, slice.page_offset, slice.bytes)).collect();
    places.sort_unstable();
    for pair in places.windows(2) {
        let ((page, first, bytes), (next, second, _)) = (pair[0], pair[1]);
        if page == next && u64::from(first) + u64::from(bytes) > u64::from(second) {
            faults.push(Fault::PageOverlap { call: call.name.clone(), batch, page, page_offset: second });
        }
    }
}

/// Each binding's file is moved completely, and once, by the calls of its direction.
fn bindings_move_once(package: &Package, faults: &mut Vec<Fault>) {
    let mut ranges: Vec<Vec<(u64, u32, ())>> = vec![Vec::new(); package.bindings.len()];
    for slice in package.calls.iter().flat_map(|call| call.inputs.slices.iter().chain(&call.outputs.slices)) {
        if let Some(ranges) = ranges.get_mut(slice.binding as usize) {
            ranges.push((slice.file_offset, slice.bytes, ()));
        }
    }
    for (binding, ranges) in package.bindings.iter().zip(ranges) {
        cover(&format!("calls of binding {}", binding.name), binding.file_bytes, ranges, faults);
    }
}
