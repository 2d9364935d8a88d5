//! Objects: ELF32 little-endian relocatable files with Colossus relocations (isa-notes.md 12), and linking them to addresses.
//!
//! An [`Object`] is one text that goes to one address, whatever sections its file has; `object_file` keeps them apart.
//! [`Object::parse`] does not trust its bytes. A relocation that does not fit is an error, never a truncated address.

use std::collections::BTreeMap;
use std::fmt;

use ipu21::memory;
use ipu21::relocation::Relocation;
use serde::{Deserialize, Serialize};

use crate::elf_file::{self, TEXT};
use crate::layout::TEXT_MAX;
use crate::object_file::{Binding, LineRow, Location, ObjectFile, Target};

/// A relocation of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelocationEntry {
    /// Offset in the text of what is changed.
    pub offset: u32,
    /// What is written.
    #[serde(with = "relocation_number")]
    pub kind: Relocation,
    /// The symbol; `None`: the start of this object's text.
    pub symbol: Option<String>,
    /// Added to the symbol's address.
    pub addend: i64,
}

mod relocation_number {
    use ipu21::relocation::Relocation;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(kind: &Relocation, serializer: S) -> Result<S::Ok, S::Error> {
        kind.number().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Relocation, D::Error> {
        Relocation::numbered(u32::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("unknown relocation"))
    }
}

/// An assembled object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    pub(crate) text: Vec<u8>,
    pub(crate) align: u32,
    pub(crate) symbols: BTreeMap<String, u32>,
    pub(crate) relocations: Vec<RelocationEntry>,
    pub(crate) lines: Vec<LineRow>,
    pub(crate) sources: Vec<String>,
}

/// Why bytes are not an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectError {
    /// What was expected and found.
    pub message: String,
}

impl fmt::Display for ObjectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.message)
    }
}

impl std::error::Error for ObjectError {}

/// Why an object cannot be linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The address is not a multiple of the object's alignment.
    Alignment {
        /// Source of the object.
        source: String,
        /// Address asked for.
        base: u32,
        /// Alignment in bytes.
        align: u32,
    },
    /// A symbol nobody defines.
    Undefined {
        /// Source of the object.
        source: String,
        /// The symbol.
        symbol: String,
        /// Line that uses it.
        line: u32,
    },
    /// Two objects define a symbol.
    Duplicate {
        /// The symbol.
        symbol: String,
        /// Sources that define it.
        sources: [String; 2],
    },
    /// More than the memory holds.
    NoRoom {
        /// Code, or all sections.
        what: &'static str,
        /// Address behind the last byte.
        end: u64,
        /// Where the memory for it ends.
        limit: u32,
    },
    /// An address that does not fit or is not aligned as the instruction needs.
    Range {
        /// Source of the object.
        source: String,
        /// Line of the instruction.
        line: u32,
        /// Name of the relocation.
        relocation: &'static str,
        /// The address.
        value: i64,
    },
}

impl fmt::Display for LinkError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alignment { source, base, align } => {
                write!(out, "{source}: expected an address that is a multiple of {align}, found {base:#x}")
            }
            Self::NoRoom { what, end, limit } => write!(out, "the {what} would end at {end:#x}, expected at most {limit:#x}"),
            Self::Undefined { source, symbol, line } => write!(out, "{source}:{line}: undefined symbol `{symbol}`"),
            Self::Duplicate { symbol, sources } => write!(out, "symbol `{symbol}` is defined in {} and in {}", sources[0], sources[1]),
            Self::Range { source, line, relocation, value } => {
                write!(out, "{source}:{line}: {relocation}: {value:#x} does not fit or is not aligned")
            }
        }
    }
}

impl std::error::Error for LinkError {}

impl Object {
    /// Code and constants, relocations not applied.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Alignment its address needs, bytes, a power of two.
    #[must_use]
    pub fn align(&self) -> u32 {
        self.align
    }

    /// Global symbols and their offsets.
    #[must_use]
    pub fn symbols(&self) -> &BTreeMap<String, u32> {
        &self.symbols
    }

    /// Relocations by ascending offset.
    #[must_use]
    pub fn relocations(&self) -> &[RelocationEntry] {
        &self.relocations
    }

    /// Where instructions and data were written, by ascending offset; files are those of [`Object::sources`].
    #[must_use]
    pub fn lines(&self) -> &[LineRow] {
        &self.lines
    }

    /// The file and line of the instruction at or before an offset.
    #[must_use]
    pub fn line_of(&self, offset: u32) -> Option<(&str, u32)> {
        let index = self.lines.partition_point(|row| row.offset <= offset).checked_sub(1)?;
        let row = self.lines[index];
        Some((self.sources.get(row.file as usize)?, row.line))
    }

    /// Name of the source file.
    #[must_use]
    pub fn source_name(&self) -> &str {
        self.sources.first().map_or("", String::as_str)
    }

    /// The same object; when its file does not say what it was made from, this does.
    #[must_use]
    pub fn or_made_from(mut self, source: &str) -> Self {
        if self.sources.is_empty() {
            self.sources.push(source.to_owned());
        }
        self
    }

    /// The source file, then files it includes that have code.
    #[must_use]
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// The file and line of an offset for messages; line 0 of the source when none is known.
    fn place_of(&self, offset: u32) -> (String, u32) {
        let (file, line) = self.line_of(offset).unwrap_or((self.source_name(), 0));
        (file.to_owned(), line)
    }

    /// The text as it is at `base`; `externals` are the addresses of symbols of other objects.
    ///
    /// # Errors
    /// The first of [`Object::link_errors_at`].
    pub fn link_at(&self, base: u32, externals: &BTreeMap<String, u32>) -> Result<Vec<u8>, LinkError> {
        let (text, errors) = self.relocated(base, externals);
        errors.into_iter().next().map_or(Ok(text), Err)
    }

    /// Everything that keeps the object from being linked at `base`, by ascending offset.
    #[must_use]
    pub fn link_errors_at(&self, base: u32, externals: &BTreeMap<String, u32>) -> Vec<LinkError> {
        self.relocated(base, externals).1
    }

    fn relocated(&self, base: u32, externals: &BTreeMap<String, u32>) -> (Vec<u8>, Vec<LinkError>) {
        let mut text = self.text.clone();
        let mut errors = Vec::new();
        if !base.is_multiple_of(self.align) {
            errors.push(LinkError::Alignment { source: self.source_name().to_owned(), base, align: self.align });
        }
        for relocation in &self.relocations {
            match self.target(base, relocation, externals) {
                Ok(target) if apply(relocation.kind, target, &mut text, relocation.offset as usize).is_none() => {
                    let (source, line) = self.place_of(relocation.offset);
                    errors.push(LinkError::Range { source, line, relocation: relocation.kind.name(), value: target });
                }
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
        (text, errors)
    }

    fn target(&self, base: u32, relocation: &RelocationEntry, externals: &BTreeMap<String, u32>) -> Result<i64, LinkError> {
        let own = |name: &String| self.symbols.get(name).map(|offset| i64::from(base) + i64::from(*offset));
        let external = |name: &String| externals.get(name).map(|address| i64::from(*address));
        let symbol = match &relocation.symbol {
            None => i64::from(base),
            Some(name) => own(name).or_else(|| external(name)).ok_or_else(|| {
                let (source, line) = self.place_of(relocation.offset);
                LinkError::Undefined { source, symbol: name.clone(), line }
            })?,
        };
        Ok(symbol.saturating_add(relocation.addend))
    }

    /// Reads an object. All its loaded sections become one text, in the order of the file.
    ///
    /// # Errors
    /// [`ObjectError`] when the bytes are not an object of this kind.
    pub fn parse(bytes: &[u8]) -> Result<Self, ObjectError> {
        Self::of(&elf_file::read(bytes)?)
    }

    /// The loaded sections of a file as one text. Symbols that are numbers stay out.
    ///
    /// # Errors
    /// [`ObjectError`] when there is no loaded section, or they are larger than the executable memory.
    pub fn of(file: &ObjectFile) -> Result<Self, ObjectError> {
        if !file.sections.iter().any(|section| section.is_loaded) {
            return Err(ObjectError { message: format!("expected a section {TEXT}, found none") });
        }
        let align = file.sections.iter().filter(|section| section.is_loaded).map(|section| section.align).max().unwrap_or(1);
        let mut object = Self {
            text: Vec::new(),
            align,
            symbols: BTreeMap::new(),
            relocations: Vec::new(),
            lines: Vec::new(),
            sources: file.sources.clone(),
        };
        // Where each section begins in the text.
        let mut starts: BTreeMap<usize, u32> = BTreeMap::new();
        for (index, section) in file.sections.iter().enumerate().filter(|(_, section)| section.is_loaded) {
            let start = (object.text.len() as u32).next_multiple_of(section.align);
            if section.size > TEXT_MAX || start + section.size > TEXT_MAX {
                let found = u64::from(start) + u64::from(section.size);
                return Err(ObjectError { message: format!("{}: expected at most {TEXT_MAX} bytes, found {found}", section.name) });
            }
            starts.insert(index, start);
            object.text.resize(start as usize, 0);
            object.text.extend(&section.bytes);
            object.text.resize((start + section.size) as usize, 0);
            object.lines.extend(section.lines.iter().map(|row| LineRow { offset: start.saturating_add(row.offset), ..*row }));
        }
        object.take_symbols(file, &starts)?;
        for (index, start) in &starts {
            for relocation in &file.sections[*index].relocations {
                let (symbol, addend) = match &relocation.target {
                    Target::Symbol(name) => (Some(name.clone()), relocation.addend),
                    Target::Section(section) => {
                        let Some(start) = starts.get(section) else {
                            let message = format!("{}: it refers to a section that is not loaded", file.sections[*index].name);
                            return Err(ObjectError { message });
                        };
                        (None, relocation.addend.saturating_add(i64::from(*start)))
                    }
                };
                object.relocations.push(RelocationEntry { offset: start + relocation.offset, kind: relocation.kind, symbol, addend });
            }
        }
        Ok(object)
    }

    fn take_symbols(&mut self, file: &ObjectFile, starts: &BTreeMap<usize, u32>) -> Result<(), ObjectError> {
        for symbol in file.symbols.iter().filter(|symbol| symbol.binding != Binding::Local) {
            match symbol.location {
                Location::Section(section, offset) => {
                    if let Some(start) = starts.get(&section) {
                        self.symbols.insert(symbol.name.clone(), start + offset);
                    }
                }
                Location::Common { align } => {
                    let start = (self.text.len() as u32).next_multiple_of(align);
                    let end = start.checked_add(symbol.size).filter(|end| *end <= TEXT_MAX);
                    let end =
                        end.ok_or_else(|| ObjectError { message: format!("symbol {}: no room for {} bytes", symbol.name, symbol.size) })?;
                    self.text.resize(end as usize, 0);
                    self.align = self.align.max(align);
                    self.symbols.insert(symbol.name.clone(), start);
                }
                Location::Absolute(_) | Location::Elsewhere => {}
            }
        }
        Ok(())
    }
}

/// Writes `target` at `place` as the relocation asks; `None` when it does not fit.
pub(crate) fn apply(kind: Relocation, target: i64, text: &mut [u8], place: usize) -> Option<()> {
    let relative = target.saturating_sub(i64::from(memory::BASE));
    match kind {
        Relocation::None => Some(()),
        Relocation::Byte => store(text, place, unsigned(target, 8, 0)?, 1),
        Relocation::Half => store(text, place, unsigned(target, 16, 0)?, 2),
        Relocation::Word32 => store(text, place, unsigned(target, 32, 0)?, 4),
        Relocation::Word64 => store(text, place, u64::try_from(target).ok()?, 8),
        Relocation::Relative16Words => store(text, place, unsigned(relative, 16, 2)?, 2),
        Relocation::Half8 => store(text, place, unsigned(target, 16, 3)?, 2),
        Relocation::Half16 => store(text, place, unsigned(target, 16, 4)?, 2),
        Relocation::Half32 => store(text, place, unsigned(target, 16, 5)?, 2),
        Relocation::Word20 => field(text, place, unsigned(target, 20, 0)?, 0xf_ffff),
        Relocation::Word21 => field(text, place, unsigned(target, 21, 0)?, 0x1f_ffff),
        Relocation::Word18Words => field(text, place, unsigned(target, 18, 2)?, 0x3_ffff),
        Relocation::Word19Words => field(text, place, unsigned(target, 19, 2)?, 0x7_ffff),
        Relocation::Run => {
            let value = unsigned(relative, 16, 2)?;
            field(text, place, value & 0xfff | (value >> 12) << 16, 0xf_0fff)
        }
    }
}

/// `value >> shift` when the bits lost are zero and the rest fits.
fn unsigned(value: i64, bits: u32, shift: u32) -> Option<u64> {
    let value = u64::try_from(value).ok()?;
    (value.trailing_zeros() >= shift && value >> shift < 1 << bits).then_some(value >> shift)
}

fn store(text: &mut [u8], place: usize, value: u64, bytes: usize) -> Option<()> {
    text.get_mut(place..place + bytes)?.copy_from_slice(&value.to_le_bytes()[..bytes]);
    Some(())
}

fn field(text: &mut [u8], place: usize, value: u64, mask: u32) -> Option<()> {
    let bytes = text.get_mut(place..place + 4)?;
    let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) & !mask | value as u32;
    bytes.copy_from_slice(&word.to_le_bytes());
    Some(())
}

/// Links several objects, each at its address with the global symbols of all; the texts in the same order.
///
/// # Errors
/// Symbols defined twice, then everything that keeps an object from being linked.
pub fn link(parts: &[(&Object, u32)]) -> Result<Vec<Vec<u8>>, Vec<LinkError>> {
    let mut addresses = BTreeMap::new();
    let mut defined: BTreeMap<&str, &Object> = BTreeMap::new();
    let mut errors = Vec::new();
    for (object, base) in parts {
        for (name, offset) in &object.symbols {
            addresses.insert(name.clone(), base.saturating_add(*offset));
            if let Some(other) = defined.insert(name, object) {
                let sources = [other.source_name().to_owned(), object.source_name().to_owned()];
                errors.push(LinkError::Duplicate { symbol: name.clone(), sources });
            }
        }
    }
    let mut texts = Vec::new();
    for (object, base) in parts {
        let (text, found) = object.relocated(*base, &addresses);
        texts.push(text);
        errors.extend(found);
    }
    if errors.is_empty() { Ok(texts) } else { Err(errors) }
}
