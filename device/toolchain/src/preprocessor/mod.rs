//! The C preprocessor's part of a source: includes, macros and conditions. Every line keeps the place it came from.
//!
//! In: a source and a way to find what it includes. Out: lines without block comments, directives or uses of macros.
//!
//! `#` also starts comments of the assembler. A line that begins with `#` and, without a blank between, one of the known words is a
//! directive; with blanks between it is one only when what follows has the form of one, else it is a comment.

mod condition;
mod replacement;
mod token;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::assembler::Source;
use crate::diagnostic::{Diagnostic, Place};
use replacement::{Definition, Macros, Refusal};
pub(crate) use token::quoted_bytes;
use token::{Token, is_name, tokens, without_comments};

/// Deepest nesting of includes.
const DEPTH_MAX: u32 = 64;
/// Most lines of a source with all it includes.
const LINES_MAX: usize = 1 << 22;
/// Most lines the arguments of one use of a macro take.
const CONTINUED_MAX: u32 = 1000;

/// The directives.
const WORDS: [&str; 13] =
    ["include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "error", "warning", "pragma", "line"];

/// What an `#include` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Include<'a> {
    /// As written between the quotes or brackets.
    pub name: &'a str,
    /// Written in quotes: looked for beside the including file first.
    pub is_quoted: bool,
    /// Name of the including source.
    pub from: &'a str,
}

/// Finds a header; `None`: there is none of this name.
pub type FindHeader<'a> = &'a dyn Fn(&Include<'_>) -> Option<Source>;

/// A line for the assembler.
#[derive(Clone, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) file: Rc<str>,
    pub(crate) number: u32,
    pub(crate) text: Cow<'a, str>,
    /// Where the parts of a line with replaced macros come from.
    pub(crate) origin: Option<Rc<Origin>>,
}

/// Where the parts of a line with replaced macros come from.
#[derive(Debug)]
pub(crate) struct Origin {
    /// Index of a character and its column in the source, ascending.
    columns: Vec<(u32, u32)>,
    /// `with `SIZE` of a.h:3`.
    macros: Rc<str>,
}

impl Line<'_> {
    /// The place of a character by its index.
    pub(crate) fn place(&self, index: usize) -> Place {
        let Some(origin) = &self.origin else { return Place::new(&self.file, self.number, index as u32 + 1) };
        let before = origin.columns.partition_point(|(start, _)| *start as usize <= index);
        let column = before.checked_sub(1).map_or(1, |last| origin.columns[last].1);
        Place::new(&self.file, self.number, column).with(&origin.macros)
    }
}

/// What came of a source.
#[derive(Default)]
pub(crate) struct Preprocessed<'a> {
    pub(crate) lines: Vec<Line<'a>>,
    pub(crate) faults: Vec<Diagnostic>,
    pub(crate) warnings: Vec<Diagnostic>,
}

/// An open `#if`.
struct Condition {
    at: Place,
    /// A branch was taken, or none may be.
    done: bool,
    active: bool,
    /// `#else` has passed.
    last: bool,
}

struct Processor<'a, 'h> {
    macros: Macros,
    constants: &'h BTreeMap<String, i64>,
    find: FindHeader<'h>,
    out: Preprocessed<'a>,
    stopped: bool,
}

/// The file being read.
struct File<'s> {
    name: Rc<str>,
    rest: std::str::Lines<'s>,
    number: u32,
    depth: u32,
    conditions: Vec<Condition>,
    /// Where the open comment began.
    comment: Option<Place>,
}

/// Keeps the text of a line beyond its file.
type Keep<'s, 'a> = fn(&'s str) -> Cow<'a, str>;

/// Preprocesses a source. `macros`: names defined at the start; `constants`: names conditions may read.
pub(crate) fn preprocess<'a>(
    source: &'a Source,
    macros: &BTreeMap<String, String>,
    constants: &BTreeMap<String, i64>,
    find: FindHeader<'_>,
) -> Preprocessed<'a> {
    let mut processor = Processor { macros: Macros::default(), constants, find, out: Preprocessed::default(), stopped: false };
    for (name, value) in macros {
        match Definition::read(&format!("{name} {value}"), Rc::from("")) {
            Ok((name, definition)) => drop(processor.macros.define(name, definition)),
            Err(message) => processor.out.faults.push(Place::new(&Rc::from(source.name.as_str()), 1, 1).fault(0, message)),
        }
    }
    processor.file(&source.name, &source.text, 0, Cow::Borrowed);
    processor.out
}

impl<'s> File<'s> {
    /// The next line, joined with those it is continued on, and its number.
    fn line(&mut self) -> Option<(u32, Cow<'s, str>)> {
        let first = self.rest.next()?;
        self.number += 1;
        let number = self.number;
        let mut line = Cow::Borrowed(first);
        while let Some(start) = line.strip_suffix('\\') {
            let next = self.rest.next().unwrap_or("");
            self.number += 1;
            line = Cow::Owned(format!("{start}{next}"));
            if next.is_empty() {
                break;
            }
        }
        Some((number, line))
    }

    /// Whether a directive written `# else` with a blank can be one: `else` alone in a comment is prose.
    fn expects(&self, line: &str, word: &str) -> bool {
        let is_spaced = !line.trim_start().trim_start_matches('#').starts_with(is_name);
        !(is_spaced && self.conditions.is_empty() && matches!(word, "elif" | "else" | "endif"))
    }

    fn is_active(&self) -> bool {
        self.conditions.last().is_none_or(|condition| condition.active)
    }

    fn place(&self, number: u32, column: u32) -> Place {
        Place::new(&self.name, number, column)
    }

    /// A line without its comments when it has some that matter, else as it is.
    fn uncommented(&mut self, number: u32, line: Cow<'s, str>, hash: bool) -> Cow<'s, str> {
        if self.comment.is_none() && !line.contains("/*") {
            return line;
        }
        let (text, open) = without_comments(&line, self.comment.is_some(), hash);
        self.comment = match (open, self.comment.take()) {
            (false, _) => None,
            (true, Some(at)) if text.trim().is_empty() => Some(at),
            (true, _) => {
                let start = line.rfind("/*").map_or(0, |start| line[..start].chars().count());
                Some(self.place(number, start as u32 + 1))
            }
        };
        Cow::Owned(text)
    }
}

impl<'a> Processor<'a, '_> {
    fn file<'s>(&mut self, name: &str, text: &'s str, depth: u32, keep: Keep<'s, 'a>) {
        let name = Rc::from(name);
        let mut file = File { name, rest: text.lines(), number: 0, depth, conditions: Vec::new(), comment: None };
        while let Some((number, line)) = file.line().filter(|_| !self.stopped) {
            let is_directive = file.comment.is_none() && directive(&line).is_some_and(|(_, word, _)| file.expects(&line, word));
            let line = file.uncommented(number, line, !is_directive);
            match directive(&line).filter(|_| is_directive) {
                Some((column, word, rest)) => self.directive(&mut file, (number, column), word, rest),
                None if file.is_active() => self.line(&mut file, number, line, keep),
                None => {}
            }
        }
        let conditions = file.conditions.iter().map(|condition| condition.at.fault(0, "expected `#endif`, found the end of the file"));
        self.out.faults.extend(conditions);
        self.out.faults.extend(file.comment.map(|at| at.fault(0, "this comment has no end `*/`")));
    }

    fn line<'s>(&mut self, file: &mut File<'s>, number: u32, line: Cow<'s, str>, keep: Keep<'s, 'a>) {
        if self.out.lines.len() >= LINES_MAX {
            self.stopped = true;
            self.out.faults.push(file.place(number, 1).fault(0, format!("the source and what it includes exceed {LINES_MAX} lines")));
        } else if !self.macros.concern(&line) {
            let text = match line {
                Cow::Borrowed(line) => keep(line),
                Cow::Owned(line) => Cow::Owned(line),
            };
            self.out.lines.push(Line { file: file.name.clone(), number, text, origin: None });
        } else {
            self.replaced(file, number, &line);
        }
    }

    /// A line with uses of macros.
    fn replaced(&mut self, file: &mut File<'_>, number: u32, line: &str) {
        let (mut text, mut continued) = (without_comments(line, false, true).0, 0);
        loop {
            let mut used = Vec::new();
            let line = self.line_tokens(file, number, &text);
            match self.macros.replace(line, &mut used) {
                Ok(_) if used.is_empty() => return self.push(file, number, text, None),
                Ok(tokens) => {
                    let (text, columns) = written(&tokens);
                    let origin = Origin { columns, macros: self.origin_of(&used) };
                    return self.push(file, number, text, Some(Rc::new(origin)));
                }
                Err(Refusal::Fault(column, message)) => return self.out.faults.push(file.place(number, column).fault(0, message)),
                Err(Refusal::Unfinished) => {}
            }
            continued += 1;
            let Some((next_number, next)) = file.line().filter(|_| continued < CONTINUED_MAX) else {
                return self.out.faults.push(file.place(number, 1).fault(0, "expected `)` behind the arguments of a macro"));
            };
            let next = file.uncommented(next_number, next, true);
            text = format!("{text} {}", without_comments(&next, false, true).0);
        }
    }

    fn push(&mut self, file: &File<'_>, number: u32, text: String, origin: Option<Rc<Origin>>) {
        self.out.lines.push(Line { file: file.name.clone(), number, text: Cow::Owned(text), origin });
    }

    /// Tokens of a line, `__FILE__` and `__LINE__` known.
    fn line_tokens(&self, file: &File<'_>, number: u32, text: &str) -> Vec<Token> {
        let mut line = tokens(text, 1);
        for token in &mut line {
            match &*token.text {
                "__LINE__" => *token = Token { kind: token::Kind::Number, text: Rc::from(number.to_string()), ..token.clone() },
                "__FILE__" => *token = Token { kind: token::Kind::Quoted, text: Rc::from(format!("\"{}\"", file.name)), ..token.clone() },
                _ => {}
            }
        }
        line
    }

    /// How messages name the macros used on a line.
    fn origin_of(&self, used: &[Rc<str>]) -> Rc<str> {
        let mut names: Vec<String> = Vec::new();
        for name in used {
            let at = self.macros.get(name).map_or("", |definition| &definition.at);
            let shown = if at.is_empty() { format!("`{name}`") } else { format!("`{name}` of {at}") };
            if !names.contains(&shown) && names.len() < 4 {
                names.push(shown);
            }
        }
        Rc::from(format!("with {}", names.join(" and ")))
    }

    fn directive(&mut self, file: &mut File<'_>, (number, column): (u32, u32), word: &str, rest: &str) {
        let at = file.place(number, column);
        match word {
            "if" | "ifdef" | "ifndef" => {
                let active = file.is_active();
                let taken = active && self.holds(file, &at, word, rest);
                file.conditions.push(Condition { at, done: taken || !active, active: taken, last: false });
            }
            "elif" | "else" | "endif" => self.change(file, &at, word, rest),
            _ if !file.is_active() => {}
            "define" => self.define(&at, rest),
            "undef" => self.macros.forget(rest.trim()),
            "include" => self.include(file, &at, rest),
            "error" => self.out.faults.push(at.fault(0, rest.trim().trim_matches('"'))),
            "warning" => self.out.warnings.push(at.fault(0, rest.trim().trim_matches('"'))),
            // `#pragma once` and the like and `#line` say nothing to an assembler.
            _ => {}
        }
    }

    fn change(&mut self, file: &mut File<'_>, at: &Place, word: &str, rest: &str) {
        let Some(mut condition) = file.conditions.pop() else {
            return self.out.faults.push(at.fault(0, format!("`#{word}` without `#if`")));
        };
        if word == "endif" {
            return;
        }
        if condition.last {
            self.out.faults.push(at.fault(0, format!("`#{word}` behind `#else`")));
        }
        condition.last = word == "else";
        condition.active = !condition.done && (word == "else" || self.holds(file, at, "if", rest));
        condition.done |= condition.active;
        file.conditions.push(condition);
    }

    fn holds(&mut self, file: &File<'_>, at: &Place, word: &str, rest: &str) -> bool {
        let rest = without_comments(rest, false, false).0;
        if word != "if" {
            return self.is_defined(rest.trim()) == (word == "ifdef");
        }
        let value = self.value(file, at, &rest);
        value.map_err(|message| self.out.faults.push(at.fault(0, format!("`#if`: {message}")))).is_ok_and(|value| value != 0)
    }

    fn is_defined(&self, name: &str) -> bool {
        self.macros.get(name).is_some() || self.constants.contains_key(name)
    }

    fn value(&self, file: &File<'_>, at: &Place, text: &str) -> Result<i64, String> {
        let asked = self.without_defined(self.line_tokens(file, at.line, text))?;
        let line = self.macros.replace(asked, &mut Vec::new()).map_err(|refusal| match refusal {
            Refusal::Unfinished => "expected `)` behind the arguments of a macro".to_owned(),
            Refusal::Fault(_, message) => message,
        })?;
        condition::evaluate(&line, &|name| self.constants.get(name).copied().unwrap_or(0))
    }

    /// `defined NAME` and `defined(NAME)` as 1 or 0.
    fn without_defined(&self, line: Vec<Token>) -> Result<Vec<Token>, String> {
        let mut found = Vec::new();
        let mut rest = line.into_iter().peekable();
        while let Some(token) = rest.next() {
            if &*token.text != "defined" {
                found.push(token);
                continue;
            }
            let bracketed = rest.next_if(|next| next.is("(")).is_some();
            let name = rest.next_if(Token::is_name).ok_or("expected a name behind `defined`")?;
            if bracketed && rest.next_if(|next| next.is(")")).is_none() {
                return Err("expected `)` behind `defined(`".to_owned());
            }
            let value = if self.is_defined(&name.text) { "1" } else { "0" };
            found.push(Token { kind: token::Kind::Number, text: Rc::from(value), ..token });
        }
        Ok(found)
    }

    fn define(&mut self, at: &Place, rest: &str) {
        let text = without_comments(rest, false, false).0;
        let (name, definition) = match Definition::read(&text, Rc::from(at.to_string())) {
            Ok(read) => read,
            Err(message) => return self.out.faults.push(at.fault(0, message)),
        };
        if let Some(earlier) = self.macros.define(name.clone(), definition) {
            let same = self.macros.get(&name).is_some_and(|now| now.is_same(&earlier));
            if !same {
                let place = if earlier.at.is_empty() { "by the assembler" } else { &earlier.at };
                self.out.warnings.push(at.fault(0, format!("`{name}` is defined anew, before that {place}")));
            }
        }
    }

    fn include(&mut self, file: &File<'_>, at: &Place, rest: &str) {
        let text = without_comments(rest, false, false).0;
        let Some((name, is_quoted)) = self.included(file, at, text.trim()) else {
            return self.out.faults.push(at.fault(0, format!("expected `\"file\"` or `<file>`, found `{}`", text.trim())));
        };
        if file.depth >= DEPTH_MAX {
            self.stopped = true;
            return self.out.faults.push(at.fault(0, format!("includes nest deeper than {DEPTH_MAX}")));
        }
        match (self.find)(&Include { name: &name, is_quoted, from: &file.name }) {
            Some(source) => self.file(&source.name, &source.text, file.depth + 1, |line| Cow::Owned(line.to_owned())),
            None => self.out.faults.push(at.fault(0, format!("no file `{name}` to include"))),
        }
    }

    /// The name an `#include` gives, itself or through a macro.
    fn included(&self, file: &File<'_>, at: &Place, text: &str) -> Option<(String, bool)> {
        let named = |text: &str| {
            let quoted = text.strip_prefix('"').and_then(|name| name.strip_suffix('"')).map(|name| (name.to_owned(), true));
            quoted.or_else(|| Some((text.strip_prefix('<')?.strip_suffix('>')?.to_owned(), false)))
        };
        named(text).or_else(|| {
            let line = self.macros.replace(self.line_tokens(file, at.line, text), &mut Vec::new()).ok()?;
            named(&line.iter().map(|token| &*token.text).collect::<String>())
        })
    }
}

/// The text of tokens, and the column each came from.
fn written(tokens: &[Token]) -> (String, Vec<(u32, u32)>) {
    let (mut text, mut characters, mut columns) = (String::new(), 0, Vec::new());
    for token in tokens {
        if token.spaced {
            text.push(' ');
            characters += 1;
        }
        columns.push((characters, token.column));
        text.push_str(&token.text);
        characters += token.text.chars().count() as u32;
    }
    (text, columns)
}

/// The column of the `#`, the word and the rest, if a line is a directive.
fn directive(line: &str) -> Option<(u32, &str, &str)> {
    let start = line.trim_start();
    let behind = start.strip_prefix('#')?;
    let text = behind.trim_start();
    let (word, rest) = text.split_at(text.find(|character| !is_name(character)).unwrap_or(text.len()));
    let column = line[..line.len() - start.len()].chars().count() as u32 + 1;
    let is_directive = WORDS.contains(&word) && (behind.len() == text.len() || has_form(word, rest));
    is_directive.then_some((column, word, rest))
}

/// Whether what follows a directive's word is what such a directive has, not prose of a comment.
fn has_form(word: &str, rest: &str) -> bool {
    let text = without_comments(rest, false, false).0;
    let mut words = text.split_whitespace();
    let (first, second) = (words.next(), words.next());
    let is_macro = |name: &str| name.chars().all(|character| is_name(character) && !character.is_ascii_lowercase());
    match word {
        "include" => first.is_some_and(|name| name.starts_with(['"', '<'])),
        "define" => first.is_some_and(|name| is_macro(name.split('(').next().unwrap_or(name))),
        "undef" | "ifdef" | "ifndef" => first.is_some() && second.is_none(),
        "else" | "endif" => first.is_none(),
        "if" | "elif" => {
            text.contains(['(', '=', '<', '>', '!']) || text.contains("defined") || second.is_none() && first.is_some_and(is_macro)
        }
        "error" => first.is_some_and(|text| text.starts_with('"')),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Source, preprocess};

    fn source(name: &str, text: &str) -> Source {
        Source { name: name.to_owned(), text: text.to_owned() }
    }

    fn shown(text: &str) -> Vec<String> {
        let header = "#ifndef H\n#define H\n#define SIZE 4\n#define TWICE(x) ((x)*2)\n.equ IN_H, SIZE\n#endif";
        let find = |include: &super::Include<'_>| (include.name == "h.h").then(|| source("h.h", header));
        let constants = BTreeMap::from([("ROWS".to_owned(), 32)]);
        let source = source("a.S", text);
        let out = preprocess(&source, &BTreeMap::from([("__IPU__".to_owned(), "1".to_owned())]), &constants, &find);
        let lines = out.lines.iter().filter(|line| !line.text.trim().is_empty());
        let lines = lines.map(|line| format!("{}:{}: {}", line.file, line.number, line.text.trim_end()));
        lines
            .chain(out.faults.iter().map(ToString::to_string))
            .chain(out.warnings.iter().map(|warning| format!("warning: {warning}")))
            .collect()
    }

    fn check(cases: &[(&str, &[&str])]) {
        for (text, expected) in cases {
            assert_eq!(shown(text), *expected, "{text}");
        }
    }

    #[test]
    fn macros_are_replaced_as_in_c() {
        check(&[
            ("#define A B\n#define B A\nA B", &["a.S:3: A B"]),
            ("#define F(x, y) x+y\nF(1, (2,3)) F", &["a.S:2: 1+(2,3) F"]),
            ("#define F(x) #x\nF( a  \"b\\n\" )", &["a.S:2: \"a \\\"b\\\\n\\\"\""]),
            ("#define CAT(a,b) a##b\n#define X 1\nCAT(X, 2) CAT(,X) CAT(a,)", &["a.S:3: X2 1 a"]),
            ("#define L(...) .long __VA_ARGS__\nL(1, 2)", &["a.S:2: .long 1, 2"]),
            ("#define E(f, ...) f(0, ##__VA_ARGS__)\nE(g) E(g, 1)", &["a.S:2: g(0) g(0, 1)"]),
            ("#define F(x) x\nF(1\n+2) nop\nnop", &["a.S:2: 1 +2 nop", "a.S:4: nop"]),
            ("#define REG m1\nadd $REG, $m0, 1 # REG", &["a.S:2: add $m1, $m0, 1"]),
            ("#define A 1\n.error \"A\"", &["a.S:2: .error \"A\""]),
            ("#define M \\\n 1\nM", &["a.S:3: 1"]),
            ("#define f(x) x f\nf(1)(2)", &["a.S:2: 1 f(2)"]),
            ("#define A 1\n#undef A\nA __LINE__", &["a.S:3: A __LINE__"]),
        ]);
    }

    #[test]
    fn conditions_choose_lines() {
        check(&[
            ("#if defined(__IPU__) && ROWS == 32\n1\n#elif 1\n2\n#else\n3\n#endif", &["a.S:2: 1"]),
            ("#if 0\n1\n#elif (010 | 0x10) == 24\n2\n#elif 1\n3\n#endif", &["a.S:4: 2"]),
            ("#ifndef __IPU__\n#if 1/0\n#endif\n#error no\n#else\n1\n#endif", &["a.S:6: 1"]),
            ("#if 0 && 1/0 || 3 ? 1 : 1/0\n1\n#endif", &["a.S:2: 1"]),
            ("#if -7 / 2 == -3 && UNKNOWN == 0\n1\n#endif", &["a.S:2: 1"]),
        ]);
    }

    #[test]
    fn includes_keep_their_places_and_guards_work() {
        check(&[(
            "#include \"h.h\"\n#include <h.h>\n#define NAME <h.h>\n#include NAME\nTWICE(SIZE)",
            &["h.h:5: .equ IN_H, 4", "a.S:5: ((4)*2)"],
        )]);
    }

    #[test]
    fn lines_that_are_no_directives_are_comments() {
        check(
            &[
                (
                    "# if the count is odd\n# else\n# include everything\n# define as a rule",
                    &["a.S:1: # if the count is odd", "a.S:2: # else", "a.S:3: # include everything", "a.S:4: # define as a rule"][..],
                ),
                ("# define X 1\n#  if X\nX\n# else\n# endif // X", &["a.S:3: 1"]),
                ("/* #error\n#error */ nop\n// #define A \nA", &["a.S:2:           nop", "a.S:3: // #define A", "a.S:4: A"]),
            ]
            .map(|(text, expected): (&str, &[&str])| (text, expected)),
        );
    }

    #[test]
    fn faults_name_their_places() {
        check(&[
            ("\n #if (1", &["a.S:2:2: `#if`: expected `)`, found the end", "a.S:2:2: expected `#endif`, found the end of the file"]),
            ("#if 1/0\n#endif", &["a.S:1:1: `#if`: division by zero"]),
            ("#include \"none.h\"", &["a.S:1:1: no file `none.h` to include"]),
            ("#include none", &["a.S:1:1: expected `\"file\"` or `<file>`, found `none`"]),
            ("#define F(x) x\n nop F(1,2)", &["a.S:2:6: macro `F`: expected 1 arguments, found 2"]),
            ("#define F(x) x\nF(1", &["a.S:2:1: expected `)` behind the arguments of a macro"]),
            ("#define A 1\n#define A 1\n#define A 2", &["warning: a.S:3:1: `A` is defined anew, before that a.S:2:1"]),
            ("#else\n#error \"stop\"\n#warning go", &["a.S:1:1: `#else` without `#if`", "a.S:2:1: stop", "warning: a.S:3:1: go"]),
            ("nop\nnop /* x\n y", &["a.S:1: nop", "a.S:2: nop", "a.S:2:5: this comment has no end `*/`"]),
        ]);
    }

    #[test]
    fn runaway_macros_and_includes_end() {
        let doubling: String = (1..40).map(|n| format!("#define A{n} A{} A{}\n", n - 1, n - 1)).collect();
        assert_eq!(shown(&format!("{doubling}A39")), ["a.S:40:1: macros give more than 65536 tokens on a line"]);
        let itself = source("a.S", "#include \"a.S\"");
        let out = preprocess(&itself, &BTreeMap::new(), &BTreeMap::new(), &|_| Some(itself.clone()));
        assert_eq!(out.faults.len(), 1);
    }
}
