//! Conditions between the axes of a sweep: `queries * keys <= tiles && mapping != 'reversed'`.
//!
//! ```text
//! condition  = and {"||" and}
//! and        = comparison {"&&" comparison}
//! comparison = sum [("==" | "!=" | "<" | "<=" | ">" | ">=") sum]
//! sum        = product {("+" | "-") product}
//! product    = factor {("*" | "/" | "%") factor}
//! factor     = number | "'" text "'" | "true" | "false" | axis ["[" number "]"] | ("!" | "-") factor | "(" condition ")"
//! ```
//!
//! Integers divide rounding down; an axis over several fields is a list. Sides of `&&` and `||` behind the deciding one are not looked at.

use std::collections::BTreeMap;
use std::fmt;

use super::Value;

/// Parentheses and signs inside each other.
const DEPTH: usize = 64;

/// A parsed condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    Value(Value),
    Axis(String, Option<usize>),
    Not(Box<Condition>),
    Negative(Box<Condition>),
    Two(Operator, Box<Condition>, Box<Condition>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Plus,
    Minus,
    Times,
    Divided,
    Remainder,
}

/// Operators by binding, the loosest first, and in each row the longer signs first.
const ROWS: [&[(&str, Operator)]; 5] = [
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Plus), ("-", Operator::Minus)],
    &[("*", Operator::Times), ("/", Operator::Divided), ("%", Operator::Remainder)],
];

/// Text that is no condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConditionFault {
    /// 1-based character column.
    pub(crate) column: usize,
    pub(crate) expected: &'static str,
}

impl Condition {
    pub(crate) fn parse(text: &str) -> Result<Condition, ConditionFault> {
        let mut parser = Parser { characters: text.chars().collect(), at: 0, depth: 0 };
        let condition = parser.row(0)?;
        if parser.peek().is_some() { Err(parser.fault("an operator or the end")) } else { Ok(condition) }
    }

    /// The axes that it names, in its order.
    pub(crate) fn axes(&self) -> Vec<&str> {
        match self {
            Condition::Value(_) => Vec::new(),
            Condition::Axis(name, _) => vec![name],
            Condition::Not(inner) | Condition::Negative(inner) => inner.axes(),
            Condition::Two(_, left, right) => [left.axes(), right.axes()].concat(),
        }
    }

    /// Whether the point is wanted; a message when that has no answer.
    pub(crate) fn holds(&self, point: &BTreeMap<&str, &Value>) -> Result<bool, String> {
        match self.value(point)? {
            Value::Flag(holds) => Ok(holds),
            other => Err(format!("it gives {other} and no truth value")),
        }
    }

    fn value(&self, point: &BTreeMap<&str, &Value>) -> Result<Value, String> {
        match self {
            Condition::Value(value) => Ok(value.clone()),
            Condition::Axis(name, index) => {
                let value = *point.get(name.as_str()).ok_or_else(|| format!("the point sets no `{name}`"))?;
                match (index, value) {
                    (None, value) => Ok(value.clone()),
                    (Some(index), Value::List(values)) => values
                        .get(*index)
                        .cloned()
                        .ok_or_else(|| format!("`{name}` has {} values, there is no number {index}", values.len())),
                    (Some(_), value) => Err(format!("`{name}` is {value} and no list")),
                }
            }
            Condition::Not(inner) => Ok(Value::Flag(!inner.holds(point)?)),
            Condition::Negative(inner) => arithmetic(Operator::Minus, &Value::Integer(0), &inner.value(point)?),
            Condition::Two(Operator::Or, left, right) => Ok(Value::Flag(left.holds(point)? || right.holds(point)?)),
            Condition::Two(Operator::And, left, right) => Ok(Value::Flag(left.holds(point)? && right.holds(point)?)),
            Condition::Two(operator, left, right) => {
                let (left, right) = (left.value(point)?, right.value(point)?);
                match operator {
                    Operator::Plus | Operator::Minus | Operator::Times | Operator::Divided | Operator::Remainder => {
                        arithmetic(*operator, &left, &right)
                    }
                    _ => compared(*operator, &left, &right),
                }
            }
        }
    }
}

fn arithmetic(operator: Operator, left: &Value, right: &Value) -> Result<Value, String> {
    if let (Value::Integer(left), Value::Integer(right)) = (left, right) {
        let result = match operator {
            Operator::Plus => left.checked_add(*right),
            Operator::Minus => left.checked_sub(*right),
            Operator::Times => left.checked_mul(*right),
            Operator::Divided => left.checked_div_euclid(*right),
            _ => left.checked_rem_euclid(*right),
        };
        return result.map(Value::Integer).ok_or_else(|| format!("{left} and {right} have no result in 64 bits"));
    }
    let (Some(a), Some(b)) = (left.number(), right.number()) else { return Err(format!("{left} and {right} are not both numbers")) };
    Ok(Value::Float(match operator {
        Operator::Plus => a + b,
        Operator::Minus => a - b,
        Operator::Times => a * b,
        Operator::Divided => a / b,
        _ => a.rem_euclid(b),
    }))
}

fn compared(operator: Operator, left: &Value, right: &Value) -> Result<Value, String> {
    let order = match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Flag(left), Value::Flag(right)) => Some(left.cmp(right)),
        (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
        _ => match (left.number(), right.number()) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ => return Err(format!("{left} and {right} cannot be compared")),
        },
    };
    Ok(Value::Flag(match operator {
        Operator::Equal => order.is_some_and(std::cmp::Ordering::is_eq),
        Operator::Unequal => order.is_none_or(std::cmp::Ordering::is_ne),
        Operator::Less => order.is_some_and(std::cmp::Ordering::is_lt),
        Operator::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
        Operator::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
        _ => order.is_some_and(std::cmp::Ordering::is_ge),
    }))
}

impl fmt::Display for ConditionFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at column {}", self.expected, self.column)
    }
}

struct Parser {
    characters: Vec<char>,
    at: usize,
    depth: usize,
}

impl Parser {
    /// Operands of this row's operators, which are those of the tighter rows.
    fn row(&mut self, row: usize) -> Result<Condition, ConditionFault> {
        let Some(operators) = ROWS.get(row) else { return self.factor() };
        let mut left = self.row(row + 1)?;
        while let Some(operator) = operators.iter().find(|(sign, _)| self.eat(sign)).map(|(_, operator)| *operator) {
            left = Condition::Two(operator, Box::new(left), Box::new(self.row(row + 1)?));
            // `a < b < c` is no question.
            if row == 2 {
                break;
            }
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Condition, ConditionFault> {
        if self.depth == DEPTH {
            return Err(self.fault("fewer parentheses and signs inside each other"));
        }
        self.depth += 1;
        let factor = if self.eat("(") {
            let inner = self.row(0)?;
            if !self.eat(")") {
                return Err(self.fault("`)`"));
            }
            inner
        } else if self.eat("!") {
            Condition::Not(Box::new(self.factor()?))
        } else if self.eat("-") {
            Condition::Negative(Box::new(self.factor()?))
        } else {
            self.operand()?
        };
        self.depth -= 1;
        Ok(factor)
    }

    fn operand(&mut self) -> Result<Condition, ConditionFault> {
        match self.peek() {
            Some('\'') => self.text(),
            Some(character) if character.is_ascii_digit() => self.number(),
            Some(character) if character.is_ascii_alphabetic() || character == '_' => {
                let name = self.run(|character| character.is_ascii_alphanumeric() || character == '_');
                match name.as_str() {
                    "true" => Ok(Condition::Value(Value::Flag(true))),
                    "false" => Ok(Condition::Value(Value::Flag(false))),
                    _ => Ok(Condition::Axis(name, self.index()?)),
                }
            }
            _ => Err(self.fault("a number, an axis, `'text'` or `(`")),
        }
    }

    fn index(&mut self) -> Result<Option<usize>, ConditionFault> {
        if !self.eat("[") {
            return Ok(None);
        }
        self.peek();
        let start = self.at;
        let digits = self.run(|character| character.is_ascii_digit());
        let Ok(index) = digits.parse() else {
            self.at = start;
            return Err(self.fault("a number"));
        };
        if self.eat("]") { Ok(Some(index)) } else { Err(self.fault("`]`")) }
    }

    fn text(&mut self) -> Result<Condition, ConditionFault> {
        self.at += 1;
        let text = self.run(|character| character != '\'');
        if self.at == self.characters.len() {
            return Err(self.fault("`'`"));
        }
        self.at += 1;
        Ok(Condition::Value(Value::Text(text)))
    }

    fn number(&mut self) -> Result<Condition, ConditionFault> {
        let start = self.at;
        let text = self.run(|character| character.is_ascii_digit() || character == '.');
        let value = if text.contains('.') { text.parse().ok().map(Value::Float) } else { text.parse().ok().map(Value::Integer) };
        value.map(Condition::Value).ok_or_else(|| {
            self.at = start;
            self.fault("a number of at most 64 bits")
        })
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.characters.get(self.at).is_some_and(|character| belongs(*character)) {
            self.at += 1;
        }
        self.characters[start..self.at].iter().collect()
    }

    /// The next character that is no blank.
    fn peek(&mut self) -> Option<char> {
        while self.characters.get(self.at).is_some_and(|character| character.is_whitespace()) {
            self.at += 1;
        }
        self.characters.get(self.at).copied()
    }

    fn eat(&mut self, sign: &str) -> bool {
        self.peek();
        let found = sign.chars().enumerate().all(|(index, wanted)| self.characters.get(self.at + index) == Some(&wanted));
        self.at += if found { sign.len() } else { 0 };
        found
    }

    fn fault(&self, expected: &'static str) -> ConditionFault {
        ConditionFault { column: self.at + 1, expected }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{Condition, Value};

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let (tiles, grid, mapping) =
            (Value::Integer(64), Value::List(vec![Value::Integer(8), Value::Integer(4)]), Value::Text("auto".to_owned()));
        let point = BTreeMap::from([("tiles", &tiles), ("grid", &grid), ("mapping", &mapping)]);
        let found = match Condition::parse(text) {
            Ok(condition) => condition.holds(&point).map_or_else(|message| message, |holds| holds.to_string()),
            Err(fault) => fault.to_string(),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn operators_bind_as_in_c_and_stop_where_it_is_decided() {
        check("grid[0] * grid[1] <= tiles", "true");
        check("1 + 2 * 3 == 7 && !(tiles < 64)", "true");
        check("tiles % 48 == 16 || nothing == 1", "true");
        check("mapping != 'auto' && mapping / 2 == 1", "false");
        check("-tiles / 3 == -22", "true");
        check("tiles * 0.5 == 32", "true");
        check("10 - 2 - 3 == 5", "true");
    }

    #[test]
    fn what_has_no_answer_says_why() {
        check("tiles", "it gives 64 and no truth value");
        check("tiles / 0 == 1", "64 and 0 have no result in 64 bits");
        check("9223372036854775807 + 1 > 0", "9223372036854775807 and 1 have no result in 64 bits");
        check("mapping < 3", "auto and 3 cannot be compared");
        check("mapping + 3 == 4", "auto and 3 are not both numbers");
        check("grid[2] == 1", "`grid` has 2 values, there is no number 2");
        check("tiles[0] == 1", "`tiles` is 64 and no list");
        check("other == 1", "the point sets no `other`");
    }

    #[test]
    fn text_that_is_no_condition_is_refused_at_its_column() {
        check("", "a number, an axis, `'text'` or `(` at column 1");
        check("tiles ==", "a number, an axis, `'text'` or `(` at column 9");
        check("(tiles == 1", "`)` at column 12");
        check("1 < tiles < 3", "an operator or the end at column 11");
        check("tiles = 1", "an operator or the end at column 7");
        check("'text", "`'` at column 6");
        check("grid[x]", "a number at column 6");
        check("99999999999999999999 == 1", "a number of at most 64 bits at column 1");
        check(&"(".repeat(100), "fewer parentheses and signs inside each other at column 65");
    }

    proptest! {
        #[test]
        fn any_text_is_a_condition_or_a_fault_inside_it(text in "[a-c0-9 ()'!<>=&|+*/%.\\[\\]-]{0,24}") {
            let (a, b) = (Value::Integer(3), Value::List(vec![Value::Float(0.5)]));
            match Condition::parse(&text) {
                Ok(condition) => _ = condition.holds(&BTreeMap::from([("a", &a), ("b", &b)])),
                Err(fault) => prop_assert!((1..=text.chars().count() + 1).contains(&fault.column)),
            }
        }
    }
}
