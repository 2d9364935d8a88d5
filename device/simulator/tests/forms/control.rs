//! Forms that steer a context: branches, calls, exits, repeats, in workers and in the supervisor.

use ipu21::parameters::Parameters;
use simulator::SingleTile;

use crate::support::{KERNEL, OUT, WORKER, launcher, segment, words_at};
use crate::table;
use crate::{Entry, Scene};

/// Values of a register that is tested.
const TESTED: [u32; 5] = [0, 1, 5, 0x8000_0000, 0xffff_ffff];

/// Runs a supervisor text, and a worker text if there is one; the values stand at OUT before. Returns words of OUT and the clocks.
fn play(supervisor: &str, worker: Option<&str>, values: &[u32], count: usize) -> (Vec<u32>, u64) {
    let mut tile = SingleTile::new(&Parameters::shipped(), 3);
    let mut segments = vec![segment(OUT, values)];
    segments.push(segment(KERNEL, &if worker.is_some() && supervisor.is_empty() { launcher() } else { table::code(supervisor, KERNEL) }));
    if let Some(worker) = worker {
        segments.push(segment(WORKER, &table::code(worker, WORKER)));
    }
    tile.load(&segments).unwrap();
    let measured = tile.run_call(KERNEL, 0).unwrap_or_else(|fault| panic!("{supervisor} {worker:?}: {fault}"));
    (words_at(&tile, OUT, count), measured.clocks)
}

/// Whether a test of a register's sign or value holds.
fn holds(mnemonic: &str, value: u32) -> bool {
    match mnemonic.trim_start_matches("br").trim_start_matches("exit") {
        "neg" => value.cast_signed() < 0,
        "pos" => value.cast_signed() >= 0,
        "z" => value == 0,
        _ => value != 0,
    }
}

/// In both contexts: the value at OUT is tested; OUT + 4 tells which way it went, OUT + 8 the register behind it.
fn branch_on_register(entry: &Entry) {
    for value in TESTED {
        let body = |start: u32, end: &str| {
            // Ten words up to the target: setzi, ld32, setzi, branch, setzi, nop or fall through.
            let target = start + 4 * 6;
            let branch = entry.text(&[4, target / 4]);
            format!(
                "setzi $m2, {OUT}\nld32 $m4, $m2, $m15, 0\nsetzi $m5, 1\n{branch}\nsetzi $m5, 2\nnop\nst32 $m5, $m2, $m15, 1\nst32 $m4, $m2, $m15, 2\n{end}\n"
            )
        };
        let left = if entry.mnemonic == "brnzdec" && value != 0 { value - 1 } else { value };
        let way = if holds(entry.mnemonic, value) { 1 } else { 2 };
        let input = [value, 0, 0];
        let (by_supervisor, _) = play(&format!(".supervisor\n{}", body(KERNEL, "br $m10")), None, &input, 3);
        assert_eq!(by_supervisor, [value, way, left], "{} {value:#x}", entry.id);
        let (by_worker, _) = play("", Some(&format!(".worker\n{}", body(WORKER, "exitz $m15"))), &input, 3);
        assert_eq!(by_worker, [value, way, left], "{} {value:#x}", entry.id);
    }
}

/// `bri`, `br` and `call` jump over a store; `call` leaves the address behind it.
fn jump(entry: &Entry) {
    let body = |start: u32, end: &str| {
        let target = start + 4 * 6;
        let (jump, link) = match entry.mnemonic {
            "bri" => (entry.text(&[target / 4]), 0),
            "br" => (entry.text(&[4]), target),
            _ => (entry.text(&[4, target / 4]), start + 4 * 4),
        };
        let text = format!(
            "setzi $m2, {OUT}\nsetzi $m4, {}\nsetzi $m5, 1\n{jump}\nsetzi $m5, 2\nnop\nst32 $m5, $m2, $m15, 1\nst32 $m4, $m2, $m15, 2\n{end}\n",
            if entry.mnemonic == "br" { target } else { 0 }
        );
        (text, [7, 1, link])
    };
    let (text, expected) = body(KERNEL, "br $m10");
    assert_eq!(play(&format!(".supervisor\n{text}"), None, &[7, 0, 0], 3).0, expected, "{}", entry.id);
    let (text, expected) = body(WORKER, "exitz $m15");
    assert_eq!(play("", Some(&format!(".worker\n{text}")), &[7, 0, 0], 3).0, expected, "{}", entry.id);
}

/// The status of all six workers' exits shows in `$SSR.LC` once `$CR.LC_SET` set it.
fn exit(entry: &Entry) {
    for value in TESTED {
        let worker = format!(".worker\nsetzi $m2, {OUT}\nld32 $m4, $m2, $m15, 0\n{}\n", entry.text(&[4]));
        let supervisor = format!(
            ".supervisor\nsetzi $m1, 2\nput 2, $m1\nsetzi $m1, {WORKER}\nrunall $m1, $m15, 0\nsync 2\nget $m3, 1\nand $m3, $m3, 1\nsetzi $m2, {OUT}\nst32 $m3, $m2, $m15, 1\nbr $m10\n"
        );
        let (words, _) = play(&supervisor, Some(&worker), &[value, 7], 2);
        assert_eq!(words[1], u32::from(holds(entry.mnemonic, value)), "{} {value:#x}", entry.id);
    }
}

/// A body of two bundles runs as often as the count says; 0 skips it, and the partner of the repeat runs once.
fn repeat(entry: &Entry) {
    let body = "{ add $m5, $m5, 1; fnop }\n{ add $m6, $m6, 2; fnop }\n";
    for count in [0, 1, 2, 7, 4095] {
        let repeat = if entry.variant == "m_zi8" { entry.text(&[4, 1]) } else { entry.text(&[count, 1]) };
        let worker = format!(
            ".worker\n.align 8\nsetzi $m2, {OUT}\nld32 $m4, $m2, $m15, 0\nsetzi $m5, 0\nsetzi $m6, 0\nsetzi $a4, 0\nnop\n{{ {repeat}; setzi $a4, 9 }}\n{body}st32 $m5, $m2, $m15, 1\nst32 $m6, $m2, $m15, 2\nst32 $a4, $m2, $m15, 3\nexitz $m15\n"
        );
        let (words, _) = play("", Some(&worker), &[count, 0, 0, 0], 4);
        assert_eq!(words, [count, count, 2 * count, 9], "{}", entry.id);
    }
}

/// Sixteen bits of a register count.
fn repeat_by_register(entry: &Entry) {
    repeat(entry);
    let worker = format!(
        ".worker\n.align 8\nsetzi $m2, {OUT}\nld32 $m4, $m2, $m15, 0\nsetzi $m5, 0\n{}\n{{ add $m5, $m5, 1; fnop }}\nst32 $m5, $m2, $m15, 1\nexitz $m15\n",
        entry.text(&[4, 0])
    );
    assert_eq!(play("", Some(&worker), &[0x3_0005, 0], 2).0[1], 5);
}

pub(crate) fn scene(entry: &Entry) -> Option<Scene> {
    Some(match entry.mnemonic {
        "br" | "bri" | "call" => jump,
        "rpt" if entry.variant == "m_zi8" => repeat_by_register,
        "rpt" => repeat,
        name if name.starts_with("exit") => exit,
        name if name.starts_with("br") && name != "bitrev8" => branch_on_register,
        _ => return None,
    })
}
