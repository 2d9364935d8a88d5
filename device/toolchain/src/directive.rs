//! Directives about data, sections, symbols and the rules of what follows; those about text are in `expansion`.

use ipu21::isa::Mode;
use ipu21::relocation::Relocation;

use crate::layout::{ALIGN_MAX, Content, Layout, SymbolTraits, TEXT_MAX};
use crate::object_file::{Binding, SymbolKind, Visibility};
use crate::operand::split_list;
use crate::preprocessor::quoted_bytes;
use crate::section::Traits;
use crate::statement::{Piece, is_symbol};

/// Relocations of data by the decoration of their symbol (isa-notes.md 11): name, bytes.
#[rustfmt::skip]
const DECORATIONS: [(&str, u32, Relocation); 4] = [
    ("relative@16@s2", 2, Relocation::Relative16Words), ("abs18@s2", 4, Relocation::Word18Words),
    ("abs19@s2",       4, Relocation::Word19Words),     ("abs@21",   4, Relocation::Word21),
];
/// Directives of other assemblers that are understood and not done, by the start of their names, and what to do about it.
#[rustfmt::skip]
const REFUSED: [(&str, &str); 7] = [
    (".cfi_",     "call frame information is not written; compile without it"),
    (".include",  "write `#include`"),
    (".incbin",   "write the bytes as data"),
    (".org",      "write `.space` or `.align`"),
    (".altmacro", "arguments are written as in the default mode"),
    (".addrsig",  "address tables are not written; compile without them"),
    (".symver",   "there are no shared objects"),
];
/// Most bytes one `.fill` or `.space` gives.
const FILL_MAX: u32 = TEXT_MAX;

impl Layout {
    /// A directive that is not about macros, conditions or repetitions.
    pub(crate) fn directive(&mut self, piece: &Piece<'_>) {
        let (word, rest) = piece.split();
        match word {
            ".equ" | ".set" => self.assigned(piece, rest, false),
            ".equiv" => self.assigned(piece, rest, true),
            ".text" | ".data" | ".bss" | ".rodata" => self.enter(word, Traits::usual(word)),
            ".section" => self.section(piece, rest),
            ".pushsection" => {
                self.opened.push((self.current, self.previous));
                self.section(piece, rest);
            }
            ".popsection" => match self.opened.pop() {
                Some((current, previous)) => (self.current, self.previous) = (current, previous),
                None => self.faults.push(piece.at.fault(0, "`.popsection` without `.pushsection`")),
            },
            ".previous" => std::mem::swap(&mut self.current, &mut self.previous),
            ".globl" | ".global" => self.bind_symbols(piece, rest, Binding::Global),
            ".weak" => self.bind_symbols(piece, rest, Binding::Weak),
            ".local" => self.bind_symbols(piece, rest, Binding::Local),
            ".hidden" => self.show_symbols(piece, rest, Visibility::Hidden),
            ".internal" => self.show_symbols(piece, rest, Visibility::Internal),
            ".protected" => self.show_symbols(piece, rest, Visibility::Protected),
            ".file" => self.file(piece, rest),
            ".loc" => self.line(piece, rest),
            ".ident" => self.ident(piece, rest),
            // Undefined symbols are those of other objects, said or not.
            ".extern" => drop(self.names(piece, rest)),
            ".comm" => self.common(piece, rest, Binding::Global),
            ".lcomm" => self.common(piece, rest, Binding::Local),
            ".type" => self.symbol_type(piece, rest),
            ".size" => self.symbol_size(piece, rest),
            ".align" | ".balign" => self.pad(piece, rest, false),
            ".p2align" => self.pad(piece, rest, true),
            ".quad" | ".8byte" => self.data(piece, rest, 8, Relocation::Word64),
            ".int" | ".long" | ".word" | ".4byte" => self.data(piece, rest, 4, Relocation::Word32),
            ".half" | ".hword" | ".short" | ".2byte" => self.data(piece, rest, 2, Relocation::Half),
            ".byte" => self.data(piece, rest, 1, Relocation::Byte),
            ".float" | ".single" => self.floats(piece, rest, 4),
            ".double" => self.floats(piece, rest, 8),
            ".ascii" => self.texts(piece, rest, false),
            ".asciz" | ".string" => self.texts(piece, rest, true),
            ".zero" | ".space" | ".skip" => self.space(piece, rest),
            ".fill" => self.fill(piece, rest),
            ".error" => self.faults.push(piece.at.fault(0, rest.trim_matches('"'))),
            ".err" => self.faults.push(piece.at.fault(0, "`.err`")),
            ".warning" => self.warnings.push(piece.at.fault(0, rest.trim_matches('"'))),
            _ => self.mode_directive(piece, word),
        }
    }

    /// Who executes what follows, and which rules hold for it (isa-notes.md 11; the names that restore a rule are those of the public
    /// Colossus assembly parser).
    fn mode_directive(&mut self, piece: &Piece<'_>, word: &str) {
        match word {
            ".worker" => self.mode = Mode::Worker,
            ".supervisor" => self.mode = Mode::Supervisor,
            ".allow_optimizations" => {
                self.rules.may_optimize = true;
                let align = &mut self.section_mut().align;
                *align = (*align).max(8);
            }
            ".allow_invalid_repeat" => self.rules.any_repeat = true,
            ".allow_invalid_operands" => self.rules.any_operands = true,
            ".error_on_invalid_operands" => self.rules.any_operands = false,
            ".allow_invalid_execution_mode" => self.rules.any_mode = true,
            ".error_on_invalid_execution_mode" => self.rules.any_mode = false,
            ".warn_on_invalid_bundles" => self.rules.any_bundle = true,
            ".error_on_invalid_bundles" => self.rules.any_bundle = false,
            _ => {
                let refused = REFUSED.iter().find(|(start, _)| word.starts_with(start));
                let reason =
                    refused.map_or_else(|| format!("unknown directive `{word}`"), |(_, hint)| format!("`{word}` is not supported: {hint}"));
                self.faults.push(piece.at.fault(0, reason));
            }
        }
    }

    fn assigned(&mut self, piece: &Piece<'_>, rest: &str, once: bool) {
        let Some((name, value)) = rest.split_once(',') else {
            return self.faults.push(piece.fault(rest, format!("expected `name, value`, found `{rest}`")));
        };
        let (name, value) = (name.trim_end(), value.trim_start());
        if once && self.is_defined(name) {
            return self.faults.push(piece.fault(name, format!("`{name}` is defined twice")));
        }
        self.constant(piece, name, value);
    }

    fn section(&mut self, piece: &Piece<'_>, rest: &str) {
        let words = split_list(rest);
        let Some((name, words)) = words.split_first() else {
            return self.faults.push(piece.at.fault(0, "expected the name of a section"));
        };
        let name = name.trim_matches('"');
        match Traits::read(name, words) {
            Ok(traits) => self.enter(name, traits),
            Err(message) => self.faults.push(piece.fault(rest, message)),
        }
    }

    /// Names of a list; others are reported and left out.
    fn names<'a>(&mut self, piece: &Piece<'_>, rest: &'a str) -> Vec<&'a str> {
        let mut names = split_list(rest);
        names.retain(|name| {
            let right = is_symbol(name);
            if !right {
                self.faults.push(piece.fault(rest, format!("expected a name, found `{name}`")));
            }
            right
        });
        names
    }

    fn traits_of(&mut self, piece: &Piece<'_>, name: &str) -> &mut SymbolTraits {
        self.symbols.entry(name.to_owned()).or_insert_with(|| SymbolTraits::new(piece.at.clone()))
    }

    fn bind_symbols(&mut self, piece: &Piece<'_>, rest: &str, binding: Binding) {
        for name in self.names(piece, rest) {
            let at = piece.place_of(name);
            let traits = self.traits_of(piece, name);
            traits.binding = traits.binding.max(binding);
            traits.at = at;
        }
    }

    /// Of two wishes the stricter one counts.
    fn show_symbols(&mut self, piece: &Piece<'_>, rest: &str, visibility: Visibility) {
        for name in self.names(piece, rest) {
            let traits = self.traits_of(piece, name);
            traits.visibility = traits.visibility.max(visibility);
        }
    }

    /// `.file "name"`, the compiled source, or `.file number "folder" "name"`, a file that `.loc` may name.
    fn file(&mut self, piece: &Piece<'_>, rest: &str) {
        let (number, names) = rest.find('"').map_or((rest, ""), |start| rest.split_at(start));
        let mut texts: Vec<String> = Vec::new();
        let mut names = names.trim_ascii();
        // A checksum or an embedded source behind the names says nothing here.
        while names.starts_with('"') {
            let (text, behind) = names.split_at(quoted_bytes(names));
            match text_bytes(text) {
                Ok(bytes) => texts.push(String::from_utf8_lossy(&bytes).into_owned()),
                Err(message) => return self.faults.push(piece.fault(text, message)),
            }
            names = behind.trim_ascii_start();
        }
        let name = match &texts[..] {
            [name] => name.clone(),
            [folder, name] if !name.starts_with('/') => format!("{folder}/{name}"),
            [_, name] => name.clone(),
            _ => return self.faults.push(piece.fault(rest, format!("expected the name of a file in quotes, found `{rest}`"))),
        };
        if number.trim_ascii().is_empty() {
            self.file_name = Some(name);
        } else if let Some(number) = self.evaluate(piece, number.trim_ascii()) {
            self.file_numbers.insert(number, name.into());
        }
    }

    /// `.loc file line column ..`: where what follows in this section was written.
    fn line(&mut self, piece: &Piece<'_>, rest: &str) {
        let mut words = rest.split_ascii_whitespace();
        let mut number = || words.next().and_then(|word| word.parse::<u32>().ok());
        let (Some(file), Some(line)) = (number(), number()) else {
            return self.faults.push(piece.fault(rest, format!("expected the number of a file and a line, found `{rest}`")));
        };
        let Some(name) = self.file_numbers.get(&i64::from(file)).cloned() else {
            return self.faults.push(piece.fault(rest, format!("no `.file {file}` says which file this is")));
        };
        let offset = self.offset();
        self.section_mut().told_lines.push((offset, name, line));
    }

    /// `.ident "text"`: a remark in the section `.comment`, which is not loaded.
    fn ident(&mut self, piece: &Piece<'_>, rest: &str) {
        let (current, previous) = (self.current, self.previous);
        self.enter(".comment", Traits::default());
        self.texts(piece, rest, true);
        (self.current, self.previous) = (current, previous);
    }

    fn common(&mut self, piece: &Piece<'_>, rest: &str, binding: Binding) {
        let parts = split_list(rest);
        let &[name, size, ref align @ ..] = &parts[..] else {
            return self.faults.push(piece.fault(rest, format!("expected `name, size`, found `{rest}`")));
        };
        let number = |layout: &mut Self, part: &str| layout.evaluate(piece, part).and_then(|value| u32::try_from(value).ok());
        let size = number(self, size).filter(|size| *size <= TEXT_MAX);
        let align = align.first().map_or(Some(8), |align| number(self, align));
        let (Some(size), Some(align)) = (size, align.filter(|align| align.is_power_of_two() && *align <= ALIGN_MAX)) else {
            return self.faults.push(piece.fault(rest, "expected a size and an alignment that is a power of two"));
        };
        if !is_symbol(name) || self.is_defined(name) {
            return self.faults.push(piece.fault(name, format!("expected a new name, found `{name}`")));
        }
        let traits = self.traits_of(piece, name);
        traits.binding = traits.binding.max(binding);
        traits.common = Some((size, align));
    }

    fn symbol_type(&mut self, piece: &Piece<'_>, rest: &str) {
        let (name, kind) = rest.split_once([',', ' ']).unwrap_or((rest, ""));
        let kind = kind.trim_matches([' ', ',', '@', '%', '"']);
        let kind = match kind {
            "function" | "STT_FUNC" => SymbolKind::Function,
            "object" | "STT_OBJECT" | "common" => SymbolKind::Data,
            "notype" | "STT_NOTYPE" | "" => SymbolKind::Untyped,
            other => return self.faults.push(piece.fault(rest, format!("expected `@function` or `@object`, found `{other}`"))),
        };
        self.traits_of(piece, name.trim()).kind = kind;
    }

    fn symbol_size(&mut self, piece: &Piece<'_>, rest: &str) {
        let Some((name, size)) = rest.split_once(',') else {
            return self.faults.push(piece.fault(rest, format!("expected `name, size`, found `{rest}`")));
        };
        let expression = self.expression(piece, size.trim());
        self.traits_of(piece, name.trim()).size = expression;
    }

    fn pad(&mut self, piece: &Piece<'_>, rest: &str, is_power: bool) {
        let parts = split_list(rest);
        let part = parts.first().copied().unwrap_or(rest);
        let Some(value) = self.evaluate(piece, part) else { return };
        let boundary = if is_power { 1_i64.checked_shl(u32::try_from(value).unwrap_or(64)).unwrap_or(0) } else { value };
        let boundary = u32::try_from(boundary).ok().filter(|boundary| boundary.is_power_of_two() && (2..=ALIGN_MAX).contains(boundary));
        let Some(boundary) = boundary else {
            let limits = if is_power { "1..=14".to_owned() } else { format!("a power of two in 2..={ALIGN_MAX}") };
            return self.faults.push(piece.fault(part, format!("expected {limits}, found {value}")));
        };
        let mut option = |index: usize| parts.get(index).copied().filter(|part| !part.is_empty()).map(|part| self.evaluate(piece, part));
        let (fill, most) = (option(1).map(|fill| fill.unwrap_or(0)), option(2).map(|most| most.unwrap_or(0)));
        let section = self.section_mut();
        let bytes = section.offset.next_multiple_of(boundary) - section.offset;
        if most.is_some_and(|most| i64::from(bytes) > most) {
            return;
        }
        section.align = section.align.max(boundary);
        let is_code = section.traits.is_code;
        match (bytes, fill) {
            (0, _) => {}
            (_, None) if is_code => self.place(piece.at.clone(), Content::Padding { bytes }),
            (_, fill) => self.place(piece.at.clone(), Content::Fill { bytes, value: fill.unwrap_or(0) as u64, width: 1 }),
        }
    }

    fn data(&mut self, piece: &Piece<'_>, rest: &str, bytes: u32, relocation: Relocation) {
        for part in split_list(rest) {
            let (text, decoration) = part.split_once('@').map_or((part, None), |(text, decoration)| (text, Some(decoration)));
            let relocation = match decoration {
                None => relocation,
                Some(decoration) => match DECORATIONS.iter().find(|(name, size, _)| *name == decoration && *size == bytes) {
                    Some((_, _, relocation)) => *relocation,
                    None => {
                        self.faults.push(piece.fault(part, format!("unknown relocation `@{decoration}` of {bytes} bytes")));
                        continue;
                    }
                },
            };
            if let Some(value) = self.expression(piece, text) {
                self.place(piece.place_of(part), Content::Data { bytes, relocation, value });
            }
        }
    }

    fn floats(&mut self, piece: &Piece<'_>, rest: &str, bytes: u32) {
        for part in split_list(rest) {
            let Ok(value) = part.parse::<f64>() else {
                self.faults.push(piece.fault(part, format!("expected a floating-point number, found `{part}`")));
                continue;
            };
            // Read as f32, not rounded twice.
            let bits = if bytes == 8 { value.to_bits() } else { u64::from(part.parse::<f32>().unwrap_or(value as f32).to_bits()) };
            self.place(piece.at.clone(), Content::Bytes(bits.to_le_bytes()[..bytes as usize].to_vec()));
        }
    }

    fn texts(&mut self, piece: &Piece<'_>, rest: &str, ended: bool) {
        for part in split_list(rest) {
            match text_bytes(part) {
                Ok(mut bytes) => {
                    bytes.extend(ended.then_some(0));
                    self.place(piece.at.clone(), Content::Bytes(bytes));
                }
                Err(message) => self.faults.push(piece.fault(part, message)),
            }
        }
    }

    fn space(&mut self, piece: &Piece<'_>, rest: &str) {
        let parts = split_list(rest);
        let size = parts.first().copied().unwrap_or(rest);
        let Some(value) = self.evaluate(piece, size) else { return };
        let Some(bytes) = u32::try_from(value).ok().filter(|bytes| *bytes <= FILL_MAX) else {
            return self.faults.push(piece.fault(size, format!("expected a size in 0..={FILL_MAX}, found {value}")));
        };
        let fill = parts.get(1).and_then(|fill| self.evaluate(piece, fill)).unwrap_or(0);
        self.place(piece.at.clone(), Content::Fill { bytes, value: fill as u64, width: 1 });
    }

    /// `.fill repeat, size, value`.
    fn fill(&mut self, piece: &Piece<'_>, rest: &str) {
        let parts = split_list(rest);
        let mut number = |index: usize, otherwise: i64| match parts.get(index) {
            Some(part) => self.evaluate(piece, part),
            None => Some(otherwise),
        };
        let (Some(repeat), Some(width), Some(value)) = (number(0, 0), number(1, 1), number(2, 0)) else { return };
        let bytes = repeat.checked_mul(width).and_then(|bytes| u32::try_from(bytes).ok()).filter(|bytes| *bytes <= FILL_MAX);
        match (bytes, width) {
            (Some(bytes), 1..=8) => self.place(piece.at.clone(), Content::Fill { bytes, value: value as u64, width: width as u32 }),
            _ => self
                .faults
                .push(piece.fault(rest, format!("expected at most {FILL_MAX} bytes in parts of 1..=8, found {repeat} of {width}"))),
        }
    }
}

/// The bytes of a text in quotes with the escapes of C.
fn text_bytes(part: &str) -> Result<Vec<u8>, String> {
    let inner = part.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|_| part.len() > 1);
    let inner = inner.ok_or_else(|| format!("expected a text in quotes, found `{part}`"))?;
    let mut bytes = Vec::new();
    let mut rest = inner.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let Some((escape, behind)) = rest.split_first() else { return Err("a `\\` with nothing behind it".to_owned()) };
        rest = behind;
        match escape {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'b' => bytes.push(8),
            b'f' => bytes.push(12),
            b'\\' | b'"' => bytes.push(*escape),
            b'0'..=b'7' => {
                let more = rest.iter().take(2).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
                let octal = rest[..more].iter().fold(u32::from(escape - b'0'), |value, digit| value * 8 + u32::from(digit - b'0'));
                bytes.push(octal as u8);
                rest = &rest[more..];
            }
            b'x' => {
                let digits = rest.iter().take_while(|digit| digit.is_ascii_hexdigit()).count();
                let value = rest[..digits].iter().filter_map(|digit| char::from(*digit).to_digit(16));
                bytes.push(value.fold(0_u32, |all, digit| (all & 0xf) << 4 | digit) as u8);
                rest = &rest[digits..];
            }
            other => return Err(format!("unknown escape `\\{}`", char::from(*other))),
        }
    }
    Ok(bytes)
}
