//! Failures on demand, for tests: every call of the store on files is counted, as is each operation on its database, and chosen ones
//! fail. For the whole process, so a test that uses this is alone in its file.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

static CALLS: AtomicU64 = AtomicU64::new(0);
static FIRST: AtomicU64 = AtomicU64::new(u64::MAX);
static LAST: AtomicU64 = AtomicU64::new(u64::MAX);
static ERRNO: AtomicI32 = AtomicI32::new(0);

/// Lets the calls with these numbers, from 0, fail with the operating system's error `errno`, and starts counting.
pub fn fail(calls: std::ops::RangeInclusive<u64>, errno: i32) {
    ERRNO.store(errno, Ordering::Relaxed);
    LAST.store(*calls.end(), Ordering::Relaxed);
    FIRST.store(*calls.start(), Ordering::Relaxed);
    CALLS.store(0, Ordering::Relaxed);
}

/// Lets no call fail any more; the calls since [`fail`].
pub fn stop() -> u64 {
    FIRST.store(u64::MAX, Ordering::Relaxed);
    CALLS.load(Ordering::Relaxed)
}

/// Counts a call.
pub(crate) fn next() -> io::Result<()> {
    let number = CALLS.fetch_add(1, Ordering::Relaxed);
    let fails = (FIRST.load(Ordering::Relaxed)..=LAST.load(Ordering::Relaxed)).contains(&number);
    if fails { Err(io::Error::from_raw_os_error(ERRNO.load(Ordering::Relaxed))) } else { Ok(()) }
}
