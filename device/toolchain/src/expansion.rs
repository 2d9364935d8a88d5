//! Macros, conditions and repetitions: which statements reach the layout, and with which text.

use std::collections::BTreeMap;

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

struct Macro {
    parameters: Vec<Parameter>,
    body: Vec<Statement>,
}

#[derive(Clone)]
struct Parameter {
    name: String,
    default: Option<String>,
}

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

struct Expansion<'a> {
    layout: &'a mut Layout,
    macros: BTreeMap<String, Macro>,
    uses: u32,
    statements: u32,
    /// A limit was hit; the rest is left out.
    stopped: bool,
}

/// Lays out all statements.
pub(crate) fn expand(statements: &[Statement], layout: &mut Layout) {
    let mut expansion = Expansion { layout, macros: BTreeMap::new(), uses: 0, statements: 0, stopped: false };
    expansion.walk(statements, 0);
}

impl Expansion<'_> {
    fn fault(&mut self, fault: Diagnostic) {
        self.layout.faults.push(fault);
    }

    /// Walks statements; conditions and bodies must be closed among them.
    fn walk(&mut self, statements: &[Statement], depth: u32) {
        let mut conditions: Vec<Condition> = Vec::new();
        let mut index = 0;
        while let Some(statement) = statements.get(index) {
            if self.is_exhausted(statement, depth) {
                return;
            }
            index += 1;
            let active = conditions.iter().all(|condition| condition.active);
            match statement.directive() {
                Some((piece, ".if" | ".ifdef" | ".ifndef" | ".ifeq" | ".ifne" | ".ifc" | ".ifnc")) => {
                    let taken = active && self.holds(piece);
                    conditions.push(Condition { at: piece.at.clone(), done: taken || !active, active: taken, last: false });
                }
                Some((piece, ".elseif" | ".else" | ".endif")) => self.change(piece, &mut conditions),
                Some((piece, word @ (".macro" | ".rept"))) => {
                    let Some(end) = self.body_end(piece, word, statements, index) else { return };
                    let body = &statements[index..end];
                    match word {
                        _ if !active => {}
                        ".macro" => self.define(piece, body),
                        _ => self.repeat(piece, body, depth),
                    }
                    index = end + 1;
                }
                Some((piece, word @ (".endm" | ".endr"))) => {
                    let opening = if word == ".endm" { ".macro" } else { ".rept" };
                    self.fault(piece.at.fault(0, format!("`{word}` without `{opening}`")));
                }
                _ if active => self.statement(statement, depth),
                _ => {}
            }
        }
        for condition in conditions {
            self.fault(condition.at.fault(0, "expected `.endif`, found the end"));
        }
    }

    fn is_exhausted(&mut self, statement: &Statement, depth: u32) -> bool {
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
    fn body_end(&mut self, opening: &Piece, word: &str, statements: &[Statement], from: usize) -> Option<usize> {
        let mut open = vec![closing(word)];
        for (index, statement) in statements.iter().enumerate().skip(from) {
            match statement.directive() {
                Some((_, word @ (".macro" | ".rept"))) => open.push(closing(word)),
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

    fn holds(&mut self, piece: &Piece) -> bool {
        let (word, rest) = piece.split();
        match word {
            ".ifdef" => self.layout.is_defined(rest),
            ".ifndef" => !self.layout.is_defined(rest),
            ".ifc" | ".ifnc" => match split_list(rest)[..] {
                [one, other] => (one == other) == (word == ".ifc"),
                _ => {
                    self.fault(piece.fault(rest, format!("expected two texts, found `{rest}`")));
                    false
                }
            },
            ".ifeq" => self.layout.evaluate(piece, rest) == Some(0),
            _ => self.layout.evaluate(piece, rest).is_some_and(|value| value != 0),
        }
    }

    fn change(&mut self, piece: &Piece, conditions: &mut Vec<Condition>) {
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

    fn define(&mut self, piece: &Piece, body: &[Statement]) {
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
            parameters.push(parameter);
        }
        self.macros.insert(name.to_owned(), Macro { parameters, body: body.to_vec() });
    }

    fn repeat(&mut self, piece: &Piece, body: &[Statement], depth: u32) {
        let (_, rest) = piece.split();
        let Some(count) = self.layout.evaluate(piece, rest) else { return };
        if !(0..=REPEATS_MAX).contains(&count) {
            return self.fault(piece.fault(rest, format!("expected a count in 0..={REPEATS_MAX}, found {count}")));
        }
        for _ in 0..count {
            self.walk(body, depth + 1);
            if self.stopped {
                return;
            }
        }
    }

    fn statement(&mut self, statement: &Statement, depth: u32) {
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
        } else if word.starts_with('.') {
            self.layout.directive(piece);
        } else {
            self.layout.instruction(piece);
        }
    }

    fn use_macro(&mut self, piece: &Piece, name: &str, rest: &str, depth: u32) {
        self.uses += 1;
        let defined = &self.macros[name];
        let values = match arguments(piece, name, rest, &defined.parameters) {
            Ok(values) => values,
            Err(fault) => return self.fault(fault),
        };
        let brought = Brought::new(&format!("macro `{name}`"), &piece.at, defined.body.first().map(Statement::at));
        let substitution = Substitution { values: &values, number: self.uses, brought };
        let body: Result<Vec<Statement>, Diagnostic> = defined.body.iter().map(|statement| substitution.statement(statement)).collect();
        match body {
            Ok(body) => self.walk(&body, depth + 1),
            Err(fault) => self.fault(fault),
        }
    }
}

fn closing(word: &str) -> &'static str {
    if word == ".macro" { ".endm" } else { ".endr" }
}

/// `name = value`, not a comparison.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let name = name.trim_end();
    (is_symbol(name) && !value.starts_with('=')).then_some((name, value.trim_start()))
}

/// The parameters of one part of a list: `a`, `a b`, `a=1`, `a:req`.
fn parameters_of(part: &str) -> Vec<Parameter> {
    if let Some((name, default)) = part.split_once('=') {
        return vec![Parameter { name: name.trim().to_owned(), default: Some(default.trim().to_owned()) }];
    }
    let names = part.split_whitespace().map(|name| name.strip_suffix(":req").unwrap_or(name));
    names.map(|name| Parameter { name: name.to_owned(), default: None }).collect()
}

/// The values of a macro's parameters, by position or as `name=value`.
fn arguments(piece: &Piece, name: &str, rest: &str, parameters: &[Parameter]) -> Result<BTreeMap<String, String>, Diagnostic> {
    let given = split_list(rest);
    if given.len() > parameters.len() {
        let message = format!("macro `{name}`: expected at most {} arguments, found {}", parameters.len(), given.len());
        return Err(piece.fault(given[parameters.len()], message));
    }
    let mut values = BTreeMap::new();
    for (part, parameter) in given.iter().zip(parameters) {
        let named = assignment(part).filter(|(name, _)| parameters.iter().any(|known| known.name == **name));
        let (name, value) = named.unwrap_or((&parameter.name, part));
        if !value.is_empty() {
            values.insert(name.to_owned(), value.to_owned());
        }
    }
    for parameter in parameters.iter().filter(|parameter| !values.contains_key(&parameter.name)).cloned().collect::<Vec<_>>() {
        let missing = || piece.at.fault(0, format!("macro `{name}`: argument `{}` is missing", parameter.name));
        values.insert(parameter.name.clone(), parameter.default.clone().ok_or_else(missing)?);
    }
    Ok(values)
}

/// Puts arguments in place of `\name`, a number of this use for `\@`, nothing for `\()`.
struct Substitution<'a> {
    values: &'a BTreeMap<String, String>,
    number: u32,
    brought: Brought,
}

impl Substitution<'_> {
    fn statement(&self, statement: &Statement) -> Result<Statement, Diagnostic> {
        match statement {
            Statement::Single(piece) => self.piece(piece).map(Statement::Single),
            Statement::Bundle { at, members } => {
                let members = members.iter().map(|member| self.piece(member)).collect::<Result<_, _>>()?;
                Ok(Statement::Bundle { at: at.expanded(&self.brought), members })
            }
        }
    }

    fn piece(&self, piece: &Piece) -> Result<Piece, Diagnostic> {
        let at = piece.at.expanded(&self.brought);
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
        Ok(Piece { text, at })
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
