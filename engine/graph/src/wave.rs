//! Many queries at once, outside of any query.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rayon::prelude::*;
use store::KeyBuilder;

use crate::{Db, Engine, Event, Label, cancellation};

pub(crate) struct Wave<'a> {
    pub(crate) label: &'a Label,
    pub(crate) name: &'static str,
    pub(crate) shuffle: Option<u64>,
}

pub(crate) fn run<K: Sync>(engine: &Engine, wave: Wave<'_>, pieces: &[K], work: impl Fn(&Engine, &K) + Sync + Send) {
    let Wave { label, name, shuffle } = wave;
    let total = pieces.len();
    let shared = engine.shared();
    shared.tell(&Event::WaveStarted { label: label.clone(), wave: name, total });
    let (started, done) = (Instant::now(), AtomicUsize::new(0));
    let order = order(total, name, shuffle);
    let seed = engine.clone();
    engine.pool().install(|| {
        order.into_par_iter().with_max_len(1).for_each_with(seed, |engine, index| {
            if engine.shared().is_interrupted() {
                return;
            }
            // A stopped piece gives nothing, and nobody asks for it.
            if cancellation::catch(|| work(engine, &pieces[index])).is_err() {
                return;
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            engine.shared().tell(&Event::WaveAdvanced { label: label.clone(), wave: name, done, total });
        });
    });
    shared.tell(&Event::WaveEnded { label: label.clone(), wave: name, elapsed: started.elapsed() });
}

/// The pieces' own order, or one drawn from the seed.
fn order(total: usize, name: &str, shuffle: Option<u64>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..total).collect();
    if let Some(seed) = shuffle {
        order.sort_by_cached_key(|index| KeyBuilder::new("wave order").number(seed).text(name).number(*index as u64).finish());
    }
    order
}
