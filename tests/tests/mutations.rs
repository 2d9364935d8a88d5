//! What a verdict is worth: a program damaged in one place fails it, or stops with the place named.
//!
//! The subject is an attention of 60 tokens of 72 channels on 12 tiles, so that keys and channels are padded. Every test first sees
//! the program as compiled pass. Changes are made inside the stage that makes the thing, and everything behind is made again.

use std::sync::OnceLock;

use compiler::layout::Layout;
use compiler::model::Model;
use compiler::program::{Binding, Expanded, Variant};
use compiler::supervisor::{Routine, Target};
use compiler::tile_code::{ClassCode, TileCode};
use driver::{Session, SessionFault};
use exchange::{Invariant, Place, Problem, Transfer};
use ipu21::exchange_word::ExchangeWord;
use ipu21::isa;
use package::{Package, ReadFault};
use tests::compiled::{self, Comparison, Compiled, Mutation, Tensors, Unchanged};
use toolchain::object::Object;

const TOKENS: u32 = 60;
const WIDTH: u32 = 72;
const TILES: u32 = 12;
/// Real keys in the last panel of sixteen.
const TAIL: i64 = (TOKENS % 16) as i64;
/// Bytes of a row of a panel, in words.
const ROW_WORDS: u32 = 8;

/// What all tests start from.
struct Subject {
    program: Expanded,
    tensors: Tensors,
    expectation: Vec<Vec<f64>>,
    unmutated: Compiled,
    verdict: Vec<Comparison>,
}

fn subject() -> &'static Subject {
    static SUBJECT: OnceLock<Subject> = OnceLock::new();
    SUBJECT.get_or_init(|| {
        let task = compiled::attention(TOKENS, WIDTH, 1, Layout::on(TILES));
        let model: Model = compiled::model(&task).expect("a sound model");
        let program = compiled::expanded(&task).expect("it fits").swap_remove(0);
        let tensors = compiled::drawn(&model, 1);
        let expectation = compiled::expectation(&model, &tensors);
        let unmutated = compiled::lower(program.clone(), &Unchanged).unwrap_or_else(|refusal| panic!("{refusal}"));
        let verdict = verdict(&unmutated, &tensors, &expectation, &Unchanged).unwrap_or_else(|fault| panic!("{fault}"));
        Subject { program, tensors, expectation, unmutated, verdict }
    })
}

fn verdict(
    compiled: &Compiled,
    tensors: &Tensors,
    expectation: &[Vec<f64>],
    mutation: &dyn Mutation,
) -> Result<Vec<Comparison>, SessionFault> {
    let results = compiled::run(compiled, tensors, mutation)?;
    Ok(compiled::judge(&results, expectation, &compiled::reference_tolerance))
}

/// The subject, seen to pass.
fn passing() -> &'static Subject {
    let subject = subject();
    let names: Vec<&str> = subject.verdict.iter().map(|comparison| comparison.name.as_str()).collect();
    assert_eq!(names, ["q", "k", "v", "output", "output"]);
    assert!(subject.verdict.iter().all(Comparison::passed), "{:?}", subject.verdict);
    subject
}

/// What became of a mutated program.
fn outcome(mutation: &dyn Mutation) -> Result<Vec<Comparison>, SessionFault> {
    let subject = passing();
    let mutated = compiled::lower(subject.program.clone(), mutation).unwrap_or_else(|refusal| panic!("{refusal}"));
    verdict(&mutated, &subject.tensors, &subject.expectation, mutation)
}

/// The names of the results beyond their tolerance.
fn failed(verdict: &[Comparison]) -> Vec<&str> {
    verdict.iter().filter(|comparison| !comparison.passed()).map(|comparison| comparison.name.as_str()).collect()
}

/// Names of failed results, of a program that must run to its end.
fn failures(mutation: &dyn Mutation) -> Vec<String> {
    let verdict = outcome(mutation).unwrap_or_else(|fault| panic!("{fault}"));
    failed(&verdict).into_iter().map(str::to_owned).collect()
}

/// Changes the parameters of the softmax, in one way for all of its variants; `change` says whether it changed something.
struct Softmax(fn(&mut Variant) -> bool);

impl Mutation for Softmax {
    fn expanded(&self, program: &mut Expanded) {
        let variants = program.variants.iter_mut().filter(|variant| variant.kernel == "softmax");
        let changed = variants.map(|variant| self.0(variant)).filter(|changed| *changed).count();
        assert!(changed > 0, "a softmax has this parameter");
    }
}

fn set_tail(variant: &mut Variant, tail: i64) -> bool {
    let found = variant.parameters.get_mut("TAIL").expect("softmax masks its tail");
    let is_last = *found == TAIL;
    *found = if is_last { tail } else { *found };
    is_last
}

#[test]
fn another_scale_of_the_scores_fails_the_output() {
    let scaled = Softmax(|variant| {
        let scale = variant.parameters.get_mut("SCALE").expect("softmax scales");
        assert_eq!(*scale, factor(72.0));
        *scale = factor(80.0);
        true
    });
    assert_eq!(failures(&scaled), ["output", "output"]);
}

/// Bits of the factor 1/sqrt(width) as an f32.
fn factor(width: f64) -> i64 {
    i64::from(((1.0 / width.sqrt()) as f32).to_bits())
}

#[test]
fn a_dropped_key_fails_the_output() {
    assert_eq!(failures(&Softmax(|variant| set_tail(variant, TAIL - 1))), ["output", "output"]);
}

#[test]
fn padding_counted_as_keys_fails_the_output() {
    assert_eq!(failures(&Softmax(|variant| set_tail(variant, 16))), ["output", "output"]);
}

/// Exchanges the first two rows of every message of keys.
struct PermutedKeys;

impl Mutation for PermutedKeys {
    fn expanded(&self, program: &mut Expanded) {
        let keys = program.buffers.iter().position(|buffer| buffer.name == "output.keys").expect("keys are gathered");
        let mut changed = 0;
        for Problem { transfers, .. } in &mut program.phases {
            let (those, others): (Vec<_>, Vec<_>) = std::mem::take(transfers)
                .into_iter()
                .partition(|transfer| transfer.destinations[0].buffer.0 as usize == keys && transfer.words >= 2 * ROW_WORDS);
            changed += those.len();
            *transfers = others;
            transfers.extend(those.iter().flat_map(exchanged));
        }
        assert!(changed > 0, "keys are sent");
    }
}

/// A transfer with its first two rows in each other's place.
fn exchanged(transfer: &Transfer) -> Vec<Transfer> {
    let part = |from: u32, to: u32, words: u32| {
        let moved = |place: &Place, words: u32| Place { offset: place.offset + 4 * words, ..*place };
        let destinations = transfer.destinations.iter().map(|place| moved(place, to)).collect();
        Transfer { source: moved(&transfer.source, from), words, destinations }
    };
    let rest = transfer.words - 2 * ROW_WORDS;
    let mut parts = vec![part(0, ROW_WORDS, ROW_WORDS), part(ROW_WORDS, 0, ROW_WORDS)];
    parts.extend((rest > 0).then(|| part(2 * ROW_WORDS, 2 * ROW_WORDS, rest)));
    parts
}

#[test]
fn permuted_rows_of_keys_fail_the_output_alone() {
    assert_eq!(failures(&PermutedKeys), ["output", "output"]);
}

/// Flips the first bit of the mantissa of the first element that is large enough to matter.
struct WeightBit;

impl Mutation for WeightBit {
    fn host_file(&self, binding: &Binding, file: &mut Vec<u8>) {
        if binding.name != "wq" {
            return;
        }
        let large = |pair: &[u8; 2]| half::f16::from_le_bytes(*pair).to_f64().abs() > 0.05;
        let element = file.as_chunks::<2>().0.iter().position(large).expect("weights are not all small");
        file[2 * element + 1] ^= 1 << 1;
    }
}

#[test]
fn a_flipped_bit_of_a_weight_fails_its_product() {
    let failed = failures(&WeightBit);
    assert_eq!(failed.first().map(String::as_str), Some("q"));
    assert!(!failed.contains(&"k".to_owned()) && !failed.contains(&"v".to_owned()), "{failed:?}");
}

/// Changes the first word of a phase's rows that `change` accepts.
struct RowWord(Change);

/// A word and the one behind it to what the word becomes.
type Change = fn(ExchangeWord, Option<ExchangeWord>) -> Option<ExchangeWord>;

impl Mutation for RowWord {
    fn rows(&self, rows: &mut compiler::images::Rows) {
        for words in rows.iter_mut().flat_map(|phase| phase.values_mut()) {
            for at in 0..words.len() {
                let one = |at: usize| words.get(at..=at).and_then(ExchangeWord::decode);
                if let Some(changed) = one(at).and_then(|word| self.0(word, one(at + 1))) {
                    words[at] = changed.encode().expect("the fields fit").word();
                    return;
                }
            }
        }
        panic!("no row has such a word");
    }
}

/// A changed row runs into a fault with its place or fails the verdict, and the validator of rows names it beforehand.
fn is_found_in_rows(change: Change) -> Vec<Invariant> {
    let mutation = RowWord(change);
    match outcome(&mutation) {
        Ok(verdict) => assert!(!failed(&verdict).is_empty(), "{verdict:?}"),
        Err(fault) => names_a_place(&fault),
    }
    let Compiled { schedules, placement, mut rows, .. } = passing().unmutated.clone();
    mutation.rows(&mut rows);
    let judged = (0..)
        .zip(schedules.iter().zip(&rows))
        .map(|(phase, (schedule, rows))| compiler::rows::check(schedule, &placement, phase, rows).err().unwrap_or_default());
    let found: Vec<Invariant> = judged.flatten().map(|violation| violation.invariant).collect();
    assert!(!found.is_empty(), "the validator of rows lets it pass");
    found
}

/// The fault is that of a tile or a tensor, and says where.
fn names_a_place(fault: &SessionFault) {
    match fault {
        SessionFault::Tile { place, .. } => assert!(place.is_some(), "{fault}"),
        SessionFault::Read { checkpoint, .. } => assert!(!checkpoint.is_empty(), "{fault}"),
        SessionFault::Stuck { waiting } => assert!(waiting.iter().any(|(_, place)| place.is_some()), "{fault}"),
        other => panic!("a fault without a place: {other}"),
    }
}

#[test]
fn a_longer_delay_in_a_row_is_found() {
    // In front of a send: a row may end later without harm.
    is_found_in_rows(|word, next| match (word, next) {
        (ExchangeWord::Delay { events }, Some(ExchangeWord::Send { .. })) => Some(ExchangeWord::Delay { events: events + 1 }),
        _ => None,
    });
}

#[test]
fn a_selection_one_event_later_is_found() {
    is_found_in_rows(|word, _| match word {
        ExchangeWord::DelayXpic { events, selector, value } if value != ipu21::exchange_word::NEUTRAL => {
            Some(ExchangeWord::DelayXpic { events: events + 1, selector, value })
        }
        _ => None,
    });
}

#[test]
fn another_pointer_in_a_row_is_found() {
    is_found_in_rows(|word, _| match word {
        ExchangeWord::DelayPic { events, selector: 0, value } => Some(ExchangeWord::DelayPic { events, selector: 0, value: value ^ 8 }),
        ExchangeWord::SendPic { items, selector: 2, value } => Some(ExchangeWord::SendPic { items, selector: 2, value: value ^ 8 }),
        _ => None,
    });
}

#[test]
fn another_address_of_a_send_is_found() {
    is_found_in_rows(|word, _| match word {
        ExchangeWord::Send { items, address, control } => Some(ExchangeWord::Send { items, address: address ^ 8, control }),
        _ => None,
    });
}

/// Puts another word in the place of the first instruction of a kernel with this mnemonic.
struct KernelWord {
    kernel: &'static str,
    mnemonic: &'static str,
    with: fn(u32) -> u32,
}

impl Mutation for KernelWord {
    fn object(&self, kernel: &str, object: &Object, file: &mut Vec<u8>) {
        if kernel != self.kernel {
            return;
        }
        let text = object.text();
        let is_it = |word: &[u8; 4]| {
            let decoded = isa::decode(&[u32::from_le_bytes(*word)]);
            decoded.is_some_and(|decoded| isa::form(decoded.form).mnemonic == self.mnemonic)
        };
        let index = text.as_chunks::<4>().0.iter().position(is_it).expect("the kernel has such an instruction");
        let start = file.windows(text.len()).position(|window| window == text).expect("the text is in the file");
        let word: &mut [u8] = &mut file[start + 4 * index..][..4];
        let changed = (self.with)(u32::from_le_bytes(word.try_into().expect("four bytes")));
        word.copy_from_slice(&changed.to_le_bytes());
    }
}

#[test]
fn an_arithmetic_instruction_less_in_a_kernel_fails_the_output() {
    let unscaled = KernelWord { kernel: "softmax", mnemonic: "f16v4mul", with: |word| isa::FNOP | word & isa::COISSUE };
    assert_eq!(failures(&unscaled), ["output", "output"]);
}

#[test]
fn a_word_that_is_no_instruction_stops_in_its_kernel_and_line() {
    let broken = KernelWord { kernel: "softmax", mnemonic: "f16v4max", with: |_| u32::MAX };
    let fault = outcome(&broken).expect_err("an illegal word");
    let SessionFault::Tile { place: Some(place), .. } = &fault else { panic!("another fault: {fault}") };
    assert!(place.symbol.starts_with("softmax{"), "{fault}");
    let (file, line) = place.source.as_ref().expect("kernels have sources");
    assert_eq!(file, "softmax.S");
    assert!(*line > 0, "{fault}");
}

#[test]
fn a_run_without_initialize_is_refused() {
    let subject = passing();
    let mut session = Session::open(&subject.unmutated.package, &compiled::options(1)).expect("the tiles greet the host");
    let fault = compiled::run_from(&mut session, &subject.unmutated, &subject.tensors, &Unchanged).expect_err("no weights");
    let SessionFault::OutOfStep { initialized: false, .. } = &fault else { panic!("another fault: {fault}") };
    assert!(fault.to_string().ends_with("the call that sends the weights was not made"), "{fault}");
}

/// Puts an instruction that does nothing between the barrier and the row of one tile, and another behind the row, so that everything
/// else keeps its alignment.
struct ExtraNop;

impl Mutation for ExtraNop {
    fn code(&self, code: &mut TileCode) {
        let index = code.classes.iter().position(|class| !class.phases.is_empty()).expect("tiles exchange");
        let mut alone = code.classes[index].clone();
        let tile = alone.tiles[0];
        alone.tiles = vec![tile];
        delay_first_row(&mut alone);
        code.classes[index].tiles.retain(|other| *other != tile);
        if code.classes[index].tiles.is_empty() {
            code.classes[index] = alone;
        } else {
            code.class_of[tile.index()] = code.classes.len() as u32;
            code.classes.push(alone);
        }
    }
}

fn delay_first_row(class: &mut ClassCode) {
    let is_row = |target: Target| matches!(target, Target::Block(compiler::placement::Block::Row(_)));
    let calls = class.relocations.iter().filter(|relocation| is_row(relocation.target));
    let call = calls.map(|relocation| relocation.word).min().expect("it has a row");
    class.words.insert(call as usize + 1, isa::NOP);
    class.words.insert(call as usize, isa::NOP);
    for relocation in &mut class.relocations {
        relocation.word += match relocation.word {
            word if word < call => 0,
            word if word == call => 1,
            _ => 2,
        };
        if let Target::Arguments(offset) = &mut relocation.target {
            *offset += 8;
        }
    }
    let behind = |point: &mut u32| *point += if *point > 4 * call { 8 } else { 0 };
    let points = &mut class.points;
    points.steps.iter_mut().chain([&mut points.begin, &mut points.end]).for_each(behind);
    assert!(class.relocations.iter().any(|relocation| relocation.target == Target::Routine(Routine::Finish)));
}

#[test]
fn one_extra_nop_before_the_row_of_one_tile_is_found() {
    match outcome(&ExtraNop) {
        Ok(verdict) => assert!(!failed(&verdict).is_empty(), "{verdict:?}"),
        Err(fault) => names_a_place(&fault),
    }
    let subject = passing();
    let mut code = subject.unmutated.code.clone();
    ExtraNop.code(&mut code);
    let violations = compiler::rows::check_entries(&subject.unmutated.expanded, &code).expect_err("the paths differ");
    assert!(violations.iter().any(|violation| violation.invariant == Invariant::I22), "{violations:?}");
}

#[test]
fn a_flipped_byte_of_the_file_is_refused_by_its_checksum() {
    let file = &passing().unmutated.file;
    let body = [20, file.len() / 3, file.len() / 2, file.len() - 40, file.len() - 1];
    for at in body {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        let fault = Package::read(&damaged).expect_err("a damaged file");
        assert!(matches!(fault, ReadFault::Checksum { .. }), "byte {at}: {fault}");
    }
}
