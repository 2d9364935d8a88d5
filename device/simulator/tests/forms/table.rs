//! Forms as isa.toml writes them, read here a second time: operands, text from the syntax line, words from the encoding fields.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use ipu21::parameters::Parameters;
use toolchain::object::Object;
use toolchain::{Source, assemble};

/// One operand: `name:kind[:modifier]`.
pub(crate) struct Operand {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
}

/// A form.
pub(crate) struct Entry {
    pub(crate) id: &'static str,
    pub(crate) mnemonic: &'static str,
    /// What the id says behind the mnemonic.
    pub(crate) variant: &'static str,
    pub(crate) operands: Vec<Operand>,
    pub(crate) supervisor_only: bool,
    syntax: &'static str,
    fields: Vec<(&'static str, Field)>,
    word_count: usize,
}

enum Field {
    Constant(u32),
    /// An operand and its bits, if not all.
    Operand(&'static str, Option<(u32, u32)>),
    Coissue,
}

/// All forms with an encoding, in the order of isa.toml.
pub(crate) fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        static TABLE: OnceLock<toml::Table> = OnceLock::new();
        let table = TABLE.get_or_init(|| ipu21::data::ISA.parse().unwrap());
        let forms = table["instruction"].as_array().unwrap();
        forms.iter().map(|form| form.as_table().unwrap()).filter(|form| form["encoding"].get("fields").is_some()).map(entry).collect()
    })
}

pub(crate) fn named(id: &str) -> &'static Entry {
    entries().iter().find(|entry| entry.id == id).expect(id)
}

fn entry(form: &'static toml::Table) -> Entry {
    let text = |key: &str| form[key].as_str().unwrap();
    let id = text("id");
    let operand = |written: &'static str| {
        let mut parts = written.split(':');
        Operand { name: parts.next().unwrap(), kind: parts.next().unwrap() }
    };
    let encoding = form["encoding"].as_table().unwrap();
    let field = |value: &'static toml::Value| match value {
        toml::Value::Integer(number) => Field::Constant(*number as u32),
        _ => match value.as_str().unwrap().split_once('[') {
            None if value.as_str() == Some("coissue") => Field::Coissue,
            None => Field::Operand(value.as_str().unwrap(), None),
            Some((name, bits)) => Field::Operand(name, Some(span(bits.trim_end_matches(']')))),
        },
    };
    Entry {
        id,
        mnemonic: text("mnemonic"),
        variant: id.split_once('.').map_or("", |(_, variant)| variant),
        operands: form["operands"].as_array().unwrap().iter().map(|o| operand(o.as_str().unwrap())).collect(),
        supervisor_only: text("mode") == "supervisor",
        syntax: text("syntax"),
        fields: encoding["fields"].as_table().unwrap().iter().map(|(bits, value)| (bits.as_str(), field(value))).collect(),
        word_count: encoding["words"].as_integer().unwrap() as usize,
    }
}

/// `hi:lo`, or one bit.
fn span(bits: &str) -> (u32, u32) {
    let (high, low) = bits.split_once(':').unwrap_or((bits, bits));
    (high.parse().unwrap(), low.parse().unwrap())
}

fn ones(high: u32, low: u32) -> u64 {
    (1 << (high - low + 1)) - 1
}

/// Numbers without a pattern: splitmix64.
pub(crate) fn scramble(value: u64) -> u64 {
    let x = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 31)
}

impl Entry {
    /// Which operand has this name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|operand| operand.name == name)
    }

    /// Operand fields by chance: registers that exist, and immediates that choose this form.
    pub(crate) fn sample(&self, seed: u64) -> Vec<u32> {
        let chance = |i: usize, below: u64| (scramble(seed << 32 ^ i as u64 ^ scramble(self.id.len() as u64)) % below) as u32;
        let value = |i: usize, operand: &Operand| match operand.kind {
            "m" => chance(i, 12),
            "a" => chance(i, 8),
            "mp" => 2 * chance(i, 6),
            "ap" => 2 * chance(i, 4),
            "aq" => 4 * chance(i, 2),
            kind => self.immediate(operand, number_of(kind), chance(i, 1 << 30)),
        };
        let mut values: Vec<u32> = self.operands.iter().enumerate().map(|(i, operand)| value(i, operand)).collect();
        // Both destinations of an instruction must differ.
        for (first, second, by) in [("dst0", "dst1", 2), ("ptr", "delta", 1), ("delta", "mini", 1), ("addr", "stride", 2)] {
            if let (Some(a), Some(b)) = (self.position(first), self.position(second))
                && values[a] / 2 == values[b] / 2
            {
                values[b] = (values[a] / 2 * 2 + 2 + values[b] % 2 * (by % 2)) % 8;
            }
        }
        values
    }

    /// An immediate of so many bits; where two forms share a mnemonic, one that belongs to this form alone.
    fn immediate(&self, operand: &Operand, bits: u32, chance: u32) -> u32 {
        let any = chance & ones(bits - 1, 0) as u32;
        match operand.kind {
            "immz12" => any.max(1),
            "zimm16" if twin_of_zimm16(self) => any | 0x8000,
            "zimm20" if operand.name == "target" => any & 0x7_ffff,
            "simm16" | "simm8" => {
                let shift = 32 - bits;
                ((any << shift) as i32 >> shift) as u32
            }
            // Only these have a meaning: five roundings, and the one value of `gina` and `f32v2aop` that kernels use.
            "enum4" => any % 5,
            "enum8" | "zimm12" if self.mnemonic.ends_with("gina") || self.mnemonic == "f32v2aop" => 0,
            _ => any,
        }
    }

    /// The text of the form in the notation of its syntax line.
    pub(crate) fn text(&self, values: &[u32]) -> String {
        if self.operands.is_empty() {
            return self.mnemonic.to_owned();
        }
        let (_, pieces) = self.syntax.split_once(' ').unwrap();
        let piece = |(i, piece): (usize, &str)| {
            let (operand, value) = (&self.operands[i], values[i]);
            let suffix = ["+=", "++", ">>", "@"].into_iter().find(|suffix| piece.ends_with(suffix)).unwrap_or("");
            let broadcast = [":BL", ":BU", ":B"].into_iter().find(|broadcast| piece.ends_with(broadcast)).unwrap_or("");
            match operand.kind {
                "m" => format!("$m{value}{suffix}"),
                "a" => format!("$a{value}{broadcast}"),
                "mp" => format!("$m{value}:{}{suffix}", value + 1),
                "ap" => format!("$a{value}:{}", value + 1),
                "aq" => format!("$a{value}:{}", value + 3),
                "immz12" => format!("{}", value << 20),
                "simm16" | "simm8" => format!("{}", value.cast_signed()),
                _ if operand.name == "target" => format!("{}", (value & 0x7_ffff) << 2),
                _ => format!("{value}"),
            }
        };
        let pieces: Vec<String> = pieces.split(", ").enumerate().map(piece).collect();
        format!("{} {}", self.mnemonic, pieces.join(", "))
    }

    /// The words of the form, issued alone.
    pub(crate) fn words(&self, values: &[u32]) -> Vec<u32> {
        let mut words = vec![0_u32; self.word_count];
        for (bits, field) in &self.fields {
            let (word, bits) = match bits.split_once('[') {
                Some((word, bits)) => (usize::from(word == "w1"), bits.trim_end_matches(']')),
                None => (0, *bits),
            };
            let (high, low) = span(bits);
            let value = match field {
                Field::Constant(value) => *value,
                Field::Coissue => 0,
                Field::Operand(name, part) => {
                    let value = values[self.position(name).unwrap()];
                    let (top, bottom) = part.unwrap_or((31, 0));
                    (u64::from(value) >> bottom & ones(top, bottom)) as u32
                }
            };
            words[word] |= ((u64::from(value) & ones(high, low)) << low) as u32;
        }
        words
    }
}

fn number_of(kind: &str) -> u32 {
    if kind == "immz12" { 12 } else { kind.trim_start_matches(char::is_alphabetic).parse().unwrap() }
}

/// Whether small immediates choose another form of the same mnemonic.
fn twin_of_zimm16(entry: &Entry) -> bool {
    let twin = entry.id.replace("zi16", "si16");
    twin != entry.id && ipu21::isa::FormId::named(&twin).is_some()
}

/// What the assembler makes of a text in a mode, placed at an address.
pub(crate) fn code(text: &str, address: u32) -> Vec<u32> {
    let source = Source { name: "form".to_owned(), text: text.to_owned() };
    let bytes = assemble(&source, &BTreeMap::new(), &Parameters::shipped())
        .unwrap_or_else(|faults| panic!("{text}: {}", faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")));
    let image = Object::parse(&bytes).unwrap().link_at(address, &BTreeMap::new()).unwrap();
    image.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// The words of one form; a repeat gets the body that the assembler wants behind it.
pub(crate) fn assembled(entry: &Entry, text: &str) -> Vec<u32> {
    let mode = if entry.supervisor_only { ".supervisor" } else { ".worker" };
    if entry.mnemonic == "rpt" {
        let bundles: u32 = text.rsplit(' ').next().unwrap().parse().unwrap();
        return vec![code(&format!("{mode}; nop; {text}; .rept {}; {{ nop; fnop }}; .endr", bundles + 1), 0)[1]];
    }
    code(&format!("{mode}; {text}"), 0)
}

/// The text that the disassembler gives for words, with all numbers decimal.
pub(crate) fn disassembled(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let lines = toolchain::disassembler::disassemble(&bytes, 0x4c000);
    assert_eq!(lines.len(), 1, "{words:x?}");
    normal(&lines[0].text)
}

/// A text with all numbers decimal.
pub(crate) fn normal(text: &str) -> String {
    let number = |part: &str| match part.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).map_or(part.to_owned(), |number| number.to_string()),
        None => part.to_owned(),
    };
    let parts = text.split(' ').map(|part| part.strip_suffix(',').map_or_else(|| number(part), |part| number(part) + ","));
    parts.collect::<Vec<String>>().join(" ")
}
