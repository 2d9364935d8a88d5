//! One process at a time works on a key.

use std::fs::{self, File, TryLockError};

use camino::Utf8Path;

use crate::{Digest, StoreFault};

/// An advisory lock on a key, held until dropped or until the process ends in any way.
///
/// Keys share 4,096 lock files (the first 12 bits of the key), so that the files never grow in number. A holder must
/// not ask for a second lock.
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
        // Closing the file unlocks it as well; an error here changes nothing.
        let _ = self.file.unlock();
    }
}

pub(crate) fn lock(directory: &Utf8Path, key: &Digest) -> Result<KeyLock, StoreFault> {
    lock_file(directory, &key.to_string()[..3])
}

pub(crate) fn lock_file(directory: &Utf8Path, name: &str) -> Result<KeyLock, StoreFault> {
    let path = directory.join(name);
    let open = || File::options().create(true).truncate(false).write(true).open(&path);
    let file = open()
        .or_else(|_| fs::create_dir_all(directory).and_then(|()| open()))
        .map_err(|error| StoreFault::file("open the lock", &path, &error))?;
    let waited = match file.try_lock() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => {
            file.lock().map_err(|error| StoreFault::file("lock", &path, &error))?;
            true
        }
        Err(TryLockError::Error(error)) => return Err(StoreFault::file("lock", &path, &error)),
    };
    Ok(KeyLock { file, waited })
}
