//! One process at a time works on a key.

use std::fs::{File, TryLockError};
use std::sync::{Arc, Mutex};

use camino::{Utf8Path, Utf8PathBuf};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use crate::{Digest, StoreFault, disk, records};

/// An advisory lock on a key, held until dropped or until the process ends in any way.
///
/// Keys share the 65,536 bytes of one lock file, by the first two bytes of the key. A holder must not ask for a second lock.
#[derive(Debug)]
pub struct KeyLock {
    held: Held,
    waited: bool,
}

#[derive(Debug)]
enum Held {
    /// All of a file of its own.
    File(File),
    /// This byte of the file of all keys.
    Byte { file: Option<File>, number: u16, files: KeyFiles },
}

/// Open files of the locks of keys that nobody holds at the moment: opening and closing one took a twentieth of a small stage.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyFiles(Arc<Mutex<Vec<File>>>);

impl KeyLock {
    /// Whether another holder had to be waited for; then its result may be in the store by now.
    pub fn waited(&self) -> bool {
        self.waited
    }
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        match &mut self.held {
            // Closing the file unlocks it as well; an error here changes nothing.
            Held::File(file) => _ = file.unlock(),
            Held::Byte { file, number, files } => {
                if let Some(file) = file.take()
                    && fcntl(&file, FcntlArg::F_OFD_SETLK(&byte(libc::F_UNLCK, *number))).is_ok()
                {
                    records::lock(&files.0).push(file);
                }
            }
        }
    }
}

/// Locks the byte of the file `keys` that `key` begins with: a file for each of them would have to be made first, which
/// takes longer than a small stage.
pub(crate) fn lock(directory: &Utf8Path, files: &KeyFiles, key: &Digest) -> Result<KeyLock, StoreFault> {
    const NAME: &str = "keys";
    let [first, second, ..] = *key.as_bytes();
    let number = u16::from_be_bytes([first, second]);
    let idle = records::lock(&files.0).pop();
    let file = idle.map_or_else(|| open(directory, NAME).map(|(_, file)| file), Ok)?;
    // Of the open file and not of the process, so that it keeps threads apart as well.
    let wanted = byte(libc::F_WRLCK, number);
    let fault = |error: Errno| StoreFault::file("lock", &directory.join(NAME), &error.into());
    let waited = match fcntl(&file, FcntlArg::F_OFD_SETLK(&wanted)) {
        Ok(_) => false,
        Err(Errno::EAGAIN | Errno::EACCES) => {
            while let Err(error) = fcntl(&file, FcntlArg::F_OFD_SETLKW(&wanted)) {
                if error != Errno::EINTR {
                    return Err(fault(error));
                }
            }
            true
        }
        Err(error) => return Err(fault(error)),
    };
    Ok(KeyLock { held: Held::Byte { file: Some(file), number, files: files.clone() }, waited })
}

fn byte(kind: libc::c_int, number: u16) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: libc::off_t::from(number),
        l_len: 1,
        l_pid: 0,
    }
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
    Ok(KeyLock { held: Held::File(file), waited })
}

/// Shares the lock `name` with others who share it; waits for a holder who wants it alone.
pub(crate) fn share_file(directory: &Utf8Path, name: &str) -> Result<KeyLock, StoreFault> {
    let (path, file) = open(directory, name)?;
    disk::call(|| file.lock_shared()).map_err(|error| StoreFault::file("lock", &path, &error))?;
    Ok(KeyLock { held: Held::File(file), waited: false })
}

fn open(directory: &Utf8Path, name: &str) -> Result<(Utf8PathBuf, File), StoreFault> {
    let path = directory.join(name);
    let file = disk::open_or_create(&path).or_else(|_| disk::create_dir_all(directory).and_then(|()| disk::open_or_create(&path)));
    file.map_err(|error| StoreFault::file("open the lock", &path, &error)).map(|file| (path, file))
}
