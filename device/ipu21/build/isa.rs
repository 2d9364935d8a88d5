//! The instruction table as written, and everything that must hold of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

#[derive(Deserialize)]
struct File {
    meta: Meta,
    instruction: Vec<Instruction>,
    csr: Vec<Csr>,
}

#[derive(Deserialize)]
struct Meta {
    forms: usize,
    mnemonics: usize,
    status_counts: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
struct Instruction {
    mnemonic: String,
    id: String,
    syntax: String,
    operands: Vec<String>,
    mode: String,
    lane: String,
    class: String,
    coissue: bool,
    semantics: String,
    semantics_confidence: Option<String>,
    encoding: EncodingText,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum EncodingText {
    Unknown(String),
    Known(Encoding),
}

#[derive(Deserialize)]
struct Encoding {
    status: String,
    words: u32,
    #[serde(rename = "match")]
    matches: Option<u32>,
    mask: Option<u32>,
    fields: BTreeMap<String, FieldText>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FieldText {
    Constant(u32),
    Name(String),
}

#[derive(Clone, Deserialize)]
pub struct Csr {
    pub name: String,
    pub index: u32,
    pub mode: String,
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
}

/// A checked table.
pub struct Table {
    pub forms: Vec<Form>,
    pub csrs: Vec<Csr>,
}

/// One encoding form.
pub struct Form {
    pub id: String,
    pub mnemonic: String,
    pub syntax: String,
    pub semantics: String,
    pub is_doubtful: bool,
    pub mode: &'static str,
    pub lane: &'static str,
    pub class: &'static str,
    pub coissue: bool,
    pub words: u32,
    pub matches: u32,
    pub mask: u32,
    pub status: &'static str,
    pub operands: Vec<Operand>,
}

/// One operand and the bits it fills.
pub struct Operand {
    pub name: String,
    pub kind: String,
    pub modifier: &'static str,
    pub slices: Vec<Slice>,
}

/// `width` bits of the operand from bit `from`, at bit `low` of word `word`.
#[derive(Clone, Copy)]
pub struct Slice {
    pub word: u32,
    pub low: u32,
    pub width: u32,
    pub from: u32,
}

/// A field of a word, before it is known whose it is.
struct Field<'a> {
    word: u32,
    high: u32,
    low: u32,
    value: &'a FieldText,
}

pub fn read(text: &str) -> Result<Table, Vec<String>> {
    let file: File = toml::from_str(text).map_err(|fault| vec![fault.to_string()])?;
    let mut faults = Vec::new();
    let mut forms = Vec::new();
    for instruction in &file.instruction {
        match form(instruction) {
            Ok(made) => forms.push(made),
            Err(fault) => faults.push(format!("{}: {fault}", instruction.id)),
        }
    }
    check_counts(&file, &mut faults);
    check_disjoint(&forms, &mut faults);
    let mut seen = BTreeSet::new();
    for csr in &file.csr {
        if !seen.insert((csr.index, csr.mode.clone(), csr.name.clone())) {
            faults.push(format!("csr {} {}: listed twice", csr.index, csr.name));
        }
    }
    if faults.is_empty() { Ok(Table { forms, csrs: file.csr }) } else { Err(faults) }
}

fn check_counts(file: &File, faults: &mut Vec<String>) {
    let mnemonics: BTreeSet<&str> = file.instruction.iter().map(|instruction| instruction.mnemonic.as_str()).collect();
    let ids: BTreeSet<&str> = file.instruction.iter().map(|instruction| instruction.id.as_str()).collect();
    let mut statuses = BTreeMap::new();
    for instruction in &file.instruction {
        let status = match &instruction.encoding {
            EncodingText::Unknown(status) => status.clone(),
            EncodingText::Known(encoding) => encoding.status.clone(),
        };
        *statuses.entry(status).or_insert(0) += 1;
    }
    for (what, expected, found) in [
        ("forms", file.meta.forms, file.instruction.len()),
        ("distinct form ids", file.meta.forms, ids.len()),
        ("mnemonics", file.meta.mnemonics, mnemonics.len()),
    ] {
        if expected != found {
            faults.push(format!("[meta] names {expected} {what}, the table has {found}"));
        }
    }
    if statuses != file.meta.status_counts {
        faults.push(format!("[meta] status_counts are {:?}, the table has {statuses:?}", file.meta.status_counts));
    }
}

fn check_disjoint(forms: &[Form], faults: &mut Vec<String>) {
    let known: Vec<&Form> = forms.iter().filter(|form| form.words > 0).collect();
    for (index, one) in known.iter().enumerate() {
        for other in &known[index + 1..] {
            let common = one.mask & other.mask;
            if one.matches & common == other.matches & common {
                faults.push(format!("{} and {}: a word can be both", one.id, other.id));
            }
        }
    }
}

fn form(instruction: &Instruction) -> Result<Form, String> {
    let operands = instruction.operands.iter().map(|text| operand(text)).collect::<Result<Vec<_>, _>>()?;
    let mut form = Form {
        id: instruction.id.clone(),
        mnemonic: instruction.mnemonic.clone(),
        syntax: instruction.syntax.clone(),
        semantics: instruction.semantics.clone(),
        is_doubtful: instruction.semantics_confidence.is_some(),
        mode: one_of(&instruction.mode, &[("worker", "Worker"), ("supervisor", "Supervisor"), ("both", "Both")])?,
        lane: one_of(&instruction.lane, &[("main", "Main"), ("aux", "Aux")])?,
        class: one_of(
            &instruction.class,
            &[
                ("normal", "Normal"),
                ("control", "Control"),
                ("system", "System"),
                ("load", "Load"),
                ("store", "Store"),
                ("load+store", "LoadStore"),
            ],
        )?,
        coissue: instruction.coissue,
        words: 0,
        matches: 0,
        mask: 0,
        status: "Unknown",
        operands,
    };
    if let EncodingText::Known(encoding) = &instruction.encoding {
        encode(&mut form, encoding)?;
    }
    Ok(form)
}

fn one_of(found: &str, known: &[(&str, &'static str)]) -> Result<&'static str, String> {
    let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    known.iter().find(|(name, _)| *name == found).map(|(_, name)| *name).ok_or_else(|| format!("`{found}` is none of {}", names()))
}

fn operand(text: &str) -> Result<Operand, String> {
    let mut parts = text.split(':');
    let (name, kind) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let modifiers = [
        ("", "None"),
        ("+=", "PostIncrement"),
        ("++", "PostIncrementFixed"),
        (">>", "Shifted"),
        ("@", "Reloaded"),
        ("B", "Broadcast"),
        ("BL", "BroadcastLower"),
        ("BU", "BroadcastUpper"),
    ];
    let modifier = one_of(parts.next().unwrap_or_default(), &modifiers).map_err(|fault| format!("operand {name}: {fault}"))?;
    width_of(kind)?;
    Ok(Operand { name: name.to_owned(), kind: kind.to_owned(), modifier, slices: Vec::new() })
}

/// Bits an operand of this kind fills.
pub fn width_of(kind: &str) -> Result<u32, String> {
    let digits = kind.trim_start_matches(char::is_alphabetic);
    let letters = &kind[..kind.len() - digits.len()];
    match (letters, digits.parse::<u32>()) {
        ("m" | "mp" | "a" | "ap" | "aq", Err(_)) => Ok(4),
        ("zimm" | "simm" | "enum", Ok(width)) if (1..=20).contains(&width) => Ok(width),
        // immz12 is written with the z behind the word.
        ("immz", Ok(12)) => Ok(12),
        _ => Err(format!("unknown operand kind `{kind}`")),
    }
}

fn encode(form: &mut Form, encoding: &Encoding) -> Result<(), String> {
    form.status = one_of(&encoding.status, &[("verified", "Verified"), ("table", "Table"), ("derived", "Derived")])?;
    form.words = encoding.words;
    let (mut used, mut constant, mut value) = ([0_u32; 2], [0_u32; 2], [0_u32; 2]);
    for (key, text) in &encoding.fields {
        let field = field(key, text)?;
        let bits = ((((1_u64 << (field.high - field.low + 1)) - 1) as u32) << field.low, field.word as usize);
        if field.word >= encoding.words || used[bits.1] & bits.0 != 0 {
            return Err(format!("field {key} lies outside its word or overlaps another field"));
        }
        used[bits.1] |= bits.0;
        match field.value {
            FieldText::Constant(number) => {
                let placed = u64::from(*number) << field.low;
                if placed & !u64::from(bits.0) != 0 {
                    return Err(format!("field {key}: constant {number:#x} does not fit"));
                }
                constant[bits.1] |= bits.0;
                value[bits.1] |= placed as u32;
            }
            FieldText::Name(name) if name == "coissue" => {
                if (field.high, field.low) != (31, 31) {
                    return Err("the coissue bit is bit 31".to_owned());
                }
            }
            FieldText::Name(name) => assign(form, name, &field)?,
        }
    }
    if used[..encoding.words as usize].iter().any(|bits| *bits != u32::MAX) {
        return Err("the fields do not fill the word".to_owned());
    }
    complete(form)?;
    let (matches, mask) = match (encoding.matches, encoding.mask) {
        (Some(matches), Some(mask)) => (matches, mask),
        // A two-word form is recognised by its first word, coissue bit and all.
        (None, None) if encoding.words == 2 => (value[0], constant[0]),
        _ => return Err("match and mask belong together".to_owned()),
    };
    if matches & !mask != 0 {
        return Err(format!("match {matches:#x} has bits outside mask {mask:#x}"));
    }
    if mask & constant[0] != constant[0] || matches & constant[0] != value[0] {
        return Err(format!("match and mask disagree with the constant fields {:#x}/{:#x}", value[0], constant[0]));
    }
    check_low_bits(form, mask & !constant[0], matches)?;
    (form.matches, form.mask) = (matches, mask);
    Ok(())
}

/// Mask bits beyond the constants must be the low bits of register pairs and quads, and zero.
fn check_low_bits(form: &Form, extra: u32, matches: u32) -> Result<(), String> {
    let mut allowed = 0;
    for operand in &form.operands {
        let low_bits = match operand.kind.as_str() {
            "ap" | "mp" => 1,
            "aq" => 3,
            _ => 0,
        };
        for slice in &operand.slices {
            for bit in 0..slice.width {
                if low_bits >> (slice.from + bit) & 1 == 1 {
                    allowed |= 1 << (slice.low + bit);
                }
            }
        }
    }
    if extra & !(allowed | 1 << 31) != 0 || extra & matches & allowed != 0 {
        return Err(format!("mask bits {extra:#x} are neither constants nor low bits of register groups ({allowed:#x})"));
    }
    Ok(())
}

fn field<'a>(key: &str, value: &'a FieldText) -> Result<Field<'a>, String> {
    let (word, bits) = match key.strip_suffix(']').and_then(|key| key.strip_prefix('w')).and_then(|key| key.split_once('[')) {
        Some((word, bits)) => (word.parse().map_err(|_| format!("field {key}: no word number"))?, bits),
        None => (0, key),
    };
    let (high, low) = range(bits).ok_or_else(|| format!("field {key}: expected bits `high:low`"))?;
    Ok(Field { word, high, low, value })
}

fn range(text: &str) -> Option<(u32, u32)> {
    let (high, low) = match text.split_once(':') {
        Some((high, low)) => (high.parse().ok()?, low.parse().ok()?),
        None => (text.parse().ok()?, text.parse().ok()?),
    };
    (high < 32 && low <= high).then_some((high, low))
}

fn assign(form: &mut Form, name: &str, field: &Field) -> Result<(), String> {
    let width = field.high - field.low + 1;
    let (operand, from) = match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((operand, bits)) => {
            let (high, low) = range(bits).ok_or_else(|| format!("operand slice {name}: expected `[high:low]`"))?;
            if high - low + 1 != width {
                return Err(format!("operand slice {name} is not {width} bits wide"));
            }
            (operand, low)
        }
        None => (name, 0),
    };
    let known = form.operands.iter_mut().find(|known| known.name == operand).ok_or_else(|| format!("no operand named {operand}"))?;
    known.slices.push(Slice { word: field.word, low: field.low, width, from });
    Ok(())
}

/// Every bit of every operand is encoded exactly once; the low bits of a quad need not be.
fn complete(form: &Form) -> Result<(), String> {
    for operand in &form.operands {
        let mut filled = 0_u32;
        for slice in &operand.slices {
            let bits = (((1_u64 << slice.width) - 1) as u32) << slice.from;
            if filled & bits != 0 {
                return Err(format!("operand {}: bits encoded twice", operand.name));
            }
            filled |= bits;
        }
        let all = (1_u32 << width_of(&operand.kind)?) - 1;
        let implied = match operand.kind.as_str() {
            "aq" => 3,
            "ap" | "mp" => 1,
            _ => 0,
        };
        if filled | implied != all {
            return Err(format!("operand {} ({}): encoded bits {filled:#x} of {all:#x}", operand.name, operand.kind));
        }
    }
    Ok(())
}
