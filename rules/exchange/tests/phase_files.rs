//! Phases and schedules as tables of text.

mod phases;

use exchange::{
    Effort, Invariant, Options, Piece, PlacedTransfer, Width, judge, phase_text, pieces_of, problem_of, read_phase, read_starts, schedule,
    schedule_with, starts_text,
};
use proptest::prelude::*;

#[test]
fn recorded_phases_are_read_and_their_schedules_judged_with_addresses() {
    for (name, text, _) in phases::RECORDED {
        let transfers = read_phase(text).expect(name);
        assert_eq!(read_phase(&phase_text(&transfers)), Ok(transfers.clone()), "{name}");
        let found = schedule(&problem_of(&transfers)).expect(name);
        let starts = read_starts(&starts_text(&found, &transfers), &transfers).expect(name);
        let judged = judge(&transfers, &starts).unwrap_or_else(|violations| panic!("{name}: {}", violations[0]));
        assert_eq!((judged.horizon, judged.row_words), (found.figures.horizon, found.figures.largest_row_words), "{name}");
    }
}

#[test]
fn more_effort_is_never_worse() {
    for (name, text, _) in phases::RECORDED {
        let problem = problem_of(&read_phase(text).expect(name));
        let options = |times| Options { effort: Effort::new(times).expect("in range"), ..Options::default() };
        let horizon = |times| schedule_with(&problem, options(times)).expect(name).figures.horizon;
        assert!(horizon(4) <= horizon(1), "{name}");
    }
}

const PHASE: &str = "index\tsource_tile\twords\twidth\tsource_addresses\tdestinations\n";

/// Tile 1 passes on what tile 0 sent, out of the same bytes: in this order, and with another start not.
#[test]
fn program_order_is_kept_where_bytes_meet() {
    let transfers = read_phase(&format!("{PHASE}0\t0\t64\t32\t0x60000\t1:0x64000\n1\t1\t64\t32\t0x64000\t2:0x64000\n")).expect("sound");
    let found = schedule(&problem_of(&transfers)).expect("sound");
    let mut pieces = pieces_of(&found);
    assert!(judge(&transfers, &pieces).is_ok());
    pieces[1].start = pieces[0].start;
    let violations = judge(&transfers, &pieces).expect_err("tile 1 sends what has not arrived");
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
        read_starts("index\tstart\n0\tx\n", &some(1)).expect_err("no number").to_string(),
        "2:3: expected an event, 0 to 1073741824, found `x`"
    );
    let too_few = read_starts("index\tstart\n", &some(1)).expect_err("none");
    assert_eq!(too_few.to_string(), "2:1: expected a start for each of 1 transfers, found none for 0");
    let pieces = |line: &str| {
        read_starts(&format!("index\tstart\tfirst_word\twords\twidth\n{line}\n"), &some(2)).map(|_| ()).expect_err(line).to_string()
    };
    assert_eq!(pieces("0\t7\t9\t1\t32"), "2:5: expected a word of the transfer, found `9`");
    assert_eq!(pieces("0\t7\t4\t6\t32"), "2:7: expected words up to the end of the transfer, found `6`");
    assert_eq!(pieces("0\t7\t4\t5\t64"), "2:7: expected an even number of words in 64-bit mode, found `5`");
    assert_eq!(pieces("1\t7\t0\t9\t32"), "3:1: expected a start for each of 2 transfers, found none for 0");
    assert_eq!(pieces("1\t7\t0\t9\t32\n0\t7\t0\t9\t32"), "3:1: expected a transfer of the phase, in order, found `0`");
}

/// So many transfers of nine words.
fn some(count: u16) -> Vec<PlacedTransfer> {
    let tile = |number| ipu21::tile::TileId::new(number).expect("a tile");
    let transfer = |number| PlacedTransfer {
        words: 9,
        is_paired: false,
        source: (tile(number), 0x6_0000),
        destinations: vec![(tile(number + 64), 0x6_4000)],
    };
    (0..count).map(transfer).collect()
}

/// A message of 62 words to tile 10, in row 5, is cut, since it would be as long as the way to the pointer there.
#[test]
fn transfers_in_several_pieces_are_written_with_them() {
    let transfers = read_phase(&format!("{PHASE}0\t0\t64\t32\t0x60000\t1:0x64000\n1\t100\t62\t32\t0x64000\t10:0x60000\n")).expect("sound");
    let found = schedule(&problem_of(&transfers)).expect("sound");
    assert_eq!(found.messages.len(), 3);
    let text = starts_text(&found, &transfers);
    let pieces = read_starts(&text, &transfers).expect("as written");
    assert_eq!(pieces, pieces_of(&found));
    assert!(judge(&transfers, &pieces).is_ok(), "{text}");
    let without_the_last = judge(&transfers, &pieces[..2]).expect_err("words are missing");
    assert!(without_the_last.iter().any(|violation| violation.invariant == Invariant::Coverage), "{without_the_last:?}");
}

/// Broadcasts of 2,000 words from four tiles to two whole pairs, one of them to the partner of its source, too.
#[test]
fn pairs_get_items_of_64_bits_and_the_partner_a_copy_of_its_own() {
    let to = |offset: u32| [2, 3, 8, 9].map(|tile| format!("{tile}:{:#x}", 0x8_0000 + offset)).join(",");
    let others: String = (1..4).map(|line| format!("{line}\t{}\t2000\t32\t0x60000\t{}\n", 40 + line, to(8000 * line))).collect();
    let transfers = read_phase(&format!("{PHASE}0\t0\t2000\t32\t0x60000\t1:0x64000,{}\n{others}", to(0))).expect("sound");
    let problem = problem_of(&transfers);
    let words = schedule(&problem).expect("sound");
    let found = schedule_with(&problem, Options { pairs: true, ..Options::default() }).expect("sound");
    exchange::validate(&problem, &found).expect("a sound schedule");
    let widths: Vec<_> = found.messages.iter().map(|message| (message.width, message.destinations.len())).collect();
    assert_eq!(widths, [(Width::Pair, 4), (Width::Word, 1), (Width::Pair, 4), (Width::Pair, 4), (Width::Pair, 4)]);
    assert_eq!((found.figures.pairs, words.figures.pairs), (4, 0));
    assert!(3 * found.figures.horizon < 2 * words.figures.horizon, "{:?} {:?}", found.figures, words.figures);
    let pieces = read_starts(&starts_text(&found, &transfers), &transfers).expect("as written");
    let judged = judge(&transfers, &pieces).unwrap_or_else(|violations| panic!("{}", violations[0]));
    assert_eq!((judged.horizon, judged.row_words), (found.figures.horizon, found.figures.largest_row_words));
    // The partner must rest while pairs are sent: a copy for it may not be under way.
    let early = |piece: &Piece| if piece.width == Width::Word { Piece { start: pieces[0].start + 990, ..*piece } } else { *piece };
    assert!(judge(&transfers, &pieces.iter().map(early).collect::<Vec<_>>()).is_err());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_and_judged(lines in proptest::collection::vec("[0-3]\t[0-9]{1,4}\t[0-9]{1,4}\t(32|64)\t0x[4-9a-e][0-9a-f]{3}[048c]\t[0-9]{1,3}:0x[4-9a-e][0-9a-f]{3}[048c]", 0..4), start in 0_u32..400) {
        let text = format!("{PHASE}{}", lines.join("\n"));
        if let Ok(transfers) = read_phase(&text) {
            let piece = |(index, transfer): (usize, &PlacedTransfer)| Piece {
                transfer: index as u32, start, first_word: 0, words: transfer.words, width: if transfer.is_paired { Width::Pair } else { Width::Word },
            };
            let _ = judge(&transfers, &transfers.iter().enumerate().map(piece).collect::<Vec<_>>());
            let _ = schedule_with(&problem_of(&transfers), Options { pairs: true, ..Options::default() });
            let _ = schedule(&problem_of(&transfers));
        }
    }

    #[test]
    fn any_bytes_are_no_phase_and_no_schedule_or_one(text in ".{0,200}") {
        let _ = (read_phase(&text), read_phase(&format!("{PHASE}{text}")), read_starts(&text, &some(3)));
    }
}
