//! Phases and schedules as tables of text.

mod phases;

use exchange::{Effort, Invariant, judge, phase_text, problem_of, read_phase, read_starts, schedule_with, starts_text};
use proptest::prelude::*;

#[test]
fn recorded_phases_are_read_and_their_schedules_judged_with_addresses() {
    for (name, text, _) in phases::RECORDED {
        let transfers = read_phase(text).expect(name);
        assert_eq!(read_phase(&phase_text(&transfers)), Ok(transfers.clone()), "{name}");
        let found = schedule_with(&problem_of(&transfers), Effort::DEFAULT).expect(name);
        let starts = read_starts(&starts_text(&found), transfers.len()).expect(name);
        let judged = judge(&transfers, &starts).unwrap_or_else(|violations| panic!("{name}: {}", violations[0]));
        assert_eq!((judged.horizon, judged.row_words), (found.figures.horizon, found.figures.largest_row_words), "{name}");
    }
}

#[test]
fn more_effort_is_never_worse() {
    for (name, text, _) in phases::RECORDED {
        let problem = problem_of(&read_phase(text).expect(name));
        let horizon = |times| schedule_with(&problem, Effort::new(times).expect("in range")).expect(name).figures.horizon;
        assert!(horizon(4) <= horizon(1), "{name}");
    }
}

const PHASE: &str = "index\tsource_tile\twords\twidth\tsource_addresses\tdestinations\n";

/// Tile 1 passes on what tile 0 sent, out of the same bytes: in this order, and with another start not.
#[test]
fn program_order_is_kept_where_bytes_meet() {
    let transfers = read_phase(&format!("{PHASE}0\t0\t64\t32\t0x60000\t1:0x64000\n1\t1\t64\t32\t0x64000\t2:0x64000\n")).expect("sound");
    let found = schedule_with(&problem_of(&transfers), Effort::DEFAULT).expect("sound");
    let mut starts: Vec<u32> = found.messages.iter().map(|message| message.start).collect();
    assert!(judge(&transfers, &starts).is_ok());
    starts[1] = starts[0];
    let violations = judge(&transfers, &starts).expect_err("tile 1 sends what has not arrived");
    assert!(violations.iter().any(|violation| violation.invariant == Invariant::I16), "{violations:?}");
}

#[test]
fn faults_of_a_text_have_their_place() {
    let phase = |line: &str| read_phase(&format!("# a comment\n{PHASE}{line}\n")).map(|_| ()).expect_err(line).to_string();
    #[rustfmt::skip]
    let cases = [
        ("1\t0\t9\t32\t0x60000\t1:0x64000",    "3:1: expected 0, indices count from 0, found `1`"),
        ("0\t1472\t9\t32\t0x60000\t1:0x64000", "3:3: expected a tile, 0 to 1471, found `1472`"),
        ("0\t0\t4149\t32\t0x60000\t1:0x64000", "3:5: expected 1 to 4148 words, found `4149`"),
        ("0\t0\t9\t33\t0x60000\t1:0x64000",    "3:7: expected 32 or 64, found `33`"),
        ("0\t0\t9\t64\t0x60000\t1:0x64000",    "3:5: expected an even number of words in 64-bit mode, found `9`"),
        ("0\t0\t9\t32\t0x60002\t1:0x64000",    "3:10: expected a multiple of 4 from 0x4c000 to 0xe7ffc, found `0x60002`"),
        ("0\t0\t9\t32\t0x60000\t1:0x64000,",   "3:28: expected tile:address, found nothing"),
        ("0\t0\t9\t32\t0xe7ffc\t1:0x64000",    "3:10: expected words that end inside tile memory, found `0xe7ffc`"),
        ("0\t0\t9\t32\t0x60000",               "3:1: expected 6 fields separated by tabs or blanks, found `0\t0\t9\t32\t0x60000`"),
    ];
    for (line, expected) in cases {
        assert_eq!(phase(line), expected);
    }
    assert_eq!(
        read_starts("index\tstart\n0\tx\n", 1).expect_err("no number").to_string(),
        "2:3: expected an event, 0 to 1073741824, found `x`"
    );
    let too_few = read_starts("index\tstart\n", 1).expect_err("none");
    assert_eq!(too_few.to_string(), "2:1: expected a start for each of 1 transfers, found 0");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_and_judged(lines in proptest::collection::vec("[0-3]\t[0-9]{1,4}\t[0-9]{1,4}\t(32|64)\t0x[4-9a-e][0-9a-f]{3}[048c]\t[0-9]{1,3}:0x[4-9a-e][0-9a-f]{3}[048c]", 0..4), start in 0_u32..400) {
        let text = format!("{PHASE}{}", lines.join("\n"));
        if let Ok(transfers) = read_phase(&text) {
            let _ = judge(&transfers, &vec![start; transfers.len()]);
            let _ = schedule_with(&problem_of(&transfers), Effort::DEFAULT);
        }
    }

    #[test]
    fn any_bytes_are_no_phase_and_no_schedule_or_one(text in ".{0,200}") {
        let _ = (read_phase(&text), read_phase(&format!("{PHASE}{text}")), read_starts(&text, 3));
    }
}
