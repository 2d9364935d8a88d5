//! What users of neighbouring tools complain about, held as it should be. Traps of the store and of the engine alone are tests of
//! those crates; interruption, watching and damaged files have tests of their own beside this one.

mod explanations;
mod keys;
mod storage;

use tests::place::{Place, Ran};

#[track_caller]
fn good(ran: Ran) -> Ran {
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    ran
}

/// Stages that executed in a run of `//:run`, by the last line on standard error.
#[track_caller]
fn executed(place: &Place, arguments: &[&str]) -> usize {
    let ran = good(place.run(arguments));
    let line = ran.err.lines().find(|line| line.contains(" stages executed, "));
    line.map_or(0, |line| line.split(' ').next().and_then(|count| count.parse().ok()).expect("a count"))
}
