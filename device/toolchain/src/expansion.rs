//! Macros, conditions and repetitions: which statements reach the layout, and with which text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::diagnostic::{Brought, Diagnostic, Place};
use crate::layout::Layout;
use crate::operand::split_list;
use crate::statement::{Piece, Statement, is_symbol};

/// Deepest nesting of macros and repetitions.
const DEPTH_MAX: u32 = 40;
/// Most statements after expansion.
const STATEMENTS_MAX: u32 = 1 << 18;
/// Most repetitions of one `.rept`.
const REPEATS_MAX: i64 = 1 << 16;
/// Most bytes of a statement after substitution.
const STATEMENT_BYTES_MAX: usize = 1 << 12;

struct Macro<'a> {
    parameters: Vec<Parameter>,
    body: Vec<Statement<'a>>,
}

#[derive(Clone)]
struct Parameter {
    name: String,
    default: Option<String>,
    /// It takes all further arguments.
    variadic: bool,
}

/// Whether what follows in a body is still wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    GoOn,
    /// `.exitm`, or a limit was hit.
    Leave,
}

/// Directives that open a body, and what closes it.
const BODIES: [(&str, &str); 4] = [(".macro", ".endm"), (".rept", ".endr"), (".irp", ".endr"), (".irpc", ".endr")];

/// An open `.if`.
struct Condition {
    at: Place,
    /// A branch was taken, or none may be.
    done: bool,
    /// The present branch is taken.
    active: bool,
    /// `.else` has passed.
    last: bool,
}

struct Expansion<'l, 'a> {
    layout: &'l mut Layout,
    macros: FxHashMap<String, Rc<Macro<'a>>>,
    uses: u32,
    statements: u32,
    /// A limit was hit; the rest is left out.
    stopped: bool,
}

/// Lays out all statements.
pub(crate) fn expand<'a>(statements: &[Statement<'a>], layout: &mut Layout) {
    let mut expansion = Expansion { layout, macros: FxHashMap::default(), uses: 0, statements: 0, stopped: false };
    expansion.walk(statements, 0);
}

impl<'a> Expansion<'_, 'a> {
    fn fault(&mut self, fault: Diagnostic) {
        self.layout.faults.push(fault);
    }

    /// Walks statements; conditions and bodies must be closed among them.
    fn walk(&mut self, statements: &[Statement<'a>], depth: u32) -> Flow {
        let mut conditions: Vec<Condition> = Vec::new();
        let mut index = 0;
        while let Some(statement) = statements.get(index) {
            if self.is_exhausted(statement, depth) {
                return Flow::Leave;
            }
            index += 1;
            let active = conditions.last().is_none_or(|condition| condition.active);
            let Some((piece, word)) = statement.directive() else {
                if active {
                    self.statement(statement, depth);
                }
                continue;
            };
            match word {
                _ if is_condition(word) => {
                    let taken = active && self.holds(piece);
                    conditions.push(Condition { at: piece.at.clone(), done: taken || !active, active: taken, last: false });
                }
                ".elseif" | ".else" | ".endif" => self.change(piece, &mut conditions),
                ".macro" | ".rept" | ".irp" | ".irpc" => {
                    let Some(end) = self.body_end(piece, word, statements, index) else { return Flow::Leave };
                    if active {
                        self.body(piece, word, &statements[index..end], depth);
                    }
                    index = end + 1;
                }
                ".endm" | ".endr" => {
                    let opening = if word == ".endm" { ".macro" } else { ".rept" };
                    self.fault(piece.at.fault(0, format!("`{word}` without `{opening}`")));
                }
                ".exitm" if active && depth == 0 => self.fault(piece.at.fault(0, "`.exitm` outside a macro")),
                ".exitm" if active => return Flow::Leave,
                _ if active => self.statement(statement, depth),
                _ => {}
            }
        }
        for condition in conditions {
            self.fault(condition.at.fault(0, "expected `.endif`, found the end"));
        }
        Flow::GoOn
    }

    fn body(&mut self, piece: &Piece<'_>, word: &str, body: &[Statement<'a>], depth: u32) {
        match word {
            ".macro" => self.define(piece, body),
            ".rept" => self.repeat(piece, body, depth),
            _ => self.repeat_for(piece, word, body, depth),
        }
    }

    fn is_exhausted(&mut self, statement: &Statement<'a>, depth: u32) -> bool {
        self.statements += 1;
        let limit = if depth > DEPTH_MAX {
            format!("macros and repetitions nest deeper than {DEPTH_MAX}")
        } else if self.statements > STATEMENTS_MAX {
            format!("macros and repetitions give more than {STATEMENTS_MAX} statements")
        } else {
            return self.stopped || self.layout.is_full();
        };
        if !self.stopped {
            self.stopped = true;
            self.fault(statement.at().fault(0, limit));
        }
        true
    }

    /// Index of the directive that closes the body starting at `from`.
    fn body_end(&mut self, opening: &Piece<'_>, word: &str, statements: &[Statement<'a>], from: usize) -> Option<usize> {
        let mut open = vec![closing(word)];
        for (index, statement) in statements.iter().enumerate().skip(from) {
            match statement.directive() {
                Some((_, word)) if BODIES.iter().any(|(opening, _)| *opening == word) => open.push(closing(word)),
                Some((piece, word @ (".endm" | ".endr"))) => {
                    let expected = open.pop()?;
                    if word != expected {
                        self.fault(piece.at.fault(0, format!("expected `{expected}`, found `{word}`")));
                        return None;
                    }
                    if open.is_empty() {
                        return Some(index);
                    }
                }
                _ => {}
            }
        }
        self.fault(opening.at.fault(0, format!("expected `{}`, found the end", closing(word))));
        None
    }

    fn holds(&mut self, piece: &Piece<'_>) -> bool {
        let (word, rest) = piece.split();
        match word {
            ".ifdef" => self.layout.is_defined(rest),
            ".ifndef" | ".ifnotdef" => !self.layout.is_defined(rest),
            ".ifb" => rest.is_empty(),
            ".ifnb" => !rest.is_empty(),
            ".ifc" | ".ifnc" | ".ifeqs" | ".ifnes" => match split_list(rest)[..] {
                [one, other] => (unquoted(one) == unquoted(other)) == matches!(word, ".ifc" | ".ifeqs"),
                _ => {
                    self.fault(piece.fault(rest, format!("expected two texts, found `{rest}`")));
                    false
                }
            },
            _ => self.layout.evaluate(piece, rest).is_some_and(|value| compares(word, value)),
        }
    }

    fn change(&mut self, piece: &Piece<'_>, conditions: &mut Vec<Condition>) {
        let (word, _) = piece.split();
        let Some(condition) = conditions.last_mut() else {
            return self.fault(piece.at.fault(0, format!("`{word}` without `.if`")));
        };
        if word == ".endif" {
            conditions.pop();
            return;
        }
        if condition.last {
            return self.fault(piece.at.fault(0, format!("`{word}` behind `.else`")));
        }
        condition.last = word == ".else";
        condition.active = !condition.done && (word == ".else" || self.holds(piece));
        condition.done |= condition.active;
    }

    fn define(&mut self, piece: &Piece<'_>, body: &[Statement<'a>]) {
        let (_, rest) = piece.split();
        let end = rest.find(|character: char| character.is_whitespace() || character == ',').unwrap_or(rest.len());
        let name = &rest[..end];
        if !is_symbol(name) {
            return self.fault(piece.fault(rest, format!("expected a macro name, found `{name}`")));
        }
        if self.macros.contains_key(name) {
            return self.fault(piece.fault(name, format!("macro `{name}` is defined twice")));
        }
        let mut parameters: Vec<Parameter> = Vec::new();
        for parameter in split_list(rest[end..].trim_start_matches(',')).into_iter().flat_map(parameters_of) {
            if !is_symbol(&parameter.name) || parameters.iter().any(|known| known.name == parameter.name) {
                return self.fault(piece.fault(name, format!("macro `{name}`: expected a new argument name, found `{}`", parameter.name)));
            }
            if parameters.last().is_some_and(|last| last.variadic) {
                return self.fault(piece.fault(name, format!("macro `{name}`: no argument can follow one with `:vararg`")));
            }
            parameters.push(parameter);
        }
        self.macros.insert(name.to_owned(), Rc::new(Macro { parameters, body: body.to_vec() }));
    }

    fn forget(&mut self, piece: &Piece<'_>, name: &str) {
        if self.macros.remove(name).is_none() {
            self.fault(piece.fault(name, format!("macro `{name}` is not defined")));
        }
    }

    /// `.irp name, value, ..` and `.irpc name, characters`.
    fn repeat_for(&mut self, piece: &Piece<'_>, word: &str, body: &[Statement<'a>], depth: u32) {
        let (_, rest) = piece.split();
        let (name, values) = rest.split_once([',', ' ']).unwrap_or((rest, ""));
        if !is_symbol(name) {
            return self.fault(piece.fault(rest, format!("expected a name, found `{name}`")));
        }
        let values = values.trim_start().trim_start_matches(',').trim();
        let values: Vec<String> = match word {
            ".irp" if values.is_empty() => vec![String::new()],
            ".irp" => words_of(values).iter().map(|value| unquoted(value).to_owned()).collect(),
            _ => unquoted(values).chars().map(String::from).collect(),
        };
        for value in values {
            let values = BTreeMap::from([(name.to_owned(), value)]);
            let brought = Brought::new(&format!("`{word}`"), &piece.at, None);
            let substitution = Substitution { values: &values, number: self.uses, brought };
            if self.walk_substituted(body, &substitution, depth) == Flow::Leave {
                return;
            }
        }
    }

    fn walk_substituted(&mut self, body: &[Statement<'a>], substitution: &Substitution<'_>, depth: u32) -> Flow {
        let body: Result<Vec<Statement<'a>>, Diagnostic> = body.iter().map(|statement| substitution.statement(statement)).collect();
        match body {
            Ok(body) => self.walk(&body, depth + 1),
            Err(fault) => {
                self.fault(fault);
                Flow::Leave
            }
        }
    }

    fn repeat(&mut self, piece: &Piece<'_>, body: &[Statement<'a>], depth: u32) {
        let (_, rest) = piece.split();
        let Some(count) = self.layout.evaluate(piece, rest) else { return };
        if !(0..=REPEATS_MAX).contains(&count) {
            return self.fault(piece.fault(rest, format!("expected a count in 0..={REPEATS_MAX}, found {count}")));
        }
        for _ in 0..count {
            if self.walk(body, depth + 1) == Flow::Leave {
                return;
            }
        }
    }

    fn statement(&mut self, statement: &Statement<'a>, depth: u32) {
        let piece = match statement {
            Statement::Bundle { at, members } => return self.layout.bundle(at, members),
            Statement::Single(piece) => piece,
        };
        let (word, rest) = piece.split();
        if piece.text.ends_with(':') {
            self.layout.label(piece);
        } else if self.macros.contains_key(word) {
            self.use_macro(piece, word, rest, depth);
        } else if let Some((name, value)) = assignment(&piece.text) {
            self.layout.constant(piece, name, value);
        } else if word == ".purgem" {
            self.forget(piece, rest);
        } else if word.starts_with('.') {
            self.layout.directive(piece);
        } else {
            self.layout.instruction(piece);
        }
    }

    fn use_macro(&mut self, piece: &Piece<'_>, name: &str, rest: &str, depth: u32) {
        self.uses += 1;
        let defined = self.macros[name].clone();
        let values = match arguments(piece, name, rest, &defined.parameters) {
            Ok(values) => values,
            Err(fault) => return self.fault(fault),
        };
        let brought = Brought::new(&format!("macro `{name}`"), &piece.at, defined.body.first().map(Statement::at));
        let substitution = Substitution { values: &values, number: self.uses, brought };
        self.walk_substituted(&defined.body, &substitution, depth);
    }
}

fn is_condition(word: &str) -> bool {
    matches!(
        word,
        ".if"
            | ".ifdef"
            | ".ifndef"
            | ".ifnotdef"
            | ".ifb"
            | ".ifnb"
            | ".ifc"
            | ".ifnc"
            | ".ifeqs"
            | ".ifnes"
            | ".ifeq"
            | ".ifne"
            | ".ifgt"
            | ".ifge"
            | ".iflt"
            | ".ifle"
    )
}

/// Whether a value is what a condition on its sign asks for.
fn compares(word: &str, value: i64) -> bool {
    match word {
        ".ifeq" => value == 0,
        ".ifgt" => value > 0,
        ".ifge" => value >= 0,
        ".iflt" => value < 0,
        ".ifle" => value <= 0,
        _ => value != 0,
    }
}

/// A text without the quotes around it.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

/// Arguments of a macro: separated by commas, or by blanks where no operator stands beside them.
fn words_of(text: &str) -> Vec<&str> {
    split_list(text).into_iter().flat_map(split_at_blanks).collect()
}

fn split_at_blanks(text: &str) -> Vec<&str> {
    let is_operator = |character: Option<char>| character.is_some_and(|character| "+-*/%<>=&|^~!:(".contains(character));
    let (mut words, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0_i32, false);
    for (index, character) in text.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if character.is_whitespace() && depth == 0 && !quoted => {
                let (before, behind) = (text[..index].trim_end(), text[index..].trim_start());
                let joined = is_operator(before.chars().last()) || is_operator(behind.chars().next().filter(|next| *next != '('));
                if !joined && !text[start..index].trim().is_empty() {
                    words.push(text[start..index].trim());
                    start = index;
                }
            }
            _ => {}
        }
    }
    words.push(text[start..].trim());
    words
}

fn closing(word: &str) -> &'static str {
    BODIES.iter().find(|(opening, _)| *opening == word).map_or(".endr", |(_, closing)| closing)
}

/// `name = value`, not a comparison.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let name = name.trim_end();
    (is_symbol(name) && !value.starts_with('=')).then_some((name, value.trim_start()))
}

/// The parameters of one part of a list: `a`, `a b`, `a=1`, `a:req`, `a:vararg`.
fn parameters_of(part: &str) -> Vec<Parameter> {
    let (names, default) = match part.split_once('=') {
        Some((names, default)) => (names.trim(), Some(unquoted(default.trim()).to_owned())),
        None => (part, None),
    };
    let parameter = |name: &str| {
        let (plain, kind) = name.split_once(':').unwrap_or((name, ""));
        let plain = if matches!(kind, "" | "req" | "vararg") { plain } else { name };
        let variadic = kind == "vararg";
        Parameter { name: plain.to_owned(), default: variadic.then(String::new), variadic }
    };
    let mut parameters: Vec<Parameter> = names.split_whitespace().map(parameter).collect();
    if let (Some(last), Some(default)) = (parameters.last_mut(), default) {
        last.default = Some(default);
    }
    parameters
}

/// The values of a macro's parameters, by position or as `name=value`.
fn arguments(piece: &Piece<'_>, name: &str, rest: &str, parameters: &[Parameter]) -> Result<BTreeMap<String, String>, Diagnostic> {
    let fixed = parameters.iter().filter(|parameter| !parameter.variadic).count();
    let (mut given, mut further) = (split_list(rest), None);
    if given.len() < fixed || fixed < parameters.len() {
        given = words_of(rest);
    }
    if fixed < parameters.len() && given.len() > fixed {
        further = Some(further_text(rest, given[fixed]));
        given.truncate(fixed);
    }
    if given.len() > fixed {
        let message = format!("macro `{name}`: expected at most {fixed} arguments, found {}", given.len());
        return Err(piece.fault(given[fixed], message));
    }
    let mut values = BTreeMap::new();
    for (part, parameter) in given.iter().zip(parameters) {
        let named = assignment(part).filter(|(name, _)| parameters.iter().any(|known| known.name == **name));
        let (name, value) = named.unwrap_or((&parameter.name, part));
        if !value.is_empty() {
            values.insert(name.to_owned(), unquoted(value).to_owned());
        }
    }
    if let (Some(further), Some(last)) = (further, parameters.last()) {
        values.insert(last.name.clone(), further.to_owned());
    }
    for parameter in parameters.iter().filter(|parameter| !values.contains_key(&parameter.name)).cloned().collect::<Vec<_>>() {
        let missing = || piece.at.fault(0, format!("macro `{name}`: argument `{}` is missing", parameter.name));
        values.insert(parameter.name.clone(), parameter.default.clone().ok_or_else(missing)?);
    }
    Ok(values)
}

/// All of a text from a part of it on.
fn further_text<'a>(text: &'a str, part: &str) -> &'a str {
    let start = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    text.get(start..).unwrap_or("")
}

/// Puts arguments in place of `\name`, a number of this use for `\@`, nothing for `\()`.
struct Substitution<'a> {
    values: &'a BTreeMap<String, String>,
    number: u32,
    brought: Brought,
}

impl Substitution<'_> {
    fn statement<'a>(&self, statement: &Statement<'a>) -> Result<Statement<'a>, Diagnostic> {
        match statement {
            Statement::Single(piece) => self.piece(piece).map(Statement::Single),
            Statement::Bundle { at, members } => {
                let members = members.iter().map(|member| self.piece(member)).collect::<Result<_, _>>()?;
                Ok(Statement::Bundle { at: at.expanded(&self.brought), members })
            }
        }
    }

    fn piece<'a>(&self, piece: &Piece<'a>) -> Result<Piece<'a>, Diagnostic> {
        let at = piece.at.expanded(&self.brought);
        if !piece.text.contains('\\') {
            return Ok(Piece { text: piece.text.clone(), at });
        }
        let mut text = String::new();
        let mut parts = piece.text.split('\\');
        text.push_str(parts.next().unwrap_or(""));
        for part in parts {
            let rest = self.replace(part, &mut text);
            text.push_str(rest);
            if text.len() > STATEMENT_BYTES_MAX {
                return Err(at.fault(0, format!("a statement exceeds {STATEMENT_BYTES_MAX} bytes")));
            }
        }
        Ok(Piece { text: Cow::Owned(text), at })
    }

    /// Appends what stands for the start of `part`, the text behind a backslash; returns its rest.
    fn replace<'b>(&self, part: &'b str, text: &mut String) -> &'b str {
        if let Some(rest) = part.strip_prefix('@') {
            text.push_str(&self.number.to_string());
            return rest;
        }
        if let Some(rest) = part.strip_prefix("()") {
            return rest;
        }
        let end = part.find(|character: char| !character.is_ascii_alphanumeric() && character != '_').unwrap_or(part.len());
        match self.values.get(&part[..end]) {
            Some(value) => {
                text.push_str(value);
                &part[end..]
            }
            None => {
                // Not an argument of this macro: of one defined inside it, or an error where it is read.
                text.push('\\');
                part
            }
        }
    }
}
