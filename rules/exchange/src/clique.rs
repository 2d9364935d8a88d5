//! The clique bound: messages that pairwise share an endpoint go one after the other, whatever the schedule.
//!
//! Take messages each two of which have the same sender or a common receiver. At an endpoint e that A and B share, their windows
//! `[S + o, S + o + n)` on e's clock are disjoint, where o is 0 at a sender and the select's delay at a receiver (machine.md c.5; I9, I10).
//! So either `S_B >= S_A + n_A + d_AB` with `d_AB = o_A - o_B`, or the same with A and B exchanged. Where they share several endpoints
//! and `n_A + n_B` exceeds the spread of `o_A - o_B` over them, the order is the same at all of them: the contrary order at two
//! endpoints would need `d + n_A + n_B <= d'` for two of these differences. Then the largest difference holds. With a wider spread
//! one endpoint alone is taken. Negative waits are possible, since clocks differ from tile to tile.
//!
//! "A is before B" is thus decided for every pair, and it has no cycles when no sum of `n + d` along a cycle of waits is zero or less:
//! around a cycle the sum would have to be at most 0. It is therefore a sequence. The sum along it gives
//!
//! ```text
//! horizon >= head(first) + sum of n + sum of d(neighbours) + tail(last)
//! ```
//!
//! with `head` the natural start and `tail` the longest latency and the receiver's guard. With a node between last and first the
//! sequence is a permutation without fixed points, so the cheapest such permutation costs no more. Messages that share sender and all
//! receivers are one node with the sum of their words: waits are replaced by those along the cheapest way over other nodes, which
//! is at most the wait along any way, so a sequence costs no less than its first visits of each node. Words are those of messages as
//! [`crate::schedule`] cuts transfers: a transfer is one message unless it is longer than a message may be.

use std::collections::BTreeMap;

use crate::assignment::{FORBIDDEN, cheapest};
use crate::bound::RECEIVER_GUARD;
use crate::job::Jobs;
use crate::problem::Problem;

/// The most nodes of a clique; larger ones are cut, which only lowers the bound.
const MOST_NODES: usize = 64;
/// Nodes from which cliques are grown.
const SEEDS: usize = 4;
/// The most places of all nodes: with more the bound is left out. A gather among 64 tiles has 4,096, one among 512 has 262,144.
const MOST_ENDS: usize = 300_000;
/// The most places of all messages, before those with the same places are one node.
const MOST_PLACES: usize = 4 * MOST_ENDS;

/// The clique bound of a sound phase in events; 0 where no clique says more than the route bound could.
#[must_use]
pub fn clique_bound(problem: &Problem) -> u32 {
    bound_of(&Jobs::new(problem, false))
}

/// Messages with one sender and the same receivers.
struct Node {
    words: i64,
    /// Fewest words of one of them.
    shortest: i64,
    head: i64,
    tail: i64,
    /// Endpoints with the delay from the start to the window there, ascending: twice the tile, plus one for a receiver.
    ends: Vec<(u32, i64)>,
}

/// The clique bound. Without multicasts a clique is a star or a triangle, and of stars the route bound says enough.
pub(crate) fn bound_of(jobs: &Jobs) -> u32 {
    if jobs.has_pairs || jobs.is_point_to_point() {
        return 0;
    }
    let places: usize = jobs.jobs.iter().map(|job| 1 + jobs.arrivals(job).len()).sum();
    if places > MOST_PLACES {
        return 0;
    }
    let nodes = nodes(jobs);
    if nodes.iter().map(|node| node.ends.len()).sum::<usize>() > MOST_ENDS {
        return 0;
    }
    let bounds = (0..nodes.len().min(SEEDS)).map(|seed| of_clique(&clique(&nodes, seed)));
    bounds.max().unwrap_or(0).max(0) as u32
}

/// The nodes of a phase, most words first.
fn nodes(jobs: &Jobs) -> Vec<Node> {
    let mut nodes = BTreeMap::<Vec<(u32, i64)>, Node>::new();
    for job in &jobs.jobs {
        let receivers = jobs.arrivals(job).iter().map(|arrival| (2 * arrival.tile + 1, i64::from(arrival.select)));
        let mut ends: Vec<(u32, i64)> = receivers.chain([(2 * job.sender, 0)]).collect();
        ends.sort_unstable();
        let latency = jobs.arrivals(job).iter().map(|arrival| arrival.pointer).max().unwrap_or(0);
        let words = i64::from(job.words);
        let made = || Node {
            words: 0,
            shortest: words,
            head: i64::from(job.natural),
            tail: i64::from(latency + RECEIVER_GUARD),
            ends: ends.clone(),
        };
        let node = nodes.entry(ends.clone()).or_insert_with(made);
        node.words += words;
        node.shortest = node.shortest.min(words);
    }
    let mut nodes: Vec<Node> = nodes.into_values().collect();
    nodes.sort_by_key(|node| (-node.words * node.ends.len() as i64, node.ends[0].0));
    nodes
}

/// A seed and, in their order, the nodes that share an endpoint with all taken before.
fn clique(nodes: &[Node], seed: usize) -> Vec<&Node> {
    let mut members = vec![&nodes[seed]];
    for (index, node) in nodes.iter().enumerate() {
        if members.len() < MOST_NODES && index != seed && members.iter().all(|member| differences(member, node).next().is_some()) {
            members.push(node);
        }
    }
    members
}

/// At each endpoint that two nodes share, how much later the window of the first is behind its start.
fn differences<'a>(first: &'a Node, second: &'a Node) -> impl Iterator<Item = i64> + 'a {
    let mut others = second.ends.iter().peekable();
    first.ends.iter().filter_map(move |(end, delay)| {
        while others.next_if(|other| other.0 < *end).is_some() {}
        others.next_if(|other| other.0 == *end).map(|other| delay - other.1)
    })
}

/// Waits behind the words of the first, when it goes first, and behind those of the second, when that does.
fn waits(first: &Node, second: &Node) -> (i64, i64) {
    let (mut least, mut most, mut one) = (i64::MAX, i64::MIN, 0);
    for difference in differences(first, second) {
        (least, most, one) = (least.min(difference), most.max(difference), difference);
    }
    if most - least < first.shortest + second.shortest { (most, -least) } else { (one, -one) }
}

/// The bound of a clique; 0 where waits around a cycle are below 0, so that the order need not be a sequence.
fn of_clique(members: &[&Node]) -> i64 {
    let count = members.len();
    let mut wait = vec![0; count * count];
    for (first, one) in members.iter().enumerate() {
        for (second, other) in members.iter().enumerate().skip(first + 1) {
            (wait[first * count + second], wait[second * count + first]) = waits(one, other);
        }
    }
    close(&mut wait, count);
    if (0..count).any(|member| wait[member * count + member] < 0) {
        return 0;
    }
    let words: i64 = members.iter().map(|member| member.words).sum();
    words + cheapest(&costs(members, &wait), count + 1)
}

/// Each wait becomes the least along any way.
fn close(wait: &mut [i64], count: usize) {
    for over in 0..count {
        for from in 0..count {
            for to in 0..count {
                wait[from * count + to] = wait[from * count + to].min(wait[from * count + over] + wait[over * count + to]);
            }
        }
    }
}

/// The table of a permutation: node 0 stands between the last and the first.
fn costs(members: &[&Node], wait: &[i64]) -> Vec<i64> {
    let count = members.len();
    let size = count + 1;
    let mut costs = vec![FORBIDDEN; size * size];
    for from in 0..count {
        // The last node met for the first time need not be the last of all.
        let tails = (0..count).map(|last| wait[from * count + last] + members[last].tail);
        costs[(from + 1) * size] = tails.min().unwrap_or(0);
        costs[from + 1] = members[from].head;
        for to in (0..count).filter(|to| *to != from) {
            costs[(from + 1) * size + to + 1] = wait[from * count + to];
        }
    }
    costs
}
