//! Independent pieces of one stage's work on several threads. Results do not depend on how many.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The threads that a stage may use, its own among them.
#[derive(Debug)]
pub struct Threads {
    count: usize,
    helped_ns: AtomicU64,
}

impl Threads {
    /// So many.
    pub fn new(count: usize) -> Threads {
        Threads { count, helped_ns: AtomicU64::new(0) }
    }

    /// How long others than the stage's own worked, summed.
    pub fn helped(&self) -> Duration {
        Duration::from_nanos(self.helped_ns.load(Ordering::Relaxed))
    }
}

/// What `work` gives for each of `items`, in their order, on `threads` of which the caller's is one. They are plain
/// threads: whoever calls may be a worker of a pool, which must not take up other work while it waits.
pub(crate) fn spread<T: Sync, R: Send>(items: &[T], threads: &Threads, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut results = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            match items.get(index) {
                Some(item) => results.push((index, work(item))),
                None => return results,
            }
        }
    };
    let help = || {
        let started = Instant::now();
        let results = take();
        threads.helped_ns.fetch_add(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        results
    };
    let mut results = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads.count.min(items.len())).map(|_| scope.spawn(help)).collect();
        let mut results = take();
        for helper in helpers {
            results.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::{Threads, spread};

    #[test]
    fn results_stand_in_the_order_of_the_items_whatever_the_threads() {
        let items: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 2, 7, 200].map(Threads::new) {
            assert_eq!(spread(&items, &threads, |item| item * item), items.iter().map(|item| item * item).collect::<Vec<_>>());
        }
        assert_eq!(spread(&[], &Threads::new(4), |item: &u64| *item), Vec::<u64>::new());
    }

    #[test]
    fn help_of_others_is_told() {
        let meeting = std::sync::Barrier::new(2);
        let (alone, two) = (Threads::new(1), Threads::new(2));
        spread(&[(), ()], &alone, |()| ());
        assert_eq!(alone.helped(), std::time::Duration::ZERO);
        // Neither goes on without the other.
        spread(&[(), ()], &two, |()| meeting.wait().is_leader());
        assert!(two.helped() > std::time::Duration::ZERO);
    }
}
