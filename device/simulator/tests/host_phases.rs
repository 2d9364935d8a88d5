//! Host phases with the recorded words of `host_phases.tsv`: reads, writes, participation, and what is refused.

mod support;

use ipu21::tile::PhysTile;
use simulator::{Cause, Chip, Segment, Stop};
use support::{ENTRY, call, chip, load_all, program, segment, word};

struct Phase {
    tile: u16,
    role: String,
    tile_address: u32,
    offset: u32,
    bytes: u32,
    announces: bool,
    packets: Vec<u32>,
    code: Vec<u32>,
}

fn hex(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

fn phases() -> Vec<Phase> {
    let rows = include_str!("data/host_phases.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        Phase {
            role: fields[0].to_owned(),
            tile: fields[1].parse().unwrap(),
            tile_address: hex(fields[2]),
            offset: hex(fields[3]),
            bytes: fields[4].parse().unwrap(),
            announces: fields[5] != "-",
            packets: fields[6].split(' ').map(hex).collect(),
            code: fields[7].split(' ').map(hex).collect(),
        }
    })
    .collect()
}

const PHASE_CODE: u32 = 0x58000;

fn participant(phase: &Phase) -> Vec<Segment> {
    let words = if phase.announces { 0x50000 } else { 0x50008 };
    let mut segments = vec![program(vec![call(PHASE_CODE)]), segment(PHASE_CODE, &phase.code), segment(words, &phase.packets)];
    if phase.role == "d2h" {
        let data: Vec<u32> = (0..phase.bytes / 4).map(|i| 0xd200_0000 + i).collect();
        segments.push(segment(phase.tile_address, &data));
    }
    segments
}

/// An owner that announces one member (bit 2*row + lane of the group), recorded like row 1 of the file.
fn owner_of(target: PhysTile) -> Phase {
    let bit = 2 * u64::from(target.row()) + u64::from(target.lane());
    let set = [(if bit < 24 { 1 << bit } else { 0 }) as u32, (if bit >= 24 { 1u64 << (bit - 24) } else { 0 }) as u32];
    let mux = 0x600 + u32::from(target.group_owner().get());
    let code = [0x1980_0000 | mux, 0x4380_80a0, 0x4180_000f, 0x782a_0003, 0x4180_0007, 0x1980_0640, 0x4380_80a0, 0x43a0_0000];
    Phase {
        role: "owner".to_owned(),
        tile: target.group_owner().get(),
        tile_address: 0,
        offset: 0,
        bytes: 0,
        announces: true,
        packets: set.to_vec(),
        code: code.to_vec(),
    }
}

fn bystander() -> Segment {
    program(vec![word("sans.zi19", &[1]), word("sync.zi4", &[1])])
}

fn loaded(phases: &[&Phase]) -> Chip {
    let mut chip = chip(1);
    let busy: Vec<_> = phases.iter().map(|phase| (PhysTile::new(phase.tile).unwrap(), participant(phase))).collect();
    load_all(&mut chip, &busy, &bystander());
    chip.attach_page(0, vec![0; 4096]);
    chip.attach_page(1, (0..0x3000u32).flat_map(|i| (i * 3).to_le_bytes()).collect());
    chip.start();
    chip
}

/// Runs the two barriers of a host phase.
fn run(chip: &mut Chip) -> Stop {
    assert_eq!(chip.run(), Stop::HostBarrier);
    chip.grant(1);
    match chip.run() {
        Stop::HostBarrier => {}
        stop => return stop,
    }
    chip.grant(1);
    chip.run()
}

fn check_moved(phase: &Phase, chip: &Chip) {
    let id = PhysTile::new(phase.tile).unwrap();
    let page = |from: u32| &chip.page(1)[(from - 0x1000) as usize..(from - 0x1000 + phase.bytes) as usize];
    let at_tile = chip.read_memory(id, phase.tile_address, phase.bytes).unwrap();
    assert_eq!(at_tile, page(phase.offset), "tile {}", phase.tile);
}

#[test]
fn recorded_phases_move_their_bytes() {
    let all = phases();
    for phase in all.iter().filter(|phase| phase.role != "owner") {
        let owner = owner_of(PhysTile::new(phase.tile).unwrap());
        let mut together = vec![phase];
        if !phase.announces {
            together.push(&owner);
        }
        let mut chip = loaded(&together);
        let stop = run(&mut chip);
        if phase.announces {
            // The recorded owners announce a second target, which takes no part here.
            assert!(matches!(&stop, Stop::Fault(f) if f.cause == Cause::AnnouncedWithoutStream), "{stop:?}");
        } else {
            assert_eq!(stop, Stop::Finished, "tile {}", phase.tile);
            check_moved(phase, &chip);
        }
    }
}

#[test]
fn a_target_that_nobody_announced_is_refused() {
    let all = phases();
    let read = all.iter().find(|phase| phase.role == "h2d" && !phase.announces).unwrap();
    let mut chip = loaded(&[read]);
    let Stop::Fault(fault) = run(&mut chip) else { panic!("no fault") };
    assert_eq!((fault.tile.get(), fault.cause), (read.tile, Cause::NotAnnounced));
}

#[test]
fn a_packet_that_names_another_tile_is_refused() {
    let mut all = phases();
    let mut read = all.remove(1);
    read.packets[0] += 1 << 15;
    let owner = owner_of(PhysTile::new(read.tile).unwrap());
    let mut chip = loaded(&[&read, &owner]);
    let Stop::Fault(fault) = run(&mut chip) else { panic!("no fault") };
    assert!(matches!(fault.cause, Cause::HostPacket { rule: "the tile field is not the sender", .. }));
}

#[test]
fn a_packet_over_a_multiple_of_4096_is_refused() {
    let mut all = phases();
    let mut read = all.remove(1);
    read.packets[1] += 0x3f0;
    let owner = owner_of(PhysTile::new(read.tile).unwrap());
    let mut chip = loaded(&[&read, &owner]);
    let Stop::Fault(fault) = run(&mut chip) else { panic!("no fault") };
    assert!(matches!(fault.cause, Cause::HostPacket { rule: "the packet crosses a multiple of 4096", .. }), "{fault}");
}

#[test]
fn a_count_that_is_never_reached_is_reported_as_stuck() {
    let mut all = phases();
    let mut read = all.remove(1);
    read.code[3] += 1;
    let owner = owner_of(PhysTile::new(read.tile).unwrap());
    let mut chip = loaded(&[&read, &owner]);
    assert_eq!(chip.run(), Stop::HostBarrier);
    chip.grant(2);
    let Stop::Stuck(report) = chip.run() else { panic!("not stuck") };
    assert!(report.iter().any(|w| w.tile.get() == read.tile && w.what == "sync 0 with 1024 of 1025 words"), "{report:?}");
}

#[test]
fn a_host_barrier_needs_the_host_port_selected() {
    let code = program(vec![word("sync.zi4", &[7])]);
    let mut chip = chip(1);
    load_all(&mut chip, &[], &code);
    chip.start();
    let Stop::Fault(fault) = chip.run() else { panic!("no fault") };
    assert_eq!(fault.cause, Cause::ExternalSyncWithInternalMux { mux: 0x640 });
    assert_eq!(fault.pc, ENTRY + 4);
}

/// Zones 5 and 13 are those of group 1, whose marks are its own.
#[test]
fn barriers_of_group_1_take_its_own_marks() {
    for zone in [5, 13] {
        let mut chip = chip(1);
        let tile = PhysTile::new(0).unwrap();
        let mux = 0x600 + u32::from(tile.group_owner().get());
        let code = [0x1980_0000 | mux, 0x4380_80a0, 0x4180_0000 | zone, 0x1980_0640, 0x4380_80a0, 0x43a0_0000];
        let busy = vec![(tile, vec![program(vec![call(PHASE_CODE)]), segment(PHASE_CODE, &code)])];
        load_all(&mut chip, &busy, &program(vec![word("sans.zi19", &[0]), word("sync.zi4", &[1])]));
        chip.start();
        assert_eq!(chip.run(), Stop::HostBarrier, "zone {zone}");
        chip.grant(1);
        assert_eq!(chip.run(), Stop::HostBarrier, "zone {zone}: a mark of group 2");
        chip.grant_group_1(1);
        assert_eq!(chip.run(), Stop::Finished, "zone {zone}");
    }
}
