//! Every recorded word of `encodings.tsv`, text to word and word to text. The rows are evidence independent of this crate, but for those
//! marked synthesised, which only show that encoder and decoder agree.

use std::collections::BTreeMap;

use ipu21::isa::{self, FormId, Mode};
use ipu21::parameters::Parameters;
use proptest::prelude::*;
use toolchain::disassembler::disassemble;
use toolchain::listing::PREAMBLE;
use toolchain::object::Object;
use toolchain::{Source, assemble};

const COISSUE: u32 = isa::COISSUE;

struct Row {
    words: Vec<u32>,
    text: String,
    form: String,
}

fn rows() -> Vec<Row> {
    let parsed = ipu21::data::table_rows(ipu21::data::ENCODINGS).map(|row| Row {
        words: row[0].split(' ').map(|word| u32::from_str_radix(word.trim_start_matches("0x"), 16).unwrap()).collect(),
        text: row[1].to_owned(),
        form: row[3].to_owned(),
    });
    parsed.collect()
}

fn words(text: &str, mode: Mode) -> Result<Vec<u32>, String> {
    // The body `rpt` must have.
    let body = text.starts_with("rpt").then(|| text.rsplit(' ').next().unwrap().parse::<usize>().unwrap() + 1);
    let body = body.map(|bundles| format!(".rept {bundles}; {{ nop; fnop }}; .endr"));
    if let Some(body) = body {
        return assembled(&format!(".worker; nop; {text}; {body}")).map(|words| vec![words[1]]);
    }
    assembled(&format!("{}; {text}", if mode == Mode::Supervisor { ".supervisor" } else { ".worker" }))
}

fn assembled(text: &str) -> Result<Vec<u32>, String> {
    let source = Source { name: "row".to_owned(), text: text.to_owned() };
    let bytes = assemble(&source, &BTreeMap::new(), &Parameters::shipped())
        .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let text = Object::parse(&bytes).unwrap().link_at(0, &BTreeMap::new()).unwrap();
    Ok(text.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

/// Numbers in one radix.
fn normal(text: &str) -> String {
    let word = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).map_or(word.to_owned(), |number| number.to_string()),
        None => word.to_owned(),
    };
    let words: Vec<String> =
        text.split(' ').map(|part| part.strip_suffix(',').map_or_else(|| word(part), |part| word(part) + ",")).collect();
    words.join(" ")
}

/// The member of a bundle as an instruction alone; `sendpicp` has bit 31 set and is none.
fn alone(row: &Row) -> Vec<u32> {
    if row.words.len() == 1 { vec![row.words[0] & !COISSUE] } else { row.words.clone() }
}

#[test]
fn every_recorded_text_assembles_to_its_word() {
    let mut seen = 0;
    for row in rows().iter().filter(|row| FormId::named(&row.form).is_some()) {
        let mode = isa::form(FormId::named(&row.form).unwrap()).mode;
        assert_eq!(words(&row.text, mode), Ok(alone(row)), "{}", row.text);
        seen += 1;
    }
    assert!(seen > 650, "{seen} rows");
}

#[test]
fn every_recorded_word_disassembles_to_its_text() {
    for row in rows().iter().filter(|row| FormId::named(&row.form).is_some()) {
        let bytes: Vec<u8> = alone(row).iter().flat_map(|word| word.to_le_bytes()).collect();
        let lines = disassemble(&bytes, 0x4c000);
        assert_eq!(lines.len(), 1, "{}", row.text);
        assert_eq!(normal(&lines[0].text), normal(&row.text), "{:x?}", row.words);
    }
}

#[test]
fn words_that_must_not_decode_are_listed_as_data() {
    let mut seen = 0;
    for row in rows().iter().filter(|row| row.text.starts_with("<invalid")) {
        let bytes: Vec<u8> = row.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert!(disassemble(&bytes, 0x4c000).iter().all(|line| line.text.starts_with(".int")), "{:x?}", row.words);
        seen += 1;
    }
    assert!(seen > 15, "{seen} rows");
}

#[test]
fn bundles_of_two_main_lane_instructions_are_refused() {
    let bundles: Vec<Row> = rows().into_iter().filter(|row| row.form == "bundle").collect();
    assert!(!bundles.is_empty());
    for row in bundles {
        let fault = words(&row.text, Mode::Worker).unwrap_err();
        assert!(fault.contains("expected an aux-lane instruction"), "{fault}");
    }
}

#[test]
fn the_text_of_every_form_with_any_operands_assembles_back() {
    // A small generator: the same numbers in every run.
    let mut state = 1_u32;
    for (_, form) in isa::forms().filter(|(_, form)| form.words > 0) {
        for _ in 0..8 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let first = form.matches | state & !form.mask & !COISSUE;
            let found = [first, state.rotate_left(7)];
            let found = &found[..usize::from(form.words)];
            let Some(decoded) = isa::decode(found) else { continue };
            if form.id.ends_with("_iz12") && decoded.operands()[2] == 0 {
                continue;
            }
            let text = toolchain::disassembler::instruction(&decoded);
            assert_eq!(words(&text, form.mode).as_deref(), Ok(found), "{text}");
        }
    }
}

/// The words a listing of these words assembles to.
fn reassembled(words: &[u32]) -> Vec<u32> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let lines: Vec<String> = disassemble(&bytes, 0).into_iter().map(|line| line.text).collect();
    assembled(&format!("{PREAMBLE}{}", lines.join("\n"))).unwrap_or_else(|fault| panic!("{words:x?}: {fault}"))
}

#[test]
fn every_recorded_word_reassembles_alone_and_in_any_neighbourhood() {
    let words: Vec<u32> = rows().iter().flat_map(|row| row.words.clone()).collect();
    for one in &words {
        assert_eq!(reassembled(&[*one]), [*one]);
    }
    assert_eq!(reassembled(&words), words);
    assert_eq!(reassembled(&words[1..]), words[1..]);
}

/// The words of a form with no operand bit set, all, each alone and each missing.
fn operand_patterns(form: &isa::Form) -> Vec<u32> {
    let free: Vec<u32> = (0..31).map(|bit| 1 << bit).filter(|bit| form.mask & bit == 0).collect();
    let all = free.iter().sum::<u32>();
    [0, all].into_iter().chain(free.iter().copied()).chain(free.iter().map(|bit| all - bit)).map(|bits| form.matches | bits).collect()
}

#[test]
fn every_operand_bit_of_every_form_reassembles_alone_and_in_a_bundle() {
    let encodable = || isa::forms().map(|(_, form)| form).filter(|form| form.words > 0);
    let main = encodable().find(|form| form.lane == isa::Lane::Main && form.coissue).unwrap().matches | COISSUE;
    let aux = encodable().find(|form| form.lane == isa::Lane::Aux && form.coissue).unwrap().matches | COISSUE;
    for form in encodable() {
        // Together, so that one source holds them all; a second word is one of its own.
        let words: Vec<u32> = operand_patterns(form).into_iter().flat_map(|word| [word, 0][..usize::from(form.words)].to_vec()).collect();
        assert_eq!(reassembled(&words), words, "{}", form.id);
        let bundles: Vec<u32> = operand_patterns(form)
            .into_iter()
            .map(|word| word | COISSUE)
            .flat_map(|word| if form.lane == isa::Lane::Main { [word, aux] } else { [main, word] })
            .collect();
        assert_eq!(reassembled(&bundles), bundles, "{} in a bundle", form.id);
    }
}

/// A word of any form with any operands, one time in two, else any word at all.
fn word() -> impl Strategy<Value = u32> {
    let forms: Vec<(u32, u32)> = isa::forms().filter(|(_, form)| form.words > 0).map(|(_, form)| (form.matches, form.mask)).collect();
    let formed = (proptest::sample::select(forms), any::<u32>()).prop_map(|((matches, mask), any)| matches | any & !mask);
    prop_oneof![formed, any::<u32>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_words_reassemble_from_their_listing(words in proptest::collection::vec(word(), 1..12)) {
        prop_assert_eq!(reassembled(&words), words);
    }
}
