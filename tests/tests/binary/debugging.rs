//! `ipubuild debug`: where it stops, what it shows, and that a debugged program does what it does without a debugger.

use std::io::Write;
use std::process::Stdio;

use tests::kernel_files::source;

use crate::good;
use crate::place::{Place, Ran};

/// Runs a script on the small program's run.
fn debugged(place: &Place, commands: &[&str]) -> Ran {
    let mut arguments = vec!["debug", "//:run"];
    commands.iter().for_each(|command| arguments.extend(["-x", command]));
    place.run(&arguments)
}

/// The number of the first line that contains a text, from 1.
fn line_of(text: &str, part: &str) -> usize {
    1 + text.lines().position(|line| line.contains(part)).unwrap_or_else(|| panic!("no line has {part}"))
}

/// The clocks of the run as its report has them.
fn reported_clocks(place: &Place) -> u64 {
    good(place.run(&["//:run"]));
    let report: serde_json::Value = serde_json::from_slice(&place.read("artifacts/run/report.json")).expect("JSON");
    report["total"]["simulated"].as_u64().expect("clocks")
}

#[test]
fn debugged_run_has_the_clocks_of_the_plain_run() {
    let place = Place::small();
    let clocks = reported_clocks(&place);
    let scripts: [&[&str]; 5] = [
        &["run"],
        &["count on", "run"],
        &["break gemm on all.supervisor", "run", "step 20", "step 3 0.0", "delete", "c"],
        &["watch 0x50000..65536 on 0", "b instruction runall", "run", "delete", "c"],
        &["trace on 0.0 op exitz", "run", "run"],
    ];
    for script in scripts {
        let ran = good(debugged(&place, script));
        let ended: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("ended: ")).collect();
        assert!(!ended.is_empty(), "{script:?} {}", ran.out);
        ended.iter().for_each(|line| assert!(line.starts_with(&format!("ended: {clocks} clocks, ")), "{script:?} {line}"));
    }
}

#[test]
fn breakpoints_by_label_line_address_and_operation_are_at_the_kernel_entry() {
    let place = Place::small();
    let entry = line_of(source("gemm.S"), "gemm:") + 1;
    let by_label = good(debugged(&place, &["break gemm on 0", "run"])).out;
    let stop = by_label.lines().find(|line| line.starts_with("0.supervisor clock ")).unwrap_or_else(|| panic!("{by_label}"));
    let words: Vec<&str> = stop.split(' ').collect();
    let (clock, address) = (words[2], words[3].trim_end_matches(':'));
    assert!(stop.contains("gemm{") && stop.contains("+0x0 gemm (gemm.S:"), "{stop}");
    let line: usize = stop.rsplit_once(':').and_then(|(_, rest)| rest.trim_end_matches(')').parse().ok()).expect("a line");
    assert!(line >= entry, "{line} {entry}");
    for place_of in [format!("gemm.S:{line}"), address.to_owned(), "gemm+0".to_owned()] {
        let ran = good(debugged(&place, &[&format!("break {place_of} on 0.supervisor"), "run"]));
        assert!(ran.out.lines().any(|line| line == stop), "{place_of}: {}", ran.out);
    }
    // The operation begins before its kernel.
    let ran = good(debugged(&place, &["break op output on 0", "run"]));
    let begins: u64 = ran.out.lines().last().and_then(|line| line.split(' ').nth(2)?.parse().ok()).expect("a clock");
    assert!(begins < clock.parse().expect("a clock"), "{} {clock}", ran.out);
}

#[test]
fn registers_memory_and_instructions_are_those_of_the_stop() {
    let place = Place::small();
    let script =
        ["break gemm on 0", "run", "regs", "disasm", "where", "context 0", "step 1 0.0", "regs", "info tiles", "info symbols gemm"];
    let ran = good(debugged(&place, &script));
    let has = |part: &str| assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    // The caller's argument block and return address are in $m0 and $m10; the zero register is zero.
    has(" $m0 0x0004");
    has("$m10 0x0004");
    has("$m15 0x00000000");
    has("=> 0x4");
    has("tile 0 (logical 0) at clock ");
    has("can run");
    let marked = ran.out.lines().filter(|line| line.starts_with("=> ")).count();
    assert!(marked >= 2, "{}", ran.out);
    // A worker's first step is its first instruction.
    has("0.0 clock ");
    has(" $FP_CTL ");
}

#[test]
fn watched_bytes_are_told_with_who_wrote_them_and_hold_what_was_written() {
    let place = Place::small();
    let ran = good(debugged(&place, &["watch output on 0", "mem output 4 as f16", "run", "mem output 4 as f16"]));
    let stop = ran.out.lines().find(|line| line.starts_with("watchpoint 1: ")).unwrap_or_else(|| panic!("{}", ran.out));
    assert!(stop.contains(" written by 0.") && stop.contains("gemm.S:"), "{stop}");
    let memory: Vec<&str> = ran.out.lines().filter_map(|line| line.strip_prefix("0x")?.split_once(": ")).map(|(_, words)| words).collect();
    assert_eq!(memory.len(), 2, "{}", ran.out);
    assert_eq!(memory[0], "- - - -");
    assert!(memory[1].split(' ').all(|element| element.parse::<f32>().is_ok()), "{memory:?}");
    // The staging area is written by the host, and headers of packets lie there, too.
    let mut script = vec!["watch \"host staging\"..8192 on 0", "run"];
    script.extend(["c"; 200]);
    let ran = debugged(&place, &script);
    assert!(ran.out.lines().any(|line| line.starts_with("watchpoint 1: ") && line.contains(" written by the host")), "{}", ran.out);
    assert_eq!((ran.code, ran.err.lines().last()), (Some(2), Some("error: the program has ended; `run` runs it again")));
}

#[test]
fn profile_has_every_instruction_of_the_kernel_and_a_table_by_kernel() {
    let place = Place::small();
    let ran = good(place.run(&["debug", "//:run", "--profile", "--trace-tiles", "tiles.json"]));
    assert!(ran.out.contains("share  code"), "{}", ran.out);
    assert!(ran.out.lines().any(|line| line.contains("  gemm{") && line.contains("gemm.S:")), "{}", ran.out);
    let all = good(debugged(&place, &["count on", "run", "profile 10000"])).out;
    assert!(all.lines().any(|line| line.contains("f16v4hihov4amp") && line.contains("(gemm.S:")), "{all}");
    let trace: serde_json::Value = serde_json::from_slice(&place.read("tiles.json")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let of = |category: &str| events.iter().filter(|event| event["cat"] == category).count();
    assert!(of("barrier") >= 1472 && of("compute") >= 1, "{} {} {}", of("barrier"), of("compute"), of("exchange"));
    let named = events.iter().filter(|event| event["name"] == "thread_name").count();
    assert_eq!(named, 1472);
    for event in events.iter().filter(|event| event["ph"] == "X") {
        assert!(event["ts"].is_u64() && event["dur"].as_u64().is_some_and(|clocks| clocks > 0) && event["tid"].is_u64(), "{event}");
    }
    // Spans of a tile's row follow each other.
    let mut ends = vec![0; 1472];
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let (tile, start) = (event["tid"].as_u64().expect("a tile") as usize, event["ts"].as_u64().expect("a clock"));
        assert!(start >= ends[tile], "{event}");
        ends[tile] = start + event["dur"].as_u64().expect("clocks");
    }
}

#[test]
fn package_file_is_debugged_with_zeros() {
    let place = Place::small();
    good(place.run(&["build", "//:program"]));
    let ran = good(place.run(&[
        "debug",
        "artifacts/program/model.ipuexe",
        "-x",
        "tbreak gemm on 0",
        "-x",
        "r",
        "-x",
        "c",
        "-x",
        "mem output 4 as f16",
    ]));
    assert!(ran.out.contains("0.supervisor clock "), "{}", ran.out);
    assert!(ran.out.trim_end().ends_with(": 0 0 0 0"), "{}", ran.out);
}

/// What is wrong with a command, and what is said.
const WRONG: &[(&str, &str)] = &[
    ("brake gemm", "there is no command `brake`; `help` lists them; nearest break, …"),
    ("break", "expected a label, FILE:LINE, an address, `op NAME` or `instruction NAME`"),
    ("break gem", "there is no label, code or buffer `gem`; nearest gemm"),
    ("break 0x4c011", "no instruction begins at 0x4c011; expected a multiple of 4"),
    ("break 0xfffffffff", "`0xfffffffff` is no number; expected one as 12 or 0x4c010"),
    ("break nowhere.S:1", "no code comes from `nowhere.S`; expected one of @ipu//kernels/copy.S, gemm.S, runtime.S"),
    ("break gemm.S:99999", "no code comes from line 99999 of `gemm.S` or from one behind it"),
    ("break op softmax", "there is no operation `softmax`; expected one of output"),
    ("break instruction frobnicate", "there is no instruction `frobnicate`"),
    ("break gemm on 1472", "there is no tile 1472; expected 0 to 1471"),
    ("break gemm on 5-3", "`5-3` names no tiles; expected the smaller number first"),
    ("break gemm on 0.7", "there is no context `7`; expected 0 to 5, or supervisor"),
    ("break gemm on 1000", "it is on none of these tiles; expected some of …"),
    ("break gemm on", "expected tiles, as 3, 0-63 or 3.supervisor"),
    ("break gemm 7", "`break`: `7` is one operand too many; `help` lists commands"),
    ("watch 0x10", "4 bytes at 0x10 are not inside tile memory"),
    ("watch 0x50000..0", "0 bytes cannot be watched; expected 1 to 65536"),
    ("delete 9", "there is no breakpoint 9; `info breaks` lists them"),
    ("info everything", "there is no `info everything`; expected breaks, tiles or symbols"),
    ("step 0", "0 steps lead nowhere; expected at least 1"),
    ("step 1 7", "`7` is no context; expected one as 3.0, 3.supervisor or 3.all"),
    ("tile -1", "`-1` is no number; expected one as 12 or 0x4c010"),
    ("context 6", "there is no context `6`; expected 0 to 5, or supervisor"),
    ("mem 0x50001 1 as f16", "an element of 2 bytes cannot lie at 0x50001"),
    ("mem 0xe7ffc 2 as u32", "8 bytes at 0xe7ffc are not inside tile memory"),
    ("mem 0x50000 1 as f64", "`f64` is no form; expected f16, f32, u32 or hex"),
    ("exchange", "no exchange phase has begun"),
    ("trace sideways", "`trace sideways`: expected `trace on …` or `trace off`"),
    ("trace on at 5", "`5` is no range; expected FIRST..END"),
    ("profile", "nothing was counted; `count on` before the run, or the option `--profile`, counts instructions"),
    ("export-trace no/such/folder", "cannot write no/such/folder: No such file or directory (os error 2)"),
    ("break \"gemm", "the quote \" is not closed"),
];

#[test]
fn wrong_command_is_told_and_the_next_is_done() {
    let place = Place::small();
    let script: String = WRONG.iter().map(|(command, _)| format!("{command}\n")).collect();
    place.write("script", format!("# all of this is wrong\n\n{script}info breaks\nrun\n").as_bytes());
    let ran = place.run(&["debug", "//:run", "--script", "script"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.out.starts_with("no breakpoints\nended: "), "{}", ran.out);
    let told: Vec<&str> = ran.err.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
    assert_eq!(told.len(), WRONG.len(), "{}", ran.err);
    for ((command, expected), found) in WRONG.iter().zip(told) {
        let matches = match expected.split_once('…') {
            Some((start, end)) => found.starts_with(start) && found.ends_with(end),
            None => found == *expected,
        };
        assert!(matches, "{command}\n  expected {expected}\n  found    {found}");
    }
}

#[test]
fn what_cannot_be_debugged_is_refused_before_anything_is_built() {
    let place = Place::small();
    let cases = [
        (vec!["debug", "//:model"], "error: `//:model` is a `model`"),
        (vec!["debug", "//:none"], "error: unknown target"),
        (vec!["debug", "none.ipuexe"], "error: cannot read none.ipuexe"),
        (vec!["debug", "//:run", "--script", "none"], "error: none: No such file"),
        (vec!["debug", "gemm.S"], "error: gemm.S: not an .ipuexe package"),
    ];
    for (arguments, message) in cases {
        let ran = place.run(&arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?} {}", ran.err);
        assert!(ran.err.starts_with(message), "{arguments:?} {}", ran.err);
    }
}

#[test]
fn failing_program_stands_where_it_failed_and_ends_with_1() {
    let place = Place::small();
    // Words with other immediates than those of the shipped parameters, with which a file is run.
    place.replace("parameters.toml", "tamp_f16v4_e4 = { p = [0, 1, 2, 3]", "tamp_f16v4_e4 = { p = [20, 21, 22, 23]");
    good(place.run(&["build", "//:program"]));
    let ran = place.run(&["debug", "artifacts/program/model.ipuexe", "-x", "run", "-x", "disasm", "-x", "step", "-x", "continue"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    let first = ran.out.lines().next().unwrap_or_default();
    assert!(first.starts_with("tile 0, worker 0, pc 0x") && first.contains(", in gemm{") && first.contains("gemm.S:"), "{first}");
    // The state of the worker, and the instruction that failed.
    assert!(ran.out.contains("\n $a0 ") && ran.out.contains("\n=> 0x"), "{}", ran.out);
    let told: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(told.len(), 2, "{}", ran.err);
    assert!(told.iter().all(|line| line.contains("cannot go on")), "{}", ran.err);
}

/// Lines drawn from the words of the language and from noise, by a linear congruence.
fn noise(lines: usize) -> String {
    const WORDS: [&str; 40] = [
        "break",
        "watch",
        "delete",
        "info",
        "step",
        "next",
        "tile",
        "context",
        "regs",
        "mem",
        "disasm",
        "where",
        "exchange",
        "trace",
        "count",
        "profile",
        "hot",
        "help",
        "on",
        "off",
        "as",
        "f16",
        "f32",
        "hex",
        "op",
        "instruction",
        "at",
        "0x4c010",
        "0x50000..16",
        "0-1471",
        "gemm",
        "output",
        "gemm.S:70",
        "4294967295",
        "0.supervisor",
        "1.3",
        "runtime+0x10",
        "\"",
        "é\u{0}",
        "-",
    ];
    let mut state = 1_u64;
    let mut next = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    let mut text = String::new();
    for _ in 0..lines {
        let words: Vec<&str> = (0..=next(6)).map(|_| WORDS[next(WORDS.len())]).collect();
        text.push_str(&words.join(" "));
        text.push('\n');
    }
    text
}

#[test]
fn any_text_is_answered_and_nothing_ends_before_the_input_does() {
    let place = Place::small();
    good(place.run(&["build", "//:program"]));
    let mut command = place.command(&["debug", "artifacts/program/model.ipuexe"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || {
        input.write_all(noise(800).as_bytes())?;
        input.write_all(b"delete\ntrace off\nstep 0\n\xff\xfe\ntbreak gemm on 0\nrun\n")?;
        input.write_all(noise(400).as_bytes())?;
        input.write_all(b"delete\ntrace off\ntile 0\ncontext supervisor\ninfo breaks")
    });
    let ran: Ran = child.wait_with_output().expect("it ends").into();
    writer.join().expect("no panic").expect("all of it is read");
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    assert!(ran.out.ends_with("no breakpoints\n"), "{}", ran.out);
}
