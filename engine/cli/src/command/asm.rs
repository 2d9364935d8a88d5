//! `ipubuild asm`: assembles a source to an object file.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use toolchain::headers::VendorNames;
use toolchain::preprocessor::Include;
use toolchain::{Setting, Source, assemble_with};

use crate::arguments::{AsmArguments, Options};
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::object_files::{machine, read_text, write};
use crate::opened;

pub(crate) fn asm(arguments: &AsmArguments, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let directory = opened::directory(options)?;
    let source = Source { name: arguments.file.to_string(), text: read_text(&directory, &arguments.file)? };
    let vendor_names = arguments.vendor_names.as_ref().map(|file| vendor_names(&directory, file)).transpose()?;
    let macros: BTreeMap<String, String> = arguments.define.iter().map(|define| definition(define)).collect();
    let setting = Setting {
        defines: &BTreeMap::new(),
        macros: &macros,
        parameters: &machine(),
        find_header: &|include| included(&directory, &arguments.include, include),
        vendor_names: vendor_names.as_ref(),
    };
    let assembled = assemble_with(&source, &setting).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(|fault| format!("error: {fault}")).collect();
        Fault { exit: Exit::BadInput, message: faults.join("\n") }
    })?;
    assembled.warnings.iter().for_each(|warning| console.tell(&format!("warning: {warning}")));
    let output = arguments.output.clone().unwrap_or_else(|| arguments.file.with_extension("o"));
    write(&directory, &output, &assembled.bytes)?;
    Ok(Exit::Success)
}

fn definition(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    (name.to_owned(), value.to_owned())
}

fn vendor_names(directory: &Utf8Path, file: &Utf8Path) -> Result<VendorNames, Fault> {
    VendorNames::parse(&read_text(directory, file)?).map_err(|message| Fault::input(format!("{file}: {message}")))
}

/// A file to include: beside the including one when it is in quotes, then in the folders of the command line.
fn included(directory: &Utf8Path, folders: &[Utf8PathBuf], include: &Include<'_>) -> Option<Source> {
    let beside = Utf8Path::new(include.from).parent().filter(|_| include.is_quoted);
    let folders = beside.into_iter().chain(folders.iter().map(Utf8PathBuf::as_path));
    folders.map(|folder| folder.join(include.name)).find_map(|path| {
        let text = std::fs::read_to_string(directory.join(&path)).ok()?;
        Some(Source { name: path.into_string(), text })
    })
}
