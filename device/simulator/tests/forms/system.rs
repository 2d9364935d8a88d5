//! Control registers, launches, traps, local and global synchronisation, loads of coefficients.

use ipu21::parameters::Parameters;
use ipu21::tile::PhysTile;
use simulator::{Cause, SingleTile, Stop};

use crate::support::{KERNEL, OUT, WORKER, chip, load_all, program, segment, words_at};
use crate::table::{self, code};
use crate::{Entry, Scene};

/// A tile with supervisor code and, perhaps, worker code.
fn tile(supervisor: &str, worker: &str) -> SingleTile {
    let mut tile = SingleTile::new(&Parameters::shipped(), 3);
    let supervisor = segment(KERNEL, &code(&format!(".supervisor\n{supervisor}"), KERNEL));
    tile.load(&[supervisor, segment(WORKER, &code(&format!(".worker\n{worker}\nexitz $m15"), WORKER))]).unwrap();
    tile
}

/// Words that the codes leave at OUT.
fn left(supervisor: &str, worker: &str, count: usize) -> Vec<u32> {
    let mut tile = tile(supervisor, worker);
    tile.run_call(KERNEL, 0).unwrap_or_else(|fault| panic!("{supervisor} {worker}: {fault}"));
    words_at(&tile, OUT, count)
}

const LAUNCH: &str = "setzi $m1, 0x4c200\nrunall $m1, $m15, 0\nsync 2\nbr $m10";

/// A register comes back as it was put, in the supervisor; a worker has registers of its own.
fn get_and_put(entry: &Entry) {
    // OUTGOING_BASE, INCOMING_BASE, WORKER3_BASE.
    for register in [0xa7, 0xa4, 0x24] {
        let (get, put) = (table::named("get.m_zi8"), table::named("put.zi8_m"));
        let text = format!(
            "setzi $m4, 0x54320\n{}\n{}\nsetzi $m2, {OUT}\nst32 $m5, $m2, $m15, 0\nbr $m10",
            put.text(&[register, 4]),
            get.text(&[5, register])
        );
        assert_eq!(left(&text, "nop", 1), [0x54320]);
    }
    if entry.mnemonic == "put" {
        let worker = format!("setzi $m4, 1\n{}", entry.text(&[0xa7, 4]));
        let cause = tile(LAUNCH, &worker).run_call(KERNEL, 0).unwrap_err().cause;
        assert_eq!(cause, Cause::NotSimulated { form: "control register of a worker", value: 0xa7 });
        return;
    }
    // Every worker stores what it reads at a place of its own: its number, its vertex base, its scratch area.
    let worker = format!(
        "{}\n{}\n{}\nsetzi $m2, {OUT}\nmul $m3, $m4, 12\nadd $m2, $m2, $m3\nst32 $m4, $m2, $m15, 0\nst32 $m5, $m2, $m15, 1\nst32 $m6, $m2, $m15, 2",
        entry.text(&[4, 1]),
        entry.text(&[5, 2]),
        entry.text(&[6, 3])
    );
    let launch = LAUNCH.replace("$m15, 0\n", "$m15, 5\n");
    let expected: Vec<u32> = (0..6).flat_map(|n| [n, 20 * n, 0x7fa00 + 0x100 * n]).collect();
    assert_eq!(left(&launch, &worker, 18), expected);
}

/// Fields of the upper registers keep what fits into them.
fn upper_get_and_put(_: &Entry) {
    let (get, put) = (table::named("uget.a_zi8"), table::named("uput.zi8_a"));
    // FP_CTL, FP_NFMT, FP_SCL, TAS, PRNG words; FP_CLR and PRNG_SEED read zero, FP_STS cannot be written.
    let fields = [
        (2, 0x001f_0007),
        (9, 1),
        (10, 0x3f),
        (8, u32::MAX),
        (3, u32::MAX),
        (4, u32::MAX),
        (5, u32::MAX),
        (6, u32::MAX),
        (1, 0),
        (7, 0),
        (0, 0),
    ];
    for (register, mask) in fields {
        for value in [0xfffff, 0x50005, 0x5a5a5] {
            let worker = format!(
                "setzi $a4, {value}\n{}\n{}\nsetzi $m2, {OUT}\nst32 $a5, $m2, $m15, 0",
                put.text(&[register, 4]),
                get.text(&[5, register])
            );
            // A flag enabled in $FP_CTL traps only when it is raised.
            assert_eq!(left(LAUNCH, &worker, 1), [value & mask], "register {register}");
        }
    }
}

/// A worker stops at a breakpoint; supervisors stop together and go on behind it.
fn trap(entry: &Entry) {
    for number in 0..16 {
        let cause = tile(LAUNCH, &entry.text(&[number])).run_call(KERNEL, 0).unwrap_err().cause;
        assert_eq!(cause, Cause::Breakpoint { number });
    }
    let code = program(code(&format!(".supervisor\nsetzi $m2, {OUT}\nsetzi $m3, 1\n{}\nst32 $m3, $m2, $m15, 0", entry.text(&[5])), 0));
    let mut chip = chip(1);
    load_all(&mut chip, &[], &code);
    chip.start();
    assert_eq!(chip.run(), Stop::Trap { number: 5 });
    let first = PhysTile::all().next().unwrap();
    assert!(chip.read_memory(first, OUT, 4).is_err());
    chip.resume_traps();
    assert_eq!(chip.run(), Stop::Finished);
    assert_eq!(chip.read_memory(first, OUT, 4).unwrap(), [1, 0, 0, 0]);
}

/// `run` starts one free worker after another with a base relative to memory; `runall` all six with absolute bases.
fn launch(entry: &Entry) {
    let store = "get $m4, 1\nshl $m4, $m4, 2\nsetzi $m2, 0x64000\nst32 $m13, $m2, $m4, 0";
    let by_run = entry.mnemonic == "run";
    let starts: String =
        if by_run { (0..6).map(|n| entry.text(&[1, 3, 0x1234 + n]) + "\n").collect() } else { entry.text(&[1, 3, 0x1234]) + "\n" };
    let text = format!("setzi $m1, {WORKER}\nsetzi $m3, 0x100\n{starts}sync 2\nbr $m10");
    // A worker that ends frees its place: here each lives long enough for all to start.
    let worker = format!("{}{store}", "nop\n".repeat(60));
    let base = |n: u32| if by_run { 0x4c000 + 0x100 + 4 * (0x1234 + n) } else { 0x100 + n * 4 * 0x1234 };
    assert_eq!(left(&text, &worker, 6), (0..6).map(base).collect::<Vec<u32>>());
    let twice = format!("setzi $m1, {WORKER}\nrunall $m1, $m15, 0\n{}\nsync 2\nbr $m10", entry.text(&[1, 15, 0]));
    let uneven = format!("get $m5, 1\nbrz $m5, .Lshort\n{}.Lshort:\n{store}", "nop\n".repeat(60));
    let outcome = tile(&twice, &uneven).run_call(KERNEL, 0).map_err(|fault| fault.cause);
    // With six workers running the supervisor waits for a slot, until one ends: then `run` has a free worker, `runall` has not six.
    assert_eq!(outcome.err(), if by_run { None } else { Some(Cause::WorkersBusy) });
}

/// What zones wait for, and which there are.
fn sync(entry: &Entry) {
    let store = "setzi $m2, 0x64000\nsetzi $m3, 7\nst32 $m3, $m2, $m15, 0";
    let joined = format!(
        "setzi $m1, {WORKER}\nrunall $m1, $m15, 0\n{}\nsetzi $m2, {OUT}\nld32 $m3, $m2, $m15, 0\nst32 $m3, $m2, $m15, 1\nbr $m10",
        entry.text(&[2])
    );
    assert_eq!(left(&joined, &format!("{}{store}", "nop\n".repeat(60)), 2), [7, 7]);
    for zone in 0..16 {
        let mut chip = chip(1);
        load_all(&mut chip, &[], &program(code(&format!(".supervisor\n{}", entry.text(&[zone])), 0)));
        chip.start();
        let stop = chip.run();
        match zone {
            // Nothing is outstanding: no words are expected, no barrier is announced, no worker runs, all tiles are there.
            // The chip is alone in groups 1 and 2.
            0..=4 | 6 | 12 | 14 => assert_eq!(stop, Stop::Finished, "zone {zone}"),
            // A barrier with the host needs the host port selected.
            5 | 7 | 13 | 15 => {
                assert!(matches!(stop, Stop::Fault(fault) if matches!(fault.cause, Cause::ExternalSyncWithInternalMux { .. })))
            }
            _ => assert!(matches!(stop, Stop::Fault(fault) if fault.cause == Cause::InvalidSyncZone { zone })),
        }
    }
}

/// One tile announces barriers that the others enter; `sync 1` waits for the last of them.
fn announce(entry: &Entry) {
    for more in [0, 1, 4] {
        let barriers = "sync 3\n".repeat(more as usize + 1);
        let announcing = format!(".supervisor\n{}\nsync 1\nsetzi $m2, {OUT}\nst32 $m2, $m2, $m15, 0", entry.text(&[more]));
        let tile = PhysTile::new(5).unwrap();
        let mut chip = chip(1);
        load_all(&mut chip, &[(tile, vec![program(code(&announcing, 0))])], &program(code(&format!(".supervisor\n{barriers}"), 0)));
        chip.start();
        assert_eq!(chip.run(), Stop::Finished);
        assert!(chip.read_memory(tile, OUT, 4).is_ok());
        let latency = simulator::Latency::of(&Parameters::shipped()).internal;
        assert!(chip.clock(tile) >= u64::from(more + 1) * latency, "{more}");
    }
}

/// The pointer moves by what was loaded, and the coefficients multiply as they should.
fn coefficients(entry: &Entry) {
    let wide = entry.mnemonic == "ld128putcs";
    let text =
        format!("setzi $m1, 0x80000\nput 80, $m1\n{}\nget $m3, 80\nsetzi $m2, {OUT}\nst32 $m3, $m2, $m15, 0\nbr $m10", entry.text(&[6]));
    let mut tile = tile(&text, "nop");
    tile.write(0x80000, &[0; 16]).unwrap();
    tile.run_call(KERNEL, 0).unwrap();
    assert_eq!(words_at(&tile, OUT, 1), [if wide { 0x80010 } else { 0x80008 }]);
    crate::matrix::product_loaded(table::named("f16v4hihov4amp.ppp_ef6"), wide);
}

pub(crate) fn scene(entry: &Entry) -> Option<Scene> {
    Some(match entry.mnemonic {
        "get" | "put" => get_and_put,
        "uget" | "uput" => upper_get_and_put,
        "trap" => trap,
        "run" | "runall" => launch,
        "sync" => sync,
        "sans" => announce,
        "ld64putcs" | "ld128putcs" => coefficients,
        _ => return None,
    })
}
