//! One process at a time works on a key.

use std::fs::{File, TryLockError};

use camino::{Utf8Path, Utf8PathBuf};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use crate::{Digest, StoreFault, disk};

/// An advisory lock on a key, held until dropped or until the process ends in any way.
///
/// Keys share the 65,536 bytes of one lock file, by the first two bytes of the key. A holder must not ask for a second lock.
#[derive(Debug)]
pub struct KeyLock {
    file: File,
    waited: bool,
}

impl KeyLock {
    /// Whether another holder had to be waited for; then its result may be in the store by now.
    pub fn waited(&self) -> bool {
        self.waited
    }
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        // Closing the file unlocks it as well, whichever kind of lock it is; an error here changes nothing.
        let _ = self.file.unlock();
    }
}

/// Locks the byte of the file `keys` that `key` begins with: a file for each of them would have to be made first, which
/// takes longer than a small stage.
pub(crate) fn lock(directory: &Utf8Path, key: &Digest) -> Result<KeyLock, StoreFault> {
    let [first, second, ..] = *key.as_bytes();
    let (path, file) = open(directory, "keys")?;
    // Of the open file and not of the process, so that it keeps threads apart as well.
    let byte = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: libc::off_t::from(u16::from_be_bytes([first, second])),
        l_len: 1,
        l_pid: 0,
    };
    let fault = |error: Errno| StoreFault::file("lock", &path, &error.into());
    let waited = match fcntl(&file, FcntlArg::F_OFD_SETLK(&byte)) {
        Ok(_) => false,
        Err(Errno::EAGAIN | Errno::EACCES) => {
            while let Err(error) = fcntl(&file, FcntlArg::F_OFD_SETLKW(&byte)) {
                if error != Errno::EINTR {
                    return Err(fault(error));
                }
            }
            true
        }
        Err(error) => return Err(fault(error)),
    };
    Ok(KeyLock { file, waited })
}

pub(crate) fn lock_file(directory: &Utf8Path, name: &str) -> Result<KeyLock, StoreFault> {
    let (path, file) = open(directory, name)?;
    let waited = match file.try_lock() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => {
            disk::call(|| file.lock()).map_err(|error| StoreFault::file("lock", &path, &error))?;
            true
        }
        Err(TryLockError::Error(error)) => return Err(StoreFault::file("lock", &path, &error)),
    };
    Ok(KeyLock { file, waited })
}

/// Shares the lock `name` with others who share it; waits for a holder who wants it alone.
pub(crate) fn share_file(directory: &Utf8Path, name: &str) -> Result<KeyLock, StoreFault> {
    let (path, file) = open(directory, name)?;
    disk::call(|| file.lock_shared()).map_err(|error| StoreFault::file("lock", &path, &error))?;
    Ok(KeyLock { file, waited: false })
}

fn open(directory: &Utf8Path, name: &str) -> Result<(Utf8PathBuf, File), StoreFault> {
    let path = directory.join(name);
    let file = disk::open_or_create(&path).or_else(|_| disk::create_dir_all(directory).and_then(|()| disk::open_or_create(&path)));
    file.map_err(|error| StoreFault::file("open the lock", &path, &error)).map(|file| (path, file))
}
