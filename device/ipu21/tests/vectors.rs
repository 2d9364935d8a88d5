//! Recorded vectors of topology, routes, memory units and exchange words; none of them made by this crate.

use ipu21::data::table_rows;
use ipu21::exchange_word::ExchangeWord;
use ipu21::route::{Direction, latency, pair_route, route};
use ipu21::tile::{PhysTile, TileId};
use ipu21::{host, memory, route};

fn number(text: &str) -> u32 {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

fn logical(text: &str) -> TileId {
    TileId::new(text.parse().unwrap()).unwrap()
}

#[test]
fn tiles_are_where_the_table_says() {
    let rows: Vec<_> = table_rows(include_str!("../data/vectors/tiles.tsv")).skip(1).collect();
    assert_eq!(rows.len(), 41);
    for row in rows {
        let tile = logical(row[0]);
        let physical = tile.physical();
        let ours = [
            physical.get(),
            physical.row(),
            physical.column(),
            physical.sub(),
            physical.lane(),
            physical.side(),
            physical.folded_column(),
            physical.side() ^ physical.band_bit(),
            route::injection(physical) as u16,
            route::tap(physical) as u16,
            tile.partner().get(),
            physical.partner().get(),
            physical.group_owner().get(),
            host::mux(physical) as u16,
        ];
        let recorded: Vec<u16> = row[1..15].iter().map(|text| number(text) as u16).collect();
        assert_eq!(ours.as_slice(), recorded, "tile {tile}");
        let words = host::participation(&[physical]);
        assert_eq!(words[number(row[15]) as usize], 1 << number(row[16]), "tile {tile}");
    }
}

#[test]
fn both_numberings_are_one_to_one() {
    let mut seen = vec![false; ipu21::tile::COUNT];
    for tile in TileId::all() {
        assert_eq!(tile.physical().logical(), tile);
        assert!(!std::mem::replace(&mut seen[tile.physical().index()], true), "{tile}");
    }
}

#[test]
fn routes_take_the_recorded_time() {
    let rows: Vec<_> = table_rows(include_str!("../data/vectors/routes.tsv")).skip(1).collect();
    assert_eq!(rows.len(), 62);
    for row in rows {
        let (source, destination) = (logical(row[0]).physical(), logical(row[1]).physical());
        let found = route(source, destination);
        let integer = |text: &str| text.parse::<i32>().unwrap();
        assert_eq!((u32::from(source.get()), u32::from(destination.get())), (number(row[2]), number(row[3])));
        assert_eq!(route::tap(destination) - route::injection(source), integer(row[4]), "{row:?}");
        assert_eq!(found.direction == Direction::East, row[5] == "1", "{row:?}");
        assert_eq!(found.offset, integer(row[6]), "{row:?}");
        let start = (-found.offset).max(0);
        assert_eq!(
            (start, start + found.offset + 1, start + latency(source, destination)),
            (integer(row[7]), integer(row[8]), integer(row[9])),
            "{row:?}"
        );
        if row[10] != "-" {
            let pair = pair_route(source, destination);
            assert_eq!((pair.offset, u32::from(pair.early.get())), (integer(row[10]), number(row[11])), "{row:?}");
        }
    }
}

#[test]
fn route_times_have_the_published_extremes() {
    let mut offsets = Vec::new();
    for source in PhysTile::all() {
        offsets.extend(PhysTile::all().filter(|other| *other != source).map(|other| (route(source, other).offset, latency(source, other))));
    }
    assert_eq!(offsets.iter().map(|pair| pair.0).min(), Some(-78));
    assert_eq!(offsets.iter().map(|pair| pair.0).max(), Some(112));
    assert_eq!(offsets.iter().map(|pair| pair.1).min(), Some(19));
    assert_eq!(offsets.iter().map(|pair| pair.1).max(), Some(165));
}

#[test]
fn spans_cover_the_recorded_conflict_units() {
    for row in table_rows(include_str!("../data/vectors/memory_elements.tsv")).skip(1) {
        let names: Vec<String> = memory::units(number(row[0]), number(row[1])).names().collect();
        assert_eq!(names.join(" "), row[2], "{row:?}");
    }
}

/// `events=1 selector=0 value=0x0` as numbers in order.
fn fields(text: &str) -> Vec<u32> {
    text.split_whitespace().filter_map(|word| word.split_once('=')).map(|(_, value)| number(value)).collect()
}

fn exchange_word(name: &str, fields: &[u32]) -> Option<ExchangeWord> {
    Some(match (name, fields) {
        ("delay", &[events]) => ExchangeWord::Delay { events },
        ("delaypic", &[events, selector, value]) => ExchangeWord::DelayPic { events, selector, value },
        ("delayxpic", &[events, selector, value]) => ExchangeWord::DelayXpic { events, selector, value },
        ("send", &[items, address, control]) => ExchangeWord::Send { items, address, control },
        ("sendoff", &[items, offset, control]) => ExchangeWord::SendOff { items, offset, control },
        ("sendpic", &[items, selector, value]) => ExchangeWord::SendPic { items, selector, value },
        ("sendpicp", &[items, address, control, pic_selector, pic, xpic]) => {
            ExchangeWord::SendPicP { items, address, control, pic_selector, pic, xpic_selector: xpic >> 13, xpic: xpic & 0x1fff }
        }
        _ => return None,
    })
}

#[test]
fn exchange_instructions_are_the_recorded_words_both_ways() {
    let mut seen = 0;
    for row in table_rows(include_str!("../data/vectors/encodings.tsv")).skip(1) {
        let (name, rest) = row[0].split_once(' ').unwrap_or((row[0], ""));
        let words: Vec<u32> = row[1].split(' ').map(number).collect();
        if let Some(instruction) = exchange_word(name, &fields(rest)) {
            assert_eq!(instruction.encode().unwrap().words(), words, "{}", row[0]);
            assert_eq!(ExchangeWord::decode(&words), Some(instruction), "{}", row[0]);
            seen += 1;
        } else {
            let decoded = ipu21::isa::decode(&words).unwrap_or_else(|| panic!("{}: {words:x?} does not decode", row[0]));
            assert_eq!(ipu21::isa::encode(decoded.form, decoded.operands(), false).unwrap().words(), words, "{}", row[0]);
        }
    }
    assert!(seen > 40, "{seen} exchange instructions");
}
