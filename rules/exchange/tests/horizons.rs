//! Horizons of known phases against their bounds.

mod phases;

use exchange::{Figures, Problem, schedule, validate};
use phases::generated::{Sort, phase};

fn figures(problem: &Problem) -> Figures {
    let schedule = schedule(problem).expect("a sound problem");
    validate(problem, &schedule).expect("a sound schedule");
    schedule.figures
}

fn limit(bound: u32) -> u32 {
    bound * 105 / 100 + 10
}

#[test]
fn recorded_phases_are_within_five_percent_and_ten_events_of_the_bound() {
    for (name, text, reference) in phases::RECORDED {
        let figures = figures(&phases::parse(text));
        assert!(figures.horizon <= limit(figures.lower_bound).min(reference), "{name}: {figures:?}");
        assert!(figures.horizon <= figures.initial_horizon, "{name}");
    }
}

#[test]
fn gather_of_all_tiles_is_within_five_percent_of_the_bound() {
    let figures = figures(&phases::gather());
    assert!(figures.horizon <= limit(figures.lower_bound), "{figures:?}");
}

/// Gaps above the bound in percent of it, by sort: what is reached, rounded up. Bounds do not see chains of transfers that wait for
/// each other.
const GENERATED: [(Sort, u32); 7] = [
    (Sort::Permutation, 2),
    (Sort::Fragments, 3),
    (Sort::Unequal, 0),
    (Sort::Multicast, 9),
    (Sort::Mixture, 6),
    (Sort::Duplex, 1),
    (Sort::Chain, 123),
];

#[test]
fn generated_phases_of_every_sort_are_sound_and_as_close_to_the_bound_as_known() {
    assert_eq!(GENERATED.map(|(sort, _)| sort), Sort::ALL);
    // With EXCHANGE_LARGE set the sizes of the bench, too: half a minute.
    let is_large = std::env::var_os("EXCHANGE_LARGE").is_some();
    let sizes: &[(u32, u32)] = if is_large { &[(64, 1000), (1472, 3000), (1472, 100_000)] } else { &[(64, 1000), (1472, 3000)] };
    for (sort, percent) in GENERATED {
        for (tiles, transfers) in sizes {
            let figures = figures(&phase(sort, *tiles, *transfers));
            let gap = (figures.gap() * 100).div_ceil(figures.lower_bound);
            assert!(gap <= percent || *transfers > 3000, "{sort:?} on {tiles} tiles: {gap} %, {figures:?}");
        }
    }
}
