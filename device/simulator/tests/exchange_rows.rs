//! Rows of exchange phases word by word: what arrives, when rows end, and what goes wrong when a tile is late.

mod support;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use ipu21::exchange_word::{ExchangeWord, NEUTRAL, RETURN};
use ipu21::route::route;
use ipu21::tile::PhysTile;
use simulator::debug::{Debugger, Executed, Halt, Observer, Trigger, Why, Writer};
use simulator::{Cause, Chip, ReceiveError, Segment, Stop, Way};
use support::{ENTRY, ROW, bystander, call, chip, load_all, program, segment, word};

struct Message {
    source: u16,
    words: u32,
    address: u32,
    destinations: Vec<(u16, u32)>,
}

struct Case {
    name: String,
    messages: Vec<Message>,
    rows: Vec<(u16, u64, Vec<u32>)>,
    bases: BTreeMap<u16, u32>,
}

fn number(table: &toml::Table, key: &str) -> u32 {
    table[key].as_integer().unwrap() as u32
}

fn tables<'a>(table: &'a toml::Table, key: &str) -> Vec<&'a toml::Table> {
    table.get(key).map_or(Vec::new(), |v| v.as_array().unwrap().iter().map(|t| t.as_table().unwrap()).collect())
}

fn cases() -> Vec<Case> {
    let text = include_str!("data/rows.toml");
    let file: toml::Table = text.parse().unwrap();
    tables(&file, "case").into_iter().map(case).collect()
}

fn case(table: &toml::Table) -> Case {
    let message = |m: &toml::Table| Message {
        source: number(m, "src_physical") as u16,
        words: number(m, "items") * number(m, "width") / 32,
        address: number(m, "src_addr"),
        destinations: tables(m, "dst").iter().map(|d| (number(d, "physical") as u16, number(d, "addr"))).collect(),
    };
    let row = |r: &toml::Table| {
        let words = r["words"].as_array().unwrap().iter().map(|w| w.as_integer().unwrap() as u32).collect();
        (number(r, "physical") as u16, u64::from(number(r, "horizon")), words)
    };
    let logical_base = |b: &toml::Table| (number(b, "tile") as u16, number(b, "addr"));
    let bases: BTreeMap<u16, u32> = tables(table, "row_base").into_iter().map(logical_base).collect();
    let physical = |tile: u16| ipu21::tile::TileId::new(tile).unwrap().physical().get();
    Case {
        name: table["name"].as_str().unwrap().to_owned(),
        messages: tables(table, "message").into_iter().map(message).collect(),
        rows: tables(table, "row").into_iter().map(row).collect(),
        bases: bases.into_iter().map(|(tile, base)| (physical(tile), base)).collect(),
    }
}

/// The word at an address of a source before the phase.
fn content(tile: u16, address: u32) -> u32 {
    u32::from(tile) << 20 ^ address
}

/// Segments of a tile with this row; `nops` are put between barrier and call.
fn participant(case: &Case, tile: u16, row: &[u32], nops: usize) -> Vec<Segment> {
    // Away from the element of what is sent.
    let elsewhere = if case.messages.iter().any(|m| m.address / 0x4000 == ROW / 0x4000) { ROW + 0x8000 } else { ROW };
    let base = case.bases.get(&tile).copied().unwrap_or(elsewhere);
    let mut code = vec![word("sync.zi4", &[3])];
    code.extend(vec![ipu21::isa::NOP; nops]);
    code.push(call(base));
    let mut segments = vec![program(code), segment(base, row)];
    let received = |address: u32| {
        case.messages.iter().any(|m| m.destinations.iter().any(|&(d, at)| d == tile && address >= at && address < at + 4 * m.words))
    };
    for message in case.messages.iter().filter(|m| m.source == tile && !received(m.address)) {
        let words: Vec<u32> = (0..message.words).map(|i| content(tile, message.address + 4 * i)).collect();
        segments.push(segment(message.address, &words));
    }
    segments
}

fn loaded(case: &Case, threads: usize, late: Option<u16>) -> Chip {
    let mut chip = chip(threads);
    let busy: Vec<(PhysTile, Vec<Segment>)> = case
        .rows
        .iter()
        .map(|(tile, _, row)| {
            let nops = usize::from(late == Some(*tile));
            (PhysTile::new(*tile).unwrap(), participant(case, *tile, row, nops))
        })
        .collect();
    load_all(&mut chip, &busy, &bystander());
    for (tile, ..) in &case.rows {
        chip.watch(PhysTile::new(*tile).unwrap(), ENTRY + 4);
        chip.watch(PhysTile::new(*tile).unwrap(), ENTRY + 8);
    }
    chip.start();
    chip
}

#[test]
fn every_word_of_every_row_lands_where_and_when_the_schedule_says() {
    for case in cases() {
        let mut chip = loaded(&case, 1, None);
        assert_eq!(chip.run(), Stop::Finished, "{}", case.name);
        for message in &case.messages {
            for &(destination, address) in &message.destinations {
                let id = PhysTile::new(destination).unwrap();
                let bytes = chip.read_memory(id, address, 4 * message.words).unwrap();
                let origin = origin_of(&case, message);
                for (i, found) in bytes.chunks_exact(4).enumerate() {
                    let wanted = content(origin.0, origin.1 + 4 * i as u32).to_le_bytes();
                    assert_eq!(found, wanted, "{} tile {destination} word {i}", case.name);
                }
            }
        }
        check_horizons(&case, &chip);
    }
}

/// Where the words of a message come from in the end: relays follow the message that filled them.
fn origin_of(case: &Case, message: &Message) -> (u16, u32) {
    let filled =
        case.messages.iter().find(|m| m.destinations.iter().any(|&(tile, address)| tile == message.source && address == message.address));
    filled.map_or((message.source, message.address), |m| origin_of(case, m))
}

/// From the call's issue to behind the row's return: 6 clocks of call, the horizon, 6 of return.
fn check_horizons(case: &Case, chip: &Chip) {
    for (tile, horizon, _) in &case.rows {
        let id = PhysTile::new(*tile).unwrap();
        let hits: Vec<_> = chip.watched().into_iter().filter(|hit| hit.tile == id).collect();
        assert_eq!(hits.len(), 2, "{}", case.name);
        assert_eq!(hits[1].clock - hits[0].clock, horizon + 12, "{} tile {tile}", case.name);
    }
}

#[test]
fn a_tile_that_enters_its_row_one_clock_late_does_not_pass_unnoticed() {
    for case in cases() {
        let takes_part = |tile: u16| case.messages.iter().any(|m| m.source == tile || m.destinations.iter().any(|&(to, _)| to == tile));
        // The partner of a tile that sends 64-bit items only waits.
        for (tile, ..) in case.rows.iter().filter(|(tile, ..)| takes_part(*tile)) {
            let mut chip = loaded(&case, 1, Some(*tile));
            match chip.run() {
                Stop::Fault(fault) => {
                    assert!(
                        matches!(
                            fault.cause,
                            Cause::NothingSent { .. } | Cause::NoPointer { .. } | Cause::Receive { .. } | Cause::PairMisuse { .. }
                        ),
                        "{}: {fault}",
                        case.name
                    );
                }
                stop => assert!(wrong_words(&case, &chip), "{}: tile {tile} {stop:?}", case.name),
            }
        }
    }
}

struct Unseen;

impl Observer for Unseen {
    fn executed(&mut self, instruction: &Executed) {
        panic!("nothing is traced: {instruction:?}");
    }
}

/// By address and other end, the words of messages that continue each other.
fn moved(chip: &Chip, tile: u16, address: u32, wanted: impl Fn(Way) -> bool) -> u32 {
    let messages = chip.messages(PhysTile::new(tile).unwrap()).iter().filter(|message| wanted(message.way));
    messages.fold(0, |words, message| words + if message.address == address + 4 * words { message.words } else { 0 })
}

#[test]
fn a_debugger_tells_every_message_and_stops_where_one_arrives() {
    for case in cases() {
        let mut chip = loaded(&case, 1, None);
        let mut debugger = Debugger::default();
        for message in &case.messages {
            for &(destination, address) in &message.destinations {
                let tiles = [PhysTile::new(destination).unwrap()].into_iter().collect();
                debugger.add(Trigger::Write { address, bytes: 4 }, tiles, None, true);
            }
        }
        let mut arrived = Vec::new();
        loop {
            match debugger.run(&mut chip, &mut Unseen) {
                Halt::Hit(hit) => match hit.why {
                    Why::Write { writer: Writer::Exchange { source }, .. } => arrived.push((source.get(), hit.tile.get())),
                    why => panic!("{}: {why:?}", case.name),
                },
                Halt::Stopped(stop) => break assert_eq!(stop, Stop::Finished, "{}", case.name),
            }
        }
        for message in &case.messages {
            assert!(moved(&chip, message.source, message.address, |way| matches!(way, Way::Sent { .. })) >= message.words, "{}", case.name);
            for &(destination, address) in &message.destinations {
                let source = PhysTile::new(message.source).unwrap();
                let items = moved(&chip, destination, address, |way| way == Way::Received { source });
                assert!(items >= message.words, "{} tile {destination}: {items}", case.name);
                assert!(arrived.contains(&(message.source, destination)), "{}", case.name);
            }
        }
        check_horizons(&case, &chip);
    }
}

fn wrong_words(case: &Case, chip: &Chip) -> bool {
    case.messages.iter().any(|message| {
        let origin = origin_of(case, message);
        message.destinations.iter().any(|&(destination, address)| {
            let id = PhysTile::new(destination).unwrap();
            let Ok(bytes) = chip.read_memory(id, address, 4 * message.words) else { return true };
            bytes.chunks_exact(4).enumerate().any(|(i, found)| found != content(origin.0, origin.1 + 4 * i as u32).to_le_bytes())
        })
    })
}

#[test]
fn threads_change_nothing() {
    let names = ["multicast-near-far", "relay-in-one-phase", "full-duplex-merged", "paired64-near", "paired64-multicast"];
    for case in cases().into_iter().filter(|case| names.contains(&case.name.as_str())) {
        let run = |threads| {
            let mut chip = loaded(&case, threads, None);
            let stop = chip.run();
            let memory: Vec<Vec<u8>> =
                case.rows.iter().map(|(tile, ..)| chip.read_raw(PhysTile::new(*tile).unwrap(), 0x4c000, 0x9c000).unwrap()).collect();
            let clocks: Vec<u64> = PhysTile::all().map(|tile| chip.clock(tile)).collect();
            (stop, memory, clocks, chip.watched())
        };
        assert!(run(1) == run(2), "{}", case.name);
    }
}

/// The words of exchange instructions.
fn encoded(words: &[ExchangeWord]) -> Vec<u32> {
    words.iter().flat_map(|word| word.encode().unwrap().words().to_vec()).collect()
}

/// The row of a sender that starts at an event and sends both ways.
fn sender_row(start: u32, items: u32, address: u32) -> Vec<u32> {
    let first = items.min(64);
    let mut words = vec![ExchangeWord::Delay { events: start }, ExchangeWord::Send { items: first, address: address / 4, control: 3 }];
    if items > first {
        words.push(ExchangeWord::SendOff { items: items - first, offset: 0, control: 3 });
    }
    let mut row = encoded(&words);
    row.push(RETURN);
    row
}

/// The row of a receiver in a physical row of tiles that selects tile 0 at an event, and its horizon (machine.md c.5).
fn receiver_row(select: u32, row: u32, items: u32, target: u32) -> (u64, Vec<u32>) {
    let xpic = |events, value| ExchangeWord::DelayXpic { events, selector: 0, value };
    let pic = |events| ExchangeWord::DelayPic { events, selector: 0, value: target / 4 };
    let to_pointer = 52 + 2 * row;
    let mut words = vec![xpic(select, 0)];
    match items.cmp(&to_pointer) {
        Ordering::Less => words.extend([xpic(items, NEUTRAL), pic(to_pointer - items)]),
        Ordering::Greater => words.extend([pic(to_pointer), xpic(items - to_pointer, NEUTRAL)]),
        Ordering::Equal => {
            words.push(ExchangeWord::Delay { events: items - 1 });
            words.push(ExchangeWord::SendPicP {
                items: 1,
                address: 0,
                control: 0,
                pic_selector: 0,
                pic: target / 4,
                xpic_selector: 0,
                xpic: NEUTRAL,
            });
        }
    }
    words.push(ExchangeWord::Delay { events: (to_pointer + items + 5) - items.max(to_pointer) });
    let mut encoded = encoded(&words);
    encoded.push(RETURN);
    (u64::from(select + to_pointer + items + 5), encoded)
}

/// Tile 0 sends words to other tiles, from the route times of machine.md c.5.
fn multicast_case(items: u32, source: u32, destinations: &[(u16, u32)], base: u32) -> Case {
    let sender = PhysTile::new(0).unwrap();
    let offset = |tile: u16| route(sender, PhysTile::new(tile).unwrap()).offset;
    let start = destinations.iter().map(|&(tile, _)| -offset(tile)).max().unwrap().max(0);
    let mut case = Case {
        name: format!("{items} words"),
        messages: vec![Message { source: 0, words: items, address: source, destinations: destinations.to_vec() }],
        rows: vec![(0, u64::from(start as u32 + items), sender_row(start as u32, items, source))],
        bases: BTreeMap::from([(0, base)]),
    };
    for &(tile, target) in destinations {
        let select = (start + offset(tile) + 1) as u32;
        let (horizon, row) = receiver_row(select, u32::from(tile / 64), items, target);
        case.rows.push((tile, horizon, row));
    }
    case
}

/// Tile 0 sends words to tile 53.
fn pair_case(items: u32, source: u32, target: u32, base: u32) -> Case {
    multicast_case(items, source, &[(53, target)], base)
}

/// Clocks seen on hardware by sender, first and second receiver (machine.md g), sampled every 6 clocks.
const MULTICAST: [(u32, [i64; 3]); 6] = [
    (1, [204, 552, 534]),
    (52, [258, 606, 582]),
    (64, [270, 618, 594]),
    (65, [270, 618, 594]),
    (1024, [1230, 1578, 1554]),
    (4148, [4350, 4698, 4680]),
];
const GRAIN: i64 = 6;

#[test]
fn multicasts_differ_in_length_as_measured_within_the_sampling_grain() {
    let simulated = MULTICAST.map(|(items, _)| {
        let case = multicast_case(items, 0x60000, &[(661, 0x64000), (53, 0x68000)], ROW);
        let mut chip = loaded(&case, 1, None);
        assert_eq!(chip.run(), Stop::Finished, "{items} words");
        check_horizons(&case, &chip);
        assert!(!wrong_words(&case, &chip), "{items} words");
        [0, 661, 53].map(|tile| {
            let hits: Vec<_> = chip.watched().into_iter().filter(|hit| hit.tile.get() == tile).collect();
            (hits[1].clock - hits[0].clock) as i64
        })
    });
    for (i, (items, seen)) in MULTICAST.iter().enumerate() {
        for (j, (others, seen_before)) in MULTICAST.iter().enumerate().take(i) {
            for tile in 0..3 {
                let (found, measured) = (simulated[i][tile] - simulated[j][tile], seen[tile] - seen_before[tile]);
                assert!((found - measured).abs() <= GRAIN, "{others} to {items} words, column {tile}: {found} against {measured}");
            }
        }
    }
}

fn fault_of(case: &Case) -> Cause {
    match loaded(case, 1, None).run() {
        Stop::Fault(fault) => fault.cause,
        stop => panic!("{}: {stop:?}", case.name),
    }
}

#[test]
fn a_row_in_the_unit_it_sends_from_is_a_conflict() {
    let cause = fault_of(&pair_case(3, 0x60000, 0x64000, 0x60100));
    assert!(matches!(cause, Cause::SendFetchConflict { address: 0x60000, .. }), "{cause}");
}

/// Words up to 64 bytes behind the executed one are fetched (machine.md b).
#[test]
fn a_row_that_ends_just_below_the_unit_it_sends_from_is_a_conflict() {
    let cause = fault_of(&pair_case(3, 0x54100, 0x64000, 0x53fd0));
    assert!(matches!(cause, Cause::SendFetchConflict { address: 0x54100, .. }), "{cause}");
    assert_eq!(loaded(&pair_case(3, 0x54100, 0x64000, 0x53f80), 1, None).run(), Stop::Finished);
}

#[test]
fn a_row_in_the_unit_it_receives_into_is_a_clash_with_the_fetch() {
    let cause = fault_of(&pair_case(3, 0x60000, ROW + 0x400, 0x54000));
    assert!(matches!(cause, Cause::Receive { error: ReceiveError::ClashFetch, .. }), "{cause}");
}

/// What stops the run when the receiver executes a memory instruction at an address, some events behind its first store.
fn stop_of_access(id: &str, address: u32, behind: u32) -> Stop {
    let mut case = pair_case(30, 0x60000, 0x64000, ROW);
    let row = &mut case.rows[1].2;
    row.truncate(3);
    row.extend(encoded(&[ExchangeWord::Delay { events: behind }]));
    row.extend([word("setzi.m_zi20", &[4, address]), word("setzi.m_zi20", &[5, 7]), word(id, &[5, 4, 15, 0])]);
    row.extend(encoded(&[ExchangeWord::Delay { events: 40 }]));
    row.push(RETURN);
    loaded(&case, 1, None).run()
}

#[test]
fn a_load_or_store_in_the_unit_of_an_arriving_word_is_a_clash() {
    for id in ["ld32.m_rri", "st32.m_rri"] {
        match stop_of_access(id, 0x64100, 1) {
            Stop::Fault(fault) => {
                let is_clash = matches!(fault.cause, Cause::Receive { error: ReceiveError::ClashData, address: 0x64000..0x64078, .. });
                assert!(is_clash, "{id}: {fault}");
            }
            stop => panic!("{id}: {stop:?}"),
        }
    }
}

#[test]
fn a_load_or_store_in_another_unit_or_behind_the_last_word_is_none() {
    for id in ["ld32.m_rri", "st32.m_rri"] {
        assert_eq!(stop_of_access(id, 0x70000, 1), Stop::Finished, "{id}");
        assert_eq!(stop_of_access(id, 0x64100, 40), Stop::Finished, "{id}");
    }
}

#[test]
fn words_nobody_wrote_are_not_sent() {
    let mut case = pair_case(3, 0x60000, 0x64000, ROW);
    case.messages[0].words = 2;
    assert_eq!(fault_of(&case), Cause::PoisonSent { address: 0x60008 });
}

#[test]
fn a_receiver_that_listens_too_long_stores_what_nobody_sent() {
    let mut case = pair_case(3, 0x60000, 0x64000, ROW);
    case.rows[1].2[1] += 1 << 14;
    case.rows[1].2[2] -= 1 << 19;
    assert!(matches!(fault_of(&case), Cause::NothingSent { source: 0, .. }));
}

#[test]
fn a_send_in_the_wrong_direction_is_not_seen() {
    let mut case = pair_case(3, 0x60000, 0x64000, ROW);
    case.rows[0].2[1] = case.rows[0].2[1] & !7 | 2;
    assert!(matches!(fault_of(&case), Cause::NothingSent { source: 0, .. }));
}

/// One control of a row: what takes effect at an event.
#[derive(Clone, Copy)]
enum Control {
    Select(u32),
    PairSelect(u32),
    Point(u32),
    Format(u32),
}

impl Control {
    /// Whether it is one of the XPIC stream, its selector, and its value.
    fn fields(self) -> (bool, u32, u32) {
        match self {
            Control::Select(value) => (true, 0, value),
            Control::PairSelect(value) => (true, 1, value),
            Control::Point(value) => (false, 0, value),
            Control::Format(value) => (false, 1, value),
        }
    }
}

/// Illegal schedules that rows can express and the chip can notice, with a part of what it says; no fault means wrong words.
const CAUGHT: [(&str, &str); 14] = [
    ("past-end-of-memory", "receive error 3"),
    ("wrong-direction", "what tile 0 did not send"),
    ("multicast-one-direction", "what tile 9 did not send"),
    ("late-select", "wrong words"),
    ("late-pointer", "before any pointer was set"),
    ("no-teardown", "what tile 0 did not send"),
    ("overlapping-selects", "wrong words"),
    ("sram-clash", "receive error 1"),
    ("sram-clash-interleaved", "receive error 1"),
    ("row-shares-element", "meets the instruction fetch"),
    ("row-outside-region-0", "is not executable"),
    ("read-before-arrival", "receive error 1"),
    ("paired64-partner-busy", "the partner of the sending tile uses the exchange"),
    ("paired64-coincident", "the pair's source and another control change at one event"),
];
/// No row can say them: events below 1, no items, unaligned addresses, two instructions at once, two selections at once.
const INEXPRESSIBLE: [&str; 6] = ["self-send", "duplicate-destination", "zero-items", "unaligned-source", "too-early", "overlapping-sends"];
/// No source says that hardware fails (machine.md c.6, c.7), or only the program knows the order that is broken.
const UNDECIDED: [&str; 9] = [
    "too-long",
    "control-at-send-start",
    "row-misaligned",
    "read-inside-guard",
    "overwrite-before-read",
    "overwrite-out-of-order",
    "paired64-half-pair",
    "paired64-different-addresses",
    "paired64-short",
];

/// Words up to an event that end in a control.
fn wait_for(control: Control, events: u32) -> ExchangeWord {
    match control.fields() {
        (true, selector, value) => ExchangeWord::DelayXpic { events, selector, value },
        (false, selector, value) => ExchangeWord::DelayPic { events, selector, value },
    }
}

/// A send of items that starts one event before a control.
fn send_with(control: Control, items: u32) -> ExchangeWord {
    let (is_xpic, selector, value) = control.fields();
    ExchangeWord::SendPic { items, selector: if is_xpic { selector } else { 2 + selector }, value }
}

/// Two controls at one event, behind so many words of a row.
fn both(one: Control, other: Control, wait: u32, words: usize) -> Vec<ExchangeWord> {
    let [(_, xpic_selector, xpic), (_, pic_selector, pic)] =
        if one.fields().0 { [one.fields(), other.fields()] } else { [other.fields(), one.fields()] };
    let delays: &[u32] = if words.is_multiple_of(2) { &[wait - 3, 2] } else { &[wait - 1] };
    let mut found: Vec<_> = delays.iter().map(|&events| ExchangeWord::Delay { events }).collect();
    found.push(ExchangeWord::SendPicP { items: 1, address: 0, control: 0, pic_selector, pic, xpic_selector, xpic });
    found
}

/// The words of a send from event `start` on, cut where controls fall into it.
fn cut_send(message: &toml::Table, start: u32, inside: &[(u32, Control)]) -> Vec<ExchangeWord> {
    let (items, control) = (number(message, "items"), number(message, "sctl"));
    let mut words = Vec::new();
    let mut sent = 0;
    let mut stops: Vec<(u32, Option<Control>)> = inside.iter().map(|&(event, control)| (event - 1 - start, Some(control))).collect();
    stops.push((items, None));
    let first = items.min(stops[0].0).min(64);
    words.push(ExchangeWord::Send { items: first, address: number(message, "src_addr") / 4, control });
    sent += first;
    for (stop, then) in stops {
        if stop > sent {
            words.push(ExchangeWord::SendOff { items: stop - sent, offset: 0, control });
        }
        sent = stop;
        if let Some(with) = then {
            words.push(send_with(with, 1));
            sent += 1;
        }
    }
    words
}

/// What a member of a receiving pair does (machine.md c.7).
fn pair_controls(message: &toml::Table, to: &toml::Table) -> Vec<(u32, Control)> {
    let (select, format, items) = (number(to, "select_event"), number(to, "format_event"), number(message, "items"));
    let (source, receiver) = (number(message, "src_physical"), number(to, "physical"));
    let way = route(PhysTile::new(source as u16).unwrap(), PhysTile::new(receiver as u16).unwrap());
    let mut controls = vec![
        (format, Control::Format(way.direction.control())),
        (format + 2, Control::Point(number(to, "addr") / 4)),
        (format + items, Control::Format(0)),
    ];
    if to["early"].as_bool().unwrap() {
        controls.extend([(select, Control::PairSelect(source ^ receiver & 2)), (select + items, Control::PairSelect(NEUTRAL))]);
    }
    controls
}

/// The row of a tile in an illegal case, instruction by instruction, as the case times it.
fn illegal_row(table: &toml::Table, tile: u32) -> Vec<u32> {
    let mut controls: Vec<(u32, Control)> = Vec::new();
    let mut sends: Vec<(u32, &toml::Table)> = Vec::new();
    let end_of = |message: &toml::Table| number(message, "start_event") + number(message, "items");
    for message in tables(table, "message") {
        if number(message, "src_physical") == tile {
            sends.push((number(message, "start_event"), message));
        }
        for to in tables(message, "dst").into_iter().filter(|to| number(to, "physical") == tile) {
            let select = number(to, "select_event");
            if number(message, "width") == 64 {
                controls.extend(pair_controls(message, to));
                continue;
            }
            controls.push((select, Control::Select(number(message, "src_physical"))));
            controls.push((number(to, "pointer_event"), Control::Point(number(to, "addr") / 4)));
            let late = message.get("select_shift").map_or(0, |_| number(message, "select_shift"));
            if !message.contains_key("drop_neutral") {
                controls.push((select + number(message, "items") - late, Control::Select(NEUTRAL)));
            }
        }
    }
    controls.sort_by_key(|&(event, _)| event);
    let (mut words, mut now) = (Vec::new(), 0);
    let busy = |event: u32| sends.iter().any(|&(start, message)| event > start && event <= end_of(message));
    let mut steps: Vec<(u32, Option<Control>, Option<&toml::Table>)> = Vec::new();
    steps.extend(controls.iter().filter(|(event, _)| !busy(*event)).map(|&(event, control)| (event, Some(control), None)));
    steps.extend(sends.iter().map(|&(start, message)| (start, None, Some(message))));
    steps.sort_by_key(|step| step.0);
    for (number, &(event, control, message)) in steps.iter().enumerate() {
        if let Some(control) = control {
            match steps.get(number + 1) {
                _ if event == now && number > 0 => {}
                Some(&(at, Some(other), _)) if at == event => words.extend(both(control, other, event - now, words.len())),
                _ => words.push(wait_for(control, event - now)),
            }
            now = event;
        }
        if let Some(message) = message {
            if event > now {
                words.push(ExchangeWord::Delay { events: event - now });
            }
            let inside: Vec<_> = controls.iter().copied().filter(|&(at, _)| at > event && at <= end_of(message)).collect();
            words.extend(cut_send(message, event, &inside));
            now = end_of(message);
        }
    }
    words.push(ExchangeWord::Delay { events: 400 });
    let mut row = encoded(&words);
    row.push(RETURN);
    row
}

fn illegal_case(table: &toml::Table) -> Case {
    let mut case = case(table);
    for base in tables(table, "message").into_iter().flat_map(|message| tables(message, "row_base")) {
        let tile = ipu21::tile::TileId::new(number(base, "tile") as u16).unwrap();
        case.bases.insert(tile.physical().get(), number(base, "addr"));
    }
    let sources = case.messages.iter().map(|message| message.source);
    let mut tiles: Vec<u16> = sources.chain(case.messages.iter().flat_map(|message| message.destinations.iter().map(|to| to.0))).collect();
    tiles.sort_unstable();
    tiles.dedup();
    case.rows = tiles.into_iter().map(|tile| (tile, 0, illegal_row(table, tile.into()))).collect();
    case
}

/// What the simulator says of an illegal case.
fn verdict(case: &Case) -> String {
    let mut chip = loaded(case, 1, None);
    match chip.run() {
        Stop::Fault(fault) => fault.cause.to_string(),
        Stop::Finished if wrong_words(case, &chip) => "wrong words".to_owned(),
        stop => format!("{stop:?}"),
    }
}

#[test]
fn illegal_schedules_fault_or_deliver_wrong_words() {
    let file: toml::Table = include_str!("../../ipu21/data/vectors/illegal.toml").parse().unwrap();
    let mut caught = 0;
    for table in tables(&file, "case") {
        let name = table["name"].as_str().unwrap();
        let Some((_, expected)) = CAUGHT.iter().find(|(known, _)| *known == name) else {
            assert!(INEXPRESSIBLE.contains(&name) || UNDECIDED.contains(&name), "{name}");
            continue;
        };
        let found = verdict(&illegal_case(table));
        assert!(found.contains(expected), "{name}: {found}");
        caught += 1;
    }
    assert_eq!(caught, CAUGHT.len());
}
