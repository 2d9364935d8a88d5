//! Directories, labels and the workspace, as the options name them.

use camino::{Utf8Path, Utf8PathBuf};
use graph::{EmbeddedRepository, Label, LoadRequest, Override, PackageName, Pattern, Registry, SourceReader, Workspace};
use package::Package;
use store::Store;

use crate::arguments::Options;
use crate::composition;
use crate::exit::Fault;

/// The directory the command works in: that of `-C`, or the current one. Relative paths of other options begin here.
pub(crate) fn directory(options: &Options) -> Result<Utf8PathBuf, Fault> {
    let current = std::env::current_dir().map_err(|error| Fault::failed(format!("no current directory: {error}")))?;
    let current = Utf8PathBuf::from_path_buf(current)
        .map_err(|path| Fault::input(format!("the path of the directory is not UTF-8: {}", path.display())))?;
    match &options.directory {
        None => Ok(current),
        Some(wanted) => {
            let directory = current.join(wanted);
            if directory.is_dir() { Ok(directory) } else { Err(Fault::input(format!("-C {wanted}: there is no such directory"))) }
        }
    }
}

/// The surroundings of a command: where it stands in which workspace, and what may be used there.
pub(crate) struct Surroundings {
    root: Utf8PathBuf,
    package: PackageName,
    changes: Vec<Override>,
    registry: Registry,
    repositories: Vec<EmbeddedRepository>,
    store: Utf8PathBuf,
}

impl Surroundings {
    /// Finds the workspace.
    pub(crate) fn find(options: &Options) -> Result<Surroundings, Fault> {
        let directory = directory(options)?;
        let root = Workspace::find_root(&directory)?;
        let real = directory.canonicalize_utf8().map_err(|error| Fault::failed(format!("{directory}: {error}")))?;
        let package = real.strip_prefix(&root).map(Utf8Path::as_str).unwrap_or_default();
        let changes = options.changes.iter().map(|text| Override::parse(text).map_err(|fault| Fault::input(format!("--set {fault}"))));
        Ok(Surroundings {
            package: PackageName::in_workspace(package),
            changes: changes.collect::<Result<_, Fault>>()?,
            registry: composition::registry(),
            repositories: composition::repositories(),
            store: store_directory(options)?,
            root,
        })
    }

    /// The package that relative labels belong to.
    pub(crate) fn package(&self) -> &PackageName {
        &self.package
    }

    /// Reads files of the workspace and of the repositories that come with the program.
    pub(crate) fn sources(&self) -> SourceReader {
        SourceReader::new(&self.root, &self.repositories)
    }

    /// The directory with WORKSPACE.toml.
    pub(crate) fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// Loads what the patterns reach.
    pub(crate) fn load(&self, patterns: &[Pattern]) -> Result<Workspace, Fault> {
        Ok(Workspace::load(&self.request(patterns))?)
    }

    /// What is loaded for the patterns.
    pub(crate) fn request<'a>(&'a self, patterns: &'a [Pattern]) -> LoadRequest<'a> {
        LoadRequest { root: &self.root, registry: &self.registry, repositories: &self.repositories, patterns, overrides: &self.changes }
    }

    /// Labels and patterns of whole targets.
    pub(crate) fn patterns(&self, labels: &[String]) -> Result<Vec<Pattern>, Fault> {
        labels.iter().map(|text| self.pattern(text)).collect()
    }

    fn pattern(&self, text: &str) -> Result<Pattern, Fault> {
        if !text.starts_with(['/', ':', '@']) {
            return Err(Fault::input(format!("`{text}` is neither a command nor a label; `ipubuild --help` lists commands")));
        }
        let pattern = Pattern::parse(text, &self.package).map_err(Fault::input)?;
        match &pattern {
            Pattern::One(label) if *label != label.target() => Err(bracketed(label)),
            _ => Ok(pattern),
        }
    }

    /// One target.
    pub(crate) fn label(&self, text: &str) -> Result<Label, Fault> {
        let label = Label::parse(text, &self.package).map_err(Fault::input)?;
        if label == label.target() { Ok(label) } else { Err(bracketed(&label)) }
    }

    /// The rules, and how what they make is shown.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Where the store of the options is.
    pub(crate) fn store_directory(&self) -> &Utf8Path {
        &self.store
    }

    /// Opens the store of the options, made when it is not there.
    pub(crate) fn store(&self) -> Result<Store, Fault> {
        Ok(Store::open(&self.store)?)
    }
}

/// Opens the store of the options, for commands that need no workspace.
pub(crate) fn store(options: &Options) -> Result<Store, Fault> {
    Ok(Store::open(&store_directory(options)?)?)
}

/// Where the store of the options is.
pub(crate) fn store_directory(options: &Options) -> Result<Utf8PathBuf, Fault> {
    match &options.store {
        Some(wanted) => Ok(directory(options)?.join(wanted)),
        None => default_store(),
    }
}

fn bracketed(label: &Label) -> Fault {
    Fault::input(format!("`{label}` names an artifact of a target; expected the whole target, `{}`", label.target()))
}

fn default_store() -> Result<Utf8PathBuf, Fault> {
    let folder = |name: &str| std::env::var(name).ok().filter(|value| value.starts_with('/')).map(Utf8PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    cache
        .map(|cache| cache.join("ipubuild"))
        .ok_or_else(|| Fault::input("neither XDG_CACHE_HOME nor HOME names a directory for the store; expected `--store DIR`"))
}

/// The package in a file, checked, and the file's length in bytes.
pub(crate) fn package(file: &str, options: &Options) -> Result<(Package, usize), Fault> {
    let bytes = std::fs::read(directory(options)?.join(file)).map_err(|error| Fault::input(format!("cannot read {file}: {error}")))?;
    let package = Package::read(&bytes).map_err(|fault| Fault::input(format!("{file}: {fault}")))?;
    package.check().map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(|fault| format!("{file}: {fault}")).collect();
        Fault::input(lines.join("\nerror: "))
    })?;
    Ok((package, bytes.len()))
}
