//! Every rule of a phase is broken at least once, and the validator says which.

mod cases;

use cases::{Case, spot};
use exchange::{
    BufferId, Control, FabricState, Invariant, Place, PlacedRow, Problem, Setting, TileEvents, TileProgram, TimedMessage, Transfer,
    Violation, Width, lower, schedule, timed_rows, validate, validate_messages, validate_programs, validate_rows,
};
use ipu21::exchange_word::{ExchangeWord, NEUTRAL, RETURN};
use ipu21::tile::TileId;

const ROW: u32 = 0x5_c000;

fn broken(result: Result<(), Vec<Violation>>) -> Vec<Invariant> {
    let mut rules: Vec<Invariant> = result.err().unwrap_or_default().iter().map(|violation| violation.invariant).collect();
    rules.dedup();
    rules
}

fn placed(messages: &[TimedMessage]) -> Vec<PlacedRow> {
    let rows = timed_rows(messages).expect("rows of legal messages");
    rows.into_iter().map(|row| PlacedRow { tile: row.tile, address: ROW, words: row.words }).collect()
}

/// Changes the events of a case as its shifts say: a late select takes pointer and neutral along.
fn shifted(case: &Case) -> Vec<TileEvents> {
    let messages = case.messages();
    let mut tiles = lower(&messages);
    for (message, given) in messages.iter().zip(&case.message) {
        for events in tiles.iter_mut().filter(|events| message.destinations.iter().any(|spot| spot.tile == events.tile)) {
            for control in &mut events.controls {
                control.event += given.select_shift + if control.setting == Setting::Pointer { given.pointer_shift } else { 0 };
            }
            events.controls.retain(|control| !(given.drop_neutral && control.value == NEUTRAL));
        }
    }
    tiles
}

#[test]
fn every_illegal_case_is_rejected_for_its_listed_rules() {
    for case in cases::illegal() {
        let mut rules = broken(validate_messages(&case.messages(), &shifted(&case)));
        let bases = case.row_bases();
        if !bases.is_empty() {
            let mut rows = placed(&case.messages());
            for row in &mut rows {
                row.address = bases.iter().find(|at| at.tile == row.tile.get()).map_or(ROW, |at| at.addr);
            }
            rules.extend(broken(validate_rows(&case.messages(), &rows)));
        }
        for listed in &case.violates {
            assert!(rules.iter().any(|rule| rule.to_string() == *listed), "{}: listed {listed}, found {rules:?}", case.name);
        }
    }
}

#[test]
fn every_legal_case_passes_as_messages_and_as_rows() {
    for case in cases::legal() {
        let messages = case.messages();
        assert_eq!(validate_messages(&messages, &lower(&messages)), Ok(()), "{}", case.name);
        assert_eq!(validate_rows(&messages, &placed(&messages)), Ok(()), "{}", case.name);
    }
}

fn case(name: &str) -> Vec<TimedMessage> {
    cases::legal().iter().find(|case| case.name == name).expect("a recorded case").messages()
}

fn with_control(name: &str, tile: u16, control: Control) -> Vec<Invariant> {
    let messages = case(name);
    let mut events = lower(&messages);
    let at = events.iter_mut().find(|events| events.tile.get() == tile).expect("a tile of the case");
    at.controls.push(control);
    at.controls.sort_unstable();
    broken(validate_messages(&messages, &events))
}

#[test]
fn i12_neutral_kept_at_a_cutover_is_refused() {
    let rules = with_control("cutover-contiguous", 0, Control { event: 101, setting: Setting::Source, value: NEUTRAL });
    assert_eq!(rules, [Invariant::I8, Invariant::I12]);
}

#[test]
fn i12_format_on_the_event_of_a_pointer_is_refused() {
    let rules = with_control("unicast-1", 1, Control { event: 53, setting: Setting::Format, value: 0 });
    assert_eq!(rules, [Invariant::I6, Invariant::I12]);
}

/// The rules broken when the row of one tile has other words.
fn with_words(name: &str, tile: u16, change: impl Fn(&mut Vec<u32>)) -> Vec<Invariant> {
    let messages = case(name);
    let mut rows = placed(&messages);
    change(&mut rows.iter_mut().find(|row| row.tile.get() == tile).expect("a tile of the case").words);
    broken(validate_rows(&messages, &rows))
}

#[test]
fn i17_two_word_control_on_an_odd_word_is_refused() {
    // Joining the delay in front of it to nothing moves the two-word control by one word.
    let rules = with_words("unicast-52", 0, |words| {
        words.remove(1);
    });
    assert!(rules.contains(&Invariant::I17), "{rules:?}");
}

#[test]
fn i17_word_that_is_no_exchange_instruction_is_refused() {
    let rules = with_words("unicast-1", 0, |words| words[0] = 0x19e0_0000);
    assert!(rules.contains(&Invariant::I17), "{rules:?}");
}

#[test]
fn i17_row_without_return_is_refused() {
    let rules = with_words("unicast-1", 0, |words| {
        words.pop();
    });
    assert!(rules.contains(&Invariant::I17), "{rules:?}");
}

#[test]
fn i17_control_pair_right_behind_a_control_has_no_even_word() {
    // Neutral and pointer meet on event 121 of tile 0; another select on event 120 leaves no delay to split.
    let mut events = lower(&case("unicast-52")).remove(0);
    events.controls.insert(1, Control { event: 119, setting: Setting::Source, value: 5 });
    events.controls.insert(2, Control { event: 120, setting: Setting::Source, value: 32 });
    let fault = exchange::row(&events).expect_err("three words, then a pair");
    assert_eq!(fault.to_string(), "tile 0, event 120: a two-word control falls on an odd word");
}

fn shorten_tail(words: &mut [u32]) {
    let tail = words.len() - 2;
    let Some(ExchangeWord::Delay { events }) = ExchangeWord::decode(&words[tail..]) else { panic!("a tail delay") };
    words[tail] = ExchangeWord::Delay { events: events - 1 }.encode().expect("a shorter delay").word();
}

#[test]
fn i18_receiver_that_ends_an_event_early_is_refused() {
    assert_eq!(with_words("unicast-1", 1, |words| shorten_tail(words)), [Invariant::I18]);
}

#[test]
fn i18_receiver_without_its_tail_is_refused() {
    let rules = with_words("cutover-contiguous", 0, |words| {
        words.remove(words.len() - 2);
    });
    assert_eq!(rules, [Invariant::I18]);
}

#[test]
fn i18_missing_row_of_a_participant_is_refused() {
    let messages = case("unicast-1");
    let mut rows = placed(&messages);
    rows.pop();
    assert!(broken(validate_rows(&messages, &rows)).contains(&Invariant::I18));
}

#[test]
fn a_changed_word_of_a_send_is_seen() {
    assert_eq!(with_words("unicast-1", 0, |words| words[1] += 8), [Invariant::Coverage]);
}

const SYNC_3: u32 = 0x4180_0003;
const SYNC_1: u32 = 0x4180_0001;
const SANS_0: u32 = 0x40c0_0000;
const CALL: u32 = 0x18a0_0000 | (0x5_c000 / 4);
const NOP: u32 = 0x19e0_0000;
const RUNALL: u32 = 0x1500_f000;
const PUT_FORMAT: u32 = 0x4300_80a3;

fn program(tile: u16, participates: bool, entry: &[u32]) -> TileProgram {
    let tile = TileId::new(tile).expect("a logical tile number");
    TileProgram { tile, participates, entry_address: 0x4_c100, entry: entry.to_vec(), state: FabricState::EXPECTED, active_workers: 0 }
}

/// Two participants and an idle tile.
fn programs() -> Vec<TileProgram> {
    vec![program(0, true, &[SYNC_3, CALL]), program(1, true, &[SYNC_3, CALL + 16]), program(2, false, &[SANS_0, SYNC_1, CALL])]
}

fn with_program(index: usize, change: impl Fn(&mut TileProgram)) -> Vec<Invariant> {
    let mut programs = programs();
    change(&mut programs[index]);
    broken(validate_programs(&programs))
}

#[test]
fn rows_at_different_addresses_are_the_same_path() {
    assert_eq!(validate_programs(&programs()), Ok(()));
}

#[test]
fn i19_worker_running_over_the_barrier_is_refused() {
    assert_eq!(with_program(0, |program| program.active_workers = 1), [Invariant::I19]);
}

#[test]
fn i19_worker_started_behind_the_barrier_is_refused() {
    assert!(with_program(1, |program| program.entry.insert(1, RUNALL)).contains(&Invariant::I19));
}

#[test]
fn i20_second_arrival_is_refused() {
    assert!(with_program(0, |program| program.entry.insert(0, SYNC_3)).contains(&Invariant::I20));
}

#[test]
fn i20_two_credits_for_one_barrier_are_refused() {
    assert_eq!(with_program(2, |program| program.entry[0] = SANS_0 + 1), [Invariant::I20]);
}

#[test]
fn i20_participant_that_does_not_wait_is_refused() {
    assert_eq!(with_program(1, |program| program.entry = vec![SANS_0, SYNC_1, CALL]), [Invariant::I20, Invariant::I22]);
}

#[test]
fn i21_mux_left_on_a_host_port_is_refused() {
    assert_eq!(with_program(0, |program| program.state.mux = 0x600), [Invariant::I21]);
}

#[test]
fn i21_countdown_left_at_a_host_phase_is_refused() {
    let countdown = FabricState::EXPECTED.after_put(ipu21::csr::INCOMING_DCOUNT, 64);
    assert_eq!(with_program(1, |program| program.state = countdown), [Invariant::I21]);
}

#[test]
fn i21_format_set_behind_the_barrier_is_refused() {
    assert!(with_program(0, |program| program.entry.insert(1, PUT_FORMAT)).contains(&Invariant::I21));
}

#[test]
fn i22_one_more_nop_is_refused() {
    assert_eq!(with_program(1, |program| program.entry.insert(1, NOP)), [Invariant::I22]);
}

#[test]
fn i22_other_alignment_is_refused() {
    assert_eq!(with_program(1, |program| program.entry_address += 4), [Invariant::I22]);
}

fn place(tile: u16, buffer: u32, offset: u32) -> Place {
    Place { tile: spot(tile, 0).tile, buffer: BufferId(buffer), offset }
}

fn small_problem() -> Problem {
    let transfer = |from: Place, words, to: Place| Transfer { source: from, words, destinations: vec![to] };
    Problem {
        transfers: vec![
            transfer(place(3, 0, 0), 300, place(9, 1, 0)),
            transfer(place(9, 0, 0), 200, place(3, 1, 64)),
            transfer(place(9, 2, 0), 5000, place(4, 1, 0)),
        ],
        serial: vec![],
    }
}

fn with_schedule(change: impl Fn(&mut Problem, &mut exchange::Schedule)) -> Vec<Invariant> {
    let mut problem = small_problem();
    let mut schedule = schedule(&problem).expect("a sound problem");
    change(&mut problem, &mut schedule);
    broken(validate(&problem, &schedule))
}

#[test]
fn a_schedule_is_judged_against_its_problem() {
    assert_eq!(with_schedule(|_, _| ()), []);
    assert_eq!(with_schedule(|_, schedule| schedule.apart.clear()), [Invariant::I14]);
    assert_eq!(with_schedule(|problem, _| problem.serial.push((BufferId(1), BufferId(2), spot(9, 0).tile))), [Invariant::I14]);
    assert_eq!(with_schedule(|_, schedule| schedule.tiles[0].row_words += 1), [Invariant::Report]);
    assert_eq!(with_schedule(|_, schedule| schedule.tiles[0].horizon -= 1), [Invariant::Report]);
    assert!(with_schedule(|_, schedule| schedule.messages[0].start = 0).contains(&Invariant::I5));
    assert!(with_schedule(|_, schedule| schedule.messages[2].start += 1).contains(&Invariant::I9));
    assert!(with_schedule(|_, schedule| drop(schedule.messages.pop())).contains(&Invariant::Coverage));
    assert!(with_schedule(|_, schedule| schedule.messages[0].destinations[0].offset = 4).contains(&Invariant::Coverage));
    assert!(with_schedule(|_, schedule| schedule.messages[1].words = 199).contains(&Invariant::Coverage));
}

#[test]
fn a_message_says_its_rule_and_place() {
    let violation = Violation { invariant: Invariant::I18, tile: Some(spot(7, 0).tile), message: None, at: Some(58) };
    assert_eq!(violation.to_string(), "I18, tile 7, at 58: expected that a row lasts to its tile's horizon");
    assert_eq!(Width::Pair.bytes(), 8);
    assert_eq!(RETURN, 0x43a0_0000);
}
