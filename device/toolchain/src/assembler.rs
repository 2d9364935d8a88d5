//! The assembler: a source text with defines in, an ELF object out.
//!
//! Lines pass the C preprocessor (`preprocessor`); statements are cut (`statement`), expanded (`expansion`) and laid out (`layout`), then encoded (`emission`). All independent errors
//! are reported, in source order.
//!
//! `#include`, `#define`, `#if` and the other directives of the C preprocessor come first; who calls says where headers are found.
//!
//! Language: labels (`name:`, local `.Lname:`, numbered `1:` with `1f` and `1b`), `#`, `//` and `/* */` comments, `;` or a line end between
//! statements, bundles `{ main ; aux }`, the instructions and aliases of `isa.toml`, and the directives
//!
//! | | |
//! |---|---|
//! | `.worker` `.supervisor` | who executes what follows; checked from the first one on |
//! | `.equ name, value` `.set` `name = value` | a constant or an address; set again, it changes for what follows |
//! | `.equiv name, value` | the same, once |
//! | `.if` `.elseif` `.else` `.endif`, `.ifdef` `.ifndef` `.ifb` `.ifnb` `.ifc` `.ifnc` `.ifeqs` `.ifnes` `.ifeq` `.ifne` `.ifgt` `.ifge` `.iflt` `.ifle` | conditions |
//! | `.macro name a, b=1, c:req, d:vararg` .. `.endm`, `.exitm` `.purgem` | `\a`, `\@` (a number of the use), `\()` (nothing); arguments by position or `b=2`, between commas or blanks |
//! | `.rept count` `.irp name, values` `.irpc name, characters` .. `.endr` | repetition |
//! | `.align bytes, fill, most` `.balign` `.p2align` | padding: with `nop` in code when no `fill` is given |
//! | `.byte` `.half` `.hword` `.short` `.2byte` `.int` `.long` `.word` `.4byte` `.quad` `.8byte` `.float` `.single` `.double` | numbers |
//! | `.ascii` `.asciz` `.string`, `.zero` `.space` `.skip` `.fill` | texts and fillings |
//! | `.text` `.data` `.bss` `.rodata` `.section name, "awxMSGR", @type` `.pushsection` `.popsection` `.previous` | where what follows goes |
//! | `.globl` `.global` `.weak` `.local` `.extern` `.hidden` `.internal` `.protected` `.comm` `.lcomm` `.type` `.size` | symbols |
//! | `.file` `.loc` `.ident` | where a compiler says the code was written |
//! | `.error` `.err` `.warning` | messages |
//! | `.allow_optimizations` `.allow_invalid_repeat` `.allow_invalid_operands` `.allow_invalid_execution_mode` `.warn_on_invalid_bundles`, `.error_on_..` | rules that are lifted or hold again |
//!
//! A directive that is not in this table is an error.
//!
//! `.allow_optimizations` exchanges the members of a bundle in the wrong order, and takes a `fnop` away from beside an `rpt` where the body
//! would else not start at a multiple of 8, as the vendor's public assembler does (graphcore/llvm-project-fork, `ColossusMCAsmBackend`).
//! There it also concerns what stands before it.
//!
//! Alignment is never repaired silently: a bundle, or the body of an `rpt`, off a multiple of 8 is an error. Operators bind as in the
//! GNU assembler, in `#if` as in C ([`crate::expression`]).

use std::collections::BTreeMap;

use ipu21::parameters::Parameters;
use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;
use crate::elf_file;
use crate::emission::emit;
use crate::expansion::expand;
use crate::headers::{VendorNames, header};
use crate::layout::Layout;
use crate::preprocessor::{FindHeader, Include, preprocess};
use crate::statement::cut;

/// A source text with the name it is reported under.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Source {
    /// Name of the file.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// What a source is assembled with.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// Constants the source may use and not change.
    pub defines: &'a BTreeMap<String, i64>,
    /// Macros of the preprocessor defined at the start, besides [`PREDEFINED`].
    pub macros: &'a BTreeMap<String, String>,
    /// Named immediates, and the flags of the object.
    pub parameters: &'a Parameters,
    /// Finds what the source includes; what it does not find may be a shipped header.
    pub find_header: FindHeader<'a>,
    /// Values of names that only the vendor has; `None`: those shipped.
    pub vendor_names: Option<&'a VendorNames>,
}

/// An assembled source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The ELF object.
    pub bytes: Vec<u8>,
    /// What `#warning` and `.warning` say, and what is doubtful, in source order.
    pub warnings: Vec<Diagnostic>,
}

/// Macros that are always defined: sources for several targets ask for them (poplibs: `#ifdef __IPU__`).
pub const PREDEFINED: [(&str, &str); 3] = [("__IPU__", "1"), ("__IPU_ARCH_VERSION__", "21"), ("__ASSEMBLER__", "1")];

/// Assembles a source that includes nothing but shipped headers into the bytes of an ELF object. `defines` are constants the source may
/// use and not change, as are the named immediates of `parameters`.
///
/// # Errors
/// Every error of the source, in source order.
pub fn assemble(source: &Source, defines: &BTreeMap<String, i64>, parameters: &Parameters) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let setting = Setting { defines, macros: &BTreeMap::new(), parameters, find_header: &|_| None, vendor_names: None };
    assemble_with(source, &setting).map(|assembled| assembled.bytes)
}

/// Assembles a source.
///
/// # Errors
/// Every error of the source, in source order.
pub fn assemble_with(source: &Source, setting: &Setting<'_>) -> Result<Assembled, Vec<Diagnostic>> {
    let parameters = setting.parameters;
    let mut constants: BTreeMap<String, i64> = parameters.symbols().into_iter().map(|(name, value)| (name, i64::from(value))).collect();
    constants.extend(setting.defines.iter().map(|(name, value)| (name.clone(), *value)));
    let mut macros: BTreeMap<String, String> = PREDEFINED.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    macros.extend(setting.macros.clone());
    let shipped = |include: &Include<'_>| match setting.vendor_names {
        Some(names) => header(include.name, parameters, names),
        None => header(include.name, parameters, &VendorNames::shipped()),
    };
    let find_header = |include: &Include<'_>| (setting.find_header)(include).or_else(|| shipped(include));
    let preprocessed = preprocess(source, &macros, &constants, &find_header);
    let (statements, mut faults) = cut(&preprocessed.lines);
    faults.extend(preprocessed.faults);
    let mut layout = Layout::new(&constants);
    expand(&statements, &mut layout);
    let (object, late) = emit(&layout, &source.name);
    faults.append(&mut layout.faults);
    faults.extend(late);
    if faults.is_empty() {
        let bytes = elf_file::write(&object, parameters.immediate.elf_e_flags_ipu21.value);
        let mut warnings = preprocessed.warnings;
        warnings.append(&mut layout.warnings);
        warnings.sort();
        return Ok(Assembled { bytes, warnings });
    }
    faults.sort();
    faults.dedup();
    Err(faults)
}
