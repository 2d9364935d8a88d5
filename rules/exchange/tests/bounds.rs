//! The clique bound against the best of all schedules of small phases, and against the route bound.

mod phases;

use exchange::{Place, Problem, Transfer, clique_bound, estimate, schedule};
use ipu21::route::{latency, route};
use phases::tile;

/// A phase of three or four multicasts among a few tiles.
fn small(draw: &mut impl FnMut(u32) -> u32) -> Problem {
    // Near ones and, every other time, tiles far apart, whose clocks differ the most.
    let numbers: [u16; 4] = if draw(2) == 0 { [0, 1, 2, 3] } else { [0, 736, 90, 1471] };
    let transfer = |draw: &mut dyn FnMut(u32) -> u32, index: u32| {
        let source = draw(4) as usize;
        let mut others: Vec<u16> = (0..4).filter(|at| *at != source).map(|at| numbers[at]).collect();
        others.truncate(1 + draw(3) as usize);
        let place = |number: u16, buffer: u32| Place { tile: tile(number), buffer: exchange::BufferId(buffer), offset: 64 * index };
        Transfer {
            source: place(numbers[source], 0),
            words: 1 + draw(9),
            destinations: others.into_iter().map(|number| place(number, 1)).collect(),
        }
    };
    let count = 3 + draw(2);
    Problem { transfers: (0..count).map(|index| transfer(draw, index)).collect(), serial: Vec::new() }
}

/// A message as it is seen here: natural start, words, end behind the start, and its windows as (endpoint, delay).
struct Message {
    natural: i32,
    words: i32,
    tail: i32,
    windows: Vec<(u32, i32)>,
}

fn message(transfer: &Transfer) -> Message {
    let source = transfer.source.tile;
    let paths = || transfer.destinations.iter().map(|place| (place.tile, route(source.physical(), place.tile.physical()).offset));
    let received = paths().map(|(tile, offset)| (u32::from(tile.get()) + 10_000, offset + 1));
    let words = transfer.words as i32;
    let longest = transfer.destinations.iter().map(|place| latency(source.physical(), place.tile.physical())).max().unwrap_or(0);
    Message {
        natural: paths().map(|(_, offset)| -offset).fold(0, i32::max),
        words,
        tail: words + longest + 5,
        windows: received.chain([(u32::from(source.get()), 0)]).collect(),
    }
}

fn meet(one: (&Message, i32), other: (&Message, i32)) -> bool {
    one.0.windows.iter().any(|(end, delay)| {
        let overlaps = |window: &&(u32, i32)| {
            let (first, second) = (one.1 + delay, other.1 + window.1);
            window.0 == *end && first < second + other.0.words && second < first + one.0.words
        };
        other.0.windows.iter().any(|window| overlaps(&window))
    })
}

/// The earliest end over all starts that keep the windows apart, whatever else the rules ask for; not above `best`.
fn shortest(messages: &[Message], placed: &mut Vec<i32>, end: i32, best: &mut i32) {
    let Some(next) = messages.get(placed.len()) else {
        *best = end;
        return;
    };
    let mut start = next.natural;
    while end.max(start + next.tail) < *best {
        if !messages.iter().zip(placed.iter()).any(|(message, at)| meet((message, *at), (next, start))) {
            placed.push(start);
            shortest(messages, placed, end.max(start + next.tail), best);
            placed.pop();
        }
        start += 1;
    }
}

#[test]
fn no_schedule_of_a_small_phase_is_below_the_bounds() {
    let mut state = 5_u64;
    let mut draw = |count: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % count
    };
    let (mut stronger, mut met) = (0, 0);
    for _ in 0..300 {
        let problem = small(&mut draw);
        let messages: Vec<Message> = problem.transfers.iter().map(message).collect();
        let mut best = schedule(&problem).expect("a sound problem").figures.horizon as i32 + 1;
        shortest(&messages, &mut Vec::new(), 0, &mut best);
        let bound = clique_bound(&problem);
        assert!(bound.max(estimate(&problem)) as i32 <= best, "{bound} above {best}: {problem:?}");
        stronger += u32::from(bound > estimate(&problem));
        met += u32::from(bound as i32 == best);
    }
    assert!(stronger > 20 && met > 20, "stronger than the route bound {stronger} times, met {met} times");
}

#[test]
fn broadcasts_of_groups_cost_more_than_their_routes() {
    let mlp3 = phases::RECORDED.iter().find(|(name, ..)| *name == "mlp3_n128_d128_t64_p02").expect("a recorded phase");
    let problem = phases::parse(mlp3.1);
    assert_eq!((estimate(&problem), clique_bound(&problem)), (2022, 2120));
    assert_eq!(schedule(&problem).expect("a sound problem").figures.lower_bound, 2120);
}

#[test]
fn phases_without_multicasts_are_left_to_the_route_bound() {
    let p06 = phases::RECORDED.iter().find(|(name, ..)| *name == "attn_h1_t64_p06").expect("a recorded phase");
    assert_eq!(clique_bound(&phases::parse(p06.1)), 0);
}
