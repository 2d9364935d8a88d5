//! Kernel objects: ELF32 little-endian relocatable files with Colossus relocations, and linking them to addresses.
//!
//! One loadable section `.text`; a section `.ipubuild.lines` maps offsets to source lines (pairs of u32), `.ipubuild.source` names the
//! source. [`Object::parse`] reads foreign bytes without trusting them.

use std::collections::BTreeMap;
use std::fmt;

use ipu21::memory;
use ipu21::relocation::Relocation;
use object::read::elf::ElfFile32;
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget, SymbolSection};
use serde::{Deserialize, Serialize};

/// EM_GRAPHCORE_IPU.
const MACHINE: u16 = 248;
const LINES: &str = ".ipubuild.lines";
const SOURCE: &str = ".ipubuild.source";
/// Largest text of an object, bytes.
const TEXT_MAX: usize = 0x34000;

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
    pub(crate) lines: Vec<(u32, u32)>,
    pub(crate) source_name: String,
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
            Self::Alignment { source, base, align } => write!(out, "{source}: expected an address that is a multiple of {align}, found {base:#x}"),
            Self::Undefined { source, symbol, line } => write!(out, "{source}:{line}: undefined symbol `{symbol}`"),
            Self::Duplicate { symbol, sources } => write!(out, "symbol `{symbol}` is defined in {} and in {}", sources[0], sources[1]),
            Self::Range { source, line, relocation, value } => write!(out, "{source}:{line}: {relocation}: {value:#x} does not fit or is not aligned"),
        }
    }
}

impl std::error::Error for LinkError {}

impl Object {
    pub(crate) fn empty(source_name: String, align: u32) -> Self {
        Self { text: Vec::new(), align, symbols: BTreeMap::new(), relocations: Vec::new(), lines: Vec::new(), source_name }
    }

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

    /// Offsets and source lines of instructions, ascending.
    #[must_use]
    pub fn lines(&self) -> &[(u32, u32)] {
        &self.lines
    }

    /// The source line of the instruction at or before an offset.
    #[must_use]
    pub fn line_of(&self, offset: u32) -> Option<u32> {
        let index = self.lines.partition_point(|(start, _)| *start <= offset);
        index.checked_sub(1).map(|index| self.lines[index].1)
    }

    /// Name of the source file.
    #[must_use]
    pub fn source_name(&self) -> &str {
        &self.source_name
    }

    /// The text as it is at `base`; `externals` are the addresses of symbols of other objects.
    ///
    /// # Errors
    /// The first relocation that cannot be applied.
    pub fn link_at(&self, base: u32, externals: &BTreeMap<String, u32>) -> Result<Vec<u8>, LinkError> {
        if !base.is_multiple_of(self.align) {
            return Err(LinkError::Alignment { source: self.source_name.clone(), base, align: self.align });
        }
        let mut text = self.text.clone();
        for relocation in &self.relocations {
            let target = self.target(base, relocation, externals)?;
            let place = relocation.offset as usize;
            if apply(relocation.kind, target, &mut text, place).is_none() {
                let line = self.line_of(relocation.offset).unwrap_or(0);
                return Err(LinkError::Range { source: self.source_name.clone(), line, relocation: relocation.kind.name(), value: target });
            }
        }
        Ok(text)
    }

    fn target(&self, base: u32, relocation: &RelocationEntry, externals: &BTreeMap<String, u32>) -> Result<i64, LinkError> {
        let symbol = match &relocation.symbol {
            None => base,
            Some(name) => match self.symbols.get(name) {
                Some(offset) => base.wrapping_add(*offset),
                None => *externals.get(name).ok_or_else(|| LinkError::Undefined {
                    source: self.source_name.clone(),
                    symbol: name.clone(),
                    line: self.line_of(relocation.offset).unwrap_or(0),
                })?,
            },
        };
        Ok(i64::from(symbol).saturating_add(relocation.addend))
    }

    /// The object as an ELF file.
    pub(crate) fn write(&self, flags: u32) -> Vec<u8> {
        crate::elf_file::write(self, MACHINE, flags, LINES, SOURCE)
    }

    /// Reads an object.
    ///
    /// # Errors
    /// [`ObjectError`] when the bytes are not an object of this kind.
    pub fn parse(bytes: &[u8]) -> Result<Self, ObjectError> {
        let fault = |message: String| ObjectError { message };
        let file = ElfFile32::<Endianness>::parse(bytes).map_err(|cause| fault(format!("not an ELF32 object: {cause}")))?;
        let endian = file.endian();
        let header = file.elf_header();
        let machine = header.e_machine.get(endian);
        if endian != Endianness::Little || u32::from(machine.0) != u32::from(MACHINE) {
            return Err(fault(format!("expected a little-endian object for machine {MACHINE}, found machine {}", machine.0)));
        }
        let section = file.section_by_name(".text").ok_or_else(|| fault("expected a section .text, found none".to_owned()))?;
        let text = section.data().map_err(|cause| fault(format!(".text: {cause}")))?.to_vec();
        if text.len() > TEXT_MAX {
            return Err(fault(format!(".text: expected at most {TEXT_MAX} bytes, found {}", text.len())));
        }
        let align = u32::try_from(section.align()).ok().filter(|align| align.is_power_of_two() && *align <= 4096);
        let mut object = Self::empty(String::new(), align.ok_or_else(|| fault(format!(".text: alignment {} is no power of two up to 4096", section.align())))?);
        for symbol in file.symbols().filter(|symbol| symbol.is_global() && symbol.section() == SymbolSection::Section(section.index())) {
            let name = symbol.name().map_err(|cause| fault(format!("symbol: {cause}")))?;
            let offset = u32::try_from(symbol.address()).ok().filter(|offset| *offset as usize <= text.len());
            object.symbols.insert(name.to_owned(), offset.ok_or_else(|| fault(format!("symbol {name}: offset {:#x} is outside .text", symbol.address())))?);
        }
        for (offset, relocation) in section.relocations() {
            object.relocations.push(read_relocation(&file, &section, offset, &relocation, text.len())?);
        }
        object.lines = lines_of(file.section_by_name(LINES).and_then(|section| section.data().ok()).unwrap_or(&[]));
        let source = file.section_by_name(SOURCE).and_then(|section| section.data().ok()).unwrap_or(&[]);
        object.source_name = String::from_utf8_lossy(source).into_owned();
        object.text = text;
        Ok(object)
    }
}

type Section<'d, 'f> = object::read::elf::ElfSection32<'d, 'f, Endianness>;

fn read_relocation(
    file: &ElfFile32<'_, Endianness>,
    section: &Section<'_, '_>,
    offset: u64,
    relocation: &object::Relocation,
    length: usize,
) -> Result<RelocationEntry, ObjectError> {
    let fault = |message: String| ObjectError { message: format!("relocation at {offset:#x}: {message}") };
    let RelocationFlags::Elf { r_type } = relocation.flags() else { return Err(fault("no ELF relocation".to_owned())) };
    let kind = Relocation::numbered(r_type.0).ok_or_else(|| fault(format!("unknown type {}", r_type.0)))?;
    let place = u32::try_from(offset).ok().filter(|place| *place as usize + 4 <= length.max(4) && (*place as usize) < length);
    let RelocationTarget::Symbol(index) = relocation.target() else { return Err(fault("expected a symbol".to_owned())) };
    let symbol = file.symbol_by_index(index).map_err(|cause| fault(cause.to_string()))?;
    let own = symbol.section() == SymbolSection::Section(section.index()) && !symbol.is_global();
    let name = if own { None } else { Some(symbol.name().map_err(|cause| fault(cause.to_string()))?.to_owned()) };
    Ok(RelocationEntry { offset: place.ok_or_else(|| fault("outside .text".to_owned()))?, kind, symbol: name, addend: relocation.addend() })
}

fn lines_of(bytes: &[u8]) -> Vec<(u32, u32)> {
    let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    bytes.as_chunks::<8>().0.iter().map(|pair| (word(&pair[..4]), word(&pair[4..]))).collect()
}

/// Writes `target` at `place` as the relocation asks; `None` when it does not fit.
fn apply(kind: Relocation, target: i64, text: &mut [u8], place: usize) -> Option<()> {
    let relative = target - i64::from(memory::BASE);
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

/// Links several objects: each at its address, with the symbols of all.
///
/// # Errors
/// Every object that cannot be linked, or the symbols defined twice.
pub fn link(parts: &[(&Object, u32)]) -> Result<Vec<Vec<u8>>, Vec<LinkError>> {
    let mut symbols = BTreeMap::new();
    let mut defined: BTreeMap<&str, &Object> = BTreeMap::new();
    let mut errors = Vec::new();
    for (object, base) in parts {
        for (name, offset) in &object.symbols {
            symbols.insert(name.clone(), base + offset);
            if let Some(other) = defined.insert(name, object) {
                let sources = [other.source_name.clone(), object.source_name.clone()];
                errors.push(LinkError::Duplicate { symbol: name.clone(), sources });
            }
        }
    }
    let mut texts = Vec::new();
    for (object, base) in parts {
        match object.link_at(*base, &symbols) {
            Ok(text) => texts.push(text),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(texts) } else { Err(errors) }
}
