//! `ipubuild link`: links object files to an executable file.

use toolchain::linker::{LinkSetting, link_files};

use crate::arguments::{LinkArguments, Options};
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::object_files::{machine, read_object, write};
use crate::opened;

pub(crate) fn link(arguments: &LinkArguments, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let directory = opened::directory(options)?;
    let objects = arguments.files.iter().map(|file| read_object(&directory, file)).collect::<Result<Vec<_>, _>>()?;
    let has_roots = arguments.entry.is_some() || !arguments.keep.is_empty();
    let setting = LinkSetting {
        base: address(&arguments.base)?,
        entry: arguments.entry.clone(),
        roots: arguments.keep.clone(),
        keep_all: arguments.keep_all || !has_roots,
    };
    let image = link_files(&objects, &setting).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(|error| format!("error: {error}")).collect();
        Fault { exit: Exit::BadInput, message: errors.join("\n") }
    })?;
    write(&directory, &arguments.output, &image.write(machine().immediate.elf_e_flags_ipu21.value))?;
    if let Some(map) = &arguments.map {
        write(&directory, map, image.map(&objects).map_err(Fault::failed)?.as_bytes())?;
    }
    if !image.dropped.is_empty() {
        console.tell(&format!("{} sections left out; `--keep-all` keeps them", image.dropped.len()));
    }
    Ok(Exit::Success)
}

fn address(text: &str) -> Result<u32, Fault> {
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u32::from_str_radix(hex, 16));
    parsed.map_err(|_| Fault::input(format!("--base {text}: expected an address, as in 0x4c010")))
}
