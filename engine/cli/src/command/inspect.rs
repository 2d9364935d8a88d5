//! `ipubuild disasm`, `objdump`, `nm` and `size`: object and executable files as text.

use camino::{Utf8Path, Utf8PathBuf};
use toolchain::listing;
use toolchain::object_file::ObjectFile;

use crate::arguments::Options;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::object_files::{Read, read, read_objects};
use crate::opened;

/// One file through one of the listings, the members of an archive one after the other.
pub(crate) fn inspect(file: &Utf8Path, listed: fn(&ObjectFile) -> String, options: &Options, console: &Console) -> Result<Exit, Fault> {
    match read(&opened::directory(options)?, file)? {
        Read::Object(object) => console.result(listed(&object).trim_end()),
        Read::Archive(members) => {
            for member in members {
                console.result(&format!("# {file}({})\n{}", member.name, listed(&member.object).trim_end()));
            }
        }
    }
    Ok(Exit::Success)
}

/// A line for each file.
pub(crate) fn size(files: &[Utf8PathBuf], options: &Options, console: &Console) -> Result<Exit, Fault> {
    let directory = opened::directory(options)?;
    let objects = files.iter().map(|file| read_objects(&directory, file)).collect::<Result<Vec<_>, Fault>>()?;
    console.result(listing::sizes(&objects.concat()).trim_end());
    Ok(Exit::Success)
}
