//! Many queries at once, outside of any query.

use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use store::{Digest, KeyBuilder};

use crate::shared::lock;
use crate::{Db, Engine, Event, Label, cancellation};

pub(crate) struct Wave<'a> {
    pub(crate) label: &'a Label,
    pub(crate) name: &'static str,
    pub(crate) shuffle: Option<u64>,
}

/// Calls `work` for `pieces` and for those that it gives, on all worker threads; see [`Engine::wave`] and
/// [`Engine::growing_wave`].
pub(crate) fn run<K: Send>(engine: &Engine, wave: &Wave<'_>, pieces: Vec<(u64, K)>, work: impl Fn(&Engine, K) -> Vec<(u64, K)> + Sync) {
    let (started, label) = (Instant::now(), wave.label.clone());
    engine.shared().tell(&Event::WaveStarted { label: label.clone(), wave: wave.name, total: pieces.len() });
    let queue = Queue { wave, state: Mutex::new(State::default()), changed: Condvar::new() };
    queue.add(pieces);
    let (queue, work) = (&queue, &work);
    engine.pool().in_place_scope(|scope| {
        for _ in 0..engine.pool().current_num_threads() {
            let engine = engine.clone();
            scope.spawn(move |_| queue.drain(&engine, work));
        }
    });
    engine.shared().tell(&Event::WaveEnded { label, wave: wave.name, elapsed: started.elapsed() });
}

/// Pieces that wait, and how many are being worked on.
struct Queue<'a, K> {
    wave: &'a Wave<'a>,
    state: Mutex<State<K>>,
    changed: Condvar,
}

struct State<K> {
    waiting: BinaryHeap<Piece<K>>,
    running: usize,
    done: usize,
    total: usize,
}

impl<K> Default for State<K> {
    fn default() -> State<K> {
        State { waiting: BinaryHeap::new(), running: 0, done: 0, total: 0 }
    }
}

/// What is taken first: the costliest, of equal ones the one that came first; with a seed, any.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    drawn: Option<Digest>,
    cost: u64,
    place: std::cmp::Reverse<usize>,
}

struct Piece<K> {
    rank: Rank,
    key: K,
}

impl<K> PartialEq for Piece<K> {
    fn eq(&self, other: &Piece<K>) -> bool {
        self.rank == other.rank
    }
}

impl<K> Eq for Piece<K> {}

impl<K> PartialOrd for Piece<K> {
    fn partial_cmp(&self, other: &Piece<K>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Piece<K> {
    fn cmp(&self, other: &Piece<K>) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl<K> Queue<'_, K> {
    fn add(&self, pieces: Vec<(u64, K)>) {
        let mut state = lock(&self.state);
        for (cost, key) in pieces {
            let place = state.total;
            let draw = |seed| KeyBuilder::new("wave order").number(seed).text(self.wave.name).number(place as u64).finish();
            let rank = Rank { drawn: self.wave.shuffle.map(draw), cost, place: std::cmp::Reverse(place) };
            state.waiting.push(Piece { rank, key });
            state.total += 1;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Works on pieces until there are none and none can come.
    fn drain(&self, engine: &Engine, work: impl Fn(&Engine, K) -> Vec<(u64, K)>) {
        while let Some(running) = self.take() {
            if engine.shared().is_interrupted() {
                continue;
            }
            // A stopped piece gives nothing, and nobody asks for it.
            let Ok(more) = cancellation::catch(|| work(engine, running.key)) else { continue };
            self.add(more);
            drop(running.end);
            let (done, total) = self.count();
            engine.shared().tell(&Event::WaveAdvanced { label: self.wave.label.clone(), wave: self.wave.name, done, total });
        }
    }

    fn take(&self) -> Option<Running<'_, K>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(piece) = state.waiting.pop() {
                state.running += 1;
                return Some(Running { key: piece.key, end: End { state: &self.state, changed: &self.changed } });
            }
            if state.running == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn count(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.done, state.total)
    }
}

/// A piece that is being worked on.
struct Running<'a, K> {
    key: K,
    end: End<'a, K>,
}

/// Counts a piece as done, also when it is left by a panic: the others would wait for ever.
struct End<'a, K> {
    state: &'a Mutex<State<K>>,
    changed: &'a Condvar,
}

impl<K> Drop for End<'_, K> {
    fn drop(&mut self) {
        let mut state = lock(self.state);
        state.running -= 1;
        state.done += 1;
        drop(state);
        self.changed.notify_all();
    }
}
