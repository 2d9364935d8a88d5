//! `ipubuild doctor`: whether this machine, the store and the workspace are fit, and what to do where they are not.

use camino::Utf8Path;
use graph::Workspace;

use crate::arguments::Options;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened;
use crate::scratch;
use crate::show::table::grouped;

/// One thing looked at.
enum Finding {
    Fine(String),
    /// It works, with a remark.
    Warning(String),
    /// It does not work.
    Fault(String),
}

pub(crate) fn doctor(options: &Options, console: &Console) -> Result<Exit, Fault> {
    let directory = opened::store_directory(options)?;
    let mut findings = vec![store(options), writable(&directory), left_behind(&directory), space(&directory), file_system(&directory)];
    findings.extend([open_files(), clock(&directory), workspace(options)?, devices()]);
    let mut exit = Exit::Success;
    for finding in findings {
        let (word, text) = match finding {
            Finding::Fine(text) => ("ok", text),
            Finding::Warning(text) => ("warning", text),
            Finding::Fault(text) => {
                exit = Exit::Failed;
                ("fault", text)
            }
        };
        console.result(&format!("{word:<7}  {text}"));
    }
    Ok(exit)
}

fn store(options: &Options) -> Finding {
    match opened::store(options).and_then(|store| Ok((store.processes()?, store.statistics()?, store.root().to_owned()))) {
        Ok((processes, statistics, root)) => {
            let bytes = grouped(statistics.disk_bytes);
            Finding::Fine(format!("store {root}: {bytes} bytes, {} runs, {processes} other processes build now", statistics.runs))
        }
        Err(fault) => Finding::Fault(fault.message.trim_start_matches("error: ").to_owned()),
    }
}

fn writable(store: &Utf8Path) -> Finding {
    match tempfile::tempfile_in(store) {
        Ok(_) => Finding::Fine("files can be made in the store".to_owned()),
        Err(error) => Finding::Fault(format!("no files can be made in {store}: {error}; choose another with --store")),
    }
}

fn left_behind(store: &Utf8Path) -> Finding {
    let folders = scratch::left_behind(store, "verify");
    match folders.as_slice() {
        [] => Finding::Fine("no folders left behind by killed processes".to_owned()),
        folders => {
            Finding::Warning(format!("{} folders `verify-*` left behind by killed processes; `ipubuild gc` removes them", folders.len()))
        }
    }
}

fn space(store: &Utf8Path) -> Finding {
    const LITTLE: u64 = 1 << 30;
    match nix::sys::statvfs::statvfs(store.as_std_path()) {
        Ok(space) => {
            let bytes = space.blocks_available().saturating_mul(space.fragment_size());
            match bytes {
                bytes if bytes < LITTLE => {
                    Finding::Warning(format!("{} bytes are free for the store; `ipubuild gc --max-size` frees more", grouped(bytes)))
                }
                bytes => Finding::Fine(format!("{} bytes are free for the store", grouped(bytes))),
            }
        }
        Err(error) => Finding::Warning(format!("the free space of {store} is not known: {error}")),
    }
}

fn file_system(store: &Utf8Path) -> Finding {
    use nix::sys::statfs::{NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, statfs};
    match statfs(store.as_std_path()).map(|system| system.filesystem_type()) {
        Ok(NFS_SUPER_MAGIC | SMB_SUPER_MAGIC) => {
            Finding::Warning("the store is on a network file system: locks between machines may not hold, and it is slow".to_owned())
        }
        Ok(_) => Finding::Fine("the store is on a local file system".to_owned()),
        Err(error) => Finding::Warning(format!("the kind of file system of {store} is not known: {error}")),
    }
}

fn open_files() -> Finding {
    const FEW: u64 = 64;
    match nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE) {
        Ok((limit, _)) if limit < FEW => {
            Finding::Warning(format!("{limit} files may be open at once; expected at least {FEW}: `ulimit -n`"))
        }
        Ok((limit, _)) => Finding::Fine(format!("{} files may be open at once", grouped(limit))),
        Err(error) => Finding::Warning(format!("the limit of open files is not known: {error}")),
    }
}

/// A clock that was set back makes files look as if they came from the future; they are then read at each build.
fn clock(store: &Utf8Path) -> Finding {
    let modified = std::fs::metadata(store.join("records.sqlite")).and_then(|metadata| metadata.modified());
    let ahead = modified.ok().and_then(|modified| modified.elapsed().err());
    match ahead.map(|ahead| ahead.duration().as_secs()) {
        Some(seconds) if seconds > 2 => Finding::Warning(format!(
            "the store was written {seconds} s in the future: the clock was set back; sources are read more often"
        )),
        _ => Finding::Fine("the clock agrees with the store's files".to_owned()),
    }
}

fn workspace(options: &Options) -> Result<Finding, Fault> {
    let directory = opened::directory(options)?;
    Ok(match Workspace::find_root(&directory) {
        Ok(root) => Finding::Fine(format!("workspace {root}")),
        Err(_) => Finding::Warning(format!("no WORKSPACE.toml in {directory} or above: only commands without labels work here")),
    })
}

fn devices() -> Finding {
    let entries = Utf8Path::new("/dev").read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let is_device =
        |name: &str| name.strip_prefix("ipu").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
    match entries.filter(|entry| is_device(entry.file_name())).count() {
        0 => Finding::Fine("no IPU in /dev: programs run on the embedded simulator".to_owned()),
        count => Finding::Fine(format!("{count} IPU devices in /dev")),
    }
}
