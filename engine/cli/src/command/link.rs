//! `ipubuild link`: links object files to an executable file.

use toolchain::archive::add_needed;
use toolchain::linker::{LinkSetting, link_files};

use crate::arguments::{LinkArguments, Options};
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::object_files::{Read, machine, read, write};
use crate::opened;

pub(crate) fn link(arguments: &LinkArguments, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let directory = opened::directory(options)?;
    let (mut objects, mut members) = (Vec::new(), Vec::new());
    for file in &arguments.files {
        match read(&directory, file)? {
            Read::Object(object) => objects.push(object),
            Read::Archive(found) => members.extend(found.into_iter().map(|member| member.object)),
        }
    }
    let wanted: Vec<String> = arguments.keep.iter().chain(&arguments.entry).cloned().collect();
    add_needed(&mut objects, members, &wanted);
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
    if let Some(map) = &arguments.map {
        write(&directory, map, image.map(&objects).map_err(Fault::failed)?.as_bytes())?;
    }
    write(&directory, &arguments.output, &image.write(machine().immediate.elf_e_flags_ipu21.value))?;
    if !image.dropped.is_empty() {
        console.tell(&format!("{} sections left out; `--keep-all` keeps them", image.dropped.len()));
    }
    Ok(Exit::Success)
}

fn address(text: &str) -> Result<u32, Fault> {
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u32::from_str_radix(hex, 16));
    parsed.map_err(|_| Fault::input(format!("--base {text}: expected an address, as in 0x4c010")))
}
