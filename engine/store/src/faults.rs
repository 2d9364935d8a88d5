//! Failures on demand, for tests: every call of the store and of its database on files is counted, and chosen ones fail. For the whole
//! process, so a test that uses this is alone in its file.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use nix::errno::Errno;
use nix::libc;
use rusqlite::ffi;

static CALLS: AtomicU64 = AtomicU64::new(0);
static FIRST: AtomicU64 = AtomicU64::new(u64::MAX);
static LAST: AtomicU64 = AtomicU64::new(u64::MAX);
static ERRNO: AtomicI32 = AtomicI32::new(0);

/// Lets the calls with these numbers, from 0, fail with the operating system's error `errno`, and starts counting.
pub fn fail(calls: std::ops::RangeInclusive<u64>, errno: i32) {
    watch_database();
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

/// As SQLite wants it.
fn next_of_database() -> Option<c_int> {
    next().err().map(|error| {
        Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)).set();
        -1
    })
}

type Write = unsafe extern "C" fn(c_int, *const c_void, usize) -> isize;
type Read = unsafe extern "C" fn(c_int, *mut c_void, usize) -> isize;

unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    next_of_database().unwrap_or_else(|| unsafe { libc::open(path, flags, mode) })
}

unsafe extern "C" fn read(file: c_int, bytes: *mut c_void, length: usize) -> isize {
    next_of_database().map_or_else(|| unsafe { libc::read(file, bytes, length) }, |failed| failed as isize)
}

unsafe extern "C" fn write(file: c_int, bytes: *const c_void, length: usize) -> isize {
    match next_of_database() {
        None => unsafe { libc::write(file, bytes, length) },
        Some(failed) => {
            // As on a disk that is full.
            let errno = Errno::last();
            unsafe { libc::write(file, bytes, length / 2) };
            errno.set();
            failed as isize
        }
    }
}

unsafe extern "C" fn ftruncate(file: c_int, length: libc::off_t) -> c_int {
    next_of_database().unwrap_or_else(|| unsafe { libc::ftruncate(file, length) })
}

unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    next_of_database().unwrap_or_else(|| unsafe { libc::unlink(path) })
}

/// Puts the functions above in place of the system calls of SQLite's file layer, once.
fn watch_database() {
    static WATCHED: OnceLock<()> = OnceLock::new();
    WATCHED.get_or_init(|| {
        // SAFETY: each function has the type of the call that it replaces, as SQLite's table of them says; SQLite has not to be
        // idle, it reads the table at each call.
        unsafe {
            type Call = unsafe extern "C" fn();
            replace(c"open", std::mem::transmute::<unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int, Call>(open));
            replace(c"read", std::mem::transmute::<Read, Call>(read));
            replace(c"write", std::mem::transmute::<Write, Call>(write));
            replace(c"ftruncate", std::mem::transmute::<unsafe extern "C" fn(c_int, libc::off_t) -> c_int, Call>(ftruncate));
            replace(c"unlink", std::mem::transmute::<unsafe extern "C" fn(*const c_char) -> c_int, Call>(unlink));
        }
    });
}

unsafe fn replace(name: &CStr, call: unsafe extern "C" fn()) {
    let files = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
    let set = unsafe { (*files).xSetSystemCall };
    let done = set.map(|set| unsafe { set(files, name.as_ptr(), Some(call)) });
    assert_eq!(done, Some(ffi::SQLITE_OK), "SQLite has a call {name:?}");
}
