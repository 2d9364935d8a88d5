//! The value of an `#if`: integers of 64 bits with the operators of C. What is not decisive for the value is not evaluated.

use super::token::{Kind, Token};

/// Strength of each operator with two operands.
#[rustfmt::skip]
const OPERATORS: [(&str, u8); 18] = [
    ("||", 1), ("&&", 2), ("|", 3), ("^", 4), ("&", 5), ("==", 6), ("!=", 6), ("<", 7), (">", 7), ("<=", 7), (">=", 7),
    ("<<", 8), (">>", 8), ("+", 9), ("-", 9), ("*", 10), ("/", 10), ("%", 10),
];
/// Deepest nesting.
const DEPTH_MAX: u32 = 100;

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: u32,
    value_of: &'a dyn Fn(&str) -> i64,
}

/// The value of a condition whose macros are expanded; `value_of` gives that of other names.
pub(super) fn evaluate(tokens: &[Token], value_of: &dyn Fn(&str) -> i64) -> Result<i64, String> {
    let mut parser = Parser { tokens, at: 0, depth: 0, value_of };
    let value = parser.choice(true)?;
    match parser.next() {
        None => Ok(value),
        Some(found) => Err(format!("expected an operator, found `{}`", found.text)),
    }
}

impl Parser<'_> {
    fn next(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = self.next().is_some_and(|token| token.is(mark));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: &str) -> Result<(), String> {
        let found = self.next().map_or("the end".to_owned(), |token| format!("`{}`", token.text));
        if self.take(mark) { Ok(()) } else { Err(format!("expected `{mark}`, found {found}")) }
    }

    /// `a ? b : c`. `live`: the value is of consequence.
    fn choice(&mut self, live: bool) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("expected at most {DEPTH_MAX} nested operators"));
        }
        let condition = self.binary(0, live)?;
        let value = if self.take("?") {
            let yes = self.choice(live && condition != 0)?;
            self.expect(":")?;
            let no = self.choice(live && condition == 0)?;
            if condition != 0 { yes } else { no }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(value)
    }

    fn binary(&mut self, weakest: u8, live: bool) -> Result<i64, String> {
        let mut left = self.unary(live)?;
        while let Some((operator, strength)) = self.operator(weakest) {
            self.at += 1;
            let decided = operator == "||" && left != 0 || operator == "&&" && left == 0;
            let right = self.binary(strength, live && !decided)?;
            left = if live { apply(operator, left, right)? } else { 0 };
        }
        Ok(left)
    }

    fn operator(&self, weakest: u8) -> Option<(&'static str, u8)> {
        let token = self.next().filter(|token| token.kind == Kind::Mark)?;
        OPERATORS.iter().copied().find(|(operator, strength)| *operator == &*token.text && *strength > weakest)
    }

    fn unary(&mut self, live: bool) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("expected at most {DEPTH_MAX} nested operators"));
        }
        let value = if self.take("!") {
            i64::from(self.unary(live)? == 0)
        } else if self.take("-") {
            self.unary(live)?.wrapping_neg()
        } else if self.take("~") {
            !self.unary(live)?
        } else if self.take("+") {
            self.unary(live)?
        } else {
            self.primary(live)?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn primary(&mut self, live: bool) -> Result<i64, String> {
        if self.take("(") {
            let value = self.choice(live)?;
            self.expect(")")?;
            return Ok(value);
        }
        let Some(token) = self.tokens.get(self.at) else { return Err("expected a value, found the end".to_owned()) };
        self.at += 1;
        match token.kind {
            Kind::Number => integer(&token.text).ok_or_else(|| format!("expected an integer, found `{}`", token.text)),
            Kind::Name => Ok((self.value_of)(&token.text)),
            _ => Err(format!("expected a value, found `{}`", token.text)),
        }
    }
}

fn apply(operator: &str, left: i64, right: i64) -> Result<i64, String> {
    let shift = right.rem_euclid(64) as u32;
    Ok(match operator {
        "||" => i64::from(left != 0 || right != 0),
        "&&" => i64::from(left != 0 && right != 0),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "==" => i64::from(left == right),
        "!=" => i64::from(left != right),
        "<" => i64::from(left < right),
        ">" => i64::from(left > right),
        "<=" => i64::from(left <= right),
        ">=" => i64::from(left >= right),
        "<<" => left.wrapping_shl(shift),
        ">>" => left.wrapping_shr(shift),
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        _ if right == 0 => return Err("division by zero".to_owned()),
        "/" => left.wrapping_div(right),
        _ => left.wrapping_rem(right),
    })
}

/// An integer of C: decimal, `0x`, `0b` or octal, with the endings of its types.
fn integer(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']).to_ascii_lowercase();
    let value = if let Some(hex) = digits.strip_prefix("0x") {
        u64::from_str_radix(hex, 16)
    } else if let Some(binary) = digits.strip_prefix("0b") {
        u64::from_str_radix(binary, 2)
    } else if let Some(octal) = digits.strip_prefix('0').filter(|octal| !octal.is_empty()) {
        u64::from_str_radix(octal, 8)
    } else {
        digits.parse()
    };
    value.ok().map(u64::cast_signed)
}
