//! Whether the planner ranks plans as the simulator does: `cargo bench -p tests --bench ranking`.
//!
//! Plans of one attention head that differ in the grids of the attention and of the projections are compiled and simulated, each with
//! the rest of its layout chosen. Printed: of each plan the clocks by which the planner ranks it and the simulated ones, the rank
//! correlation (Spearman), and the regret, what the plan chosen with everything free takes above the best one seen.

use compiler::layout::{GridChoice, Layout};
use tests::compiled::{self, Task, Unchanged};

/// Tokens and width of the head.
const SHAPE: (u32, u32) = (729, 72);
const TILES: u32 = 64;
/// Groups of queries and of keys.
const ATTENTION: [(u32, u32); 16] = [
    (8, 8),
    (16, 4),
    (4, 16),
    (32, 2),
    (64, 1),
    (2, 23),
    (6, 10),
    (10, 6),
    (12, 5),
    (5, 12),
    (7, 9),
    (9, 7),
    (21, 3),
    (3, 16),
    (16, 3),
    (8, 4),
];
/// Parts of the rows of the projections.
const ROWS: [u32; 3] = [46, 23, 12];

/// Modelled and simulated clocks.
struct Priced {
    name: String,
    modelled: u64,
    simulated: u64,
}

fn priced(name: String, task: &Task) -> Result<Priced, compiled::Refusal> {
    let compiled = compiled::compile(task, &Unchanged)?;
    let tensors = compiled::drawn(&compiled::model(task)?, 1);
    let results = compiled::run(&compiled, &tensors, &Unchanged).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    Ok(Priced { name, modelled: compiled::modelled(&compiled.expanded)?.total, simulated: results.clocks })
}

fn with_grids((queries, keys): (u32, u32), rows: u32) -> Task {
    let attention = GridChoice { queries: Some(queries), keys: Some(keys), ..GridChoice::default() };
    let projection = GridChoice { rows: Some(rows), ..GridChoice::default() };
    let projections = ["q", "k", "v"].map(|name| (name.to_owned(), projection));
    let grids = projections.into_iter().chain([("output".to_owned(), attention)]).collect();
    compiled::attention(SHAPE.0, SHAPE.1, 1, Layout { grids, ..Layout::on(TILES) })
}

/// Ranks from 0; equal values share the mean of theirs.
fn ranks(values: &[u64]) -> Vec<f64> {
    let rank = |value: &u64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal - 1) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

/// The correlation of the ranks of two lists of one length.
fn spearman(one: &[u64], other: &[u64]) -> f64 {
    let (one, other) = (ranks(one), ranks(other));
    let mean = (one.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    product(&one, &other) / (product(&one, &one) * product(&other, &other)).sqrt()
}

#[expect(clippy::print_stdout, reason = "the figures are the purpose of the program")]
fn main() {
    let mut plans = Vec::new();
    println!("{:<28}{:>10}{:>11}{:>9}", "queries x keys, rows", "modelled", "simulated", "error");
    for grid in ATTENTION {
        for rows in ROWS {
            let name = format!("{} x {}, {rows}", grid.0, grid.1);
            match priced(name.clone(), &with_grids(grid, rows)) {
                Ok(plan) => {
                    let error = 100.0 * (plan.modelled as f64 / plan.simulated as f64 - 1.0);
                    println!("{:<28}{:>10}{:>11}{error:>8.1}%", plan.name, plan.modelled, plan.simulated);
                    plans.push(plan);
                }
                Err(refusal) => println!("{name:<28}{refusal}"),
            }
        }
    }
    let chosen = priced("chosen".to_owned(), &compiled::attention(SHAPE.0, SHAPE.1, 1, Layout::on(TILES)));
    let chosen = chosen.unwrap_or_else(|refusal| panic!("{refusal}"));
    let of = |value: fn(&Priced) -> u64| plans.iter().map(value).collect::<Vec<_>>();
    let (modelled, simulated) = (of(|plan| plan.modelled), of(|plan| plan.simulated));
    let best = simulated.iter().copied().min().unwrap_or(0);
    println!("{} plans, rank correlation {:.4}", plans.len(), spearman(&modelled, &simulated));
    println!(
        "chosen {} clocks, best of these {best}, regret {:.2} %",
        chosen.simulated,
        100.0 * (chosen.simulated as f64 / best as f64 - 1.0)
    );
}
