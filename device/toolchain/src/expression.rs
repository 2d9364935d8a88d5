//! Integer expressions of assembly sources and kernel manifests.
//!
//! 64-bit signed arithmetic, checked: overflow and division by zero are errors. Functions: `ceildiv(a, b)`, `max(..)`, `min(..)`.
//!
//! In manifests ([`Expression::parse`]) operators bind as in C, by rising strength: `||`, `&&`, comparisons, `|`, `^`, `&`, shifts, `+ -`,
//! `* / %`. A comparison that holds is 1. Division rounds towards negative infinity, and a remainder has the sign of its divisor.
//!
//! In sources ([`Expression::parse_source`]) they bind as in the GNU assembler: `||`, `&&`, comparisons, `+ -`, `| & ^ !`, `* / % << >>`. A
//! comparison that holds is -1, division rounds towards 0 as in C, `>>` shifts zeros into 64 bits, and a leading 0 makes a number octal.
//! `a ! b` is `a | ~b`, and `<>` is `!=`.
//!
//! All operators group from the left; unary `- ~ ! +` bind strongest. The rules of sources are those of "Using as", 6.2.4 Infix
//! Operators; that `+ -` go before comparisons and `&&` before `||`, which share a rank there, is LLVM's `getGNUBinOpPrecedence`. The
//! vendor's public assembler (graphcore/llvm-project-fork, `ColossusAsmParser`) hands its expressions to that parser. Whether it keeps
//! LLVM's default of a logical `>>` is not public and assumed here.
//!
//! Numbers: `12`, `0x1f`, `0b11`, `1_000`; floating-point literals stand for their bits, `1.0h` of an f16, `1.0` and `1.0f` of an f32.
//! A character in quotes stands for its code. `1f` and `1b` are symbols: the next and the last numbered label.

use std::collections::BTreeMap;
use std::fmt;

/// A parsed expression; equal when written the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    text: String,
    tree: Tree,
}

/// What is wrong with an expression or its evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionFault {
    /// Column in characters from the start of the expression, from 1; the place of the operator for faults of evaluation.
    pub column: u32,
    /// What was expected and found.
    pub message: String,
}

impl fmt::Display for ExpressionFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.message)
    }
}

impl std::error::Error for ExpressionFault {}

/// A value that may be relative to a symbol whose address is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The symbol, if any.
    pub symbol: Option<String>,
    /// The number, or the distance from the symbol.
    pub number: i64,
}

/// What names a section among the symbols of values: no symbol of a source begins with it. The first section has the empty name.
const SECTION: char = '\u{1}';

impl Value {
    /// An address in a section of this object, by its index.
    pub(crate) fn in_section(section: usize, offset: u32) -> Self {
        let symbol = if section == 0 { String::new() } else { format!("{SECTION}{section}") };
        Self { symbol: Some(symbol), number: i64::from(offset) }
    }
}

/// The index of a section, if a symbol of a value names one.
pub(crate) fn section_of(symbol: &str) -> Option<usize> {
    if symbol.is_empty() { Some(0) } else { symbol.strip_prefix(SECTION)?.parse().ok() }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self { symbol: None, number }
    }
}

/// What a symbol means where it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A value.
    Value(Value),
    /// Another symbol. A part behind `#` tells symbols of one spelling apart and is not shown.
    Name(String),
}

/// Finds what a symbol means; `None`: not decided yet.
pub(crate) type Bind<'a> = &'a dyn Fn(&str) -> Option<Meaning>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    BitOr,
    BitXor,
    BitAnd,
    /// `a | ~b`.
    BitOrNot,
    ShiftLeft,
    ShiftRight,
    /// Bits of 64 in, zeros from above.
    ShiftRightLogical,
    Plus,
    Minus,
    Times,
    /// Towards negative infinity.
    Divide,
    Remainder,
    /// Towards 0.
    Quotient,
    Rest,
}

impl Operator {
    const fn compares(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual | Self::Less | Self::LessEqual | Self::Greater | Self::GreaterEqual)
    }
}

/// Which rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grammar {
    Manifest,
    Source,
}

impl Grammar {
    const fn operators(self) -> &'static [(&'static str, u8, Operator)] {
        match self {
            Self::Manifest => &MANIFEST,
            Self::Source => &SOURCE,
        }
    }
}

/// Spelling, strength and meaning as in C; longer spellings first.
#[rustfmt::skip]
const MANIFEST: [(&str, u8, Operator); 18] = [
    ("||", 1, Operator::Or),        ("&&", 2, Operator::And),
    ("==", 3, Operator::Equal),     ("!=", 3, Operator::NotEqual),
    ("<<", 7, Operator::ShiftLeft), (">>", 7, Operator::ShiftRight),
    ("<=", 3, Operator::LessEqual), (">=", 3, Operator::GreaterEqual),
    ("<",  3, Operator::Less),      (">",  3, Operator::Greater),
    ("|",  4, Operator::BitOr),     ("^",  5, Operator::BitXor),    ("&",  6, Operator::BitAnd),
    ("+",  8, Operator::Plus),      ("-",  8, Operator::Minus),
    ("*",  9, Operator::Times),     ("/",  9, Operator::Divide),    ("%",  9, Operator::Remainder),
];

/// The same as in the GNU assembler.
#[rustfmt::skip]
const SOURCE: [(&str, u8, Operator); 20] = [
    ("||", 1, Operator::Or),        ("&&", 2, Operator::And),
    ("==", 3, Operator::Equal),     ("!=", 3, Operator::NotEqual),  ("<>", 3, Operator::NotEqual),
    ("<<", 6, Operator::ShiftLeft), (">>", 6, Operator::ShiftRightLogical),
    ("<=", 3, Operator::LessEqual), (">=", 3, Operator::GreaterEqual),
    ("<",  3, Operator::Less),      (">",  3, Operator::Greater),
    ("+",  4, Operator::Plus),      ("-",  4, Operator::Minus),
    ("|",  5, Operator::BitOr),     ("^",  5, Operator::BitXor),    ("&",  5, Operator::BitAnd), ("!", 5, Operator::BitOrNot),
    ("*",  6, Operator::Times),     ("/",  6, Operator::Quotient),  ("%",  6, Operator::Rest),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    CeilDiv,
    Max,
    Min,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Tree {
    Known(Value),
    Symbol { column: u32, name: String },
    Unary { column: u32, operator: char, operand: Box<Tree> },
    Binary { column: u32, operator: Operator, left: Box<Tree>, right: Box<Tree> },
    Call { column: u32, function: Function, arguments: Vec<Tree> },
}

/// Deepest nesting of parentheses and unary operators.
const DEPTH_MAX: u32 = 64;
/// Most operands of an expression; evaluation recurses along a chain of operators.
const OPERANDS_MAX: u32 = 1000;

impl Expression {
    /// Reads an expression of a manifest; the whole text must be one.
    ///
    /// # Errors
    /// [`ExpressionFault`] with the column.
    pub fn parse(text: &str) -> Result<Self, ExpressionFault> {
        Self::parse_as(Grammar::Manifest, text)
    }

    /// Reads an expression of a source; the whole text must be one.
    ///
    /// # Errors
    /// [`ExpressionFault`] with the column.
    pub fn parse_source(text: &str) -> Result<Self, ExpressionFault> {
        Self::parse_as(Grammar::Source, text)
    }

    fn parse_as(grammar: Grammar, text: &str) -> Result<Self, ExpressionFault> {
        let mut parser = Parser { grammar, characters: text.chars().collect(), at: 0, depth: 0, operands: 0 };
        let tree = parser.binary(0)?;
        parser.skip_spaces();
        match parser.characters.get(parser.at) {
            None => Ok(Self { text: text.trim().to_owned(), tree }),
            Some(found) => Err(parser.fault(format!("expected an operator, found `{found}`"))),
        }
    }

    /// A plain number.
    #[must_use]
    pub fn number(number: i64) -> Self {
        Self { text: number.to_string(), tree: Tree::Known(Value::from(number)) }
    }

    /// The value of a text that is nothing but a decimal number or one of base 16, in a source.
    pub(crate) fn plain(text: &str) -> Option<i64> {
        match text.strip_prefix("0x") {
            Some(hex) if hex.bytes().all(|digit| digit.is_ascii_hexdigit()) => i64::from_str_radix(hex, 16).ok(),
            None if text.bytes().all(|digit| digit.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0')) => text.parse().ok(),
            _ => None,
        }
    }

    /// The value, if it is a number that depends on no symbol and can be computed.
    pub(crate) fn known(&self) -> Option<i64> {
        let is_closed = self.symbols().is_empty();
        let value = is_closed.then(|| self.evaluate_with(&|_| None).ok())??;
        value.symbol.is_none().then_some(value.number)
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value with these symbols.
    ///
    /// # Errors
    /// An unknown symbol, an overflow, a division by zero.
    pub fn evaluate(&self, symbols: &BTreeMap<String, i64>) -> Result<i64, ExpressionFault> {
        let value = self.evaluate_with(&|name| symbols.get(name).copied().map(Value::from))?;
        debug_assert_eq!(value.symbol, None, "symbols are plain numbers here");
        Ok(value.number)
    }

    /// The value with symbols that may be addresses: their sums with numbers and differences are allowed, nothing else.
    ///
    /// # Errors
    /// As [`Expression::evaluate`].
    pub fn evaluate_with(&self, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<Value, ExpressionFault> {
        evaluate(&self.tree, lookup)
    }

    /// The expression with symbols replaced by what they mean now; those without a binding stay.
    pub(crate) fn bound(&self, bind: Bind<'_>) -> Self {
        Self { text: self.text.clone(), tree: bound(&self.tree, bind) }
    }

    /// The name, when it is a symbol alone.
    pub(crate) fn as_symbol(&self) -> Option<&str> {
        match &self.tree {
            Tree::Symbol { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Its negation.
    pub(crate) fn negated(&self) -> Self {
        Self { text: format!("-({})", self.text), tree: Tree::Unary { column: 1, operator: '-', operand: Box::new(self.tree.clone()) } }
    }

    /// The names it reads.
    #[must_use]
    pub fn symbols(&self) -> Vec<&str> {
        fn walk<'a>(tree: &'a Tree, names: &mut Vec<&'a str>) {
            match tree {
                Tree::Known(_) => {}
                Tree::Symbol { name, .. } => names.push(name),
                Tree::Unary { operand, .. } => walk(operand, names),
                Tree::Binary { left, right, .. } => {
                    walk(left, names);
                    walk(right, names);
                }
                Tree::Call { arguments, .. } => arguments.iter().for_each(|argument| walk(argument, names)),
            }
        }
        let mut names = Vec::new();
        walk(&self.tree, &mut names);
        names
    }
}

fn bound(tree: &Tree, bind: Bind<'_>) -> Tree {
    match tree {
        Tree::Known(_) => tree.clone(),
        Tree::Symbol { column, name } => match bind(name) {
            Some(Meaning::Value(value)) => Tree::Known(value),
            Some(Meaning::Name(name)) => Tree::Symbol { column: *column, name },
            None => tree.clone(),
        },
        Tree::Unary { column, operator, operand } => {
            Tree::Unary { column: *column, operator: *operator, operand: Box::new(bound(operand, bind)) }
        }
        Tree::Binary { column, operator, left, right } => {
            let (left, right) = (Box::new(bound(left, bind)), Box::new(bound(right, bind)));
            Tree::Binary { column: *column, operator: *operator, left, right }
        }
        Tree::Call { column, function, arguments } => {
            let arguments = arguments.iter().map(|argument| bound(argument, bind)).collect();
            Tree::Call { column: *column, function: *function, arguments }
        }
    }
}

fn evaluate(tree: &Tree, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<Value, ExpressionFault> {
    match tree {
        Tree::Known(value) => Ok(value.clone()),
        Tree::Symbol { column, name } => {
            let shown = || name.split('#').next().unwrap_or(name);
            lookup(name).ok_or_else(|| ExpressionFault { column: *column, message: format!("unknown symbol `{}`", shown()) })
        }
        Tree::Unary { column, operator, operand } => {
            let number = plain(*column, evaluate(operand, lookup)?)?;
            let result = match operator {
                '-' => number.checked_neg(),
                '~' => Some(!number),
                _ => Some(i64::from(number == 0)),
            };
            result.map(Value::from).ok_or_else(|| overflow(*column))
        }
        Tree::Binary { column, operator, left, right } => binary(*column, *operator, evaluate(left, lookup)?, evaluate(right, lookup)?),
        Tree::Call { column, function, arguments } => {
            let numbers = arguments.iter().map(|argument| plain(*column, evaluate(argument, lookup)?)).collect::<Result<Vec<_>, _>>()?;
            call(*column, *function, &numbers).map(Value::from)
        }
    }
}

fn overflow(column: u32) -> ExpressionFault {
    ExpressionFault { column, message: "the value exceeds 64 bits".to_owned() }
}

fn plain(column: u32, value: Value) -> Result<i64, ExpressionFault> {
    match value.symbol {
        None => Ok(value.number),
        Some(symbol) if section_of(&symbol).is_some() => {
            Err(ExpressionFault { column, message: "the address of a label is not known here".to_owned() })
        }
        Some(symbol) => Err(ExpressionFault { column, message: format!("the value of `{symbol}` is not known here") }),
    }
}

fn binary(column: u32, operator: Operator, left: Value, right: Value) -> Result<Value, ExpressionFault> {
    match (operator, &left.symbol, &right.symbol) {
        (Operator::Plus, Some(_), None) => shifted(column, left.symbol, left.number.checked_add(right.number)),
        (Operator::Plus, None, Some(_)) => shifted(column, right.symbol, left.number.checked_add(right.number)),
        (Operator::Minus, Some(_), None) => shifted(column, left.symbol, left.number.checked_sub(right.number)),
        (Operator::Minus, Some(one), Some(other)) if one == other => shifted(column, None, left.number.checked_sub(right.number)),
        _ => numeric(column, operator, plain(column, left)?, plain(column, right)?).map(Value::from),
    }
}

fn shifted(column: u32, symbol: Option<String>, number: Option<i64>) -> Result<Value, ExpressionFault> {
    Ok(Value { symbol, number: number.ok_or_else(|| overflow(column))? })
}

fn numeric(column: u32, operator: Operator, left: i64, right: i64) -> Result<i64, ExpressionFault> {
    if right == 0 && matches!(operator, Operator::Divide | Operator::Remainder | Operator::Quotient | Operator::Rest) {
        return Err(ExpressionFault { column, message: "division by zero".to_owned() });
    }
    let amount = u32::try_from(right).ok().filter(|amount| *amount < 64);
    if amount.is_none() && matches!(operator, Operator::ShiftLeft | Operator::ShiftRight | Operator::ShiftRightLogical) {
        return Err(ExpressionFault { column, message: format!("expected a shift by 0..=63, found {right}") });
    }
    let amount = amount.unwrap_or(0);
    let result = match operator {
        Operator::Or => Some(i64::from(left != 0 || right != 0)),
        Operator::And => Some(i64::from(left != 0 && right != 0)),
        Operator::Equal => Some(i64::from(left == right)),
        Operator::NotEqual => Some(i64::from(left != right)),
        Operator::Less => Some(i64::from(left < right)),
        Operator::LessEqual => Some(i64::from(left <= right)),
        Operator::Greater => Some(i64::from(left > right)),
        Operator::GreaterEqual => Some(i64::from(left >= right)),
        Operator::BitOr => Some(left | right),
        Operator::BitXor => Some(left ^ right),
        Operator::BitAnd => Some(left & right),
        Operator::BitOrNot => Some(left | !right),
        Operator::ShiftLeft => Some(left << amount).filter(|shifted| shifted >> amount == left),
        Operator::ShiftRight => Some(left >> amount),
        Operator::ShiftRightLogical => Some((left.cast_unsigned() >> amount).cast_signed()),
        Operator::Plus => left.checked_add(right),
        Operator::Minus => left.checked_sub(right),
        Operator::Times => left.checked_mul(right),
        Operator::Quotient => left.checked_div(right),
        Operator::Rest => Some(left.wrapping_rem(right)),
        Operator::Divide => floor_div(left, right),
        Operator::Remainder => floor_div(left, right).map(|quotient| left.wrapping_sub(quotient.wrapping_mul(right))),
    };
    result.ok_or_else(|| overflow(column))
}

fn floor_div(left: i64, right: i64) -> Option<i64> {
    let quotient = left.checked_div(right)?;
    let exact = quotient.wrapping_mul(right) == left;
    if !exact && (left < 0) != (right < 0) { quotient.checked_sub(1) } else { Some(quotient) }
}

fn call(column: u32, function: Function, arguments: &[i64]) -> Result<i64, ExpressionFault> {
    let count = |expected: &str| ExpressionFault { column, message: format!("expected {expected} arguments, found {}", arguments.len()) };
    match (function, arguments) {
        (Function::CeilDiv, &[left, right]) => {
            if right == 0 {
                return Err(ExpressionFault { column, message: "division by zero".to_owned() });
            }
            let floor = floor_div(left, right).ok_or_else(|| overflow(column))?;
            let exact = floor.wrapping_mul(right) == left;
            if exact { Ok(floor) } else { floor.checked_add(1).ok_or_else(|| overflow(column)) }
        }
        (Function::CeilDiv, _) => Err(count("2")),
        (Function::Max, _) => arguments.iter().copied().max().ok_or_else(|| count("some")),
        (Function::Min, _) => arguments.iter().copied().min().ok_or_else(|| count("some")),
    }
}

struct Parser {
    grammar: Grammar,
    characters: Vec<char>,
    at: usize,
    depth: u32,
    operands: u32,
}

impl Parser {
    fn fault(&self, message: String) -> ExpressionFault {
        ExpressionFault { column: self.column(), message }
    }

    fn column(&self) -> u32 {
        self.at as u32 + 1
    }

    fn is_source(&self) -> bool {
        self.grammar == Grammar::Source
    }

    fn skip_spaces(&mut self) {
        while self.characters.get(self.at).is_some_and(|character| character.is_whitespace()) {
            self.at += 1;
        }
    }

    fn take(&mut self, text: &str) -> bool {
        self.skip_spaces();
        let found = text.chars().enumerate().all(|(index, character)| self.characters.get(self.at + index) == Some(&character));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    fn operator(&mut self, weakest: u8) -> Option<(u32, u8, Operator)> {
        self.skip_spaces();
        let start = self.at;
        let column = self.column();
        for (text, strength, operator) in self.grammar.operators() {
            if self.take(text) {
                if *strength > weakest {
                    return Some((column, *strength, *operator));
                }
                self.at = start;
                return None;
            }
        }
        None
    }

    fn binary(&mut self, weakest: u8) -> Result<Tree, ExpressionFault> {
        let mut left = self.unary()?;
        while let Some((column, strength, operator)) = self.operator(weakest) {
            let right = self.binary(strength)?;
            left = Tree::Binary { column, operator, left: Box::new(left), right: Box::new(right) };
            if operator.compares() && self.is_source() {
                left = Tree::Unary { column, operator: '-', operand: Box::new(left) };
            }
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Tree, ExpressionFault> {
        self.skip_spaces();
        self.depth += 1;
        self.operands += 1;
        if self.operands > OPERANDS_MAX {
            return Err(self.fault(format!("expected at most {OPERANDS_MAX} operands")));
        }
        if self.depth > DEPTH_MAX {
            return Err(self.fault(format!("expected at most {DEPTH_MAX} nested operators")));
        }
        let column = self.column();
        let sign = self.characters.get(self.at).copied().filter(|sign| "-~!+".contains(*sign));
        self.at += usize::from(sign.is_some());
        let tree = match sign {
            Some('-') if self.starts_float() => self.primary_with_sign(true),
            Some('+') => self.unary(),
            Some(operator) => self.unary().map(|operand| Tree::Unary { column, operator, operand: Box::new(operand) }),
            None => self.primary_with_sign(false),
        };
        self.depth -= 1;
        tree
    }

    /// Whether a floating-point literal comes next, whose sign belongs to its bits.
    fn starts_float(&self) -> bool {
        let digits = self.characters[self.at..].iter().take_while(|character| character.is_ascii_digit()).count();
        digits > 0 && self.characters.get(self.at + digits) == Some(&'.') || self.characters[self.at..].starts_with(&['i', 'n', 'f', 'h'])
    }

    fn primary_with_sign(&mut self, negative: bool) -> Result<Tree, ExpressionFault> {
        if self.take("(") {
            let inner = self.binary(0)?;
            return if self.take(")") { Ok(inner) } else { Err(self.fault("expected `)`".to_owned())) };
        }
        self.skip_spaces();
        let column = self.column();
        if let Some(value) = self.character() {
            return Ok(Tree::Known(Value::from(value)));
        }
        let word = self.word();
        match word.chars().next() {
            None => {
                let found = self.characters.get(self.at).map_or("the end".to_owned(), |character| format!("`{character}`"));
                Err(self.fault(format!("expected a value, found {found}")))
            }
            Some(first) if first.is_ascii_digit() => number(column, &word, negative, self.is_source()),
            // The infinity of f16, as the public Colossus assembly parser spells it.
            Some(_) if word == "infh" => Ok(Tree::Known(Value::from(if negative { 0xfc00 } else { 0x7c00 }))),
            Some(_) if self.take("(") => self.call(column, &word),
            Some(_) => Ok(Tree::Symbol { column, name: word }),
        }
    }

    /// The code of a character in quotes: `'a'`, `'\\n'`.
    fn character(&mut self) -> Option<i64> {
        let rest = self.characters.get(self.at..)?;
        let (character, length) = match rest {
            ['\'', '\\', 'n', '\'', ..] => ('\n', 4),
            ['\'', '\\', 't', '\'', ..] => ('\t', 4),
            ['\'', '\\', '0', '\'', ..] => ('\0', 4),
            ['\'', '\\', quoted @ ('\'' | '\\'), '\'', ..] => (*quoted, 4),
            ['\'', quoted, '\'', ..] => (*quoted, 3),
            _ => return None,
        };
        self.at += length;
        Some(i64::from(u32::from(character)))
    }

    fn word(&mut self) -> String {
        let start = self.at;
        let inside = |character: &char| character.is_ascii_alphanumeric() || "_.".contains(*character);
        while self.characters.get(self.at).is_some_and(inside) {
            self.at += 1;
        }
        self.characters[start..self.at].iter().collect()
    }

    fn call(&mut self, column: u32, name: &str) -> Result<Tree, ExpressionFault> {
        let function = match name {
            "ceildiv" => Function::CeilDiv,
            "max" => Function::Max,
            "min" => Function::Min,
            _ => return Err(ExpressionFault { column, message: format!("expected ceildiv, max or min, found `{name}`") }),
        };
        let mut arguments = vec![self.binary(0)?];
        while self.take(",") {
            arguments.push(self.binary(0)?);
        }
        if self.take(")") { Ok(Tree::Call { column, function, arguments }) } else { Err(self.fault("expected `,` or `)`".to_owned())) }
    }
}

/// A number, or a reference `1f`, `1b` to a numbered label.
fn number(column: u32, word: &str, negative: bool, octal: bool) -> Result<Tree, ExpressionFault> {
    let label =
        word.strip_suffix(['f', 'b']).is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()));
    if label {
        return Ok(Tree::Symbol { column, name: word.to_owned() });
    }
    let parsed = if word.contains('.') { float_bits(word, negative) } else { integer(word, octal) };
    let fault = || ExpressionFault { column, message: format!("expected a number, found `{word}`") };
    parsed.map(|number| Tree::Known(Value::from(number))).ok_or_else(fault)
}

/// A decimal, hexadecimal or binary number, with `octal` one of base 8 too; from 2^63 on the one of the same 64 bits.
fn integer(word: &str, octal: bool) -> Option<i64> {
    let digits = word.replace('_', "");
    let (digits, base) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] if octal => (&digits[1..], 8),
        _ => (&digits[..], 10),
    };
    // `from_str_radix` takes a sign, which is none here.
    let parsed = u64::from_str_radix(digits, base).ok().filter(|_| !digits.starts_with('+'))?;
    if octal { Some(parsed.cast_signed()) } else { i64::try_from(parsed).ok() }
}

/// The bits of `1.5h` (f16) or `1.5`, `1.5f` (f32), rounded to nearest even.
fn float_bits(word: &str, negative: bool) -> Option<i64> {
    let sign = if negative { -1.0 } else { 1.0 };
    match word.strip_suffix('h') {
        Some(digits) => digits.parse::<f64>().ok().map(|value| i64::from(half::f16::from_f64(value * sign).to_bits())),
        None => word.strip_suffix('f').unwrap_or(word).parse::<f32>().ok().map(|value| i64::from((value * sign as f32).to_bits())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{Expression, ExpressionFault};

    fn value(text: &str) -> Result<i64, String> {
        evaluated(Expression::parse(text))
    }

    fn source_value(text: &str) -> Result<i64, String> {
        evaluated(Expression::parse_source(text))
    }

    fn evaluated(parsed: Result<Expression, ExpressionFault>) -> Result<i64, String> {
        let symbols = BTreeMap::from([("ROWS".to_owned(), 92), ("KB".to_owned(), 5)]);
        let value = parsed.and_then(|expression| expression.evaluate(&symbols));
        value.map_err(|fault| format!("{}: {}", fault.column, fault.message))
    }

    #[test]
    fn operators_of_manifests_bind_as_in_c() {
        for (text, expected) in [
            ("1+2*3", 7),
            ("(1+2)*3", 9),
            ("10-4-3", 3),
            ("-7/2", -4),
            ("-7%2", 1),
            ("1<<4|1", 17),
            ("6&3==3", 0),
            ("ROWS/6+(ROWS%6!=0)", 16),
            ("ceildiv(ROWS,6)*KB", 80),
            ("max(1,KB-7,2)", 2),
            ("min(0x10,0b11)", 3),
            ("!0+~0", 0),
            ("1.0h", 0x3c00),
            ("-65504.0h", 0xfbff),
            ("1.5", 0x3fc0_0000),
            ("-0.5f", 0xbf00_0000),
            ("infh", 0x7c00),
            ("-infh", 0xfc00),
            ("'a'+'\\n'", 107),
            ("2-0x1", 1),
            ("-9223372036854775807-1>>63", -1),
            ("KB>4 && ROWS<100", 1),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    /// What "Using as" says of each operator, worked out by hand.
    #[test]
    fn operators_of_sources_bind_as_in_the_gnu_assembler() {
        for (text, expected) in [
            ("1+2*3", 7),
            ("10-4-3", 3),
            // Shifts are as strong as products, and all of these go from the left.
            ("1+1<<4", 17),
            ("6/2<<1*5", 30),
            ("2*3%4", 2),
            // Bits bind stronger than sums.
            ("1+2|4", 7),
            ("8-3&2", 6),
            ("1|2^3&1", 0),
            ("1<<4|1", 17),
            ("0xf0 ! ~0x0f", 0xff),
            // Comparisons are weaker than sums and give -1.
            ("2+3==5", -1),
            ("6&3==3", 0),
            ("ROWS/6+(ROWS%6!=0)", 14),
            ("1<>2", -1),
            ("3>2>1", 0),
            ("1<2 && 3<2 || 1==1", 1),
            ("1 || 0 && 0", 1),
            ("!5+!0", 1),
            ("-7/2", -3),
            ("-7%2", -1),
            ("-1>>63", 1),
            ("-8>>1&0xffff", 0xfffc),
            ("0x10>>2", 4),
            ("010+0x10+0b10", 26),
            ("0xffffffffffffffff", -1),
            ("max(KB,7)-min(1,2)", 6),
        ] {
            assert_eq!(source_value(text), Ok(expected), "{text}");
        }
        assert_eq!(source_value("08"), Err("1: expected a number, found `08`".to_owned()));
        assert_eq!(source_value("1%0"), Err("2: division by zero".to_owned()));
    }

    #[test]
    fn faults_name_their_column() {
        for (text, expected) in [
            ("1+", "3: expected a value, found the end"),
            ("1 2", "3: expected an operator, found `2`"),
            ("(1", "3: expected `)`"),
            ("1/(KB-5)", "2: division by zero"),
            ("COLS", "1: unknown symbol `COLS`"),
            ("0x7fffffffffffffff+1", "19: the value exceeds 64 bits"),
            ("1<<64", "2: expected a shift by 0..=63, found 64"),
            ("-1<<63>>64", "7: expected a shift by 0..=63, found 64"),
            ("3<<62", "2: the value exceeds 64 bits"),
            ("12q", "1: expected a number, found `12q`"),
            ("1.0.0h", "1: expected a number, found `1.0.0h`"),
            ("1f", "1: unknown symbol `1f`"),
            ("max()", "5: expected a value, found `)`"),
            ("ceildiv(1)", "1: expected 2 arguments, found 1"),
            ("log(2)", "1: expected ceildiv, max or min, found `log`"),
        ] {
            assert_eq!(value(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn long_chains_and_deep_nesting_are_refused() {
        assert_eq!(value(&"1+".repeat(5000)), Err("2001: expected at most 1000 operands".to_owned()));
        assert_eq!(value(&"(".repeat(5000)), Err("65: expected at most 64 nested operators".to_owned()));
    }

    proptest! {
        #[test]
        fn any_text_is_a_value_or_a_fault(text in "[-+*/%<>=&|!~() 0-9a-fxROWSKB,.h]{0,40}") {
            let _ = value(&text);
            let _ = source_value(&text);
        }
    }
}
