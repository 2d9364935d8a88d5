//! Orders in which a list scheduler takes the messages of a phase.

use crate::job::{Job, Jobs};
use crate::schedule::Kind;
use crate::{colouring, permutations};

/// Counts looked at for each message while permutations are sought; about 1 us.
const PERMUTATION_WORK: u64 = 200;

/// Words each tile sends and receives, by dense tile.
pub(crate) struct Loads {
    sent: Vec<i64>,
    received: Vec<i64>,
}

impl Loads {
    pub(crate) fn new(jobs: &Jobs) -> Self {
        let mut loads = Self { sent: vec![0; jobs.tiles.len()], received: vec![0; jobs.tiles.len()] };
        for job in &jobs.jobs {
            loads.sent[job.sender as usize] += i64::from(job.words);
            for arrival in jobs.arrivals(job) {
                loads.received[arrival.tile as usize] += i64::from(job.words);
            }
        }
        loads
    }

    /// Load of the busiest endpoint of a job, then the sum over its endpoints.
    pub(crate) fn weight(&self, jobs: &Jobs, job: &Job) -> (i64, i64) {
        let sent = self.sent[job.sender as usize];
        let received = jobs.arrivals(job).iter().map(|arrival| self.received[arrival.tile as usize]);
        received.fold((sent, sent), |(most, sum), load| (most.max(load), sum + load))
    }
}

/// The jobs in the order of a kind, dependencies first; `None` where the kind has no meaning.
pub(crate) fn order(jobs: &Jobs, kind: Kind) -> Option<Vec<u32>> {
    let loads = Loads::new(jobs);
    let weight = |job: &Job| {
        let (most, sum) = loads.weight(jobs, job);
        (-most, -sum)
    };
    let keys: Vec<[i64; 4]> = match kind {
        Kind::Program | Kind::Clock => jobs.jobs.iter().map(|_| [0; 4]).collect(),
        Kind::Loaded => keyed(jobs, |job| [weight(job).0, weight(job).1, -i64::from(job.words), 0]),
        Kind::Multicast if jobs.is_point_to_point() => return None,
        Kind::Multicast => keyed(jobs, |job| [-(jobs.arrivals(job).len() as i64), weight(job).0, weight(job).1, -i64::from(job.words)]),
        Kind::Ring => keyed(jobs, |job| [distance(jobs, job), i64::from(job.first_word), 0, 0]),
        Kind::Permutation => permutations(jobs)?.into_iter().map(|step| [i64::from(step), 0, 0, 0]).collect(),
        Kind::Colour => colours(jobs)?.into_iter().map(|colour| [i64::from(colour), 0, 0, 0]).collect(),
    };
    let mut order: Vec<u32> = (0..jobs.jobs.len() as u32).collect();
    let levels = levels(jobs);
    order.sort_by_key(|index| (levels[*index as usize], keys[*index as usize]));
    Some(order)
}

fn keyed(jobs: &Jobs, key: impl Fn(&Job) -> [i64; 4]) -> Vec<[i64; 4]> {
    jobs.jobs.iter().map(key).collect()
}

/// How far round the ring of participating tiles the first receiver is from the sender.
fn distance(jobs: &Jobs, job: &Job) -> i64 {
    let count = jobs.tiles.len() as u32;
    let receiver = jobs.arrivals(job).first().map_or(job.sender, |arrival| arrival.tile);
    i64::from((receiver + count - job.sender) % count)
}

fn colours(jobs: &Jobs) -> Option<Vec<u32>> {
    Some(colouring::colour(&edges(jobs)?, jobs.tiles.len()))
}

/// Steps of permutations; `None` for multicasts, and where few pairs have several messages.
fn permutations(jobs: &Jobs) -> Option<Vec<u32>> {
    let edges = edges(jobs)?;
    let mut pairs = edges.clone();
    pairs.sort_unstable();
    pairs.dedup();
    if 2 * pairs.len() > edges.len() {
        return None;
    }
    permutations::steps(&edges, jobs.tiles.len(), PERMUTATION_WORK * edges.len() as u64)
}

/// Sender and receiver of every message; `None` when one has several.
fn edges(jobs: &Jobs) -> Option<Vec<(u32, u32)>> {
    let edge = |job: &Job| match jobs.arrivals(job) {
        [arrival] => Some((job.sender, arrival.tile)),
        _ => None,
    };
    jobs.jobs.iter().map(edge).collect()
}

/// Longest chain of dependencies in front of each job. Jobs depend only on jobs with lower numbers.
fn levels(jobs: &Jobs) -> Vec<u32> {
    let mut levels = vec![0; jobs.jobs.len()];
    for (index, job) in jobs.jobs.iter().enumerate() {
        levels[index] = jobs.dependencies(job).iter().map(|dependency| levels[dependency.job as usize] + 1).max().unwrap_or(0);
    }
    levels
}
