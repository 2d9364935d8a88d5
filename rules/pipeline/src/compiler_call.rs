//! Calls a compiler that is no part of this project: on one source, in a folder that holds the files of the key and nothing else.
//!
//! What is known of the vendor's programs comes from its public documentation (Poplar and PopLibs User Guide, "Pre-compiling codelets",
//! "Writing efficient C++") and from public projects that call them: `popc --target ipu21 -O3 -I FOLDER -DNAME=VALUE -o FILE SOURCE`
//! writes a container, and `pop-objdump extract ipu21 FILE` prints the object in it. None of them was at hand here.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use graph::{Db, Digest, Failure, Made, SourceFile, StageInput, data_of, locate_source, read_source};
use toolchain::object::Object;

use crate::key::digest_of;
use crate::rule::Toolchain;
use crate::stage::kernel_library::Compilation;

/// The chip, in the vendor's words.
const TARGET: &str = "ipu21";
/// What the compiler writes, seen from the folder of the sources.
const MADE: &str = "../made/kernel";
/// Where the programs look for others.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Lines of a program's own messages that a failure shows.
const LINES_MAX: usize = 40;

/// A toolchain with the headers of a library.
pub(crate) struct Compiler {
    declared: Arc<Toolchain>,
    compiler: SourceFile,
    extractor: Option<SourceFile>,
    identity: Vec<SourceFile>,
    headers: Vec<SourceFile>,
}

impl Compiler {
    /// # Errors
    /// [`Failure`] when the label is that of no toolchain.
    pub(crate) fn of(db: &dyn Db, compilation: &Compilation) -> Result<Self, Failure> {
        let declared = data_of::<Toolchain>(db, &compilation.toolchain)?;
        Ok(Self {
            compiler: db.source(declared.compiler.source()),
            extractor: declared.extractor.as_ref().map(|tool| db.source(tool.source())),
            identity: declared.identity.iter().map(|tool| db.source(tool.source())).collect(),
            headers: compilation.headers.clone(),
            declared,
        })
    }

    /// What an object depends on besides its source. Where the toolchain lies is not among it.
    pub(crate) fn inputs(&self, db: &dyn Db) -> [StageInput; 3] {
        let headers: Vec<(String, Digest)> = self.headers.iter().map(|file| (file.path(db).to_string(), file.digest(db))).collect();
        let extractor = self.extractor.map(|file| file.digest(db));
        let identity: Vec<Digest> = self.identity.iter().map(|file| file.digest(db)).collect();
        [
            ("headers", digest_of(&headers)),
            ("toolchain", digest_of(&(self.compiler.digest(db), extractor, identity))),
            ("flags", digest_of(&(&self.declared.flags, &self.declared.environment))),
        ]
    }

    /// The object of a source with these defines.
    ///
    /// # Errors
    /// [`Failure`] when a program cannot be started, ends with something else than 0, or leaves no object that can be read.
    pub(crate) fn object(&self, db: &dyn Db, source: SourceFile, defines: &BTreeMap<String, i64>) -> Result<Made<Object>, Failure> {
        let name = source.path(db).to_string();
        let disk = |error: std::io::Error| Failure::new(graph::Cause::Disk, format!("{name}: no folder to compile it in: {error}"));
        let folder = tempfile::tempdir().map_err(disk)?;
        let (sources, made) = (folder.path().join("sources"), folder.path().join("made"));
        std::fs::create_dir_all(&made).map_err(disk)?;
        for file in self.headers.iter().chain([&source]) {
            let place = sources.join(&file.path(db).path);
            std::fs::create_dir_all(place.parent().unwrap_or(&sources)).map_err(disk)?;
            std::fs::write(place, read_source(db, *file)?).map_err(disk)?;
        }
        for file in &self.identity {
            locate_source(db, *file)?;
        }
        let call = Call { db, environment: &self.declared.environment, folder: &sources, source: &name };
        let path = &source.path(db).path;
        let beside = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let mut arguments: Vec<String> = ["--target", TARGET].map(str::to_owned).to_vec();
        arguments.extend(self.declared.flags.iter().cloned());
        // The vendor's compiler reads a copy of the source, so files beside it are found by a path only.
        arguments.extend(["-I".to_owned(), beside.to_owned()]);
        arguments.extend(defines.iter().map(|(name, value)| format!("-D{name}={value}")));
        arguments.extend(["-o", MADE, path].map(str::to_owned));
        call.run(self.compiler, &arguments)?;
        let (last, bytes) = match self.extractor {
            Some(extractor) => (extractor, call.run(extractor, &["extract", TARGET, MADE].map(str::to_owned))?),
            None => (self.compiler, std::fs::read(made.join("kernel")).unwrap_or_default()),
        };
        let program = last.path(db);
        if bytes.is_empty() {
            return Err(Failure::build(format!("{name}: {program} ended well and gave no object")));
        }
        let object =
            Object::parse(&bytes).map_err(|cause| Failure::build(format!("{name}: the object of {program} cannot be read: {cause}")))?;
        let text = object.text().len();
        Ok(Made::new(object.or_made_from(&name)).figure("text_bytes", text))
    }
}

/// What the calls for one source have in common.
struct Call<'a> {
    db: &'a dyn Db,
    environment: &'a BTreeMap<String, String>,
    folder: &'a Path,
    source: &'a str,
}

impl Call<'_> {
    /// Runs a program to its end and gives what it printed.
    fn run(&self, program: SourceFile, arguments: &[String]) -> Result<Vec<u8>, Failure> {
        let (source, name) = (self.source, program.path(self.db));
        let mut command = Command::new(locate_source(self.db, program)?);
        // Nothing of the caller's environment reaches it: that is in no key.
        command.args(arguments).current_dir(self.folder).env_clear().env("PATH", SEARCH_PATH).envs(self.environment);
        let output = command.stdin(std::process::Stdio::null()).output();
        let output = output.map_err(|error| Failure::input(format!("{source}: cannot run {name}: {error}")))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
        Err(Failure::input(format!("{source}: {name} {}{}", ended(output.status), shown(said))))
    }
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "did not end well".to_owned(),
    }
}

/// A program's messages, each in a line of its own.
fn shown(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let more = lines.len().saturating_sub(LINES_MAX);
    let shown: String = lines.iter().take(LINES_MAX).map(|line| format!("\n    {line}")).collect();
    if more == 0 { shown } else { format!("{shown}\n    and {more} more lines") }
}
