//! The kernels a program may call: manifests of its libraries, merged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use compiler::kernel_table::KernelTable;
use compiler::program::Variant;
use graph::{Db, Digest, Failure, Label, SourceFile, Target, data_of, read_source};
use toolchain::expression::Expression;
use toolchain::manifest::{self, Kernel};

use crate::key::digest_of;
use crate::rule::{KernelLibrary, Program};

/// A kernel and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryKernel {
    /// From the manifest.
    pub kernel: Kernel,
    /// The file with its source.
    pub source: SourceFile,
    /// What compiles it, when that is not the assembler.
    pub compilation: Option<Compilation>,
    /// Digest of the manifest's entry without its floor, which is only shown.
    pub digest: Digest,
    /// Digest of the entry without its screening model: what a call of the kernel is like.
    pub interface: Digest,
}

/// How a library's sources become objects when they are not assembled here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compilation {
    /// A target of the rule `toolchain`.
    pub toolchain: Label,
    /// Files that the sources may include.
    pub headers: Vec<SourceFile>,
}

/// The kernels of a program by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// By name.
    pub kernels: BTreeMap<String, LibraryKernel>,
    /// Digest of all manifests' entries; sources do not count.
    pub digest: Digest,
    /// Digest of all interfaces; screening models do not count either.
    pub interfaces: Digest,
}

impl Library {
    /// The manifests as the planner reads them.
    #[must_use]
    pub fn table(&self) -> KernelTable {
        KernelTable::new(self.kernels.values().map(|known| without_floor(&known.kernel)))
    }

    /// The same without screening models.
    #[must_use]
    pub fn interface_table(&self) -> KernelTable {
        KernelTable::new(self.kernels.values().map(|known| without_costs(&known.kernel)))
    }

    /// The manifests by kernel name, without screening models.
    #[must_use]
    pub fn manifests(&self) -> BTreeMap<String, Kernel> {
        self.kernels.iter().map(|(name, known)| (name.clone(), without_costs(&known.kernel))).collect()
    }

    /// Digest of what `of` gives for the kernels of these variants.
    pub(crate) fn digest_of_called(&self, variants: &[Variant], of: fn(&LibraryKernel) -> Digest) -> Digest {
        let names: BTreeSet<&String> = variants.iter().map(|variant| &variant.kernel).collect();
        let digests: Vec<(&String, Digest)> = names.into_iter().filter_map(|name| Some((name, of(self.kernels.get(name)?)))).collect();
        digest_of(&digests)
    }
}

/// The kernels of one library. Key: the manifest's digest and the list of sources.
#[salsa::tracked(returns(clone))]
fn library(db: &dyn Db, target: Target) -> Result<Arc<Vec<LibraryKernel>>, Failure> {
    let label = target.label(db);
    let declared = data_of::<KernelLibrary>(db, label)?;
    let bytes = read_source(db, db.source(&declared.manifest))?;
    let fault = |message: String| Failure::input(message).at_label(label).at_field("manifest");
    let text = std::str::from_utf8(&bytes).map_err(|cause| fault(format!("{}: {cause}", declared.manifest)))?;
    let kernels = manifest::parse(text).map_err(|faults| {
        let messages = faults.iter().map(|fault| format!("{}:{fault}", declared.manifest)).collect();
        Failure::all(graph::Cause::Input, messages).at_label(label).at_field("manifest")
    })?;
    let compilation = declared
        .toolchain
        .as_ref()
        .map(|label| Compilation { toolchain: label.clone(), headers: declared.headers.iter().map(|path| db.source(path)).collect() });
    let mut found = Vec::new();
    for kernel in kernels {
        let path = declared.srcs.iter().find(|path| path.file_name() == kernel.source);
        let path = path.ok_or_else(|| fault(format!("kernel `{}`: its source `{}` is not in `srcs`", kernel.name, kernel.source)))?;
        if compilation.is_none() && is_for_a_compiler(&kernel.source) {
            let message = format!("kernel `{}`: `{}` is no assembly; expected a field `toolchain`", kernel.name, kernel.source);
            return Err(fault(message));
        }
        let (interface, digest) = (printed(&without_costs(&kernel)), printed(&without_floor(&kernel)));
        found.push(LibraryKernel { source: db.source(path), compilation: compilation.clone(), digest, interface, kernel });
    }
    Ok(Arc::new(found))
}

/// Whether a file's name is that of C or C++.
fn is_for_a_compiler(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, end)| matches!(end, "c" | "cc" | "cpp" | "cxx"))
}

/// An entry whose screening model says nothing, for stages whose keys have [`LibraryKernel::interface`].
pub(crate) fn without_costs(kernel: &Kernel) -> Kernel {
    Kernel { cycles: Expression::number(0), ..without_floor(kernel) }
}

/// An entry without the clocks that nothing is planned with, for stages whose keys have [`LibraryKernel::digest`].
fn without_floor(kernel: &Kernel) -> Kernel {
    Kernel { floor: None, ..kernel.clone() }
}

fn printed(kernel: &Kernel) -> Digest {
    digest_of(&format!("{kernel:?}"))
}

/// All kernels of a program; of two with one name that of the first library counts.
#[salsa::tracked(returns(clone))]
pub fn kernel_library(db: &dyn Db, program: Target) -> Result<Arc<Library>, Failure> {
    let declared = data_of::<Program>(db, program.label(db))?;
    let mut kernels = BTreeMap::new();
    for label in &declared.kernels {
        for kernel in library(db, db.target(label))?.iter() {
            kernels.entry(kernel.kernel.name.clone()).or_insert_with(|| kernel.clone());
        }
    }
    let of_all = |of: fn(&LibraryKernel) -> Digest| digest_of(&kernels.iter().map(|(name, kernel)| (name, of(kernel))).collect::<Vec<_>>());
    let (digest, interfaces) = (of_all(|kernel| kernel.digest), of_all(|kernel| kernel.interface));
    Ok(Arc::new(Library { kernels, digest, interfaces }))
}

/// The kernel of a name, or a failure that lists what there is.
pub(crate) fn kernel<'a>(library: &'a Library, name: &str, label: &Label) -> Result<&'a LibraryKernel, Failure> {
    library.kernels.get(name).ok_or_else(|| {
        let known: Vec<&str> = library.kernels.keys().map(String::as_str).collect();
        Failure::input(format!("no library has the kernel `{name}`; there are {}", known.join(", "))).at_label(label).at_field("kernels")
    })
}
