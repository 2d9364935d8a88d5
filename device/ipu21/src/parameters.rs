//! Every value the public facts leave open, as one typed table read from `data/parameters.toml`.
//!
//! No other place holds such a value. Kind `code`: it appears in emitted words; a package that used one says so. Kind `model`: it
//! changes only what the simulator computes or how long that takes.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};

use crate::data;

/// The table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Immediate values without public numbers.
    pub immediate: Immediates,
    /// Issue slots by mnemonic; `default` for the rest.
    pub slots: BTreeMap<String, u32>,
    /// Clocks of supervisor instructions.
    pub supervisor: Supervisor,
    /// Clocks of barriers.
    pub barrier: Barrier,
    /// What survives, and what corner cases give.
    pub state: State,
    /// How the simulator computes.
    pub arithmetic: Arithmetic,
    /// What the simulator does where no public source says anything.
    pub choice: Choice,
}

/// Immediate values without public numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Immediates {
    /// Phases 0..4 of the f16 matrix unit, four engines.
    pub tamp_f16v4_e4: Phases<4>,
    /// Phases 0..2, two engines.
    pub tamp_f16v4_e2: Phases<2>,
    /// Phase 0, one engine.
    pub tamp_f16v4_e1: Phases<1>,
    /// Phases 0..8 of the f32 matrix unit.
    pub tamp_f32_e4: Phases<8>,
    /// Phases 0..4, two engines.
    pub tamp_f32_e2: Phases<4>,
    /// Phase 2, one engine.
    pub tamp_f32_e1: PhaseTwo,
    /// Phases 0..4 of the FP8 matrix unit.
    pub tamp_f8v8_e4: Phases<4>,
    /// Weight columns 0..4 of the 1x4 slim convolution.
    pub tslic_f16v4_1x4: Weights<4>,
    /// Steps of the 1x4 f32 slim convolution: column n, low halves 2n, high halves 2n + 1.
    pub tslic_f32_1x4: Phases<8>,
    /// Phases 0..2 of the transposer's input.
    pub tistacc: Phases<2>,
    /// Phases 0..2 of the transposer's output.
    pub tstacc: Phases<2>,
    /// Operand of `gina`.
    pub gina: Single,
    /// Operand of `f32v2aop`.
    pub aop: Single,
    /// How `tapack` splits the third address.
    pub tapack_addr2_split: Split,
    /// Flags of an ELF object.
    pub elf_e_flags_ipu21: Single,
}

/// Where a value comes from and who reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Appears in emitted words.
    Code,
    /// Changes only the simulation.
    Model,
}

/// Values of numbered phases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phases<const N: usize> {
    /// By phase.
    #[serde(with = "array")]
    pub p: [u32; N],
    /// Whether it appears in code.
    pub kind: Kind,
    /// How sure it is.
    pub status: String,
    /// Who reads it.
    pub reader: String,
}

/// Values of numbered weight columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights<const N: usize> {
    /// By column.
    #[serde(with = "array")]
    pub w: [u32; N],
    /// Whether it appears in code.
    pub kind: Kind,
    /// How sure it is.
    pub status: String,
    /// Who reads it.
    pub reader: String,
}

/// The value of phase 2 alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseTwo {
    /// Phase 2.
    pub p2: u32,
    /// Whether it appears in code.
    pub kind: Kind,
    /// How sure it is.
    pub status: String,
    /// Who reads it.
    pub reader: String,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Single {
    /// The value.
    pub value: u32,
    /// Whether it appears in code.
    pub kind: Kind,
    /// How sure it is.
    pub status: String,
    /// Who reads it.
    pub reader: String,
    /// Remark.
    #[serde(default)]
    pub note: String,
}

/// The split of the third packed address, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// What the upper bits of the lower register hold.
    pub lower: String,
    /// What the upper bits of the upper register hold.
    pub upper: String,
    /// Whether it appears in code.
    pub kind: Kind,
    /// How sure it is.
    pub status: String,
    /// Who reads it.
    pub reader: String,
}

/// Clocks of supervisor instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Supervisor {
    /// An instruction that waits for nothing.
    pub independent_instruction: u32,
    /// 64-bit coefficient load.
    pub ld64putcs: u32,
    /// 128-bit coefficient load.
    pub ld128putcs: u32,
    /// A branch that is taken.
    pub taken_branch: u32,
    /// Starting all workers.
    pub runall: u32,
    /// From the last worker's exit to the supervisor's next instruction.
    pub local_sync_return: u32,
    /// From an instruction to the use of its result.
    pub result_latency: u32,
    /// From a CSR write to an instruction that depends on it.
    pub csr_latency: u32,
    /// Issue slots of the supervisor while six workers run.
    pub slots_while_six_workers_run: u32,
}

/// Clocks of barriers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// A whole empty phase: join of the workers after the last exit, barrier, call of the row, return.
    pub internal_empty_phase: u32,
    /// A barrier with the host.
    pub host: u32,
}

/// What survives, and what corner cases give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Accumulators keep their values from a worker's exit to its next launch.
    pub accumulators_survive_exit_and_run: bool,
    /// Registers likewise.
    pub registers_survive_exit_and_run: bool,
    /// Initial floating-point control of workers.
    pub fp_ictl_at_reset: u32,
    /// What happens to f32 denormals.
    pub f32_denormals: String,
    /// How workers' exit states combine.
    pub exit_status_consensus: String,
    /// The data count matters only to `sync 0`.
    pub dcount_counts_only_for_sync_0: bool,
    /// Shift amounts above 31.
    pub shift_above_31: String,
    /// `f32toi32` out of range.
    pub f32toi32_out_of_range: String,
    /// `abs` of the smallest integer.
    pub abs_int_min: String,
}

/// How the simulator computes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arithmetic {
    /// Sums of the matrix unit.
    pub amp_sum: String,
    /// exp, ln, tanh and the like.
    pub transcendentals: String,
    /// Random numbers.
    pub prng: String,
}

/// What the simulator does where no public source says anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// What the class forms give.
    pub class_codes: ClassCodes,
    /// Accumulators of `f32v2aop`: x0*y0, x1*y0, x0*y1, x1*y1.
    #[serde(with = "array")]
    pub aop_accumulators: [u32; 4],
    /// The half of the packed deltas of `ldb16b16` that moves by one element.
    pub ldb16b16_counted_half: PackedHalf,
    /// Bytes of one unit of the lowest four bits of `ldb16b16`'s last operand.
    pub ldb16b16_mini_bytes: u32,
    /// Bytes that stride code 0 moves the second access of `ld64a32pace` and `ld64b16pace`.
    pub narrow_pace_stride_bytes: u32,
    /// What a value beyond an FP8 format becomes.
    pub fp8_overflow: Fp8Overflow,
    /// How the two calls of an f32 slim convolution share its work.
    pub f32_slic: String,
}

/// Codes of IEEE 754 classes, at most 15.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are the names of the classes")]
pub struct ClassCodes {
    pub signalling_nan: u32,
    pub quiet_nan: u32,
    pub positive_zero: u32,
    pub negative_zero: u32,
    pub positive_subnormal: u32,
    pub negative_subnormal: u32,
    pub positive_normal: u32,
    pub negative_normal: u32,
    pub positive_infinity: u32,
    pub negative_infinity: u32,
}

impl ClassCodes {
    /// Codes of signalling and quiet NaN, then of zero, subnormal, normal and infinity, each positive and negative.
    #[must_use]
    pub fn in_order(&self) -> [u32; 10] {
        [
            self.signalling_nan,
            self.quiet_nan,
            self.positive_zero,
            self.negative_zero,
            self.positive_subnormal,
            self.negative_subnormal,
            self.positive_normal,
            self.negative_normal,
            self.positive_infinity,
            self.negative_infinity,
        ]
    }
}

/// One of two 16-bit numbers in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackedHalf {
    /// Bits 15:0.
    Low,
    /// Bits 31:16.
    High,
}

/// What a value beyond an FP8 format becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fp8Overflow {
    /// The largest number of its sign.
    Largest,
    /// NaN.
    Nan,
}

/// A value of the table as reports show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// `section.name`.
    pub name: String,
    /// The value as the file writes it.
    pub value: String,
    /// Whether it appears in code.
    pub kind: Kind,
    /// How sure it is: `unknown`, `derived`, `assumed`, or where it was estimated.
    pub status: String,
}

impl Entry {
    fn new(section: &str, name: &str, value: &toml::Value) -> Self {
        let of = |field: &str| value.get(field).and_then(toml::Value::as_str);
        let values = ["p", "w", "p2", "value"].iter().find_map(|field| value.get(*field));
        // Only immediates say kind and status themselves; the heads of the other sections say it for all of them.
        let status = match section {
            "slots" => "poplibs estimate",
            "supervisor" => "isa-notes 3",
            "choice" => "the simulator's own",
            _ => "assumed",
        };
        Self {
            name: format!("{section}.{name}"),
            value: match (values, of("lower"), of("upper")) {
                (Some(values), ..) => values.to_string(),
                (None, Some(lower), Some(upper)) => format!("{lower}; {upper}"),
                _ => value.to_string(),
            },
            kind: if of("kind") == Some("code") { Kind::Code } else { Kind::Model },
            status: of("status").unwrap_or(status).to_owned(),
        }
    }
}

/// What is wrong with a parameter file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterFault {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The value's name, what was expected and what was found.
    pub message: String,
}

impl ParameterFault {
    /// A fault at a byte of the file.
    fn at(text: &str, start: usize, message: String) -> Self {
        let before = text.get(..start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1, message }
    }

    /// A fault of the value with a name, `message` behind that name.
    fn of(text: &str, name: &str, message: impl fmt::Display) -> Self {
        let mut start = 0;
        each_value(text, &mut |known, span, _| {
            if known == name {
                start = span.start;
            }
        });
        Self::at(text, start, format!("{name}: {message}"))
    }
}

/// Calls `visit` with name, place and value of everything in a TOML file that is no table; files that are not TOML have nothing.
fn each_value(text: &str, visit: &mut impl FnMut(&str, std::ops::Range<usize>, &DeValue<'_>)) {
    fn walk(prefix: &str, table: &DeTable<'_>, visit: &mut impl FnMut(&str, std::ops::Range<usize>, &DeValue<'_>)) {
        for (name, value) in table {
            let name = format!("{prefix}{}", name.get_ref());
            match value.get_ref() {
                DeValue::Table(inner) => walk(&format!("{name}."), inner, visit),
                other => visit(&name, value.span(), other),
            }
        }
    }
    if let Ok(table) = DeTable::parse(text) {
        walk("", table.get_ref(), visit);
    }
}

/// What the simulator does in one way only. These values say which way that is, in the words of TOML; another one would be believed
/// and not obeyed, so it is refused. All other values may be changed, `status`, `reader` and `note` at will.
#[rustfmt::skip]
const ONLY: [(&str, &str); 14] = [
    ("immediate.tapack_addr2_split.lower",   r#""addr2[10:0] in bits 31:21""#),
    ("immediate.tapack_addr2_split.upper",   r#""addr2[20:11] in bits 30:21""#),
    ("slots.rpt_loop_overhead",              "0"),
    ("supervisor.slots_while_six_workers_run", "0"),
    ("state.f32_denormals",                  r#""kept""#),
    ("state.exit_status_consensus",          r#""and""#),
    ("state.dcount_counts_only_for_sync_0",  "true"),
    ("state.shift_above_31",                 r#""zero; sign for arithmetic right""#),
    ("state.f32toi32_out_of_range",          r#""saturate""#),
    ("state.abs_int_min",                    r#""int_min""#),
    ("arithmetic.amp_sum",                   r#""products and accumulator in f64, ((p0+p1)+(p2+p3))+acc, one rounding to f32 per call""#),
    ("arithmetic.transcendentals",           r#""f64 by the pure-Rust libm crate, one rounding""#),
    ("arithmetic.prng",                      r#""xoroshiro128+ stand-in; named as the simulator's own""#),
    ("choice.f32_slic",                      r#""even immediates multiply the low halves of column imm / 2 and move set 0, odd ones the high halves and move set 1""#),
];

/// A plain value as TOML writes it.
fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{text}\""),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Boolean(is_so) => is_so.to_string(),
        other => other.type_str().to_owned(),
    }
}

impl fmt::Display for ParameterFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParameterFault {}

impl Parameters {
    /// Reads a table; every field must be there and no other, and no value that the simulator cannot follow.
    ///
    /// # Errors
    /// The first [`ParameterFault`].
    pub fn parse(text: &str) -> Result<Self, ParameterFault> {
        let parameters: Self = toml::from_str(text).map_err(|fault| {
            let start = fault.span().map_or(0, |span| span.start);
            let mut field = String::new();
            each_value(text, &mut |name, span, _| {
                if span.contains(&start) {
                    field = format!("{name}: ");
                }
            });
            ParameterFault::at(text, start, field + fault.message())
        })?;
        parameters.check(text)?;
        Ok(parameters)
    }

    /// The shipped table.
    ///
    /// # Panics
    /// When the compiled-in file is wrong, which a test excludes.
    #[must_use]
    pub fn shipped() -> Self {
        Self::parse(data::PARAMETERS).expect("the shipped parameters are checked by a test")
    }

    /// Issue slots of a worker instruction, at least 1.
    #[must_use]
    pub fn slots_of(&self, mnemonic: &str) -> u32 {
        self.slots.get(mnemonic).or_else(|| self.slots.get("default")).copied().unwrap_or(1)
    }

    /// Names of the values that appear in emitted words and are not known.
    #[must_use]
    pub fn unknown_code_values(&self) -> Vec<&'static str> {
        let of = |name, kind: &Kind, status: &str| (*kind == Kind::Code && status == "unknown").then_some(name);
        let table = &self.immediate;
        [
            of("tamp_f16v4_e4", &table.tamp_f16v4_e4.kind, &table.tamp_f16v4_e4.status),
            of("tamp_f16v4_e2", &table.tamp_f16v4_e2.kind, &table.tamp_f16v4_e2.status),
            of("tamp_f16v4_e1", &table.tamp_f16v4_e1.kind, &table.tamp_f16v4_e1.status),
            of("tamp_f32_e4", &table.tamp_f32_e4.kind, &table.tamp_f32_e4.status),
            of("tamp_f32_e2", &table.tamp_f32_e2.kind, &table.tamp_f32_e2.status),
            of("tamp_f32_e1", &table.tamp_f32_e1.kind, &table.tamp_f32_e1.status),
            of("tamp_f8v8_e4", &table.tamp_f8v8_e4.kind, &table.tamp_f8v8_e4.status),
            of("tslic_f16v4_1x4", &table.tslic_f16v4_1x4.kind, &table.tslic_f16v4_1x4.status),
            of("tslic_f32_1x4", &table.tslic_f32_1x4.kind, &table.tslic_f32_1x4.status),
            of("tistacc", &table.tistacc.kind, &table.tistacc.status),
            of("tstacc", &table.tstacc.kind, &table.tstacc.status),
            of("gina", &table.gina.kind, &table.gina.status),
            of("aop", &table.aop.kind, &table.aop.status),
            of("elf_e_flags_ipu21", &table.elf_e_flags_ipu21.kind, &table.elf_e_flags_ipu21.status),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Every value with its standing, by section and name, for reports.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let table = toml::Table::try_from(self).expect("plain fields serialise");
        let sections = table.iter().filter_map(|(section, fields)| fields.as_table().map(|fields| (section, fields)));
        sections.flat_map(|(section, fields)| fields.iter().map(|(name, value)| Entry::new(section, name, value))).collect()
    }

    /// Names of the unknown values that appear in machine words, ascending: what a program with this code assumes.
    #[must_use]
    pub fn unknown_values_in(&self, words: &[u32]) -> Vec<&'static str> {
        let unknown = self.unknown_code_values();
        let mut used: Vec<&'static str> =
            words.iter().filter_map(|word| self.named_immediate(*word)).filter(|name| unknown.contains(name)).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// What the meaning or the cost of an instruction depends on besides its documentation: names as in [`entries`](Self::entries),
    /// and `isa.ID` for a form whose meaning isa.toml doubts. Words that do not decode depend on nothing.
    #[must_use]
    pub fn read_by(&self, words: &[u32]) -> Vec<String> {
        let Some(decoded) = crate::isa::decode(words) else { return Vec::new() };
        let form = crate::isa::form(decoded.form);
        let mut names: Vec<String> = values_of(form.mnemonic).into_iter().map(str::to_owned).collect();
        names.extend(words.first().and_then(|word| self.named_immediate(*word)).map(|name| format!("immediate.{name}")));
        let slots = if self.slots.contains_key(form.mnemonic) { form.mnemonic } else { "default" };
        if form.mode == crate::isa::Mode::Worker {
            names.push(format!("slots.{slots}"));
        }
        if form.mnemonic == "sync" {
            names.extend(barrier_of(decoded.operands()[0]).map(str::to_owned));
        }
        if form.is_doubtful {
            names.push(format!("isa.{}", form.id));
        }
        names
    }

    /// The field of [`Immediates`] that the named immediate of a word comes from.
    fn named_immediate(&self, word: u32) -> Option<&'static str> {
        let decoded = crate::isa::decode(&[word])?;
        let form = crate::isa::form(decoded.form);
        let named = |kind| matches!(kind, crate::isa::OperandKind::Named(_));
        let value = form.operands.iter().zip(decoded.operands()).find(|(operand, _)| named(operand.kind)).map(|(_, value)| *value)?;
        let table = &self.immediate;
        match form.mnemonic {
            "f16v4stacc" => Some("tstacc"),
            "f16v4istacc" => Some("tistacc"),
            "f32v2aop" => Some("aop"),
            name if name.starts_with("f32") && name.ends_with("slic") => Some("tslic_f32_1x4"),
            name if name.ends_with("slic") => Some("tslic_f16v4_1x4"),
            name if name.starts_with("f8v8") => Some("tamp_f8v8_e4"),
            name if name.starts_with("f16v4") && table.tamp_f16v4_e4.p.contains(&value) => Some("tamp_f16v4_e4"),
            name if name.starts_with("f16v4") && table.tamp_f16v4_e2.p.contains(&value) => Some("tamp_f16v4_e2"),
            name if name.starts_with("f16v4") => Some("tamp_f16v4_e1"),
            name if name.ends_with("amp") && table.tamp_f32_e4.p.contains(&value) => Some("tamp_f32_e4"),
            name if name.ends_with("amp") && table.tamp_f32_e2.p.contains(&value) => Some("tamp_f32_e2"),
            name if name.ends_with("amp") => Some("tamp_f32_e1"),
            _ => None,
        }
    }

    /// The symbols assembly sources use for named immediates, with their values.
    #[must_use]
    pub fn symbols(&self) -> BTreeMap<String, u32> {
        let table = &self.immediate;
        let mut symbols = BTreeMap::new();
        let mut phases = |prefix: &str, values: &[u32]| {
            for (number, value) in values.iter().enumerate() {
                symbols.insert(format!("{prefix}{number}"), *value);
            }
        };
        phases("TAMP_F16V4_E4_P", &table.tamp_f16v4_e4.p);
        phases("TAMP_F16V4_E2_P", &table.tamp_f16v4_e2.p);
        phases("TAMP_F16V4_E1_P", &table.tamp_f16v4_e1.p);
        phases("TAMP_F32_E4_P", &table.tamp_f32_e4.p);
        phases("TAMP_F32_E2_P", &table.tamp_f32_e2.p);
        phases("TAMP_F8V8_E4_P", &table.tamp_f8v8_e4.p);
        phases("TSLIC_F16V4_1x4_W", &table.tslic_f16v4_1x4.w);
        phases("TISTACC_P", &table.tistacc.p);
        phases("TSTACC_P", &table.tstacc.p);
        symbols.insert("TAMP_F32_E1_P2".to_owned(), table.tamp_f32_e1.p2);
        symbols
    }

    fn check(&self, text: &str) -> Result<(), ParameterFault> {
        let fault = |name: &str, message: &str| Err(ParameterFault::of(text, name, message));
        if !self.slots.contains_key("default") {
            return fault("slots", "expected a field `default`");
        }
        let known = |name: &str| matches!(name, "default" | "rpt_loop_overhead") || crate::isa::forms_of(name).next().is_some();
        if let Some(name) = self.slots.keys().find(|name| !known(name)) {
            return fault(&format!("slots.{name}"), "no such mnemonic");
        }
        if let Some((name, _)) = self.slots.iter().find(|(name, slots)| **slots == 0 && *name != "rpt_loop_overhead") {
            return fault(&format!("slots.{name}"), "expected at least 1, found 0");
        }
        if let Some(code) = self.choice.class_codes.in_order().into_iter().find(|code| *code > 15) {
            return fault("choice.class_codes", &format!("expected codes up to 15, found {code}"));
        }
        if let Some(number) = self.choice.aop_accumulators.into_iter().find(|number| *number > 31) {
            return fault("choice.aop_accumulators", &format!("expected numbers up to 31, found {number}"));
        }
        let mut refused = Vec::new();
        each_value(text, &mut |name, span, value| {
            let only = ONLY.iter().find(|(only, _)| *only == name).map(|(_, value)| *value);
            refused.extend(only.filter(|only| *only != written(value)).map(|only| {
                let message = format!("{name}: expected {only}, the only way of the simulator, found {}", written(value));
                (span.start, message)
            }));
        });
        match refused.into_iter().min() {
            Some((start, message)) => Err(ParameterFault::at(text, start, message)),
            None => Ok(()),
        }
    }
}

/// The value that the cost or meaning of a synchronisation zone depends on.
fn barrier_of(zone: u32) -> Option<&'static str> {
    match zone {
        0 => Some("state.dcount_counts_only_for_sync_0"),
        2 => Some("supervisor.local_sync_return"),
        3 => Some("barrier.internal_empty_phase"),
        7 | 15 => Some("barrier.host"),
        _ => None,
    }
}

/// Values that an instruction depends on whatever its operands are.
fn values_of(mnemonic: &str) -> Vec<&'static str> {
    const FUNCTIONS: [&str; 8] = ["exp", "exp2", "ln", "log2", "tanh", "sigm", "oox", "oorx"];
    let behind = |prefix: &str| mnemonic.strip_prefix(prefix).unwrap_or_default();
    let mut names = Vec::new();
    if FUNCTIONS.contains(&behind("f16v2")) || FUNCTIONS.contains(&behind("f32")) {
        names.push("arithmetic.transcendentals");
    }
    if ["urand", "f16v2grand", "f32v2grand", "f16v4rmask", "f32v2rmask"].iter().any(|start| mnemonic.starts_with(start)) {
        names.push("arithmetic.prng");
    }
    let sums = ["amp", "slic", "acc", "mac", "mix", "axpy", "aop"];
    if mnemonic.starts_with('f')
        && sums.iter().any(|end| mnemonic.ends_with(end))
        && !["clamp", "stacc"].iter().any(|end| mnemonic.ends_with(end))
    {
        names.push("arithmetic.amp_sum");
        names.push("state.accumulators_survive_exit_and_run");
    }
    if mnemonic.starts_with("f32") {
        names.push("state.f32_denormals");
    }
    if mnemonic.ends_with("gina") {
        names.push("immediate.gina");
    }
    if mnemonic.ends_with("class") {
        names.push("choice.class_codes");
    }
    if mnemonic == "tapack" || mnemonic.ends_with("pace") {
        names.push("immediate.tapack_addr2_split");
    }
    if mnemonic.starts_with("exit") {
        names.push("state.exit_status_consensus");
    }
    names.extend(match mnemonic {
        "shl" | "shr" | "shrs" => Some("state.shift_above_31"),
        "abs" => Some("state.abs_int_min"),
        "f32toi32" | "f32toui32" => Some("state.f32toi32_out_of_range"),
        "ld64a32pace" | "ld64b16pace" => Some("choice.narrow_pace_stride_bytes"),
        "f16v2tof8" | "f16v8tof8" => Some("choice.fp8_overflow"),
        "f32v2aop" => Some("choice.aop_accumulators"),
        "f32sisoslic" | "f32sisov2slic" => Some("choice.f32_slic"),
        "ld64putcs" => Some("supervisor.ld64putcs"),
        "ld128putcs" => Some("supervisor.ld128putcs"),
        "bri" | "br" | "call" => Some("supervisor.taken_branch"),
        _ => None,
    });
    names.extend(match mnemonic {
        "run" | "runall" => ["supervisor.runall", "state.registers_survive_exit_and_run", "state.fp_ictl_at_reset"].as_slice(),
        "ldb16b16" => ["choice.ldb16b16_counted_half", "choice.ldb16b16_mini_bytes"].as_slice(),
        _ => [].as_slice(),
    });
    names
}

/// Arrays of any length through serde.
mod array {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer, const N: usize>(values: &[u32; N], serializer: S) -> Result<S::Ok, S::Error> {
        values.as_slice().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(deserializer: D) -> Result<[u32; N], D::Error> {
        let values = Vec::<u32>::deserialize(deserializer)?;
        let found = values.len();
        values.try_into().map_err(|_| D::Error::custom(format!("expected {N} values, found {found}")))
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Parameters};
    use crate::data;

    #[test]
    fn shipped_values_are_readable() {
        let parameters = Parameters::parse(data::PARAMETERS).unwrap();
        assert_eq!(parameters.slots_of("f16v2exp"), 2);
        assert_eq!(parameters.slots_of("f16v4add"), 1);
        assert_eq!(parameters.symbols()["TAMP_F16V4_E4_P3"], 3);
    }

    #[test]
    fn every_value_is_listed_with_its_standing() {
        let entries = Parameters::shipped().entries();
        let lines = data::PARAMETERS.lines().filter(|line| line.contains(" = ") && !line.starts_with(['#', '['])).count();
        assert_eq!(entries.len(), lines);
        let shown = |name: &str| {
            let entry = entries.iter().find(|entry| entry.name == name).unwrap();
            (entry.value.as_str(), &entry.kind, entry.status.as_str())
        };
        assert_eq!(shown("immediate.tamp_f16v4_e2"), ("[8, 9]", &Kind::Code, "unknown"));
        assert_eq!(shown("immediate.gina"), ("0", &Kind::Code, "derived"));
        assert_eq!(shown("barrier.internal_empty_phase"), ("600", &Kind::Model, "assumed"));
        assert_eq!(shown("slots.f32ln"), ("6", &Kind::Model, "poplibs estimate"));
    }

    #[test]
    fn unknown_code_values_are_those_of_kind_code_and_status_unknown() {
        let parameters = Parameters::shipped();
        let entries = parameters.entries();
        let unknown = entries.iter().filter(|entry| entry.kind == Kind::Code && entry.status == "unknown");
        let mut named: Vec<String> = parameters.unknown_code_values().iter().map(|name| format!("immediate.{name}")).collect();
        named.sort();
        assert_eq!(named, unknown.map(|entry| entry.name.clone()).collect::<Vec<_>>());
    }

    #[test]
    fn values_in_code_are_told_apart_by_instruction_and_phase() {
        let parameters = Parameters::shipped();
        let amp = |phase| crate::isa::encode(crate::isa::form::F16V4HIHOV4AMP_PPP_EF6, &[4, 0, 2, phase], true).unwrap().word();
        assert_eq!(parameters.unknown_values_in(&[amp(0), crate::isa::NOP, amp(9)]), ["tamp_f16v4_e2", "tamp_f16v4_e4"]);
        assert_eq!(parameters.unknown_values_in(&[crate::isa::NOP]), Vec::<&str>::new());
    }

    #[test]
    fn what_an_instruction_depends_on_is_named() {
        let parameters = Parameters::shipped();
        let read_by = |id: &str, operands: &[u32]| {
            let id = crate::isa::FormId::named(id).unwrap();
            parameters.read_by(crate::isa::encode(id, operands, false).unwrap().words())
        };
        assert_eq!(read_by("f16v2exp.aa", &[1, 2]), ["arithmetic.transcendentals", "slots.f16v2exp", "isa.f16v2exp.aa"]);
        assert_eq!(read_by("sync.zi4", &[3]), ["barrier.internal_empty_phase"]);
        assert_eq!(read_by("f16v4istacc.ppp_ef6", &[0, 2, 4, 0]).first().unwrap(), "immediate.tistacc");
        assert_eq!(read_by("add.mmm", &[1, 2, 3]), Vec::<String>::new());
    }

    #[test]
    fn every_name_that_an_instruction_depends_on_is_a_value_of_the_table() {
        let entries = Parameters::shipped().entries();
        for (_, form) in crate::isa::forms() {
            for name in super::values_of(form.mnemonic) {
                assert!(entries.iter().any(|entry| entry.name == name), "{} {name}", form.id);
            }
        }
    }

    #[test]
    fn a_missing_field_is_named() {
        let text = data::PARAMETERS.replace("\nhost = 2000", "\n");
        assert!(Parameters::parse(&text).unwrap_err().to_string().contains("missing field `host`"));
    }

    #[test]
    fn an_unknown_field_is_named() {
        let text = data::PARAMETERS.replace("\nhost = 2000", "\nhost = 2000\ngost = 1");
        assert!(Parameters::parse(&text).unwrap_err().to_string().contains("unknown field `gost`"));
    }

    #[test]
    fn slots_of_a_mnemonic_that_does_not_exist_are_refused() {
        let text = data::PARAMETERS.replace("f16v2exp = 2", "f16v3exp = 2");
        assert_eq!(Parameters::parse(&text).unwrap_err().to_string(), "25:12: slots.f16v3exp: no such mnemonic");
    }

    #[test]
    fn each_text_is_followed_or_refused_when_changed() {
        const FREE: [&str; 4] = ["kind", "status", "reader", "note"];
        let mut texts = Vec::new();
        super::each_value(data::PARAMETERS, &mut |name, span, value| {
            let is_free = FREE.iter().any(|free| name.ends_with(&format!(".{free}")));
            texts.extend((value.as_str().is_some() && !is_free).then(|| (name.to_owned(), span)));
        });
        assert_eq!(texts.len(), 13);
        for (name, span) in texts {
            let text = format!("{}\"something\"{}", &data::PARAMETERS[..span.start], &data::PARAMETERS[span.end..]);
            let fault = Parameters::parse(&text).unwrap_err();
            let line = data::PARAMETERS[..span.start].lines().count();
            assert_eq!(fault.line, line, "{fault}");
            assert!(fault.message.starts_with(&format!("{name}: ")) && fault.message.contains("something"), "{fault}");
        }
    }

    #[test]
    fn a_value_of_which_the_simulator_knows_one_only_is_refused_with_both() {
        for (name, only) in super::ONLY {
            assert_eq!(Parameters::shipped().entries().iter().filter(|entry| name.starts_with(&entry.name)).count(), 1, "{name} {only}");
        }
        let text = data::PARAMETERS.replace("shift_above_31 = \"zero; sign for arithmetic right\"", "shift_above_31 = \"modulo 32\"");
        let message =
            "state.shift_above_31: expected \"zero; sign for arithmetic right\", the only way of the simulator, found \"modulo 32\"";
        assert_eq!(Parameters::parse(&text).unwrap_err().message, message);
        let text = data::PARAMETERS.replace("slots_while_six_workers_run = 0", "slots_while_six_workers_run = 1");
        let message = "supervisor.slots_while_six_workers_run: expected 0, the only way of the simulator, found 1";
        assert_eq!(Parameters::parse(&text).unwrap_err().message, message);
    }
}
