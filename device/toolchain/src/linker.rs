//! Links object files to one image of a tile's memory.
//!
//! In: objects in order. Out: [`Image`]. Rules:
//! * of each section group one stays, that of the first object with it;
//! * with [`LinkSetting::keep_all`] every loaded section is placed, else those reached from the roots: the entry, the named symbols and
//!   the sections marked to be kept;
//! * code comes first, then constants, data and zeros, each in the order of the objects; code must lie in region 0;
//! * a global symbol goes before a weak one, a weak one before none, and none is 0 when nobody but weak symbols asks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use ipu21::{isa, memory};

use crate::elf_file;
use crate::object::{LinkError, apply};
use crate::object_file::{Binding, Location, ObjectFile, Section, Symbol, SymbolKind, Target, Visibility};

/// How objects are linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSetting {
    /// Address of the first section.
    pub base: u32,
    /// Symbol where the program starts.
    pub entry: Option<String>,
    /// Symbols that are kept with all they need.
    pub roots: Vec<String>,
    /// Keep what nothing reaches, too.
    pub keep_all: bool,
}

/// A section with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Index of the object.
    pub object: usize,
    /// Index of the section in the object.
    pub section: usize,
    /// Address.
    pub address: u32,
}

/// What was linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Sections joined by what they are for, addresses and bytes final.
    pub file: ObjectFile,
    /// Where the program starts.
    pub entry: u32,
    /// Addresses of the symbols that everyone sees.
    pub symbols: BTreeMap<String, u32>,
    /// Every section that was placed, by address.
    pub placed: Vec<Placed>,
    /// Sections that nothing reaches, or that another group stands for: index of the object and of the section.
    pub dropped: Vec<(usize, usize)>,
}

/// What a section is for; the order in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Code,
    Constants,
    Data,
    Zeros,
}

impl Class {
    fn of(section: &Section) -> Self {
        match (section.is_code, section.is_zeros, section.is_writable) {
            (true, ..) => Self::Code,
            (_, true, _) => Self::Zeros,
            (_, _, true) => Self::Data,
            _ => Self::Constants,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Code => ".text",
            Self::Constants => ".rodata",
            Self::Data => ".data",
            Self::Zeros => ".bss",
        }
    }
}

/// Where a name leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Section { object: usize, section: usize, offset: u32 },
    Absolute(u32),
    Common { size: u32, align: u32 },
}

struct Linker<'a> {
    objects: &'a [ObjectFile],
    /// The definition of each name, its binding and its object.
    names: BTreeMap<&'a str, (Binding, Found, usize)>,
    /// Sections another group stands for.
    doubled: BTreeSet<(usize, usize)>,
    errors: Vec<LinkError>,
}

/// Links objects.
///
/// # Errors
/// Everything that keeps them from being linked.
pub fn link_files(objects: &[ObjectFile], setting: &LinkSetting) -> Result<Image, Vec<LinkError>> {
    let mut linker = Linker { objects, names: BTreeMap::new(), doubled: BTreeSet::new(), errors: Vec::new() };
    linker.choose_groups();
    linker.collect_names();
    let kept = linker.kept(setting);
    let (placed, commons, end) = linker.place(&kept, setting.base);
    if let Some(limit) = over_limit(&linker, &placed, end) {
        linker.errors.push(limit);
        return Err(linker.errors);
    }
    let addresses: BTreeMap<(usize, usize), u32> = placed.iter().map(|one| ((one.object, one.section), one.address)).collect();
    let symbols = linker.addresses(&addresses, &commons);
    let bytes = linker.relocated(&placed, &addresses, &symbols);
    let entry = match &setting.entry {
        None => setting.base,
        Some(name) => symbols.get(name.as_str()).copied().unwrap_or_else(|| {
            linker.errors.push(LinkError::Undefined { source: "entry".to_owned(), symbol: name.clone(), line: 0 });
            0
        }),
    };
    if !linker.errors.is_empty() {
        return Err(linker.errors);
    }
    let file = linker.joined(&placed, &bytes, &symbols, &commons);
    let loaded = objects.iter().enumerate().flat_map(|(object, file)| {
        file.sections.iter().enumerate().filter(|(_, section)| section.is_loaded && section.size > 0).map(move |(index, _)| (object, index))
    });
    let dropped = loaded.filter(|key| !kept.contains(key)).collect();
    let symbols = symbols.into_iter().map(|(name, address)| (name.to_owned(), address)).collect();
    Ok(Image { file, entry, symbols, placed, dropped })
}

fn over_limit(linker: &Linker<'_>, placed: &[Placed], end: u64) -> Option<LinkError> {
    let code_end = placed.iter().map(|one| (linker.section(one), one)).filter(|(section, _)| section.is_code);
    let code_end = code_end.map(|(section, one)| u64::from(one.address) + u64::from(section.size)).max().unwrap_or(0);
    let limits = [("code", code_end, memory::REGION1), ("sections", end, memory::END)];
    let (what, end, limit) = limits.into_iter().find(|(_, end, limit)| *end > u64::from(*limit))?;
    Some(LinkError::NoRoom { what, end, limit })
}

impl<'a> Linker<'a> {
    fn section(&self, placed: &Placed) -> &'a Section {
        &self.objects[placed.object].sections[placed.section]
    }

    fn source(&self, object: usize) -> String {
        self.objects[object].sources.first().cloned().unwrap_or_else(|| format!("object {object}"))
    }

    fn choose_groups(&mut self) {
        let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
        for (object, file) in self.objects.iter().enumerate() {
            for (index, section) in file.sections.iter().enumerate() {
                let Some(group) = &section.group else { continue };
                if *owners.entry(group).or_insert(object) != object {
                    self.doubled.insert((object, index));
                }
            }
        }
    }

    fn collect_names(&mut self) {
        for (object, file) in self.objects.iter().enumerate() {
            for symbol in file.symbols.iter().filter(|symbol| symbol.binding != Binding::Local) {
                let found = match symbol.location {
                    Location::Section(section, _) if self.doubled.contains(&(object, section)) => continue,
                    Location::Section(section, offset) => Found::Section { object, section, offset },
                    Location::Absolute(value) => Found::Absolute(value),
                    Location::Common { align } => Found::Common { size: symbol.size, align },
                    Location::Elsewhere => continue,
                };
                self.add_name(symbol, found, object);
            }
        }
    }

    fn add_name(&mut self, symbol: &'a Symbol, found: Found, object: usize) {
        let Some((binding, earlier, owner)) = self.names.get(symbol.name.as_str()).copied() else {
            self.names.insert(&symbol.name, (symbol.binding, found, object));
            return;
        };
        let chosen = match (earlier, found) {
            (Found::Common { size, align }, Found::Common { size: other, align: wider }) => {
                (binding.max(symbol.binding), Found::Common { size: size.max(other), align: align.max(wider) }, owner)
            }
            (Found::Common { .. }, _) if symbol.binding == Binding::Global => (symbol.binding, found, object),
            (_, Found::Common { .. }) => (binding, earlier, owner),
            _ if symbol.binding > binding => (symbol.binding, found, object),
            _ if symbol.binding == Binding::Global => {
                let sources = [self.source(owner), self.source(object)];
                return self.errors.push(LinkError::Duplicate { symbol: symbol.name.clone(), sources });
            }
            _ => (binding, earlier, owner),
        };
        self.names.insert(&symbol.name, chosen);
    }

    /// The sections that are placed.
    fn kept(&self, setting: &LinkSetting) -> BTreeSet<(usize, usize)> {
        let all = self.objects.iter().enumerate().flat_map(|(object, file)| {
            let loaded = file.sections.iter().enumerate().filter(|(_, section)| section.is_loaded);
            loaded.map(move |(index, section)| ((object, index), section))
        });
        let is_root = |section: &Section| setting.keep_all || section.is_kept;
        let mut waiting: Vec<(usize, usize)> =
            all.filter(|(key, section)| is_root(section) && !self.doubled.contains(key)).map(|(key, _)| key).collect();
        let named = setting.roots.iter().chain(&setting.entry).filter_map(|name| self.names.get(name.as_str()));
        waiting.extend(named.filter_map(|(_, found, _)| match found {
            Found::Section { object, section, .. } => Some((*object, *section)),
            _ => None,
        }));
        let mut kept = BTreeSet::new();
        while let Some((object, index)) = waiting.pop() {
            let section = &self.objects[object].sections[index];
            if !section.is_loaded || !kept.insert((object, index)) {
                continue;
            }
            waiting.extend(section.relocations.iter().filter_map(|relocation| self.reached(object, &relocation.target)));
        }
        kept
    }

    /// The section a relocation needs.
    fn reached(&self, object: usize, target: &Target) -> Option<(usize, usize)> {
        match target {
            Target::Section(section) => Some(self.stand_in(object, *section)),
            Target::Symbol(name) => match self.names.get(name.as_str())?.1 {
                Found::Section { object, section, .. } => Some((object, section)),
                _ => None,
            },
        }
    }

    /// The section itself, or the one of the same name in the group that stands for its own.
    fn stand_in(&self, object: usize, section: usize) -> (usize, usize) {
        let own = &self.objects[object].sections[section];
        if !self.doubled.contains(&(object, section)) {
            return (object, section);
        }
        let same = |other: &Section| other.group == own.group && other.name == own.name;
        let mut others = self.objects.iter().take(object).enumerate();
        let found = others.find_map(|(object, file)| Some((object, file.sections.iter().position(same)?)));
        found.unwrap_or((object, section))
    }

    /// Gives each section its address, then the common symbols theirs; the end of all.
    fn place(&self, kept: &BTreeSet<(usize, usize)>, base: u32) -> (Vec<Placed>, BTreeMap<&'a str, u32>, u64) {
        let mut order: Vec<(Class, usize, usize)> =
            kept.iter().map(|(object, index)| (Class::of(&self.objects[*object].sections[*index]), *object, *index)).collect();
        order.sort_unstable();
        let (mut placed, mut next) = (Vec::new(), u64::from(base));
        for (_, object, section) in order {
            let own = &self.objects[object].sections[section];
            next = next.next_multiple_of(u64::from(own.align.max(1)));
            placed.push(Placed { object, section, address: u32::try_from(next).unwrap_or(u32::MAX) });
            next += u64::from(own.size);
        }
        let mut commons = BTreeMap::new();
        for (name, (_, found, _)) in &self.names {
            if let Found::Common { size, align } = found {
                next = next.next_multiple_of(u64::from(*align));
                commons.insert(*name, u32::try_from(next).unwrap_or(u32::MAX));
                next += u64::from(*size);
            }
        }
        (placed, commons, next)
    }

    /// The address of every name whose section was placed.
    fn addresses(&self, sections: &BTreeMap<(usize, usize), u32>, commons: &BTreeMap<&'a str, u32>) -> BTreeMap<&'a str, u32> {
        let address = |name: &str, found: Found| match found {
            Found::Section { object, section, offset } => sections.get(&(object, section)).map(|start| start.saturating_add(offset)),
            Found::Absolute(value) => Some(value),
            Found::Common { .. } => commons.get(name).copied(),
        };
        self.names.iter().filter_map(|(name, (_, found, _))| Some((*name, address(name, *found)?))).collect()
    }

    /// The bytes of the placed sections, relocations applied.
    fn relocated(&mut self, placed: &[Placed], sections: &BTreeMap<(usize, usize), u32>, symbols: &BTreeMap<&'a str, u32>) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for one in placed {
            let section = self.section(one);
            let mut bytes = section.bytes.clone();
            for relocation in &section.relocations {
                let start = match &relocation.target {
                    Target::Section(target) => sections.get(&self.stand_in(one.object, *target)).copied(),
                    Target::Symbol(name) => symbols.get(name.as_str()).copied().or_else(|| self.weak_zero(name)),
                };
                let (source, line) = self.place_of(one, relocation.offset);
                let Some(start) = start else {
                    let symbol = match &relocation.target {
                        Target::Symbol(name) => name.clone(),
                        Target::Section(target) => self.objects[one.object].sections[*target].name.clone(),
                    };
                    self.errors.push(LinkError::Undefined { source, symbol, line });
                    continue;
                };
                let value = i64::from(start).saturating_add(relocation.addend);
                if apply(relocation.kind, value, &mut bytes, relocation.offset as usize).is_none() {
                    self.errors.push(LinkError::Range { source, line, relocation: relocation.kind.name(), value });
                }
            }
            all.push(bytes);
        }
        all
    }

    /// The file and line of an offset of a section; line 0 of the object's source when none is known.
    fn place_of(&self, one: &Placed, offset: u32) -> (String, u32) {
        let place = self.objects[one.object].line_of(one.section, offset);
        place.map_or_else(|| (self.source(one.object), 0), |(file, line)| (file.to_owned(), line))
    }

    /// 0 for a name that is asked for by weak symbols alone and that nobody defines.
    fn weak_zero(&self, name: &str) -> Option<u32> {
        let mut asked = self.objects.iter().flat_map(|file| &file.symbols).filter(|symbol| symbol.name == name).peekable();
        let is_asked = asked.peek().is_some();
        (is_asked && asked.all(|symbol| symbol.binding == Binding::Weak)).then_some(0)
    }

    /// One section of each class, with lines and symbols.
    fn joined(
        &self,
        placed: &[Placed],
        bytes: &[Vec<u8>],
        symbols: &BTreeMap<&'a str, u32>,
        commons: &BTreeMap<&'a str, u32>,
    ) -> ObjectFile {
        let mut file = ObjectFile::default();
        let mut classes: Vec<Class> = Vec::new();
        for (one, bytes) in placed.iter().zip(bytes) {
            let (section, class) = (self.section(one), Class::of(self.section(one)));
            if classes.last() != Some(&class) {
                classes.push(class);
                file.sections.push(Section { name: class.name().to_owned(), address: one.address, bytes: Vec::new(), ..blank(section) });
            }
            if let Some(joined) = file.sections.last_mut() {
                self.join(joined, one, bytes, &mut file.sources);
            }
        }
        let common_end = commons.iter().map(|(name, address)| address + self.size_of(name)).max();
        if let (Some(start), Some(end)) = (commons.values().min(), common_end) {
            let section = Section { is_loaded: true, is_writable: true, is_zeros: true, align: 1, ..Section::default() };
            file.sections.push(Section { name: ".common".to_owned(), address: *start, size: end - start, ..section });
        }
        for (name, address) in symbols {
            let size = self.size_of(name);
            let inside = |section: &Section| (section.address..=section.address.saturating_add(section.size)).contains(address);
            let absolute = matches!(self.names.get(name), Some((_, Found::Absolute(_), _)));
            let section = file.sections.iter().rposition(inside).filter(|_| !absolute);
            let location =
                section.map_or(Location::Absolute(*address), |index| Location::Section(index, address - file.sections[index].address));
            let (binding, kind) =
                self.names.get(name).map_or((Binding::Global, SymbolKind::Untyped), |(binding, ..)| (*binding, self.kind_of(name)));
            let visibility = self.visibility_of(name);
            // Everything that may see it is linked now.
            let binding = if visibility >= Visibility::Hidden { Binding::Local } else { binding };
            file.symbols.push(Symbol { name: (*name).to_owned(), binding, kind, visibility, location, size });
        }
        file
    }

    fn join(&self, joined: &mut Section, one: &Placed, bytes: &[u8], sources: &mut Vec<String>) {
        let section = self.section(one);
        let start = one.address - joined.address;
        if joined.is_code {
            while joined.bytes.len() + 4 <= start as usize {
                joined.bytes.extend(isa::NOP.to_le_bytes());
            }
        }
        joined.align = joined.align.max(section.align);
        joined.size = start + section.size;
        if !joined.is_zeros {
            joined.bytes.resize(start as usize, 0);
            joined.bytes.extend(bytes);
        }
        for row in &section.lines {
            let name = self.objects[one.object].sources.get(row.file as usize).cloned().unwrap_or_default();
            let file = sources.iter().position(|known| *known == name).unwrap_or_else(|| {
                sources.push(name);
                sources.len() - 1
            });
            joined.lines.push(crate::object_file::LineRow { offset: start.saturating_add(row.offset), file: file as u32, line: row.line });
        }
    }

    fn definition(&self, name: &str) -> Option<&Symbol> {
        let (_, _, object) = self.names.get(name)?;
        self.objects[*object].symbols.iter().find(|symbol| symbol.name == name && symbol.binding != Binding::Local)
    }

    fn size_of(&self, name: &str) -> u32 {
        match self.names.get(name) {
            Some((_, Found::Common { size, .. }, _)) => *size,
            _ => self.definition(name).map_or(0, |symbol| symbol.size),
        }
    }

    /// The strictest wish of any object.
    fn visibility_of(&self, name: &str) -> Visibility {
        let symbols = self.objects.iter().flat_map(|file| &file.symbols).filter(|symbol| symbol.binding != Binding::Local);
        symbols.filter(|symbol| symbol.name == name).map(|symbol| symbol.visibility).max().unwrap_or_default()
    }

    fn kind_of(&self, name: &str) -> SymbolKind {
        self.definition(name).map_or(SymbolKind::Untyped, |symbol| symbol.kind)
    }
}

/// A section of the same kind without contents.
fn blank(section: &Section) -> Section {
    Section {
        is_loaded: true,
        is_code: section.is_code,
        is_writable: section.is_writable,
        is_zeros: section.is_zeros,
        align: section.align,
        ..Section::default()
    }
}

impl Image {
    /// The image as an executable ELF file with these flags in its header.
    #[must_use]
    pub fn write(&self, flags: u32) -> Vec<u8> {
        elf_file::write_executable(&self.file, flags, self.entry)
    }

    /// What lies where: sections by address with their objects, symbols by address, sections left out.
    ///
    /// # Errors
    /// Never with the objects it was linked from.
    pub fn map(&self, objects: &[ObjectFile]) -> Result<String, fmt::Error> {
        let source = |object: usize| objects.get(object).and_then(|file| file.sources.first()).map_or("", String::as_str);
        let section = |object: usize, index: usize| objects.get(object).and_then(|file| file.sections.get(index));
        let mut text = String::new();
        writeln!(text, "{:>10} {:>10}  section", "address", "bytes")?;
        for one in &self.placed {
            if let Some(section) = section(one.object, one.section).filter(|section| section.size > 0) {
                writeln!(text, "{:#10x} {:>10}  {} of {}", one.address, section.size, section.name, source(one.object))?;
            }
        }
        let mut symbols: Vec<(u32, &str)> = self.symbols.iter().map(|(name, address)| (*address, name.as_str())).collect();
        symbols.sort_unstable();
        writeln!(text, "\n{:>10}  symbol", "address")?;
        for (address, name) in symbols {
            writeln!(text, "{address:#10x}  {name}")?;
        }
        if !self.dropped.is_empty() {
            writeln!(text, "\n{:>10}  left out", "bytes")?;
        }
        for (object, index) in &self.dropped {
            if let Some(section) = section(*object, *index) {
                writeln!(text, "{:>10}  {} of {}", section.size, section.name, source(*object))?;
            }
        }
        Ok(text)
    }
}
