//! Every form of isa.toml that has an encoding: its text assembles to the word that the encoding fields say, the word reads back as
//! that text, and executing it does what a rule outside the simulator says.
//!
//! Most forms run between a prologue that loads a whole worker state and an epilogue that stores it ([`machine`]); everything that a
//! form must not touch is compared, too. Forms that steer, stream or exchange have scenes of their own.

#[path = "../support/mod.rs"]
mod support;

mod accumulator;
mod control;
mod convert;
mod exchange;
mod float;
mod integer;
mod machine;
mod matrix;
mod memory;
mod system;
mod table;

use ipu21::isa;
use table::Entry;

/// Cases of a form whose effect is compared with a rule.
const CASES: u64 = 24;

/// The rule of a form on worker states, if it has one.
fn rule_of(entry: &Entry) -> Option<machine::Rule> {
    [integer::rule, float::rule, convert::rule, accumulator::rule, memory::rule].into_iter().find_map(|of| of(entry))
}

/// How many files prove a form.
fn proofs(entry: &Entry) -> usize {
    let rules = [integer::rule, float::rule, convert::rule, accumulator::rule, memory::rule];
    let scenes = [control::scene, system::scene, matrix::scene, exchange::scene];
    rules.iter().filter(|of| of(entry).is_some()).count() + scenes.iter().filter(|of| of(entry).is_some()).count()
}

#[test]
fn every_form_has_one_proof() {
    let others: Vec<(&str, usize)> =
        table::entries().iter().map(|entry| (entry.id, proofs(entry))).filter(|(_, proofs)| *proofs != 1).collect();
    assert_eq!(others, []);
    assert_eq!(table::entries().len(), isa::forms().filter(|(_, form)| form.words > 0).count());
}

#[test]
fn every_form_does_what_its_rule_says() {
    let wrong = |entry: &'static Entry| machine::check(entry, &rule_of(entry)?, CASES);
    let wrong: Vec<String> = table::entries().iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a form does by itself; panics when something is wrong.
type Scene = fn(&Entry);

/// Plays the scenes of one file.
fn play(scene_of: fn(&Entry) -> Option<Scene>) {
    let scenes = table::entries().iter().filter_map(|entry| Some((entry, scene_of(entry)?)));
    let played = scenes.map(|(entry, scene)| scene(entry)).count();
    assert!(played > 0);
}

#[test]
fn forms_that_steer_a_context_go_where_they_should() {
    play(control::scene);
}

#[test]
fn registers_launches_traps_and_barriers_do_what_is_written_of_them() {
    play(system::scene);
}

#[test]
fn streams_through_the_matrix_unit_are_sums_of_products() {
    play(matrix::scene);
}

#[test]
fn exchange_forms_deliver_words_at_their_events() {
    play(exchange::scene);
}

#[test]
fn every_form_assembles_to_its_fields_and_reads_back() {
    for entry in table::entries() {
        for seed in 0..4 {
            let values = entry.sample(seed);
            let (text, words) = (entry.text(&values), entry.words(&values));
            assert_eq!(table::assembled(entry, &text), words, "{text}");
            assert_eq!(table::disassembled(&words), table::normal(&text), "{words:x?}");
        }
    }
}
