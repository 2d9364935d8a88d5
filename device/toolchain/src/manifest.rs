//! Kernel manifests: what a kernel needs, costs and promises, as TOML.
//!
//! In: the text of a manifest. Out: [`Kernel`]s with their expressions parsed. Unknown fields are refused; a fault names line and column.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ipu21::memory::{self, UnitSet, units};
use serde::Deserialize;
use toml::Spanned;

use crate::expression::Expression;

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
    /// `any`, `0` or `1`.
    pub region: String,
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
                self.fault(start, format!("{name}.{parameter}: expected min <= max and multiple_of >= 1"));
            }
            parameters.insert(parameter, range);
        }
        // Expressions may read the parameters of the variant and the values of the call.
        let known: BTreeSet<String> = parameters.keys().chain(&kernel.values).cloned().collect();
        let cycles = self.expression(&name, &kernel.cycles, &known);
        let operands: Vec<Operand> = kernel.operands.into_iter().filter_map(|operand| self.operand(&name, operand, &known)).collect();
        let mut apart = Vec::new();
        for pair in kernel.apart {
            let start = pair.span().start;
            let pair = pair.into_inner();
            if let Some(unknown) = pair.iter().find(|name| !operands.iter().any(|operand| operand.name == **name)) {
                self.fault(start, format!("{name}.apart: `{unknown}` is no operand"));
            }
            apart.push(pair);
        }
        if self.faults.len() > before {
            return None;
        }
        Some(Kernel { name, source: kernel.source, entry: kernel.entry, parameters, operands, values: kernel.values, apart, cycles: cycles? })
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
        Some(Operand { name, access: operand.access, bytes, align: operand.align.into_inner(), region: operand.region.into_inner(), readable_tail })
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
                self.fault(start, format!("{label}: column {}: {}", fault.column, fault.message));
                None
            }
        }
    }
}

impl Kernel {
    /// Legal addresses for all operands of a variant, for benches and tests: greedy, in order, above `from` in region 0.
    /// `None` when they do not fit.
    #[must_use]
    pub fn place_operands(&self, parameters: &BTreeMap<String, i64>, from: u32) -> Option<Vec<u32>> {
        let mut placed: Vec<(u32, u32)> = Vec::new();
        for operand in &self.operands {
            let bytes = |expression: &Expression| expression.evaluate(parameters).ok().and_then(|bytes| u32::try_from(bytes).ok());
            let size = bytes(&operand.bytes)?.checked_add(bytes(&operand.readable_tail)?)?;
            let wide = operand.name == "w" && parameters.get("WMEM") == Some(&1);
            let start = if operand.region == "1" || wide { memory::REGION1 } else { from };
            let others: UnitSet = self.apart_units(&operand.name, &placed);
            let address = self.first_free(operand, size, start, &placed, others)?;
            placed.push((address, size));
        }
        Some(placed.into_iter().map(|(address, _)| address).collect())
    }

    fn apart_units(&self, name: &str, placed: &[(u32, u32)]) -> UnitSet {
        let mut set = UnitSet::EMPTY;
        for (operand, (address, size)) in self.operands.iter().zip(placed) {
            if self.apart.iter().any(|[one, other]| one == name && *other == operand.name || other == name && *one == operand.name) {
                set = set.union(units(*address, *size));
            }
        }
        set
    }

    fn first_free(&self, operand: &Operand, size: u32, start: u32, placed: &[(u32, u32)], others: UnitSet) -> Option<u32> {
        let mut address = start.next_multiple_of(operand.align.max(8));
        let end = if operand.region == "0" { memory::REGION1 } else { memory::END };
        while address.checked_add(size)? <= end {
            let clash = placed.iter().find(|(other, length)| address < other + length && *other < address + size);
            if let Some((other, length)) = clash {
                address = (other + length.max(&1)).next_multiple_of(operand.align.max(8));
            } else if units(address, size).intersects(others) {
                let unit = memory::unit(address)?;
                address = if unit + 1 < memory::UNITS { memory::unit_start(unit + 1) } else { return None };
            } else {
                return Some(address);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ipu21::memory::units;

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
    fn faults_name_their_place() {
        let cases = [
            ("\"8*N\", align = 8 }", "\"8*M\", align = 8 }", "8:48: copy.src: `M` is no parameter or value"),
            ("[\"src\", \"dst\"]", "[\"src\", \"dts\"]", "11:10: copy.apart: `dts` is no operand"),
            ("region = \"1\"", "region = \"2\"", "9:75: copy.dst: expected region any, 0 or 1, found `2`"),
            ("values", "volues", "12:1: unknown field `volues`, expected one of `name`, `source`, `entry`, `parameters`, `operands`, `values`, `apart`, `cycles`"),
        ];
        for (from, to, expected) in cases {
            let faults = parse(&COPY.replacen(from, to, 1)).unwrap_err();
            assert_eq!(faults.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected], "{to}");
        }
    }
}
