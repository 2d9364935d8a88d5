//! Independent pieces of one stage's work on several threads. Results do not depend on how many.

use std::sync::atomic::{AtomicUsize, Ordering};

/// What `work` gives for each of `items`, in their order, on `threads` threads of which the caller's is one. They are plain
/// threads: whoever calls may be a worker of a pool, which must not take up other work while it waits.
pub(crate) fn spread<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
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
    let mut results = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads.min(items.len())).map(|_| scope.spawn(take)).collect();
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
    use super::spread;

    #[test]
    fn results_stand_in_the_order_of_the_items_whatever_the_threads() {
        let items: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 2, 7, 200] {
            assert_eq!(spread(&items, threads, |item| item * item), items.iter().map(|item| item * item).collect::<Vec<_>>());
        }
        assert_eq!(spread(&[], 4, |item: &u64| *item), Vec::<u64>::new());
    }
}
