//! Macros of the C preprocessor: `#define`s read, and their uses replaced.
//!
//! A name that came out of its own replacement is not replaced again; each token carries the names it came out of.

use std::collections::HashMap;
use std::rc::Rc;

use super::token::{Kind, Token, tokens};

/// Most tokens of a line after replacement.
const TOKENS_MAX: usize = 1 << 16;

/// A `#define`.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    /// `None`: it takes no arguments.
    parameters: Option<Parameters>,
    body: Vec<Token>,
    /// `file:line`; empty for names the assembler defines.
    pub(super) at: Rc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parameters {
    names: Vec<Rc<str>>,
    /// The last one takes all further arguments.
    variadic: bool,
}

/// Why a line cannot be replaced yet, or at all.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The arguments of a use go on with the next line.
    Unfinished,
    /// What is wrong, at a column.
    Fault(u32, String),
}

/// The macros in force.
#[derive(Default)]
pub(super) struct Macros {
    known: HashMap<Rc<str>, Rc<Definition>>,
    /// First letters of the names, to pass over lines quickly.
    initials: u128,
}

impl Definition {
    /// Reads what stands behind `#define`: the name and the definition.
    pub(super) fn read(text: &str, at: Rc<str>) -> Result<(Rc<str>, Self), String> {
        let all = tokens(text, 1);
        let name = all.first().filter(|token| token.is_name());
        let Some(name) = name.map(|token| token.text.clone()) else {
            return Err(format!("expected a name to define, found `{}`", text.trim()));
        };
        let takes_arguments = all.get(1).is_some_and(|token| token.is("(") && !token.spaced);
        let (parameters, start) =
            if takes_arguments { parameters(&all[2..]).map(|(known, used)| (Some(known), used + 2))? } else { (None, 1) };
        Ok((name, Self { parameters, body: all[start..].to_vec(), at }))
    }

    /// Whether it says the same as another.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let bodies = self.body.iter().map(|token| &token.text).eq(other.body.iter().map(|token| &token.text));
        self.parameters == other.parameters && bodies
    }
}

/// The parameters behind a `(`, and how many tokens they take with the `)`.
fn parameters(tokens: &[Token]) -> Result<(Parameters, usize), String> {
    let mut found = Parameters { names: Vec::new(), variadic: false };
    let mut index = 0;
    loop {
        let Some(token) = tokens.get(index) else { return Err("expected `)` behind the arguments of a macro".to_owned()) };
        index += 1;
        match &*token.text {
            ")" => return Ok((found, index)),
            "," => {}
            "..." => {
                // `name...` gives the rest a name of its own.
                let named = index >= 2 && tokens[index - 2].is_name();
                if !named {
                    found.names.push(Rc::from("__VA_ARGS__"));
                }
                found.variadic = true;
            }
            name if token.is_name() && !found.variadic && !found.names.iter().any(|known| &**known == name) => {
                found.names.push(token.text.clone());
            }
            other => return Err(format!("expected a new argument name, found `{other}`")),
        }
    }
}

impl Macros {
    pub(super) fn get(&self, name: &str) -> Option<&Rc<Definition>> {
        self.known.get(name)
    }

    pub(super) fn define(&mut self, name: Rc<str>, definition: Definition) -> Option<Rc<Definition>> {
        self.initials |= initial(&name);
        self.known.insert(name, Rc::new(definition))
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.known.remove(name);
    }

    /// Whether a name of the line is one of a macro, comments and quoted texts included.
    pub(super) fn concern(&self, line: &str) -> bool {
        let bytes = line.as_bytes();
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let mut start = 0;
        while start < bytes.len() {
            if !inside(bytes[start]) {
                start += 1;
                continue;
            }
            let end = bytes[start..].iter().position(|byte| !inside(*byte)).map_or(bytes.len(), |length| start + length);
            let name = &line[start..end];
            if self.initials & initial(name) != 0 && self.known.contains_key(name) {
                return true;
            }
            start = end;
        }
        false
    }

    /// Replaces all uses in a line; the names used are appended to `used`.
    pub(super) fn replace(&self, line: Vec<Token>, used: &mut Vec<Rc<str>>) -> Result<Vec<Token>, Refusal> {
        let mut rest: Vec<Token> = line.into_iter().rev().collect();
        let mut done = Vec::new();
        while let Some(token) = rest.pop() {
            if done.len() + rest.len() > TOKENS_MAX {
                return Err(Refusal::Fault(token.column, format!("macros give more than {TOKENS_MAX} tokens on a line")));
            }
            let usable = token.is_name() && !token.hidden.contains(&token.text);
            let Some(definition) = self.known.get(&token.text).filter(|_| usable) else {
                done.push(token);
                continue;
            };
            match &definition.parameters {
                None => {
                    used.push(token.text.clone());
                    rest.extend(placed(substituted(definition, &[], &[]), &token, &token.hidden).into_iter().rev());
                }
                Some(parameters) if rest.last().is_some_and(|next| next.is("(")) => {
                    used.push(token.text.clone());
                    let (given, closing) = arguments(&mut rest, parameters).ok_or(Refusal::Unfinished)?;
                    check_count(&token, parameters, &given)?;
                    let replaced = given.iter().map(|part| self.replace(part.clone(), used)).collect::<Result<Vec<_>, _>>();
                    let replaced = replaced.map_err(|refusal| match refusal {
                        Refusal::Unfinished => Refusal::Fault(token.column, format!("`{}`: expected `)` in an argument", token.text)),
                        fault => fault,
                    })?;
                    let hidden: Vec<Rc<str>> = token.hidden.iter().filter(|name| closing.hidden.contains(name)).cloned().collect();
                    rest.extend(placed(substituted(definition, &given, &replaced), &token, &hidden).into_iter().rev());
                }
                Some(_) => done.push(token),
            }
        }
        Ok(done)
    }
}

fn initial(name: &str) -> u128 {
    name.bytes().next().map_or(0, |byte| 1 << (byte & 127))
}

/// The arguments between parentheses, taken off `rest`, whose last token is the `(`; and the `)`.
fn arguments(rest: &mut Vec<Token>, parameters: &Parameters) -> Option<(Vec<Vec<Token>>, Token)> {
    rest.pop();
    let (mut given, mut depth) = (vec![Vec::new()], 0_u32);
    loop {
        let token = rest.pop()?;
        match &*token.text {
            ")" if depth == 0 => return Some((given, token)),
            "(" => depth += 1,
            ")" => depth -= 1,
            "," if depth == 0 && !(parameters.variadic && given.len() >= parameters.names.len()) => {
                given.push(Vec::new());
                continue;
            }
            _ => {}
        }
        given.last_mut()?.push(token);
    }
}

fn check_count(token: &Token, parameters: &Parameters, given: &[Vec<Token>]) -> Result<(), Refusal> {
    let (wanted, found) = (parameters.names.len(), given.len());
    let is_empty = given.iter().all(Vec::is_empty);
    // The further arguments may be left out, and no argument is written like one without tokens.
    let right = found == wanted || parameters.variadic && found + 1 == wanted || wanted == 0 && found == 1 && is_empty;
    let message = || format!("macro `{}`: expected {wanted} arguments, found {found}", token.text);
    if right { Ok(()) } else { Err(Refusal::Fault(token.column, message())) }
}

/// Tokens as they stand where a macro is used.
fn placed(mut body: Vec<Token>, user: &Token, hidden: &[Rc<str>]) -> Vec<Token> {
    for token in &mut body {
        token.column = user.column;
        token.hidden.extend(hidden.iter().cloned());
        token.hidden.push(user.text.clone());
    }
    if let Some(first) = body.first_mut() {
        first.spaced = user.spaced;
    }
    body
}

/// The body with arguments in place: as written beside `#` and `##`, replaced elsewhere.
fn substituted(definition: &Definition, given: &[Vec<Token>], replaced: &[Vec<Token>]) -> Vec<Token> {
    let body = &definition.body;
    let position = |token: &Token| definition.parameters.as_ref()?.names.iter().position(|name| *name == token.text && token.is_name());
    let of = |lists: &[Vec<Token>], index: usize| lists.get(index).cloned().unwrap_or_default();
    let mut found: Vec<Token> = Vec::new();
    let mut index = 0;
    while let Some(token) = body.get(index) {
        index += 1;
        let next = body.get(index);
        if let Some(argument) = next.filter(|_| token.is("#")).and_then(position) {
            found.push(Token { kind: Kind::Quoted, text: quoted(&of(given, argument)).into(), ..token.clone() });
            index += 1;
        } else if token.is("##") && !found.is_empty() && next.is_some() {
            let right = next.map_or(Vec::new(), |next| position(next).map_or(vec![next.clone()], |argument| of(given, argument)));
            index += 1;
            paste(&mut found, right, definition);
        } else if let Some(argument) = position(token) {
            let is_pasted = next.is_some_and(|next| next.is("##"));
            let mut part = if is_pasted { of(given, argument) } else { of(replaced, argument) };
            if let Some(first) = part.first_mut() {
                first.spaced = token.spaced;
            } else if is_pasted {
                // Nothing to paste to: what follows stands alone.
                found.push(Token { text: Rc::from(""), kind: Kind::Mark, ..token.clone() });
            }
            found.extend(part);
        } else {
            found.push(token.clone());
        }
    }
    found.retain(|token| !token.text.is_empty());
    found
}

/// Joins the last token found and the first of `right`. A comma before an empty rest of arguments goes away.
fn paste(found: &mut Vec<Token>, right: Vec<Token>, definition: &Definition) {
    let mut right = right.into_iter();
    let variadic = definition.parameters.as_ref().is_some_and(|parameters| parameters.variadic);
    let Some(left) = found.pop() else { return };
    match right.next() {
        None if variadic && left.is(",") => {}
        None => found.push(left),
        Some(first) if variadic && left.is(",") => found.extend([left, first]),
        Some(first) => {
            let mut joined = tokens(&format!("{}{}", left.text, first.text), left.column);
            if let Some(token) = joined.first_mut() {
                token.spaced = left.spaced;
            }
            found.extend(joined);
        }
    }
    found.extend(right);
}

/// The text of tokens in quotes.
fn quoted(part: &[Token]) -> String {
    let escaped = |token: &Token| match token.kind {
        Kind::Quoted => token.text.replace('\\', "\\\\").replace('"', "\\\""),
        _ => token.text.to_string(),
    };
    let mut text = String::from("\"");
    for (index, token) in part.iter().enumerate() {
        text.push_str(if index > 0 && token.spaced { " " } else { "" });
        text.push_str(&escaped(token));
    }
    text + "\""
}
