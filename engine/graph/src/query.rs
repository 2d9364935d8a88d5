//! Questions about the target graph: what they look like.
//!
//! ```text
//! expression = term { ("union" | "+" | "intersect" | "^" | "except" | "-") term }      from left to right
//! term       = pattern | "(" expression ")" | function "(" arguments ")"
//! ```
//!
//! The signs stand between blanks: names may hold them. The functions are in [`FUNCTIONS`].

use std::fmt;

use crate::nearest::nearest;
use crate::{LabelFault, PackageName, Pattern};

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// The targets that one of the patterns names.
    Targets(Vec<Pattern>),
    /// The targets and what they depend on, up to so many steps away.
    Dependencies(Box<Query>, Option<usize>),
    /// Of `universe` and all it depends on, `targets` and those that depend on them, up to so many steps away.
    Users {
        /// Where to look.
        universe: Box<Query>,
        /// What is used.
        targets: Box<Query>,
        /// Steps.
        depth: Option<usize>,
    },
    /// All targets on any way from one of the first to one of the second.
    AllPaths(Box<Query>, Box<Query>),
    /// The targets of one shortest such way, in its order.
    SomePath(Box<Query>, Box<Query>),
    /// Those of a rule.
    Kind(String, Box<Query>),
    /// Those with a value in a field, as in `layout.tiles`.
    Attribute {
        /// The field.
        field: String,
        /// The value in TOML, without quotes around text.
        value: String,
        /// Of these.
        targets: Box<Query>,
    },
    /// Those of both.
    Union(Box<Query>, Box<Query>),
    /// Those that are in both.
    Intersect(Box<Query>, Box<Query>),
    /// Those of the first that are not in the second.
    Except(Box<Query>, Box<Query>),
}

/// Text that is not a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryFault {
    text: String,
    column: usize,
    expected: String,
    found: String,
}

impl fmt::Display for QueryFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QueryFault { text, column, expected, found } = self;
        write!(formatter, "`{text}` is not a query: expected {expected} at column {column}, found {found}")
    }
}

impl std::error::Error for QueryFault {}

/// Names and arguments of functions.
pub const FUNCTIONS: [(&str, &str); 7] = [
    ("deps", "deps(X[, DEPTH])"),
    ("rdeps", "rdeps(UNIVERSE, X[, DEPTH])"),
    ("allpaths", "allpaths(FROM, TO)"),
    ("somepath", "somepath(FROM, TO)"),
    ("kind", "kind(RULE, X)"),
    ("attr", "attr(FIELD, VALUE, X)"),
    ("set", "set(PATTERN ...)"),
];

/// Expressions inside of expressions; a bound keeps the program's stack in bounds.
const DEPTH: usize = 100;
/// Operators in a row: each puts what is before it inside of one expression.
const OPERATORS: usize = 1000;

impl Query {
    /// Parses a question whose relative labels are those of `package`.
    pub fn parse(text: &str, package: &PackageName) -> Result<Query, QueryFault> {
        let mut parser = Parser { text, words: split(text), at: 0, package, depth: 0 };
        let query = parser.expression()?;
        match parser.peek() {
            None => Ok(query),
            Some(_) => Err(parser.fault("`union`, `intersect`, `except` or the end")),
        }
    }

    /// What must be loaded to answer.
    pub fn patterns(&self) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        self.add_patterns(&mut patterns);
        patterns
    }

    fn add_patterns(&self, all: &mut Vec<Pattern>) {
        match self {
            Query::Targets(patterns) => all.extend_from_slice(patterns),
            Query::Dependencies(query, _) | Query::Kind(_, query) | Query::Attribute { targets: query, .. } => query.add_patterns(all),
            Query::Users { universe: left, targets: right, .. }
            | Query::AllPaths(left, right)
            | Query::SomePath(left, right)
            | Query::Union(left, right)
            | Query::Intersect(left, right)
            | Query::Except(left, right) => {
                left.add_patterns(all);
                right.add_patterns(all);
            }
        }
    }
}

/// A word of a query and the column where it begins, from 1.
struct Word {
    text: String,
    column: usize,
    quoted: bool,
}

/// Words and the signs `(`, `)` and `,`, which inside the brackets of a label belong to it. Quotes hold a word together.
fn split(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let (mut is_open, mut brackets, mut quote) = (false, 0_usize, None);
    for (index, character) in text.chars().enumerate() {
        let column = index + 1;
        if quote == Some(character) {
            (quote, is_open) = (None, false);
            continue;
        }
        if quote.is_none() {
            match character {
                '"' | '\'' => {
                    quote = Some(character);
                    words.push(Word { text: String::new(), column, quoted: true });
                    is_open = true;
                    continue;
                }
                '(' | ')' | ',' if brackets == 0 => {
                    words.push(Word { text: character.to_string(), column, quoted: false });
                    is_open = false;
                    continue;
                }
                ' ' | '\t' | '\n' if brackets == 0 => {
                    is_open = false;
                    continue;
                }
                '[' => brackets += 1,
                ']' => brackets = brackets.saturating_sub(1),
                _ => {}
            }
        }
        if !is_open {
            words.push(Word { text: String::new(), column, quoted: false });
            is_open = true;
        }
        if let Some(word) = words.last_mut() {
            word.text.push(character);
        }
    }
    words
}

struct Parser<'a> {
    text: &'a str,
    words: Vec<Word>,
    at: usize,
    package: &'a PackageName,
    depth: usize,
}

impl Parser<'_> {
    fn expression(&mut self) -> Result<Query, QueryFault> {
        let mut query = self.term()?;
        let mut operators = 0;
        while let Some(operator) = self.peek().and_then(operator) {
            operators += 1;
            if operators > OPERATORS {
                return Err(self.fault(&format!("at most {OPERATORS} operators in a row, or `set(...)`")));
            }
            self.at += 1;
            query = operator(Box::new(query), Box::new(self.term()?));
        }
        Ok(query)
    }

    fn term(&mut self) -> Result<Query, QueryFault> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.fault(&format!("at most {DEPTH} expressions inside of each other")));
        }
        let query = self.term_inside();
        self.depth -= 1;
        query
    }

    fn term_inside(&mut self) -> Result<Query, QueryFault> {
        match self.peek() {
            Some("(") => {
                self.at += 1;
                let query = self.expression()?;
                self.need(")")?;
                Ok(query)
            }
            Some(")" | ",") | None => Err(self.fault("a pattern, a function or `(`")),
            Some(_) if self.words.get(self.at + 1).is_some_and(|next| next.text == "(" && !next.quoted) => self.function(),
            Some(_) => Ok(Query::Targets(vec![self.pattern()?])),
        }
    }

    fn function(&mut self) -> Result<Query, QueryFault> {
        let name = self.words[self.at].text.clone();
        if !FUNCTIONS.iter().any(|(known, _)| *known == name) {
            let nearest = nearest(&name, FUNCTIONS.iter().map(|(known, _)| *known));
            let hint = if nearest.is_empty() { String::new() } else { format!(", nearest `{}`", nearest.join("`, `")) };
            let known: Vec<&str> = FUNCTIONS.iter().map(|(_, form)| *form).collect();
            return Err(self.fault(&format!("one of {}{hint}", known.join(", "))));
        }
        self.at += 2;
        let query = match name.as_str() {
            "deps" => {
                let targets = Box::new(self.expression()?);
                Query::Dependencies(targets, self.depth_argument()?)
            }
            "rdeps" => {
                let (universe, targets) = self.two()?;
                Query::Users { universe, targets, depth: self.depth_argument()? }
            }
            "allpaths" => self.two().map(|(from, to)| Query::AllPaths(from, to))?,
            "somepath" => self.two().map(|(from, to)| Query::SomePath(from, to))?,
            "kind" => {
                let rule = self.word("the name of a rule")?;
                self.need(",")?;
                Query::Kind(rule, Box::new(self.expression()?))
            }
            "attr" => {
                let field = self.word("a field")?;
                self.need(",")?;
                let value = self.word("a value")?;
                self.need(",")?;
                Query::Attribute { field, value, targets: Box::new(self.expression()?) }
            }
            _ => self.set()?,
        };
        self.need(")")?;
        Ok(query)
    }

    fn two(&mut self) -> Result<(Box<Query>, Box<Query>), QueryFault> {
        let first = Box::new(self.expression()?);
        self.need(",")?;
        Ok((first, Box::new(self.expression()?)))
    }

    fn set(&mut self) -> Result<Query, QueryFault> {
        let mut patterns = Vec::new();
        while !matches!(self.peek(), Some(")") | None) {
            patterns.push(self.pattern()?);
        }
        Ok(Query::Targets(patterns))
    }

    fn depth_argument(&mut self) -> Result<Option<usize>, QueryFault> {
        if self.peek() != Some(",") {
            return Ok(None);
        }
        self.at += 1;
        match self.peek().and_then(|word| word.parse().ok()) {
            Some(depth) => {
                self.at += 1;
                Ok(Some(depth))
            }
            None => Err(self.fault("a number of steps")),
        }
    }

    fn pattern(&mut self) -> Result<Pattern, QueryFault> {
        let Some(word) = self.words.get(self.at) else { return Err(self.fault("a pattern")) };
        match Pattern::parse(&word.text, self.package) {
            Ok(pattern) => {
                self.at += 1;
                Ok(pattern)
            }
            Err(LabelFault { column, expected, .. }) => Err(QueryFault {
                text: self.text.to_owned(),
                column: word.column + usize::from(word.quoted) + column - 1,
                expected: expected.to_owned(),
                found: found_in(&word.text, column),
            }),
        }
    }

    /// A word that is no pattern.
    fn word(&mut self, expected: &str) -> Result<String, QueryFault> {
        match self.words.get(self.at) {
            Some(word) if word.quoted || !matches!(word.text.as_str(), "(" | ")" | ",") => {
                self.at += 1;
                Ok(self.words[self.at - 1].text.clone())
            }
            _ => Err(self.fault(expected)),
        }
    }

    fn need(&mut self, sign: &str) -> Result<(), QueryFault> {
        if self.peek() == Some(sign) {
            self.at += 1;
            return Ok(());
        }
        Err(self.fault(&format!("`{sign}`")))
    }

    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(|word| word.text.as_str())
    }

    fn fault(&self, expected: &str) -> QueryFault {
        let (column, found) = match self.words.get(self.at) {
            Some(word) => (word.column, format!("`{}`", word.text)),
            None => (self.text.chars().count() + 1, "the end".to_owned()),
        };
        QueryFault { text: self.text.to_owned(), column, expected: expected.to_owned(), found }
    }
}

fn found_in(text: &str, column: usize) -> String {
    text.chars().nth(column - 1).map_or("the end".to_owned(), |character| format!("`{character}`"))
}

type Operator = fn(Box<Query>, Box<Query>) -> Query;

fn operator(word: &str) -> Option<Operator> {
    match word {
        "union" | "+" => Some(Query::Union),
        "intersect" | "^" => Some(Query::Intersect),
        "except" | "-" => Some(Query::Except),
        _ => None,
    }
}
