//! `ipubuild clean`: takes exported files away. The store is left alone, so a build brings them back without executing a stage.

use std::io::ErrorKind;

use camino::Utf8Path;

use crate::arguments::Options;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::Surroundings;

pub(crate) fn clean(labels: &[String], options: &Options, console: &Console) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let workspace = surroundings.load(&surroundings.patterns(labels)?)?;
    for label in workspace.expand_suites(workspace.requested()) {
        let folder = workspace.artifacts_of(&label);
        if remove(&folder)? {
            console.tell(&format!("{label} removed {}", folder.strip_prefix(workspace.root()).unwrap_or(&folder)));
        }
        remove_empty_parents(&folder, workspace.root());
    }
    Ok(Exit::Success)
}

/// Whether there was something.
fn remove(folder: &Utf8Path) -> Result<bool, Fault> {
    match std::fs::remove_dir_all(folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Fault::failed(format!("cannot remove {folder}: {error}"))),
    }
}

/// Removes the folders around `folder` that hold nothing, up to the workspace's root.
fn remove_empty_parents(folder: &Utf8Path, root: &Utf8Path) {
    let parents = folder.ancestors().skip(1).take_while(|parent| *parent != root);
    for parent in parents {
        if std::fs::remove_dir(parent).is_err_and(|error| error.kind() != ErrorKind::NotFound) {
            return;
        }
    }
}
