//! One broken package for each rule of package.md, and the questions a session asks of a right one.

mod sample;

use ipu21::tile::PhysTile;
use package::{BlobId, CallKind, ConfigurationWrite, Fault, Layout, Package, Segment, StepKind, SymbolKind, TileSet, TileSetId};

/// Messages of the faults after `change`, at most the first three.
fn faults(change: impl FnOnce(&mut Package)) -> Vec<String> {
    let mut package = sample::package();
    change(&mut package);
    let faults: Vec<Fault> = package.check().err().unwrap_or_default();
    faults.iter().take(3).map(ToString::to_string).collect()
}

fn expect(change: impl FnOnce(&mut Package), expected: &[&str]) {
    assert_eq!(faults(change), expected);
}

fn panels(layout: &mut Layout) -> &mut package::Panels {
    match layout {
        Layout::Panels(panels) => panels,
        Layout::RowMajor => unreachable!("the sample has panels"),
    }
}

#[test]
fn the_sample_satisfies_every_rule() {
    expect(|_| {}, &[]);
}

#[test]
fn packages_for_another_chip_or_board_are_refused() {
    expect(|package| package.target.name = "IPU1".to_owned(), &["built for chip IPU1, this chip has IPU21"]);
    expect(|package| package.target.memory_base = 0x40000, &["built for memory base 0x40000, this chip has 0x4c000"]);
    expect(|package| package.target.tile_table[0] ^= 1, &["built with another logical-to-physical tile table than this board's"]);
    expect(|package| package.start_mark = 22, &["start mark 22, the tiles are loaded in 23 batches"]);
}

#[test]
fn missing_repeated_and_unordered_tiles_are_refused() {
    assert_eq!(faults(|package| drop(package.tiles.pop()))[0], "1471 tile records, expected 1472");
    expect(|package| package.tiles[4].tile = PhysTile::new(3).unwrap(), &["tile 3 follows tile 3: records must ascend"]);
    assert_eq!(faults(|package| package.tiles.swap(0, 1))[0], "tile 0 follows tile 1: records must ascend");
}

#[test]
fn segments_the_loader_cannot_place_are_refused() {
    let segment = |change: fn(&mut Segment)| move |package: &mut Package| change(&mut package.tiles[5].segments[1]);
    expect(|package| package.tiles[5].entry = 0x4c014, &["tile 5: entry 0x4c014, the loader starts at 0x4c010"]);
    expect(segment(|it| it.data = BlobId(99)), &["tile 5: the segment at 0x5ffc0 names contents 99, which are not there"]);
    expect(
        segment(|it| it.memory_bytes = u32::MAX - 3),
        &["tile 5: the segment at 0x5ffc0 ends at 0x10005ffbc, the loader fills memory up to 0xe7bb0"],
    );
    expect(segment(|it| it.address = 0x5ffc2), &["tile 5: the segment at 0x5ffc2 does not start at a multiple of 4"]);
    expect(segment(|it| it.address = 0xe7ba0), &["tile 5: the segment at 0xe7ba0 ends at 0xe7bc0, the loader fills memory up to 0xe7bb0"]);
    expect(segment(|it| it.address = 0x4c020), &["tile 5: the segment at 0x4c020 starts before the end 0x4c030 of the one at 0x4c010"]);
    expect(
        segment(|it| (it.address, it.access.execute) = (0x80000, true)),
        &["tile 5: the code at 0x80000..0x80020 leaves executable memory, which ends at 0x80000"],
    );
    expect(segment(|it| it.address = 0x57ff0), &["tile 5: the segment of 32 bytes at 0x57ff0 lies in the host window 0x50000..0x58000"]);
    expect(segment(|it| (it.address, it.in_host_window) = (0x57ff0, true)), &[]);
    expect(
        |package| package.tiles[5].segments[0].memory_bytes = 16,
        &[
            "tile 5: the segment at 0x4c010 has 20 bytes of contents in 16 bytes of memory",
            "symbol program: 32 bytes at 0x4c010 of tile 5 are not in an executable segment",
            "end of the last step: 4 bytes at 0x4c020 of tile 5 are not in an executable segment",
        ],
    );
    assert_eq!(
        faults(|package| package.tiles[5].segments.truncate(0))[..2],
        ["tile 5: no segment, expected one at 0x4c010", "entry: 4 bytes at 0x4c010 of tile 5 are not in an executable segment"]
    );
    expect(|package| package.tiles[5].completion = Some(0x58001), &["tile 5: the completion word 0x58001 is not a word of tile memory"]);
}

#[test]
fn repeated_and_unnamed_tensors_and_calls_are_refused() {
    expect(|package| package.bindings[1].name = "input".to_owned(), &["two bindings are named input"]);
    expect(|package| package.bindings[1].name.clear(), &["binding 1 has no name"]);
    expect(|package| package.calls[1].name = "initialize".to_owned(), &["two calls are named initialize"]);
    expect(|package| package.calls[1].name.clear(), &["call 1 has no name"]);
}

#[test]
fn slices_that_miss_or_leave_their_file_or_memory_are_refused() {
    expect(|package| package.bindings[0].slices[1].bytes = 252, &["binding input: 4 bytes of the file from 508 on are in no slice"]);
    expect(
        |package| package.bindings[0].slices[1].bytes = 254,
        &[
            "binding input: slice 1 (254 bytes at 0x60200) is empty or not in multiples of 4",
            "binding input: 2 bytes of the file from 510 on are in no slice",
        ],
    );
    expect(|package| package.bindings[0].slices[3].bytes = 260, &["binding input: a slice ends at byte 1028 of a file of 1024"]);
    expect(
        |package| package.bindings[0].slices[1].address = 0xe7f80,
        &["binding input: slice 1, 256 bytes at 0xe7f80 of tile 0, leaves tile memory"],
    );
    expect(
        |package| package.bindings[0].slices[1].address = 0x60080,
        &["binding input: the slices at 0x60000 and 0x60080 of tile 0 overlap"],
    );
    expect(
        |package| package.bindings[0].slices[1].file_offset = 0,
        &["binding input: byte 0 of the file is in two slices", "binding input: 256 bytes of the file from 256 on are in no slice"],
    );
}

#[test]
fn copies_of_a_stretch_of_a_file_are_allowed_on_different_tiles_only() {
    let copy_to = |tile: u16| {
        move |package: &mut Package| {
            let binding = &mut package.bindings[0];
            let copy = package::Slice { tile: PhysTile::new(tile).unwrap(), address: 0x70000, ..binding.slices[0] };
            binding.slices.push(copy);
        }
    };
    expect(copy_to(9), &[]);
    expect(copy_to(0), &["binding input: byte 0 of the file is in two slices"]);
}

#[test]
fn layouts_that_do_not_fit_their_tensor_are_refused() {
    expect(|package| package.bindings[0].shape = vec![5, 21], &["binding input: elements of the shape: expected 105, found 100"]);
    expect(
        |package| package.bindings[0].layout = Layout::RowMajor,
        &["binding input: bytes of the file of a row-major tensor: expected 200, found 1024"],
    );
    expect(
        |package| panels(&mut package.bindings[0].layout).pieces[1].columns = (8, 40),
        &[
            "binding input: end of a piece: expected 32, found 40",
            "binding input: alignment of a panel: expected 0, found 8",
            "binding input: alignment of a panel: expected 32, found 40",
        ],
    );
    expect(
        |package| panels(&mut package.bindings[0].layout).pieces[1].address += 512,
        &["binding input: slices that start with a piece: expected 1, found 0"],
    );
    expect(
        |package| panels(&mut package.checkpoints[1].tensors[0].layout).pieces[0].panel_bytes = 128,
        &["checkpoint operation1, tensor value1: bytes from panel to panel: expected 256, found 128"],
    );
}

#[test]
fn wrong_pages_and_commands_are_refused() {
    expect(|package| package.pages[0].bytes = 100, &["page 0 has 100 bytes, expected a positive multiple of 4096"]);
    assert_eq!(faults(|package| package.pages[1].index = 0)[0], "page 0 is listed twice");
    expect(|package| package.command.offset = 4094, &["the command word at byte 4094 of page 0 is not a word of a page"]);
    expect(|package| package.command.page = 7, &["the command word at byte 0 of page 7 is not a word of a page"]);
}

#[test]
fn calls_that_move_too_much_too_little_or_the_wrong_thing_are_refused() {
    expect(|package| package.calls[0].phases = 3, &["call initialize: 3 host phases, its batches need 4"]);
    expect(|package| package.calls[1].phases = 8, &["call run: 8 host phases, its batches need 7"]);
    expect(|package| package.calls[1].invocations = Some(0), &["call run: it may be called 0 times"]);
    expect(
        |package| package.calls[0].inputs.batch_ends = vec![2, 2],
        &[
            "call initialize: batch 1 ends at slice 2, which does not fit its neighbours (2)",
            "call initialize: batch 2 ends at slice 2, which does not fit its neighbours (4)",
        ],
    );
    expect(
        |package| package.calls[0].inputs.batch_ends[1] = 9,
        &["call initialize: batch 1 ends at slice 9, which does not fit its neighbours (4)"],
    );
    expect(
        |package| package.calls[1].inputs.slices[0].page_offset = 8192,
        &["call run: 256 bytes at 8192 leave page 1 or there is no such page"],
    );
    expect(|package| package.calls[1].inputs.slices[1].page_offset = 128, &["call run: two slices of batch 0 have byte 128 of page 1"]);
    expect(
        |package| package.calls[1].kind = CallKind::Initialize,
        &["call run: 7 host phases, its batches need 8", "call run: it cannot move binding 0", "call run: it cannot move binding 0"],
    );
    expect(
        |package| package.calls[1].inputs.slices[3].bytes = 252,
        &["calls of binding input: 4 bytes of the file from 1020 on are in no slice"],
    );
    expect(
        |package| package.calls[1].inputs.slices[3].file_offset = 0,
        &[
            "calls of binding input: byte 0 of the file is in two slices",
            "calls of binding input: 256 bytes of the file from 768 on are in no slice",
        ],
    );
}

#[test]
fn configuration_writes_to_forbidden_registers_are_refused() {
    let write = |offset| move |package: &mut Package| package.configuration.push(ConfigurationWrite { offset, value: 1 });
    expect(write(0x4018), &[]);
    expect(write(0x302c), &["configuration write to 0x302c: barrier credits belong to the session"]);
    expect(write(0x80000), &["configuration write to 0x80000: beyond the configuration space"]);
    expect(write(0x4019), &["configuration write to 0x4019: not a multiple of 4"]);
    expect(|package| (0..2).for_each(|_| write(0x4018)(package)), &["configuration write to 0x4018: written twice"]);
}

#[test]
fn names_and_points_that_refer_to_nothing_are_refused() {
    expect(|package| package.code_parameters.push(String::new()), &["code parameter \"\" is empty, repeated or out of order"]);
    expect(|package| package.tile_sets.push(TileSet(Vec::new())), &["tile set 2 is empty or not ascending"]);
    expect(|package| package.symbols[3].tiles = TileSetId(5), &["symbol keys: there is no tile set 5"]);
    expect(|package| package.symbols[3].bytes = 0x90000, &["symbol keys: 589824 bytes at 0x60000 leave tile memory"]);
    expect(|package| package.symbols[1].kind = SymbolKind::Code { listing: 1 }, &["symbol gemm: there is no listing 1"]);
    expect(
        |package| package.symbols[2].address = 0x60000,
        &[
            "symbol row: 8 bytes at 0x60000 of tile 0 are not in an executable segment",
            "symbol row: 8 bytes at 0x60000 of tile 2 are not in an executable segment",
        ],
    );
    expect(|package| package.profile.steps[1].operation = Some(2), &["step 1 (step1): there is no operation 2"]);
    expect(|package| package.profile.steps[1].kind = StepKind::Checkpoint { checkpoint: 2 }, &["step 1 (step1): there is no checkpoint 2"]);
    expect(
        |package| {
            let again = package.profile.end[0];
            package.profile.end.push(package::Point { tiles: TileSetId(1), ..again });
        },
        &["end of the last step: 2 program points name tile 0", "end of the last step: 2 program points name tile 2"],
    );
}

#[test]
fn checkpoints_whose_traps_are_not_there_are_refused() {
    expect(
        |package| package.checkpoints[1].points[0].address -= 4,
        &[
            "checkpoint operation1: expected the trap word 0x41801001 on tile 0, found 0x41801000",
            "checkpoint operation1: expected the trap word 0x41801001 on tile 1, found 0x41801000",
            "checkpoint operation1: expected the trap word 0x41801001 on tile 2, found 0x41801000",
        ],
    );
    assert_eq!(faults(|package| package.checkpoints[1].trap = 0), ["checkpoint operation1: trap 0, traps must alternate and 1 is due"]);
    expect(|package| package.checkpoints[0].trap_word = 1, &["checkpoint operation0: expected the trap word 0x41801000, found 0x00000001"]);
    expect(|package| package.checkpoints[0].resume_word = 1, &["checkpoint operation0: resumes with 0x00000001, expected nop 0x19e00000"]);
    assert_eq!(faults(|package| package.checkpoints[0].points.clear())[0], "checkpoint operation0: 0 program points name tile 0");
    expect(|package| package.checkpoints[0].operation = 9, &["checkpoint operation0: there is no operation 9"]);
}

#[test]
fn a_program_counter_has_the_names_of_the_smallest_code_around_it() {
    let package = sample::package();
    let (with, without) = (PhysTile::new(2).unwrap(), PhysTile::new(5).unwrap());
    let located = package.locate(with, 0x4c01c).unwrap();
    assert_eq!((located.symbol.name.as_str(), located.offset, located.line, located.label), ("gemm", 8, Some(12), Some("loop")));
    assert_eq!(located.listing.unwrap().source, "gemm.S");
    assert_eq!(package.locate(without, 0x4c01c).unwrap().symbol.name, "program");
    assert_eq!(package.locate(with, 0x60000), None);
    let map: Vec<&str> = package.memory_map(with).iter().map(|symbol| symbol.name.as_str()).collect();
    assert_eq!(map, ["program", "gemm", "row", "keys"]);
}

#[test]
fn an_image_reaches_over_zero_tails_and_has_the_loaders_smallest_size() {
    let mut package = sample::package();
    package.tiles[3].segments.truncate(1);
    let image = package.image(&package.tiles[3]);
    assert_eq!((image.len(), &image[..4]), (0x4134, &[0, 0, 0xe0, 0x19][..]));
    assert_eq!(package.image(&package.tiles[4]).len(), (sample::DATA - 32 - 0x4c010) as usize);
}

#[test]
fn a_summary_counts_what_is_there() {
    let summary = sample::package().summary();
    assert_eq!((summary.tiles, summary.segments, summary.blobs, summary.blob_bytes), (1472, 2944, 4, 60));
    assert_eq!((summary.memory_bytes, summary.largest_tile_bytes, summary.planned_clocks), (1472 * 64, 64, 303));
    assert_eq!((summary.bindings[0].tiles, summary.bindings[0].slices), (2, 4));
    assert_eq!((summary.calls[1].bytes, summary.calls[1].input_batches), (2048, 2));
}
