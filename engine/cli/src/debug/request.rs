//! What is asked of a debugger, as typed.

use std::fmt;

use ipu21::tile::{COUNT, PhysTile};
use simulator::Context;
use simulator::debug::TileSelection;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Break { place: Place, whose: Whose, once: bool },
    Watch { at: Address, bytes: u32, whose: Whose },
    Delete(Option<u32>),
    Breaks,
    Tiles,
    Symbols(Option<String>),
    Run,
    Continue,
    Step { count: u64, whose: Option<(Option<PhysTile>, Option<Context>)> },
    Next,
    Tile(PhysTile),
    Context(Context),
    Registers,
    Memory { at: Address, count: u32, form: Form },
    Listing { at: Option<Address>, count: u32 },
    Where,
    Exchange(Option<usize>),
    Trace(Trace),
    TraceOff,
    Count { on: bool, tiles: TileSelection },
    Profile(usize),
    Hot(usize),
    ExportTrace(String),
    Help,
    Quit,
}

/// Where to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At an address or label.
    At(Address),
    /// At a line of a source file.
    Line { file: String, line: u32 },
    /// At the first instruction of each step of an operation of the model.
    Operation(String),
    /// At every instruction with this mnemonic.
    Mnemonic(String),
}

/// An address: a number, or the name of a label, a piece of code or a buffer, with an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Number(u32),
    Name { name: String, offset: u32 },
}

/// On which tiles, and of which context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Whose {
    pub(crate) tiles: TileSelection,
    pub(crate) context: Option<Context>,
}

/// How words of memory are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    F16,
    F32,
    U32,
    Hex,
}

/// Which instructions are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) whose: Whose,
    pub(crate) mnemonic: Option<String>,
    /// `first..end`.
    pub(crate) addresses: (u32, u32),
}

/// Why a text is no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misread(pub(crate) String);

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Every command with its short name, its operands and what it does.
pub(crate) const COMMANDS: &[(&str, &str, &str, &str)] = &[
    ("break", "b", "LABEL|FILE:LINE|ADDRESS [on TILES[.CONTEXT]]", "stop before an instruction"),
    ("break op", "", "NAME [on TILES]", "stop at the steps of an operation of the model"),
    ("break instruction", "", "MNEMONIC [on TILES[.CONTEXT]]", "stop before every instruction with this name"),
    ("tbreak", "tb", "… as break", "the same, once"),
    ("watch", "", "ADDRESS[..BYTES] [on TILES]", "stop behind every write to these bytes, 4 unless given"),
    ("delete", "d", "[NUMBER]", "remove a breakpoint, or all"),
    ("info breaks", "", "", "list breakpoints"),
    ("info tiles", "", "", "what tiles do, those that do the same together"),
    ("info symbols", "", "[TEXT]", "the memory map of the tile: names that contain the text"),
    ("run", "r", "", "run from the start"),
    ("continue", "c", "", "go on"),
    ("step", "s", "[COUNT] [TILE.CONTEXT]", "execute instructions or bundles of a context"),
    ("next", "n", "", "the same, once, calls and launched workers as one"),
    ("tile", "t", "NUMBER", "look at another tile"),
    ("context", "", "0..5|supervisor", "look at another context"),
    ("regs", "", "", "registers of the context"),
    ("mem", "x", "ADDRESS [COUNT] [as f16|f32|u32|hex]", "words of the tile's memory; COUNT is of elements"),
    ("disasm", "u", "[ADDRESS] [COUNT]", "instructions, from the next one on unless given"),
    ("where", "w", "", "place of every context of the tile"),
    ("exchange", "e", "[PHASE]", "what the tile sent and received, with clocks"),
    ("trace on", "", "[TILES[.CONTEXT]] [op MNEMONIC] [at FIRST..END]", "print instructions as they are executed"),
    ("trace off", "", "", "print none"),
    ("count on", "", "[TILES]", "count instructions from here on, for profile and hot"),
    ("count off", "", "", "count none"),
    ("profile", "p", "[ROWS]", "counted instructions with their source lines, the costliest first"),
    ("hot", "", "[ROWS]", "counted clocks by kernel and source line"),
    ("export-trace", "", "FILE", "compute, exchange and barriers of all tiles up to here, for Perfetto"),
    ("help", "h", "", "this list"),
    ("quit", "q", "", "end"),
];

/// Largest number of elements, instructions or steps shown at once.
const SHOWN_MAX: u32 = 1 << 16;
/// Rows of a table unless told otherwise.
const ROWS: usize = 20;

/// Reads a line; `None` for an empty one or a comment.
pub(crate) fn parse(line: &str) -> Result<Option<Request>, Misread> {
    let words = words(line)?;
    let Some((name, rest)) = words.split_first() else { return Ok(None) };
    let mut operands = Operands { words: rest, at: 0 };
    let request = request(name, &mut operands)?;
    operands.end(name)?;
    Ok(Some(request))
}

fn request(name: &str, operands: &mut Operands<'_>) -> Result<Request, Misread> {
    Ok(match name {
        "break" | "b" => stop(operands, false)?,
        "tbreak" | "tb" => stop(operands, true)?,
        "watch" => {
            let word = operands.need("an address, as 0x50000 or 0x50000..16")?;
            let (at, bytes) = match word.split_once("..") {
                Some((at, bytes)) => (at, number(bytes)?),
                None => (word, 4),
            };
            if !(1..=SHOWN_MAX).contains(&bytes) {
                return Err(Misread(format!("{bytes} bytes cannot be watched; expected 1 to {SHOWN_MAX}")));
            }
            Request::Watch { at: address(at)?, bytes, whose: operands.whose()? }
        }
        "delete" | "d" => Request::Delete(operands.next().map(number).transpose()?),
        "info" => match operands.need("breaks, tiles or symbols")? {
            "breaks" | "breakpoints" | "b" => Request::Breaks,
            "tiles" => Request::Tiles,
            "symbols" => Request::Symbols(operands.next().map(str::to_owned)),
            other => return Err(Misread(format!("there is no `info {other}`; expected breaks, tiles or symbols"))),
        },
        "run" | "r" => Request::Run,
        "continue" | "c" => Request::Continue,
        "step" | "s" => step(operands)?,
        "next" | "n" => {
            operands.next_if("bundle");
            Request::Next
        }
        "tile" | "t" => Request::Tile(tile(operands.need("the number of a tile")?)?),
        "context" => Request::Context(context(operands.need("0..5 or supervisor")?)?),
        "regs" | "registers" => Request::Registers,
        "mem" | "x" => memory(operands)?,
        "disasm" | "u" => {
            let at = operands.next().map(address).transpose()?;
            Request::Listing { at, count: operands.count(8)? }
        }
        "where" | "w" | "bt" => Request::Where,
        "exchange" | "e" => Request::Exchange(operands.next().map(number).transpose()?.map(|phase| phase as usize)),
        "trace" => match operands.need("on or off")? {
            "on" => Request::Trace(trace(operands)?),
            "off" => Request::TraceOff,
            other => return Err(Misread(format!("`trace {other}`: expected `trace on …` or `trace off`"))),
        },
        "count" => match operands.need("on or off")? {
            "on" => Request::Count { on: true, tiles: operands.next().map_or_else(|| Ok(TileSelection::all()), tiles)? },
            "off" => Request::Count { on: false, tiles: TileSelection::none() },
            other => return Err(Misread(format!("`count {other}`: expected `count on` or `count off`"))),
        },
        "profile" | "p" => Request::Profile(operands.rows()?),
        "hot" => Request::Hot(operands.rows()?),
        "export-trace" => Request::ExportTrace(operands.need("the name of a file")?.to_owned()),
        "help" | "h" => Request::Help,
        "quit" | "q" | "exit" => Request::Quit,
        other => {
            let names = COMMANDS.iter().map(|(name, ..)| name.split(' ').next().unwrap_or_default());
            let nearest = graph::nearest(other, names);
            let nearest = if nearest.is_empty() { String::new() } else { format!("; nearest {}", nearest.join(", ")) };
            return Err(Misread(format!("there is no command `{other}`; `help` lists them{nearest}")));
        }
    })
}

/// The operands of a command, one after the other.
struct Operands<'a> {
    words: &'a [String],
    at: usize,
}

impl<'a> Operands<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).map(String::as_str)
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.peek();
        self.at += usize::from(word.is_some());
        word
    }

    fn next_if(&mut self, wanted: &str) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.at += usize::from(is_next);
        is_next
    }

    fn need(&mut self, what: &str) -> Result<&'a str, Misread> {
        self.next().ok_or_else(|| Misread(format!("expected {what}")))
    }

    /// `on TILES[.CONTEXT]`, or everything.
    fn whose(&mut self) -> Result<Whose, Misread> {
        if self.next_if("on") { whose(self.need("tiles, as 3, 0-63 or 3.supervisor")?) } else { Ok(Whose::all()) }
    }

    fn count(&mut self, default: u32) -> Result<u32, Misread> {
        let count = self.next().map_or(Ok(default), number)?;
        if (1..=SHOWN_MAX).contains(&count) { Ok(count) } else { Err(Misread(format!("found {count}, expected 1 to {SHOWN_MAX}"))) }
    }

    fn rows(&mut self) -> Result<usize, Misread> {
        self.next().map_or(Ok(ROWS), |word| Ok(number(word)? as usize))
    }

    fn end(&self, name: &str) -> Result<(), Misread> {
        self.peek().map_or(Ok(()), |word| Err(Misread(format!("`{name}`: `{word}` is one operand too many; `help` lists commands"))))
    }
}

impl Whose {
    pub(crate) fn all() -> Whose {
        Whose { tiles: TileSelection::all(), context: None }
    }
}

/// Words between blanks; quotes hold one together, `#` begins a comment.
fn words(line: &str) -> Result<Vec<String>, Misread> {
    let mut words = Vec::new();
    let mut characters = line.chars().peekable();
    loop {
        while characters.next_if(|character| character.is_whitespace()).is_some() {}
        match characters.peek() {
            None | Some('#') => return Ok(words),
            Some(_) => {}
        }
        let mut word = String::new();
        while let Some(character) = characters.next_if(|character| !character.is_whitespace()) {
            if !matches!(character, '"' | '\'') {
                word.push(character);
                continue;
            }
            loop {
                match characters.next() {
                    Some(end) if end == character => break,
                    Some(inner) => word.push(inner),
                    None => return Err(Misread(format!("the quote {character} is not closed"))),
                }
            }
        }
        words.push(word);
    }
}

fn number(word: &str) -> Result<u32, Misread> {
    let parsed = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) if digits.starts_with('+') => None,
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if word.starts_with('+') => None,
        None => word.parse().ok(),
    };
    parsed.ok_or_else(|| Misread(format!("`{word}` is no number; expected one as 12 or 0x4c010")))
}

/// A number, `NAME` or `NAME+OFFSET`.
fn address(word: &str) -> Result<Address, Misread> {
    if word.is_empty() {
        return Err(Misread("expected an address or a name".to_owned()));
    }
    if word.starts_with(|character: char| character.is_ascii_digit()) {
        return Ok(Address::Number(number(word)?));
    }
    match word.rsplit_once('+') {
        Some((name, offset)) if !name.is_empty() && number(offset).is_ok() => {
            Ok(Address::Name { name: name.to_owned(), offset: number(offset)? })
        }
        _ => Ok(Address::Name { name: word.to_owned(), offset: 0 }),
    }
}

fn tile(word: &str) -> Result<PhysTile, Misread> {
    let tile = number(word)?;
    let found = u16::try_from(tile).ok().and_then(PhysTile::new);
    found.ok_or_else(|| Misread(format!("there is no tile {tile}; expected 0 to {}", COUNT - 1)))
}

fn context(word: &str) -> Result<Context, Misread> {
    match word {
        "supervisor" | "s" => Ok(Context::Supervisor),
        _ => match word.parse() {
            Ok(number @ 0..=5) => Ok(Context::Worker(number)),
            _ => Err(Misread(format!("there is no context `{word}`; expected 0 to 5, or supervisor"))),
        },
    }
}

/// `all`, or numbers and ranges `FIRST-LAST` between commas.
fn tiles(word: &str) -> Result<TileSelection, Misread> {
    if word == "all" {
        return Ok(TileSelection::all());
    }
    let mut found = Vec::new();
    for part in word.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (tile(first)?, tile(last)?);
        if first > last {
            return Err(Misread(format!("`{part}` names no tiles; expected the smaller number first")));
        }
        found.extend(PhysTile::all().filter(|tile| (first..=last).contains(tile)));
    }
    Ok(found.into_iter().collect())
}

/// `TILES` or `TILES.CONTEXT`.
fn whose(word: &str) -> Result<Whose, Misread> {
    match word.split_once('.') {
        Some((some, one)) => Ok(Whose { tiles: tiles(some)?, context: Some(context(one)?) }),
        None => Ok(Whose { tiles: tiles(word)?, context: None }),
    }
}

fn stop(operands: &mut Operands<'_>, once: bool) -> Result<Request, Misread> {
    let word = operands.need("a label, FILE:LINE, an address, `op NAME` or `instruction NAME`")?;
    let has_operand = operands.peek().is_some_and(|word| word != "on");
    let place = match word {
        "op" if has_operand => Place::Operation(operands.need("the name of an operation")?.to_owned()),
        "instruction" if has_operand => Place::Mnemonic(operands.need("a mnemonic")?.to_owned()),
        _ => match word.rsplit_once(':') {
            Some((file, line)) if !file.is_empty() && number(line).is_ok() => Place::Line { file: file.to_owned(), line: number(line)? },
            _ => Place::At(address(word)?),
        },
    };
    Ok(Request::Break { place, whose: operands.whose()?, once })
}

/// `[COUNT] [TILE.CONTEXT]`.
fn step(operands: &mut Operands<'_>) -> Result<Request, Misread> {
    let mut count = 1;
    if let Some(word) = operands.peek().filter(|word| !word.contains('.')) {
        count = u64::from(number(word)?);
        operands.next();
    }
    if count == 0 {
        return Err(Misread("0 steps lead nowhere; expected at least 1".to_owned()));
    }
    let whose = match operands.next() {
        None => None,
        Some(word) => match word.split_once('.') {
            Some(("", one)) => Some((None, Some(context(one)?))),
            Some((number, "all")) => Some((Some(tile(number)?), None)),
            Some((number, one)) => Some((Some(tile(number)?), Some(context(one)?))),
            None => return Err(Misread(format!("`{word}` is no context; expected one as 3.0, 3.supervisor or 3.all"))),
        },
    };
    Ok(Request::Step { count, whose })
}

/// `ADDRESS [COUNT] [as FORM]`.
fn memory(operands: &mut Operands<'_>) -> Result<Request, Misread> {
    let at = address(operands.need("an address")?)?;
    let has_count = operands.peek().is_some_and(|word| word != "as");
    let count = if has_count { operands.count(8)? } else { 8 };
    let form = if operands.next_if("as") {
        match operands.need("f16, f32, u32 or hex")? {
            "f16" => Form::F16,
            "f32" => Form::F32,
            "u32" => Form::U32,
            "hex" => Form::Hex,
            other => return Err(Misread(format!("`{other}` is no form; expected f16, f32, u32 or hex"))),
        }
    } else {
        Form::Hex
    };
    Ok(Request::Memory { at, count, form })
}

/// `[TILES[.CONTEXT]] [op MNEMONIC] [at FIRST..END]`.
fn trace(operands: &mut Operands<'_>) -> Result<Trace, Misread> {
    let mut trace = Trace { whose: Whose::all(), mnemonic: None, addresses: (0, u32::MAX) };
    while let Some(word) = operands.next() {
        match word {
            "op" => trace.mnemonic = Some(operands.need("a mnemonic")?.to_owned()),
            "at" => {
                let range = operands.need("addresses, as 0x4c010..0x4c040")?;
                let (first, end) = range.split_once("..").ok_or_else(|| Misread(format!("`{range}` is no range; expected FIRST..END")))?;
                trace.addresses = (number(first)?, number(end)?);
            }
            "on" => {}
            word => trace.whose = whose(word)?,
        }
    }
    Ok(trace)
}
