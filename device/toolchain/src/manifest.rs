//! Kernel manifests: what a kernel needs, costs and promises, as TOML.
//!
//! In: the text of a manifest. Out: [`Kernel`]s with their expressions parsed. Unknown fields are refused; a fault names line and column.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ipu21::memory::{self, UnitSet, units};
use serde::Deserialize;
use toml::Spanned;

use crate::expression::Expression;
use crate::statement::is_symbol;

/// How a kernel uses an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes all of it without reading.
    Write,
    /// Reads and writes it.
    ReadWrite,
}

/// Limits of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
    /// Step.
    #[serde(default = "one")]
    pub multiple_of: i64,
}

fn one() -> i64 {
    1
}

/// An operand of a kernel: an address in the argument block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Name.
    pub name: String,
    /// Use.
    pub access: Access,
    /// Bytes from the address to the end of its reach.
    pub bytes: Expression,
    /// Alignment of the address in bytes, a power of two.
    pub align: u32,
    /// `any`, `0` or `1`; see [`Operand::region_of`].
    pub region: String,
    /// A parameter: while it is not 0 the operand lies in region 1.
    pub interleaved_if: Option<String>,
    /// Bytes behind the reach that may be read.
    pub readable_tail: Expression,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name.
    pub name: String,
    /// Source file.
    pub source: String,
    /// Entry symbol.
    pub entry: String,
    /// Assembler defines and their limits.
    pub parameters: BTreeMap<String, Range>,
    /// In the order of the argument block.
    pub operands: Vec<Operand>,
    /// Names of the runtime values behind the operands; expressions may read them too.
    pub values: Vec<String>,
    /// Pairs of operands that lie in different conflict units.
    pub apart: Vec<[String; 2]>,
    /// Screening model: clocks of one complete call.
    pub cycles: Expression,
    /// What no kernel of this operation can do without, if it was worked out.
    pub floor: Option<Floor>,
}

/// Clocks that a call takes at least, by what takes them: six busy workers issue one bundle a clock, which holds one arithmetic
/// instruction besides one load or store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Slots of the arithmetic lane, and clocks of the supervisor without workers.
    pub arithmetic: Expression,
    /// Slots of loads.
    pub loads: Expression,
    /// Slots of stores.
    pub stores: Expression,
    /// What clocks are divided by when they are shown.
    pub per: Option<Unit>,
}

/// A unit of a kernel's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// As it is read behind "clocks per".
    pub name: String,
    /// How many a call does.
    pub count: Expression,
}

impl Floor {
    /// The components by name, in the order of the manifest's documentation.
    #[must_use]
    pub const fn components(&self) -> [(&'static str, &Expression); 3] {
        [("arithmetic", &self.arithmetic), ("loads", &self.loads), ("stores", &self.stores)]
    }
}

/// What is wrong with a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestFault {
    /// Line, from 1; 0 when unknown.
    pub line: u32,
    /// Column, from 1; 0 when unknown.
    pub column: u32,
    /// What was expected and found.
    pub message: String,
}

impl fmt::Display for ManifestFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ManifestFault {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    kernel: Vec<KernelText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KernelText {
    name: Spanned<String>,
    source: String,
    entry: String,
    #[serde(default)]
    parameters: BTreeMap<String, Spanned<Range>>,
    #[serde(default)]
    operands: Vec<OperandText>,
    #[serde(default)]
    values: Vec<String>,
    #[serde(default)]
    apart: Vec<Spanned<[String; 2]>>,
    cycles: Spanned<Number>,
    #[serde(default)]
    floor: Option<FloorText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FloorText {
    arithmetic: Spanned<Number>,
    loads: Spanned<Number>,
    stores: Spanned<Number>,
    #[serde(default)]
    per: Option<UnitText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnitText {
    name: String,
    count: Spanned<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperandText {
    name: Spanned<String>,
    access: Access,
    bytes: Spanned<Number>,
    align: Spanned<u32>,
    #[serde(default = "any")]
    region: Spanned<String>,
    #[serde(default)]
    interleaved_if: Option<Spanned<String>>,
    #[serde(default)]
    readable_tail: Option<Spanned<Number>>,
}

fn any() -> Spanned<String> {
    Spanned::new(0..0, "any".to_owned())
}

/// A number or an expression.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Plain(i64),
    Expression(String),
}

/// Reads a manifest.
///
/// # Errors
/// Every fault, in source order; only the first when the text is no TOML of this shape.
pub fn parse(text: &str) -> Result<Vec<Kernel>, Vec<ManifestFault>> {
    let file: File = toml::from_str(text).map_err(|fault| {
        let (line, column) = place(text, fault.span().map_or(0, |span| span.start));
        vec![ManifestFault { line, column, message: fault.message().to_owned() }]
    })?;
    let mut reader = Reader { text, faults: Vec::new() };
    let mut kernels: Vec<Kernel> = Vec::new();
    for kernel in file.kernel {
        let start = kernel.name.span().start;
        if kernels.iter().any(|known| known.name == *kernel.name.get_ref()) {
            reader.fault(start, format!("kernel `{}` is listed twice", kernel.name.get_ref()));
        }
        kernels.extend(reader.kernel(kernel));
    }
    if reader.faults.is_empty() { Ok(kernels) } else { Err(reader.faults) }
}

fn place(text: &str, offset: usize) -> (u32, u32) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() as u32 + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) as u32 + 1;
    (line, column)
}

struct Reader<'a> {
    text: &'a str,
    faults: Vec<ManifestFault>,
}

impl Reader<'_> {
    fn fault(&mut self, offset: usize, message: String) {
        let (line, column) = place(self.text, offset);
        self.faults.push(ManifestFault { line, column, message });
    }

    fn kernel(&mut self, kernel: KernelText) -> Option<Kernel> {
        let before = self.faults.len();
        let name = kernel.name.into_inner();
        let mut parameters = BTreeMap::new();
        for (parameter, range) in kernel.parameters {
            let start = range.span().start;
            let range = range.into_inner();
            if range.min > range.max || range.multiple_of < 1 {
                let found = format!("min {}, max {}, multiple_of {}", range.min, range.max, range.multiple_of);
                self.fault(start, format!("{name}.{parameter}: expected min <= max and multiple_of >= 1, found {found}"));
            }
            if !is_symbol(&parameter) {
                self.fault(start, format!("{name}: expected a parameter name the assembler can define, found `{parameter}`"));
            }
            parameters.insert(parameter, range);
        }
        // Expressions may read the parameters of the variant and the values of the call.
        let known: BTreeSet<String> = parameters.keys().chain(&kernel.values).cloned().collect();
        let cycles = self.expression(&name, &kernel.cycles, &known);
        let floor = kernel.floor.and_then(|floor| self.floor(&name, &floor, &known, &parameters));
        let names: Vec<String> = kernel.operands.iter().map(|operand| operand.name.get_ref().clone()).collect();
        for (index, operand) in kernel.operands.iter().enumerate() {
            if names[..index].contains(operand.name.get_ref()) {
                self.fault(operand.name.span().start, format!("{name}: operand `{}` is listed twice", operand.name.get_ref()));
            }
        }
        let operands: Vec<Operand> = kernel.operands.into_iter().filter_map(|operand| self.operand(&name, operand, &known)).collect();
        let mut apart = Vec::new();
        for pair in kernel.apart {
            for unknown in pair.get_ref().iter().filter(|name| !names.contains(name)) {
                self.fault(pair.span().start, format!("{name}.apart: `{unknown}` is no operand"));
            }
            apart.push(pair.into_inner());
        }
        if self.faults.len() > before {
            return None;
        }
        Some(Kernel {
            name,
            source: kernel.source,
            entry: kernel.entry,
            parameters,
            operands,
            values: kernel.values,
            apart,
            cycles: cycles?,
            floor,
        })
    }

    fn floor(&mut self, kernel: &str, text: &FloorText, known: &BTreeSet<String>, parameters: &BTreeMap<String, Range>) -> Option<Floor> {
        let mut component = |name: &str, text: &Spanned<Number>| {
            let label = format!("{kernel}.floor.{name}");
            let expression = self.expression(&label, text, known)?;
            self.at_limits(&label, text.span().start, &expression, known, parameters);
            Some(expression)
        };
        let (arithmetic, loads) = (component("arithmetic", &text.arithmetic), component("loads", &text.loads));
        let stores = component("stores", &text.stores);
        let unit = |text: &UnitText| component("per", &text.count).map(|count| Unit { name: text.name.clone(), count });
        let per = text.per.as_ref().and_then(unit);
        Some(Floor { arithmetic: arithmetic?, loads: loads?, stores: stores?, per })
    }

    /// A floor has to be a number where all parameters have their smallest or their largest values, and where one alone
    /// has another end than the rest; values of the call are 0.
    fn at_limits(
        &mut self,
        label: &str,
        offset: usize,
        expression: &Expression,
        known: &BTreeSet<String>,
        parameters: &BTreeMap<String, Range>,
    ) {
        for variant in variants_at_limits(known, parameters) {
            let found = match expression.evaluate(&variant) {
                Ok(clocks) if clocks >= 0 => continue,
                Ok(clocks) => format!("expected at least 0, found {clocks}"),
                Err(fault) => fault.message,
            };
            let place: Vec<String> = variant.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let place = if place.is_empty() { String::new() } else { format!(" with {}", place.join(",")) };
            return self.fault(offset, format!("{label}: {found}{place}"));
        }
    }

    fn operand(&mut self, kernel: &str, operand: OperandText, known: &BTreeSet<String>) -> Option<Operand> {
        let name = operand.name.into_inner();
        let label = format!("{kernel}.{name}");
        let bytes = self.expression(&label, &operand.bytes, known)?;
        let readable_tail = match &operand.readable_tail {
            Some(tail) => self.expression(&label, tail, known)?,
            None => Expression::number(0),
        };
        if !operand.align.get_ref().is_power_of_two() {
            self.fault(operand.align.span().start, format!("{label}: expected a power of two, found {}", operand.align.get_ref()));
        }
        if !matches!(operand.region.get_ref().as_str(), "any" | "0" | "1") {
            self.fault(operand.region.span().start, format!("{label}: expected region any, 0 or 1, found `{}`", operand.region.get_ref()));
        }
        if let Some(parameter) = operand.interleaved_if.as_ref().filter(|parameter| !known.contains(parameter.get_ref())) {
            self.fault(parameter.span().start, format!("{label}: `{}` is no parameter", parameter.get_ref()));
        }
        Some(Operand {
            name,
            access: operand.access,
            bytes,
            align: operand.align.into_inner(),
            region: operand.region.into_inner(),
            interleaved_if: operand.interleaved_if.map(Spanned::into_inner),
            readable_tail,
        })
    }

    fn expression(&mut self, label: &str, text: &Spanned<Number>, known: &BTreeSet<String>) -> Option<Expression> {
        let parsed = match text.get_ref() {
            Number::Plain(number) => Ok(Expression::number(*number)),
            Number::Expression(text) => Expression::parse(text),
        };
        let start = text.span().start;
        match parsed {
            Ok(expression) => match expression.symbols().into_iter().find(|name| !known.contains(*name)) {
                Some(unknown) => {
                    self.fault(start, format!("{label}: `{unknown}` is no parameter or value"));
                    None
                }
                None => Some(expression),
            },
            Err(fault) => {
                // Behind the quote.
                self.fault(start + fault.column as usize, format!("{label}: {}", fault.message));
                None
            }
        }
    }
}

/// Parameters at the ends of their ranges: all at one, and each alone at the other.
fn variants_at_limits(known: &BTreeSet<String>, parameters: &BTreeMap<String, Range>) -> Vec<BTreeMap<String, i64>> {
    let ends: [fn(&Range) -> i64; 2] = [|range| range.min, |range| range.max];
    let mut variants = Vec::new();
    for (near, far) in [(0, 1), (1, 0)] {
        let all = known.iter().map(|name| (name.clone(), parameters.get(name).map_or(0, ends[near])));
        let all: BTreeMap<String, i64> = all.collect();
        let one = |(name, range): (&String, &Range)| {
            let mut variant = all.clone();
            variant.insert(name.clone(), ends[far](range));
            variant
        };
        variants.extend(parameters.iter().map(one));
        variants.push(all);
    }
    variants
}

/// Why the operands of a variant have no addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceFault {
    /// A size cannot be computed, or is negative or beyond 32 bits.
    Size {
        /// The operand.
        operand: String,
        /// Why.
        reason: String,
    },
    /// There is no room left that satisfies the manifest.
    NoRoom {
        /// The operand.
        operand: String,
        /// Bytes it needs, its readable tail included.
        bytes: u32,
    },
}

impl fmt::Display for PlaceFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { operand, reason } => write!(out, "operand {operand}: {reason}"),
            Self::NoRoom { operand, bytes } => write!(out, "operand {operand}: no room for {bytes} bytes"),
        }
    }
}

impl std::error::Error for PlaceFault {}

/// An operand at its address.
struct Placed {
    address: u32,
    bytes: u32,
}

impl Operand {
    /// The region of a variant's operand, `any`, `0` or `1`: coefficients fetched 16 bytes a clock come from region 1 only
    /// (machine.md b.4), the same kernel fetches them 8 bytes a clock from anywhere.
    #[must_use]
    pub fn region_of(&self, parameters: &BTreeMap<String, i64>) -> &str {
        let is_set = |parameter: &String| parameters.get(parameter).is_some_and(|value| *value != 0);
        if self.interleaved_if.as_ref().is_some_and(is_set) { "1" } else { &self.region }
    }

    /// Bytes of a variant, the readable tail included.
    ///
    /// # Errors
    /// A size that cannot be computed or exceeds 32 bits.
    pub fn reach(&self, parameters: &BTreeMap<String, i64>) -> Result<u32, PlaceFault> {
        let fault = |reason: String| PlaceFault::Size { operand: self.name.clone(), reason };
        let bytes = |expression: &Expression| expression.evaluate(parameters).map_err(|cause| fault(cause.to_string()));
        let (size, tail) = (bytes(&self.bytes)?, bytes(&self.readable_tail)?);
        let reach = size.checked_add(tail).and_then(|reach| u32::try_from(reach).ok()).filter(|_| size >= 0 && tail >= 0);
        reach.ok_or_else(|| fault(format!("expected a size of at most 32 bits, found {size} and a tail of {tail}")))
    }
}

impl Kernel {
    /// Legal addresses for all operands of a variant, for measurements and tests: alignment, region, `apart` and no overlap are respected.
    /// Greedy, in order of the operands, lowest address first; in region 0 from `from` on. `parameters` also names the values
    /// that the sizes read.
    ///
    /// # Errors
    /// An operand whose size cannot be computed or for which no room is left.
    pub fn place_operands(&self, parameters: &BTreeMap<String, i64>, from: u32) -> Result<Vec<u32>, PlaceFault> {
        let mut placed: Vec<Placed> = Vec::new();
        for operand in &self.operands {
            let bytes = operand.reach(parameters)?;
            let region = operand.region_of(parameters);
            let start = if region == "1" { memory::REGION1 } else { from };
            let end = if region == "0" { memory::REGION1 } else { memory::END };
            let others = self.units_apart_from(&operand.name, &placed);
            let address = first_free(start, end, bytes, operand.align.max(8), &placed, others);
            let address = address.ok_or_else(|| PlaceFault::NoRoom { operand: operand.name.clone(), bytes })?;
            placed.push(Placed { address, bytes });
        }
        Ok(placed.into_iter().map(|placed| placed.address).collect())
    }

    /// The units of the operands already placed that must not share one with `name`.
    fn units_apart_from(&self, name: &str, placed: &[Placed]) -> UnitSet {
        let is_apart = |other: &str| self.apart.iter().any(|[one, two]| one == name && two == other || two == name && one == other);
        let others = self.operands.iter().zip(placed).filter(|(operand, _)| is_apart(&operand.name));
        others.fold(UnitSet::EMPTY, |set, (_, placed)| set.union(units(placed.address, placed.bytes)))
    }
}

/// The lowest address from `start` on with `bytes` free bytes before `end`, outside the units of `others`.
fn first_free(start: u32, end: u32, bytes: u32, align: u32, placed: &[Placed], others: UnitSet) -> Option<u32> {
    let mut address = start.checked_next_multiple_of(align)?;
    while address.checked_add(bytes)? <= end {
        let clash = placed.iter().find(|other| address < other.address + other.bytes && other.address < address + bytes);
        let beyond = if let Some(other) = clash {
            other.address + other.bytes
        } else if units(address, bytes).intersects(others) {
            memory::unit_start(memory::unit(address)? + 1)
        } else {
            return Some(address);
        };
        address = beyond.checked_next_multiple_of(align)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ipu21::memory::units;
    use proptest::prelude::*;

    use super::parse;

    const COPY: &str = r#"
[[kernel]]
name = "copy"
source = "copy.S"
entry = "copy"
parameters = { N = { min = 1, max = 4096 } }
operands = [
    { name = "src", access = "read", bytes = "8*N", align = 8 },
    { name = "dst", access = "write", bytes = "8*N", align = 8, region = "1" },
]
apart = [["src", "dst"]]
values = ["bytes"]
cycles = "288+6*ceildiv(N,6)"
"#;

    #[test]
    fn a_manifest_is_read_and_its_operands_placed_apart() {
        let kernels = parse(COPY).unwrap();
        let parameters = BTreeMap::from([("N".to_owned(), 1024)]);
        assert_eq!(kernels[0].cycles.evaluate(&parameters), Ok(288 + 6 * 171));
        let placed = kernels[0].place_operands(&parameters, 0x58000).unwrap();
        assert!(!units(placed[0], 8192).intersects(units(placed[1], 8192)));
        assert!(placed[1] >= 0x80000);
    }

    #[test]
    fn operands_that_do_not_fit_are_named() {
        let kernels = parse(COPY).unwrap();
        let fault = kernels[0].place_operands(&BTreeMap::from([("N".to_owned(), 60_000)]), 0x58000).unwrap_err();
        assert_eq!(fault.to_string(), "operand dst: no room for 480000 bytes");
        let fault = kernels[0].place_operands(&BTreeMap::new(), 0x58000).unwrap_err();
        assert_eq!(fault.to_string(), "operand src: unknown symbol `N`");
    }

    proptest! {
        #[test]
        fn any_text_is_a_manifest_or_faults(index in 0..COPY.len(), text in "[-a-z0-9\"'\\[\\]{}=,. *()\n]{0,6}") {
            let changed = format!("{}{text}{}", &COPY[..index], &COPY[index..]);
            if let Ok(kernels) = parse(&changed) {
                for kernel in kernels {
                    let _ = kernel.place_operands(&BTreeMap::from([("N".to_owned(), 7)]), 0x58000);
                }
            }
        }
    }

    #[test]
    fn a_parameter_can_move_an_operand_to_the_interleaved_region() {
        let text = COPY.replacen("bytes = \"8*N\", align = 8 }", "bytes = \"8*N\", align = 8, interleaved_if = \"N\" }", 1);
        let source = &parse(&text).unwrap()[0].operands[0];
        let with = |value| BTreeMap::from([("N".to_owned(), value)]);
        assert_eq!((source.region_of(&with(0)), source.region_of(&with(1))), ("any", "1"));
        let faults = parse(&text.replacen("interleaved_if = \"N\"", "interleaved_if = \"M\"", 1)).unwrap_err();
        assert!(faults[0].message.ends_with("copy.src: `M` is no parameter"), "{}", faults[0]);
    }

    #[test]
    fn a_floor_is_a_number_of_clocks_wherever_the_parameters_end() {
        let with = |arithmetic: &str| format!("{COPY}floor = {{ arithmetic = {arithmetic}, loads = \"N\", stores = \"bytes/8\" }}\n");
        let floor = parse(&with("0")).unwrap().remove(0).floor.unwrap();
        let symbols = BTreeMap::from([("N".to_owned(), 1024), ("bytes".to_owned(), 80)]);
        let clocks = floor.components().map(|(name, expression)| (name, expression.evaluate(&symbols).unwrap()));
        assert_eq!(clocks, [("arithmetic", 0), ("loads", 1024), ("stores", 10)]);
        assert_eq!(parse(COPY).unwrap()[0].floor, None);
        let cases = [
            ("\"M\"", "14:24: copy.floor.arithmetic: `M` is no parameter or value"),
            ("\"1+*\"", "14:27: copy.floor.arithmetic: expected a value, found `*`"),
            ("\"2-N\"", "14:24: copy.floor.arithmetic: expected at least 0, found -4094 with N=4096,bytes=0"),
            ("\"8/(N-1)\"", "14:24: copy.floor.arithmetic: division by zero with N=1,bytes=0"),
            ("-1", "14:24: copy.floor.arithmetic: expected at least 0, found -1 with N=4096,bytes=0"),
        ];
        for (arithmetic, expected) in cases {
            let faults = parse(&with(arithmetic)).unwrap_err();
            assert_eq!(faults.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
        }
        let faults = parse(&with("1").replacen(", loads = \"N\"", "", 1)).unwrap_err();
        assert_eq!(faults[0].to_string(), "14:9: missing field `loads`");
    }

    #[test]
    fn faults_name_their_place() {
        let cases = [
            ("\"8*N\", align = 8 }", "\"8*M\", align = 8 }", "8:46: copy.src: `M` is no parameter or value"),
            ("[\"src\", \"dst\"]", "[\"src\", \"dts\"]", "11:10: copy.apart: `dts` is no operand"),
            ("region = \"1\"", "region = \"2\"", "9:74: copy.dst: expected region any, 0 or 1, found `2`"),
            ("\"8*N\", align = 8 }", "\"8*\", align = 8 }", "8:49: copy.src: expected a value, found the end"),
            ("min = 1", "min = 5000", "6:20: copy.N: expected min <= max and multiple_of >= 1, found min 5000, max 4096, multiple_of 1"),
            ("\"dst\", access", "\"src\", access", "9:14: copy: operand `src` is listed twice\n11:10: copy.apart: `dst` is no operand"),
            (
                "values",
                "volues",
                "12:1: unknown field `volues`, expected one of `name`, `source`, `entry`, `parameters`, `operands`, `values`, `apart`, `cycles`, `floor`",
            ),
        ];
        for (from, to, expected) in cases {
            let faults = parse(&COPY.replacen(from, to, 1)).unwrap_err();
            assert_eq!(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), expected, "{to}");
        }
    }
}
