//! `ipubuild disasm`, `objdump`, `nm` and `size`: object and executable files as text.

use camino::{Utf8Path, Utf8PathBuf};
use toolchain::listing;
use toolchain::object_file::ObjectFile;

use crate::arguments::Options;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::object_files::read_object;
use crate::opened;

/// One file through one of the listings.
pub(crate) fn inspect(file: &Utf8Path, listed: fn(&ObjectFile) -> String, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let object = read_object(&opened::directory(options)?, file)?;
    console.result(listed(&object).trim_end());
    Ok(Exit::Success)
}

/// A line for each file.
pub(crate) fn size(files: &[Utf8PathBuf], options: &Options, console: &Console) -> Result<Exit, Fault> {
    let directory = opened::directory(options)?;
    let read = |file: &Utf8PathBuf| Ok((file.to_string(), read_object(&directory, file)?));
    let objects = files.iter().map(read).collect::<Result<Vec<_>, Fault>>()?;
    console.result(listing::sizes(&objects).trim_end());
    Ok(Exit::Success)
}
