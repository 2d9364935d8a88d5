//! The repository's text files.

use std::fmt::Display;

use camino::{Utf8Path, Utf8PathBuf};

/// A text file.
pub(crate) struct File {
    /// Path below the repository's root.
    pub(crate) path: Utf8PathBuf,
    /// Its contents.
    pub(crate) text: String,
}

impl File {
    /// `path:line: text` of the lines that a rule names.
    pub(crate) fn lines_where(&self, named: impl Fn(&str) -> bool) -> Vec<String> {
        let lines = self.text.split('\n').enumerate().filter(|(_, line)| named(line));
        lines.map(|(index, line)| format!("{}:{}: {}", self.path, index + 1, line.trim())).collect()
    }
}

/// All text files that are not made by a build, in order of their paths.
pub(crate) struct Tree {
    files: Vec<File>,
}

impl Tree {
    /// The tree these tests were compiled in.
    pub(crate) fn here() -> Tree {
        let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the repository");
        let mut paths = Vec::new();
        collect(root, &mut paths);
        paths.sort();
        let file = |path: Utf8PathBuf| {
            let text = String::from_utf8(std::fs::read(&path).ok()?).ok()?;
            Some(File { path: path.strip_prefix(root).expect("below the root").to_owned(), text })
        };
        let files: Vec<File> = paths.into_iter().filter_map(file).collect();
        assert!(files.len() > 200, "expected the whole repository, found {} files", files.len());
        Tree { files }
    }

    /// Files with one of these endings.
    pub(crate) fn with_endings(&self, endings: &'static [&'static str]) -> impl Iterator<Item = &File> + Clone {
        self.files.iter().filter(|file| file.path.extension().is_some_and(|ending| endings.contains(&ending)))
    }

    /// The file with this path.
    pub(crate) fn named(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

/// Folders of results, and those that start with a dot, except the one of cargo's settings.
fn is_left_out(name: &str) -> bool {
    ["target", "artifacts", "corpus"].contains(&name) || (name.starts_with('.') && name != ".cargo")
}

fn collect(directory: &Utf8Path, paths: &mut Vec<Utf8PathBuf>) {
    for entry in directory.read_dir_utf8().expect("a folder of the repository") {
        let entry = entry.expect("a name in UTF-8");
        match entry.file_type().expect("a kind of file") {
            kind if kind.is_dir() && !is_left_out(entry.file_name()) => collect(entry.path(), paths),
            kind if kind.is_file() => paths.push(entry.into_path()),
            _ => {}
        }
    }
}

/// Fails with the list of what was found, unless it is empty.
#[track_caller]
pub(crate) fn nothing<F: Display>(found: impl IntoIterator<Item = F>) {
    let found: Vec<String> = found.into_iter().map(|item| item.to_string()).collect();
    assert!(found.is_empty(), "found {}:\n{}", found.len(), found.join("\n"));
}
