//! What an object file holds: sections, symbols and relocations, as the assembler makes them and as files of others have them.

use ipu21::relocation::Relocation;
use serde::{Deserialize, Serialize};

use crate::elf_file;
use crate::object::ObjectError;

/// An object file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFile {
    /// The source, then files it includes that have code, as far as the file says.
    pub sources: Vec<String>,
    /// Sections in the order of the file, those for symbols and relocations left out.
    pub sections: Vec<Section>,
    /// Named symbols.
    pub symbols: Vec<Symbol>,
}

impl ObjectFile {
    /// Reads an object file, the assembler's or another's; its bytes are not trusted.
    ///
    /// # Errors
    /// [`ObjectError`] when the bytes are not an object of this machine.
    pub fn parse(bytes: &[u8]) -> Result<Self, ObjectError> {
        elf_file::read(bytes)
    }

    /// The object as an ELF file with these flags in its header.
    #[must_use]
    pub fn write(&self, flags: u32) -> Vec<u8> {
        elf_file::write(self, flags)
    }

    /// The file and line of what lies at an offset of a section.
    #[must_use]
    pub fn line_of(&self, section: usize, offset: u32) -> Option<(&str, u32)> {
        let lines = &self.sections.get(section)?.lines;
        let row = lines.get(lines.partition_point(|row| row.offset <= offset).checked_sub(1)?)?;
        Some((self.sources.get(row.file as usize)?, row.line))
    }
}

/// A section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Name.
    pub name: String,
    /// It takes part in the loaded image.
    pub is_loaded: bool,
    /// Its bytes may be executed.
    pub is_code: bool,
    /// Its bytes may change.
    pub is_writable: bool,
    /// It is zeros and has no bytes in the file.
    pub is_zeros: bool,
    /// The linker keeps it though nothing refers to it.
    pub is_kept: bool,
    /// Address of a linked section; 0 in objects.
    pub address: u32,
    /// Alignment in bytes, a power of two.
    pub align: u32,
    /// Its bytes, relocations not applied; of zeros none.
    pub bytes: Vec<u8>,
    /// Its size in bytes.
    pub size: u32,
    /// By ascending offset.
    pub relocations: Vec<SectionRelocation>,
    /// Rows by ascending offset.
    pub lines: Vec<LineRow>,
    /// Name of the group of which a program holds only one.
    pub group: Option<String>,
}

/// A relocation of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionRelocation {
    /// Offset in the section.
    pub offset: u32,
    /// What is written.
    pub kind: Relocation,
    /// To what it refers.
    pub target: Target,
    /// Added to the target's address.
    pub addend: i64,
}

/// To what a relocation refers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The start of a section, by its index in [`ObjectFile::sections`].
    Section(usize),
    /// A symbol.
    Symbol(String),
}

/// Where an instruction or a datum was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRow {
    /// Offset in the section.
    pub offset: u32,
    /// Index in [`ObjectFile::sources`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
}

/// Who sees a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    /// Its object alone.
    #[default]
    Local,
    /// Everyone, unless another is [`Binding::Global`]; undefined it is 0.
    Weak,
    /// Everyone.
    Global,
}

/// What a symbol names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SymbolKind {
    /// It does not say.
    #[default]
    Untyped,
    /// A function.
    Function,
    /// Data.
    Data,
    /// The source the object was compiled from, for debuggers.
    File,
}

/// Who sees a symbol beyond its object, once everything is linked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// As its binding says.
    #[default]
    Default,
    /// Everyone, and nobody can put another in its place.
    Protected,
    /// Nobody: in a linked file it is a local symbol.
    Hidden,
    /// Nobody, and it is only called from here.
    Internal,
}

/// Where a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// At an offset of a section, by its index.
    Section(usize, u32),
    /// A number.
    Absolute(u32),
    /// Zeros of the symbol's size, which the linker places once.
    Common {
        /// Alignment in bytes.
        align: u32,
    },
    /// In another object.
    Elsewhere,
}

/// A symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Name.
    pub name: String,
    /// Who sees it.
    pub binding: Binding,
    /// What it names.
    pub kind: SymbolKind,
    /// Who sees it beyond the objects it is linked with.
    pub visibility: Visibility,
    /// Where it is.
    pub location: Location,
    /// Bytes; 0: not said.
    pub size: u32,
}
