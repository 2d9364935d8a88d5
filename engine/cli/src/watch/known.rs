//! The files that the watched targets are made of, as they were when they were looked at last, and the folders around them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use graph::{Pattern, Workspace};
use ignore::WalkBuilder;
use store::FileStamp;

use crate::watch::Changes;

/// The names of the files that declare.
const BUILD_FILE: &str = "BUILD.toml";
const WORKSPACE_FILE: &str = "WORKSPACE.toml";

/// See the module.
pub(crate) struct Known {
    root: Utf8PathBuf,
    store: Utf8PathBuf,
    /// The folders below which a new package changes what is built.
    areas: Vec<Utf8PathBuf>,
    files: BTreeMap<Utf8PathBuf, Option<FileStamp>>,
    /// Of the files those that links lead to. A target reads one by the link's name, and only a look at all sources finds it.
    linked: BTreeSet<Utf8PathBuf>,
    folders: BTreeSet<Utf8PathBuf>,
    /// The declarations have faults, and any file may be the one that is missing.
    faulty: bool,
}

/// What touched paths come to after a look at the files.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Files that are not as they were, as they are now.
    changed: BTreeMap<Utf8PathBuf, Option<FileStamp>>,
    /// Whether one of them was there and is gone.
    pub(crate) lost: bool,
    /// Whether a file that declares targets is among them, or one came or went.
    pub(crate) declares: bool,
    /// Whether folders came or went, so that those to watch must be named again.
    pub(crate) folders: bool,
    /// Whether something came or went that may heal the faults of the declarations.
    heals: bool,
}

impl Look {
    /// Whether nothing changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && !self.heals
    }

    /// Adds what another look found.
    pub(crate) fn merge(&mut self, other: Look) {
        self.changed.extend(other.changed);
        self.lost |= other.lost;
        self.declares |= other.declares;
        self.folders |= other.folders;
        self.heals |= other.heals;
    }

    fn note(&mut self, file: &Utf8Path, old: Option<FileStamp>, new: Option<FileStamp>) {
        self.lost |= old.is_some() && new.is_none();
        self.declares |= old.is_some() != new.is_some() || matches!(file.file_name(), Some(BUILD_FILE | WORKSPACE_FILE));
        self.changed.insert(file.to_owned(), new);
    }
}

/// A file's change time comes from a clock that may be this much behind.
const CLOCK_GRAIN_NS: i128 = 10_000_000;

impl Known {
    /// Nothing but the workspace's own file; `store` is never looked at.
    pub(crate) fn new(root: &Utf8Path, store: &Utf8Path, patterns: &[Pattern]) -> Known {
        let areas = patterns.iter().filter_map(|pattern| match pattern {
            Pattern::Below(package) if package.repository.is_empty() => Some(root.join(&package.path)),
            _ => None,
        });
        let workspace_file = root.join(WORKSPACE_FILE);
        let stamp = stamp_of(&workspace_file);
        Known {
            root: root.to_owned(),
            store: store.to_owned(),
            areas: areas.collect(),
            files: BTreeMap::from([(workspace_file, stamp)]),
            linked: BTreeSet::new(),
            folders: BTreeSet::new(),
            faulty: false,
        }
    }

    /// Takes over what a loaded workspace is made of, and names the folders to watch. The files that are new to it are not
    /// known before [`Known::settle`].
    pub(crate) fn learn(&mut self, workspace: &Workspace) -> BTreeSet<Utf8PathBuf> {
        let mut wanted = files_of(workspace);
        self.linked = wanted.iter().filter_map(|file| behind(file)).collect();
        wanted.extend(self.linked.iter().cloned());
        self.files.retain(|file, _| wanted.contains(file));
        self.faulty = false;
        wanted.retain(|file| !self.files.contains_key(file));
        self.files.extend(wanted.iter().map(|file| (file.clone(), None)));
        self.name_folders();
        wanted
    }

    /// Makes new files known, which are watched by now. False when one of them may have changed after `loading` began and
    /// before it was watched: then what was loaded may be out of date.
    pub(crate) fn settle(&mut self, new: BTreeSet<Utf8PathBuf>, loading: SystemTime) -> bool {
        let since = loading.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128) - CLOCK_GRAIN_NS;
        let mut settled = true;
        for file in new {
            let stamp = stamp_of(&file);
            settled &= stamp.is_some_and(|stamp| stamp.changed_ns < since);
            self.files.insert(file, stamp);
        }
        settled
    }

    /// The declarations cannot be loaded: what was known stays known, and everything is watched that may heal them.
    pub(crate) fn learn_fault(&mut self) {
        self.faulty = true;
        self.name_folders();
    }

    /// Whether a touched path can be of interest: a known file, a folder on the way to one, or something new where new
    /// things matter.
    pub(crate) fn concerns(&self, path: &Utf8Path) -> bool {
        self.files.contains_key(path)
            || self.folders.contains(path)
            || self.files.range(path.to_owned()..).next().is_some_and(|(file, _)| file.starts_with(path))
            || (self.is_watched_area(path) && !self.is_skipped(path))
    }

    /// Looks at the files that `changes` may be about.
    pub(crate) fn look(&self, changes: &Changes) -> Look {
        let mut look = Look::default();
        if changes.is_everything() {
            look.folders = true;
            look.heals = self.faulty;
            self.compare(self.files.iter(), &mut look);
        } else {
            changes.paths().iter().for_each(|path| self.look_at(path, &mut look));
        }
        if look.folders {
            self.find_new_packages(&mut look);
        }
        look
    }

    fn look_at(&self, path: &Utf8Path, look: &mut Look) {
        let below = self.files.range(path.to_owned()..).take_while(|(file, _)| file.starts_with(path));
        self.compare(below, look);
        if path != self.root && self.is_skipped(path) {
            return;
        }
        if self.folders.contains(path) || (path.is_dir() && self.is_watched_area(path)) {
            look.folders = true;
        } else if !self.files.contains_key(path) && self.is_watched_area(path) {
            look.heals |= self.faulty;
            if path.file_name() == Some(BUILD_FILE) {
                look.note(path, None, stamp_of(path));
            }
        }
    }

    fn compare<'a>(&self, files: impl Iterator<Item = (&'a Utf8PathBuf, &'a Option<FileStamp>)>, look: &mut Look) {
        for (file, old) in files {
            let new = stamp_of(file);
            if new != *old {
                look.declares |= file.is_symlink() || self.linked.contains(file);
                look.note(file, *old, new);
            }
        }
    }

    /// Packages that patterns name and that were not there.
    fn find_new_packages(&self, look: &mut Look) {
        for folder in self.searched() {
            for found in self.folders_below(folder) {
                let file = found.join(BUILD_FILE);
                if !self.files.contains_key(&file)
                    && let Some(stamp) = stamp_of(&file)
                {
                    look.note(&file, None, Some(stamp));
                }
            }
        }
    }

    /// What was looked at is known from now on. Paths below the root, in order.
    pub(crate) fn accept(&mut self, look: Look) -> Vec<String> {
        let name = |file: &Utf8Path| file.strip_prefix(&self.root).unwrap_or(file).to_string();
        let names = look.changed.keys().map(|file| name(file)).collect();
        for (file, stamp) in look.changed {
            if let Some(known) = self.files.get_mut(&file) {
                *known = stamp;
            }
        }
        names
    }

    /// Whether a file of this name, as [`Known::accept`] gives it, belongs to what is watched.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.files.contains_key(&self.root.join(name))
    }

    /// The folders to watch, which were there when they were named.
    pub(crate) fn folders(&self) -> &BTreeSet<Utf8PathBuf> {
        &self.folders
    }

    /// Whether the workspace's root is where it was.
    pub(crate) fn has_root(&self) -> bool {
        self.root.is_dir()
    }

    /// Names the folders to watch: around every known file up to the root, and all that patterns search.
    pub(crate) fn name_folders(&mut self) {
        let mut folders = BTreeSet::new();
        for file in self.files.keys() {
            for folder in file.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.root)) {
                if !folders.insert(folder.to_owned()) {
                    break;
                }
            }
        }
        folders.extend(self.searched().into_iter().flat_map(|folder| self.folders_below(folder)));
        folders.retain(|folder| folder.is_dir());
        self.folders = folders;
    }

    /// Where files that are not known may matter.
    fn searched(&self) -> Vec<&Utf8Path> {
        if self.faulty { vec![&self.root] } else { self.areas.iter().map(Utf8PathBuf::as_path).collect() }
    }

    fn is_watched_area(&self, path: &Utf8Path) -> bool {
        self.searched().iter().any(|folder| path.starts_with(folder))
    }

    /// `folder` and those below it that are neither hidden nor ignored.
    fn folders_below(&self, folder: &Utf8Path) -> Vec<Utf8PathBuf> {
        let (root, store) = (self.root.clone(), self.store.clone());
        let walk = WalkBuilder::new(folder)
            .require_git(false)
            .filter_entry(move |entry| {
                let path = Utf8Path::from_path(entry.path());
                let folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                folder && path.is_some_and(|path| path == root || !is_skipped(path, &root, &store))
            })
            .build();
        walk.filter_map(Result::ok).filter_map(|entry| Utf8PathBuf::from_path_buf(entry.into_path()).ok()).collect()
    }

    fn is_skipped(&self, path: &Utf8Path) -> bool {
        is_skipped(path, &self.root, &self.store)
    }
}

/// Hidden files and folders, exported files and the store tell nothing.
fn is_skipped(path: &Utf8Path, root: &Utf8Path, store: &Utf8Path) -> bool {
    let Ok(relative) = path.strip_prefix(root) else { return true };
    let hidden = relative.components().any(|name| name.as_str().starts_with('.'));
    hidden || relative.starts_with("artifacts") || path.starts_with(store)
}

/// The file that a link leads to: what is read changes with the link and with that file.
fn behind(file: &Utf8Path) -> Option<Utf8PathBuf> {
    file.canonicalize_utf8().ok().filter(|real| real != file)
}

/// The files that `workspace` is made of, links as they are named.
fn files_of(workspace: &Workspace) -> BTreeSet<Utf8PathBuf> {
    let root = workspace.root();
    let mut files = BTreeSet::from([root.join(WORKSPACE_FILE)]);
    for target in workspace.targets().filter(|target| target.label().package().repository.is_empty()) {
        files.insert(root.join(&target.label().package().path).join(BUILD_FILE));
        for source in target.sources().iter().filter(|source| source.path.repository.is_empty()) {
            let file = root.join(&source.path.path);
            files.insert(file);
        }
    }
    files
}

/// What the file system says of a file; of a link, of the file behind it.
fn stamp_of(file: &Utf8Path) -> Option<FileStamp> {
    std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file).map(|metadata| FileStamp::of(&metadata))
}
