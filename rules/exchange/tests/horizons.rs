//! Horizons of known phases against their bounds.

mod phases;

use exchange::{schedule, validate};

#[test]
fn recorded_phases_are_within_eleven_percent_of_the_bound_and_under_the_reference() {
    for (name, text, reference) in phases::RECORDED {
        let problem = phases::parse(text);
        let schedule = schedule(&problem).expect("a sound problem");
        validate(&problem, &schedule).expect("a sound schedule");
        let figures = schedule.figures;
        let limit = figures.lower_bound * 111 / 100;
        assert!(figures.horizon <= limit.min(reference), "{name}: horizon {} over bound {}", figures.horizon, figures.lower_bound);
        assert!(figures.horizon <= figures.initial_horizon, "{name}");
    }
}

#[test]
fn gather_of_all_tiles_is_within_five_percent_of_the_bound() {
    let problem = phases::gather();
    let schedule = schedule(&problem).expect("a sound problem");
    validate(&problem, &schedule).expect("a sound schedule");
    assert!(schedule.figures.horizon * 100 <= schedule.figures.lower_bound * 105, "{:?}", schedule.figures);
}
