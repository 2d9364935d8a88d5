//! Where changes are heard of: the system tells them, or all files are looked at again and again.

use std::collections::BTreeSet;
use std::sync::mpsc::Sender;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use nix::sys::statfs::{self, FsType};
use notify::event::{Event, EventKind};
use notify::{Config, RecommendedWatcher, RecursiveMode, Watcher as _};

/// How often files are looked at when the system tells nothing.
pub(crate) const SCAN: Duration = Duration::from_millis(200);

/// What the loop of `watch` waits for.
pub(crate) enum Heard {
    /// Paths were touched.
    Touched(Vec<Utf8PathBuf>),
    /// The system lost count of the touched paths.
    Lost,
    /// The system cannot tell changes any more.
    Unable(String),
    /// The build ended, however it did.
    Ended,
    /// The user wants it to end.
    Stop,
}

/// See the module.
pub(crate) struct Watcher {
    heard: Sender<Heard>,
    told: Option<Told>,
}

struct Told {
    notify: RecommendedWatcher,
    folders: BTreeSet<Utf8PathBuf>,
}

impl Watcher {
    /// A watcher for files below `root`; with a sentence when it cannot be told of changes there.
    pub(crate) fn new(root: &Utf8Path, heard: Sender<Heard>) -> (Watcher, Option<String>) {
        let mut watcher = Watcher { heard, told: None };
        let why = match remote(root) {
            Some(name) => Some(format!("{root} is on a file system ({name}) that does not tell of changes made elsewhere")),
            None => watcher.listen().err(),
        };
        (watcher, why)
    }

    /// A watcher that never waits to be told.
    pub(crate) fn scanning(heard: Sender<Heard>) -> Watcher {
        Watcher { heard, told: None }
    }

    /// Whether all files must be looked at again and again.
    pub(crate) fn is_scanning(&self) -> bool {
        self.told.is_none()
    }

    /// Watches `folders` and no others. With a sentence when that cannot be done: from then on it is scanning.
    pub(crate) fn watch(&mut self, folders: &BTreeSet<Utf8PathBuf>) -> Option<String> {
        let told = self.told.as_mut()?;
        for folder in told.folders.difference(folders) {
            // What is gone is watched no more, whatever this says.
            let _ = told.notify.unwatch(folder.as_std_path());
        }
        let mut fault = None;
        for folder in folders.difference(&told.folders) {
            match told.notify.watch(folder.as_std_path(), RecursiveMode::NonRecursive) {
                Ok(()) => {}
                // It went away; the folder around it tells when it comes back.
                Err(_) if !folder.exists() => {}
                Err(error) => fault = Some(format!("cannot watch {folder}: {}", sentence(&error))),
            }
        }
        told.folders.clone_from(folders);
        if fault.is_some() {
            self.told = None;
        }
        fault
    }

    /// Forgets what was watched: folders of the same names may be others now.
    pub(crate) fn renew(&mut self) -> Option<String> {
        self.told.take()?;
        self.listen().err()
    }

    /// Looks at all files from now on.
    pub(crate) fn scan(&mut self) {
        self.told = None;
    }

    fn listen(&mut self) -> Result<(), String> {
        let heard = self.heard.clone();
        let tell = move |event: notify::Result<Event>| {
            if let Some(message) = message(event) {
                // Nobody listens any more when the program ends.
                let _ = heard.send(message);
            }
        };
        let notify =
            RecommendedWatcher::new(tell, Config::default()).map_err(|error| format!("cannot watch files: {}", sentence(&error)))?;
        self.told = Some(Told { notify, folders: BTreeSet::new() });
        Ok(())
    }
}

fn message(event: notify::Result<Event>) -> Option<Heard> {
    match event {
        Ok(event) if event.need_rescan() => Some(Heard::Lost),
        // Reading a file touches nothing.
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => None,
        Ok(event) => {
            let paths: Vec<Utf8PathBuf> = event.paths.into_iter().filter_map(|path| Utf8PathBuf::from_path_buf(path).ok()).collect();
            (!paths.is_empty()).then_some(Heard::Touched(paths))
        }
        Err(error) => Some(Heard::Unable(format!("watching failed: {}", sentence(&error)))),
    }
}

fn sentence(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => "the limit of watched folders is reached (fs.inotify.max_user_watches)".to_owned(),
        notify::ErrorKind::Io(error) => error.to_string(),
        _ => error.to_string(),
    }
}

/// The name of a file system that other machines may write to.
fn remote(root: &Utf8Path) -> Option<&'static str> {
    const REMOTE: [(FsType, &str); 4] = [
        (statfs::NFS_SUPER_MAGIC, "NFS"),
        (statfs::SMB_SUPER_MAGIC, "SMB"),
        (statfs::FUSE_SUPER_MAGIC, "FUSE"),
        (statfs::CODA_SUPER_MAGIC, "Coda"),
    ];
    let found = statfs::statfs(root.as_std_path()).ok()?.filesystem_type();
    REMOTE.iter().find(|(kind, _)| *kind == found).map(|(_, name)| *name)
}
